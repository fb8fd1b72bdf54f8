/* SPDX-License-Identifier: Apache-2.0
 * Networks in stages (engine/cpu/microbatch): where they may be cut and where not, that results are
 * the plain engine's and the same for any number of threads, and what reports and watchers are
 * told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/budget.h"
#include "base/log.h"
#include "cpu/cpu.h"
#include "engine/cpu/microbatch/microbatch.h"
#include "engine/stepper.h"
#include "support/engine_check.h"

/* All that counts is memory, and a micro-batch of one image is nothing to it. */
static const laci_stage_rule eager = {
    .flops = 1e18, .memory = 1e6, .cache = 1e15, .cache_bytes = 40000, .least_gain = 0};

typedef struct staged {
  laci_graph *graph;
  laci_microbatches *stages;
} staged;

static staged stage(const char *text, laci_engine_options options, const laci_stage_rule *rule) {
  staged s;
  lac_error err = {0};
  if (net_read(text, &s.graph, &err)) fail_msg("%s\n%s", err.text, text);
  if (laci_microbatches_create(s.graph, &options, rule, &s.stages, &err))
    fail_msg("%s\n%s", err.text, text);
  return s;
}

static void staged_clear(staged *s) {
  laci_microbatches_destroy(s->stages);
  laci_graph_destroy(s->graph);
}

/** "stage 1 of 3": 3; a network that is not cut has no such line. */
static int stages_of(const staged *s) {
  const char *text = laci_microbatches_plan_text(s->stages);
  return strncmp(text, "stage 1 of ", 11) == 0 ? atoi(text + 11) : 1;
}

static int count_stages(const char *text, const laci_stage_rule *rule,
                        laci_engine_options options) {
  staged s = stage(text, options, rule);
  const int n = stages_of(&s);
  staged_clear(&s);
  return n;
}

/** Results [n_outputs]; the caller's to free, each and all. */
static void **run_stages(const staged *s, laci_buf **inputs, const laci_engine_watch *watch,
                         lac_status want) {
  const laci_engine_port *in, *out;
  const void *read[MAX_PORTS];
  lac_error err = {0};
  const int n_in = laci_microbatches_inputs(s->stages, &in),
            n_out = laci_microbatches_outputs(s->stages, &out);
  void **written = laci_alloc((size_t)n_out, sizeof *written);
  for (int at = 0; at < n_in; at++) read[at] = pack(&in[at], inputs[at]);
  for (int at = 0; at < n_out; at++) written[at] = laci_alloc(out[at].size_bytes, 1);
  lac_status st = laci_microbatches_run(s->stages, read, written, watch, &err);
  if (st != want) fail_msg("%d: %s", (int)st, err.text);
  for (int at = 0; at < n_in; at++) laci_free((void *)(uintptr_t)read[at]);
  return written;
}

static void free_results(const staged *s, void **results) {
  const laci_engine_port *out;
  const int n = laci_microbatches_outputs(s->stages, &out);
  for (int at = 0; at < n; at++) laci_free(results[at]);
  laci_free((void *)results);
}

/* ---- Results ---- */

typedef struct setting {
  bool bf16;
  double tolerance;
} setting;

/** oneDNN's products of processors without AVX2 cut sums by the number of threads. */
static bool cuts_no_sums(void) { return laci_cpu_level_in_force() >= LACI_CPU_AVX2; }

static void check_setting(const char *text, setting how, int least) {
  void **first = NULL;
  const laci_engine_port *out;
  laci_buf *inputs[MAX_PORTS];
  for (int threads = 1; threads <= 3; threads++) {
    const laci_engine_options options = {.threads = threads, .bf16 = how.bf16};
    staged s = stage(text, options, &eager);
    const int n_out = laci_microbatches_outputs(s.stages, &out), n_in = s.graph->n_inputs;
    if (stages_of(&s) < least) fail_msg("%d stages:\n%s", stages_of(&s), text);
    for (int at = 0; at < n_in; at++) inputs[at] = run_source(s.graph, s.graph->inputs[at]);
    void **got = run_stages(&s, inputs, NULL, LAC_OK);
    const bool same_bits = first && cuts_no_sums();
    laci_stepper *run = same_bits ? NULL : plain_run(s.graph, inputs);
    for (int at = 0; at < n_out; at++) {
      if (same_bits) assert_memory_equal(got[at], first[at], out[at].size_bytes);
      if (run)
        compare(text, &out[at], got[at], laci_stepper_value(run, s.graph->outputs[at]),
                how.tolerance);
    }
    laci_stepper_destroy(run);
    for (int at = 0; at < n_in; at++) laci_buf_destroy(inputs[at]);
    if (first) free_results(&s, got);
    else first = got;
    if (threads == 3) free_results(&s, first);
    staged_clear(&s);
  }
}

static const char *const cut_nets[] = {
    /* depthwise and pointwise, 16 channels and not; a branch that closes before the cut */
    "input x 6x3x24x20\nstored w 16x3x3x3\nstored d 16x1x3x3\nstored p 24x16x1x1 pruned\n"
    "stored q 8x24x3x3\nstored m 8x5\na = Conv(x, w) pads=1,1,1,1\nb = Relu(a)\n"
    "c = Conv(b, d) group=16 pads=1,1,1,1\ne = Clip(c, _, _)\nf = Conv(e, p)\n"
    "g = Conv(f, q) strides=2,2\nh = GlobalAveragePool(g)\ni = Flatten(h)\ny = Gemm(i, m)\n"
    "output y\n",
    /* residual sums, gates of channels, a mean over height and width, two readers of the value at
     * the cut */
    "input x 8x16x14x14\nstored w 16x16x3x3 pruned\nstored v 16x16x1x1\nstored f 16\n"
    "a = Conv(x, w) pads=1,1,1,1\ns = Sigmoid(a)\nb = Mul(a, s)\nm = ReduceMean(b, t)\n"
    "stored t 2 i64 = 2 3\nn = Conv(m, v, f)\no = HardSigmoid(n)\nc = Mul(b, o)\n"
    "d = Conv(c, v)\ne = Add(d, c)\ng = MaxPool(e) kernel_shape=2,2 strides=2,2\n"
    "h = Conv(g, v)\ny = Add(h, g)\noutput y\n",
    /* joins, a norm by itself, pads, a pool with odd pixels; two outputs after the cut */
    "input x 4x8x21x19\nstored w 8x8x3x3\nstored k 8 positive\nstored l 8\n"
    "stored P 8 i64 = 0 0 1 0 0 0 0 1\na = Conv(x, w) pads=1,1,1,1\nb = Concat(x, a) axis=1\n"
    "stored s 16 positive\nstored o 16\nstored u 16\nstored z 16 positive\n"
    "c = BatchNormalization(b, s, o, u, z)\nd = Relu(c)\ne = Pad(d, P)\nstored r 12x16x2x2\n"
    "f = Conv(e, r)\ng = AveragePool(f) kernel_shape=3,3 strides=2,2\nstored q 4x12x1x1\n"
    "h = Conv(g, q)\ny = Softmax(h) axis=1\noutput y\noutput h\n",
    /* numbers of pixels, as integers, scaled by channel; a slope for each channel */
    "input x 9x3x20x22 i64\nstored m 1x3x1x1\nstored s 3x1x1 positive\nstored w 8x3x3x3\n"
    "stored l 8x1x1\nstored v 4x8x3x3\na = Cast(x) to=1\nb = Sub(a, m)\nc = Div(b, s)\n"
    "d = Conv(c, w)\ne = PRelu(d, l)\nf = AveragePool(e) kernel_shape=2,2 strides=2,2\n"
    "y = Conv(f, v)\noutput y\n",
};

/* The batch is asked for, of the input and of a value before the cut. */
static const char *const shaped =
    "input x 6x8x18x18\nstored w 8x8x3x3\nstored v 8x8x1x1\nstored m 32x3\nstored i 1 i64 = 0\n"
    "stored j 1 i64 = -1\ns = Shape(x)\nn = Gather(s, i)\na = Conv(x, w) pads=1,1,1,1\n"
    "b = MaxPool(a) kernel_shape=2,2 strides=2,2\nc = Conv(b, v)\nd = AveragePool(c) "
    "kernel_shape=4,4 strides=4,4\ne = Concat(n, j) axis=0\nf = Reshape(d, e)\ng = Gemm(f, m)\n"
    "t = Shape(a)\nu = Gather(t, i)\nk = Concat(u, j) axis=0\ny = Reshape(g, k)\noutput y\n";

/* Rounded to steps of a 64th: the cut is before a QuantizeLinear. */
static const char *const quantized =
    "input x 6x8x18x18\nstored S \"\" = 0.015625\nstored Z \"\" u8 = 128\n"
    "stored w 16x8x3x3 i8\nstored v 16x16x1x1 i8\nstored T \"\" = 0.0113\nstored i \"\" i8 = 0\n"
    "q = QuantizeLinear(x, S, Z)\nd = DequantizeLinear(q, S, Z)\nW = DequantizeLinear(w, T, i)\n"
    "a = Conv(d, W) pads=1,1,1,1\nb = Relu(a)\nq1 = QuantizeLinear(b, S, Z)\n"
    "d1 = DequantizeLinear(q1, S, Z)\nm = MaxPool(d1) kernel_shape=2,2 strides=2,2\n"
    "V = DequantizeLinear(v, T, i)\nc = Conv(m, V)\nq2 = QuantizeLinear(c, S, Z)\n"
    "d2 = DequantizeLinear(q2, S, Z)\ny = Conv(d2, V)\noutput y\n";

static void bytes_are_rounded_after_the_cut(void **state) {
  (void)state;
  check_setting(quantized, (setting){.tolerance = 5e-3}, 2); /* a step of one summand */
}

static void results_are_the_plain_engines(void **state) {
  (void)state;
  for (size_t at = 0; at < sizeof cut_nets / sizeof *cut_nets; at++) {
    check_setting(cut_nets[at], (setting){.tolerance = 2e-5}, 2);
    assert_int_equal(setenv("LAC_SPARSE", "all", 1), 0);
    check_setting(cut_nets[at], (setting){.tolerance = 2e-5}, 2);
    assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  }
}

static void shapes_of_the_first_part_are_those_of_the_batch(void **state) {
  (void)state;
  check_setting(shaped, (setting){.tolerance = 2e-5}, 2);
  laci_budget budget = laci_budget_with_limit(UINT64_MAX);
  staged s = stage(shaped, (laci_engine_options){.threads = 1, .budget = &budget}, &eager);
  const laci_engine_memory planned = laci_microbatches_planned_memory(s.stages);
  const uint64_t ports = 6 * (8 * 18 * 18 + 3) * 4;
  assert_int_equal(budget.needed, planned.arena_bytes + planned.weight_bytes + ports);
  staged_clear(&s);
}

static void and_in_bf16(void **state) {
  (void)state;
  laci_graph *graph;
  laci_microbatches *stages;
  lac_error err = {0};
  if (net_read(cut_nets[0], &graph, &err)) fail_msg("%s", err.text);
  const laci_engine_options options = {.threads = 1, .bf16 = true};
  lac_status st = laci_microbatches_create(graph, &options, &eager, &stages, &err);
  laci_microbatches_destroy(stages);
  laci_graph_destroy(graph);
  if (st == LAC_UNSUPPORTED) skip();
  for (size_t at = 0; at < sizeof cut_nets / sizeof *cut_nets; at++) {
    check_setting(cut_nets[at], (setting){.bf16 = true, .tolerance = 8e-2}, 2);
  }
}

/* ---- Chains of blocks by chance ---- */

typedef struct chain {
  char text[4096];
  size_t n;
  uint64_t seed, draws;
  int id, channels, height, width; /* of the last value, v<id> */
} chain;

static int draw(chain *c, int n) {
  return (int)laci_rng_integer_below(c->seed, 5, c->draws++, (uint64_t)n);
}

static void add(chain *c, const char *format, ...) LAC_PRINTF(2, 3);
static void add(chain *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(c->text + c->n, sizeof c->text - c->n, format, args);
  va_end(args);
  c->n += (size_t)n;
  assert_true(c->n < sizeof c->text);
}

/** A convolution of any kind. */
static void add_window(chain *c) {
  const int kernel = 1 + 2 * draw(c, 2), stride = 1 + (draw(c, 4) == 0), v = c->id++;
  const bool depthwise = draw(c, 3) == 0;
  const int out = depthwise ? c->channels : 4 * (1 + draw(c, 8));
  add(c, "stored w%d %dx%dx%dx%d %s\nstored b%d %d\n", v, out, depthwise ? 1 : c->channels, kernel,
      kernel, depthwise || draw(c, 2) ? "" : "pruned", v, out);
  add(c, "v%d = Conv(v%d, w%d, b%d) group=%d strides=%d,%d pads=%d,%d,%d,%d\n", c->id, v, v, v,
      depthwise ? c->channels : 1, stride, stride, kernel / 2, kernel / 2, kernel / 2, kernel / 2);
  c->channels = out;
  c->height = (c->height - 1) / stride + 1;
  c->width = (c->width - 1) / stride + 1;
}

static void add_pool(chain *c) {
  static const char *const pools[] = {"MaxPool", "AveragePool"};
  const int v = c->id++;
  if (c->height < 3 || c->width < 3) {
    add(c, "v%d = Relu(v%d)\n", c->id, v);
    return;
  }
  add(c, "v%d = %s(v%d) kernel_shape=3,3 strides=2,2\n", c->id, pools[draw(c, 2)], v);
  c->height = (c->height - 3) / 2 + 1;
  c->width = (c->width - 3) / 2 + 1;
}

/** A function of each element, a gate, a norm. */
static void add_element(chain *c) {
  static const char *const functions[] = {"Relu",      "Clip", "Sigmoid",
                                          "HardSwish", "Tanh", "LeakyRelu"};
  const int v = c->id++;
  switch (draw(c, 4)) {
    case 0:
      add(c, "stored s%d %d positive\nstored o%d %d\nstored m%d %d\nstored z%d %d positive\n", v,
          c->channels, v, c->channels, v, c->channels, v, c->channels);
      add(c, "v%d = BatchNormalization(v%d, s%d, o%d, m%d, z%d)\n", c->id, v, v, v, v, v);
      return;
    case 1:
      add(c, "g%d = GlobalAveragePool(v%d)\nh%d = Sigmoid(g%d)\nv%d = Mul(v%d, h%d)\n", v, v, v, v,
          c->id, v, v);
      return;
    case 2: add(c, "h%d = Sigmoid(v%d)\nv%d = Mul(h%d, v%d)\n", v, v, c->id, v, v); return;
    default: add(c, "v%d = %s(v%d)\n", c->id, functions[draw(c, 6)], v);
  }
}

/** The input once more: added, or concatenated to what is made of it. */
static void add_branch(chain *c) {
  const int v = c->id++, n = c->channels;
  add(c, "stored q%d %dx%dx3x3\nt%d = Conv(v%d, q%d) pads=1,1,1,1\n", v, n, n, v, v, v);
  if (draw(c, 2)) {
    add(c, "v%d = Add(t%d, v%d)\n", c->id, v, v);
  } else {
    add(c, "v%d = Concat(v%d, t%d) axis=%d\n", c->id, v, v, draw(c, 2) ? 1 : -3);
    c->channels = 2 * n;
  }
}

/** A network of some blocks. */
static chain draw_chain(uint64_t seed) {
  chain c = {.seed = seed};
  c.channels = 1 + draw(&c, 16);
  c.height = 6 + draw(&c, 20);
  c.width = 6 + draw(&c, 20);
  add(&c, "input v0 %dx%dx%dx%d\n", 2 + draw(&c, 8), c.channels, c.height, c.width);
  const int blocks = 4 + draw(&c, 6);
  for (int at = 0; at < blocks; at++) {
    const int kind = draw(&c, 8);
    if (kind < 3 && c.height > 1 && c.width > 1) add_window(&c);
    else if (kind == 3) add_pool(&c);
    else if (kind < 6 || c.channels > 64) add_element(&c);
    else add_branch(&c);
  }
  add(&c, "stored last 5x%dx1x1\ny = Conv(v%d, last)\noutput y\n", c.channels, c.id);
  return c;
}

static void random_chains(void **state) {
  (void)state;
  int n_cut = 0;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    const chain c = draw_chain(seed);
    n_cut += count_stages(c.text, &eager, (laci_engine_options){.threads = 1}) > 1;
    check_setting(c.text, (setting){.tolerance = 1e-4}, 1);
  }
  if (n_cut < 20) fail_msg("%d networks were cut", n_cut);
}

static const laci_stage_rule never = {.flops = 1, .memory = 1, .cache = 1, .least_gain = 2};

static uint64_t needed_by(const char *text, const laci_stage_rule *rule) {
  laci_budget budget = laci_budget_with_limit(UINT64_MAX);
  staged s = stage(text, (laci_engine_options){.threads = 1, .budget = &budget}, rule);
  staged_clear(&s);
  return budget.needed;
}

/* The arenas of stages exist at the same time. */
static void what_fits_only_as_a_whole_is_one(void **state) {
  (void)state;
  int n = 0;
  for (uint64_t seed = 1; seed <= 300 && n < 3; seed++) {
    const chain c = draw_chain(seed);
    const uint64_t cut = needed_by(c.text, &eager), whole = needed_by(c.text, &never);
    if (cut <= whole) continue;
    laci_budget budget = laci_budget_with_limit(whole);
    const laci_engine_options options = {.threads = 1, .budget = &budget};
    assert_int_equal(count_stages(c.text, &eager, options), 1);
    assert_int_equal(budget.needed, whole);
    budget = laci_budget_with_limit(cut);
    assert_in_range(count_stages(c.text, &eager, options), 2, 4);
    n++;
  }
  assert_int_equal(n, 3);
}

/* ---- Where cuts are ---- */

/** A network whose first layers are these: x is 4x8x16x16, and so is a. */
static const char *around(const char *middle, char text[1024]) {
  (void)snprintf(text, 1024,
                 "input x 4x8x16x16\nstored w 8x8x3x3\nstored v 8x8x1x1\n%s\n"
                 "b = MaxPool(a) kernel_shape=2,2 strides=2,2\nc = Conv(b, v)\noutput c\n",
                 middle);
  return text;
}

static void what_mixes_images_is_not_cut_off(void **state) {
  static const char *const whole[] = {
      "stored k 4x1x1x1\na = Add(x, k)", /* a number for each image */
      "stored k 4x8x16x16\na = Mul(x, k)",
      "m = ReduceMean(x, t)\nstored t 1 i64 = 0\na = Sub(x, m)",
      "a = Softmax(x) axis=0",
      "l, r = Split(x) axis=0 num_outputs=2\na = Concat(r, l) axis=0",
      "l, r = Split(x) axis=0 num_outputs=2\na = Concat(r, l) axis=-4",
      "stored p 8 i64 = 1 0 0 0 -1 0 0 0\na = Pad(x, p)",
      "stored s 4 i64 = 4 8 16 16\nh = Flatten(x)\na = Reshape(h, s)",
      "h = Transpose(x) perm=1,0,2,3\na = Transpose(h) perm=1,0,2,3",
      "h = Transpose(x)\na = Transpose(h)",
      "a = CumSum(x, k)\nstored k \"\" i64 = 0",
      /* numbers of the batch's size, spread over all pixels or channels, and bounds */
      "stored i 1 i64 = 0\ns = Shape(x)\nn = Gather(s, i)\nf = Cast(n) to=1\na = Div(x, f)",
      "s = Size(x)\nf = Cast(s) to=1\na = Div(x, f)",
      "stored i \"\" i64 = 0\ns = Shape(x)\nn = Gather(s, i)\nf = Cast(n) to=1\n"
      "stored e \"\" = 9\nt = Div(f, e)\na = Clip(x, _, t)",
      "stored i 1 i64 = 0\ns = Shape(x)\nn = Gather(s, i)\nf = Cast(n) to=1\nW = Mul(w, f)\n"
      "a = Conv(x, W) pads=1,1,1,1",
      /* places that count through the whole batch */
      "_, q = MaxPool(x) kernel_shape=1,1\na = Cast(q) to=1",
      /* a number for each four images */
      "stored i 1 i64 = 0\nstored f 1 i64 = 4\nstored r 3 i64 = 8 1 1\ns = Shape(x)\n"
      "n = Gather(s, i)\nq = Div(n, f)\nt = Concat(q, r) axis=0\nk = ConstantOfShape(t)\n"
      "a = Add(x, k)",
  };
  static const char *const parts[] = {
      "a = Conv(x, w) pads=1,1,1,1", "a = Transpose(x) perm=0,1,3,2",
      /* of height and width, and of the batch where nobody reads it */
      "stored i 1 i64 = 2\ns = Shape(x)\nn = Gather(s, i)\nf = Cast(n) to=1\na = Div(x, f)",
      ("stored i 1 i64 = 0\ns = Shape(x)\nn = Gather(s, i)\nu = Relu(x)\na = Conv(x, w) "
       "pads=1,1,1,1\nd = CumSum(u, z)\nstored z \"\" i64 = 0")};
  char text[1024];
  (void)state;
  for (size_t at = 0; at < sizeof parts / sizeof *parts; at++) {
    (void)around(parts[at], text);
    assert_int_equal(count_stages(text, &eager, (laci_engine_options){.threads = 1}), 2);
  }
  for (size_t at = 0; at < sizeof whole / sizeof *whole; at++) {
    (void)around(whole[at], text);
    const int n = count_stages(text, &eager, (laci_engine_options){.threads = 1});
    if (n != 1) fail_msg("%d stages:\n%s", n, text);
    check_setting(text, (setting){.tolerance = 2e-5}, 1);
  }
}

static void one_image_or_two_inputs_are_one_stage(void **state) {
  static const char *const whole[] = {
      "input x 1x8x32x32\nstored w 8x8x3x3\na = Conv(x, w)\nb = MaxPool(a) kernel_shape=2,2 "
      "strides=2,2\nc = Conv(b, w)\noutput c\n",
      "input x 4x8x16x16\ninput z 4x8x16x16\nstored w 8x8x3x3\nq = Add(x, z)\na = Conv(q, w)\n"
      "b = MaxPool(a) kernel_shape=2,2 strides=2,2\nc = Conv(b, w)\noutput c\n",
      /* an output before every cut; a value that is read after every cut */
      "input x 4x8x16x16\nstored w 8x8x3x3\na = Conv(x, w)\nb = MaxPool(a) kernel_shape=2,2 "
      "strides=2,2\nc = Conv(b, w)\noutput c\noutput a\n",
      "input x 4x8x16x16\nstored w 8x8x3x3\na = Conv(x, w) pads=1,1,1,1\nb = MaxPool(a) "
      "kernel_shape=2,2 strides=2,2\nc = Conv(b, w) pads=1,1,1,1\nstored v 8x8x2x2\n"
      "d = Conv(x, v) strides=2,2\ne = Add(c, d)\noutput e\n",
  };
  (void)state;
  for (size_t at = 0; at < sizeof whole / sizeof *whole; at++) {
    assert_int_equal(count_stages(whole[at], &eager, (laci_engine_options){.threads = 1}), 1);
    check_setting(whole[at], (setting){.tolerance = 2e-5}, 1);
  }
}

static lac_status see_nothing(void *context, int value, const laci_engine_port *port,
                              const void *content, lac_error *err) {
  (void)context, (void)value, (void)port, (void)content, (void)err;
  return LAC_OK;
}

static void who_looks_inside_or_has_many_threads_gets_one_stage(void **state) {
  const int value = 0;
  const laci_engine_observer observer = {.values = &value, .n_values = 1, .on_value = see_nothing};
  (void)state;
  assert_int_equal(count_stages(cut_nets[1], &eager, (laci_engine_options){.threads = 1}), 2);
  assert_int_equal(
      count_stages(cut_nets[1], &eager, (laci_engine_options){.threads = 1, .observer = &observer}),
      1);
  assert_int_equal(
      count_stages(cut_nets[1], &eager, (laci_engine_options){.threads = 1, .early_outputs = true}),
      1);
  assert_int_equal(count_stages(cut_nets[1], &eager, (laci_engine_options){.threads = 8}), 2);
  assert_int_equal(count_stages(cut_nets[1], &eager, (laci_engine_options){.threads = 9}), 1);
}

/* The block of MobileNet-v2 at 112 px and what follows it; the same with all channels joined is
 * bound by its products. */
static void the_usual_rule_cuts_where_memory_is_waited_for(void **state) {
  static const char *const depthwise =
      "input x %dx16x112x112\nstored w 96x16x1x1\nstored d 96x1x3x3\nstored p 24x96x1x1\n"
      "stored q 24x24x1x1\na = Conv(x, w)\nb = Clip(a, _, _)\n"
      "c = Conv(b, d) group=96 pads=1,1,1,1 strides=2,2\ne = Clip(c, _, _)\nf = Conv(e, p)\n"
      "g = MaxPool(f) kernel_shape=4,4 strides=4,4\nh = Conv(g, q)\noutput h\n";
  static const char *const joined =
      "input x 16x16x112x112\nstored w 96x16x1x1\nstored d 96x96x3x3\nstored p 24x96x1x1\n"
      "stored q 24x24x1x1\na = Conv(x, w)\nb = Clip(a, _, _)\n"
      "c = Conv(b, d) pads=1,1,1,1 strides=2,2\ne = Clip(c, _, _)\nf = Conv(e, p)\n"
      "g = MaxPool(f) kernel_shape=4,4 strides=4,4\nh = Conv(g, q)\noutput h\n";
  char text[1024];
  const laci_engine_options options = {.threads = 2};
  (void)state;
  (void)snprintf(text, sizeof text, depthwise, 16);
  assert_int_equal(count_stages(text, &laci_stage_usual, options), 2);
  (void)snprintf(text, sizeof text, depthwise, 2);
  assert_int_equal(count_stages(text, &laci_stage_usual, options), 1);
  assert_int_equal(count_stages(joined, &laci_stage_usual, options), 1);
}

/* ---- What is told ---- */

static void steps_count_all_micro_batches(void **state) {
  (void)state;
  const laci_engine_options options = {.threads = 1};
  staged several = stage(cut_nets[0], options, &eager);
  staged whole = stage(cut_nets[0], options, &never);
  int64_t flops[2] = {0};
  const staged *both[] = {&several, &whole};
  for (int which = 0; which < 2; which++) {
    for (size_t at = 0; at < laci_microbatches_step_count(both[which]->stages); at++) {
      flops[which] += laci_microbatches_step_info(both[which]->stages, at).flops;
    }
  }
  assert_int_equal(stages_of(&whole), 1);
  assert_int_equal(flops[0], flops[1]);
  const laci_engine_memory a = laci_microbatches_planned_memory(several.stages);
  const laci_engine_memory b = laci_microbatches_planned_memory(whole.stages);
  assert_true(a.arena_bytes < b.arena_bytes);
  const laci_engine_port *in, *out;
  assert_int_equal(laci_microbatches_inputs(several.stages, &in), 1);
  assert_int_equal(in->type.shape.dims[0], 6);
  assert_int_equal(in->size_bytes, 6 * 3 * 24 * 20 * 4);
  assert_int_equal(laci_microbatches_outputs(several.stages, &out), 1);
  assert_true(laci_microbatches_output_step(several.stages, 0) <=
              laci_microbatches_step_count(several.stages) - 1);
  assert_true(strstr(laci_microbatches_plan_text(several.stages),
                     " micro-batches of 1 image, up to ") != NULL);
  assert_int_equal(laci_microbatches_threads(several.stages), 1);
  staged_clear(&several);
  staged_clear(&whole);
}

typedef struct seen {
  size_t n, stop;
  size_t steps[64];
} seen;

static lac_status note(void *context, size_t step, lac_error *err) {
  seen *s = context;
  if (s->n < 64) s->steps[s->n] = step;
  s->n++;
  return s->n == s->stop ? laci_fail(err, LAC_BAD_VALUE, "enough") : LAC_OK;
}

/** Steps that a careful run does otherwise have their times all the same, one stage or several. */
static void careful_runs_have_times_too(void **state) {
  (void)state;
  lac_log_set(LAC_LOG_ERROR, NULL, NULL);
  for (int several = 0; several < 2; several++) {
    staged s = stage(cut_nets[0], (laci_engine_options){.threads = 2}, several ? &eager : &never);
    laci_buf *input = run_source(s.graph, s.graph->inputs[0]);
    const size_t n = laci_microbatches_step_count(s.stages);
    double *seconds = laci_alloc(n, sizeof *seconds);
    const laci_engine_watch watch = {.seconds = seconds};
    assert_int_equal(stages_of(&s) > 1, several);
    for (int64_t at = 0; at < input->count; at++) input->f[at] = at == 7 ? NAN : 1;
    for (size_t at = 0; at < n; at++) seconds[at] = -1;
    free_results(&s, run_stages(&s, &input, &watch, LAC_OK));
    for (size_t at = 0; at < n; at++) {
      const laci_engine_step step = laci_microbatches_step_info(s.stages, at);
      assert_true(seconds[at] >= 0);
      if (strcmp(step.op, "Conv") == 0) assert_true(seconds[at] > 0);
    }
    laci_free(seconds);
    laci_buf_destroy(input);
    staged_clear(&s);
  }
}

static void who_watches_sees_each_step_once(void **state) {
  (void)state;
  staged s = stage(cut_nets[0], (laci_engine_options){.threads = 1}, &eager);
  laci_buf *input = run_source(s.graph, s.graph->inputs[0]);
  const size_t n = laci_microbatches_step_count(s.stages);
  double begins[64] = {0}, seconds[64] = {0};
  seen all = {0}, some = {.stop = 2};
  assert_in_range(n, 4, 64);
  laci_engine_watch watch = {
      .begins = begins, .seconds = seconds, .after_step = note, .context = &all};
  free_results(&s, run_stages(&s, &input, &watch, LAC_OK));
  assert_int_equal(all.n, n);
  for (size_t at = 0; at < n; at++) {
    assert_int_equal(all.steps[at], at);
    assert_true(seconds[at] > 0);
    if (at > 0) assert_true(begins[at] >= begins[at - 1]);
  }
  watch.context = &some;
  free_results(&s, run_stages(&s, &input, &watch, LAC_BAD_VALUE));
  assert_int_equal(some.n, 2);
  laci_buf_destroy(input);
  staged_clear(&s);
}

static void memory_is_counted_and_may_be_short(void **state) {
  (void)state;
  laci_graph *graph;
  laci_microbatches *stages;
  lac_error err = {0};
  laci_budget budget = laci_budget_with_limit(UINT64_MAX);
  if (net_read(cut_nets[0], &graph, &err)) fail_msg("%s", err.text);
  laci_engine_options options = {.threads = 1, .budget = &budget};
  assert_int_equal(laci_microbatches_create(graph, &options, &eager, &stages, &err), LAC_OK);
  const laci_engine_memory planned = laci_microbatches_planned_memory(stages);
  const uint64_t ports = 6 * (3 * 24 * 20 + 5) * 4;
  assert_int_equal(budget.needed, planned.arena_bytes + planned.weight_bytes + ports);
  laci_microbatches_destroy(stages);
  const uint64_t needed = budget.needed;
  budget = laci_budget_with_limit(needed - 1);
  assert_int_equal(laci_microbatches_create(graph, &options, &eager, &stages, &err),
                   LAC_MEMORY_LIMIT);
  assert_null(stages);
  budget = laci_budget_with_limit(needed);
  assert_int_equal(laci_microbatches_create(graph, &options, &eager, &stages, &err), LAC_OK);
  assert_int_equal(budget.needed, needed);
  laci_microbatches_destroy(stages);
  int n = 0;
  for (lac_status st = LAC_NO_MEMORY; st; n++) {
    budget = laci_budget_with_limit(UINT64_MAX);
    laci_memory_fail_once(n + 1);
    st = laci_microbatches_create(graph, &options, &eager, &stages, &err);
    const bool pending = laci_memory_is_failure_pending();
    laci_memory_fail_once(0);
    if (st && st != LAC_NO_MEMORY) fail_msg("allocation %d: %d, %s", n + 1, (int)st, err.text);
    if (!st && !pending) st = LAC_NO_MEMORY; /* what could be done without it */
    laci_microbatches_destroy(stages);
  }
  assert_true(n > 50);
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_are_the_plain_engines),
      cmocka_unit_test(shapes_of_the_first_part_are_those_of_the_batch),
      cmocka_unit_test(bytes_are_rounded_after_the_cut),
      cmocka_unit_test(and_in_bf16),
      cmocka_unit_test(random_chains),
      cmocka_unit_test(what_fits_only_as_a_whole_is_one),
      cmocka_unit_test(what_mixes_images_is_not_cut_off),
      cmocka_unit_test(one_image_or_two_inputs_are_one_stage),
      cmocka_unit_test(who_looks_inside_or_has_many_threads_gets_one_stage),
      cmocka_unit_test(the_usual_rule_cuts_where_memory_is_waited_for),
      cmocka_unit_test(steps_count_all_micro_batches),
      cmocka_unit_test(who_watches_sees_each_step_once),
      cmocka_unit_test(careful_runs_have_times_too),
      cmocka_unit_test(memory_is_counted_and_may_be_short),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
