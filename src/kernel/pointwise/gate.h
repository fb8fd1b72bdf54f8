/* SPDX-License-Identifier: Apache-2.0
 * Multiplies each channel by its own factor, in blocks of 16 contiguous channels:
 *
 *     y[pixel][c] = x[pixel][c] * factor[c],  c < 16
 *
 * Each element is one product, so every variant gives the same bits. gate_isa.c is the common
 * source of all variants; the scalar variant is the reference. Caller: engine/cpu/lower/binary.c.
 */
#ifndef LACI_KERNEL_POINTWISE_GATE_H
#define LACI_KERNEL_POINTWISE_GATE_H

#include <stdint.h>

#include "kernel/variants.h"

enum { LACI_GATE_BLOCK = 16 };

/** x and y are [n_pixels, 16], factor is [16]; y may be x, but they may not overlap partly. Needs
 * only the alignment of floats. Callable from any thread. */
typedef void laci_gate(const float *x, const float *factor, int64_t n_pixels, float *y);

#define LACI_GATE_DECLARE(name, level) laci_gate laci_gate_##name;
LACI_KERNEL_VARIANTS(LACI_GATE_DECLARE)
#undef LACI_GATE_DECLARE

/** Returns the variant for the SIMD level in force (cpu/cpu.h). */
laci_gate *laci_gate_variant(void);

#endif
