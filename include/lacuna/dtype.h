/* SPDX-License-Identifier: Apache-2.0
 * Element types of stored tensors. The values are ONNX's own numbers. */
#ifndef LACUNA_DTYPE_H
#define LACUNA_DTYPE_H

#include <stddef.h>

#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Element types. The values are those of ONNX's TensorProto.DataType. */
typedef enum lac_dtype {
#define LAC_DTYPE(name, code, bytes, kind) LAC_DTYPE_##name = code,
#include "lacuna/dtype.def"
#undef LAC_DTYPE
  LAC_DTYPE_COUNT
} lac_dtype;

/** "f32", "bf16", ...; "unknown" for a number outside the list. */
LAC_API const char *lac_dtype_name(lac_dtype dtype);

/** Bytes an element takes in memory, 0 where its size is not fixed (text). Types of 4 and 2 bits
 * take a byte each in the lowest bits, those with a sign extended; only files pack them. */
LAC_API size_t lac_dtype_size(lac_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
