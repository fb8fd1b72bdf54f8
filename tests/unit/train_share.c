/* SPDX-License-Identifier: Apache-2.0
 * train: one training on several processes, which are threads of this program: the same bits on
 * all, those of one process with as many batches a step, and one ending for all. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "arch/arch.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "graph/graph.h"
#include "graph/training_graph.h"
#include "lacuna/context.h"
#include "support/transport.h"
#include "train/loop.h"
#include "train/optimizer.h"
#include "train/data_parallel.h"
#include "train/trainer.h"
#include "unit/data_folder.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits"
enum { BATCH = 8, CLASSES = 10, STEPS = 6, NOBODY = -1 };

/** What a process does, and what becomes of it. */
typedef struct member {
  pthread_t thread;
  lac_context *context;
  laci_comm *comm;
  laci_graph *model;
  laci_trainer *trainer;
  laci_dataset *set;
  laci_data_parallel_options share;
  laci_loop_options options;
  laci_loop_result result;
  lac_status status;
  lac_error err;
  double losses[STEPS + 1]; /* of each step */
  uint8_t *masks;
  int64_t interrupt_at, spoil_at, fail_at, hang_at; /* after this step; 0: never */
} member;

/** A run: what all its members have in common. */
typedef struct run_options {
  int size, accumulate;
  laci_wire wire;
  size_t bucket;
  const char *folder;
  bool recover, masked, trace;
  int64_t paranoid;
  int odd_one; /* the member that the next are for */
  int64_t interrupt_at, spoil_at, fail_at;
  double timeout;  /* of waiting; 0: 60 s */
  int64_t hang_at; /* where process 1 does nothing for a while */
  long fails_once; /* the so-manieth allocation of all; 0: none */
} run_options;

static atomic_int slow_syncs; /* so many writes that follow take their time */

/* In the place of the C library's: every checkpoint is synced. */
int fsync(int fd) {
  const struct timespec slow = {8, 0};
  if (atomic_fetch_sub(&slow_syncs, 1) > 0) (void)nanosleep(&slow, NULL);
  return fdatasync(fd);
}

static void make_masks(member *m) {
  laci_optimizer *optimizer = laci_trainer_optimizer(m->trainer);
  const laci_parameter *p = laci_trainer_parameters(m->trainer);
  size_t size = (size_t)laci_optimizer_count_floats(optimizer);
  m->masks = laci_alloc(size, 1);
  assert_non_null(m->masks);
  memset(m->masks, 1, size);
  for (int64_t at = 0; at < p[0].count; at += 2) m->masks[p[0].offset + at] = 0;
  laci_optimizer_set_mask(optimizer, 0, m->masks + p[0].offset, laci_trainer_weights(m->trainer));
  m->options.masks = m->masks;
}

static void prepare(member *m, const run_options *o, int rank) {
  laci_arch_options arch = {.name = "digits", .seed = 3 + (uint64_t)rank}; /* 0's count */
  laci_dataset_options part = {.part = LACI_PART_TRAIN};
  laci_trainer_options t = {.graph = {.batch = BATCH},
                            .optimizer = laci_optimizer_options_default(LACI_OPTIMIZER_SGD),
                            .run.threads = 1,
                            .ema = 0.5};
  *m = (member){0};
  assert_int_equal(lac_context_create(&m->context, NULL), LAC_OK);
  assert_int_equal(laci_arch_build(&arch, &m->model, NULL), LAC_OK);
  assert_int_equal(laci_trainer_create(m->model, &t, &m->trainer, NULL), LAC_OK);
  assert_int_equal(laci_dataset_open(DIGITS, &part, &m->set, NULL), LAC_OK);
  m->share = (laci_data_parallel_options){.wire = o->wire, .bucket = o->bucket};
  m->options = (laci_loop_options){
      .feed = {.preprocessing = laci_dataset_preprocessing(m->set),
               .batch = BATCH,
               .n_classes = CLASSES,
               .seed = 5,
               .shuffle = true,
               .augmented = true,
               .augment = laci_dataset_augment(m->set)},
      .accumulate = o->accumulate,
      .schedule = {.kind = LACI_SCHEDULE_COSINE, .rate = 0.05, .steps = STEPS, .power = 1},
      .steps = STEPS,
      .steps_per_epoch = 3,
      .checkpoint_every = 3,
      .steps_per_loop = 1,
      .stop_threshold = -1,
      .keep = 3,
      .folder = o->folder,
      .recover = o->recover,
      .paranoid = o->paranoid,
      .trace = o->trace,
      .share = &m->share,
      .about = o->size == 3 ? "\"processes\": 3, \"a\": 1" : "\"processes\": 2, \"a\": 1"};
  if (o->masked) make_masks(m);
  if (rank == 1) m->hang_at = o->hang_at;
  if (rank != o->odd_one) return;
  m->interrupt_at = o->interrupt_at;
  m->spoil_at = o->spoil_at;
  m->fail_at = o->fail_at;
}

static void finish(member *m) {
  laci_trainer_destroy(m->trainer);
  laci_graph_destroy(m->model);
  laci_dataset_close(m->set);
  laci_free(m->masks);
  lac_context_destroy(m->context);
}

static lac_status on_event(void *context, const laci_loop_event *event, lac_error *err) {
  member *m = context;
  if (event->kind != LACI_LOOP_STEP) return LAC_OK;
  m->losses[event->step] = event->loss;
  const struct timespec hanging = {8, 0};
  if (event->step == m->hang_at) (void)nanosleep(&hanging, NULL);
  if (event->step == m->interrupt_at) lac_context_interrupt(m->context, true);
  if (event->step == m->spoil_at) laci_trainer_weights(m->trainer)[0] += 1;
  if (event->step == m->fail_at) return laci_fail(err, LAC_IO, "the log cannot be written");
  return LAC_OK;
}

static void *work(void *context) {
  member *m = context;
  laci_loop_hooks hooks = {.on_event = on_event, .context = m};
  lac_context *before = laci_context_enter(m->context);
  m->share.comm = m->comm;
  m->status = laci_loop_run(m->trainer, m->set, &m->options, &hooks, &m->result, &m->err);
  (void)laci_context_enter(before);
  laci_comm_close(m->comm, m->status);
  m->comm = NULL;
  return NULL;
}

typedef struct opening {
  pthread_t thread;
  const lac_transport *transport;
  laci_comm_options options;
  laci_comm *comm;
} opening;

static void *open_one(void *context) {
  opening *o = context;
  if (laci_comm_open_transport(o->transport, &o->options, &o->comm, NULL)) abort();
  return NULL;
}

/** All members to their end; finish() is the caller's. */
static void run(const run_options *o, member *members) {
  local_world *world = local_world_create(o->size);
  opening doors[MOST_MEMBERS];
  for (int k = 0; k < o->size; k++) {
    prepare(&members[k], o, k);
    doors[k] = (opening){.transport = &world->members[k].face,
                         .options = {.timeout = o->timeout > 0 ? o->timeout : 60}};
    assert_int_equal(pthread_create(&doors[k].thread, NULL, open_one, &doors[k]), 0);
  }
  for (int k = 0; k < o->size; k++) {
    pthread_join(doors[k].thread, NULL);
    members[k].comm = doors[k].comm;
  }
  laci_memory_fail_once(o->fails_once);
  for (int k = 0; k < o->size; k++)
    assert_int_equal(pthread_create(&members[k].thread, NULL, work, &members[k]), 0);
  for (int k = 0; k < o->size; k++) pthread_join(members[k].thread, NULL);
  laci_memory_fail_once(0);
  local_world_destroy(world);
}

static void finish_all(const run_options *o, member *members) {
  for (int k = 0; k < o->size; k++) finish(&members[k]);
}

/** One process that takes as many batches a step as all of them. */
static void run_alone(const run_options *o, member *m) {
  run_options alone = *o;
  alone.accumulate *= o->size;
  prepare(m, &alone, 0);
  work(m);
}

static void all_succeed(const run_options *o, const member *members) {
  for (int k = 0; k < o->size; k++) {
    if (members[k].status) fail_msg("process %d: %s", k, members[k].err.text);
  }
}

static void assert_same_weights(const member *a, const member *b) {
  int64_t n = laci_optimizer_count_floats(laci_trainer_optimizer(a->trainer)), n_statistics;
  assert_memory_equal(laci_trainer_weights(a->trainer), laci_trainer_weights(b->trainer),
                      (size_t)n * sizeof(float));
  assert_memory_equal(laci_optimizer_slot(laci_trainer_optimizer(a->trainer), 0),
                      laci_optimizer_slot(laci_trainer_optimizer(b->trainer), 0),
                      (size_t)n * sizeof(float));
  (void)laci_trainer_statistics(a->trainer, &n_statistics);
}

static void assert_same_all(const run_options *o, const member *members) {
  int64_t n;
  const float *first = laci_trainer_statistics(members[0].trainer, &n);
  for (int k = 1; k < o->size; k++) {
    assert_same_weights(&members[0], &members[k]);
    assert_memory_equal(first, laci_trainer_statistics(members[k].trainer, &n),
                        (size_t)n * sizeof(float));
  }
}

/* ---- The same numbers ---- */

static void several_processes_are_one_with_as_many_batches(void **state) {
  (void)state;
  static const struct {
    int size, accumulate;
    size_t bucket;
    bool masked;
  } rows[] = {{2, 1, 1 << 20, false},
              {2, 1, 1, false}, /* every parameter is a bucket */
              {3, 1, 2000, true},
              {2, 2, 3000, false},
              {2, 3, 5000, true}};
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
    member members[MOST_MEMBERS], alone;
    run_options o = {.size = rows[r].size,
                     .accumulate = rows[r].accumulate,
                     .bucket = rows[r].bucket,
                     .masked = rows[r].masked,
                     .odd_one = NOBODY};
    run(&o, members);
    all_succeed(&o, members);
    assert_same_all(&o, members);
    run_alone(&o, &alone);
    assert_int_equal(alone.status, LAC_OK);
    for (int s = 1; s <= STEPS; s++) {
      for (int k = 0; k < o.size; k++)
        assert_memory_equal(&members[k].losses[s], &members[0].losses[s], sizeof(double));
      double wanted = alone.losses[s];
      /* sums in another order round differently, and steps carry that far */
      assert_true(fabs(members[0].losses[s] - wanted) <= (s == 1 ? 1e-6 : 1e-2) * wanted);
      if (o.size == 2 && o.accumulate == 1) assert_true(members[0].losses[s] == wanted);
    }
    if (o.size == 2 && o.accumulate == 1) assert_same_weights(&members[0], &alone);
    assert_true(members[0].result.comm_seconds > 0);
    finish(&alone);
    finish_all(&o, members);
  }
}

static void half_the_bytes_are_near(void **state) {
  (void)state;
  member exact[MOST_MEMBERS], rounded[MOST_MEMBERS];
  run_options o = {.size = 2, .accumulate = 1, .bucket = 4096, .odd_one = NOBODY}, bf16 = o;
  bf16.wire = LACI_WIRE_BF16;
  run(&o, exact);
  run(&bf16, rounded);
  all_succeed(&bf16, rounded);
  assert_same_all(&bf16, rounded);
  assert_true(exact[0].losses[1] == rounded[0].losses[1]); /* before the first sum */
  assert_true(exact[0].losses[STEPS] != rounded[0].losses[STEPS]);
  for (int s = 1; s <= STEPS; s++)
    assert_true(fabs(exact[0].losses[s] - rounded[0].losses[s]) < 0.02 * exact[0].losses[s]);
  finish_all(&o, exact);
  finish_all(&bf16, rounded);
}

/* ---- One ending ---- */

static void an_interrupt_of_one_ends_all_and_the_run_goes_on(void **state) {
  (void)state;
  for (int who = 0; who < 2; who++) {
    member whole[MOST_MEMBERS], cut[MOST_MEMBERS], rest[MOST_MEMBERS];
    folder whole_folder, cut_folder;
    whole_folder = make_folder();
    cut_folder = make_folder();
    run_options o = {.size = 2, .accumulate = 1, .bucket = 4096, .odd_one = NOBODY, .masked = true};
    o.folder = whole_folder.path;
    run(&o, whole);
    all_succeed(&o, whole);
    o.folder = cut_folder.path;
    o.odd_one = who;
    o.interrupt_at = 4;
    run(&o, cut);
    for (int k = 0; k < 2; k++) {
      assert_int_equal(cut[k].status, LAC_INTERRUPTED);
      assert_string_equal(cut[k].err.text,
                          "interrupted after step 4; the checkpoint of step 4 is kept");
    }
    o.recover = true;
    o.interrupt_at = 0;
    run(&o, rest);
    all_succeed(&o, rest);
    assert_int_equal(rest[1].result.first_step, 4);
    assert_same_all(&o, rest);
    assert_same_weights(&whole[0], &rest[0]);
    finish_all(&o, whole);
    finish_all(&o, cut);
    finish_all(&o, rest);
    remove_folder(&whole_folder);
    remove_folder(&cut_folder);
  }
}

static void another_number_of_processes_is_refused(void **state) {
  (void)state;
  member first[MOST_MEMBERS], other[MOST_MEMBERS];
  folder f;
  f = make_folder();
  run_options o = {.size = 2, .accumulate = 1, .bucket = 4096, .odd_one = NOBODY};
  o.folder = f.path;
  run(&o, first);
  all_succeed(&o, first);
  run_options three = o;
  three.size = 3;
  three.recover = true;
  run(&three, other);
  for (int k = 0; k < 3; k++) {
    assert_int_equal(other[k].status, LAC_BAD_ARGUMENT);
    assert_non_null(strstr(other[k].err.text, "made by 2 processes, but this run has 3"));
  }
  finish_all(&o, first);
  finish_all(&three, other);
  remove_folder(&f);
}

static void a_difference_is_named(void **state) {
  (void)state;
  member members[MOST_MEMBERS];
  char wanted[256];
  run_options o = {
      .size = 3, .accumulate = 1, .bucket = 4096, .paranoid = 2, .odd_one = 2, .spoil_at = 3};
  run(&o, members);
  (void)snprintf(wanted, sizeof wanted,
                 "process 2: %s: its weights differ from process 0's after step 4",
                 laci_trainer_parameters(members[0].trainer)[0].name);
  for (int k = 0; k < 3; k++) {
    assert_int_equal(members[k].status, LAC_BAD_VALUE);
    assert_string_equal(members[k].err.text, wanted);
  }
  finish_all(&o, members);
}

static void all_end_where_one_cannot_write_its_log(void **state) {
  (void)state;
  member members[MOST_MEMBERS];
  folder f;
  f = make_folder();
  run_options o = {.size = 2, .accumulate = 1, .bucket = 4096, .odd_one = 1, .fail_at = 2};
  o.folder = f.path;
  run(&o, members);
  assert_int_equal(members[1].status, LAC_IO);
  assert_int_equal(members[0].status, LAC_IO);
  assert_string_equal(members[0].err.text,
                      "process 1: the log cannot be written; the checkpoint of step 2 is kept");
  finish_all(&o, members);
  remove_folder(&f);
}

static void who_gives_up_does_not_wait_for_one_that_hangs(void **state) {
  (void)state;
  member members[MOST_MEMBERS];
  run_options o = {.size = 2, .accumulate = 1, .bucket = 4096, .interrupt_at = 2, .hang_at = 2};
  o.timeout = 3;
  run(&o, members);
  assert_int_equal(members[0].status, LAC_PEER);
  assert_string_equal(members[0].err.text, "process 1 has not answered for 3 s");
  finish_all(&o, members);
}

/* Nobody waits for one that has no memory for what all meet in. */
static void lack_of_memory_ends_all_alike(void **state) {
  (void)state;
  int n_failed = 0;
  for (long n = 1; n <= 30; n++) {
    member members[MOST_MEMBERS];
    run_options o = {
        .size = 2, .accumulate = 1, .bucket = 1 << 20, .odd_one = NOBODY, .fails_once = n};
    run(&o, members);
    for (int k = 0; k < 2; k++) {
      if (members[k].status == LAC_OK || members[k].status == LAC_NO_MEMORY) continue;
      fail_msg("allocation %ld, process %d: %s", n, k, members[k].err.text);
    }
    assert_int_equal(members[0].status, members[1].status);
    n_failed += members[0].status == LAC_NO_MEMORY;
    finish_all(&o, members);
  }
  assert_true(n_failed > 10);
}

/* 8 s, and waiting fails after 3 s, at process 1 after 5. */
static void a_slow_disk_is_waited_for(void **state) {
  (void)state;
  member members[MOST_MEMBERS];
  folder f;
  f = make_folder();
  run_options o = {.size = 2, .accumulate = 1, .bucket = 4096, .odd_one = NOBODY, .timeout = 3};
  o.folder = f.path;
  atomic_store(&slow_syncs, 1);
  run(&o, members);
  assert_true(atomic_load(&slow_syncs) <= 0);
  all_succeed(&o, members);
  finish_all(&o, members);
  remove_folder(&f);
}

/* ---- The trace ---- */

/* Steps, plan and sums of every process, each inside of a step's time. */
static void check_trace(const char *text, int size) {
  json_t *root = json_loads(text, 0, NULL), *event;
  const json_t *events = json_object_get(root, "traceEvents");
  double begin[MOST_MEMBERS] = {0}, end[MOST_MEMBERS] = {0};
  int n_steps[MOST_MEMBERS] = {0}, n_plan[MOST_MEMBERS] = {0}, n_sums[MOST_MEMBERS] = {0};
  size_t at;
  assert_true(json_array_size(events) > 0);
  json_array_foreach(events, at, event) {
    json_int_t process = json_integer_value(json_object_get(event, "pid"));
    json_int_t row = json_integer_value(json_object_get(event, "tid"));
    if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0) continue;
    double from = json_number_value(json_object_get(event, "ts"));
    double to = from + json_number_value(json_object_get(event, "dur"));
    assert_in_range(process, 0, size - 1);
    assert_true(from >= -1 && from <= to); /* microseconds */
    if (row == 0) {
      begin[process] = from;
      end[process] = to;
      n_steps[process]++;
      continue;
    }
    assert_true(from >= begin[process] - 1 && to <= end[process] + 1);
    n_plan[process] += row == 1;
    n_sums[process] += row > 1;
  }
  for (int k = 0; k < size; k++) {
    assert_int_equal(n_steps[k], 3);
    assert_true(n_plan[k] > 3 * 10 && n_plan[k] == n_plan[0]);
    assert_true(size == 1 ? n_sums[k] == 0 : n_sums[k] >= 3 && n_sums[k] == n_sums[0]);
  }
  json_decref(root);
}

static void the_last_steps_can_be_looked_at(void **state) {
  (void)state;
  member members[MOST_MEMBERS], alone;
  run_options o = {.size = 2, .accumulate = 1, .bucket = 4096, .odd_one = NOBODY, .trace = true};
  run(&o, members);
  all_succeed(&o, members);
  assert_null(members[1].result.trace);
  check_trace(members[0].result.trace, 2);
  run_alone(&o, &alone);
  check_trace(alone.result.trace, 1);
  laci_free(members[0].result.trace);
  laci_free(alone.result.trace);
  finish(&alone);
  finish_all(&o, members);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(several_processes_are_one_with_as_many_batches),
      cmocka_unit_test(half_the_bytes_are_near),
      cmocka_unit_test(an_interrupt_of_one_ends_all_and_the_run_goes_on),
      cmocka_unit_test(another_number_of_processes_is_refused),
      cmocka_unit_test(a_difference_is_named),
      cmocka_unit_test(all_end_where_one_cannot_write_its_log),
      cmocka_unit_test(who_gives_up_does_not_wait_for_one_that_hangs),
      cmocka_unit_test(lack_of_memory_ends_all_alike),
      cmocka_unit_test(a_slow_disk_is_waited_for),
      cmocka_unit_test(the_last_steps_can_be_looked_at),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
