/* SPDX-License-Identifier: Apache-2.0
 * report: products against the limits of the processor: what is drawn, of what, and that any
 * figures make a drawing. How it looks is for eyes. */
#include "report/roofline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "lacuna/bench.h"

static const lac_bench_layer dense[] = {
    {.name = "conv<1>",
     .kernel = "jit",
     .seconds = 2e-3,
     .flops = 100000000,
     .bytes_read = 1000000},
    {.name = "conv2", .kernel = "jit", .seconds = 1e-3, .flops = 10000000, .bytes_written = 900000},
    {.name = "relu", .kernel = "own", .seconds = 5e-3, .bytes_read = 10}};
static const lac_bench_layer own[] = {
    {.name = "conv<1>",
     .kernel = "sparse-1x1",
     .seconds = 1e-3,
     .flops = 100000000,
     .bytes_read = 500000,
     .sparse = true},
    {.name = "conv2", .kernel = "jit", .seconds = 1e-3, .flops = 10000000, .bytes_written = 900000},
    {.name = "alone",
     .kernel = "sparse-3x3",
     .seconds = 1e-4,
     .flops = 1000,
     .bytes_read = 8,
     .sparse = true}};

static lac_bench_result both(void) {
  return (lac_bench_result){.model = "nets/a & b.onnx",
                            .batch = 1,
                            .dtype = LAC_DTYPE_F32,
                            .threads = 2,
                            .dense = {3e-3, 4e-3},
                            .has_sparse = true,
                            .sparse = {2e-3, 3e-3},
                            .pattern_n = 2,
                            .pattern_m = 4,
                            .peak_kernel = "avx2 f32",
                            .peak_flops = 1e11,
                            .read_bytes = 1e10,
                            .n_layers = 3,
                            .layers = own,
                            .n_sparse = 2,
                            .n_dense_layers = 3,
                            .dense_layers = dense};
}

static char *draw(const lac_bench_result *result) {
  char *svg = NULL;
  size_t n = 0;
  assert_int_equal(laci_roofline_svg(result, &svg, &n, NULL), LAC_OK);
  assert_int_equal(strlen(svg), n);
  assert_true(strncmp(svg, "<svg ", 5) == 0 && strcmp(svg + n - 7, "</svg>\n") == 0);
  assert_null(strstr(svg, "nan"));
  assert_null(strstr(svg, "inf"));
  return svg;
}

static int count(const char *text, const char *part) {
  int n = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at++) n++;
  return n;
}

/* Two rings and two dots with their words, a line between the two of one node; the limit of what
 * is left out is at twice that of the multiply-adds. */
static void dense_and_sparse_layers_are_under_the_limits(void **state) {
  (void)state;
  const lac_bench_result r = both();
  char *svg = draw(&r);
  assert_non_null(strstr(svg, ">a &amp; b.onnx<"));
  assert_int_equal(count(svg, "<title>"), 4);
  assert_int_equal(count(svg, "<title>conv&lt;1&gt;: "), 2);
  assert_int_equal(count(svg, "<title>alone: sparse-3x3, 0.1 ms, "), 1);
  assert_int_equal(count(svg, "stroke=\"#bbb\""), 1);
  static const char *const wanted[] = {
      ">memory: 10 GB/s<", ">multiply-adds: 100 GFLOP/s (avx2 f32)<", ">2:4: 200 GFLOP/s, ",
      "dense 3 ms, with 2 sparse layers 2 ms"};
  for (size_t at = 0; at < sizeof wanted / sizeof *wanted; at++) {
    if (!strstr(svg, wanted[at])) fail_msg("no '%s' in the drawing", wanted[at]);
  }
  laci_free(svg);
}

static void a_dense_plan_alone_has_no_sparse_limit(void **state) {
  (void)state;
  lac_bench_result r = both();
  r.has_sparse = false;
  r.layers = dense;
  r.n_sparse = r.n_dense_layers = 0;
  char *svg = draw(&r);
  assert_int_equal(count(svg, "<title>"), 2);
  assert_null(strstr(svg, "sparse"));
  assert_null(strstr(svg, "2:4"));
  laci_free(svg);
}

static void any_figures_make_a_drawing(void **state) {
  (void)state;
  lac_bench_result r = both();
  r.n_layers = r.n_dense_layers = 0;
  laci_free(draw(&r));
  const lac_bench_layer far[] = {
      {.name = "a", .kernel = "k", .seconds = 1e-9, .flops = INT64_MAX, .bytes_read = 1},
      {.name = "b", .kernel = "k", .seconds = 1e9, .flops = 1, .bytes_read = INT64_MAX}};
  r.layers = r.dense_layers = far;
  r.n_layers = r.n_dense_layers = 2;
  laci_free(draw(&r));
  r.peak_flops = r.read_bytes = 0; /* a clock that did not advance */
  laci_free(draw(&r));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dense_and_sparse_layers_are_under_the_limits),
      cmocka_unit_test(a_dense_plan_alone_has_no_sparse_limit),
      cmocka_unit_test(any_figures_make_a_drawing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
