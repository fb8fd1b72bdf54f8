/* SPDX-License-Identifier: Apache-2.0
 * LSTM, GRU and RNN: common code for shapes, directions, lengths of sequences and activations; the
 * operator provides what a cell does with its gates. Hochreiter & Schmidhuber, Long Short-Term
 * Memory, 1997; Cho et al., arXiv:1406.1078, 2014.
 *
 *   x [T, B, I] (layout 1: [B, T, I]), w [D, G * H, I], r [D, G * H, H], b [D, 2 * G * H]
 *   y [T, D, B, H] (layout 1: [B, T, D, H]), y_h and y_c [D, B, H] (layout 1: [B, D, H])
 *
 * Channels: axis I of x and axis I of w have the same channels. Hidden channel h is row g * H + h
 * of w and r for every gate g, column h of r, and element h of states and results. Both directions
 * share one order, because they have one hidden axis in w. The axes of time and direction are
 * FIXED. */
#ifndef LACI_GRAPH_OPS_SHARED_RECURRENT_IN_H
#define LACI_GRAPH_OPS_SHARED_RECURRENT_IN_H

#include "graph/ops/shared/op_in.h"

enum { LACI_MAX_GATES = 4, LACI_MAX_ACTIVATIONS = 3 };

/** An activation function of gates or states, with its parameters. */
typedef struct laci_activation {
  double (*f)(double x, double alpha, double beta);
  double alpha, beta;
} laci_activation;

/** What one step of a recurrent operator computes from, for one sequence in one direction. */
typedef struct laci_cell {
  int64_t hidden;
  const double *x;        /* [G * H] the product of w and x, plus the bias of w */
  const double *r;        /* [G * H, H] the recurrence weights of all gates */
  const double *bias;     /* [G * H] the bias of r, or NULL */
  const double *peephole; /* [3 * H], or NULL */
  double *h, *c;          /* [H] the hidden state, and the cell state of an LSTM, which the step
                             replaces */
  const double *h_read;   /* [H] the hidden state as products read it: h, or what is left of it once
                             it was quantized */
  double *gates;          /* [G * H] scratch */
  laci_activation act[LACI_MAX_ACTIVATIONS];
  double clip; /* limit of the absolute value to which an activation's argument is clipped;
                  infinite: it is not clipped */
  bool flag;   /* a flag of the operator: linear_before_reset or input_forget */
} laci_cell;

typedef struct laci_recurrent {
  int n_gates, n_activations;
  const char *activations[LACI_MAX_ACTIVATIONS]; /* names of the activations of a node that names
                                                    none */
  const char *flag;                              /* name of the node's attribute that sets
                                                    laci_cell.flag; NULL: none does */
  bool has_cell;                                 /* the operator has a cell state (LSTM), and so the
                                                    inputs initial_c and peepholes and the output
                                                    y_c */
  bool dynamic;                                  /* hidden states are quantized before each step, as
                                                    DynamicQuantizeLinear does, all sequences of a
                                                    direction together */
  void (*step)(const laci_cell *cell);
} laci_recurrent;

/** Computes a step of an LSTM (lstm.c). */
void laci_lstm_compute_step(const laci_cell *cell);

/** Returns act(x), where x is clipped first. */
double laci_cell_clip_and_activate(const laci_cell *cell, int activation, double x);
/** Multiplies rows [first, first + H) of r by v, adds their bias, and writes the H results to
 * out. */
void laci_cell_multiply_recurrence(const laci_cell *cell, int64_t first, const double *v,
                                   double *out);

LAC_MUST_CHECK lac_status laci_recurrent_infer(laci_infer *infer, const laci_recurrent *op);
LAC_MUST_CHECK lac_status laci_recurrent_eval(const laci_eval *eval, const laci_recurrent *op);
/** Describes the weights W and R, both of which may be pruned; their rows are those of every gate
 * and direction. */
int laci_recurrent_find_weight_axes(const laci_graph *graph, const laci_node *node,
                                    laci_weight_axes axes[2]);
lac_status laci_recurrent_couple_orders(const laci_node *node, laci_coupling *c,
                                        const laci_recurrent *op);

#endif
