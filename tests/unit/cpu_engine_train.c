/* SPDX-License-Identifier: Apache-2.0
 * Convolutions whose weights change, and their gradients, on the fast engine against the plain one:
 * in bf16 by kernels of our own where they fit and oneDNN's where not, with the same bits for any
 * number of threads; and what flows back through a Relu that two nodes read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cpu/cpu.h"
#include "graph/graph.h"
#include "support/engine_check.h"
#include "tensor/buf.h"

enum { TEXT = 2048, MOST_BYTES = 1 << 20 };

static bool has_bf16(void) {
#if defined(__x86_64__)
  return laci_cpu_level_in_force() == LACI_CPU_AVX512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

typedef struct conv {
  int n, in, out, size, window, stride, pad, group;
  int filtered, paired; /* steps by kernel/winograd and its like; by pairs of pixels */
} conv;

static const conv convs[] = {
    {3, 32, 48, 9, 3, 1, 1, 1, 3, 0},   {5, 64, 32, 8, 3, 1, 0, 1, 3, 0},
    {2, 32, 32, 7, 3, 1, 2, 1, 3, 0},   {1, 48, 32, 30, 3, 1, 1, 1, 3, 0},
    {4, 16, 32, 10, 3, 1, 1, 1, 0, 1},  {3, 32, 64, 9, 3, 2, 1, 1, 0, 1},
    {2, 32, 32, 11, 5, 2, 1, 1, 0, 1},  {3, 32, 32, 8, 1, 1, 0, 1, 0, 0},
    {3, 24, 32, 8, 3, 1, 1, 1, 0, 0},   {3, 32, 32, 8, 3, 1, 1, 2, 0, 0},
    {1, 512, 32, 16, 3, 1, 1, 1, 3, 0}, /* two bands of rows */
};

/** Forward and both gradients. */
static void write_conv(const conv *c, char text[TEXT]) {
  int out = (c->size + 2 * c->pad - c->window) / c->stride + 1;
  char how[256];
  (void)snprintf(how, sizeof how, "pads=%d,%d,%d,%d strides=%d,%d group=%d", c->pad, c->pad, c->pad,
                 c->pad, c->stride, c->stride, c->group);
  (void)snprintf(text, TEXT,
                 "input x %dx%dx%dx%d\ninput w %dx%dx%dx%d\ninput dy %dx%dx%dx%d\n"
                 "y = Conv(x, w) %s\n"
                 "dx = ConvGradInput(dy, w) input_shape=%d,%d,%d,%d %s domain=\"lacuna\"\n"
                 "dw = ConvGradWeight(x, dy) kernel_shape=%d,%d %s domain=\"lacuna\"\n"
                 "output y\noutput dx\noutput dw\n",
                 c->n, c->in, c->size, c->size, c->out, c->in / c->group, c->window, c->window,
                 c->n, c->out, out, out, how, c->n, c->in, c->size, c->size, how, c->window,
                 c->window, how);
}

static void expect_steps(const char *text, int threads, const char *kernel, int want) {
  laci_graph *graph;
  laci_engine *engine;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s\n%s", err.text, text);
  laci_engine_options options = {.threads = threads, .bf16 = true};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s\n%s", err.text, text);
  if (count_text(laci_engine_plan_text(engine), kernel) != want) {
    fail_msg("wanted %d steps by %s:\n%s%s", want, kernel, laci_engine_plan_text(engine), text);
  }
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

static void gradients_match_in_bf16(void **state) {
  char text[TEXT];
  (void)state;
  if (!has_bf16()) skip();
  for (size_t at = 0; at < sizeof convs / sizeof *convs; at++) {
    write_conv(&convs[at], text);
    check_as(text, (expectation){.tolerance = 2e-2, .bf16 = true});
    for (int threads = 1; threads <= 4; threads += 3) {
      expect_steps(text, threads, "winograd along rows", convs[at].filtered);
      expect_steps(text, threads, "bf16 pairs", convs[at].paired);
    }
  }
}

/* Windows that differ along the axes, over edges on one side only, and a bias. */
static void odd_windows_match_in_bf16(void **state) {
  static const struct {
    int h, w, kernel[2], out[2];
    const char *how, *bias;
  } odd[] = {
      {1, 1, {3, 3}, {1, 1}, "pads=2,2,0,0", ""},
      {9, 1, {3, 3}, {8, 1}, "pads=0,2,1,0", ""},
      {6, 7, {3, 3}, {6, 12}, "pads=0,1,2,6", ""},
      {6, 8, {3, 3}, {10, 7}, "pads=4,1,2,0", ""},
      {7, 9, {3, 3}, {3, 8}, "pads=1,0,0,1 strides=2,1", ""},
      {9, 7, {3, 3}, {7, 3}, "pads=0,0,0,0 strides=1,2", ""},
      {8, 9, {3, 3}, {6, 9}, "pads=1,1,1,1 dilations=2,1", ""},
      {8, 9, {3, 3}, {8, 9}, "pads=1,1,1,1", ", b"},
      {5, 9, {1, 3}, {5, 8}, "pads=0,1,0,0", ""},
      {9, 5, {7, 2}, {6, 3}, "pads=1,0,2,2 strides=1,2", ""},
  };
  (void)state;
  if (!has_bf16()) skip();
  for (size_t at = 0; at < sizeof odd / sizeof *odd; at++) {
    const int *k = odd[at].kernel, *out = odd[at].out, h = odd[at].h, w = odd[at].w;
    char text[TEXT];
    (void)snprintf(text, sizeof text,
                   "input x 2x48x%dx%d\ninput w 32x48x%dx%d\ninput dy 2x32x%dx%d\ninput b 32\n"
                   "y = Conv(x, w%s) %s\n"
                   "dx = ConvGradInput(dy, w) input_shape=2,48,%d,%d %s domain=\"lacuna\"\n"
                   "dw = ConvGradWeight(x, dy) kernel_shape=%d,%d %s domain=\"lacuna\"\n"
                   "output y\noutput dx\noutput dw\n",
                   h, w, k[0], k[1], out[0], out[1], odd[at].bias, odd[at].how, h, w, odd[at].how,
                   k[0], k[1], odd[at].how);
    check_as(text, (expectation){.tolerance = 2.5e-2, .bf16 = true, .plain = -1});
  }
}

static void gradients_match_in_f32(void **state) {
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof convs / sizeof *convs; at++) {
    write_conv(&convs[at], text);
    check_as(text, (expectation){.tolerance = 2e-5});
  }
}

/** Outputs one after the other; the sum of their sizes. */
static size_t run_bf16(const char *text, int threads, uint8_t *bytes) {
  laci_graph *graph;
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_port *in, *out;
  const void *read[MAX_PORTS];
  void *written[MAX_PORTS];
  size_t n = 0;
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  laci_engine_options options = {.threads = threads, .bf16 = true};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s\n%s", err.text, text);
  int n_in = laci_engine_inputs(engine, &in), n_out = laci_engine_outputs(engine, &out);
  for (int at = 0; at < n_in; at++) {
    laci_buf *input = run_source(graph, graph->inputs[at]);
    read[at] = pack(&in[at], input);
    laci_buf_destroy(input);
  }
  for (int at = 0; at < n_out; at++) {
    written[at] = bytes + n;
    n += (out[at].size_bytes + 63) / 64 * 64;
    assert_true(n <= MOST_BYTES);
  }
  if (laci_engine_run(engine, read, written, &err)) fail_msg("%s\n%s", err.text, text);
  for (int at = 0; at < n_in; at++) laci_free((void *)(uintptr_t)read[at]);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
  return n;
}

/* Sums over the batch, as gradients of weights are, depend on how many threads share it. */
static void rows_are_the_same_for_any_number_of_threads(void **state) {
  static _Alignas(64) uint8_t one[MOST_BYTES], some[MOST_BYTES];
  (void)state;
  if (!has_bf16()) skip();
  for (int threads = 2; threads <= 7; threads++) {
    const char *text =
        "input x 5x32x13x9\ninput w 32x32x3x3\ninput dy 5x32x13x9\n"
        "y = Conv(x, w) pads=1,1,1,1\n"
        "dx = ConvGradInput(dy, w) input_shape=5,32,13,9 pads=1,1,1,1 domain=\"lacuna\"\n"
        "output y\noutput dx\n";
    size_t n = run_bf16(text, 1, one);
    assert_int_equal(run_bf16(text, threads, some), n);
    assert_memory_equal(one, some, n);
  }
}

static const char block_end[] =
    "input x 3x32x6x5\ninput w 32x32x3x3\ninput a 3x32x6x5\n"
    "c = Conv(x, w) pads=1,1,1,1\ns = Add(c, x)\ny = Relu(s)\n"
    "b = ConvGradInput(a, w) input_shape=3,32,6,5 pads=1,1,1,1 domain=\"lacuna\"\n"
    "d = Add(a, b)\ndx = ReluGrad(d, y) domain=\"lacuna\"\n";

static void a_relu_that_two_read_takes_their_sum(void **state) {
  char text[TEXT], twice[TEXT];
  (void)state;
  (void)snprintf(text, sizeof text, "%soutput dx\n", block_end);
  (void)snprintf(twice, sizeof twice, "%soutput dx\noutput d\n", block_end);
  check_as(text, (expectation){.tolerance = 1e-5});
  check_as(twice, (expectation){.tolerance = 1e-5});
  if (!has_bf16()) return;
  expect_steps(text, 2, "ReluGrad of a sum", 1);
  expect_steps(twice, 2, "ReluGrad of a sum", 0); /* the sum is wanted, too */
}

/* y has the signs of an input, so that bf16 and f32 agree about them. */
static void sums_of_any_two_flow_back_through_a_relu(void **state) {
  static const struct {
    const char *sum; /* d, and what its summands are */
    int steps;
  } sums[] = {
      {"d = Add(b, b)\n", 1},
      {"d = Add(y, a)\n", 1},
      {"d = Add(y, y)\n", 1},
      {"d = Add(a, b)\noutput y\noutput b\n", 1},
      {"t = Transpose(z) perm=0,3,1,2\nd = Add(b, t)\n", 1},
      {"d = Add(b, one)\n", 0}, /* over all pixels */
  };
  (void)state;
  for (size_t at = 0; at < sizeof sums / sizeof *sums; at++) {
    char text[TEXT];
    (void)snprintf(text, sizeof text,
                   "input x 3x32x6x5\ninput w 32x32x3x3\ninput a 3x32x6x5\ninput z 3x6x5x32\n"
                   "input one 32x1x1\nc = Conv(x, w) pads=1,1,1,1\ny = Relu(x)\n"
                   "b = ConvGradInput(a, w) input_shape=3,32,6,5 pads=1,1,1,1 domain=\"lacuna\"\n"
                   "%sdx = ReluGrad(d, y) domain=\"lacuna\"\noutput dx\noutput c\n",
                   sums[at].sum);
    check_as(text, (expectation){.tolerance = 1e-5});
    if (!has_bf16()) continue;
    check_as(text, (expectation){.tolerance = 2e-2, .bf16 = true});
    expect_steps(text, 2, "ReluGrad of a sum", sums[at].steps);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_match_in_bf16),
      cmocka_unit_test(odd_windows_match_in_bf16),
      cmocka_unit_test(gradients_match_in_f32),
      cmocka_unit_test(rows_are_the_same_for_any_number_of_threads),
      cmocka_unit_test(a_relu_that_two_read_takes_their_sum),
      cmocka_unit_test(sums_of_any_two_flow_back_through_a_relu),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
