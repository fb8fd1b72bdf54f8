/* SPDX-License-Identifier: Apache-2.0
 * Convolutions by sparse kernels inside the fast engine: windows, batches and neighbours of all
 * kinds against the plain engine, in f32 and bf16, what the rule chooses, and the same bytes for
 * any threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/memory.h"
#include "base/timings.h"
#include "cpu/cpu.h"
#include "engine/engine.h"
#include "engine/cpu/native/costs/costs.h"
#include "support/engine_check.h"
#include "support/engine_plan.h"
#include "support/own_costs.h"
#include "support/programs.h"

enum { TEXT = 4096 };

static const int batches[] = {1, 16, 3, 19, 31};
enum { N_BATCHES = sizeof batches / sizeof *batches };

/* An emulator (tools/check_aarch64) translates all code that is generated before it runs once. */
static int n_batches(void) { return is_emulated() ? 2 : N_BATCHES; }

/* All of a network by sparse kernels that can be. */
static void check_sparse(const char *text) {
  check_as(text, (expectation){.tolerance = 1e-5, .plain = -1});
}

static void windows_of_all_kinds(void **state) {
  static const char *const convs[] = {
      "stored w 7x5x3x3\ny = Conv(x, w) pads=1,1,1,1\n",
      "stored w 7x5x3x3\ny = Conv(x, w) pads=1,1,1,1 strides=2,2\n",
      "stored w 7x5x3x3\ny = Conv(x, w) pads=0,2,1,0 strides=1,3\n",
      "stored w 33x5x1x1\nstored b 33\ny = Conv(x, w, b)\n",
      "stored w 33x5x1x1\ny = Conv(x, w) strides=2,2\n",
      "stored w 4x5x1x1\ny = Conv(x, w) pads=1,0,0,2\n",
      "stored w 4x5x7x7\ny = Conv(x, w) pads=3,3,3,3 strides=2,2\n",
      "stored w 4x5x5x1\ny = Conv(x, w) pads=2,0,2,0\n",
      "stored w 4x5x3x3\ny = Conv(x, w) dilations=2,3 pads=2,3,2,3\n",
      "stored w 4x5x3x3\ny = Conv(x, w) auto_pad=\"SAME_LOWER\" strides=2,2\n",
      "stored w 5x1x3x3\ny = Conv(x, w) group=5 pads=1,1,1,1\n",
      "stored w 10x1x3x3\ny = Conv(x, w) group=5\n",
      "stored w 5x1x3x3\ny = Conv(x, w) group=5 pads=1,1,1,1 strides=2,2\n",
      "stored w 5x1x5x5\nstored b 5\ny = Conv(x, w, b) group=5 pads=2,2,2,2 strides=2,1\n",
      "stored w 5x1x3x4\ny = Conv(x, w) group=5 dilations=2,3 pads=2,3,2,4 strides=1,2\n",
      "stored w 5x1x3x3\ny = Conv(x, w) group=5 strides=3,3\n",
      "stored w 4x5x3x3\ny = Conv(x, w)\n",
      "stored w 4x5x3x3\ny = Conv(x, w) pads=1,1,1,1 strides=7,9\n",
      "stored w 4x5x3x3\ny = Conv(x, w) pads=90,80,70,60 strides=50,40\n",
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof convs / sizeof *convs; at++) {
    for (int b = 0; b < n_batches(); b++) {
      (void)snprintf(text, sizeof text, "input x %dx5x11x13\n%soutput y\n", batches[b], convs[at]);
      check_sparse(text);
    }
  }
}

static void one_axis(void **state) {
  char text[TEXT];
  (void)state;
  for (int b = 0; b < n_batches(); b++) {
    (void)snprintf(text, sizeof text,
                   "input x %dx6x37\nstored w 8x3x5\nstored v 9x8x1\nstored u 9x9x3\n"
                   "a = Conv(x, w) group=2 pads=2,2\nr = Relu(a)\nb = Conv(r, v)\n"
                   "c = Conv(b, u) strides=2\ny = Clip(c, _, _)\noutput y\n",
                   batches[b]);
    check_sparse(text);
  }
}

/* Residuals in place and not, values that dense operators and outputs read, too, windows of one
 * pixel and more over the same value, CHW without a border next to CHW with one. */
static void neighbours_of_all_kinds(void **state) {
  static const char *const nets[] = {
      "a = Conv(x, p)\nra = Relu(a)\nb = Conv(ra, w) pads=1,1,1,1\nrb = Relu(b)\nc = Conv(rb, p)\n"
      "s = Add(c, x)\ny = Relu(s)\n",
      "a = Conv(x, p)\nb = Conv(a, w) pads=1,1,1,1\ns = Add(a, b)\nd = Conv(s, p)\nt = Add(d, s)\n"
      "u = Conv(t, w) pads=1,1,1,1\ny = Add(u, t)\noutput s\n",
      "a = Conv(x, p)\nm = MaxPool(a) kernel_shape=3,3 pads=1,1,1,1 strides=1,1\n"
      "b = Conv(m, p)\nc = Conv(a, w) pads=1,1,1,1\ny = Concat(b, c, a) axis=1\n",
      "a = Conv(x, p)\nc1 = Clip(a, lo, hi)\nb = Conv(c1, w)\nc = Conv(b, w) pads=2,2,2,2\n"
      "s = Add(c, c1)\nr = Relu(s)\ny = Conv(r, p) strides=2,2\n",
      "a = Conv(x, p)\nb = Conv(a, w) strides=2,2 pads=1,1,1,1\nc = Conv(a, p) strides=2,2\n"
      "s = Add(b, c)\nr = Relu(s)\nd = Conv(r, w) pads=1,1,1,1\ny = Add(d, r)\n",
      "a = Conv(x, p)\ns = Sigmoid(a)\nh = Mul(a, s)\nb = Conv(h, w) pads=1,1,1,1\n"
      "g = GlobalAveragePool(b)\nf = Flatten(g)\nstored fc 4x12\ny = Gemm(f, fc) transB=1\n",
      "a = Conv(x, p)\nb = Conv(a, p)\ny = Add(b, b)\n",
      /* Windows of one channel: between pixels, strided, by themselves, added to. */
      "a = Conv(x, p)\nc1 = Clip(a, lo, hi)\nb = Conv(c1, v, e) group=12 pads=1,1,1,1\n"
      "c2 = Clip(b, lo, hi)\nc = Conv(c2, p)\ny = Add(c, x)\n",
      "a = Conv(x, p)\nb = Conv(a, v) group=12 pads=1,1,1,1 strides=2,2\ng = Sigmoid(b)\n"
      "h = Mul(b, g)\nc = Conv(h, p)\nk = Conv(c, v) group=12 pads=1,1,1,1\ny = Conv(k, p)\n",
      "a = Conv(x, v) group=12 pads=1,1,1,1\nb = Conv(a, v) group=12 pads=1,1,1,1\n"
      "s = Add(a, b)\nr = Relu(s)\ny = Conv(r, w) pads=1,1,1,1\noutput b\n",
      "a = Conv(x, p)\nb = Conv(a, v) group=12 pads=1,1,1,1\ns = Add(b, a)\nr = Relu(s)\n"
      "m = MaxPool(r) kernel_shape=2,2 strides=2,2\nc = Conv(m, v) group=12 pads=1,1,1,1\n"
      "g = GlobalAveragePool(c)\nh = Conv(g, p)\nf = Mul(c, h)\ny = Conv(f, p)\n",
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    for (int b = 0; b < n_batches(); b++) {
      (void)snprintf(text, sizeof text,
                     "input x %dx12x9x10\nstored p 12x12x1x1\nstored w 12x12x3x3\n"
                     "stored v 12x1x3x3\nstored e 12\n"
                     "stored lo \"\" f32 = -0.5\nstored hi \"\" f32 = 2\n%soutput y\n",
                     batches[b], nets[at]);
      check_sparse(text);
    }
  }
}

/* Normalized in a reorder to a native layout or not: windows of all kinds, sums, other readers,
 * over values of dense operators and of layers, in blocks and row-major. */
static void batch_norms_before_layers(void **state) {
  static const char *const nets[] = {
      "a = Conv(r, p)\nb = Conv(a, w) pads=1,1,1,1\nc = Concat(x, b) axis=1\n"
      "d = BatchNormalization(c, g2, h2, m2, v2)\ne = Relu(d)\ny = Conv(e, q)\n",
      "a = Conv(n, p)\nb = Conv(n, w) pads=1,1,1,1\nc = Conv(r, p)\nd = Add(a, b)\n"
      "y = Add(c, d)\n",
      "y = Conv(n, p)\n",
      "a = Conv(r, w) pads=1,1,1,1\ny = Add(a, r)\n",
      "y = Conv(r, w) pads=1,1,1,1\noutput r\n",
      "a = Conv(r, p) strides=2,2\nb = Conv(r, w) strides=2,2 pads=1,1,1,1\ny = Add(a, b)\n",
      "a = Conv(r, p) strides=2,2\nb = Conv(r, w) pads=1,1,1,1\ny = Mul(b, b)\noutput a\n",
      "a = Conv(x, p)\nb = BatchNormalization(a, g, h, m, v)\nc = Relu(b)\n"
      "d = Conv(c, w) pads=1,1,1,1\ny = Add(d, a)\n",
      "c = Clip(n, lo, _)\ny = Conv(c, p)\n",
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    for (int b = 0; b < n_batches(); b++) {
      const int c = b % 2 ? 20 : 16;
      (void)snprintf(text, sizeof text,
                     "input x %dx%dx9x10\nstored p %dx%dx1x1\nstored w %dx%dx3x3\n"
                     "stored q 16x%dx1x1\nstored g %d\nstored h %d\nstored m %d\n"
                     "stored v %d positive\nstored g2 %d\nstored h2 %d\nstored m2 %d\n"
                     "stored v2 %d positive\nstored lo \"\" f32 = -0.5\n"
                     "n = BatchNormalization(x, g, h, m, v)\nr = Relu(n)\n%soutput y\n",
                     batches[b], c, c, c, c, c, 2 * c, c, c, c, c, 2 * c, 2 * c, 2 * c, 2 * c,
                     nets[at]);
      check_sparse(text);
    }
  }
}

static void batch_norm_of_one_axis(void **state) {
  char text[TEXT];
  (void)state;
  for (int b = 0; b < n_batches(); b++) {
    (void)snprintf(text, sizeof text,
                   "input x %dx6x37\nstored w 8x6x5\nstored g 6\nstored h 6\nstored m 6\n"
                   "stored v 6 positive\nn = BatchNormalization(x, g, h, m, v)\n"
                   "y = Conv(n, w) pads=2,2\noutput y\n",
                   batches[b]);
    check_sparse(text);
  }
}

/* Products with a constant matrix, alone, one after the other, and around operators of oneDNN's. */
static void products_of_rows(void **state) {
  static const char *const nets[] = {
      "stored w 24x12\ny = Gemm(x, w) transB=1 alpha=0.5\n",
      "stored w 12x23\nstored b 23\ny = Gemm(x, w, b) beta=2.0\n",
      "stored w 12x23\nstored b 1\na = Gemm(x, w, b)\ny = Relu(a)\n",
      "stored w 12x33\nstored b 33\nstored v 33x12\na = MatMul(x, w)\nc = Add(a, b)\ng = Gelu(c)\n"
      "d = MatMul(g, v)\ns = Add(d, x)\nn = LayerNormalization(s, k, l) axis=-1\n"
      "y = MatMul(n, w)\nstored k 12\nstored l 12\n",
      "stored w 12x12\na = MatMul(x, w)\nb = MatMul(x, w)\ny = Mul(a, b)\noutput a\n",
  };
  static const char *const inputs[] = {"17x12", "5x12", "48x12"};
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    for (size_t in = 0; in < sizeof inputs / sizeof *inputs; in++) {
      (void)snprintf(text, sizeof text, "input x %s\n%soutput y\n", inputs[in], nets[at]);
      check_sparse(text);
    }
  }
  check_sparse(
      "input x 3x7x12\nstored w 12x20\nstored v 20x9\na = MatMul(x, w)\n"
      "y = MatMul(a, v)\noutput y\n");
}

/* A value that is pixels to one layer and rows to the next. */
static void rows_and_pixels_of_one_value(void **state) {
  (void)state;
  check_sparse(
      "input x 2x6x14\nstored w 8x6x3\nstored v 14x10\na = Conv(x, w) pads=1,1\n"
      "y = MatMul(a, v)\noutput y\n");
}

/* What follows sums: every function that is fused, before and after a residual. */
static void functions_of_all_kinds(void **state) {
  static const char *const functions[] = {
      "f = Relu(a)\n",
      "f = LeakyRelu(a) alpha=0.1\n",
      "f = Elu(a) alpha=0.7\n",
      "f = Sigmoid(a)\n",
      "f = Tanh(a)\n",
      "f = HardSigmoid(a) alpha=0.2 beta=0.4\n",
      "f = HardSwish(a)\n",
      "s1 = Sigmoid(a)\nf = Mul(a, s1)\n",
      "f = Gelu(a)\n",
      "f = Gelu(a) approximate=\"tanh\"\n",
      "c1 = Clip(a, lo, hi)\nf = Sigmoid(c1)\n",
      "r1 = Relu(a)\nf = Clip(r1, lo, hi)\n",
      "f = Exp(a)\n",
      "f = Softplus(a)\n",
  };
  static const char *const ends[] = {"y = Identity(f)\n", "y = Add(f, x)\n",
                                     "g = Add(f, x)\ny = Relu(g)\n"};
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof functions / sizeof *functions; at++) {
    for (int end = 0; end < 3; end++) {
      for (int batch = 2; batch <= 16; batch += 14) {
        (void)snprintf(text, sizeof text,
                       "input x %dx12x9x10\nstored w 12x12x3x3\nstored lo \"\" f32 = -0.5\n"
                       "stored hi \"\" f32 = 2\na = Conv(x, w) pads=1,1,1,1\n%s%soutput y\n",
                       batch, functions[at], ends[end]);
        check_sparse(text);
      }
    }
  }
}

/* ---- What is chosen ---- */

/* Keeps two of four input channels of every weight with spatial axes. */
static void prune(laci_graph *graph) {
  for (int s = 0; s < graph->n_stored; s++) {
    laci_stored *stored = &graph->stored[s];
    if (stored->shape.rank != 4) continue;
    const int64_t taps = stored->shape.dims[2] * stored->shape.dims[3];
    float *w = laci_alloc(stored->size_bytes, 1);
    memcpy(w, stored->bytes, stored->size_bytes);
    for (int64_t at = 0; at < laci_shape_count(&stored->shape); at++) {
      const int64_t channel = at / taps % stored->shape.dims[1];
      const int64_t row = at / taps / stored->shape.dims[1];
      if ((channel + row + at % taps) % 4 < 2) w[at] = 0;
    }
    if (stored->owned) laci_free(stored->owned);
    stored->owned = (uint8_t *)w;
    stored->bytes = stored->owned;
  }
}

enum { N_BLOCKS = 4, N_LAYERS = 3 * N_BLOCKS };

static laci_graph *pruned_graph(void) {
  char text[TEXT];
  laci_graph *graph;
  lac_error err = {0};
  size_t used = (size_t)snprintf(text, sizeof text,
                                 "input x 2x256x28x28\nstored p 64x256x1x1\nstored w 64x64x3x3\n"
                                 "stored q 256x64x1x1\nstored b 64\ns0 = Relu(x)\n");
  for (int k = 0; k < N_BLOCKS; k++) {
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "a%d = Conv(s%d, p, b)\nra%d = Relu(a%d)\n"
                             "c%d = Conv(ra%d, w) pads=1,1,1,1\nrc%d = Relu(c%d)\n"
                             "d%d = Conv(rc%d, q)\nt%d = Add(d%d, s%d)\ns%d = Relu(t%d)\n",
                             k, k, k, k, k, k, k, k, k, k, k, k, k, k + 1, k);
  }
  (void)snprintf(text + used, sizeof text - used, "output s%d\n", N_BLOCKS);
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  prune(graph);
  return graph;
}

enum { N_JOINED = 3, N_JOINED_LAYERS = 2 * N_JOINED };

/* DenseNet's: what all layers before gave, joined and normalized. */
static laci_graph *joining_graph(void) {
  char text[TEXT];
  laci_graph *graph;
  lac_error err = {0};
  size_t used = (size_t)snprintf(text, sizeof text, "input x 1x128x28x28\ns0 = Relu(x)\n");
  for (int k = 0; k < N_JOINED; k++) {
    const int c = 128 + 32 * k;
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "stored p%d 128x%dx1x1\nstored w%d 32x128x3x3\nstored g%d %d\n"
                             "stored h%d %d\nstored m%d %d\nstored v%d %d positive\n"
                             "n%d = BatchNormalization(s%d, g%d, h%d, m%d, v%d)\nr%d = Relu(n%d)\n"
                             "a%d = Conv(r%d, p%d)\nb%d = Relu(a%d)\n"
                             "c%d = Conv(b%d, w%d) pads=1,1,1,1\ns%d = Concat(s%d, c%d) axis=1\n",
                             k, c, k, k, c, k, c, k, c, k, c, k, k, k, k, k, k, k, k, k, k, k, k, k,
                             k, k, k, k + 1, k, k);
  }
  (void)snprintf(text + used, sizeof text - used, "output s%d\n", N_JOINED);
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  prune(graph);
  return graph;
}

enum { N_NARROW = 3 };

/* MobileNet's: wide between windows of one channel, narrow elsewhere. */
static laci_graph *narrow_graph(int batch) {
  char text[TEXT];
  laci_graph *graph;
  lac_error err = {0};
  size_t used = (size_t)snprintf(text, sizeof text,
                                 "input x %dx64x14x14\nstored p 384x64x1x1\nstored d 384x1x3x3\n"
                                 "stored q 64x384x1x1\nstored lo \"\" f32 = 0\n"
                                 "stored hi \"\" f32 = 6\ns0 = Relu(x)\n",
                                 batch);
  for (int k = 0; k < N_NARROW; k++) {
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "a%d = Conv(s%d, p)\nra%d = Clip(a%d, lo, hi)\n"
                             "b%d = Conv(ra%d, d) group=384 pads=1,1,1,1\n"
                             "rb%d = Clip(b%d, lo, hi)\nc%d = Conv(rb%d, q)\ns%d = Add(c%d, s%d)\n",
                             k, k, k, k, k, k, k, k, k, k, k + 1, k, k);
  }
  (void)snprintf(text + used, sizeof text - used, "output s%d\n", N_NARROW);
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  prune(graph);
  return graph;
}

static laci_engine *plan_with(const laci_graph *graph, laci_engine_options options) {
  laci_engine *engine;
  lac_error err = {0};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s", err.text);
  return engine;
}

static laci_engine *plan_of(const laci_graph *graph, int threads, bool dense_only) {
  return plan_with(graph, (laci_engine_options){.threads = threads, .dense_only = dense_only});
}

static int sparse_steps(const laci_engine *engine) {
  int n = 0;
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    n += laci_engine_step_info(engine, at).sparse;
  }
  return n;
}

/* By sparse kernels, or between these by Winograd's algorithm. */
static int our_steps(const laci_engine *engine) {
  return sparse_steps(engine) + planned_steps(engine, "winograd-3x3");
}

static int planned_sparse(const laci_graph *graph, bool dense_only) {
  laci_engine *engine = plan_of(graph, 1, dense_only);
  const int n = our_steps(engine);
  laci_engine_destroy(engine);
  return n;
}

static void zeros_are_found_and_left_out(void **state) {
  laci_graph *graph = pruned_graph();
  (void)state;
  const int n = planned_sparse(graph, false);
  assert_int_equal(
      n, laci_cpu_has_avx512f() || laci_cpu_level_in_force() == LACI_CPU_AVX2 ? N_LAYERS : 0);
  assert_int_equal(planned_sparse(graph, true), 0);
  assert_int_equal(setenv("LAC_SPARSE", "0", 1), 0);
  assert_int_equal(planned_sparse(graph, false), 0);
  assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  laci_graph_destroy(graph);
}

static int count_steps(const laci_engine *engine, const char *op, const char *kernel) {
  int n = 0;
  for (size_t at = 0; at < laci_engine_step_count(engine); at++) {
    const laci_engine_step step = laci_engine_step_info(engine, at);
    n += strcmp(step.op, op) == 0 && strcmp(step.kernel, kernel) == 0;
  }
  return n;
}

/* Counts steps whose kernels multiply kept weights alone, of which all may be kept. */
static int count_products(const laci_engine *engine) {
  int n = 0;
  for (size_t at = 0; at < laci_engine_step_count(engine); at++)
    n += strncmp(laci_engine_step_info(engine, at).kernel, "sparse-", strlen("sparse-")) == 0;
  return n;
}

/* Was it measured on a processor like this one how long dense kernels take for groups of few
 * channels? */
static bool are_groups_measured(void) {
  laci_costs costs;
  lac_error err = {0};
  if (laci_costs_load(&costs, &err)) fail_msg("%s", err.text);
  return costs.tables[LACI_COSTS_f32]->figures[LACI_COSTS_f32].by_gemm > 0;
}

/* With all of their weights: by the rule where it was measured; of two blocks, dense. Groups of one
 * block take as long by both, and the figures of a table may say either. */
static void groups_of_few_channels_need_no_zeros(void **state) {
  static const int few[] = {4, 8, 16}, block = 8;
  const int known = are_groups_measured() && laci_cpu_level_in_force() != LACI_CPU_ANY;
  (void)state;
  for (int at = 0; at < 3; at++) {
    char text[TEXT];
    laci_graph *graph;
    lac_error err = {0};
    (void)snprintf(text, sizeof text,
                   "input x 1x128x40x40\nstored w 128x%dx3x3\na = Relu(x)\n"
                   "b = Conv(a, w) pads=1,1,1,1 group=%d\nc = Relu(b)\noutput c\n",
                   few[at], 128 / few[at]);
    check_as(text, (expectation){.tolerance = 2e-5, .plain = -1});
    if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
    laci_engine *engine = plan_of(graph, 1, false);
    if (few[at] != block) assert_int_equal(count_products(engine), few[at] < block ? known : 0);
    assert_int_equal(sparse_steps(engine), 0);
    laci_engine_destroy(engine);
    laci_graph_destroy(graph);
  }
}

/* With all of their weights, where the vectors are AVX2's: eight results by large windows, or
 * fewer. */
static void convolutions_of_few_results_need_no_zeros(void **state) {
  static const struct {
    const char *input, *weight, *attributes;
    int products;
  } cases[] = {
      {"1x8x40x60", "8x8x3x39", "pads=1,19,1,19", 1}, {"1x8x60x80", "1x8x5x5", "pads=2,2,2,2", 1},
      {"1x1x1x9000", "1x1x1x256", "strides=1,2", 1},  {"2x33x40x40", "1x33x3x3", "pads=1,1,1,1", 1},
      {"1x64x40x40", "3x64x3x3", "pads=1,1,1,1", 1},  {"1x8x40x40", "16x8x5x5", "pads=2,2,2,2", 0},
      {"1x16x40x40", "8x16x3x3", "pads=1,1,1,1", 0},
  };
  const int measured = laci_cpu_level_in_force() == LACI_CPU_AVX2;
  (void)state;
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    char text[TEXT];
    laci_graph *graph;
    lac_error err = {0};
    (void)snprintf(text, sizeof text,
                   "input x %s\nstored w %s\na = Relu(x)\nb = Conv(a, w) %s\nc = Sigmoid(b)\n"
                   "output c\n",
                   cases[at].input, cases[at].weight, cases[at].attributes);
    check_as(text, (expectation){.tolerance = 2e-5, .plain = -1});
    if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
    laci_engine *engine = plan_of(graph, 1, false);
    if (count_products(engine) != cases[at].products * measured) fail_msg("another plan: %s", text);
    assert_int_equal(sparse_steps(engine), 0);
    laci_engine_destroy(engine);
    laci_graph_destroy(graph);
  }
}

/* By the rule with AVX-512; with AVX2 such norms cost about what they save. */
static void norms_are_the_reorders_of_layers(void **state) {
  laci_graph *graph = joining_graph();
  const bool rule = laci_cpu_has_avx512f();
  (void)state;
  if (!rule) assert_int_equal(setenv("LAC_SPARSE", "all", 1), 0);
  laci_engine *engine = plan_of(graph, 1, false);
  assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  if (rule) assert_int_equal(our_steps(engine), N_JOINED_LAYERS);
  assert_int_equal(count_steps(engine, "BatchNormalization", "native reorder"), N_JOINED);
  /* New parts come in native layouts, and the first one's input is reordered. */
  assert_int_equal(count_steps(engine, "Concat", "own"), N_JOINED);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

/* They skip no zeros, and by themselves they gain nothing. */
static void windows_of_one_channel_come_along(void **state) {
  laci_graph *graph = narrow_graph(16), *alone;
  const bool chooses = laci_cpu_has_avx512f() || laci_cpu_level_in_force() == LACI_CPU_AVX2;
  lac_error err = {0};
  (void)state;
  laci_engine *engine = plan_of(graph, 1, false);
  assert_int_equal(sparse_steps(engine), chooses ? 2 * N_NARROW : 0);
  assert_int_equal(planned_steps(engine, "depthwise-3x3 "), chooses ? N_NARROW : 0);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
  if (net_read("input x 16x64x14x14\nstored d 64x1x3x3\ny = Conv(x, d) group=64\noutput y\n",
               &alone, &err)) {
    fail_msg("%s", err.text);
  }
  engine = plan_of(alone, 1, false);
  assert_int_equal(planned_steps(engine, "depthwise-"), 0);
  laci_engine_destroy(engine);
  laci_graph_destroy(alone);
}

static float *result_of(laci_engine *engine, size_t *bytes) {
  const laci_engine_port *in, *out;
  lac_error err = {0};
  assert_int_equal(laci_engine_inputs(engine, &in), 1);
  assert_int_equal(laci_engine_outputs(engine, &out), 1);
  float *x = laci_alloc(in->size_bytes, 1), *y = laci_alloc(out->size_bytes, 1);
  for (size_t at = 0; at < in->size_bytes / sizeof *x; at++)
    x[at] = (float)net_number("x", (int64_t)at);
  *bytes = out->size_bytes;
  if (laci_engine_run(engine, (const void *[]){x}, (void *[]){y}, &err)) fail_msg("%s", err.text);
  laci_free(x);
  return y;
}

static void expect_same_bytes(const laci_graph *graph, bool bf16, int n_sparse) {
  size_t bytes = 0;
  float *first = NULL;
  assert_int_equal(setenv("LAC_SPARSE", "all", 1), 0);
  for (int threads = 1; threads <= 3; threads++) {
    laci_engine *engine = plan_with(graph, (laci_engine_options){.threads = threads, .bf16 = bf16});
    assert_int_equal(sparse_steps(engine), n_sparse);
    float *y = result_of(engine, &bytes);
    if (first) assert_memory_equal(first, y, bytes);
    if (first) laci_free(y);
    else first = y;
    laci_engine_destroy(engine);
  }
  assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  laci_free(first);
}

static void threads_do_not_change_a_byte(void **state) {
  laci_graph *blocks = pruned_graph(), *joining = joining_graph();
  laci_graph *narrow[] = {narrow_graph(2), narrow_graph(16)};
  (void)state;
  for (int at = 0; at < 2; at++) {
    expect_same_bytes(narrow[at], false, 2 * N_NARROW);
    laci_graph_destroy(narrow[at]);
  }
  expect_same_bytes(blocks, false, N_LAYERS);
  expect_same_bytes(joining, false, N_JOINED_LAYERS);
  laci_graph_destroy(blocks);
  laci_graph_destroy(joining);
}

/* ---- In bf16 ---- */

static void need_bf16(void) {
  if (!laci_cpu_has_avx512bf16()) skip();
}

/* All by sparse kernels that can be: so many layers, whose results are no outputs. */
static void check_pairs(const char *text, int n_sparse) {
  laci_graph *graph;
  lac_error err = {0};
  assert_int_equal(setenv("LAC_SPARSE", "all", 1), 0);
  check_plan(text, (expectation){.tolerance = 0.03, .bf16 = true, .plain = -1});
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  laci_engine *engine = plan_with(graph, (laci_engine_options){.threads = 1, .bf16 = true});
  assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  if (sparse_steps(engine) != n_sparse) {
    fail_msg("%d sparse layers, not %d:\n%s%s", sparse_steps(engine), n_sparse, text,
             laci_engine_plan_text(engine));
  }
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

static void windows_of_pairs(void **state) {
  static const struct {
    const char *conv;
    int n_sparse;
  } convs[] = {
      {"stored w 8x6x3x3\na = Conv(x, w) pads=1,1,1,1\n", 1},
      {"stored w 8x6x3x3\na = Conv(x, w) pads=1,1,1,1 strides=2,2\n", 1},
      {"stored w 34x6x1x1\nstored b 34\na = Conv(x, w, b)\n", 1},
      {"stored w 34x6x1x1\na = Conv(x, w) strides=2,2\n", 1},
      {"stored w 4x6x5x1\na = Conv(x, w) pads=2,0,2,0\n", 1},
      {"stored w 4x6x3x3\na = Conv(x, w) dilations=2,3 pads=2,3,2,3\n", 1},
      {"stored w 12x2x3x3\na = Conv(x, w) group=3\n", 1},
      {"stored w 7x6x3x3\na = Conv(x, w)\n", 0},
      {"stored w 6x3x3x3\na = Conv(x, w) group=2\n", 0},
  };
  char text[TEXT];
  (void)state;
  need_bf16();
  for (size_t at = 0; at < sizeof convs / sizeof *convs; at++) {
    for (int b = 0; b < n_batches(); b++) {
      (void)snprintf(text, sizeof text,
                     "input x %dx6x11x13\n%sy = MaxPool(a) kernel_shape=1,1\noutput y\n",
                     batches[b], convs[at].conv);
      check_pairs(text, convs[at].n_sparse);
    }
  }
}

static void neighbours_in_pairs(void **state) {
  static const struct {
    const char *net;
    int n_sparse;
  } nets[] = {
      {"a = Conv(x, p)\nra = Relu(a)\nb = Conv(ra, w) pads=1,1,1,1\nrb = Relu(b)\nc = Conv(rb, p)\n"
       "s = Add(c, x)\nr = Relu(s)\ny = MaxPool(r) kernel_shape=3,3\n",
       3},
      {"a = Conv(x, p)\nc1 = Clip(a, lo, hi)\nb = Conv(c1, w)\nc = Conv(b, w) pads=2,2,2,2\n"
       "s = Add(c, c1)\nr = Relu(s)\nd = Conv(r, p) strides=2,2\ny = MaxPool(d) kernel_shape=2,2\n",
       4},
      {"a = Conv(x, p)\ng = Sigmoid(a)\nh = Mul(a, g)\nb = Conv(h, w) pads=1,1,1,1\n"
       "t = Tanh(b)\ns = Add(t, h)\ny = MaxPool(s) kernel_shape=2,2\n",
       2},
      {"a = Conv(x, p)\nm = MaxPool(a) kernel_shape=3,3 pads=1,1,1,1 strides=1,1\n"
       "b = Conv(m, p)\nc = Conv(a, w) pads=1,1,1,1\ny = Concat(b, c, a) axis=1\n",
       3},
      {"a = Conv(x, p)\nb = Conv(a, w) pads=1,1,1,1\ny = Conv(b, p)\noutput a\n", 1},
  };
  char text[TEXT];
  (void)state;
  need_bf16();
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    for (int b = 0; b < n_batches(); b++) {
      (void)snprintf(text, sizeof text,
                     "input x %dx12x9x10\nstored p 12x12x1x1\nstored w 12x12x3x3\n"
                     "stored lo \"\" f32 = -0.5\nstored hi \"\" f32 = 2\n%soutput y\n",
                     batches[b], nets[at].net);
      check_pairs(text, nets[at].n_sparse);
    }
  }
}

static void rows_of_pairs(void **state) {
  (void)state;
  need_bf16();
  check_pairs(
      "input x 3x7x12\nstored w 12x20\nstored v 20x10\nstored b 20\na = MatMul(x, w)\n"
      "c = Add(a, b)\ng = Gelu(c)\nd = MatMul(g, v)\ny = Softmax(d)\noutput y\n",
      2);
  check_pairs(
      "input x 17x12\nstored w 24x12\na = Gemm(x, w) transB=1 alpha=0.5\n"
      "y = Softmax(a)\noutput y\n",
      1);
}

/* By the costs of a Zen 4, since dense kernels that use AMX are faster. The last layer's result is
 * an output. */
static void pairs_are_chosen_and_keep_their_bytes(void **state) {
  char before[64];
  (void)state;
  need_bf16();
  (void)snprintf(before, sizeof before, "%s", getenv("LAC_COSTS") ? getenv("LAC_COSTS") : "");
  assert_int_equal(setenv("LAC_COSTS", "zen4", 1), 0);
  laci_graph *graph = pruned_graph();
  laci_engine *engine = plan_with(graph, (laci_engine_options){.threads = 1, .bf16 = true});
  assert_int_equal(sparse_steps(engine), N_LAYERS - 1);
  laci_engine_destroy(engine);
  expect_same_bytes(graph, true, N_LAYERS - 1);
  laci_graph_destroy(graph);
  assert_int_equal(before[0] ? setenv("LAC_COSTS", before, 1) : unsetenv("LAC_COSTS"), 0);
}

/* Where no code may be generated for pairs, the compiled kernel has the same bits. */
static void compiled_pairs_have_the_same_bytes(void **state) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  size_t bytes;
  (void)state;
  need_bf16();
  laci_graph *graph = pruned_graph();
  assert_int_equal(setenv("LAC_SPARSE", "all", 1), 0);
  laci_engine *engine = plan_with(graph, (laci_engine_options){.threads = 1, .bf16 = true});
  float *want = result_of(engine, &bytes);
  laci_engine_destroy(engine);
  (void)laci_cpu_limit_level(LACI_CPU_AVX2);
  engine = plan_with(graph, (laci_engine_options){.threads = 2, .bf16 = true});
  assert_non_null(strstr(laci_engine_plan_text(engine), "compiled"));
  float *got = result_of(engine, &bytes);
  (void)laci_cpu_limit_level(start);
  assert_memory_equal(got, want, bytes);
  assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  laci_free(want);
  laci_free(got);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

/* ---- Tuning ---- */

static laci_timings *timings_at(const char *path) {
  laci_timings *timings;
  lac_error err;
  assert_int_equal(laci_timings_open(path, "here", &timings, &err), LAC_OK);
  return timings;
}

/* Multiplies what sparse kernels and the reorders around them took. */
static void change_file(const char *path, double factor) {
  json_t *root = json_load_file(path, 0, NULL), *seconds = json_object_get(root, "seconds"), *value;
  const char *name;
  int n = 0;
  json_object_foreach(seconds, name, value) {
    if (!strstr(name, ", sparse") && !strstr(name, ", reorder")) continue;
    assert_int_equal(json_real_set(value, json_real_value(value) * factor), 0);
    n++;
  }
  assert_int_equal(n, N_LAYERS / N_BLOCKS + 1); /* blocks are alike; and reorders */
  assert_int_equal(json_dump_file(root, path, 0), 0);
  json_decref(root);
}

static int tuned_sparse(const laci_graph *graph, laci_timings *timings) {
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_options options = {
      .threads = 1, .tuning = LACI_TUNING_QUICK, .timings = timings};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s", err.text);
  const int n = sparse_steps(engine);
  laci_engine_destroy(engine);
  return n;
}

/* What was timed decides: kernels that took no time win, those that took very long do not. Where no
 * code is generated, there is nothing to choose. */
static void times_choose_where_they_are_known(void **state) {
  char path[] = "/tmp/lacuna-tune-XXXXXX";
  lac_error err;
  (void)state;
  if (laci_cpu_level_in_force() == LACI_CPU_ANY) skip();
  laci_graph *graph = pruned_graph();
  const int file = mkstemp(path);
  assert_true(file >= 0);
  assert_int_equal(close(file), 0);
  laci_timings *timings = timings_at(path);
  (void)tuned_sparse(graph, timings);
  assert_int_equal(laci_timings_save(timings, &err), LAC_OK);
  laci_timings_close(timings);
  static const struct {
    double factor;
    int want;
  } cases[] = {{1e-9, N_LAYERS}, {1e18, 0}};
  for (int at = 0; at < 2; at++) {
    change_file(path, cases[at].factor);
    timings = timings_at(path);
    const int n = tuned_sparse(graph, timings);
    laci_timings_close(timings);
    assert_int_equal(n, cases[at].want);
  }
  assert_true(tuned_sparse(graph, NULL) <= N_LAYERS);
  (void)unlink(path);
  laci_graph_destroy(graph);
}

/* A row without a weight is its bias; so is a layer of zeros only. */
static void nothing_may_be_kept(void **state) {
  laci_graph *graph = pruned_graph();
  laci_engine *dense = plan_of(graph, 1, true);
  size_t bytes = 0;
  (void)state;
  for (int s = 0; s < graph->n_stored; s++) {
    laci_stored *stored = &graph->stored[s];
    if (stored->shape.rank == 4 && stored->shape.dims[2] == 3)
      memset(stored->owned, 0, stored->size_bytes);
    if (stored->shape.rank == 4 && stored->shape.dims[0] == 256)
      memset(stored->owned, 0, stored->size_bytes / 2);
  }
  laci_engine_destroy(dense);
  dense = plan_of(graph, 1, true);
  assert_int_equal(setenv("LAC_SPARSE", "all", 1), 0);
  laci_engine *sparse = plan_of(graph, 1, false);
  assert_int_equal(unsetenv("LAC_SPARSE"), 0);
  float *want = result_of(dense, &bytes), *got = result_of(sparse, &bytes);
  for (size_t at = 0; at < bytes / sizeof *want; at++) {
    assert_true(number_close((double)got[at], (double)want[at], 1e-4));
  }
  laci_free(want);
  laci_free(got);
  laci_engine_destroy(dense);
  laci_engine_destroy(sparse);
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(windows_of_all_kinds),
      cmocka_unit_test(one_axis),
      cmocka_unit_test(neighbours_of_all_kinds),
      cmocka_unit_test(batch_norms_before_layers),
      cmocka_unit_test(batch_norm_of_one_axis),
      cmocka_unit_test(products_of_rows),
      cmocka_unit_test(rows_and_pixels_of_one_value),
      cmocka_unit_test(functions_of_all_kinds),
      cmocka_unit_test(zeros_are_found_and_left_out),
      cmocka_unit_test(groups_of_few_channels_need_no_zeros),
      cmocka_unit_test(convolutions_of_few_results_need_no_zeros),
      cmocka_unit_test(norms_are_the_reorders_of_layers),
      cmocka_unit_test(windows_of_one_channel_come_along),
      cmocka_unit_test(threads_do_not_change_a_byte),
      cmocka_unit_test(windows_of_pairs),
      cmocka_unit_test(neighbours_in_pairs),
      cmocka_unit_test(rows_of_pairs),
      cmocka_unit_test(pairs_are_chosen_and_keep_their_bytes),
      cmocka_unit_test(compiled_pairs_have_the_same_bytes),
      cmocka_unit_test(times_choose_where_they_are_known),
      cmocka_unit_test(nothing_may_be_kept),
  };
  return cmocka_run_group_tests(tests, own_costs_begin, own_costs_end);
}
