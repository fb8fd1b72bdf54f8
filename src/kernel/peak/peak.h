/* SPDX-License-Identifier: Apache-2.0
 * What a core can do at best, as baselines for benches: multiply-adds that never leave the
 * registers, and a read of memory that does nothing else.
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

/** Advances all chains by `iterations` steps; *value is the largest, which began at 0 (it tends to
 * 2). Returns how many multiplications and additions that were. */
typedef double laci_peak_loop(int64_t iterations, float *value);

#define LACI_PEAK_DECLARE(name, level) laci_peak_loop laci_peak_f32_##name;
LACI_KERNEL_VARIANTS(LACI_PEAK_DECLARE)
#undef LACI_PEAK_DECLARE
laci_peak_loop laci_peak_f32_avx512f; /* without VNNI, which the level asks for */

typedef struct laci_peak_kernel {
  const char *name; /* "avx512 f32" */
  laci_peak_loop *run;
} laci_peak_kernel;

/** The baseline of f32 by the variant in force (cpu/cpu.h), or by AVX-512 where only VNNI lacks. */
laci_peak_kernel laci_peak_f32(void);
/** The one of bf16 products that are summed in f32; run is NULL where the processor has none. Its
 * chains are x = x + 1 instead, and its largest value is therefore `iterations`. */
laci_peak_kernel laci_peak_bf16(void);

/** Reads n words, aligned to 64 bytes, in ascending order; returns their exclusive or. Plain C: one
 * core's loads outrun its memory several times over without vectors. */
uint64_t laci_peak_read(const uint64_t *words, size_t n);

#endif
