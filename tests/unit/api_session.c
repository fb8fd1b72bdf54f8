/* SPDX-License-Identifier: Apache-2.0
 * include/lacuna/session.h: many threads and shapes, plans that are shared, copied and dropped, the
 * caller's arrays, failures. What a session computes are the bits of lac_engine. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/model/model_in.h"
#include "base/memory.h"
#include "lacuna/engine.h"
#include "lacuna/prune.h"
#include "lacuna/session.h"
#include "support/graph_build.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

enum { IMAGE = 64, CLASSES = 10, MOST_BATCH = 6, WORKERS = 8 };

static float images[MOST_BATCH * IMAGE];
static float wanted[MOST_BATCH + 1][MOST_BATCH * CLASSES]; /* of every batch, by lac_engine */

/* ---- Help ---- */

static lac_model *load(void) {
  lac_model *model = NULL;
  lac_error err = {0};
  if (lac_model_load(DIGITS, NULL, &model, &err)) fail_msg("%s", err.text);
  return model;
}

/** A model from text (support/graph_build.h). */
static lac_model *read_model(const char *text) {
  lac_model *model = NULL;
  lac_error err = {0};
  assert_int_equal(laci_model_create_empty("(test)", &model, NULL), LAC_OK);
  if (net_read(text, &model->graph, &err)) fail_msg("%s", err.text);
  return model;
}

static lac_session_options one_thread(void) {
  lac_session_options o = lac_session_options_default();
  o.run.threads = 1;
  o.n_copies = 1;
  return o;
}

static lac_session *create(const lac_model *model, const lac_session_options *o) {
  lac_session *session = NULL;
  lac_error err = {0};
  if (lac_session_create(model, o, &session, &err)) fail_msg("%s", err.text);
  return session;
}

static lac_session_facts about(lac_session *session) {
  lac_session_facts facts = {.size = sizeof facts};
  if (lac_session_about(session, &facts, NULL)) fail_msg("no facts");
  return facts;
}

static lac_array batch_of_images(int batch) {
  return (lac_array){.dtype = LAC_DTYPE_F32,
                     .rank = 4,
                     .shape = {batch, 1, 8, 8},
                     .data = images,
                     .size_bytes = (size_t)batch * IMAGE * sizeof *images};
}

/** One run of digits, on a buffer of the library's or of the caller's; are the bits right? */
static bool run_digits(lac_session *session, int batch, bool ours, lac_error *err) {
  float values[MOST_BATCH * CLASSES];
  const size_t size = (size_t)batch * CLASSES * sizeof *values;
  const lac_array in = batch_of_images(batch);
  lac_array out = {0};
  if (ours) {
    out.data = values;
    out.size_bytes = sizeof values;
  }
  if (lac_session_run(session, &in, 1, &out, 1, err)) return false;
  bool good = out.rank == 2 && out.shape[0] == batch && out.shape[1] == CLASSES &&
              out.dtype == LAC_DTYPE_F32 && out.owned == !ours &&
              memcmp(out.data, wanted[batch], size) == 0;
  lac_session_release(&out, 1);
  return good;
}

static void expect_digits(lac_session *session, int batch) {
  lac_error err = {0};
  if (!run_digits(session, batch, true, &err)) fail_msg("batch %d: %s", batch, err.text);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool may_measure = false; /* sanitizers keep what is freed */
#else
static const bool may_measure = true;
#endif

static size_t resident_bytes(void) {
  unsigned long long pages = 0, all;
  FILE *file = fopen("/proc/self/statm", "re");
  if (!file || fscanf(file, "%llu %llu", &all, &pages) != 2) pages = 0;
  if (file) (void)fclose(file);
  return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static int compute_wanted(void **state) {
  (void)state;
  lac_model *model = load();
  for (size_t at = 0; at < MOST_BATCH * IMAGE; at++) images[at] = (float)((at * 7919) % 17) / 16;
  for (int batch = 1; batch <= MOST_BATCH; batch++) {
    lac_engine *engine = NULL;
    lac_engine_options o = lac_engine_options_default();
    const lac_engine_shape shape = {"image", 4, {batch, 1, 8, 8}};
    o.run.threads = 1;
    o.shapes = &shape;
    o.n_shapes = 1;
    if (lac_engine_create(model, &o, &engine, NULL)) return 1;
    if (lac_engine_run(engine, (const void *[]){images}, (void *[]){wanted[batch]}, NULL)) return 1;
    lac_engine_destroy(engine);
  }
  lac_model_destroy(model);
  return 0;
}

/* ---- Many threads ---- */

/* cmocka's assertions are for the main thread: the others count what is wrong. */
typedef struct worker {
  pthread_t thread;
  lac_session *session;
  unsigned random;
  int n_runs, n_wrong, n_shapes;
  lac_error err;
} worker;

static void *work(void *context) {
  worker *w = context;
  for (int run = 0; run < w->n_runs; run++) {
    w->random = w->random * 1103515245u + 12345u;
    const int batch = 1 + (int)(w->random >> 16) % w->n_shapes;
    if (!run_digits(w->session, batch, (w->random >> 8) % 2 == 0, &w->err)) w->n_wrong++;
  }
  return NULL;
}

static void run_workers(lac_session *session, int n_runs, int n_shapes) {
  worker workers[WORKERS] = {0};
  for (int at = 0; at < WORKERS; at++) {
    worker *w = &workers[at];
    *w = (worker){.session = session,
                  .random = (unsigned)at + 1,
                  .n_runs = n_runs / WORKERS,
                  .n_shapes = n_shapes};
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
  }
  for (int at = 0; at < WORKERS; at++) pthread_join(workers[at].thread, NULL);
  for (int at = 0; at < WORKERS; at++) {
    const worker *w = &workers[at];
    if (w->n_wrong) fail_msg("thread %d: %d wrong: %s", at, w->n_wrong, w->err.text);
  }
}

static void eight_threads_get_equal_bits_in_flat_memory(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session_options o = one_thread();
  lac_session *session = create(model, &o);
  run_workers(session, 1000, MOST_BATCH);
  const size_t early = resident_bytes();
  run_workers(session, 9000, MOST_BATCH);
  const size_t late = resident_bytes();
  const lac_session_facts facts = about(session);
  assert_int_equal(facts.n_planned, MOST_BATCH);
  assert_int_equal(facts.n_plans, MOST_BATCH);
  assert_int_equal(facts.n_engines, MOST_BATCH);
  assert_int_equal(facts.n_copied + facts.n_dropped, 0);
  if (may_measure && late > early + early / 20)
    fail_msg("%zu bytes after 1000 runs, %zu after 10000", early, late);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

static void copies_of_a_plan_give_equal_bits(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session_options o = one_thread();
  o.n_copies = 3;
  lac_session *session = create(model, &o);
  run_workers(session, 4000, 2);
  const lac_session_facts facts = about(session);
  assert_int_equal(facts.n_planned, 2);
  assert_int_equal(facts.n_engines, facts.n_planned + facts.n_copied);
  assert_in_range(facts.n_engines, 2, 6);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

static void few_plans_and_many_shapes_end_with_few_plans(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session_options o = one_thread();
  for (o.n_plans = 1; o.n_plans <= 4; o.n_plans += 3) {
    o.n_copies = o.n_plans;
    lac_session *session = create(model, &o);
    run_workers(session, 400, MOST_BATCH);
    const lac_session_facts facts = about(session);
    assert_true(facts.n_plans <= o.n_plans && facts.n_dropped > 0);
    assert_int_equal(facts.n_planned - facts.n_dropped, facts.n_plans);
    lac_session_destroy(session);
  }
  lac_model_destroy(model);
}

static void several_threads_a_run_give_right_answers(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session_options o = lac_session_options_default();
  o.run.threads = 2;
  o.n_copies = 2;
  o.run.engine = "plain"; /* the same bits for any number of threads */
  lac_session *session = create(model, &o);
  lac_array in = batch_of_images(2), out[2] = {0};
  assert_int_equal(lac_session_run(session, &in, 1, &out[0], 1, NULL), LAC_OK);
  o.run.engine = NULL;
  lac_session *fast = create(model, &o);
  assert_int_equal(lac_session_run(fast, &in, 1, &out[1], 1, NULL), LAC_OK);
  for (int at = 0; at < 2 * CLASSES; at++) {
    const float diff = ((float *)out[0].data)[at] - ((float *)out[1].data)[at];
    if (!(diff < 1e-4f && diff > -1e-4f)) fail_msg("value %d differs by %g", at, (double)diff);
  }
  assert_int_equal(about(fast).threads, 2);
  assert_string_equal(about(session).engine, "plain");
  lac_session_release(out, 2);
  lac_session_destroy(session);
  lac_session_destroy(fast);
  lac_model_destroy(model);
}

typedef struct reader {
  pthread_t thread;
  const lac_model *model;
  lac_status status;
} reader;

static void *inspect(void *context) {
  reader *r = context;
  lac_report *report = NULL;
  lac_options o = lac_options_default();
  o.threads = 1;
  r->status = lac_inspect(r->model, &o, &report, NULL);
  lac_report_destroy(report);
  return NULL;
}

static void another_thread_may_inspect_the_model(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session_options o = one_thread();
  lac_session *session = create(model, &o);
  reader r = {.model = model};
  assert_int_equal(pthread_create(&r.thread, NULL, inspect, &r), 0);
  run_workers(session, 80, MOST_BATCH);
  pthread_join(r.thread, NULL);
  assert_int_equal(r.status, LAC_OK);
  lac_session *later = create(model, &o); /* of inferred shapes */
  expect_digits(later, 2);
  lac_session_destroy(later);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

static void a_forked_process_goes_on_alone(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session_options o = one_thread();
  lac_session *session = create(model, &o);
  expect_digits(session, 1);
  for (int round = 0; round < 10; round++) {
    worker w = {.session = session, .random = 7, .n_runs = 200, .n_shapes = MOST_BATCH};
    assert_int_equal(pthread_create(&w.thread, NULL, work, &w), 0);
    (void)usleep(2000);
    const pid_t child = fork(); /* while the other thread runs or plans */
    assert_true(child >= 0);
    if (child == 0) {
      bool good = true;
      for (int batch = 1; batch <= MOST_BATCH; batch++)
        good = good && run_digits(session, batch, true, NULL);
      lac_session_destroy(session);
      _exit(good ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    pthread_join(w.thread, NULL);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(w.n_wrong, 0);
  }
  lac_session_destroy(session);
  lac_model_destroy(model);
}

/* ---- The caller's threads ---- */

typedef struct parts {
  pthread_mutex_t lock;
  int n_calls, most;
} parts;

typedef struct part_of {
  lac_part *part;
  void *arg;
  int index;
} part_of;

static void *run_part(void *context) {
  const part_of *p = context;
  p->part(p->arg, p->index);
  return NULL;
}

/* A thread for each part: those who have a pool do better. */
static void on_new_threads(void *context, lac_part *part, void *arg, int n) {
  parts *p = context;
  pthread_t threads[WORKERS];
  part_of all[WORKERS];
  pthread_mutex_lock(&p->lock);
  p->n_calls++;
  if (n > p->most) p->most = n;
  pthread_mutex_unlock(&p->lock);
  for (int at = 0; at < n; at++) {
    all[at] = (part_of){part, arg, at};
    if (pthread_create(&threads[at], NULL, run_part, &all[at])) abort();
  }
  for (int at = 0; at < n; at++) pthread_join(threads[at], NULL);
}

/* A caller that has one thread. */
static void one_after_the_other(void *context, lac_part *part, void *arg, int n) {
  parts *p = context;
  p->n_calls++;
  for (int at = n - 1; at >= 0; at--) part(arg, at);
}

/** Runs digits on 4 threads, with and without the caller's function: are the bits equal? */
static void expect_equal_bits(const char *engine, lac_parallel *parallel, parts *p) {
  lac_model *model = load();
  lac_session_options o = lac_session_options_default();
  lac_array out[2] = {{0}, {0}};
  const lac_array in = batch_of_images(MOST_BATCH);
  o.run.threads = 4;
  o.run.engine = engine;
  for (int with = 0; with < 2; with++) {
    o.parallel = with ? parallel : NULL;
    o.parallel_context = p;
    lac_session *session = create(model, &o);
    lac_error err = {0};
    if (lac_session_run(session, &in, 1, &out[with], 1, &err)) fail_msg("%s", err.text);
    lac_session_destroy(session);
  }
  assert_memory_equal(out[0].data, out[1].data, MOST_BATCH * CLASSES * sizeof(float));
  lac_session_release(out, 2);
  lac_model_destroy(model);
}

static void the_callers_threads_compute_the_same_bits(void **state) {
  (void)state;
  parts p = {.lock = PTHREAD_MUTEX_INITIALIZER};
  expect_equal_bits("plain", on_new_threads, &p);
  assert_true(p.n_calls > 0 && p.most > 1 && p.most <= 4);
  p.n_calls = 0;
  expect_equal_bits("plain", one_after_the_other, &p);
  assert_true(p.n_calls > 0);
  expect_equal_bits(NULL, on_new_threads, &p);
  expect_equal_bits("cpu", one_after_the_other, &p);
}

/* ---- Plans ---- */

static void the_least_recently_used_plan_goes(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session_options o = one_thread();
  o.n_plans = 2;
  lac_session *session = create(model, &o);
  static const struct {
    int batch, n_planned, n_dropped;
  } steps[] = {{1, 1, 0}, {2, 2, 0}, {1, 2, 0}, {3, 3, 1} /* 2 goes */,
               {1, 3, 1}, {2, 4, 2}, {1, 4, 2} /* 3 went */};
  for (size_t at = 0; at < sizeof steps / sizeof *steps; at++) {
    expect_digits(session, steps[at].batch);
    const lac_session_facts facts = about(session);
    if ((int)facts.n_planned != steps[at].n_planned || (int)facts.n_dropped != steps[at].n_dropped)
      fail_msg("step %zu: %d planned, %d dropped", at, (int)facts.n_planned, (int)facts.n_dropped);
  }
  assert_int_equal(about(session).n_plans, 2);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

static void threads_that_need_one_new_plan_make_it_once(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session_options o = one_thread();
  for (int round = 0; round < 5; round++) {
    lac_session *session = create(model, &o);
    run_workers(session, WORKERS, 1);
    const lac_session_facts facts = about(session);
    assert_int_equal(facts.n_planned, 1);
    assert_int_equal(facts.n_engines, 1);
    lac_session_destroy(session);
  }
  lac_model_destroy(model);
}

/** The planned bytes of one plan. */
static uint64_t bytes_of(const lac_model *model, int batch) {
  lac_session_options o = one_thread();
  lac_session *session = create(model, &o);
  expect_digits(session, batch);
  const uint64_t bytes = about(session).bytes;
  lac_session_destroy(session);
  return bytes;
}

static void max_memory_bounds_all_plans_together(void **state) {
  (void)state;
  lac_model *model = load();
  const uint64_t first = bytes_of(model, 1), largest = bytes_of(model, MOST_BATCH);
  lac_session_options o = one_thread();
  lac_error err = {0};
  o.n_copies = 4;
  o.run.max_memory = first - 1;
  lac_session *session = create(model, &o);
  assert_false(run_digits(session, 1, true, &err));
  assert_int_equal(err.status, LAC_MEMORY_LIMIT);
  assert_int_equal(err.hint, LAC_HINT_MAX_MEMORY);
  assert_int_equal(about(session).n_plans, 0);
  lac_session_destroy(session);
  o.run.max_memory = largest; /* one at a time, whatever comes */
  session = create(model, &o);
  expect_digits(session, 1);
  expect_digits(session, MOST_BATCH);
  run_workers(session, 200, MOST_BATCH);
  assert_true(about(session).bytes <= largest);
  assert_true(about(session).n_dropped > 0);
  lac_session_destroy(session);
  o.run.max_memory = first * 5 / 2; /* two plans, and no copies */
  session = create(model, &o);
  expect_digits(session, 1);
  expect_digits(session, 1);
  assert_int_equal(about(session).n_planned, 1);
  run_workers(session, 200, 1);
  assert_true(about(session).bytes <= o.run.max_memory);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

static void shapes_are_planned_without_a_run(void **state) {
  (void)state;
  lac_session_options o = one_thread();
  lac_model *model = load();
  lac_session *session = create(model, &o);
  lac_error err = {0};
  lac_array in = batch_of_images(3), other = batch_of_images(4);
  in.data = NULL;
  in.size_bytes = 0;
  for (int k = 0; k < 2; k++) {
    assert_int_equal(lac_session_plan(session, &in, 1, &err), LAC_OK);
    assert_int_equal(about(session).n_planned, 1);
  }
  assert_true(run_digits(session, 3, true, &err));
  assert_int_equal(about(session).n_planned, 1);
  assert_int_equal(lac_session_plan(session, &other, 1, &err), LAC_OK);
  assert_int_equal(about(session).n_plans, 2);
  in.shape[2] = 9;
  assert_int_equal(lac_session_plan(session, &in, 1, &err), LAC_BAD_SHAPE);
  assert_int_equal(lac_session_plan(session, &in, 0, &err), LAC_NOT_FOUND);
  assert_int_equal(lac_session_plan(session, NULL, 1, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "lac_session_plan"));
  assert_int_equal(lac_session_plan(NULL, &in, 1, &err), LAC_BAD_ARGUMENT);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

/** What a watcher saw. */
typedef struct seen {
  int n, n_named;
  double first, last, end;
  char names[512];
} seen;

static void see(void *context, const lac_session_step *step) {
  seen *s = context;
  assert_true(step->seconds >= 0);
  assert_true(s->n == 0 || step->begin_seconds >= s->last);
  assert_non_null(step->op);
  assert_non_null(step->kernel);
  if (!s->n++) s->first = step->begin_seconds;
  s->last = step->begin_seconds;
  s->end = step->begin_seconds + step->seconds;
  if (!step->name) return;
  size_t used = strlen(s->names);
  (void)snprintf(s->names + used, sizeof s->names - used, "%s %s ", step->name, step->op);
  s->n_named++;
}

static double now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void a_watcher_sees_the_steps_of_runs(void **state) {
  (void)state;
  lac_session_options o = one_thread();
  lac_model *model = load();
  lac_session *session = create(model, &o);
  lac_error err = {0};
  seen one = {0}, other = {0};
  assert_true(run_digits(session, 2, true, &err));
  lac_session_watch(session, see, &one);
  const double before = now();
  assert_true(run_digits(session, 2, true, &err));
  assert_true(one.n_named >= 8 && one.first >= before && one.end <= now());
  assert_non_null(strstr(one.names, "Conv"));
  const int n = one.n;
  lac_session_watch(session, see, &other);
  one.last = 0;
  assert_true(run_digits(session, 2, true, &err));
  assert_true(one.n == n && other.n == n);
  assert_string_equal(one.names, other.names);
  lac_session_watch(session, NULL, NULL);
  lac_session_watch(NULL, see, &one);
  assert_true(run_digits(session, 2, true, &err));
  assert_int_equal(other.n, n);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

static void a_failed_plan_is_not_kept(void **state) {
  (void)state;
  lac_model *model = read_model("input x 2x3\ninput y 2x3\nz = Add(x, y)\noutput z");
  model->graph->values[model->graph->inputs[1]].type.shape = laci_shape_unknown();
  lac_session_options o = one_thread();
  o.run.engine = "cpu"; /* "auto" runs the node by its slow definition, and fails there */
  lac_session *session = create(model, &o);
  float x[6] = {1, 2, 3, 4, 5, 6}, y[4] = {1, 2, 3, 4};
  lac_array in[2] = {
      {.dtype = LAC_DTYPE_F32, .rank = 2, .shape = {2, 3}, .data = x, .size_bytes = sizeof x},
      {.dtype = LAC_DTYPE_F32, .rank = 1, .shape = {4}, .data = y, .size_bytes = sizeof y}};
  lac_array out = {0};
  lac_error err = {0};
  for (int round = 0; round < 2; round++) {
    assert_int_equal(lac_session_run(session, in, 2, &out, 1, &err), LAC_BAD_SHAPE);
    assert_true(err.text[0] && !out.data && !out.owned);
    assert_int_equal(about(session).n_plans, 0);
    assert_int_equal(about(session).bytes, 0);
  }
  in[1].shape[0] = 3;
  in[1].size_bytes = 3 * sizeof *y;
  assert_int_equal(lac_session_run(session, in, 2, &out, 1, &err), LAC_OK);
  assert_true(((float *)out.data)[5] == 9.0f);
  lac_session_release(&out, 1);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

/* ---- Arrays ---- */

static void says_what_the_network_takes_and_gives(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session_options o = one_thread();
  lac_session *session = create(model, &o);
  const lac_array *in, *out;
  assert_int_equal(lac_session_inputs(session, &in), 1);
  assert_int_equal(lac_session_outputs(session, &out), 1);
  assert_string_equal(in[0].name, "image");
  assert_true(in[0].rank == 4 && in[0].shape[0] == -1 && in[0].shape[2] == 8 && !in[0].data);
  assert_true(in[0].dtype == LAC_DTYPE_F32 && out[0].dtype == LAC_DTYPE_F32);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

static void arrays_are_found_by_name_and_by_index(void **state) {
  (void)state;
  lac_model *model =
      read_model("input a 2\ninput b 2\ns = Sub(a, b)\np = Mul(a, b)\noutput s\noutput p");
  lac_session_options o = one_thread();
  lac_session *session = create(model, &o);
  float a[2] = {5, 7}, b[2] = {2, 3}, p[2];
  lac_array in[2] = {{.name = "b", .data = b}, {.name = "a", .data = a}};
  for (int k = 0; k < 2; k++) {
    in[k].dtype = LAC_DTYPE_F32;
    in[k].rank = 1;
    in[k].shape[0] = 2;
    in[k].size_bytes = sizeof a;
  }
  lac_array out[2] = {{.name = "p", .data = p, .size_bytes = sizeof p}, {.name = "s"}};
  lac_error err = {0};
  if (lac_session_run(session, in, 2, out, 2, &err)) fail_msg("%s", err.text);
  assert_true(p[0] == 10 && p[1] == 21 && ((float *)out[1].data)[0] == 3);
  lac_session_release(out, 2);
  assert_true(out[0].data == p && !out[1].data && !out[1].owned);
  in[0].name = in[1].name = NULL; /* b is the first now */
  lac_array second = {.name = "s"};
  assert_int_equal(lac_session_run(session, in, 2, &second, 1, &err), LAC_OK);
  assert_true(((float *)second.data)[1] == -4);
  assert_string_equal(second.name, "s");
  lac_session_release(&second, 1);
  assert_int_equal(lac_session_run(session, in, 2, NULL, 0, &err), LAC_OK);
  assert_int_equal(about(session).n_planned, 1);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

/** Runs x of `dtype` through y = x + x and returns what comes out in its type. */
static lac_status double_it(const char *declared, lac_dtype dtype, void *data, size_t size_bytes,
                            lac_array *out, lac_error *err) {
  char text[128];
  (void)snprintf(text, sizeof text, "input x 3 %s\ny = Add(x, x)\noutput y", declared);
  lac_model *model = read_model(text);
  model->graph->values[model->graph->outputs[0]].type.dtype = net_dtype(declared);
  lac_session_options o = one_thread();
  lac_session *session = create(model, &o);
  const lac_array in = {
      .dtype = dtype, .rank = 1, .shape = {3}, .data = data, .size_bytes = size_bytes};
  lac_status st = lac_session_run(session, &in, 1, out, 1, err);
  lac_session_destroy(session);
  lac_model_destroy(model);
  out->name = NULL;
  return st;
}

static void arrays_have_the_declared_type_or_the_plain_one(void **state) {
  (void)state;
  lac_array out = {0};
  lac_error err = {0};
  uint16_t halves[3] = {0x3c00, 0x4000, 0xc200}; /* 1, 2, -3 */
  if (double_it("f16", LAC_DTYPE_F16, halves, sizeof halves, &out, &err)) fail_msg("%s", err.text);
  assert_true(out.dtype == LAC_DTYPE_F16 && out.size_bytes == 6);
  assert_int_equal(((uint16_t *)out.data)[2], 0xc600);
  lac_session_release(&out, 1);
  float floats[3] = {1, 2, -3};
  out.dtype = LAC_DTYPE_F32;
  if (double_it("f16", LAC_DTYPE_F32, floats, sizeof floats, &out, &err)) fail_msg("%s", err.text);
  assert_true(((float *)out.data)[2] == -6);
  lac_session_release(&out, 1);
  int32_t integers[3] = {1, -2, 3};
  out.dtype = LAC_DTYPE_NONE;
  if (double_it("i32", LAC_DTYPE_I32, integers, sizeof integers, &out, &err))
    fail_msg("%s", err.text);
  assert_true(out.dtype == LAC_DTYPE_I32 && ((int32_t *)out.data)[1] == -4);
  lac_session_release(&out, 1);
  int64_t wide[3] = {1, 2, 300};
  out.dtype = LAC_DTYPE_I64;
  if (double_it("i32", LAC_DTYPE_I64, wide, sizeof wide, &out, &err)) fail_msg("%s", err.text);
  assert_true(((int64_t *)out.data)[2] == 600);
  lac_session_release(&out, 1);
  wide[2] = INT64_MAX;
  assert_int_equal(double_it("i32", LAC_DTYPE_I64, wide, sizeof wide, &out, &err), LAC_BAD_VALUE);
  assert_string_equal(err.text, "x: element 2 is 9223372036854775807, which i32 does not hold");
  assert_int_equal(double_it("f32", LAC_DTYPE_I64, wide, sizeof wide, &out, &err),
                   LAC_BAD_ARGUMENT);
  assert_string_equal(err.text, "x: an array of i64, wanted f32");
  out.dtype = LAC_DTYPE_F32;
  assert_int_equal(double_it("i32", LAC_DTYPE_I32, integers, sizeof integers, &out, &err),
                   LAC_BAD_ARGUMENT);
  assert_string_equal(err.text, "y: an array of f32, wanted i32 or i64");
}

static void any_alignment_will_do(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session_options o = one_thread();
  lac_session *session = create(model, &o);
  char in_bytes[IMAGE * sizeof(float) + 1], out_bytes[CLASSES * sizeof(float) + 1];
  lac_array in = batch_of_images(1);
  memcpy(in_bytes + 1, images, IMAGE * sizeof(float));
  in.data = in_bytes + 1;
  lac_array out = {.data = out_bytes + 1, .size_bytes = sizeof out_bytes - 1};
  assert_int_equal(lac_session_run(session, &in, 1, &out, 1, NULL), LAC_OK);
  assert_memory_equal(out_bytes + 1, wanted[1], CLASSES * sizeof(float));
  lac_session_destroy(session);
  lac_model_destroy(model);
}

static void outputs_of_open_shape_are_as_large_as_they_are(void **state) {
  (void)state;
  lac_model *model = read_model("input x 2x3\nr = Relu(x)\nz = NonZero(r)\noutput z\noutput r");
  lac_session_options o = one_thread();
  lac_session *session = create(model, &o);
  float x[6] = {1, -1, 0, 2, 3, 0}, r[6];
  int64_t z[12];
  lac_array in = {
      .dtype = LAC_DTYPE_F32, .rank = 2, .shape = {2, 3}, .data = x, .size_bytes = sizeof x};
  lac_array out[2] = {{0}, {.data = r, .size_bytes = sizeof r}};
  lac_error err = {0};
  if (lac_session_run(session, &in, 1, out, 2, &err)) fail_msg("%s", err.text);
  assert_true(out[0].rank == 2 && out[0].shape[0] == 2 && out[0].shape[1] == 3);
  assert_true(out[0].dtype == LAC_DTYPE_I64 && out[0].size_bytes == 6 * sizeof(int64_t));
  assert_int_equal(((int64_t *)out[0].data)[2], 1);
  assert_int_equal(((int64_t *)out[0].data)[5], 1);
  assert_true(r[4] == 3 && r[1] == 0);
  lac_session_release(out, 2);
  x[0] = 0;
  out[0] = (lac_array){.data = z, .size_bytes = sizeof z};
  if (lac_session_run(session, &in, 1, out, 1, &err)) fail_msg("%s", err.text);
  assert_true(out[0].shape[1] == 2 && z[0] == 1 && out[0].size_bytes == sizeof z);
  out[0] = (lac_array){.data = z, .size_bytes = 8};
  assert_int_equal(lac_session_run(session, &in, 1, out, 1, &err), LAC_BAD_ARGUMENT);
  assert_string_equal(err.text, "z: size_bytes is 8, wanted 32");
  assert_int_equal(out[0].rank, 0);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

typedef struct refusal {
  const char *text;
  lac_status status;
  lac_array in, out;
  int n_in, n_out;
} refusal;

static void arrays_that_do_not_fit_are_refused(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session_options o = one_thread();
  lac_session *session = create(model, &o);
  float values[CLASSES];
  const lac_array good = batch_of_images(1);
  lac_array rank = good, size = good, shape = good, negative = good, name = good, none = good;
  rank.rank = 9;
  size.size_bytes--;
  shape.shape[2] = 4;
  negative.shape[0] = -1;
  name.name = "nobody";
  none.data = NULL;
  const lac_array small = {.data = values, .size_bytes = sizeof values - 1}, other = {.name = "y"};
  const refusal cases[] = {
      {"image: rank 9, wanted 0 to 8", LAC_BAD_SHAPE, rank, {0}, 1, 1},
      {"image: size_bytes is 255, wanted 256 for f32 of shape [1, 1, 8, 8]",
       LAC_BAD_ARGUMENT,
       size,
       {0},
       1,
       1},
      {"image: an array of shape [1, 1, 4, 8], wanted [?, 1, 8, 8]",
       LAC_BAD_SHAPE,
       shape,
       {0},
       1,
       1},
      {"image: a size is negative, or the array is too large", LAC_BAD_SHAPE, negative, {0}, 1, 1},
      {"nobody: no input has this name", LAC_NOT_FOUND, name, {0}, 1, 1},
      {"image: data is NULL", LAC_BAD_ARGUMENT, none, {0}, 1, 1},
      {"image: this input is missing", LAC_NOT_FOUND, good, {0}, 0, 1},
      {"y: no output has this name", LAC_NOT_FOUND, good, other, 1, 1},
      {"scores: size_bytes is 39, wanted 40", LAC_BAD_ARGUMENT, good, small, 1, 1},
      {"lac_session_run: n_inputs is -1, wanted 0 or more", LAC_BAD_ARGUMENT, good, {0}, -1, 1},
      {"lac_session_run: n_outputs is -2, wanted 0 or more", LAC_BAD_ARGUMENT, good, {0}, 1, -2},
  };
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    const refusal *c = &cases[at];
    lac_array out = c->out;
    lac_error err = {0};
    const lac_status st = lac_session_run(session, &c->in, c->n_in, &out, c->n_out, &err);
    if (st != c->status || strcmp(err.text, c->text) != 0)
      fail_msg("case %zu: status %d, %s", at, (int)st, err.text);
    assert_memory_equal(&out, &c->out, sizeof out);
  }
  const lac_array two[2] = {good, good}, named[2] = {good, {.name = "image"}};
  lac_error err = {0};
  assert_int_equal(lac_session_run(session, two, 2, NULL, 0, &err), LAC_NOT_FOUND);
  assert_string_equal(err.text, "input 1 has no name, and the network has 1");
  assert_int_equal(lac_session_run(session, named, 2, NULL, 0, &err), LAC_BAD_ARGUMENT);
  assert_string_equal(err.text, "image: this input is given twice");
  expect_digits(session, 1);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

/* ---- Failures ---- */

#define refused(wanted_text, call)                                                          \
  do {                                                                                      \
    lac_error err = {0};                                                                    \
    assert_int_equal((call), LAC_BAD_ARGUMENT);                                             \
    if (strncmp(err.text, wanted_text, strlen(wanted_text)) != 0) fail_msg("%s", err.text); \
  } while (0)

static void nulls_are_named(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session *session = (lac_session *)model;
  lac_session_facts facts = {.size = sizeof facts};
  const lac_array *arrays = (const lac_array *)model, in = batch_of_images(1);
  lac_array out = {0};
  refused("lac_session_create: model is NULL", lac_session_create(NULL, NULL, &session, &err));
  assert_null(session);
  refused("lac_session_create: session is NULL", lac_session_create(model, NULL, NULL, &err));
  refused("lac_session_run: session is NULL", lac_session_run(NULL, &in, 1, &out, 1, &err));
  refused("lac_session_about: session is NULL", lac_session_about(NULL, &facts, &err));
  assert_int_equal(lac_session_create(model, NULL, &session, NULL), LAC_OK);
  refused("lac_session_about: facts is NULL", lac_session_about(session, NULL, &err));
  refused("lac_session_run: inputs is NULL, but n_inputs is 1",
          lac_session_run(session, NULL, 1, &out, 1, &err));
  refused("lac_session_run: outputs is NULL, but n_outputs is 1",
          lac_session_run(session, &in, 1, NULL, 1, &err));
  assert_int_equal(lac_session_inputs(NULL, &arrays), 0);
  assert_null(arrays);
  assert_int_equal(lac_session_outputs(NULL, NULL), 0);
  lac_session_release(NULL, 3);
  lac_session_options_init(NULL, 8);
  lac_session_destroy(NULL);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

static void options_are_checked_at_creation(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session *session = NULL;
  struct {
    lac_session_options options;
    char more[16];
  } newer;
  lac_session_options o = lac_session_options_default();
  assert_int_equal(o.size, sizeof o);
  o.size = 0;
  refused("lac_session_options.size is 0, wanted", lac_session_create(model, &o, &session, &err));
  o.size = sizeof o - 1;
  refused("lac_session_options.size is", lac_session_create(model, &o, &session, &err));
  o.size = SIZE_MAX;
  refused("lac_session_options.size is", lac_session_create(model, &o, &session, &err));
  lac_session_options_init(&newer.options, sizeof newer);
  assert_int_equal(newer.options.size, sizeof newer);
  newer.options.run.threads = 1;
  assert_int_equal(lac_session_create(model, &newer.options, &session, NULL), LAC_OK);
  lac_session_destroy(session);
  newer.more[3] = 1;
  assert_int_equal(lac_session_create(model, &newer.options, &session, NULL), LAC_UNSUPPORTED);
  assert_null(session);
  o = lac_session_options_default();
  o.n_plans = -1;
  refused("lac_session_options: n_plans is -1", lac_session_create(model, &o, &session, &err));
  o = lac_session_options_default();
  o.n_copies = -3;
  refused("lac_session_options: n_copies is -3", lac_session_create(model, &o, &session, &err));
  o = lac_session_options_default();
  o.run.threads = -1;
  refused("threads -1", lac_session_create(model, &o, &session, &err));
  o = lac_session_options_default();
  o.run.tuning = (lac_tuning)7;
  refused("tuning 7", lac_session_create(model, &o, &session, &err));
  o = lac_session_options_default();
  o.run.dtype = LAC_DTYPE_F16;
  refused("a run in f16", lac_session_create(model, &o, &session, &err));
  o = lac_session_options_default();
  o.run.engine = "quick";
  assert_int_equal(lac_session_create(model, &o, &session, NULL), LAC_NOT_FOUND);
  lac_session_facts facts = {.size = 8};
  o = one_thread();
  session = create(model, &o);
  refused("lac_session_facts.size is 8", lac_session_about(session, &facts, &err));
  lac_session_destroy(session);
  lac_model_destroy(model);
}

static lac_status create_and_run(const lac_model *model, lac_error *err) {
  lac_session *session = NULL;
  lac_session_options o = one_thread();
  lac_array in = batch_of_images(2), out = {0};
  lac_status st = lac_session_create(model, &o, &session, err);
  if (!st) st = lac_session_run(session, &in, 1, &out, 1, err);
  assert_true(!out.owned == (st != LAC_OK));
  lac_session_release(&out, 1);
  lac_session_destroy(session);
  return st;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  lac_model *model = load();
  long n = 1;
  for (;; n += 1 + n / 64) {
    lac_error err = {0};
    laci_memory_fail_from(n);
    lac_status st = create_and_run(model, &err);
    laci_memory_fail_from(0);
    if (!st) break;
    if (st != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", n, err.text);
  }
  assert_true(n > 10);
  lac_model_destroy(model);
}

static void a_session_works_after_a_failed_allocation(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session_options o = one_thread();
  lac_session *session = create(model, &o);
  bool pending = false;
  for (long n = 1; !pending; n += 1 + n / 16) {
    lac_array in = batch_of_images(3), out = {0};
    lac_error err = {0};
    laci_memory_fail_once(n);
    lac_status st = lac_session_run(session, &in, 1, &out, 1, &err);
    pending = laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    if (st && st != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", n, err.text);
    if (!st) assert_memory_equal(out.data, wanted[3], 3 * CLASSES * sizeof(float));
    lac_session_release(&out, 1);
  }
  expect_digits(session, 3);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

static void a_run_on_the_callers_buffers_allocates_nothing(void **state) {
  (void)state;
  lac_model *model = load();
  lac_session_options o = one_thread();
  lac_session *session = create(model, &o);
  for (int batch = 1; batch <= MOST_BATCH; batch++) expect_digits(session, batch);
  const size_t before = laci_memory_total_allocated();
  for (int run = 0; run < 50; run++) expect_digits(session, 1 + run % MOST_BATCH);
  assert_int_equal(laci_memory_total_allocated(), before);
  lac_session_destroy(session);
  lac_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(eight_threads_get_equal_bits_in_flat_memory),
      cmocka_unit_test(copies_of_a_plan_give_equal_bits),
      cmocka_unit_test(few_plans_and_many_shapes_end_with_few_plans),
      cmocka_unit_test(several_threads_a_run_give_right_answers),
      cmocka_unit_test(another_thread_may_inspect_the_model),
      cmocka_unit_test(a_forked_process_goes_on_alone),
      cmocka_unit_test(the_callers_threads_compute_the_same_bits),
      cmocka_unit_test(the_least_recently_used_plan_goes),
      cmocka_unit_test(threads_that_need_one_new_plan_make_it_once),
      cmocka_unit_test(max_memory_bounds_all_plans_together),
      cmocka_unit_test(a_failed_plan_is_not_kept),
      cmocka_unit_test(a_watcher_sees_the_steps_of_runs),
      cmocka_unit_test(shapes_are_planned_without_a_run),
      cmocka_unit_test(says_what_the_network_takes_and_gives),
      cmocka_unit_test(arrays_are_found_by_name_and_by_index),
      cmocka_unit_test(arrays_have_the_declared_type_or_the_plain_one),
      cmocka_unit_test(any_alignment_will_do),
      cmocka_unit_test(outputs_of_open_shape_are_as_large_as_they_are),
      cmocka_unit_test(arrays_that_do_not_fit_are_refused),
      cmocka_unit_test(nulls_are_named),
      cmocka_unit_test(options_are_checked_at_creation),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(a_session_works_after_a_failed_allocation),
      cmocka_unit_test(a_run_on_the_callers_buffers_allocates_nothing),
  };
  return cmocka_run_group_tests(tests, compute_wanted, NULL);
}
