/* SPDX-License-Identifier: Apache-2.0
 * Asks the processor for isa.h. */
#include "jit/isa.h"

#include "cpu/cpu.h"

laci_jit_isa laci_jit_isa_now(void) {
  if (laci_cpu_has_avx512f()) return LACI_JIT_AVX512;
  return laci_cpu() == LACI_CPU_AVX2 || laci_cpu() == LACI_CPU_AVX512 ? LACI_JIT_AVX2
                                                                      : LACI_JIT_NONE;
}

const char *laci_jit_isa_name(laci_jit_isa isa) {
  return isa == LACI_JIT_AVX512 ? "avx512" : isa == LACI_JIT_AVX2 ? "avx2" : "none";
}
