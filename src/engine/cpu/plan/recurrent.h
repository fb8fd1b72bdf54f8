/* SPDX-License-Identifier: Apache-2.0
 * LSTM, GRU and RNN as the fast engine computes them: their sizes, and what is known of their
 * results. The operators are defined by graph/ops/shared/recurrent_in.h. lower/recurrent.c lowers
 * them. */
#ifndef LACI_ENGINE_CPU_PLAN_RECURRENT_H
#define LACI_ENGINE_CPU_PLAN_RECURRENT_H

#include "engine/cpu/plan/plan.h"

/** The input ports. */
enum {
  LACI_RECURRENT_X,
  LACI_RECURRENT_W,
  LACI_RECURRENT_R,
  LACI_RECURRENT_BIAS,
  LACI_RECURRENT_LENGTHS,
  LACI_RECURRENT_INITIAL_H,
  LACI_RECURRENT_INITIAL_C,
  LACI_RECURRENT_PEEPHOLE,
  LACI_RECURRENT_PORTS
};

typedef enum laci_recurrent_kind {
  LACI_RECURRENT_RNN,
  LACI_RECURRENT_GRU,
  LACI_RECURRENT_LSTM,
} laci_recurrent_kind;

/** A recurrent node that the fast engine can compute with its own kernels. The functions are
 * LACI_FUNCTION_LOGISTIC or LACI_FUNCTION_TANH. */
typedef struct laci_recurrent_node {
  laci_recurrent_kind kind;
  int n_gates;
  int64_t directions, time, batch, inputs, hidden; /* numbers of directions (1 or 2), time steps,
                                                      sequences, inputs of a time step, and hidden
                                                      units */
  bool batch_first;                                /* attribute layout is 1: [batch, time, ...] */
  bool backward;                      /* the node has one direction, from the end of the sequence to
                                         the beginning */
  bool input_forget, linear_before;   /* the operators' attributes input_forget (LSTM) and
                                         linear_before_reset (GRU) */
  float clip;                         /* sums are clipped to [-clip, clip] before the functions;
                                         INFINITY: they are not */
  laci_function_kind functions[2][3]; /* for each direction: the functions of the gates, of the
                                         candidate, and of the cell output */
} laci_recurrent_node;

/** Reads a node. False: it is no recurrent node, or it has no fast form; `why` (may be NULL) then
 * says what prevents it. */
bool laci_plan_read_recurrent(const laci_cpu_plan *plan, const laci_node *node,
                              laci_recurrent_node *r, const char **why);

/** Returns a bound of all results of a node with a fast form, from bounds of its operands
 * (finite.h); INFINITY: a sum in between may leave the range of floats. */
double laci_plan_recurrent_bound(laci_cpu_plan *plan, const double *bounds, const laci_node *node,
                                 const laci_recurrent_node *r);

#endif
