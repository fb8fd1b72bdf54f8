/* SPDX-License-Identifier: Apache-2.0
 * A dense tensor for exact work: all floats are held as double, all integers and booleans as int64
 * (those of u64 as the same 64 bits, so that the upper half of them is negative).
 * It is what shape arithmetic and the plain engine compute with; never what a fast path uses. */
#ifndef LACI_TENSOR_BUF_H
#define LACI_TENSOR_BUF_H

#include "tensor/shape.h"

/** Exactly one of f and i is set (f for float types). Row-major. The shape is wholly known. */
typedef struct laci_buf {
  lac_dtype dtype;
  laci_shape shape;
  int64_t count;
  double *f;
  int64_t *i;
} laci_buf;

bool laci_dtype_is_float(lac_dtype dtype);   /* f64 f32 and those of narrow.h */
bool laci_dtype_is_integer(lac_dtype dtype); /* integers and bool */

/** A zeroed tensor; data comes with laci_alloc. Fails LAC_UNSUPPORTED for text and complex
 * types. */
LAC_MUST_CHECK lac_status laci_buf_create(lac_dtype dtype, const laci_shape *shape, laci_buf **buf,
                                          lac_error *err);
void laci_buf_destroy(laci_buf *buf);
/** A copy with data of its own. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_buf_copy(const laci_buf *from, laci_buf **copy, lac_error *err);
/** The tensor that little-endian packed `bytes` hold. Fails LAC_BAD_SHAPE where they are fewer than
 * the shape needs. */
LAC_MUST_CHECK lac_status laci_buf_from_bytes(const laci_type *type, const void *bytes,
                                              size_t size_bytes, laci_buf **buf, lac_error *err);

/** Element as double or as int64, whichever class it has (floats as laci_int_from_f has it). */
double laci_buf_get_f(const laci_buf *buf, int64_t at);
int64_t laci_buf_get_i(const laci_buf *buf, int64_t at);

/* ---- Integers (integer.c) ---- */

/** Any element of any integer type, and sums and products of these, as they are. */
__extension__ typedef __int128 laci_wide;

/** Smallest and largest element of an integer type as it is held (u64's largest is -1); bool: 0 and
 * 1. */
void laci_int_range(lac_dtype dtype, int64_t *low, int64_t *high);

/** x as an element of an integer type holds it: wrapped around, bool: x != 0. */
int64_t laci_int_wrap(lac_dtype dtype, int64_t x);

/** An element as the integer that it is. */
laci_wide laci_int_wide(lac_dtype dtype, int64_t element);

/** The element nearest to an integer. */
int64_t laci_int_narrow(lac_dtype dtype, laci_wide x);

double laci_int_value(lac_dtype dtype, int64_t element);

/** -1, 0 or 1: how a compares with b. */
int laci_int_compare(lac_dtype dtype, int64_t a, int64_t b);

/** What QuantizeLinear makes of a quotient: rounded half to even, + zero, clipped to the type's
 * range. NaN is the least number, as in ONNX Runtime on x86. */
int64_t laci_int_level(lac_dtype dtype, float quotient, double zero);

/** The element that is nearest to the integer part of x; NaN is 0. */
int64_t laci_int_nearest(lac_dtype dtype, double x);

/** What a cast makes of x. Types of up to 32 bits without a sign, and those of 8 and 16 bits, wrap
 * what an int32 holds, and u64 what an int64 holds, as runtimes do: 300 is 44 in i8. All that is
 * farther away becomes the nearest element, where runtimes differ. */
int64_t laci_int_cast(lac_dtype dtype, double x);

/* ---- Stored bytes ---- */

/** n elements of little-endian `bytes` (any alignment) of type dtype as double / int64. dtype must
 * be of that class. */
void laci_read_f(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, double *out);
void laci_read_i(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, int64_t *out);
/** Those of a float type as float32, f64 rounded to it. */
void laci_read_f32(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, float *out);
/** The same as float32 magnitudes |w|, for float and integer types alike. */
void laci_read_abs_f32(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, float *out);
/** n floats as elements of a float type, rounded to nearest even; f16 too large becomes infinite,
 * and of the types of 8 bits and fewer the largest, but infinities stay where a type has them. */
void laci_write_f32(lac_dtype dtype, const float *from, int64_t n, void *bytes);
void laci_write_f(lac_dtype dtype, const double *from, int64_t n, void *bytes);

#endif
