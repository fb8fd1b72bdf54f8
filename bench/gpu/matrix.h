/* SPDX-License-Identifier: Apache-2.0
 * Weights as matrices: those of a model's layers, random ones, and ones with a fault. */
#ifndef BENCH_GPU_MATRIX_H
#define BENCH_GPU_MATRIX_H

#include "target/target.h"

typedef struct matrix {
  lac_dtype type; /* f32 f16 bf16 i8 */
  int64_t out, in;
  bool by_input; /* stored as [in, out]; else [out, in] */
  int64_t dims[2];
  uint8_t *bytes; /* of laci_alloc */
} matrix;

/** The pattern that a GPU takes of this type: 1:2 of f32, else 2:4. */
laci_pattern matrix_pattern(lac_dtype type);

/** The mask of a layer whose kernel has one position, in one group: 1 where its weight is not 0. */
matrix matrix_of_layer(const laci_target_layer *layer, lac_dtype type);

/** Small integers, -2 to 2, under a random mask of the type's pattern. */
matrix matrix_random(lac_dtype type, int64_t out, int64_t in, bool by_input, uint64_t stream);
void matrix_clear(matrix *m);

/** What a target sees. */
laci_target_layer matrix_layer(const matrix *m);

typedef enum matrix_fault {
  FAULT_GROUP, /* one non-zero more in one block */
  FAULT_AXIS,  /* the pattern along the output channels */
  FAULT_SHIFT, /* blocks that begin a channel late */
  FAULT_DENSE, /* no zeros in one row */
  N_MATRIX_FAULTS,
} matrix_fault;

extern const char *const matrix_fault_names[N_MATRIX_FAULTS];

/** A matrix of matrix_random, with one fault. */
matrix matrix_with_fault(matrix_fault fault, lac_dtype type, int64_t out, int64_t in, bool by_input,
                         uint64_t stream);

#endif
