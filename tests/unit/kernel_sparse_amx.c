/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/amx.h against int8x4.h's definition, bit by bit, guards included: residuals,
 * bounds, functions, parts of any size. Skipped where the processor has no AMX. */
#include "kernel/sparse/amx.h"

#include "support/sparse_case.h"

#include "base/memory.h"
#include "cpu/cpu.h"

/* Windows whose taps fill registers, or a half of one. */
static const sparse_case wide_cases[] = {
    {"3x3 of 64 channels", SPARSE_WINDOW(64, 20, 1, 3, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1,
     2},
    {"3x3 of 75 channels, stride 2", SPARSE_WINDOW(75, 8, 1, 5, 7, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1),
     PIXELS, 2, 2},
    {"3x3 of 68 channels of images", SPARSE_WINDOW(68, 4, 1, 2, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
     IMAGES, 1, 2},
    {"3x3 of two groups of 64 channels",
     SPARSE_WINDOW(128, 8, 2, 3, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 4},
    {"3x3 of 40 channels", SPARSE_WINDOW(40, 20, 1, 3, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1,
     2},
};

enum {
  BLOCK_ROWS = 2 * LACI_AMX_ROWS,
  N_WIDE = sizeof wide_cases / sizeof *wide_cases,
};

/* Computes all parts of so many tiles and rows, the last ones first. */
static void run_parts(const sparse_operands *o, const laci_sparse_operands *run,
                      const laci_amx_weights *w, int64_t n_tiles, int64_t n_rows) {
  char *scratch = laci_alloc(laci_amx_scratch_bytes(w, n_tiles), 1);
  assert_non_null(scratch);
  for (int64_t last = o->convolution.n_tiles; last > 0; last -= n_tiles) {
    for (int64_t group = 0; group < w->n_groups; group++) {
      for (int64_t row = 0; row < w->rows_each; row += n_rows) {
        const int64_t begin = group * w->rows_each + row, end = (group + 1) * w->rows_each;
        const laci_sparse_part part = {o->convolution.tiles, last > n_tiles ? last - n_tiles : 0,
                                       last, begin, begin + n_rows < end ? begin + n_rows : end};
        laci_amx_multiply(w, run, &part, scratch);
      }
    }
  }
  laci_free(scratch);
}

static void expect_same(const sparse_case *c, const sparse_operands *o,
                        const laci_sparse_operands *run) {
  void *want = sparse_wanted_result(o, run);
  laci_amx_weights w;
  lac_error err = {0};
  if (laci_amx_weights_init(&o->convolution.product, o->convolution.kept.weight, &w, &err)) {
    fail_msg("%s", err.text);
  }
  for (int64_t n_tiles = 1; n_tiles <= 5; n_tiles++) {
    for (int64_t n_rows = BLOCK_ROWS; n_rows <= 3 * BLOCK_ROWS; n_rows += 2 * BLOCK_ROWS) {
      sparse_forget_result(o);
      run_parts(o, run, &w, n_tiles, n_rows);
      if (memcmp(o->memory_y, want, sparse_result_bytes(o)) != 0) {
        fail_msg("%s: parts of %d tiles and %d rows", c->what, (int)n_tiles, (int)n_rows);
      }
    }
  }
  laci_amx_weights_clear(&w);
  free(want);
}

static void expect_same_with_middles(const sparse_case *c, sparse_operands *o,
                                     const laci_sparse_operands *run) {
  for (int at = 0; at < 2 && run->residual; at++) {
    o->quantized.middle = &sparse_middles[at];
    expect_same(c, o, run);
  }
  o->quantized.middle = NULL;
}

/* Scales as networks have them, with which no result exceeds 32 bits. */
static void use_small_scales(sparse_operands *o) {
  for (int64_t row = 0; row < o->convolution.product.n_rows; row++)
    o->scale[row] = (float)(row % 3 == 1 ? -1 - row % 7 : 1 + row % 7) / 1000;
}

static void parts_have_the_same_bits(void **state) {
  (void)state;
  if (!laci_cpu_has_int8_tiles()) skip();
  for (int at = 0; at < N_SPARSE_CASES + N_WIDE; at++) {
    const sparse_case *of =
        at < N_SPARSE_CASES ? &sparse_cases[at] : &wide_cases[at - N_SPARSE_CASES];
    const sparse_case c = sparse_case_of(of, LACI_SPARSE_S8);
    sparse_operands o;
    sparse_operands_init(&c, at % 3, &o);
    for (int with = 0; with < 4; with++) {
      laci_sparse_operands run =
          sparse_run_of(&o, with % 2 > 0, with > 1 ? 0 : -INFINITY, with > 1 ? 0 : INFINITY);
      expect_same(&c, &o, &run);
      expect_same_with_middles(&c, &o, &run);
      sparse_follow(&run, with, with % 2 > 0);
      expect_same(&c, &o, &run);
    }
    use_small_scales(&o);
    for (int with = 0; with < 4; with++) {
      const laci_sparse_operands run =
          sparse_run_of(&o, with % 2 > 0, with > 1 ? 0 : -INFINITY, with > 1 ? 0 : INFINITY);
      expect_same(&c, &o, &run);
      expect_same_with_middles(&c, &o, &run);
    }
    o.scale[0] = -1e9F; /* the only row with results beyond 32 bits */
    const laci_sparse_operands run = sparse_run_of(&o, true, -INFINITY, INFINITY);
    expect_same(&c, &o, &run);
    sparse_operands_clear(&o);
  }
}

/* A register is loaded from x where a tap fills half of one, in any layout. */
static void channels_of_a_tap_are_not_copied(void **state) {
  static const struct {
    sparse_case of;
    int64_t taps, deep; /* deep 0: copied */
  } cases[] = {
      {{"64 channels of pixels", SPARSE_WINDOW(64, 20, 1, 5, 7, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0),
        LACI_FORMAT_PC16P, LACI_FORMAT_PC16P, 1, 2},
       1,
       1},
      {{"60 channels", SPARSE_WINDOW(60, 20, 1, 5, 7, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0),
        LACI_FORMAT_PC16P, LACI_FORMAT_PC16P, 1, 2},
       1,
       1},
      {{"3x3 of 68 channels", SPARSE_WINDOW(68, 20, 1, 5, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
        LACI_FORMAT_CHW, LACI_FORMAT_CHW, 1, 2},
       9,
       18},
      {{"3x3 of 32 channels", SPARSE_WINDOW(32, 20, 1, 5, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
        LACI_FORMAT_CHW, LACI_FORMAT_CHW, 1, 2},
       9,
       9},
      {{"3x3 of 28 channels", SPARSE_WINDOW(28, 20, 1, 5, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
        LACI_FORMAT_CHW, LACI_FORMAT_CHW, 1, 2},
       1,
       0},
  };
  (void)state;
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    const sparse_case c = sparse_case_of(&cases[at].of, LACI_SPARSE_S8);
    sparse_operands o;
    laci_amx_weights w;
    lac_error err = {0};
    sparse_operands_init(&c, 0, &o);
    assert_int_equal(
        laci_amx_weights_init(&o.convolution.product, o.convolution.kept.weight, &w, &err), LAC_OK);
    assert_int_equal(w.n_taps, cases[at].taps);
    assert_int_equal(w.int8x4_stride != 0, cases[at].deep != 0);
    assert_int_equal(laci_amx_scratch_bytes(&w, 3) == 0, cases[at].deep != 0);
    if (cases[at].deep) assert_int_equal(w.n_deep, cases[at].deep);
    laci_amx_weights_clear(&w);
    sparse_operands_clear(&o);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_have_the_same_bits),
      cmocka_unit_test(channels_of_a_tap_are_not_copied),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
