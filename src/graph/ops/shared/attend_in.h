/* SPDX-License-Identifier: Apache-2.0
 * The attention of ONNX Runtime's operators, once queries, keys and values are there as rows:
 *    y = softmax(softcap(scale * q k^T) + bias) v          for every head
 * Several heads of queries may share one of keys and values. */
#ifndef LACI_GRAPH_OPS_SHARED_ATTEND_IN_H
#define LACI_GRAPH_OPS_SHARED_ATTEND_IN_H

#include "graph/ops/shared/op_in.h"

/** Row (batch, head, token) of `size` numbers begins at x + batch * batch_stride + ... */
typedef struct laci_rows {
  const double *x;
  int64_t batch, head, token; /* strides */
} laci_rows;

/** A query and a key. */
typedef struct laci_pair_place {
  int64_t batch, head, query, key;
} laci_pair_place;

typedef struct laci_row_attention {
  int64_t n_batch, n_heads, n_shared, n_queries, n_keys, size, size_v; /* n_shared: heads of keys */
  laci_rows q, k, v;
  double scale, softcap; /* softcap 0: none */
  /* What is added to a score; minus infinity: the query does not look there. */
  double (*bias)(const struct laci_row_attention *attend, laci_pair_place place);
  const void *context;
  const double *sink; /* [n_heads] a score that takes its share and gives nothing; NULL: none */
  double *y;          /* [batch, queries, heads * size_v] */
} laci_row_attention;

LAC_MUST_CHECK lac_status laci_attend_run(const laci_eval *eval, const laci_row_attention *attend);

/** Rows of those before and of these, as [batch, heads, before + now, size]. past NULL: none are.
 */
typedef struct laci_joined {
  int64_t n_batch, n_heads, n_past, n_now, size;
  const double *past; /* [batch, heads, n_past, size] */
  laci_rows now;
} laci_joined;
void laci_join_rows(const laci_joined *joined, double *out);

/** A mask of keys and what is added besides, as Attention and MultiHeadAttention take them. */
typedef struct laci_key_mask {
  const laci_buf
      *mask; /* integers: [B] lengths, [2B] ends and starts, [B, keys], [B, queries, keys] */
  const laci_buf *bias; /* floats, broadcast to [B, heads, queries, keys] */
  double filter;        /* is added to what the mask leaves out */
  bool causal;
  int64_t n_past;
} laci_key_mask;
/** A laci_row_attention.bias; the context is a laci_key_mask. */
double laci_key_mask_bias(const laci_row_attention *attend, laci_pair_place place);
/** Are mask and bias as large as they are read? */
bool laci_key_mask_fits(const laci_key_mask *mask, const laci_row_attention *attend);

#endif
