/* SPDX-License-Identifier: Apache-2.0
 * Which SIMD instructions this processor has; found at the first call.
 *
 * Levels of one kind of processor are ordered: one includes those before it. The environment
 * variable LAC_CPU caps the level (scalar|avx2|avx512 on x86-64, scalar|neon on 64-bit ARM), for
 * users, tests and bug reports. Kernel families choose their variant by the level
 * (kernel/variants.h). */
#ifndef LACI_CPU_CPU_H
#define LACI_CPU_CPU_H

#include <stdbool.h>
#include <stddef.h>

typedef enum laci_cpu_level {
  LACI_CPU_ANY,    /* plain C */
  LACI_CPU_AVX2,   /* x86-64 with AVX2 and FMA */
  LACI_CPU_AVX512, /* what LACI_CPU_AVX2 has, and AVX-512 F, BW, VL, DQ and VNNI */
  LACI_CPU_NEON,   /* 64-bit ARM, all of which has NEON */
} laci_cpu_level;

/** Returns the SIMD level in force, a level of this kind of processor. Callable from any thread;
 * after the first call it costs one atomic read. */
laci_cpu_level laci_cpu_level_in_force(void);

/** Returns "scalar", "avx2", "avx512" or "neon", the values of LAC_CPU. */
const char *laci_cpu_level_name(laci_cpu_level level);

/** Does the processor have AVX-512 F, BW, VL and DQ, and does LAC_CPU allow AVX-512? The first
 * processors with AVX-512 have these, but not VNNI; their level is therefore below LACI_CPU_AVX512.
 * Callable from any thread. */
bool laci_cpu_has_avx512f(void);

/** Does the processor have AVX512-BF16 in addition to LACI_CPU_AVX512, and does LAC_CPU allow that
 * level? Callable from any thread. */
bool laci_cpu_has_avx512bf16(void);

/** Does the processor have matrix tiles of bf16 (AMX-BF16), and does LAC_CPU allow LACI_CPU_AVX512?
 * Dense products are then several times as fast as with vectors. Callable from any thread. */
bool laci_cpu_has_bf16_tiles(void);

/** Does the processor have matrix tiles of int8 (AMX-INT8), does LAC_CPU allow LACI_CPU_AVX512, and
 * does the system let this process use tiles? The first call asks the system for it. Callable from
 * any thread. */
bool laci_cpu_has_int8_tiles(void);

/** Returns the bytes of the second cache, which each core has of its own; 0: the system does not
 * say. Callable from any thread. */
size_t laci_cpu_second_cache_bytes(void);

/** Caps the SIMD level, and returns the level now in force, which is never above what the processor
 * has. A level of another kind of processor caps nothing. For tests and benchmarks, while no other
 * thread computes. */
laci_cpu_level laci_cpu_limit_level(laci_cpu_level level);

#endif
