/* SPDX-License-Identifier: Apache-2.0
 * Layers of a quantized network: found, bounded, and what their kernels multiply. */
#ifndef LACI_ENGINE_CPU_NATIVE_INT8_INT8_H
#define LACI_ENGINE_CPU_NATIVE_INT8_INT8_H

#include "engine/cpu/native/layer.h"

/* ---- find.c ---- */

/** What the bytes stand for that the value came through; NULL: it did not. */
const laci_fake_quantized *laci_native_bytes_of(const laci_cpu_plan *plan, int value);
/** Do bytes stand for the same numbers there? */
bool laci_native_same_units(const laci_fake_quantized *a, const laci_fake_quantized *b);
/** What a sum of a row counts in: the input's scale times the row's. */
double laci_native_bytes_scale(const laci_native_bytes *bytes, int64_t row);

/* ---- posts.c ---- */

/** The bounds of a result that becomes bytes, and its zero point. */
void laci_native_bound_bytes(laci_native_layer *layer);
/** These, and residual and functions of such a layer as its kernel wants them. False: no memory
 * (noted). */
bool laci_native_follow_bytes(laci_net *net, laci_native_layer *layer);

#endif
