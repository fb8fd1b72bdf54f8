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

/** Returns the type's name: "f32", "bf16", ...; "unknown" for a value that is no lac_dtype. */
LAC_API const char *lac_dtype_name(lac_dtype dtype);

/** Returns the bytes per element in memory; 0 for strings, whose size varies. An element of a 4-bit
 * or 2-bit type takes one byte: the value is in the lowest bits, sign-extended for signed types.
 * Only files pack several elements into a byte. */
LAC_API size_t lac_dtype_size(lac_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
