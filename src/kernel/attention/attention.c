/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of attention.h, and computes the size of its scratch memory. */
#include "kernel/attention/attention.h"

#include "cpu/cpu.h"

static laci_attend *const of_level[] = {
#define VARIANT(name, level) [level] = laci_attend_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_attend *laci_attend_variant(bool bf16) {
  laci_cpu_level level = laci_cpu_level_in_force();
#if defined(__x86_64__)
  if (bf16 && laci_cpu_has_avx512bf16()) return laci_attend_avx512bf16;
#else
  (void)bf16;
#endif
  return of_level[level];
}

size_t laci_attention_scratch_bytes(const laci_attention *a) {
  const uint64_t most = (uint64_t)1 << 24; /* limit of each size, below which nothing overflows */
  uint64_t queries = LACI_ATTENTION_ROWS, block = LACI_ATTENTION_COLUMNS;
  uint64_t keys = (uint64_t)a->n_keys, depth = (uint64_t)a->depth, width = (uint64_t)a->width;
  if (keys > most || depth > most || width > most) return 0;
  keys = (keys + block - 1) / block * block;
  width = (width + block - 1) / block * block;
  depth = (depth + 15) / 16 * 16;
  uint64_t units = keys * depth + width * keys + queries * depth + 2 * queries * keys;
  return (size_t)units * sizeof(float);
}
