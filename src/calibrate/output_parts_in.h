/* SPDX-License-Identifier: Apache-2.0
 * Parts of outputs whose errors are measured separately, each by its own scale. Numbers of one
 * output may have two scales, as boxes in pixels next to scores below 1. A sum of squares over both
 * would be determined by the boxes alone. Private to src/calibrate. */
#ifndef LACI_CALIBRATE_OUTPUT_PARTS_IN_H
#define LACI_CALIBRATE_OUTPUT_PARTS_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "calibrate/samples.h"

/** How the numbers of one output are divided into parts whose errors are measured separately. */
typedef struct laci_output_parts {
  int first, n_parts;      /* first: index of the output's first part among the parts of all
                              outputs; n_parts: number of its parts; 0: it has none */
  bool answers;            /* rows along the last axis are probabilities, or logarithms of these, or
                              logits */
  bool logarithms, logits; /* which of the last two the answers are */
  bool unit_rows;          /* rows have the Euclidean norm 1, as embeddings have, and are no
                              probabilities */
  int64_t row;             /* number of elements of a row */
  int64_t inner, n_slices; /* inner: distance in elements between neighbouring slices along one
                              axis; n_slices: number of slices; element j is in slice j / inner %
                              n_slices */
  bool *is_small;          /* [n_slices] true: the slice has the smaller of the output's two scales;
                              from laci_alloc; NULL: all slices have one scale */
} laci_output_parts;

/** Returns the index of the largest of n numbers; of equal ones the first. */
static inline int64_t laci_index_of_largest(const float *x, int64_t n) {
  int64_t at = 0;
  for (int64_t i = 1; i < n; i++)
    if (x[i] > x[at]) at = i;
  return at;
}

/** Decides how an output is divided into parts, by its content x for the first batch, [elements of
 * shape]. is_product: its rows are results of a product with a weight, as logits are. If memory is
 * short, it is treated as having one scale. */
void laci_output_parts_decide(const laci_shape *shape, const float *x, bool is_product,
                              laci_output_parts *parts);
void laci_output_parts_clear(laci_output_parts *parts);

/** Adds the errors of elements [begin, begin + n) of an output to e and s, each [cut->n_parts]
 * (laci_error_sums says what they sum). y[0], y[1]: the output of two networks. The elements belong
 * to one sample, or to one batch. */
void laci_output_parts_add_errors(const laci_output_parts *parts, const float *const y[2],
                                  int64_t begin, int64_t n, double *e, double *s);
/** Returns the sum of the shifts (laci_output_part) of these elements' rows; 0 if they are no
 * answers. */
double laci_output_parts_sum_shifts(const laci_output_parts *parts, const float *const y[2],
                                    int64_t begin, int64_t n);

#endif
