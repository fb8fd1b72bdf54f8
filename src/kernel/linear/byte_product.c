/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of byte_product.h. */
#include "kernel/linear/byte_product.h"

#include "cpu/cpu.h"

static laci_multiply_bytes *const of_level[] = {
#define VARIANT(name, level) [level] = laci_multiply_bytes_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_multiply_bytes *laci_multiply_bytes_variant(void) {
  return of_level[laci_cpu_level_in_force()];
}

laci_multiply_bytes *laci_multiply_bytes_fastest(int64_t n_rows, const char **name) {
#if defined(__x86_64__)
  if (n_rows >= LACI_BYTE_TILE && laci_cpu_has_int8_tiles()) {
    *name = "bytes:amx";
    return laci_multiply_bytes_amx;
  }
#endif
  static const char *const names[] = {[LACI_CPU_ANY] = "bytes:scalar",
                                      [LACI_CPU_AVX2] = "bytes:avx2",
                                      [LACI_CPU_AVX512] = "bytes:avx512vnni",
                                      [LACI_CPU_NEON] = "bytes:neon"};
  (void)n_rows;
  *name = names[laci_cpu_level_in_force()];
  return laci_multiply_bytes_variant();
}
