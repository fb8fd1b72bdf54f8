/* SPDX-License-Identifier: Apache-2.0
 * The instruction sets that code can be generated for. */
#ifndef LACI_JIT_ISA_H
#define LACI_JIT_ISA_H

#include "lacuna/status.h"

typedef enum laci_jit_isa {
  LACI_JIT_NONE,       /* an unsupported or old processor, or LAC_CPU=scalar */
  LACI_JIT_AVX2,       /* AVX2 and FMA */
  LACI_JIT_AVX512,     /* F, BW, VL and DQ: what the first processors with AVX-512 have */
  LACI_JIT_AVX512BF16, /* AVX512 and BF16; for products of bf16 only */
  LACI_JIT_AVX512VNNI, /* AVX512 and VNNI; for products of int8 only */
  LACI_JIT_NEON,       /* 64-bit ARM */
} laci_jit_isa;

/** Returns the instruction set of this processor, within the caps of LAC_CPU and
 * laci_cpu_limit_level (cpu/cpu.h). */
laci_jit_isa laci_jit_isa_in_force(void);
/** Returns laci_jit_isa_in_force(), or NONE if the system does not let this process make memory
 * executable, which is tried. */
laci_jit_isa laci_jit_isa_allowed(void);
/** Tries whether the system lets this process make memory executable. Fails LAC_UNSUPPORTED,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_jit_check_allowed(lac_error *err);
/** Where products of floats are generated for `isa`, return the instruction set for products of
 * bf16 (AVX512BF16 or NONE), and for those of int8 (AVX512VNNI or NONE). */
laci_jit_isa laci_jit_isa_for_bf16(laci_jit_isa isa);
laci_jit_isa laci_jit_isa_for_int8(laci_jit_isa isa);
/** Returns "none", "avx2", "avx512", "avx512bf16", "avx512vnni" or "neon". */
const char *laci_jit_isa_name(laci_jit_isa isa);

#endif
