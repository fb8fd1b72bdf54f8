/* SPDX-License-Identifier: Apache-2.0
 * A dense tensor for exact computation. It holds floats as double, and integers and booleans as
 * int64. Elements of u64 keep their 64 bits, so that large ones become negative. Shape arithmetic
 * and the plain engine compute with it; fast engines never use it. */
#ifndef LACI_TENSOR_BUF_H
#define LACI_TENSOR_BUF_H

#include <string.h>

#include "tensor/shape.h"

/** A tensor in row-major order, all of whose sizes are known. f is set for float types, and i for
 * integers and booleans; the other is NULL. */
typedef struct laci_buf {
  lac_dtype dtype;
  laci_shape shape;
  int64_t count; /* number of elements */
  double *f;     /* [count] elements, for float types; else NULL */
  int64_t *i;    /* [count] elements, for integer types and booleans; else NULL */
} laci_buf;

bool laci_dtype_is_float(lac_dtype dtype);   /* Is it a float type: f64, f32 or a type of
                                                narrow.h? */
bool laci_dtype_is_integer(lac_dtype dtype); /* Is it an integer type or bool? */
bool laci_dtype_is_numeric(lac_dtype dtype); /* Is it one of either? */

/** Creates a tensor filled with zeros. Fails with LAC_UNSUPPORTED for text and complex types. */
LAC_MUST_CHECK lac_status laci_buf_create(lac_dtype dtype, const laci_shape *shape, laci_buf **buf,
                                          lac_error *err);
void laci_buf_destroy(laci_buf *buf);
/** Makes a copy of a tensor and its elements. Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_buf_copy(const laci_buf *from, laci_buf **copy, lac_error *err);
/** Creates a tensor from its elements as little-endian packed bytes. Fails with LAC_BAD_SHAPE if
 * there are fewer bytes than the shape needs. */
LAC_MUST_CHECK lac_status laci_buf_from_bytes(const laci_type *type, const void *bytes,
                                              size_t size_bytes, laci_buf **buf, lac_error *err);

/** Return element number `at` as double (laci_buf_get_f) or as int64 (laci_buf_get_i), for float
 * and integer tensors alike. Floats are converted as in laci_clamp_to_int64. */
double laci_buf_get_f(const laci_buf *buf, int64_t at);
int64_t laci_buf_get_i(const laci_buf *buf, int64_t at);

/** Copies n elements of `in`, from index in_at on, to `out`, from index out_at on. Both must hold
 * floats, or both integers. */
static inline void laci_copy_elements(laci_buf *out, int64_t out_at, const laci_buf *in,
                                      int64_t in_at, int64_t n) {
  if (n <= 0) return;
  if (out->f) memcpy(out->f + out_at, in->f + in_at, (size_t)n * sizeof *out->f);
  else memcpy(out->i + out_at, in->i + in_at, (size_t)n * sizeof *out->i);
}

/* ---- Integers (integer.c) ---- */

/** An integer wide enough for any element of any integer type, and for sums and products of two of
 * them. */
__extension__ typedef __int128 laci_wide;

/** Sets *low and *high to the smallest and the largest element of an integer type, as they are
 * stored in laci_buf.i (where the largest of u64 is -1); for bool, 0 and 1. */
void laci_int_get_range(lac_dtype dtype, int64_t *low, int64_t *high);

/** Converts x to an integer type. Numbers outside its range wrap around; for bool, the result is x
 * != 0. */
int64_t laci_int_wrap(lac_dtype dtype, int64_t x);

/** Returns the value of an element of an integer type. Elements of u64 may be stored as negative
 * numbers in laci_buf.i, but their value is never negative. */
laci_wide laci_int_to_wide(lac_dtype dtype, int64_t element);

/** Returns the element of the integer type that is nearest to x: x itself, or a bound of the
 * type. */
int64_t laci_int_from_wide(lac_dtype dtype, laci_wide x);

double laci_int_to_double(lac_dtype dtype, int64_t element);

/** Compares two elements of an integer type: returns -1 (a < b), 0 or 1 (a > b). */
int laci_int_compare(lac_dtype dtype, int64_t a, int64_t b);

/** Returns the result of QuantizeLinear for a quotient x / scale: the quotient rounded half to
 * even, plus `zero`, clipped to the range of the type. NaN gives the smallest number, as in ONNX
 * Runtime on x86. */
int64_t laci_int_quantize(lac_dtype dtype, float quotient, double zero);

/** Returns the element that is nearest to x without its fraction: it is clamped to the type's
 * range. NaN gives 0. */
int64_t laci_int_truncate(lac_dtype dtype, double x);

/** Returns x cast to an integer type as runtimes do it: 300 becomes 44 in i8. Unsigned types of up
 * to 32 bits, and all types of 8 and 16 bits, wrap values that fit into int32; u64 wraps values
 * that fit into int64. Values outside of these ranges, for which runtimes differ, give the nearest
 * element. */
int64_t laci_int_cast(lac_dtype dtype, double x);

/* ---- Stored bytes ---- */

/** Read n elements of type dtype from `bytes`, from index `first` on, as double or as int64. bytes:
 * little-endian, any alignment. dtype must be a float type (laci_read_f64), or an integer type
 * (laci_read_i64). */
void laci_read_f64(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, double *out);
void laci_read_i64(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, int64_t *out);
/** Reads n elements of a float type, from index `first` on, as float32; f64 is rounded. */
void laci_read_f32(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, float *out);
/** Reads n elements of a float or integer type, from index `first` on, as float32 magnitudes
 * |w|. */
void laci_read_abs_f32(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, float *out);
/** Write n numbers as elements of a float type, rounded to nearest, ties to even. Numbers that are
 * too large become infinite in f16 and bf16, and the largest number in types of at most 8 bits.
 * Infinities are kept if the type has them. */
void laci_write_f32(lac_dtype dtype, const float *from, int64_t n, void *bytes);
void laci_write_f64(lac_dtype dtype, const double *from, int64_t n, void *bytes);
/** Writes n numbers as elements of an integer type or of bool. Their low bits are kept. */
void laci_write_i64(lac_dtype dtype, const int64_t *from, int64_t n, void *bytes);

#endif
