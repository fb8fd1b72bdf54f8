/* SPDX-License-Identifier: Apache-2.0
 * Channels times a number each, where 16 channels are contiguous:
 *
 *     y[pixel][c] = x[pixel][c] * factor[c],  c < 16
 *
 * One product an element: the same bits from every variant. gate_isa.c is the one text of all
 * variants; the scalar one is the definition of right. Next: engine/cpu/lower/binary.c, the reader.
 */
#ifndef LACI_KERNEL_POINTWISE_GATE_H
#define LACI_KERNEL_POINTWISE_GATE_H

#include <stdint.h>

#include "kernel/variants.h"

enum { LACI_GATE_BLOCK = 16 };

/** x and y [n_pixels, 16], the same memory or apart; factor [16]; any alignment. Any thread. */
typedef void laci_gate(const float *x, const float *factor, int64_t n_pixels, float *y);

#define LACI_GATE_DECLARE(name, level) laci_gate laci_gate_##name;
LACI_KERNEL_VARIANTS(LACI_GATE_DECLARE)
#undef LACI_GATE_DECLARE

/** The variant by the level in force (cpu/cpu.h). */
laci_gate *laci_gate_now(void);

#endif
