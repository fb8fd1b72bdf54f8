/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variants of table.h. */
#include "kernel/pointwise/table.h"

#include "cpu/cpu.h"

static laci_table_look_up_floats *const floats_of_level[] = {
#define VARIANT(name, level) [level] = laci_table_look_up_floats_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

static laci_table_look_up_bytes *const bytes_of_level[] = {
#define VARIANT(name, level) [level] = laci_table_look_up_bytes_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_table_look_up_floats *laci_table_look_up_floats_variant(void) {
  return floats_of_level[laci_cpu_level_in_force()];
}

laci_table_look_up_bytes *laci_table_look_up_bytes_variant(void) {
  const laci_cpu_level level = laci_cpu_level_in_force();
#if defined(__x86_64__)
  if (level == LACI_CPU_AVX512 && __builtin_cpu_supports("avx512vbmi2")) {
    return laci_table_look_up_bytes_avx512vbmi2;
  }
#endif
  return bytes_of_level[level];
}
