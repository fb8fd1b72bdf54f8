/* SPDX-License-Identifier: Apache-2.0
 * The step of an LSTM, GRU or RNN: recurrent.c makes it, recurrent_run.c runs it.
 *
 * Hidden units are in blocks of 16, `width` of them with those that pad the last block. A row of
 * gates is [n_gates, width]; weights are in strips (kernel/linear/strips.h), those of w as
 * [directions, n_gates * blocks] strips of depth `inputs`, those of r of depth `hidden`. */
#ifndef LACI_ENGINE_CPU_LOWER_RECURRENT_H
#define LACI_ENGINE_CPU_LOWER_RECURRENT_H

#include "engine/cpu/lower/lower.h"
#include "engine/cpu/plan/recurrent.h"
#include "kernel/linear/strips.h"
#include "kernel/pointwise/function.h"

/** A weight matrix [directions * n_gates * hidden, depth], packed in strips. */
typedef struct laci_recurrent_matrix {
  int strips;    /* index of the tensor of the strips: a weight, or scratch that every run fills */
  int rows;      /* index of the row-major tensor of a matrix that the network computes; -1: the
                    matrix is constant */
  int64_t depth; /* number of columns of the matrix */
} laci_recurrent_matrix;

/** Offsets, in floats, of the parts of the step's scratch memory. */
typedef struct laci_recurrent_scratch_offsets {
  int64_t start;    /* [directions, n_gates, width] sums of the biases of w and r, at which the
                       gates begin */
  int64_t inner;    /* [directions, width] bias of r that a GRU with linear_before_reset adds
                       separately */
  int64_t peephole; /* [directions, 3, width] weights of the peepholes */
  int64_t h[2];     /* [directions, batch, width] each: hidden states before and after a time
                       step */
  int64_t c;        /* [directions, batch, width] cell states */
  int64_t extra;    /* [directions, batch, width] scratch of one time step */
  int64_t gates;    /* [directions, batch, chunk, n_gates, width] products of w and x for `chunk`
                       time steps, which become the gates */
  int64_t n;        /* size of the whole scratch memory, in floats */
} laci_recurrent_scratch_offsets;

typedef struct laci_recurrent_step {
  laci_recurrent_node node;
  int64_t blocks, width, chunk; /* blocks: number of blocks of 16 hidden units; width: number of
                                   hidden units with padding; chunk: number of time steps whose
                                   inputs are multiplied at once */
  laci_recurrent_matrix w, r;   /* weights of the inputs, and of the hidden state */
  int x, bias, lengths, initial_h, initial_c, peephole; /* index of the tensor of each input of the
                                                           node; -1: absent */
  int results[3];                         /* index of the tensors of y, y_h and y_c; -1: absent */
  int scratch;                            /* index of the tensor of scratch memory */
  laci_recurrent_scratch_offsets offsets; /* where the parts of the scratch memory begin */
  laci_multiply_strips *multiply;
  laci_pointwise_apply *apply;
} laci_recurrent_step;

laci_net_code laci_recurrent_run;

/** Packs the rows [first, first + n) of a row-major matrix into its strips. */
void laci_recurrent_pack_rows(const laci_recurrent_step *s, int64_t depth, int64_t first, int64_t n,
                              const float *rows, float *strips);

#endif
