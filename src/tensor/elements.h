/* SPDX-License-Identifier: Apache-2.0
 * Sizes that can be counted: strides and offsets are products of sizes, also of the other axes of a
 * tensor that has an axis of size 0 and so a count of 0. */
#ifndef LACI_TENSOR_ELEMENTS_H
#define LACI_TENSOR_ELEMENTS_H

#include "tensor/shape.h"

/** Does the product of all known sizes but 0, times 64 bytes, fit into int64? Only such a shape has
 * strides. Unknown sizes and ranks count as 1. */
bool laci_shape_countable(const laci_shape *shape);

#endif
