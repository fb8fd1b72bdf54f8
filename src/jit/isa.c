/* SPDX-License-Identifier: Apache-2.0
 * Finds the instruction sets of isa.h that this processor and system allow. */
#include "jit/isa.h"

#include "cpu/cpu.h"
#include "jit/cache.h"

laci_jit_isa laci_jit_isa_in_force(void) {
  if (laci_cpu_level_in_force() == LACI_CPU_NEON) return LACI_JIT_NEON;
  if (laci_cpu_has_avx512f()) return LACI_JIT_AVX512;
  return laci_cpu_level_in_force() == LACI_CPU_AVX2 || laci_cpu_level_in_force() == LACI_CPU_AVX512
             ? LACI_JIT_AVX2
             : LACI_JIT_NONE;
}

laci_jit_isa laci_jit_isa_for_bf16(laci_jit_isa isa) {
  return isa == LACI_JIT_AVX512 && laci_cpu_has_avx512bf16() ? LACI_JIT_AVX512BF16 : LACI_JIT_NONE;
}

laci_jit_isa laci_jit_isa_for_int8(laci_jit_isa isa) {
  const bool vnni = laci_cpu_level_in_force() == LACI_CPU_AVX512;
  return isa == LACI_JIT_AVX512 && vnni ? LACI_JIT_AVX512VNNI : LACI_JIT_NONE;
}

const char *laci_jit_isa_name(laci_jit_isa isa) {
  static const char *const names[] = {[LACI_JIT_NONE] = "none",
                                      [LACI_JIT_AVX2] = "avx2",
                                      [LACI_JIT_AVX512] = "avx512",
                                      [LACI_JIT_AVX512BF16] = "avx512bf16",
                                      [LACI_JIT_AVX512VNNI] = "avx512vnni",
                                      [LACI_JIT_NEON] = "neon"};
  return names[isa];
}

lac_status laci_jit_check_allowed(lac_error *err) {
  const uint8_t code = 0;
  laci_code_cache *cache;
  lac_status st = laci_code_cache_create(sizeof code, &cache, err);
  if (!st) laci_code_append(laci_code_cache_get_writable(cache), &code, sizeof code);
  if (!st) st = laci_code_cache_seal(cache, err);
  laci_code_cache_destroy(cache);
  return st;
}

laci_jit_isa laci_jit_isa_allowed(void) {
  lac_error ignored;
  return laci_jit_check_allowed(&ignored) ? LACI_JIT_NONE : laci_jit_isa_in_force();
}
