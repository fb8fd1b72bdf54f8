/* SPDX-License-Identifier: Apache-2.0
 * Int8 layers of a quantized network (QDQ): how they are found, and what their kernels compute. */
#ifndef LACI_ENGINE_CPU_NATIVE_INT8_INT8_H
#define LACI_ENGINE_CPU_NATIVE_INT8_INT8_H

#include "engine/cpu/native/layer.h"

/** Limit of the products of a row together, and of its bias: both together fit in 32 bits. */
enum { LACI_NATIVE_MOST_SUM = 1 << 30 };

/* ---- find.c ---- */

/** Returns the scale of the integer sums of output channel `row`: the scale of the layer's input
 * times that of the row's weights. */
double laci_native_sum_scale(const laci_native_int8_data *int8, int64_t row);

/* ---- posts.c ---- */

/** Sets the bounds and the zero point of the layer's int8 result. */
void laci_native_set_int8_bounds(laci_native_layer *layer);
/** Sets the layer's bounds, zero point, residual and functions in the form that its int8 kernel
 * reads. False: no memory, which is recorded in the plan. */
bool laci_native_set_int8_post_functions(laci_net *net, laci_native_layer *layer);

#endif
