/* SPDX-License-Identifier: Apache-2.0
 * Compares, counts and prints shapes, and has the table of element types. Next: buf.c, the tensors
 * that have such a shape. */
#include "tensor/shape.h"
#include "tensor/elements.h"

#include <inttypes.h>
#include <stdio.h>

const char *lac_dtype_name(lac_dtype dtype) {
  switch (dtype) {
    case LAC_DTYPE_NONE: return "none";
    case LAC_DTYPE_F32: return "f32";
    case LAC_DTYPE_U8: return "u8";
    case LAC_DTYPE_I8: return "i8";
    case LAC_DTYPE_U16: return "u16";
    case LAC_DTYPE_I16: return "i16";
    case LAC_DTYPE_I32: return "i32";
    case LAC_DTYPE_I64: return "i64";
    case LAC_DTYPE_TEXT: return "text";
    case LAC_DTYPE_BOOL: return "bool";
    case LAC_DTYPE_F16: return "f16";
    case LAC_DTYPE_F64: return "f64";
    case LAC_DTYPE_U32: return "u32";
    case LAC_DTYPE_U64: return "u64";
    case LAC_DTYPE_C64: return "c64";
    case LAC_DTYPE_C128: return "c128";
    case LAC_DTYPE_BF16: return "bf16";
    case LAC_DTYPE_F8E4M3FN: return "f8e4m3fn";
    case LAC_DTYPE_F8E4M3FNUZ: return "f8e4m3fnuz";
    case LAC_DTYPE_F8E5M2: return "f8e5m2";
    case LAC_DTYPE_F8E5M2FNUZ: return "f8e5m2fnuz";
    case LAC_DTYPE_U4: return "u4";
    case LAC_DTYPE_I4: return "i4";
    case LAC_DTYPE_F4E2M1: return "f4e2m1";
    case LAC_DTYPE_F8E8M0: return "f8e8m0";
    case LAC_DTYPE_U2: return "u2";
    case LAC_DTYPE_I2: return "i2";
    case LAC_DTYPE_COUNT: break;
  }
  return "unknown";
}

size_t lac_dtype_size(lac_dtype dtype) {
  static const size_t sizes[LAC_DTYPE_COUNT] = {
#define LAC_DTYPE(name, code, bytes, kind) [code] = bytes,
#include "lacuna/dtype.def"
#undef LAC_DTYPE
  };
  return (unsigned)dtype < LAC_DTYPE_COUNT ? sizes[dtype] : 0;
}

int laci_dtype_bits(lac_dtype dtype) {
  switch (dtype) {
    case LAC_DTYPE_U4:
    case LAC_DTYPE_I4:
    case LAC_DTYPE_F4E2M1: return 4;
    case LAC_DTYPE_U2:
    case LAC_DTYPE_I2: return 2;
    default: return 8 * (int)lac_dtype_size(dtype);
  }
}

laci_shape laci_shape_unknown(void) { return (laci_shape){.rank = -1}; }

laci_shape laci_shape_of(int rank, const int64_t *dims) {
  if (rank < 0 || rank > LACI_MAX_RANK) return laci_shape_unknown();
  laci_shape shape = {.rank = rank};
  for (int axis = 0; axis < rank; axis++) shape.dims[axis] = dims[axis];
  return shape;
}

bool laci_shape_is_known(const laci_shape *shape) {
  for (int axis = 0; axis < shape->rank; axis++) {
    if (shape->dims[axis] < 0) return false;
  }
  return shape->rank >= 0;
}

bool laci_shape_equal(const laci_shape *a, const laci_shape *b) {
  if (a->rank != b->rank) return false;
  for (int axis = 0; axis < a->rank; axis++) {
    if (a->dims[axis] != b->dims[axis]) return false;
  }
  return true;
}

int64_t laci_shape_count_range(const laci_shape *shape, int from, int to) {
  if (shape->rank < 0) return -1;
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (int axis = from; axis < to; axis++) {
    if (shape->dims[axis] < 0) return -1;
    empty |= shape->dims[axis] == 0;
    overflow |= __builtin_mul_overflow(count, shape->dims[axis], &count);
  }
  return empty ? 0 : overflow ? -1 : count;
}

int64_t laci_shape_count(const laci_shape *shape) {
  return laci_shape_count_range(shape, 0, shape->rank);
}

const char *laci_shape_text(const laci_shape *shape, char *text, size_t size_bytes) {
  if (!size_bytes) return text;
  if (shape->rank < 0) {
    (void)snprintf(text, size_bytes, "[unknown rank]");
    return text;
  }
  size_t used = 0;
  text[0] = 0;
  for (int axis = -1; axis <= shape->rank && used < size_bytes; axis++) {
    char part[32];
    if (axis < 0) (void)snprintf(part, sizeof part, "[");
    else if (axis == shape->rank) (void)snprintf(part, sizeof part, "]");
    else if (shape->dims[axis] < 0) (void)snprintf(part, sizeof part, axis ? ", ?" : "?");
    else (void)snprintf(part, sizeof part, "%s%" PRId64, axis ? ", " : "", shape->dims[axis]);
    int n = snprintf(text + used, size_bytes - used, "%s", part);
    used += (size_t)(n > 0 ? n : 0);
  }
  return text;
}

bool laci_shape_has_strides(const laci_shape *shape) {
  int64_t count = 64;
  for (int axis = 0; axis < shape->rank; axis++) {
    if (shape->dims[axis] > 0 && __builtin_mul_overflow(count, shape->dims[axis], &count))
      return false;
  }
  return true;
}
