/* SPDX-License-Identifier: Apache-2.0
 * jit/sparse_code: generated code against the definition of kernel/sparse, bit by bit and guards
 * included, for every instruction set that this processor has: windows of all kinds, starts at any
 * float, all pairs of 2:4 patterns, functions after the clip, any cut of the code, any number of
 * threads, new weights. */
#include "support/sparse_case.h"

#include "base/memory.h"
#include "cpu/cpu.h"
#include "jit/cache.h"
#include "jit/sparse_code.h"
#include "support/light.h"

enum { CODE_LIMIT = 64 << 20 };

/* What runs: a case's code and the bytes it should make. */
typedef struct generated {
  laci_code_cache *cache;
  laci_sparse_code *code;
  void *want;
} generated;

static sparse_case case_of(const sparse_case *c, laci_jit_isa isa) {
  return sparse_case_of(c, isa == LACI_JIT_AVX512BF16   ? LACI_SPARSE_BF16
                           : isa == LACI_JIT_AVX512VNNI ? LACI_SPARSE_S8
                                                        : LACI_SPARSE_F32);
}

static void define(const sparse_operands *o, const laci_sparse_operands *run, void *want) {
  const laci_sparse_part all = {o->convolution.tiles, 0, o->convolution.n_tiles, 0,
                                o->convolution.product.n_rows};
  sparse_forget_result(o);
  laci_sparse_multiply_scalar(&o->convolution.product, run, &all);
  memcpy(want, o->memory_y, sparse_result_bytes(o));
}

static generated generate_as(const sparse_operands *o, const laci_sparse_options *options) {
  generated g = {.want = malloc(sparse_result_bytes(o))};
  lac_error err = {0};
  assert_non_null(g.want);
  if (laci_code_cache_create(CODE_LIMIT, &g.cache, &err) ||
      laci_sparse_code_create(&o->convolution.product, options, g.cache, &g.code, &err) ||
      laci_code_cache_seal(g.cache, &err)) {
    fail_msg("%s", err.text);
  }
  laci_sparse_code_set_weights(g.code, o->convolution.kept.weight);
  return g;
}

static generated generate(const sparse_operands *o, laci_sparse_epilogue after, laci_jit_isa isa,
                          laci_sparse_cut cut) {
  after.rest = o->quantized.rest != NULL;
  return generate_as(o, &(laci_sparse_options){.isa = isa, .after = after, .cut = cut});
}

static void expect_run(const generated *g, const sparse_operands *o,
                       const laci_sparse_operands *run, laci_pool *pool, const char *what) {
  const size_t bytes = laci_sparse_code_scratch_bytes(g->code, laci_pool_threads(pool));
  char *scratch = aligned_alloc(64, (bytes / 64 + 2) * 64);
  assert_non_null(scratch);
  memset(scratch, 0x7F, (bytes / 64 + 2) * 64); /* huge numbers: sums are not read before written */
  sparse_forget_result(o);
  laci_sparse_code_run(g->code, run, o->convolution.tiles, o->convolution.n_tiles, pool, scratch);
  if (memcmp(o->memory_y, g->want, sparse_result_bytes(o)) != 0) {
    fail_msg("%s: other bytes than the definition's", what);
  }
  for (size_t at = bytes; at < bytes + 64; at++) assert_int_equal(scratch[at], 0x7F);
  free(scratch);
}

static void end(generated *g) {
  laci_sparse_code_destroy(g->code);
  laci_code_cache_destroy(g->cache);
  free(g->want);
}

/* Calls for each instruction set that there is. */
static void for_each_isa(void (*run)(laci_jit_isa isa)) {
  const laci_cpu_level start = laci_cpu_level_in_force();
  const laci_jit_isa most = laci_jit_isa_in_force();
  if (most == LACI_JIT_NONE) {
    print_message("no code is generated for this processor, or LAC_CPU=scalar\n");
    skip();
  }
  if (most == LACI_JIT_NEON) {
    run(most);
    (void)laci_cpu_limit_level(LACI_CPU_ANY);
    assert_int_equal(laci_jit_isa_in_force(), LACI_JIT_NONE);
    (void)laci_cpu_limit_level(start);
    return;
  }
  for (int isa = LACI_JIT_AVX2; isa <= (int)most; isa++) run((laci_jit_isa)isa);
  if (laci_jit_isa_for_bf16(most) != LACI_JIT_NONE) run(laci_jit_isa_for_bf16(most));
  if (laci_jit_isa_for_int8(most) != LACI_JIT_NONE) run(laci_jit_isa_for_int8(most));
  (void)laci_cpu_limit_level(LACI_CPU_AVX2);
  assert_int_equal(laci_jit_isa_in_force(), LACI_JIT_AVX2);
  assert_int_equal(laci_jit_isa_for_bf16(LACI_JIT_AVX2), LACI_JIT_NONE);
  assert_int_equal(laci_jit_isa_for_int8(LACI_JIT_AVX2), LACI_JIT_NONE);
  (void)laci_cpu_limit_level(LACI_CPU_ANY);
  assert_int_equal(laci_jit_isa_in_force(), LACI_JIT_NONE);
  /* A processor with the first AVX-512 is at the level of AVX2, which is no cap of its own. */
  (void)laci_cpu_limit_level(most == LACI_JIT_AVX512 ? LACI_CPU_AVX512 : start);
  assert_int_equal(laci_jit_isa_in_force(), most);
}

/* Clears the operands. */
static void compare_operands(const sparse_case *c, sparse_operands *operands, int shift,
                             laci_jit_isa isa, laci_sparse_cut cut) {
  sparse_operands o = *operands;
  const bool low = shift != 1, high = shift != 2, residual = shift != 0;
  laci_sparse_operands run =
      sparse_run_of(&o, residual, low ? 0 : -INFINITY, high ? 0.5F : INFINITY);
  generated plain = generate(
      &o, (laci_sparse_epilogue){.residual = residual, .low = low, .high = high}, isa, cut);
  define(&o, &run, plain.want);
  expect_run(&plain, &o, &run, NULL, c->what);
  end(&plain);
  generated followed = generate(&o, (laci_sparse_epilogue){.functions = true}, isa, cut);
  for (int last = 0; last < 2; last++) {
    sparse_follow(&run, last ? 2 - shift : 1 + shift, last);
    define(&o, &run, followed.want);
    expect_run(&followed, &o, &run, NULL, c->what);
  }
  end(&followed);
  sparse_operands_clear(operands);
}

static void compare_case(const sparse_case *c, int shift, laci_jit_isa isa, laci_sparse_cut cut) {
  const sparse_case made = case_of(c, isa);
  sparse_operands o;
  sparse_operands_init(&made, shift, &o);
  compare_operands(c, &o, shift, isa, cut);
}

static void rows_without_zeros_between_them(void **state) {
  sparse_operands o;
  lac_error err = {0};
  (void)state;
  if (laci_jit_isa_in_force() != LACI_JIT_AVX512) skip();
  for (int at = 0; at < N_SPARSE_UNPADDED_CASES; at++) {
    for (int rows = 1; rows <= 30; rows += 6) {
      laci_sparse_cut cut = {rows, 40 * rows, 1 + rows % 4, 0, at % 2 == rows % 2, false};
      sparse_unpadded_operands_init(&sparse_unpadded_cases[at], rows % 3, &o);
      compare_operands(&sparse_unpadded_cases[at], &o, rows % 3, LACI_JIT_AVX512, cut);
      cut.one_lane =
          true; /* where a chunk ends with one lane: of 7 x 7 pixels, and of one column */
      sparse_unpadded_operands_init(&sparse_unpadded_cases[at], rows % 3, &o);
      compare_operands(&sparse_unpadded_cases[at], &o, rows % 3, LACI_JIT_AVX512, cut);
    }
  }
  laci_code_cache *cache;
  laci_sparse_code *code;
  sparse_unpadded_operands_init(&sparse_unpadded_cases[0], 0, &o);
  assert_int_equal(laci_code_cache_create(CODE_LIMIT, &cache, &err), LAC_OK);
  const laci_sparse_options options = {.isa = LACI_JIT_AVX2, .cut = {6, 600, 4, 0, false, false}};
  assert_int_equal(laci_sparse_code_create(&o.convolution.product, &options, cache, &code, &err),
                   LAC_UNSUPPORTED);
  assert_null(code);
  laci_code_cache_destroy(cache);
  sparse_operands_clear(&o);
}

static void all_cases(laci_jit_isa isa) {
  for (int at = 0; at < N_SPARSE_CASES; at++) {
    const int step = tests_stride(3);
    for (int shift = step > 1 ? at % 3 : 0; shift < 3; shift += step) {
      const sparse_case c = case_of(&sparse_cases[at], isa);
      sparse_operands o;
      sparse_operands_init(&c, 0, &o);
      const laci_sparse_extent extent = {o.convolution.tiles, o.convolution.n_tiles, o.n_x, 2};
      laci_sparse_cut cut = laci_sparse_choose_cut(&o.convolution.product, isa, &extent);
      sparse_operands_clear(&o);
      compare_case(&sparse_cases[at], shift, isa, cut);
    }
  }
}

static void windows_of_all_kinds(void **state) {
  (void)state;
  for_each_isa(all_cases);
}

static void all_cuts(laci_jit_isa isa) {
  static const int least[] = {[LACI_JIT_AVX2] = 1,
                              [LACI_JIT_AVX512] = 1,
                              [LACI_JIT_AVX512BF16] = 2,
                              [LACI_JIT_AVX512VNNI] = 4,
                              [LACI_JIT_NEON] = 1};
  static const int most[] = {[LACI_JIT_AVX2] = 6,
                             [LACI_JIT_AVX512] = 30,
                             [LACI_JIT_AVX512BF16] = 24,
                             [LACI_JIT_AVX512VNNI] = 24,
                             [LACI_JIT_NEON] = 6};
  for (int rows = least[isa]; rows <= most[isa]; rows += tests_stride(4)) {
    for (int terms = 1; terms < 10000; terms *= 7) {
      for (int chunk = 1; chunk <= 4; chunk += 2) {
        const laci_sparse_cut cut = {rows, terms, chunk, rows % 3 * 16, terms % 2 == rows % 2,
                                     false};
        compare_case(&sparse_cases[(rows + terms) % 2], rows % 3, isa, cut);
      }
    }
  }
}

static void any_cut_has_the_same_bytes(void **state) {
  (void)state;
  for_each_isa(all_cuts);
}

/* A block of two rows for each pair of patterns, of two kept and of other numbers; of int8 two
 * blocks of one row. */
static void all_pairs(laci_jit_isa isa) {
  const sparse_case two_rows = {"a pair of patterns",
                                SPARSE_WINDOW(4, 2, 1, 3, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS,
                                1, 2};
  const sparse_case one_row = {
      "two blocks", SPARSE_WINDOW(8, 1, 1, 3, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), PIXELS, 1, 2};
  const sparse_case c = case_of(isa == LACI_JIT_AVX512VNNI ? &one_row : &two_rows, isa);
  for (int pair = 0; pair < 256; pair += tests_stride(5)) {
    sparse_operands o;
    sparse_operands_init(&c, 0, &o);
    const laci_sparse_layouts layouts = {o.convolution.in, o.convolution.out, 1};
    lac_error err = {0};
    for (int at = 0; at < 8; at++) o.kept[at] = pair >> at & 1;
    laci_sparse_convolution_clear(&o.convolution);
    assert_int_equal(
        laci_sparse_convolution_init(&c.window, o.kept, &layouts, &o.convolution, &err), LAC_OK);
    laci_sparse_convolution_set_weights(&o.convolution, o.dense);
    const laci_sparse_operands run = sparse_run_of(&o, false, -INFINITY, INFINITY);
    generated g =
        generate(&o, (laci_sparse_epilogue){0}, isa, (laci_sparse_cut){6, 100, 8, 0, false, false});
    define(&o, &run, g.want);
    expect_run(&g, &o, &run, NULL, c.what);
    end(&g);
    sparse_operands_clear(&o);
  }
}

static void every_pair_of_patterns(void **state) {
  (void)state;
  for_each_isa(all_pairs);
}

static void threads_of_cut(laci_jit_isa isa, laci_sparse_cut cut) {
  const sparse_case c = case_of(&sparse_cases[5], isa);
  sparse_operands o;
  sparse_operands_init(&c, 1, &o);
  laci_sparse_operands run = sparse_run_of(&o, true, 0, INFINITY);
  sparse_follow(&run, 2, false);
  for (int n = 1; n <= 3; n++) { /* they make the code, too */
    laci_sparse_options options = {.isa = isa, .after = {.functions = true}, .cut = cut};
    lac_error err = {0};
    assert_int_equal(laci_pool_create(n, &options.pool, &err), LAC_OK);
    generated g = generate_as(&o, &options);
    define(&o, &run, g.want);
    for (int round = 0; round < 20; round++) expect_run(&g, &o, &run, options.pool, "threads");
    end(&g);
    laci_pool_destroy(options.pool);
  }
  sparse_operands_clear(&o);
}

static void threads_of(laci_jit_isa isa) {
  threads_of_cut(isa, (laci_sparse_cut){5, 90, 2, 0, false, false});
  threads_of_cut(isa, (laci_sparse_cut){6, 9000, 20, 0, false, false});
  threads_of_cut(isa, (laci_sparse_cut){5, 90, 3, 0, true, false});
}

static void one_two_three_threads_make_the_same_bytes(void **state) {
  (void)state;
  for_each_isa(threads_of);
}

/* The weights, one by one in their places, as they or their halves have them. */
static void put_in_place(generated *g, const sparse_operands *o) {
  const float *weight = o->convolution.kept.weight;
  laci_sparse_places from = {laci_alloc((size_t)o->convolution.n_kept, sizeof *from.at),
                             o->convolution.n_kept};
  laci_sparse_places to;
  lac_error err = {0};
  float *into = laci_sparse_code_weights(g->code);
  assert_non_null(from.at);
  for (int64_t k = 0; k < from.n; k++) from.at[k] = (int32_t)k;
  assert_int_equal(laci_sparse_code_order_places(g->code, &from, &to, &err), LAC_OK);
  if (o->convolution.product.values == LACI_SPARSE_F32) {
    assert_int_equal(to.n, from.n);
    for (int64_t k = 0; k < to.n; k++) into[k] = weight[to.at[k]];
  } else {
    for (int64_t k = 0; k < to.n; k += 2) {
      const int32_t low = to.at[k], high = to.at[k + 1];
      const uint32_t pair = laci_bf16_pair(low == LACI_SPARSE_NO_SOURCE ? 0 : weight[low],
                                           high == LACI_SPARSE_NO_SOURCE ? 0 : weight[high]);
      memcpy(into + k / 2, &pair, sizeof pair);
    }
  }
  laci_free(from.at);
  laci_free(to.at);
}

static void rewrites_of(laci_jit_isa isa) {
  const sparse_case c = case_of(&sparse_cases[5], isa);
  sparse_operands o;
  sparse_operands_init(&c, 0, &o);
  const laci_sparse_operands run = sparse_run_of(&o, false, -INFINITY, INFINITY);
  generated g =
      generate(&o, (laci_sparse_epilogue){0}, isa, (laci_sparse_cut){6, 500, 3, 0, false, false});
  for (int step = 0; step < 3; step++) {
    for (int64_t k = 0; k < o.convolution.n_kept; k++)
      o.convolution.kept.weight[k] *= 0.75F - (float)(k % 5);
    laci_sparse_code_set_weights(g.code, o.convolution.kept.weight);
    define(&o, &run, g.want);
    expect_run(&g, &o, &run, NULL, "new weights");
  }
  if (isa != LACI_JIT_AVX512VNNI) {
    for (int64_t k = 0; k < o.convolution.n_kept; k++)
      o.convolution.kept.weight[k] = 0.01F * (float)(k % 37 - 18);
    define(&o, &run, g.want);
    put_in_place(&g, &o);
    expect_run(&g, &o, &run, NULL, "new weights where they lie");
  }
  end(&g);
  sparse_operands_clear(&o);
}

static void weights_change_in_place(void **state) {
  (void)state;
  for_each_isa(rewrites_of);
}

static void one_cache_holds_several_layers(void **state) {
  const laci_jit_isa isa = laci_jit_isa_in_force();
  laci_code_cache *cache;
  laci_sparse_code *code[3];
  sparse_operands o[3];
  lac_error err = {0};
  (void)state;
  if (isa == LACI_JIT_NONE) skip();
  assert_int_equal(laci_code_cache_create(CODE_LIMIT, &cache, &err), LAC_OK);
  for (int at = 0; at < 3; at++) {
    sparse_operands_init(&sparse_cases[at], 0, &o[at]);
    const laci_sparse_product *p = &o[at].convolution.product;
    const laci_sparse_extent extent = {o[at].convolution.tiles, o[at].convolution.n_tiles,
                                       o[at].n_x, 2};
    const laci_sparse_cut cut = laci_sparse_choose_cut(p, isa, &extent);
    const laci_sparse_options options = {.isa = isa, .cut = cut};
    assert_int_equal(laci_sparse_code_create(p, &options, cache, &code[at], &err), LAC_OK);
    laci_sparse_code_set_weights(code[at], o[at].convolution.kept.weight);
  }
  assert_int_equal(laci_code_cache_seal(cache, &err), LAC_OK);
  for (int at = 0; at < 3; at++) {
    const laci_sparse_operands run = sparse_run_of(&o[at], false, -INFINITY, INFINITY);
    generated g = {cache, code[at], malloc(sparse_result_bytes(&o[at]))};
    define(&o[at], &run, g.want);
    laci_sparse_convolution_free_weights(&o[at].convolution);
    expect_run(&g, &o[at], &run, NULL, "one of several");
    free(g.want);
    laci_sparse_code_destroy(code[at]);
    sparse_operands_clear(&o[at]);
  }
  laci_code_cache_destroy(cache);
}

static lac_status make_all(const sparse_operands *o, const sparse_case *c, lac_error *err) {
  const laci_sparse_layouts layouts = {o->convolution.in, o->convolution.out, c->n_images};
  const laci_sparse_options options = {.isa = LACI_JIT_AVX2, .cut = {6, 40, 4, 0, true, false}};
  laci_sparse_convolution convolution;
  laci_code_cache *cache = NULL;
  laci_sparse_code *code = NULL;
  lac_status st = laci_sparse_convolution_init(&c->window, o->kept, &layouts, &convolution, err);
  if (!st) st = laci_code_cache_create(CODE_LIMIT, &cache, err);
  if (!st) st = laci_sparse_code_create(&convolution.product, &options, cache, &code, err);
  if (!st) st = laci_code_cache_seal(cache, err);
  laci_sparse_code_destroy(code);
  laci_code_cache_destroy(cache);
  laci_sparse_convolution_clear(&convolution);
  return st;
}

static void every_allocation_may_fail(void **state) {
  sparse_operands o;
  (void)state;
  sparse_operands_init(&sparse_cases[4], 0, &o);
  for (long n = 1;; n++) {
    lac_error err = {0};
    laci_memory_fail_from(n);
    const lac_status st = make_all(&o, &sparse_cases[4], &err);
    const bool pending = laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    assert_int_equal(st, pending ? LAC_OK : LAC_NO_MEMORY);
    if (pending) break;
    assert_true(n < 1000);
  }
  sparse_operands_clear(&o);
}

static void says_what_does_not_fit(void **state) {
  const int64_t near[] = {0, 16}, far[] = {0, (int64_t)1 << 30}, begin[] = {0, 1};
  const int32_t column[] = {1};
  laci_sparse_product p = {1, 2, 1, begin, column, far, NULL, 16, LACI_SPARSE_F32};
  laci_code_cache *cache;
  laci_sparse_code *code;
  lac_error err = {0};
  (void)state;
  assert_int_equal(laci_code_cache_create(64, &cache, &err), LAC_OK);
  const laci_sparse_options options = {.isa = LACI_JIT_AVX2, .cut = {6, 100, 4, 0, false, false}};
  assert_int_equal(laci_sparse_code_create(&p, &options, cache, &code, &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text, "a sparse product's code: operands of more than 268435456 floats");
  assert_null(code);
  p.column_at = near;
  assert_int_equal(laci_sparse_code_create(&p, &options, cache, &code, &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text, "a sparse product's code: more than 64 bytes, the limit");
  laci_code_cache_destroy(cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(windows_of_all_kinds),
      cmocka_unit_test(rows_without_zeros_between_them),
      cmocka_unit_test(any_cut_has_the_same_bytes),
      cmocka_unit_test(every_pair_of_patterns),
      cmocka_unit_test(one_two_three_threads_make_the_same_bytes),
      cmocka_unit_test(weights_change_in_place),
      cmocka_unit_test(one_cache_holds_several_layers),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(says_what_does_not_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
