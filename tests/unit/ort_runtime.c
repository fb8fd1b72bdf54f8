/* SPDX-License-Identifier: Apache-2.0
 * ONNX Runtime's provider in the hands of a host that fails, forgets and offers nothing: every call
 * of ours ends in a status with our text, what was lent is given back, and nothing leaks (which the
 * address sanitizer sees). The provider's files are linked here, and every allocation may be the
 * one that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/ort_runtime.h"

enum { IMAGES = 2, N = IMAGES * CHANNELS * SIDE * SIDE, TRIES = 300 };

ort_status *CreateEpFactories(const char *registered, const ort_base *base,
                              const ort_logger *logger, ort_factory **made, size_t most, size_t *n);
ort_status *ReleaseEpFactory(ort_factory *self);

/* ---- Allocations that fail ---- */

static struct { long n, fail_at; /* 0: none */ } memory;

void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t n);
char *__real_strdup(const char *text);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t n);
char *__wrap_strdup(const char *text);

static bool is_out(void) {
  return __atomic_add_fetch(&memory.n, 1, __ATOMIC_RELAXED) == memory.fail_at;
}

void *__wrap_malloc(size_t n) { return is_out() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return is_out() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *old, size_t n) { return is_out() ? NULL : __real_realloc(old, n); }
char *__wrap_strdup(const char *text) { return is_out() ? NULL : __real_strdup(text); }

/* ---- A session from its beginning to its end ---- */

static const ort_device processor = {LAC_ORT_CPU};
static const ort_logger logger;
static const ort_session_options everything = {
    {"ep.lacunaexecutionprovider.all", "ep.lacunaexecutionprovider.threads"}, {"1", "1"}};

static float image[N], answer[N];

/** What happened; text: of the failure, empty: none. */
typedef struct life {
  ort_factory *factory;
  ort_ep *ep;
  ort_support support;
  ort_compute *compute;
  ort_profiler *profiler;
  ort_events events;
  float found[N];
  bool ran;
  char text[600];
} life;

/** Keeps the text of a failure, and releases it. */
static bool failed(life *l, ort_status *status) {
  if (!status) return false;
  (void)snprintf(l->text, sizeof l->text, "%s", status->text);
  assert_memory_equal(l->text, "Lacuna: ", 8);
  assert_true(strlen(l->text) > 10);
  host_release_status(status);
  return true;
}

static bool begin(life *l, const ort_session_options *options) {
  const ort_device *devices[] = {&processor};
  ort_ep_device *found[2] = {NULL, NULL};
  size_t n = 0;
  *l = (life){0};
  if (failed(l, CreateEpFactories("Lacuna", &host, &logger, &l->factory, 1, &n))) return false;
  assert_int_equal(n, 1);
  if (failed(l, l->factory->get_supported_devices(l->factory, devices, 1, found, 2, &n)))
    return false;
  assert_int_equal(n, 1);
  host_release_device(found[0]);
  return !failed(l, l->factory->create_ep(l->factory, devices, NULL, 1, options, &logger, &l->ep));
}

static void run_once(life *l) {
  const int64_t sizes[] = {IMAGES, CHANNELS, SIDE, SIDE};
  bool yes = true;
  void *state = NULL;
  const ort_value u = {{OF_FLOAT, 4, sizes, no_symbols}, image};
  const ort_value c = {{9, 0, sizes, no_symbols}, &yes};
  ort_kernel kernel = {.inputs = {&u, &c}};
  if (failed(l, l->compute->create_state(l->compute, NULL, &state))) return;
  if (!failed(l, l->compute->run(l->compute, state, &kernel))) {
    memcpy(l->found, kernel.output.data, sizeof l->found);
    l->ran = true;
  }
  l->compute->release_state(l->compute, state);
  free(kernel.output.data);
}

static void end(life *l) {
  if (l->profiler) {
    (void)failed(l, l->profiler->end(l->profiler, &l->events));
    l->profiler->release(l->profiler);
  }
  if (l->compute) l->ep->release_computes(l->ep, &l->compute, 1);
  if (l->ep) l->factory->release_ep(l->factory, l->ep);
  if (l->factory) assert_null(ReleaseEpFactory(l->factory));
  assert_int_equal(runtime.n_held, 0);
}

static void live(life *l, const ort_session_options *options) {
  const ort_graph *graphs[] = {&network};
  const ort_node *nodes[] = {&fused};
  if (begin(l, options) && !failed(l, l->ep->create_profiler(l->ep, &l->profiler)) &&
      !failed(l, l->profiler->start(l->profiler, 5000000)) &&
      !failed(l, l->ep->get_capability(l->ep, &network, &l->support)) &&
      l->support.n == network.n_nodes &&
      !failed(l, l->ep->compile(l->ep, graphs, nodes, 1, &l->compute, NULL)))
    run_once(l);
  end(l);
}

/* ---- The answer, as the definition has it ---- */

static void convolve(const float *x, const float *w, float *y) {
  for (int at = 0; at < N; at++) {
    int column = at % SIDE, row = at / SIDE % SIDE, out = at / SIDE / SIDE % CHANNELS;
    const float *of = x + at / (CHANNELS * SIDE * SIDE) * CHANNELS * SIDE * SIDE;
    double sum_of = 0;
    for (int k = 0; k < CHANNELS * 9; k++) {
      int r = row + k % 9 / 3 - 1, c = column + k % 3 - 1;
      if (r >= 0 && r < SIDE && c >= 0 && c < SIDE)
        sum_of += (double)w[out * CHANNELS * 9 + k] * of[k / 9 * SIDE * SIDE + r * SIDE + c];
    }
    y[at] = (float)sum_of;
  }
}

static int set_up(void **state) {
  static float between[N];
  (void)state;
  start_runtime();
  for (int k = 0; k < N; k++) image[k] = (float)(k * 37 % 101) / 101 - 0.5f;
  convolve(image, weights[0], between);
  for (int k = 0; k < N; k++) between[k] = between[k] > 0 ? between[k] : 0;
  convolve(between, weights[1], answer);
  for (int k = 0; k < N; k++) answer[k] += small_value[0] + fill_value[0];
  return 0;
}

static void assert_right(const life *l) {
  for (int k = 0; k < N; k++)
    if (!(l->found[k] - answer[k] < 1e-4f && answer[k] - l->found[k] < 1e-4f))
      fail_msg("element %d: %g, wanted %g", k, (double)l->found[k], (double)answer[k]);
}

static long stride_of(long n) { return getenv("LAC_ORT_THOROUGH") || n < TRIES ? 1 : n / TRIES; }

/* ---- Tests ---- */

static void the_network_runs_whole(void **state) {
  static life l;
  (void)state;
  for (int k = 0; k < 3; k++) {
    live(&l, &everything);
    assert_string_equal(l.text, "");
    assert_int_equal(l.support.n_parts, 1);
    assert_true(l.ran);
    assert_right(&l);
    assert_true(l.events.n >= 3 && l.events.last_us >= 5000 && l.events.last_us < 60000000);
  }
}

static void profiles_begin_and_end_as_they_like(void **state) {
  static life l;
  ort_profiler *other = NULL;
  ort_events events = {0};
  const ort_graph *graphs[] = {&network};
  const ort_node *nodes[] = {&fused};
  (void)state;
  assert_true(begin(&l, &everything));
  assert_false(failed(&l, l.ep->compile(l.ep, graphs, nodes, 1, &l.compute, NULL)));
  assert_true(failed(&l, l.ep->create_profiler(l.ep, NULL)));
  assert_false(failed(&l, l.ep->create_profiler(l.ep, &l.profiler)));
  assert_false(failed(&l, l.ep->create_profiler(l.ep, &other)));
  run_once(&l); /* none has been started */
  assert_false(failed(&l, other->end(other, &events)));
  assert_int_equal(events.n, 0);
  assert_false(failed(&l, other->start(other, 0)));
  run_once(&l);
  assert_false(failed(&l, l.profiler->start(l.profiler, 0)));
  run_once(&l);
  assert_true(failed(&l, other->end(other, NULL)));
  assert_false(failed(&l, other->end(other, &events)));
  assert_false(failed(&l, l.profiler->end(l.profiler, &l.events)));
  assert_int_equal(events.n, 2 * l.events.n);
  run_once(&l);
  assert_false(failed(&l, l.profiler->end(l.profiler, &events)));
  assert_int_equal(events.n, 2 * l.events.n);
  assert_false(failed(&l, other->start(other, 0)));
  run_once(&l); /* its events are dropped: it is released, after the session's end */
  l.profiler->release(l.profiler);
  l.profiler = NULL;
  l.ep->release_computes(l.ep, &l.compute, 1);
  l.factory->release_ep(l.factory, l.ep);
  l.compute = NULL;
  l.ep = NULL;
  assert_false(failed(&l, other->start(other, 0)));
  other->release(other);
  end(&l);
}

static void every_call_may_fail(void **state) {
  static life l;
  int n_texts = 0;
  (void)state;
  runtime.n_calls = 0;
  live(&l, &everything);
  long n = runtime.n_calls, step = stride_of(n);
  assert_true(n > 300);
  for (long at = 1; at <= n; at += step) {
    runtime.n_calls = 0;
    runtime.fail_at = at;
    live(&l, &everything);
    if (l.ran) assert_right(&l);
    if (*l.text && !strstr(l.text, "a fault of the test")) fail_msg("call %ld: %s", at, l.text);
    n_texts += *l.text != 0;
  }
  runtime.fail_at = 0;
  assert_true(n_texts > 20);
}

static void memory_may_end(void **state) {
  static life l;
  int n_texts = 0;
  (void)state;
  memory.n = 0;
  live(&l, &everything);
  long n = memory.n, step = stride_of(n);
  assert_true(n > 100);
  for (long at = 1; at <= n; at += step) {
    memory.n = 0;
    memory.fail_at = at;
    live(&l, &everything);
    memory.fail_at = 0;
    if (l.ran) assert_right(&l);
    n_texts += *l.text != 0;
  }
  assert_true(n_texts > 20);
}

static void functions_may_be_missing(void **state) {
  static life l;
  (void)state;
  for (int place = 1; place < 390; place++) {
    ort_slot kept = runtime.table[place];
    if (!kept) continue;
    runtime.table[place] = NULL;
    live(&l, &everything);
    runtime.table[place] = kept;
    assert_non_null(strstr(l.text, "ONNX Runtime's table has no function"));
    assert_null(l.factory);
  }
  for (int place = 0; place < 80; place++) {
    ort_slot kept = runtime.for_providers[place];
    if (!kept) continue;
    runtime.for_providers[place] = NULL;
    live(&l, &everything);
    runtime.for_providers[place] = kept;
    assert_non_null(strstr(l.text, "ONNX Runtime's table has no function"));
  }
}

static const ort_slot *no_api(uint32_t version) { return version == 1 ? runtime.table : NULL; }
static const ort_slot *nothing(uint32_t version) {
  (void)version;
  return NULL;
}
static const char *no_text(void) { return NULL; }
static const char *version_2(void) { return "2.0.0"; }
static const char *no_number(void) { return "1.x"; }

static void other_versions_are_refused_or_taken(void **state) {
  static life l;
  const ort_base old = {no_api, get_runtime_version}, none = {nothing, NULL}, empty = {NULL, NULL};
  const ort_base *const refused[] = {&none, &empty, NULL};
  ort_factory *made = NULL;
  size_t n = 7;
  (void)state;
  assert_true(failed(&l, CreateEpFactories("", &old, NULL, &made, 1, &n)));
  assert_non_null(strstr(l.text, "no API of version 23"));
  for (int k = 0; k < 3; k++) { /* where no text can be made, there is no factory either */
    assert_null(CreateEpFactories("", refused[k], NULL, &made, 1, &n));
    assert_int_equal(n, 0);
    assert_null(made);
  }
  const char *(*const versions[])(void) = {NULL, no_text, version_2, no_number};
  for (int k = 0; k < 4; k++) {
    const ort_base other = {get_api, versions[k]};
    assert_false(failed(&l, CreateEpFactories("", &other, NULL, &made, 1, &n)));
    assert_int_equal(n, 1);
  }
}

static void nothing_is_an_error(void **state) {
  static life l;
  const ort_device *devices[] = {&processor}, *no_device[] = {NULL};
  const ort_graph *graphs[] = {&network}, *no_graph[] = {NULL};
  const ort_node *nodes[] = {&fused}, *no_node[] = {NULL};
  ort_ep_device *found[1];
  ort_compute *compute = NULL;
  ort_factory *made = NULL;
  ort_ep *ep = NULL;
  size_t n = 0;
  (void)state;
  assert_true(failed(&l, CreateEpFactories("", &host, NULL, NULL, 1, &n)));
  assert_true(failed(&l, CreateEpFactories("", &host, NULL, &made, 0, &n)));
  assert_true(failed(&l, CreateEpFactories(NULL, &host, NULL, &made, 1, NULL)));
  assert_true(begin(&l, &everything));
  ort_factory *f = l.factory;
  assert_true(failed(&l, f->get_supported_devices(f, NULL, 1, found, 1, &n)));
  assert_true(failed(&l, f->get_supported_devices(f, no_device, 1, found, 1, &n)));
  assert_true(failed(&l, f->get_supported_devices(f, devices, 1, NULL, 1, &n)));
  assert_true(failed(&l, f->get_supported_devices(f, devices, 1, found, 1, NULL)));
  assert_false(failed(&l, f->get_supported_devices(f, NULL, 0, NULL, 0, &n)));
  assert_true(failed(&l, f->create_ep(f, devices, NULL, 1, NULL, &logger, &ep)));
  assert_true(failed(&l, f->create_ep(f, devices, NULL, 1, &everything, &logger, NULL)));
  assert_false(failed(&l, f->create_ep(f, NULL, NULL, 0, &everything, NULL, &ep)));
  assert_false(failed(&l, ep->get_capability(ep, &network, &l.support)));
  f->release_ep(f, ep);
  f->release_ep(f, NULL);
  assert_true(failed(&l, f->create_allocator(f, NULL, NULL, NULL)));
  assert_true(failed(&l, f->create_data_transfer(f, NULL)));
  assert_true(failed(&l, f->create_stream(f, NULL, NULL, NULL)));
  f->release_allocator(f, NULL);
  ep = l.ep;
  assert_true(failed(&l, ep->get_capability(ep, NULL, &l.support)));
  assert_true(failed(&l, ep->get_capability(ep, &network, NULL)));
  assert_true(failed(&l, ep->compile(ep, NULL, nodes, 1, &compute, NULL)));
  assert_true(failed(&l, ep->compile(ep, graphs, NULL, 1, &compute, NULL)));
  assert_true(failed(&l, ep->compile(ep, graphs, nodes, 1, NULL, NULL)));
  assert_true(failed(&l, ep->compile(ep, no_graph, nodes, 1, &compute, NULL)));
  assert_true(failed(&l, ep->compile(ep, graphs, no_node, 1, &compute, NULL)));
  assert_null(compute);
  assert_false(failed(&l, ep->compile(ep, NULL, NULL, 0, NULL, NULL)));
  ep->release_computes(ep, NULL, 1);
  ep->release_computes(ep, &compute, 1);
  assert_false(failed(&l, ep->compile(ep, graphs, nodes, 1, &l.compute, NULL)));
  assert_true(failed(&l, l.compute->run(l.compute, NULL, NULL)));
  assert_true(failed(&l, l.compute->create_state(l.compute, NULL, NULL)));
  l.compute->release_state(l.compute, NULL);
  run_once(&l);
  assert_right(&l);
  end(&l);
  assert_null(ReleaseEpFactory(NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(the_network_runs_whole, set_up),
      cmocka_unit_test_setup(nothing_is_an_error, set_up),
      cmocka_unit_test_setup(profiles_begin_and_end_as_they_like, set_up),
      cmocka_unit_test_setup(every_call_may_fail, set_up),
      cmocka_unit_test_setup(memory_may_end, set_up),
      cmocka_unit_test_setup(functions_may_be_missing, set_up),
      cmocka_unit_test_setup(other_versions_are_refused_or_taken, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
