/* SPDX-License-Identifier: Apache-2.0
 * Which instructions may be generated here. */
#ifndef LACI_JIT_ISA_H
#define LACI_JIT_ISA_H

#include "lacuna/status.h"

typedef enum laci_jit_isa {
  LACI_JIT_NONE,       /* another kind of processor, an old one, or LAC_CPU=scalar */
  LACI_JIT_AVX2,       /* and FMA */
  LACI_JIT_AVX512,     /* F, BW, VL and DQ: what the first processors with AVX-512 have */
  LACI_JIT_AVX512BF16, /* these and BF16: for products of bf16, and no others */
  LACI_JIT_AVX512VNNI, /* these and VNNI: for products of int8, and no others */
  LACI_JIT_NEON,       /* 64-bit ARM */
} laci_jit_isa;

/** What the processor has, as far as LAC_CPU and laci_cpu_cap (cpu/cpu.h) allow. */
laci_jit_isa laci_jit_isa_now(void);
/** The same, and NONE where the system does not let this process make memory executable: asked by
 * trying. */
laci_jit_isa laci_jit_isa_allowed(void);
/** Does the system let this process make memory executable? It is tried. Fails LAC_UNSUPPORTED,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_jit_check(lac_error *err);
/** What products of bf16 are generated for where others are for `isa`: AVX512BF16 or NONE; those of
 * int8: AVX512VNNI or NONE. */
laci_jit_isa laci_jit_isa_of_bf16(laci_jit_isa isa);
laci_jit_isa laci_jit_isa_of_int8(laci_jit_isa isa);
/** "none", "avx2", "avx512", "avx512bf16", "avx512vnni", "neon" */
const char *laci_jit_isa_name(laci_jit_isa isa);

#endif
