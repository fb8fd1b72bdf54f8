/* SPDX-License-Identifier: Apache-2.0
 * What others may ask of values in native layouts, which they know nothing else of. A tensor is in
 * one where its `pictures` are not NULL (lower/lower.h). Next: layout/values.c. */
#ifndef LACI_ENGINE_CPU_NATIVE_VALUES_H
#define LACI_ENGINE_CPU_NATIVE_VALUES_H

#include "engine/cpu/net_in.h"

typedef struct laci_fake_quantized laci_fake_quantized;

/** Such a tensor in a layout of oneDNN's: found again, or by a step now. */
int laci_native_read(laci_net *net, int tensor);
/** That layout; and the one for images of that shape. NULL after a failure. */
laci_layout *laci_native_read_layout(laci_net *net, int tensor);
laci_layout *laci_native_images_layout(laci_net *net, const laci_shape *shape);
/** Such a tensor of int8 as floats: found again, or by a step now. Others as they are. */
int laci_native_read_floats(laci_net *net, int tensor);
/** The value in the native layout of `like`: as it is, found again, or by a step now. */
int laci_native_read_like(laci_net *net, int value, int like);
/** The value as int8 for the layers that read `output`, which it becomes. */
int laci_native_read_bytes(laci_net *net, int value, int output, const laci_fake_quantized *bytes);

/** Does a native layer write, add or read the value as it is stored? */
bool laci_native_has(const laci_net *net, int value);
/** Does a native layer of int8 read it? */
bool laci_native_wants_bytes(const laci_net *net, int value);
/** Is the tensor, which may be -1, of int8 that stands for this? */
bool laci_native_is_bytes(const laci_net *net, int tensor, const laci_fake_quantized *bytes);
/** Is the value there in the layout of layers whose weights change? */
bool laci_native_is_trained(const laci_net *net, int value);
/** Floats of such a tensor, with all that is stored between them. */
int64_t laci_native_floats(const laci_net *net, int tensor);

#endif
