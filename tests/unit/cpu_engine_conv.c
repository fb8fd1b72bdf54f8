/* SPDX-License-Identifier: Apache-2.0
 * Convolutions in blocks of 16 channels, and Winograd's algorithm among them, against the plain
 * engine: images that tiles do not divide, what is fused in, neighbours whose channels are no
 * multiple of a block, and that the plan is Winograd's where it can be and never in bf16 or where
 * it does not pay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/cpu/onednn/compat.h"
#include "cpu/cpu.h"
#include "graph/graph.h"
#include "support/engine_check.h"
#include "support/engine_plan.h"
#include "tensor/buf.h"

enum { TEXT = 2048 };

/** Not oneDNN's default algorithm only: tiles of 4x4 lose two digits more than a direct sum. */
static void check(const char *text) { check_as(text, (expectation){.tolerance = 1e-5}); }

/** How many steps of the plan name Winograd. */
static int winograd_steps(const char *text, bool bf16) {
  laci_graph *graph;
  laci_engine *engine;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s\n%s", err.text, text);
  laci_engine_options options = {.threads = 2, .bf16 = bf16};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s\n%s", err.text, text);
  int n = count_text(laci_engine_plan_text(engine), "wino");
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
  return n;
}

/** Version 2 of oneDNN on AVX-512; elsewhere all of this is computed directly, or with AVX2 by
 * ours, where that is faster. */
static bool has_winograd(void) {
#if defined(__x86_64__) && DNNL_VERSION_MAJOR < 3
  return laci_cpu_has_avx512f();
#else
  return false;
#endif
}

static void matches_on_images_that_tiles_do_not_divide(void **state) {
  static const struct {
    int batch, rows, columns, pad;
  } cases[] = {
      {1, 7, 7, 1}, {2, 13, 28, 1}, {1, 56, 9, 1}, {3, 9, 15, 0}, {17, 7, 10, 1}, {1, 30, 31, 0},
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    int pad = cases[at].pad;
    (void)snprintf(text, sizeof text,
                   "input x %dx64x%dx%d\nstored w 96x64x3x3\nstored b 96\n"
                   "a = Conv(x, w, b) pads=%d,%d,%d,%d\ny = Relu(a)\noutput y\n",
                   cases[at].batch, cases[at].rows, cases[at].columns, pad, pad, pad, pad);
    check(text);
    if (laci_cpu_level_in_force() == LACI_CPU_AVX2) continue;
    if (winograd_steps(text, false) != has_winograd()) fail_msg("not Winograd:\n%s", text);
  }
}

static void matches_with_uneven_pads(void **state) {
  (void)state;
  check("input x 1x64x12x11\nstored w 64x64x3x3\ny = Conv(x, w) pads=0,1,1,0\noutput y\n");
  check("input x 1x64x12x11\nstored w 64x64x3x3\ny = Conv(x, w) pads=2,2,2,2\noutput y\n");
  check(
      "input x 1x64x12x11\nstored w 64x64x3x3\ny = Conv(x, w) auto_pad=\"SAME_LOWER\"\noutput y\n");
}

/* oneDNN 2.6 has code for AVX-512 that is wrong where a row has one result less than twice as many
 * as there are pads after it, and 4 pads or more. */
static void matches_with_wide_pads_on_short_rows(void **state) {
  char text[TEXT];
  (void)state;
  for (int pads = 3; pads <= 6; pads++) {
    const int out = 2 * pads - 1;
    for (int kernel = pads + 1; kernel <= 2 * pads + 1; kernel++) {
      const int before = kernel - 1 - pads, width = out + kernel - 1 - before - pads;
      (void)snprintf(text, sizeof text,
                     "input x 2x64x3x%d\nstored w 64x64x1x%d\ny = Conv(x, w) pads=0,%d,0,%d\n"
                     "output y\n",
                     width, kernel, before, pads);
      check(text);
    }
  }
}

/* oneDNN by itself takes another of Winograd's algorithms for more threads here. */
static void gives_the_same_bits_for_any_number_of_threads(void **state) {
  static const char *const nets[] = {
      "input x 2x64x12x10\nstored w 64x64x3x3\ny = Conv(x, w) pads=1,1,1,1\noutput y\n",
      "input x 3x64x22x25\nstored w 64x64x3x3\ny = Conv(x, w) pads=1,1,1,1\noutput y\n",
  };
  (void)state;
  for (size_t at = 0; at < sizeof nets / sizeof *nets; at++) {
    float *first = NULL;
    size_t bytes;
    for (int threads = 1; threads <= 4; threads++) {
      planned p = plan_text(nets[at], (laci_engine_options){.threads = threads});
      float *y = planned_result(p.engine, &bytes);
      if (first) assert_memory_equal(y, first, bytes);
      if (first) laci_free(y);
      else first = y;
      planned_clear(&p);
    }
    laci_free(first);
  }
}

static void fuses_what_follows(void **state) {
  static const char *const tails[] = {
      "y = Relu(a)\n",
      "y = Add(a, x)\n",
      "b = Add(a, x)\ny = Relu(b)\n",
      "b = Relu(a)\ny = Add(b, x)\n",
      "y = LeakyRelu(a) alpha=0.1\n",
      "s = Sigmoid(a)\ny = Mul(a, s)\n",
      "b = Add(x, a)\nc = Relu(b)\ny = Mul(c, x)\n",
      "b = Tanh(a)\ny = Add(b, b)\n",
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof tails / sizeof *tails; at++) {
    (void)snprintf(text, sizeof text,
                   "input x 2x64x9x14\nstored w 64x64x3x3\nstored g 64\nstored h 64\n"
                   "stored m 64\nstored v 64 positive\nc0 = Conv(x, w) pads=1,1,1,1\n"
                   "a = BatchNormalization(c0, g, h, m, v)\n%soutput y\n",
                   tails[at]);
    /* A steep function of a large sum shows the sum's error at its own small scale. */
    check_as(text, (expectation){.tolerance = 5e-5});
  }
}

static void keeps_blocks_among_layers_of_every_kind(void **state) {
  (void)state; /* stride 2, 1x1, depthwise, groups of whole blocks and of 4, pools */
  check(
      "input x 2x3x37x30\nstored w0 64x3x7x7\nstored w1 64x64x3x3\nstored w2 128x64x1x1\n"
      "stored w3 128x128x3x3\nstored w4 128x1x3x3\nstored w5 128x32x3x3\nstored w6 128x4x3x3\n"
      "a = Conv(x, w0) pads=3,3,3,3 strides=2,2\n"
      "p = MaxPool(a) kernel_shape=3,3 pads=1,1,1,1\nb = Conv(p, w1) pads=1,1,1,1\n"
      "r = Relu(b)\nc = Conv(r, w2)\nd = Conv(c, w3) pads=1,1,1,1 strides=2,2\n"
      "e = Conv(d, w4) pads=1,1,1,1 group=128\nf = Conv(e, w5) pads=1,1,1,1 group=4\n"
      "g = Conv(f, w6) pads=1,1,1,1 group=32\nh = Conv(g, w3) pads=1,1,1,1\n"
      "q = GlobalAveragePool(h)\noutput q\n");
}

static void meets_channels_that_no_block_divides(void **state) {
  (void)state;
  check(
      "input x 1x70x14x14\nstored w0 64x70x1x1\nstored w1 64x64x3x3\nstored w2 72x64x3x3\n"
      "stored w3 64x72x3x3\na = Conv(x, w0)\nb = Conv(a, w1) pads=1,1,1,1\n"
      "c = Conv(b, w2) pads=1,1,1,1\nd = Relu(c)\ne = Conv(d, w3) pads=1,1,1,1\n"
      "f = Add(e, b)\ng = Conv(f, w1) pads=1,1,1,1\noutput g\noutput d\n");
}

static void joins_and_cuts_blocks(void **state) {
  (void)state; /* parts on and off the blocks' borders; a flattened result */
  check(
      "input x 2x64x8x9\nstored w 64x64x3x3\nstored v 64x100x1x1\nstored m 4608x10\n"
      "stored s 1 i64 = 10\nstored e 1 i64 = 46\nstored ax 1 i64 = 1\n"
      "a = Conv(x, w) pads=1,1,1,1\nb = Slice(a, s, e, ax)\nc = Concat(a, b) axis=1\n"
      "d = Conv(c, v)\nf = Conv(d, w) pads=1,1,1,1\ng = Flatten(f) axis=1\n"
      "h = Gemm(g, m)\noutput h\noutput b\n");
}

static void scales_channels_of_blocks(void **state) {
  (void)state; /* squeeze and excitation */
  check(
      "input x 2x64x10x7\nstored w 64x64x3x3\nstored d 8x64x1x1\nstored u 64x8x1x1\n"
      "a = Conv(x, w) pads=1,1,1,1\nq = GlobalAveragePool(a)\nb = Conv(q, d)\nc = Relu(b)\n"
      "f = Conv(c, u)\ns = Sigmoid(f)\nt = Mul(a, s)\ny = Conv(t, w) pads=1,1,1,1\noutput y\n");
}

static void multiplies_blocks_by_factors_of_every_kind(void **state) {
  static const char *const factors[] = {
      "stored g 1x64x1x1\n",                        /* the same for all images */
      "q = GlobalAveragePool(a)\ng = Conv(q, u)\n", /* each image its own, in blocks */
      "input h 2x64\ng = Unsqueeze(h, ax)\n",       /* row-major */
      "q = GlobalMaxPool(a)\ng = Transpose(q) perm=0,1,3,2\n",
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof factors / sizeof *factors; at++) {
    for (int again = 0; again < 2; again++) { /* values are overwritten, or still read */
      (void)snprintf(text, sizeof text,
                     "input x 2x64x9x13\nstored w 64x64x3x3\nstored u 64x64x1x1\n"
                     "stored ax 2 i64 = 2,3\na = Conv(x, w) pads=1,1,1,1\n%sy = Mul(%s)\n"
                     "z = Conv(y, w) pads=1,1,1,1\noutput z\n%s",
                     factors[at], again ? "g, a" : "a, g", again ? "output a\n" : "");
      check(text);
    }
  }
}

static void concatenates_in_place(void **state) {
  static const char *const joins[] = {
      /* the same parts and one more */
      "c = Concat(a, b) axis=1\nd = Conv(c, v)\ne = Concat(a, b, d) axis=1\n"
      "r = Relu(e)\nf = Conv(r, t)\ng = Concat(a, b, d, f) axis=1\n",
      /* what was joined, and one more; the first join is read late, and never overwritten */
      "c = Concat(a, b) axis=1\nd = Conv(c, v)\ne = Concat(c, d) axis=1\n"
      "h = Relu(c)\nf = Conv(h, v)\ni = Concat(e, f) axis=1\ng = Conv(i, s)\noutput h\n",
      /* two that append to the same one: only the first may */
      "c = Concat(a, b) axis=1\nd = Relu(a)\ne = Concat(a, b, d) axis=1\n"
      "f = Concat(a, b, b) axis=1\nh = Concat(c, a) axis=1\ni = Sum(e, f)\ng = Sum(i, h)\n"
      "output c\n",
      /* in-place functions of both */
      "c = Concat(a, b) axis=1\nd = Relu(c)\ne = Concat(a, b, a) axis=1\nf = Sigmoid(e)\n"
      "h = Conv(f, t)\ni = Conv(d, v)\ng = Add(h, i)\n",
      /* a new part that is in no blocks, and one of 24 channels */
      "c = Concat(a, b) axis=1\nd = Concat(a, b, x) axis=1\ne = Conv(d, k)\n"
      "g = Concat(a, b, e) axis=1\noutput c\n",
      "c = Concat(a, b) axis=1\nd = Conv(c, n)\ne = Concat(a, b, d) axis=1\ng = Relu(e)\n"
      "output c\n",
  };
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof joins / sizeof *joins; at++) {
    for (int batch = 1; batch <= 2; batch++) {
      (void)snprintf(text, sizeof text,
                     "input x %dx3x15x14\nstored w0 64x3x3x3\nstored w 64x64x3x3\n"
                     "stored v 64x128x1x1\nstored t 64x192x1x1\nstored s 64x256x1x1\n"
                     "stored k 64x131x1x1\nstored n 24x128x1x1\n"
                     "a = Conv(x, w0) pads=1,1,1,1\nb0 = Conv(a, w) pads=1,1,1,1\n"
                     "b = Relu(b0)\n%soutput g\n",
                     batch, joins[at]);
      check(text);
    }
  }
}

static int new_part_steps(const char *text) {
  int n = 0;
  planned p = plan_text(text, (laci_engine_options){.threads = 2});
  for (size_t at = 0; at < laci_engine_step_count(p.engine); at++) {
    n += strcmp(laci_engine_step_info(p.engine, at).what, "Concat, new parts") == 0;
  }
  planned_clear(&p);
  return n;
}

/* Of one image, in blocks of as many channels as oneDNN has here: with AVX-512 it has channels
 * last. Of a network that has row-major values among them only the result is looked at. */
static void copies_new_parts_alone(void **state) {
  static const char *const layers[] = {"r%d = Conv(s%d, w%d)\n", "r%d = Softmax(s%d) axis=3\n"};
  char text[TEXT];
  (void)state;
  for (int kind = 0; kind < 2; kind++) {
    for (int batch = 1; batch <= 2; batch++) {
      size_t used = (size_t)snprintf(text, sizeof text,
                                     "input x %dx3x9x8\nstored w0 48x3x3x3\nstored w1 48x48x1x1\n"
                                     "stored w2 48x96x1x1\nstored w3 48x144x1x1\n"
                                     "s1 = Conv(x, w0)\n",
                                     batch);
      for (int k = 1; k <= 3; k++) {
        used += (size_t)snprintf(text + used, sizeof text - used, layers[kind], k, k, k);
        used += (size_t)snprintf(text + used, sizeof text - used, "s%d = Concat(s%d, r%d) axis=1\n",
                                 k + 1, k, k);
      }
      (void)snprintf(text + used, sizeof text - used, "output s4\n");
      check(text);
      if (kind == 1 || laci_cpu_level_in_force() != LACI_CPU_AVX2) continue;
      assert_int_equal(new_part_steps(text), batch == 1 ? 2 : 0);
    }
  }
}

static void uses_winograd_for_few_channels_of_large_images(void **state) {
  (void)state;
  const char *text =
      "input x 1x128x14x15\nstored w 32x128x3x3\ny = Conv(x, w) pads=1,1,1,1\n"
      "output y\n";
  check(text);
  if (winograd_steps(text, false) != has_winograd()) fail_msg("not Winograd");
}

static void lays_depthwise_networks_in_blocks(void **state) {
  (void)state; /* whole blocks, no blocks (24 channels), and both */
  static const int cases[][2] = {{48, 48}, {24, 24}, {24, 144}};
  char text[TEXT];
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    int narrow = cases[at][0], wide = cases[at][1];
    (void)snprintf(text, sizeof text,
                   "input x 2x3x21x18\nstored w0 %dx3x3x3\nstored w1 %dx%dx1x1\n"
                   "stored w2 %dx1x3x3\nstored w3 %dx%dx1x1\nstored lo \"\" f32 = 0\n"
                   "stored hi \"\" f32 = 6\na = Conv(x, w0) pads=1,1,1,1 strides=2,2\n"
                   "b = Conv(a, w1)\nc = Clip(b, lo, hi)\ne = Conv(c, w2) pads=1,1,1,1 group=%d\n"
                   "f = Clip(e, lo, hi)\ng = Conv(f, w3)\nh = Add(g, a)\ni = Conv(h, w1)\n"
                   "y = Conv(i, w2) pads=1,1,1,1 strides=2,2 group=%d\noutput y\n",
                   narrow, wide, narrow, wide, narrow, wide, wide, wide);
    check(text);
  }
}

static void leaves_it_where_it_does_not_pay(void **state) {
  (void)state;
  static const char *const texts[] = {
      "input x 1x64x8x8\nstored w 64x64x3x3\ny = Conv(x, w) strides=2,2\noutput y\n",
      "input x 1x64x9x9\nstored w 64x64x3x3\ny = Conv(x, w) dilations=2,2\noutput y\n",
      "input x 1x64x8x8\nstored w 64x32x3x3\ny = Conv(x, w) group=2 pads=1,1,1,1\noutput y\n",
      "input x 1x32x8x8\nstored w 32x32x3x3\ny = Conv(x, w) pads=1,1,1,1\noutput y\n",
      "input x 1x64x5x5\nstored w 64x64x3x3\ny = Conv(x, w) pads=1,1,1,1\noutput y\n",
      "input x 1x64x8x20\nstored w 64x64x1x3\ny = Conv(x, w) pads=0,1,0,1\noutput y\n",
      "input x 1x64x20\nstored w 64x64x3\ny = Conv(x, w) pads=1,1\noutput y\n",
  };
  for (size_t at = 0; at < sizeof texts / sizeof *texts; at++) {
    check(texts[at]);
    assert_int_equal(winograd_steps(texts[at], false), 0);
  }
}

/* oneDNN 2.6 describes code for these that it cannot make. */
static void small_groups_have_functions_after_in_bf16(void **state) {
  static const char *const functions[] = {"Mish(c)", "Gelu(c)", "Elu(c)", "Sigmoid(c)", "Tanh(c)"};
  char text[TEXT];
  (void)state;
  for (size_t at = 0; at < sizeof functions / sizeof *functions; at++) {
    (void)snprintf(text, sizeof text,
                   "input x 8x8x31x14\nstored w 16x4x3x3\nc = Conv(x, w) group=2 pads=1,1,1,1\n"
                   "y = %s\noutput y\n",
                   functions[at]);
    if (laci_cpu_has_avx512bf16()) check_as(text, (expectation){.tolerance = 4e-2, .bf16 = true});
    check(text);
  }
}

static void computes_in_bf16_directly(void **state) {
  const char *text =
      "input x 1x64x8x8\nstored w 64x64x3x3\na = Conv(x, w) pads=1,1,1,1\ny = Relu(a)\noutput y\n";
  laci_graph *graph;
  laci_engine *engine;
  lac_error err = {0};
  (void)state;
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  lac_status st =
      laci_engine_create(graph, &(laci_engine_options){.threads = 1, .bf16 = true}, &engine, &err);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
  if (st == LAC_UNSUPPORTED) skip();
  check_as(text, (expectation){.tolerance = 2e-2, .bf16 = true});
  assert_int_equal(winograd_steps(text, true), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(matches_on_images_that_tiles_do_not_divide),
      cmocka_unit_test(matches_with_uneven_pads),
      cmocka_unit_test(matches_with_wide_pads_on_short_rows),
      cmocka_unit_test(gives_the_same_bits_for_any_number_of_threads),
      cmocka_unit_test(fuses_what_follows),
      cmocka_unit_test(keeps_blocks_among_layers_of_every_kind),
      cmocka_unit_test(meets_channels_that_no_block_divides),
      cmocka_unit_test(joins_and_cuts_blocks),
      cmocka_unit_test(scales_channels_of_blocks),
      cmocka_unit_test(multiplies_blocks_by_factors_of_every_kind),
      cmocka_unit_test(concatenates_in_place),
      cmocka_unit_test(copies_new_parts_alone),
      cmocka_unit_test(uses_winograd_for_few_channels_of_large_images),
      cmocka_unit_test(lays_depthwise_networks_in_blocks),
      cmocka_unit_test(leaves_it_where_it_does_not_pay),
      cmocka_unit_test(small_groups_have_functions_after_in_bf16),
      cmocka_unit_test(computes_in_bf16_directly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
