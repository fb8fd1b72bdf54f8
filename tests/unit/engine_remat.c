/* SPDX-License-Identifier: Apache-2.0
 * A forward part whose values are computed once more (laci_engine_options.recompute): every output
 * of a training step, and every value before it that is observed, has the bits of a plan that keeps
 * all, in less memory. (Training with it: train_remat.c.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "cpu/cpu.h"
#include "base/rng.h"
#include "engine/engine.h"
#include "graph/training_graph.h"
#include "support/block_nets.h"
#include "support/graph_run.h"
#include "support/light.h"

static laci_training_graph *make(const laci_graph *model, int64_t batch) {
  lac_error err = {0};
  laci_training_graph *made;
  laci_training_options options = {.batch = batch};
  if (laci_training_graph_create(model, &options, &made, &err)) fail_msg("%s", err.text);
  return made;
}

/* ---- One run, and what it showed ---- */

typedef struct sight {
  int n_values;
  void **contents; /* [n_values]; NULL: not shown */
} sight;

static lac_status see(void *context, int value, const laci_engine_port *port, const void *content,
                      lac_error *err) {
  sight *s = context;
  (void)err;
  if (s->contents[value]) fail_msg("%s is shown twice", port->name);
  s->contents[value] = laci_alloc(port->size_bytes + 1, 1);
  memcpy(s->contents[value], content, port->size_bytes);
  return LAC_OK;
}

/** Content of an input: one class an image; numbers of their own for all else, variances above 0.
 */
static void *input_of(const laci_training_graph *g, const laci_engine_port *port, int at) {
  bool labels = g->graph->inputs[at] == g->labels;
  float *x = laci_alloc(port->size_bytes, 1);
  assert_int_equal(port->type.dtype, LAC_DTYPE_F32);
  for (int64_t i = 0; i < laci_shape_count(&port->type.shape); i++) {
    double number = 0.6 * laci_rng_unit_interval(11, (uint64_t)at, (uint64_t)i) - 0.25;
    x[i] = (float)(labels ? i % g->n_classes == i / g->n_classes : number);
  }
  return x;
}

typedef struct plan {
  const laci_training_graph *g;
  laci_engine *engine;
  sight outputs, seen;
} plan;

/** stride > 0: every stride-th value from `first` on is looked at. False: no bf16 here. */
static bool open_plan(plan *p, const laci_training_graph *g, laci_engine_options o, int first,
                      int stride) {
  lac_error err = {0};
  int n_values = g->graph->n_values, n = 0;
  int *values = laci_alloc((size_t)n_values, sizeof *values);
  *p = (plan){.g = g, .outputs.n_values = g->graph->n_outputs, .seen.n_values = n_values};
  p->seen.contents = laci_alloc((size_t)n_values, sizeof(void *));
  p->outputs.contents = laci_alloc((size_t)g->graph->n_outputs, sizeof(void *));
  for (int v = first; v < n_values && stride > 0; v += stride) {
    const laci_value *value = &g->graph->values[v];
    if (value->n_readers > 0 || value->is_output) values[n++] = v;
  }
  const laci_engine_observer observer = {
      .values = values, .n_values = n, .on_value = see, .context = &p->seen};
  o.observer = n > 0 ? &observer : NULL;
  o.early_outputs = true;
  lac_status st = laci_engine_create(g->graph, &o, &p->engine, &err);
  laci_free(values);
  if (st == LAC_UNSUPPORTED && o.bf16 && strstr(err.text, "bf16 instructions")) return false;
  if (st) fail_msg("%s", err.text);
  return true;
}

static void clear_sight(sight *s) {
  for (int at = 0; at < s->n_values; at++) laci_free(s->contents[at]);
  laci_free(s->contents);
}

static void close_plan(plan *p) {
  laci_engine_destroy(p->engine);
  clear_sight(&p->outputs);
  clear_sight(&p->seen);
}

static void run(plan *p) {
  const laci_engine_port *in, *out;
  lac_error err = {0};
  int n_in = laci_engine_inputs(p->engine, &in), n_out = laci_engine_outputs(p->engine, &out);
  void **inputs = laci_alloc((size_t)n_in, sizeof *inputs);
  for (int at = 0; at < n_in; at++) inputs[at] = input_of(p->g, &in[at], at);
  for (int at = 0; at < n_out; at++) p->outputs.contents[at] = laci_alloc(out[at].size_bytes, 1);
  if (laci_engine_run(p->engine, (const void *const *)inputs, p->outputs.contents, &err))
    fail_msg("%s", err.text);
  for (int at = 0; at < n_in; at++) laci_free(inputs[at]);
  laci_free(inputs);
}

/* ---- Two plans ---- */

static void compare(const plan *want, const plan *got, const char *name) {
  const laci_graph *graph = want->g->graph;
  const laci_engine_port *out;
  int n_out = laci_engine_outputs(want->engine, &out);
  for (int at = 0; at < n_out; at++) {
    if (memcmp(want->outputs.contents[at], got->outputs.contents[at], out[at].size_bytes) != 0)
      fail_msg("%s: %s differs", name, out[at].name);
  }
  for (int v = 0; v < graph->n_values; v++) {
    const laci_type *type = &graph->values[v].type;
    bool is_float = laci_dtype_is_float(type->dtype);
    size_t bytes = (size_t)laci_shape_count(&type->shape) * (is_float ? 4 : 8);
    assert_true((want->seen.contents[v] != NULL) == (got->seen.contents[v] != NULL));
    if (want->seen.contents[v] && memcmp(want->seen.contents[v], got->seen.contents[v], bytes) != 0)
      fail_msg("%s: %s differs", name, graph->values[v].name);
  }
}

static int count_recomputed(const laci_engine *engine) {
  int n = 0;
  for (size_t at = 0; at < laci_engine_step_count(engine); at++)
    n += laci_engine_step_info(engine, at).recomputed;
  return n;
}

/** The same step twice, all kept and not. share: of the arena without, at most; less is saved in
 * bf16 and by AVX-512, where scratch memory (and, in bf16, gradients of weights) stays as large;
 * least on processors with AMX, where scratch memory is the largest. */
static void check_pair(const laci_training_graph *g, laci_engine_options o, int first, int stride,
                       double share, const char *name) {
  plan all, less;
  if (!open_plan(&all, g, o, first, stride)) {
    close_plan(&all);
    return;
  }
  o.recompute = g->n_forward;
  assert_true(open_plan(&less, g, o, first, stride));
  const laci_engine_memory a = laci_engine_planned_memory(all.engine),
                           b = laci_engine_planned_memory(less.engine);
  assert_int_equal(a.n_recomputed, 0);
  assert_int_equal(count_recomputed(all.engine), 0);
  if (b.n_recomputed < 2 || count_recomputed(less.engine) < 2)
    fail_msg("%s: %d nodes are computed twice", name, b.n_recomputed);
  double most = o.bf16 || laci_cpu_has_avx512f() ? (1 + share) / 2 : share;
  if (laci_cpu_has_bf16_tiles()) most = (3 + most) / 4;
  if (!((double)b.arena_bytes <= most * (double)a.arena_bytes))
    fail_msg("%s: %zu bytes, %zu without", name, b.arena_bytes, a.arena_bytes);
  run(&all);
  run(&less);
  compare(&all, &less, name);
  close_plan(&all);
  close_plan(&less);
}

static void check(const laci_graph *model, int64_t batch, double share, const char *name) {
  laci_training_graph *g = make(model, batch);
  for (int bf16 = 0; bf16 < 2; bf16++) {
    laci_engine_options o = {.threads = 1, .bf16 = bf16};
    check_pair(g, o, 0, 0, share, name);
    o.threads = 2;
    const int end = tests_are_light() ? 1 : 7;
    for (int first = 0; first < end; first += 3) check_pair(g, o, first, 7, 1, name);
  }
  laci_training_graph_destroy(g);
}

static void check_arch(const char *name, int size, int64_t batch, double share) {
  lac_error err = {0};
  laci_graph *model;
  laci_arch_options o = {.name = name, .n_classes = 10, .image_size = size, .seed = 3};
  if (laci_arch_build(&o, &model, &err)) fail_msg("%s", err.text);
  check(model, batch, share, name);
  laci_graph_destroy(model);
}

static void check_text(const char *text, int64_t batch, double share, const char *name) {
  lac_error err = {0};
  laci_graph *model;
  if (net_read(text, &model, &err)) fail_msg("%s", err.text);
  check(model, batch, share, name);
  laci_graph_destroy(model);
}

static void check_blocks(block_kind kind, int n_blocks, int64_t batch, const char *name) {
  static block_text net;
  block_net(kind, n_blocks, &net);
  check_text(net.text, batch, 0.8, name);
}

/* ---- Networks ---- */

static void residual_networks_keep_their_bits(void **state) {
  (void)state;
  check_arch("digits", 16, 16, 0.8);
  check_arch("cifar-resnet20", 16, 8, 0.7);
  check_arch("resnet18", 64, 2, 0.99);
}

static void joins_keep_their_bits(void **state) {
  (void)state;
  check_blocks(BLOCK_JOINS, 5, 16, "joins");
}

static void one_image_grows_joins_in_place(void **state) {
  (void)state;
  static block_text net;
  block_net(BLOCK_JOINS, 6, &net);
  check_text(net.text, 1, 1, "joins of one image");
}

static void gates_keep_their_bits(void **state) {
  (void)state;
  check_blocks(BLOCK_GATES, 5, 16, "gates");
}

static void branches_keep_their_bits(void **state) {
  (void)state;
  check_blocks(BLOCK_BRANCHES, 5, 16, "branches");
}

static void attention_keeps_its_bits(void **state) {
  (void)state;
  check_blocks(BLOCK_ATTENTION, 5, 16, "attention");
}

/** Parts of one value of which some are kept, and what does nothing in between. */
static void parts_and_dropouts_keep_their_bits(void **state) {
  (void)state;
  static block_text net;
  net.used = 0;
  block_say(&net, "input x 1x3x16x16\nstored a0.w 32x3x3x3\na0 = Conv(x, a0.w) pads=1,1,1,1\n");
  for (int k = 1; k <= 6; k++) {
    char name[16], from[16];
    (void)snprintf(name, sizeof name, "r%d", k);
    (void)snprintf(from, sizeof from, "a%d", k - 1);
    block_norm_relu(&net, name, from, 32);
    block_say(&net, "d%d = Dropout(r%d)\np%d, q%d = Split(d%d) axis=1\n", k, k, k, k, k);
    block_say(&net, "stored w%d 16x16x3x3\nc%d = Conv(q%d, w%d) pads=1,1,1,1\n", k, k, k, k);
    block_say(&net, "e%d = Sigmoid(c%d)\na%d = Concat(p%d, e%d) axis=1\n", k, k, k, k, k);
  }
  block_end(&net, "a6", 32);
  check_text(net.text, 8, 0.9, "parts");
}

/** More places to cut than are looked at. */
static void a_long_chain_keeps_its_bits(void **state) {
  (void)state;
  static block_text net;
  net.used = 0;
  block_say(&net, "input x 1x3x16x16\nstored w 8x3x3x3\na0 = Conv(x, w) pads=1,1,1,1\n");
  for (int k = 1; k <= 600; k++) block_say(&net, "a%d = Sigmoid(a%d)\n", k, k - 1);
  block_end(&net, "a600", 8);
  check_text(net.text, 2, 0.3, "chain");
}

/* ---- Where there is nothing to do ---- */

static void the_plan_is_the_same_where_nothing_is_saved(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *model;
  plan all, less;
  const char *net =
      "input x 1x4\nstored w 4x3\nstored b 3\na = MatMul(x, w)\ny = Add(a, b)\noutput y\n";
  assert_int_equal(net_read(net, &model, &err), LAC_OK);
  laci_training_graph *g = make(model, 2);
  laci_engine_options o = {.threads = 1};
  assert_true(open_plan(&all, g, o, 0, 0));
  o.recompute = g->n_forward;
  assert_true(open_plan(&less, g, o, 0, 0));
  assert_int_equal(laci_engine_planned_memory(less.engine).n_recomputed, 0);
  assert_string_equal(laci_engine_plan_text(less.engine), laci_engine_plan_text(all.engine));
  close_plan(&all);
  close_plan(&less);
  laci_training_graph_destroy(g);
  laci_graph_destroy(model);
}

static void the_plain_engine_takes_no_notice(void **state) {
  (void)state;
  static block_text net;
  lac_error err = {0};
  laci_graph *model;
  plan all, less;
  block_net(BLOCK_BRANCHES, 2, &net);
  if (net_read(net.text, &model, &err)) fail_msg("%s", err.text);
  laci_training_graph *g = make(model, 2);
  laci_engine_options o = {.engine = "plain", .threads = 1};
  assert_true(open_plan(&all, g, o, 0, 0));
  o.recompute = g->n_forward;
  assert_true(open_plan(&less, g, o, 0, 0));
  assert_int_equal(laci_engine_planned_memory(less.engine).n_recomputed, 0);
  run(&all);
  run(&less);
  compare(&all, &less, "plain");
  close_plan(&all);
  close_plan(&less);
  laci_training_graph_destroy(g);
  laci_graph_destroy(model);
}

/* ---- Without memory ---- */

/** Plans with the n-th allocation failing; true where n was too far. */
static bool plan_without_memory(const laci_training_graph *g, bool recompute, long n) {
  lac_error err = {0};
  laci_engine *engine = NULL;
  const laci_engine_options o = {
      .threads = 1, .early_outputs = true, .recompute = recompute ? g->n_forward : 0};
  laci_memory_fail_from(n);
  lac_status st = laci_engine_create(g->graph, &o, &engine, &err);
  laci_memory_fail_from(0);
  assert_true(st == LAC_OK || st == LAC_NO_MEMORY);
  assert_true((engine != NULL) == (st == LAC_OK));
  laci_engine_destroy(engine);
  return st == LAC_OK;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  static block_text net;
  lac_error err = {0};
  laci_graph *model;
  long n = 1;
  net.used = 0;
  block_say(&net, "input x 1x3x16x16\nstored w 8x3x3x3\na0 = Conv(x, w) pads=1,1,1,1\n");
  for (int k = 1; k <= 20; k++) block_say(&net, "a%d = Sigmoid(a%d)\n", k, k - 1);
  block_end(&net, "a20", 8);
  if (net_read(net.text, &model, &err)) fail_msg("%s", err.text);
  laci_training_graph *g = make(model, 4);
  while (!plan_without_memory(g, true, n)) n++;
  assert_true(n > 100);
  laci_training_graph_destroy(g);
  laci_graph_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(residual_networks_keep_their_bits),
      cmocka_unit_test(joins_keep_their_bits),
      cmocka_unit_test(one_image_grows_joins_in_place),
      cmocka_unit_test(gates_keep_their_bits),
      cmocka_unit_test(branches_keep_their_bits),
      cmocka_unit_test(attention_keeps_its_bits),
      cmocka_unit_test(parts_and_dropouts_keep_their_bits),
      cmocka_unit_test(a_long_chain_keeps_its_bits),
      cmocka_unit_test(the_plan_is_the_same_where_nothing_is_saved),
      cmocka_unit_test(the_plain_engine_takes_no_notice),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
