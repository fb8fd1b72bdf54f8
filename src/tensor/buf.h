/* SPDX-License-Identifier: Apache-2.0
 * A dense tensor for exact work: all floats are held as double, all integers and booleans as int64
 * (those of u64 as the same 64 bits, so that the upper half of them is negative). Shape arithmetic
 * and the plain engine compute with it; fast engines never use it. */
#ifndef LACI_TENSOR_BUF_H
#define LACI_TENSOR_BUF_H

#include <string.h>

#include "tensor/shape.h"

/** A tensor, row-major, all of whose sizes are known. Exactly one of f and i is set: f for float
 * types. */
typedef struct laci_buf {
  lac_dtype dtype;
  laci_shape shape;
  int64_t count; /* number of elements */
  double *f;     /* [count] the elements of a float type */
  int64_t *i;    /* [count] the elements of an integer type or of booleans */
} laci_buf;

bool laci_dtype_is_float(lac_dtype dtype);   /* f64, f32 and the types of narrow.h */
bool laci_dtype_is_integer(lac_dtype dtype); /* integers and bool */

/** Creates a tensor filled with zeros. Fails LAC_UNSUPPORTED for text and complex types. */
LAC_MUST_CHECK lac_status laci_buf_create(lac_dtype dtype, const laci_shape *shape, laci_buf **buf,
                                          lac_error *err);
void laci_buf_destroy(laci_buf *buf);
/** Copies a tensor with its data. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_buf_copy(const laci_buf *from, laci_buf **copy, lac_error *err);
/** Creates a tensor from little-endian packed bytes. Fails LAC_BAD_SHAPE where they are fewer than
 * the shape needs. */
LAC_MUST_CHECK lac_status laci_buf_from_bytes(const laci_type *type, const void *bytes,
                                              size_t size_bytes, laci_buf **buf, lac_error *err);

/** Return an element as double (laci_buf_get_f) or as int64 (laci_buf_get_i), for float and integer
 * tensors alike. Floats are converted as in laci_clamp_to_int64. */
double laci_buf_get_f(const laci_buf *buf, int64_t at);
int64_t laci_buf_get_i(const laci_buf *buf, int64_t at);

/** Copies n elements; both buffers hold floats, or both hold integers. */
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

/** Sets *low and *high to the smallest and largest element of an integer type, as stored in
 * laci_buf.i (the largest of u64 is -1 there); bool: 0 and 1. */
void laci_int_range(lac_dtype dtype, int64_t *low, int64_t *high);

/** Converts x to an integer type: wraps around; bool: x != 0. */
int64_t laci_int_wrap(lac_dtype dtype, int64_t x);

/** Returns the value of an element of an integer type. It is never negative for u64, although the
 * element in laci_buf.i may be. */
laci_wide laci_int_to_wide(lac_dtype dtype, int64_t element);

/** Returns the element of the integer type that is nearest to x: x, or the bound of the type. */
int64_t laci_int_from_wide(lac_dtype dtype, laci_wide x);

double laci_int_to_double(lac_dtype dtype, int64_t element);

/** Compares elements: returns -1 (a < b), 0 or 1 (a > b). */
int laci_int_compare(lac_dtype dtype, int64_t a, int64_t b);

/** Returns the result of QuantizeLinear for a quotient: the quotient rounded half to even, plus
 * `zero`, clipped to the range of the type. NaN gives the smallest number, as in ONNX Runtime on
 * x86. */
int64_t laci_int_quantize(lac_dtype dtype, float quotient, double zero);

/** Returns the element that is nearest to the integer part of x, which is clamped to the type's
 * range; NaN gives 0. */
int64_t laci_int_truncate(lac_dtype dtype, double x);

/** Returns x cast to an integer type, as in runtimes: 300 is 44 in i8. Unsigned types of up to 32
 * bits, and all types of 8 and 16 bits, wrap values that fit into int32; u64 wraps values that fit
 * into int64. Values outside of these ranges, for which runtimes differ, give the nearest
 * element. */
int64_t laci_int_cast(lac_dtype dtype, double x);

/* ---- Stored bytes ---- */

/** Read n elements of type dtype, from element `first` on, of little-endian `bytes` (any alignment)
 * as double or int64. dtype must be a float type, or an integer type. */
void laci_read_f64(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, double *out);
void laci_read_i64(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, int64_t *out);
/** Reads elements of a float type as float32; f64 is rounded. */
void laci_read_f32(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, float *out);
/** Reads elements of a float or integer type as float32 magnitudes |w|. */
void laci_read_abs_f32(lac_dtype dtype, const void *bytes, int64_t first, int64_t n, float *out);
/** Write n numbers as elements of a float type, rounded to nearest, ties to even. Numbers that are
 * too large become infinite in f16 and bf16, and the largest number in types of at most 8 bits.
 * Infinities are kept if the type has them. */
void laci_write_f32(lac_dtype dtype, const float *from, int64_t n, void *bytes);
void laci_write_f64(lac_dtype dtype, const double *from, int64_t n, void *bytes);
/** Writes n numbers as elements of an integer type, or of booleans: their low bits. */
void laci_write_i64(lac_dtype dtype, const int64_t *from, int64_t n, void *bytes);

#endif
