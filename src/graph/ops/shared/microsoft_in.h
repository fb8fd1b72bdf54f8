/* SPDX-License-Identifier: Apache-2.0
 * What operators of ONNX Runtime share: sizes that operands must have, functions that a layer has
 * taken in, sums that are normalized, and the coupling of packed projections. */
#ifndef LACI_GRAPH_OPS_SHARED_MICROSOFT_IN_H
#define LACI_GRAPH_OPS_SHARED_MICROSOFT_IN_H

#include "graph/ops/shared/op_in.h"

#define LACI_MICROSOFT "com.microsoft"

/** Input `port`, where it is there and its rank known, must have these sizes; negative ones are not
 * known. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_want_sizes(laci_infer *infer, int port, int rank,
                                          const int64_t *dims);
/** Output 0 as input 0, with input 1 along its last axis; `least` inputs must be there. */
LAC_MUST_CHECK lac_status laci_bias_infer(laci_infer *infer, int least);
/** The size of an axis of an input, counted from the back where negative; -1: not known. */
int64_t laci_in_size(const laci_infer *infer, int port, int axis);

/* ---- A function after a layer: FusedConv, FusedGemm ---- */

/** f(x) with up to three parameters; f NULL: there is no function. */
typedef struct laci_fused_function {
  double (*f)(double x, const double *p);
  double p[3];
} laci_fused_function;

/** Of the attribute `activation`; its parameters from a list, or from activation_alpha, _beta and
 * _gamma. False: no function of that name is known here. */
bool laci_activation_read(const laci_node *node, laci_fused_function *activation);
/** y = f(y), where the name is known; fails LAC_UNSUPPORTED. */
LAC_MUST_CHECK lac_status laci_activation_apply(const laci_eval *eval);

/* ---- x + skip + bias, normalized ---- */

/** An input that the node says nothing about where it is absent. */
enum { LACI_NO_PORT = 99 };

/** Ports and formula of a normalization over the last axis. */
typedef struct laci_skip_norm {
  bool centred;           /* the mean is taken off */
  int scale, shift, bias; /* inputs; LACI_NO_PORT: there is none */
  int mean, inverse, sum; /* outputs */
} laci_skip_norm;

LAC_MUST_CHECK lac_status laci_skip_norm_infer(laci_infer *infer, const laci_skip_norm *norm);
LAC_MUST_CHECK lac_status laci_skip_norm_eval(laci_eval *eval, const laci_skip_norm *norm);
LAC_MUST_CHECK lac_status laci_skip_norm_couple(laci_coupling *c, const laci_skip_norm *norm);

/* ---- Packed projections ---- */

/** A run of channels of an axis. */
typedef struct laci_channels {
  int port, axis;
  int64_t start;
} laci_channels;

/** Queries and keys: channel i of each of the n_places is one channel of a head, for all heads.
 * copies: so many heads of queries share one of keys; keys has the number of each place, whether it
 * is of keys. */
typedef struct laci_query_keys {
  const laci_channels *places;
  const bool *keys;
  int n_places;
  int64_t n_heads, size, copies;
} laci_query_keys;

void laci_couple_query_keys(laci_coupling *c, const laci_query_keys *q);
/** ... and all of them stay. */
void laci_hold_query_keys(laci_coupling *c, const laci_query_keys *q);
/** Values: channel i of a head of places makes channel i of `copies` heads of output 0's last axis,
 * which are neighbours; n_heads is of the output. */
void laci_couple_values(laci_coupling *c, const laci_query_keys *v);

#endif
