/* SPDX-License-Identifier: Apache-2.0
 * Int8 layers of a quantized network (QDQ): which there are, and what their kernels compute. */
#ifndef LACI_ENGINE_CPU_NATIVE_INT8_INT8_H
#define LACI_ENGINE_CPU_NATIVE_INT8_INT8_H

#include "engine/cpu/native/layer.h"

/* ---- find.c ---- */

/** The quantization through which the value came: its scale and bounds. NULL: it is not
 * quantized. */
const laci_fake_quantized *laci_native_bytes_of(const laci_cpu_plan *plan, int value);
/** Have both the same scale and bounds, so that their bytes mean the same numbers? */
bool laci_native_same_units(const laci_fake_quantized *a, const laci_fake_quantized *b);
/** The unit of a row's sum: the scale of the input times that of the row's weights. */
double laci_native_bytes_scale(const laci_native_bytes *bytes, int64_t row);

/* ---- posts.c ---- */

/** Sets bounds and zero point of a result that becomes int8. */
void laci_native_bound_bytes(laci_native_layer *layer);
/** The same, and residual and functions of the layer in the form in which its kernel reads them.
 * False: no memory (noted). */
bool laci_native_follow_bytes(laci_net *net, laci_native_layer *layer);

#endif
