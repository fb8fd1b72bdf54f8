/* SPDX-License-Identifier: Apache-2.0
 * The rounding function of bf16_pairs.h for every instruction set (variants.h): a plain loop that
 * the compiler vectorizes. */
#include "kernel/sparse/bf16_pairs.h"
#include "kernel/variants.h"

void LACI_VARIANT(laci_sparse_round)(const float *from, int64_t n, uint16_t *to) {
  for (int64_t i = 0; i < n; i++) to[i] = laci_bf16_from_float(from[i]);
}
