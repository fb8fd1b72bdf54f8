/* SPDX-License-Identifier: Apache-2.0
 * Measures what a core can do at best, as baselines for benchmarks: multiply-adds on registers
 * alone, and plain reads of memory.
 *
 * The multiply-adds are chains x = x / 2 + 1, enough of them in parallel to hide the latency. The
 * halving is exact and the sum is rounded once, so that fused and separate instructions give the
 * same numbers, and every variant ends at the same value. Read next: peak_isa.c,
 * api/bench/peak.c. */
#ifndef LACI_KERNEL_PEAK_H
#define LACI_KERNEL_PEAK_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/variants.h"

/** Advances all chains by `iterations` steps. *value becomes the largest chain value; chains begin
 * at 0 and tend to 2. Returns the number of multiplications and additions done. */
typedef double laci_peak_loop(int64_t iterations, float *value);

#define LACI_PEAK_DECLARE(name, level) laci_peak_loop laci_peak_f32_##name;
LACI_KERNEL_VARIANTS(LACI_PEAK_DECLARE)
#undef LACI_PEAK_DECLARE
laci_peak_loop laci_peak_f32_avx512f; /* AVX-512 without VNNI, which LACI_CPU_AVX512 requires */

typedef struct laci_peak_kernel {
  const char *name; /* for reports: "avx512 f32" */
  laci_peak_loop *run;
} laci_peak_kernel;

/** Returns the f32 loop of the variant in force (cpu/cpu.h), or the AVX-512 loop where the
 * processor lacks only VNNI. */
laci_peak_kernel laci_peak_f32_variant(void);
/** Returns the loop of bf16 products summed in f32; run is NULL where the processor has no such
 * instruction. Its chains are x = x + 1, so the largest value is `iterations`. */
laci_peak_kernel laci_peak_bf16_variant(void);

/** Reads n words, aligned to 64 bytes, in ascending order; returns their exclusive or. It is plain
 * C: even scalar loads are several times faster than the memory. */
uint64_t laci_peak_read_memory(const uint64_t *words, size_t n);

#endif
