/* SPDX-License-Identifier: Apache-2.0
 * Checks that strides can be computed without overflow. Strides and offsets are products of sizes.
 * They can overflow even if another axis has size 0, so that the tensor has no elements. */
#ifndef LACI_TENSOR_ELEMENTS_H
#define LACI_TENSOR_ELEMENTS_H

#include "tensor/shape.h"

/** Does the product of all known sizes except 0, times 64 bytes, fit into int64? Only such a shape
 * has strides. Unknown sizes and ranks count as 1. */
bool laci_shape_has_strides(const laci_shape *shape);

#endif
