/* SPDX-License-Identifier: Apache-2.0
 * What this processor can do, found out once.
 *
 * Levels of one kind of processor are ordered: one includes those before it. The environment
 * variable LAC_CPU caps the level (scalar|avx2|avx512 on x86-64, scalar|neon on 64-bit ARM), for
 * users, tests and bug reports alike. Kernel families choose their variant by it
 * (kernel/variants.h). */
#ifndef LACI_CPU_CPU_H
#define LACI_CPU_CPU_H

#include <stdbool.h>

typedef enum laci_cpu_level {
  LACI_CPU_ANY,    /* plain C */
  LACI_CPU_AVX2,   /* x86-64 with AVX2 and FMA */
  LACI_CPU_AVX512, /* and AVX-512 F, BW, VL, DQ and VNNI */
  LACI_CPU_NEON,   /* 64-bit ARM: every one has it */
} laci_cpu_level;

/** The level in force: one that this kind of processor has. Any thread; one atomic read after the
 * first call. */
laci_cpu_level laci_cpu(void);

/** "scalar", "avx2", "avx512", "neon": the words LAC_CPU knows, each where it means something. */
const char *laci_cpu_name(laci_cpu_level level);

/** Has it AVX-512 F, BW, VL and DQ, and does the cap allow them? The first processors with AVX-512
 * have these and not VNNI, and so stay below LACI_CPU_AVX512. Any thread. */
bool laci_cpu_has_avx512f(void);

/** Does the processor have AVX512-BF16 in addition to LACI_CPU_AVX512's, and does the cap allow
 * that? Any thread. */
bool laci_cpu_has_avx512bf16(void);

/** Matrix tiles of bf16 (AMX-BF16), and does the cap allow LACI_CPU_AVX512? Dense products are then
 * several times as fast as by vectors. Any thread. */
bool laci_cpu_has_bf16_tiles(void);

/** Caps the level below what the processor has (never above it); returns the level now in force. A
 * level of another kind of processor caps nothing. For tests and benches, while no other thread
 * works. */
laci_cpu_level laci_cpu_cap(laci_cpu_level level);

#endif
