/* SPDX-License-Identifier: Apache-2.0
 * A run that is watched: each step is told, with its times; a failure of who watches ends the run;
 * and an output is final after the step that the engine names, to the byte, whatever the network,
 * the type, the zeros and the engine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "graph/training_graph.h"
#include "support/light.h"
#include "support/programs.h"

enum { GARBAGE = 0xA5, CLASSES = 10 };

/* ---- A training step of a network ---- */

typedef struct network {
  const char *name;
  int size;
  int64_t batch;
} network;

typedef struct fixture {
  laci_graph *model;
  laci_training_graph *g;
  laci_engine_weight *known; /* [n_known] masks of 2:4 */
  int n_known;
  uint8_t **masks; /* [n_params]; NULL: none */
} fixture;

/** Two of every four input channels are kept. */
static uint8_t *mask_of(const laci_training_param *p, int at) {
  const bool fits = p->shape.rank == 4 && p->shape.dims[1] % 4 == 0;
  if (!fits) return NULL;
  const int64_t taps = p->shape.dims[2] * p->shape.dims[3];
  uint8_t *mask = laci_alloc((size_t)p->count, 1);
  for (int64_t block = 0; block < p->count / 4; block++) {
    const int64_t first = block / taps * 4 * taps + block % taps;
    const int64_t one = (int64_t)laci_rng_integer_below(7, (uint64_t)at, (uint64_t)block, 4);
    mask[first + one * taps] = 1;
    mask[first + (one + 1 + block % 3) % 4 * taps] = 1;
  }
  return mask;
}

static void set_up(fixture *f, const network *n) {
  const laci_arch_options arch = {
      .name = n->name, .n_classes = CLASSES, .image_size = n->size, .seed = 3};
  const laci_training_options training = {.batch = n->batch};
  lac_error err = {0};
  *f = (fixture){.model = NULL};
  if (laci_arch_build(&arch, &f->model, &err)) fail_msg("%s", err.text);
  if (laci_training_graph_create(f->model, &training, &f->g, &err)) fail_msg("%s", err.text);
  f->known = laci_alloc((size_t)f->g->n_params, sizeof *f->known);
  f->masks = (uint8_t **)laci_alloc((size_t)f->g->n_params, sizeof *f->masks);
  for (int p = 0; p < f->g->n_params; p++) {
    const laci_training_param *param = &f->g->params[p];
    f->masks[p] = mask_of(param, p);
    if (!f->masks[p]) continue;
    f->known[f->n_known++] = (laci_engine_weight){
        .value = param->input, .mask = f->masks[p], .gradient = &param->gradient};
  }
}

static void clear(fixture *f) {
  for (int p = 0; p < f->g->n_params; p++) laci_free(f->masks[p]);
  laci_free((void *)f->masks);
  laci_free(f->known);
  laci_training_graph_destroy(f->g);
  laci_graph_destroy(f->model);
}

/** Content of an input: one class an image; numbers of their own for all else. */
static float *input_of(const laci_training_graph *g, const laci_engine_port *port, int at) {
  const bool labels = g->graph->inputs[at] == g->labels;
  float *x = laci_alloc(port->size_bytes, 1);
  for (int64_t i = 0; i < laci_shape_count(&port->type.shape); i++) {
    const double number = 0.6 * laci_rng_unit_interval(11, (uint64_t)at, (uint64_t)i) - 0.25;
    x[i] = (float)(labels ? i % g->n_classes == i / g->n_classes : number);
  }
  return x;
}

/** What the masks leave out is zero, as the plan was told. */
static void apply_mask(const fixture *f, int input, float *x) {
  for (int p = 0; p < f->g->n_params; p++) {
    const uint8_t *mask = f->g->params[p].input == input ? f->masks[p] : NULL;
    for (int64_t i = 0; mask && i < f->g->params[p].count; i++) x[i] *= (float)mask[i];
  }
}

/* ---- A run ---- */

typedef struct watched {
  laci_engine *engine;
  size_t n_steps, next; /* step that must be told next */
  int n_in, n_out;
  const laci_engine_port *in, *out;
  void **inputs, **outputs, **copies; /* copies: of each output, when its step had passed */
  size_t *step;                       /* [n_out] laci_engine_output_step */
  double *begins, *seconds;
  size_t fails_at;
} watched;

static bool is_untouched(const uint8_t *bytes, size_t n) {
  for (size_t at = 0; at < n; at++) {
    if (bytes[at] != GARBAGE) return false;
  }
  return true;
}

static lac_status between(void *context, size_t step, lac_error *err) {
  watched *w = context;
  assert_true(step == w->next && step < w->n_steps);
  w->next++;
  if (step == w->fails_at) return laci_fail(err, LAC_IO, "enough of step %zu", step);
  for (int at = 0; at < w->n_out; at++) {
    if (step + 1 == w->step[at] && !is_untouched(w->outputs[at], w->out[at].size_bytes))
      fail_msg("%s is written before step %zu, which is said to make it final", w->out[at].name,
               w->step[at]);
    if (step == w->step[at]) memcpy(w->copies[at], w->outputs[at], w->out[at].size_bytes);
  }
  return LAC_OK;
}

static void open_run(watched *w, const fixture *f, laci_engine *engine) {
  *w = (watched){.engine = engine, .n_steps = laci_engine_step_count(engine), .fails_at = SIZE_MAX};
  w->n_in = laci_engine_inputs(engine, &w->in);
  w->n_out = laci_engine_outputs(engine, &w->out);
  w->inputs = (void **)laci_alloc((size_t)w->n_in, sizeof *w->inputs);
  w->outputs = (void **)laci_alloc((size_t)w->n_out, sizeof *w->outputs);
  w->copies = (void **)laci_alloc((size_t)w->n_out, sizeof *w->copies);
  w->step = laci_alloc((size_t)w->n_out, sizeof *w->step);
  w->begins = laci_alloc(w->n_steps, sizeof *w->begins);
  w->seconds = laci_alloc(w->n_steps, sizeof *w->seconds);
  for (int at = 0; at < w->n_in; at++) {
    w->inputs[at] = input_of(f->g, &w->in[at], at);
    apply_mask(f, f->g->graph->inputs[at], w->inputs[at]);
  }
  for (int at = 0; at < w->n_out; at++) {
    w->outputs[at] = laci_alloc(w->out[at].size_bytes, 1);
    w->copies[at] = laci_alloc(w->out[at].size_bytes, 1);
    memset(w->outputs[at], GARBAGE, w->out[at].size_bytes);
    w->step[at] = laci_engine_output_step(engine, at);
    assert_true(w->step[at] <= w->n_steps);
  }
}

static void close_run(watched *w) {
  for (int at = 0; at < w->n_in; at++) laci_free(w->inputs[at]);
  for (int at = 0; at < w->n_out; at++) {
    laci_free(w->outputs[at]);
    laci_free(w->copies[at]);
  }
  laci_free((void *)w->inputs);
  laci_free((void *)w->outputs);
  laci_free((void *)w->copies);
  laci_free(w->step);
  laci_free(w->begins);
  laci_free(w->seconds);
  laci_engine_destroy(w->engine);
}

static lac_status run(watched *w, lac_error *err) {
  const laci_engine_watch watch = {
      .begins = w->begins, .seconds = w->seconds, .after_step = between, .context = w};
  return laci_engine_run_watched(w->engine, (const void *const *)w->inputs, w->outputs, &watch,
                                 err);
}

/** NULL: no bf16 here. */
static laci_engine *open_engine(const fixture *f, laci_engine_options o) {
  lac_error err = {0};
  laci_engine *engine;
  const lac_status st = laci_engine_create(f->g->graph, &o, &engine, &err);
  if (st == LAC_UNSUPPORTED && o.bf16 && strstr(err.text, "bf16 instructions")) return NULL;
  if (st) fail_msg("%s", err.text);
  return engine;
}

/* ---- Final is final ---- */

static void expect_times(const watched *w) {
  for (size_t at = 0; at < w->n_steps; at++) {
    assert_true(w->seconds[at] >= 0);
    if (at > 0) assert_true(w->begins[at - 1] + w->seconds[at - 1] <= w->begins[at]);
  }
}

static int port_of(const laci_graph *graph, int value) {
  for (int at = 0; at < graph->n_outputs; at++) {
    if (graph->outputs[at] == value) return at;
  }
  fail_msg("a gradient is no output");
  return -1;
}

/** The gradients come during the backward part, the last layers' first. */
static void expect_spread(const watched *w, const fixture *f, const char *name) {
  const laci_training_graph *g = f->g;
  int n_before = 0; /* nine tenths of the plan */
  for (int p = 0; p < g->n_params; p++) {
    n_before += w->step[port_of(g->graph, g->params[p].gradient)] < w->n_steps / 10 * 9;
  }
  if (n_before <= g->n_params / 2)
    fail_msg("%s: only %d of %d gradients come early", name, n_before, g->n_params);
  const size_t first = w->step[port_of(g->graph, g->params[0].gradient)];
  const size_t last = w->step[port_of(g->graph, g->params[g->n_params - 1].gradient)];
  assert_true(last < first && last < w->n_steps * 3 / 4);
  assert_true(w->step[port_of(g->graph, g->loss)] < last);
}

static void check(const fixture *f, laci_engine_options o, const char *name) {
  lac_error err = {0};
  watched w;
  laci_engine *engine = open_engine(f, o);
  if (!engine) return;
  open_run(&w, f, engine);
  if (o.early_outputs && !o.engine) expect_spread(&w, f, name);
  if (o.n_weights > 0 && !o.bf16) assert_true(laci_engine_sparse_step_count(engine) > 0);
  if (run(&w, &err)) fail_msg("%s: %s", name, err.text);
  assert_true(w.next == w.n_steps);
  expect_times(&w);
  for (int at = 0; at < w.n_out; at++) {
    if (is_untouched(w.outputs[at], w.out[at].size_bytes)) fail_msg("%s: not written", name);
    if (w.step[at] == w.n_steps) continue;
    if (memcmp(w.copies[at], w.outputs[at], w.out[at].size_bytes) != 0)
      fail_msg("%s: %s changes after step %zu", name, w.out[at].name, w.step[at]);
  }
  close_run(&w);
}

typedef struct setting {
  bool bf16, masked, remat;
} setting;

/** All cases, or of a large network those that compute no value again; under an emulator, which
 * translates all code that is generated for masks before it runs once, those without masks. */
static void check_network(network n, bool all) {
  static const setting settings[] = {
      {false, false, false}, {false, true, false}, {true, false, false},
      {true, true, false},   {false, true, true},  {true, false, true},
  };
  fixture f;
  set_up(&f, &n);
  for (size_t at = 0; at < sizeof settings / sizeof *settings; at++) {
    const setting *w = &settings[at];
    if (!all && (w->remat || (w->masked && is_emulated()))) continue;
    if (w->masked) assert_int_equal(setenv("LAC_SPARSE", "all", 1), 0); /* wherever they can */
    check(&f,
          (laci_engine_options){.threads = 1 + (int)at % 2,
                                .early_outputs = true,
                                .bf16 = w->bf16,
                                .weights = f.known,
                                .n_weights = w->masked ? f.n_known : 0,
                                .recompute = w->remat ? f.g->n_forward : 0},
          n.name);
    assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  }
  clear(&f);
}

static void outputs_of_small_networks_are_final(void **state) {
  (void)state;
  check_network((network){"digits", 16, 16}, true);
  check_network((network){"cifar-resnet20", 16, 16}, true);
}

static void outputs_of_bottlenecks_are_final(void **state) {
  (void)state;
  if (tests_are_light()) skip(); /* the next one has bottlenecks, too */
  check_network((network){"resnet50", 32, 16}, false);
}

static void outputs_of_grouped_convolutions_are_final(void **state) {
  (void)state;
  check_network((network){"resnext50_32x4d", 32, 16}, false);
}

static void outputs_that_come_late_are_final_as_late(void **state) {
  (void)state;
  fixture f;
  set_up(&f, &(network){"cifar-resnet20", 8, 4});
  check(&f, (laci_engine_options){.threads = 2}, "without early outputs");
  check(&f, (laci_engine_options){.threads = 2, .early_outputs = true, .engine = "plain"}, "plain");
  clear(&f);
}

/* ---- Ending a run ---- */

static void who_watches_may_end_the_run(void **state) {
  (void)state;
  static const char *const engines[] = {"cpu", "plain"};
  fixture f;
  set_up(&f, &(network){"digits", 8, 2});
  for (int e = 0; e < 2; e++) {
    lac_error err = {0};
    watched w;
    open_run(&w, &f, open_engine(&f, (laci_engine_options){.threads = 1, .engine = engines[e]}));
    const size_t places[] = {0, w.n_steps / 2, w.n_steps - 1};
    for (int k = 0; k < 3; k++) {
      w.next = 0;
      w.fails_at = places[k];
      for (int at = 0; at < w.n_out; at++) memset(w.outputs[at], GARBAGE, w.out[at].size_bytes);
      assert_int_equal(run(&w, &err), LAC_IO);
      assert_non_null(strstr(err.text, "enough of step"));
      assert_true(w.next == places[k] + 1);
    }
    w.fails_at = SIZE_MAX; /* and the next run is as good as any */
    w.next = 0;
    for (int at = 0; at < w.n_out; at++) memset(w.outputs[at], GARBAGE, w.out[at].size_bytes);
    assert_int_equal(run(&w, &err), LAC_OK);
    close_run(&w);
  }
  clear(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(outputs_of_small_networks_are_final),
      cmocka_unit_test(outputs_of_bottlenecks_are_final),
      cmocka_unit_test(outputs_of_grouped_convolutions_are_final),
      cmocka_unit_test(outputs_that_come_late_are_final_as_late),
      cmocka_unit_test(who_watches_may_end_the_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
