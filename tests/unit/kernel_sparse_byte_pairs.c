/* SPDX-License-Identifier: Apache-2.0
 * kernel/sparse/byte_pairs.h against int8x4.h's definition, bit by bit, guards included: weights
 * of any size, residuals, bounds, functions, parts of any size. Skipped where the processor has no
 * AVX2. */
#include "kernel/sparse/byte_pairs.h"

#include "support/sparse_case.h"

#include "base/memory.h"
#include "cpu/cpu.h"

/* Windows that keep any number of each four channels, or have no channel without a partner. */
static const sparse_case more_cases[] = {
    {"3x3 of 64 channels", SPARSE_WINDOW(64, 20, 1, 3, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1,
     2},
    {"3x3 of 75 channels, stride 2", SPARSE_WINDOW(75, 8, 1, 5, 7, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1),
     PIXELS, 2, 2},
    {"3x3 of 68 channels of images", SPARSE_WINDOW(68, 4, 1, 2, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1),
     IMAGES, 1, 2},
    {"3x3 of two groups of 64 channels",
     SPARSE_WINDOW(128, 8, 2, 3, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), PIXELS, 1, 1},
    {"dense", SPARSE_WINDOW(64, 70, 1, 7, 7, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXEL_BLOCKS, 2, 4},
    {"some dense", SPARSE_WINDOW(60, 36, 1, 7, 9, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 1, 5},
};

enum { ROWS = LACI_BYTE_PAIRS_ROWS, N_MORE = sizeof more_cases / sizeof *more_cases };

/* Computes all parts of so many tiles and rows, the last ones first. */
static void run_parts(const sparse_operands *o, const laci_sparse_operands *run,
                      const laci_byte_pairs_weights *w, int64_t n_tiles, int64_t n_rows) {
  const size_t bytes = laci_byte_pairs_copy_bytes(w, o->n_x);
  char *copy = bytes > 0 ? laci_alloc(bytes, 1) : NULL;
  for (int64_t begin = 0; copy && begin < o->n_x; begin += 37 * n_tiles) {
    const int64_t end = begin + 37 * n_tiles;
    laci_byte_pairs_copy_x(w, run->x, o->n_x, begin, end < o->n_x ? end : o->n_x, copy);
  }
  for (int64_t last = o->convolution.n_tiles; last > 0; last -= n_tiles) {
    for (int64_t group = 0; group < w->n_groups; group++) {
      for (int64_t row = 0; row < w->rows_each; row += n_rows) {
        const int64_t begin = group * w->rows_each + row, end = (group + 1) * w->rows_each;
        const laci_sparse_part part = {o->convolution.tiles, last > n_tiles ? last - n_tiles : 0,
                                       last, begin, begin + n_rows < end ? begin + n_rows : end};
        laci_byte_pairs_multiply(w, run, &part, copy);
      }
    }
  }
  laci_free(copy);
}

static void expect_same_steps(const sparse_case *c, const sparse_operands *o,
                              const laci_sparse_operands *run, bool with_words) {
  void *want = sparse_wanted_result(o, run);
  laci_byte_pairs_weights w;
  lac_error err = {0};
  if (laci_byte_pairs_init(&o->convolution.product, o->convolution.kept.weight, with_words, &w,
                           &err)) {
    fail_msg("%s", err.text);
  }
  for (int64_t n_tiles = 1; n_tiles <= 3; n_tiles++) {
    for (int64_t n_rows = ROWS; n_rows <= 3 * ROWS; n_rows += 2 * ROWS) {
      sparse_forget_result(o);
      run_parts(o, run, &w, n_tiles, n_rows);
      if (memcmp(o->memory_y, want, sparse_result_bytes(o)) != 0) {
        fail_msg("%s: parts of %d tiles and %d rows", c->what, (int)n_tiles, (int)n_rows);
      }
    }
  }
  laci_byte_pairs_clear(&w);
  free(want);
}

static void expect_same(const sparse_case *c, const sparse_operands *o,
                        const laci_sparse_operands *run) {
  expect_same_steps(c, o, run, false);
  expect_same_steps(c, o, run, true);
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

/* Makes all weights the largest or the smallest, so that sums of 16 bits would saturate. */
static void use_extreme_weights(sparse_operands *o, int of) {
  static const int8_t extremes[][4] = {
      {127, 127, 127, 127}, {-128, -128, -128, -128}, {127, -128, 127, -128}, {64, 65, -64, -65}};
  for (int64_t k = 0; k < o->convolution.n_kept; k++)
    o->convolution.kept.weight[k] = extremes[of][k % 4];
}

static void expect_same_with_all_operands(const sparse_case *c, sparse_operands *o) {
  for (int with = 0; with < 4; with++) {
    laci_sparse_operands run =
        sparse_run_of(o, with % 2 > 0, with > 1 ? 0 : -INFINITY, with > 1 ? 0 : INFINITY);
    expect_same(c, o, &run);
    expect_same_with_middles(c, o, &run);
    sparse_follow(&run, with, with % 2 > 0);
    expect_same(c, o, &run);
  }
}

static void parts_have_the_same_bits(void **state) {
  (void)state;
  if (!laci_byte_pairs_can_run()) skip();
  for (int at = 0; at < N_SPARSE_CASES + N_MORE; at++) {
    const sparse_case *of =
        at < N_SPARSE_CASES ? &sparse_cases[at] : &more_cases[at - N_SPARSE_CASES];
    const sparse_case c = sparse_case_of(of, LACI_SPARSE_S8);
    sparse_operands o;
    sparse_operands_init(&c, at % 3, &o);
    expect_same_with_all_operands(&c, &o);
    use_small_scales(&o);
    expect_same_with_all_operands(&c, &o);
    for (int extreme = 0; extreme < 4; extreme++) {
      use_extreme_weights(&o, extreme);
      const laci_sparse_operands run = sparse_run_of(&o, extreme > 1, -INFINITY, INFINITY);
      expect_same(&c, &o, &run);
    }
    sparse_operands_clear(&o);
  }
}

/* Counts the steps of all blocks. */
static laci_byte_pairs_block count_steps(const laci_byte_pairs_weights *w) {
  laci_byte_pairs_block sum = {0};
  for (int64_t at = 0; at < w->n_groups * w->blocks_each; at++) {
    sum.n_selected += w->blocks[at].n_selected;
    sum.n_widened += w->blocks[at].n_widened;
    sum.n_doubles += w->blocks[at].n_doubles;
    sum.n_singles += w->blocks[at].n_singles;
    sum.n_whole += w->blocks[at].n_whole;
  }
  return sum;
}

/* Two of four small weights are one selected step for eight columns, all small weights a double
 * one. There are more steps where a sum of 16 bits could saturate. */
static void steps_are_few(void **state) {
  static const struct {
    int keep;
    float weight;
    bool with_words;
    laci_byte_pairs_block steps;
  } cases[] = {
      {2, 32, true, {.n_selected = 32}},
      {2, 64, true, {.n_selected = 32}},
      {2, 100, true, {.n_widened = 56, .n_singles = 8}},
      {4, 32, true, {.n_doubles = 32}},
      {4, 64, true, {.n_singles = 64}},
      {4, 80, false, {.n_doubles = 32, .n_singles = 64}},
      {4, 80, true, {.n_whole = 64}},
  };
  (void)state;
  for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
    const sparse_case of = {"1x1", SPARSE_WINDOW(64, 32, 1, 4, 4, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0),
                            PIXEL_BLOCKS, 1, cases[at].keep};
    const sparse_case c = sparse_case_of(&of, LACI_SPARSE_S8);
    const laci_byte_pairs_block *want = &cases[at].steps;
    sparse_operands o;
    laci_byte_pairs_weights w;
    lac_error err = {0};
    sparse_operands_init(&c, 0, &o);
    for (int64_t k = 0; k < o.convolution.n_kept; k++)
      o.convolution.kept.weight[k] = cases[at].weight;
    assert_int_equal(laci_byte_pairs_init(&o.convolution.product, o.convolution.kept.weight,
                                          cases[at].with_words, &w, &err),
                     LAC_OK);
    const laci_byte_pairs_block n = count_steps(&w);
    assert_int_equal(n.n_selected, want->n_selected);
    assert_int_equal(n.n_widened, want->n_widened);
    assert_int_equal(n.n_doubles, want->n_doubles);
    assert_int_equal(n.n_singles, want->n_singles);
    assert_int_equal(n.n_whole, want->n_whole);
    assert_int_equal(laci_byte_pairs_copy_bytes(&w, 10) > 0, n.n_selected + n.n_whole > 0);
    laci_byte_pairs_clear(&w);
    sparse_operands_clear(&o);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_have_the_same_bits),
      cmocka_unit_test(steps_are_few),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
