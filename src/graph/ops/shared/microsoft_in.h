/* SPDX-License-Identifier: Apache-2.0
 * What operators of ONNX Runtime share: checks of operand sizes, activations fused into a layer,
 * normalized sums, and the coupling of packed projections. */
#ifndef LACI_GRAPH_OPS_SHARED_MICROSOFT_IN_H
#define LACI_GRAPH_OPS_SHARED_MICROSOFT_IN_H

#include "graph/ops/shared/op_in.h"

#define LACI_MICROSOFT "com.microsoft"

/** Checks that input `port`, where it is present and its rank known, has these sizes; negative
 * sizes are unknown. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_check_input_sizes(laci_infer *infer, int port, int rank,
                                                 const int64_t *dims);
/** Gives output 0 the type of input 0, and checks that input 1 is a vector along its last axis; at
 * least `least` inputs must be present. */
LAC_MUST_CHECK lac_status laci_bias_activation_infer(laci_infer *infer, int least);
/** Returns the size of an axis of an input; a negative axis counts from the last one. -1: not
 * known. */
int64_t laci_in_size(const laci_infer *infer, int port, int axis);

/* ---- An activation fused into a layer: FusedConv, FusedGemm ---- */

/** An activation f(x) with up to three parameters; f NULL: there is none. */
typedef struct laci_fused_function {
  double (*f)(double x, const double *p);
  double p[3];
} laci_fused_function;

/** Reads the attribute `activation`, and its parameters from a list or from activation_alpha, _beta
 * and _gamma. Returns false where no function of that name is known. */
bool laci_activation_read(const laci_node *node, laci_fused_function *activation);
/** Applies the node's activation to output 0. Fails LAC_UNSUPPORTED where its name is not known. */
LAC_MUST_CHECK lac_status laci_activation_apply_to_output(const laci_eval *eval);

/* ---- x + skip + bias, normalized ---- */

/** A port number above that of any operand; it stands for an operand that the operator does not
 * have. */
enum { LACI_NO_PORT = 99 };

/** Ports and formula of a normalization over the last axis. */
typedef struct laci_skip_norm {
  bool centred;           /* the mean is subtracted, as LayerNormalization does; false: only the
                             root mean square is divided by */
  int scale, shift, bias; /* port numbers of these inputs; LACI_NO_PORT: the operator has no such
                             input */
  int mean, inverse, sum; /* port numbers of these outputs: the mean, the inverse of the deviation,
                             and the sum x + skip + bias */
} laci_skip_norm;

LAC_MUST_CHECK lac_status laci_skip_norm_infer(laci_infer *infer, const laci_skip_norm *norm);
LAC_MUST_CHECK lac_status laci_skip_norm_eval(laci_eval *eval, const laci_skip_norm *norm);
LAC_MUST_CHECK lac_status laci_skip_norm_couple_orders(laci_coupling *c,
                                                       const laci_skip_norm *norm);

/* ---- Packed projections ---- */

/** A run of channels along an axis, from `start` on. */
typedef struct laci_channels {
  int port, axis;
  int64_t start;
} laci_channels;

/** Where queries and keys are stored: channel i of a head is the same channel at each of the
 * n_places. keys[place]: the place holds keys, else queries. copies: how many heads of queries
 * share one head of keys. n_heads: number of heads of queries; size: number of channels of a
 * head. */
typedef struct laci_query_keys {
  const laci_channels *places;
  const bool *keys;
  int n_places;
  int64_t n_heads, size, copies;
} laci_query_keys;

void laci_couple_query_keys(laci_coupling *c, const laci_query_keys *q);
/** Keeps all channels of the queries and keys in place. */
void laci_fix_query_key_channels(laci_coupling *c, const laci_query_keys *q);
/** Couples values: channel i of a head at `places` gives channel i of `copies` neighbouring heads
 * of output 0's last axis. n_heads counts the heads of the output. */
void laci_couple_attention_values(laci_coupling *c, const laci_query_keys *v);

#endif
