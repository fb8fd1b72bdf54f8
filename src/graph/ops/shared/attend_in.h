/* SPDX-License-Identifier: Apache-2.0
 * The attention of ONNX Runtime's operators, computed from rows of queries, keys and values:
 *    y = softmax(softcap(scale * q k^T) + bias) v          for every head
 * Several heads of queries may share one head of keys and values. */
#ifndef LACI_GRAPH_OPS_SHARED_ATTEND_IN_H
#define LACI_GRAPH_OPS_SHARED_ATTEND_IN_H

#include "graph/ops/shared/op_in.h"

/** Rows of `size` numbers: row (batch, head, token) begins at x plus each index times its
 * stride. */
typedef struct laci_rows {
  const double *x;
  int64_t batch, head, token; /* strides in numbers: from an image of the batch, a head and a token
                                 to the next one */
} laci_rows;

/** The place of a score: a query and a key of one head of one image. */
typedef struct laci_pair_place {
  int64_t batch, head, query, key;
} laci_pair_place;

typedef struct laci_row_attention {
  /* n_heads: heads of queries; n_shared: heads of keys and values */
  int64_t n_batch, n_heads, n_shared, n_queries, n_keys, size, size_v;
  laci_rows q, k, v;
  double scale, softcap; /* softcap 0: none */
  /* Returns what is added to a score; minus infinity where the query does not attend to the key.
   * NULL: nothing is added. */
  double (*bias)(const struct laci_row_attention *attend, laci_pair_place place);
  const void *context;
  /* [n_heads] an extra score that takes part in the softmax, but has no value row; NULL: none */
  const double *sink;
  double *y; /* [batch, queries, heads * size_v] the result */
} laci_row_attention;

LAC_MUST_CHECK lac_status laci_attention_run(const laci_eval *eval,
                                             const laci_row_attention *attend);

/** Past rows and new rows, to be joined along the axis of tokens: [batch, heads, n_past + n_now,
 * size]. past NULL: there are only new rows. */
typedef struct laci_joined {
  int64_t n_batch, n_heads, n_past, n_now, size;
  const double *past; /* [batch, heads, n_past, size] rows of the past */
  laci_rows now;
} laci_joined;
void laci_join_past_rows(const laci_joined *joined, double *out);

/** A mask of keys and a bias of scores, as Attention and MultiHeadAttention have them. */
typedef struct laci_key_mask {
  const laci_buf
      *mask; /* integers: [B] lengths, [2B] ends and starts, [B, keys], [B, queries, keys] */
  const laci_buf *bias; /* floats, broadcast to [B, heads, queries, keys] */
  double filter;        /* number that is added to the scores of keys that the mask leaves out */
  bool causal;
  int64_t n_past;
} laci_key_mask;
/** Computes the bias of a score from a mask of keys: a function for laci_row_attention.bias, whose
 * context is a laci_key_mask. */
double laci_key_mask_compute_bias(const laci_row_attention *attend, laci_pair_place place);
/** Do the shapes of mask and bias fit the sizes of `attend`? */
bool laci_key_mask_has_fitting_shape(const laci_key_mask *mask, const laci_row_attention *attend);

#endif
