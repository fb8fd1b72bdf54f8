/* SPDX-License-Identifier: Apache-2.0
 * rows.h for every instruction set: the build compiles this once for each (variants.h). A loop is
 * written for each choice of operands that are one element, so that the compiler makes vectors of
 * it. */
#include "kernel/pointwise/rows.h"

#include "tensor/bf16.h"
#include "tensor/narrow.h"

#define INLINE static inline __attribute__((always_inline))
#define INTEGER(k) (((const int64_t *)from[k])[step##k * i])
#define FLOAT(k) (((const float *)from[k])[step##k * i])

#define CASE(NAME, a, b, c)               \
  case (a) | (b) << 1 | (c) << 2:         \
    compute_##NAME(n, to, from, a, b, c); \
    break
#define CASES_1(NAME)  \
  CASE(NAME, 0, 0, 0); \
  CASE(NAME, 1, 0, 0)
#define CASES_2(NAME)  \
  CASES_1(NAME);       \
  CASE(NAME, 0, 1, 0); \
  CASE(NAME, 1, 1, 0)
#define CASES_3(NAME)  \
  CASES_2(NAME);       \
  CASE(NAME, 0, 0, 1); \
  CASE(NAME, 1, 0, 1); \
  CASE(NAME, 0, 1, 1); \
  CASE(NAME, 1, 1, 1)

#define LACI_ROW(NAME, N, TYPE, VALUE)                                                       \
  INLINE void compute_##NAME(int64_t n, void *to, const void *const from[LACI_ROW_OPERANDS], \
                             int64_t step0, int64_t step1, int64_t step2) {                  \
    TYPE *restrict y = to;                                                                   \
    (void)step0, (void)step1, (void)step2;                                                   \
    for (int64_t i = 0; i < n; i++) y[i] = VALUE;                                            \
  }                                                                                          \
  static void NAME(int64_t n, void *to, const void *const from[LACI_ROW_OPERANDS],           \
                   const int64_t steps[LACI_ROW_OPERANDS]) {                                 \
    switch (steps[0] | steps[1] << 1 | steps[2] << 2) {                                      \
      CASES_##N(NAME);                                                                       \
      default: break;                                                                        \
    }                                                                                        \
  }
#include "kernel/pointwise/rows.def"
#undef LACI_ROW

laci_row_function *const LACI_VARIANT(laci_rows)[LACI_N_ROW_KINDS] = {
#define LACI_ROW(NAME, N, TYPE, VALUE) [LACI_ROW_##NAME] = NAME,
#include "kernel/pointwise/rows.def"
#undef LACI_ROW
};
