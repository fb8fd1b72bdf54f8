/* SPDX-License-Identifier: Apache-2.0
 * What the rest of the engine may ask about values in native layouts, whose details it does not
 * know. A tensor is in a native layout where its `native` is not NULL (lower/lower.h). Read next:
 * layout/values.c. */
#ifndef LACI_ENGINE_CPU_NATIVE_VALUES_H
#define LACI_ENGINE_CPU_NATIVE_VALUES_H

#include "engine/cpu/net_in.h"

typedef struct laci_fake_quantized laci_fake_quantized;

/** Returns a tensor in a native layout as a tensor in a layout that oneDNN knows: an existing copy,
 * or a new one, made by a step. */
int laci_native_read_for_onednn(laci_net *net, int tensor);
/** Returns the layout in which laci_native_read_for_onednn copies a tensor. NULL after a
 * failure. */
laci_layout *laci_native_onednn_layout(laci_net *net, int tensor);
/** Returns the layout in which laci_native_read_for_onednn would copy an NCHW tensor of this shape.
 * NULL after a failure. */
laci_layout *laci_native_onednn_layout_of_shape(laci_net *net, const laci_shape *shape);
/** Returns an int8 tensor in a native layout as floats: an existing copy, or a new one, made by a
 * step. Other tensors are returned unchanged. */
int laci_native_read_as_floats(laci_net *net, int tensor);
/** Returns a tensor of the value in the native layout of tensor `like`: the tensor of the value,
 * an existing copy, or a new one, made by a step. */
int laci_native_read_in_layout_of(laci_net *net, int value, int like);
/** Returns a tensor of the value quantized to int8. It has the layout of value `output`, the
 * result of the quantization. */
int laci_native_read_as_int8(laci_net *net, int value, int output,
                             const laci_fake_quantized *bytes);

/** If the value `from` is stored as a matrix of native layers, and `value` has the same rows under
 * other axes, binds `value` to the same memory and returns true. If `from` is an int8 image of one
 * pixel, and `value` a row that int8 layers read, binds `value` to a copy of its bytes. */
bool laci_native_bind_same_rows(laci_net *net, int value, int from);

/** Is the value written by a native layer, added to its result, or read in the layout in which it
 * is stored? */
bool laci_native_is_value_used(const laci_net *net, int value);
/** Does a chosen int8 layer read the value? */
bool laci_native_has_int8_reader(const laci_net *net, int value);
/** Is the tensor int8 with the scale and bounds of `bytes`? False where tensor is -1. */
bool laci_native_is_int8_tensor(const laci_net *net, int tensor, const laci_fake_quantized *bytes);
/** Is the value stored in the layout of layers under training (HWC16N)? */
bool laci_native_is_in_train_layout(const laci_net *net, int value);
/** Returns the number of floats of a tensor in a native layout, padding included. */
int64_t laci_native_count_floats(const laci_net *net, int tensor);

#endif
