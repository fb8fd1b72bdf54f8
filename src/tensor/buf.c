/* SPDX-License-Identifier: Apache-2.0
 * Creates and copies exact tensors (buf.h). Reads stored bytes of any element type as double, int64
 * or float magnitudes. The readers go element by element through memcpy, since stored bytes may be
 * at any address. */
#include "tensor/buf.h"
#include "tensor/elements.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/to_int.h"
#include "tensor/bf16.h"
#include "tensor/narrow.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "stored tensors are read as little-endian");

bool laci_dtype_is_float(lac_dtype dtype) {
  return dtype == LAC_DTYPE_F32 || dtype == LAC_DTYPE_F64 || laci_dtype_is_narrow(dtype);
}

bool laci_dtype_is_integer(lac_dtype dtype) {
  switch (dtype) {
    case LAC_DTYPE_BOOL:
    case LAC_DTYPE_U2:
    case LAC_DTYPE_I2:
    case LAC_DTYPE_U4:
    case LAC_DTYPE_I4:
    case LAC_DTYPE_U8:
    case LAC_DTYPE_I8:
    case LAC_DTYPE_U16:
    case LAC_DTYPE_I16:
    case LAC_DTYPE_U32:
    case LAC_DTYPE_I32:
    case LAC_DTYPE_U64:
    case LAC_DTYPE_I64: return true;
    default: return false;
  }
}

bool laci_dtype_is_numeric(lac_dtype dtype) {
  return laci_dtype_is_float(dtype) || laci_dtype_is_integer(dtype);
}

lac_status laci_buf_create(lac_dtype dtype, const laci_shape *shape, laci_buf **buf,
                           lac_error *err) {
  char text[128];
  *buf = NULL;
  bool is_float = laci_dtype_is_float(dtype);
  if (!is_float && !laci_dtype_is_integer(dtype)) {
    return laci_fail(err, LAC_UNSUPPORTED, "cannot compute with elements of type %s",
                     lac_dtype_name(dtype));
  }
  int64_t count = laci_shape_count(shape);
  if (count < 0 || !laci_shape_has_strides(shape)) {
    return laci_fail(err, LAC_BAD_SHAPE, "a tensor needs a known size, found %s",
                     laci_shape_text(shape, text, sizeof text));
  }
  laci_buf *made = laci_alloc(1, sizeof *made);
  void *data = made ? laci_alloc((size_t)count, 8) : NULL;
  if (!data) {
    laci_free(made);
    return laci_fail(err, LAC_NO_MEMORY, "not enough memory for a tensor %s",
                     laci_shape_text(shape, text, sizeof text));
  }
  made->dtype = dtype;
  made->shape = *shape;
  made->count = count;
  if (is_float) made->f = data;
  else made->i = data;
  *buf = made;
  return LAC_OK;
}

void laci_buf_destroy(laci_buf *buf) {
  if (!buf) return;
  laci_free(buf->f);
  laci_free(buf->i);
  laci_free(buf);
}

lac_status laci_buf_copy(const laci_buf *from, laci_buf **copy, lac_error *err) {
  lac_status st = laci_buf_create(from->dtype, &from->shape, copy, err);
  size_t n = st || from->count < 0 ? 0 : (size_t)from->count;
  if (n && from->f) memcpy((*copy)->f, from->f, n * sizeof *from->f);
  if (n && from->i) memcpy((*copy)->i, from->i, n * sizeof *from->i);
  return st;
}

lac_status laci_buf_from_bytes(const laci_type *type, const void *bytes, size_t size_bytes,
                               laci_buf **buf, lac_error *err) {
  *buf = NULL;
  int64_t count = laci_shape_count(&type->shape);
  size_t element = lac_dtype_size(type->dtype), wanted = 0;
  if (count < 0 || __builtin_mul_overflow((size_t)count, element, &wanted) || wanted > size_bytes) {
    char text[128];
    return laci_fail(err, LAC_BAD_SHAPE, "%zu bytes do not hold %s %s", size_bytes,
                     lac_dtype_name(type->dtype), laci_shape_text(&type->shape, text, sizeof text));
  }
  lac_status st = laci_buf_create(type->dtype, &type->shape, buf, err);
  if (st) return st;
  if ((*buf)->f) laci_read_f64(type->dtype, bytes, 0, count, (*buf)->f);
  else laci_read_i64(type->dtype, bytes, 0, count, (*buf)->i);
  return LAC_OK;
}

double laci_buf_get_f(const laci_buf *buf, int64_t at) {
  return buf->f ? buf->f[at] : laci_int_to_double(buf->dtype, buf->i[at]);
}

int64_t laci_buf_get_i(const laci_buf *buf, int64_t at) {
  return buf->i ? buf->i[at] : laci_clamp_to_int64(buf->f[at]);
}

/* Case labels: of float types of at most 8 bits, whose elements have a byte each; then of integer
 * types of less than 8 bits. */
#define NARROW_BYTES         \
  case LAC_DTYPE_F8E4M3FN:   \
  case LAC_DTYPE_F8E4M3FNUZ: \
  case LAC_DTYPE_F8E5M2:     \
  case LAC_DTYPE_F8E5M2FNUZ: \
  case LAC_DTYPE_F8E8M0:     \
  case LAC_DTYPE_F4E2M1
#define SHORT_BYTES  \
  case LAC_DTYPE_U2: \
  case LAC_DTYPE_I2: \
  case LAC_DTYPE_U4: \
  case LAC_DTYPE_I4

/* A loop that reads n elements and stores `expression` for each. type: what memcpy reads. The
 * expression has the element as x. */
#define READ_LOOP(type, expression)                       \
  do {                                                    \
    const uint8_t *from = bytes;                          \
    from += (size_t)first * sizeof(type);                 \
    for (int64_t at = 0; at < n; at++) {                  \
      type x;                                             \
      memcpy(&x, from + (size_t)at * sizeof x, sizeof x); \
      out[at] = (expression);                             \
    }                                                     \
  } while (0)

void laci_read_f64(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, double *out) {
  switch (dtype) {
    case LAC_DTYPE_F16: READ_LOOP(uint16_t, laci_f16_to_double(x)); break;
    case LAC_DTYPE_BF16: READ_LOOP(uint16_t, (double)laci_bf16_value(x)); break;
    case LAC_DTYPE_F32: READ_LOOP(float, (double)x); break;
    case LAC_DTYPE_F64:
      READ_LOOP(double, x);
      break;
    NARROW_BYTES:
      READ_LOOP(uint8_t, laci_narrow_value(dtype, x));
      break;
    default: memset(out, 0, (size_t)n * sizeof *out); break;
  }
}

void laci_read_f32(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, float *out) {
  switch (dtype) {
    case LAC_DTYPE_F16: READ_LOOP(uint16_t, (float)laci_f16_to_double(x)); break;
    case LAC_DTYPE_BF16: READ_LOOP(uint16_t, laci_bf16_value(x)); break;
    case LAC_DTYPE_F32: READ_LOOP(float, x); break;
    case LAC_DTYPE_F64:
      READ_LOOP(double, (float)x);
      break;
    NARROW_BYTES:
      READ_LOOP(uint8_t, (float)laci_narrow_value(dtype, x));
      break;
    default: memset(out, 0, (size_t)n * sizeof *out); break;
  }
}

void laci_read_i64(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, int64_t *out) {
  switch (dtype) {
    case LAC_DTYPE_BOOL:
      READ_LOOP(uint8_t, x != 0);
      break;
    SHORT_BYTES:
      READ_LOOP(uint8_t, laci_int_wrap(dtype, x));
      break;
    case LAC_DTYPE_U8: READ_LOOP(uint8_t, x); break;
    case LAC_DTYPE_I8: READ_LOOP(int8_t, x); break;
    case LAC_DTYPE_U16: READ_LOOP(uint16_t, x); break;
    case LAC_DTYPE_I16: READ_LOOP(int16_t, x); break;
    case LAC_DTYPE_U32: READ_LOOP(uint32_t, x); break;
    case LAC_DTYPE_I32: READ_LOOP(int32_t, x); break;
    case LAC_DTYPE_U64: READ_LOOP(uint64_t, (int64_t)x); break;
    case LAC_DTYPE_I64: READ_LOOP(int64_t, x); break;
    default: memset(out, 0, (size_t)n * sizeof *out); break;
  }
}

void laci_read_abs_f32(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, float *out) {
  switch (dtype) {
    case LAC_DTYPE_F16: READ_LOOP(uint16_t, fabsf((float)laci_f16_to_double(x))); break;
    case LAC_DTYPE_BF16: READ_LOOP(uint16_t, fabsf(laci_bf16_value(x))); break;
    case LAC_DTYPE_F32: READ_LOOP(float, fabsf(x)); break;
    case LAC_DTYPE_F64:
      READ_LOOP(double, fabsf((float)x));
      break;
    NARROW_BYTES:
      READ_LOOP(uint8_t, fabsf((float)laci_narrow_value(dtype, x)));
      break;
    SHORT_BYTES:
      READ_LOOP(uint8_t, fabsf((float)laci_int_wrap(dtype, x)));
      break;
    case LAC_DTYPE_BOOL: READ_LOOP(uint8_t, x ? 1.0F : 0.0F); break;
    case LAC_DTYPE_U8: READ_LOOP(uint8_t, (float)x); break;
    case LAC_DTYPE_I8: READ_LOOP(int8_t, fabsf((float)x)); break;
    case LAC_DTYPE_U16: READ_LOOP(uint16_t, (float)x); break;
    case LAC_DTYPE_I16: READ_LOOP(int16_t, fabsf((float)x)); break;
    case LAC_DTYPE_U32: READ_LOOP(uint32_t, (float)x); break;
    case LAC_DTYPE_I32: READ_LOOP(int32_t, fabsf((float)x)); break;
    case LAC_DTYPE_U64: READ_LOOP(uint64_t, (float)x); break;
    case LAC_DTYPE_I64: READ_LOOP(int64_t, fabsf((float)x)); break;
    default: memset(out, 0, (size_t)n * sizeof *out); break;
  }
}

static void write_element(lac_dtype dtype, double x, uint8_t *to) {
  float single = (float)x;
  if (dtype == LAC_DTYPE_F64) memcpy(to, &x, sizeof x);
  else if (dtype == LAC_DTYPE_F32) memcpy(to, &single, sizeof single);
  else if (laci_dtype_is_narrow(dtype)) {
    uint16_t bits = laci_narrow_bits(dtype, x, isinf(x) ? LACI_ROUND_OVERFLOW : 0);
    memcpy(to, &bits, lac_dtype_size(dtype));
  }
}

void laci_write_f32(lac_dtype dtype, const float *from, int64_t n, void *bytes) {
  uint8_t *to = bytes;
  size_t size = lac_dtype_size(dtype);
  for (int64_t at = 0; at < n; at++) write_element(dtype, (double)from[at], to + (size_t)at * size);
}

void laci_write_f64(lac_dtype dtype, const double *from, int64_t n, void *bytes) {
  uint8_t *to = bytes;
  size_t size = lac_dtype_size(dtype);
  for (int64_t at = 0; at < n; at++) write_element(dtype, from[at], to + (size_t)at * size);
}

void laci_write_i64(lac_dtype dtype, const int64_t *from, int64_t n, void *bytes) {
  const size_t size = lac_dtype_size(dtype);
  for (int64_t at = 0; at < n; at++) { /* copies the low bytes of each number, which come first */
    memcpy((char *)bytes + (size_t)at * size, &from[at], size);
  }
}
