/* SPDX-License-Identifier: Apache-2.0
 * Parts of outputs whose errors are measured separately, each by its own scale. Numbers of one
 * output may have two scales, as boxes in pixels next to scores below 1. A sum of squares over both
 * would be determined by the boxes alone. Private to src/calibrate. */
#ifndef LACI_CALIBRATE_PARTS_IN_H
#define LACI_CALIBRATE_PARTS_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "calibrate/samples.h"

/** How the numbers of an output are cut into parts. */
typedef struct laci_output_cut {
  int first, n_parts;      /* index of its first part among all parts; n_parts 0: the output has
                              none */
  bool answers;            /* rows along the last axis are probabilities */
  bool unit_rows;          /* rows have the length 1, as embeddings do, and are no answers */
  int64_t row;             /* elements of a row */
  int64_t inner, n_slices; /* slices along an axis: element j is in slice j / inner % n_slices */
  bool *is_small;          /* [n_slices] slices of the smaller scale, laci_alloc; NULL: one scale */
} laci_output_cut;

/** Decides how an output is cut, by a first content x, [elements of shape]. If memory is short,
 * it has one scale. */
void laci_output_cut_decide(const laci_shape *shape, const float *x, laci_output_cut *cut);
void laci_output_cut_clear(laci_output_cut *cut);

/** Adds the elements [begin, begin + n) of an output, which belong to one unit: to e and s, each
 * [cut->n_parts]. */
void laci_output_cut_add_errors(const laci_output_cut *cut, const float *const y[2], int64_t begin,
                                int64_t n, double *e, double *s);

#endif
