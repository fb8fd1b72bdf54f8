/* SPDX-License-Identifier: Apache-2.0
 * What the steps of dynamically quantized products share: DynamicSteps (dynamic_steps.c) writes
 * bytes, products of integers (integer_product.c) read them. */
#ifndef LACI_ENGINE_CPU_LOWER_INTEGER_PRODUCT_H
#define LACI_ENGINE_CPU_LOWER_INTEGER_PRODUCT_H

#include "engine/cpu/net_in.h"
#include "kernel/linear/byte_product.h"
#include "kernel/pointwise/dynamic_steps.h"

/** The memory of a tensor of bytes: one after the other, each aligned to 64 bytes. The byte minus
 * the zero point is the integer. */
typedef struct laci_dynamic_bytes {
  laci_dynamic_scale *scale; /* scale and zero point of all bytes */
  int32_t *sums;             /* [rows] sum of each row's bytes */
  uint8_t *x;                /* [rows, stride] */
  int64_t stride;
} laci_dynamic_bytes;

/** Returns the size of such a tensor. */
size_t laci_dynamic_bytes_size(int64_t rows, int64_t depth);
laci_dynamic_bytes laci_dynamic_bytes_at(void *memory, int64_t rows, int64_t depth);
/** Returns the tensor of bytes with the content of the value that DynamicSteps computed. */
int laci_net_find_dynamic_bytes(laci_net *net, int value);

/* ---- byte_matrix.c ---- */

/** A constant matrix of integers, as floats, and what its product is multiplied by and added to. */
typedef struct laci_integer_matrix {
  int64_t depth, columns;
  const float *w; /* the integers times `w_scale` */
  int64_t k_stride, column_stride;
  const float *w_scale; /* [n_w_scales] 1 or `columns` of them; NULL: 1 */
  const float *scale;   /* [n_scales] 1 or `columns` of them; NULL: 1 */
  int64_t n_w_scales, n_scales;
  const float *factor, *shift; /* [columns] multiplies the scale; the bias. NULL: 1; 0 */
} laci_integer_matrix;

/** Stores the matrix for kernel/linear/byte_product.h; returns the weight's tensor. value: that of
 * the matrix. -1 after a failure. */
int laci_net_store_byte_matrix(laci_net *net, const laci_integer_matrix *source, int value,
                               laci_byte_matrix *matrix);

#endif
