/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.RotaryEmbedding: pairs (a, b) of a head's channels are rotated by the angle of
 * their token, a' = cos a - sin b, b' = sin a + cos b. A pair is two neighbours (interleaved), or
 * the channels at the same index of the two halves of the rotated channels. Channels after the
 * rotated ones are copied. Su et al., arXiv:2104.09864, 2021.
 *
 * x [B, S, heads * size] or [B, heads, S, size]; position_ids [1], the position of the first token,
 * or [B, S]; tables of angles [positions, rotated / 2]. The batch axis and a separate axis of heads
 * pass channel orders through (coupling.h); tokens and channels are FIXED. */
#include "graph/coupling.h"
#include "graph/ops/shared/microsoft_in.h"
#include "tensor/buf.h"

enum { X, POSITIONS, COS, SIN };

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 4, 4);
  if (st) return st;
  infer->out[0] = *infer->in[X];
  const laci_shape *x = laci_in_shape(infer, X);
  for (int port = COS; port <= SIN && !st; port++)
    st = laci_check_input_sizes(
        infer, port, 2,
        (const int64_t[]){laci_in_size(infer, COS, 0), laci_in_size(infer, COS, 1)});
  if (st || !x || x->rank == 3 || x->rank == 4) return st;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "%d axes, wanted 3 or 4", x->rank);
}

typedef struct job {
  const laci_eval *eval;
  int64_t heads, tokens, size; /* size: of a head */
  int64_t n_pairs;
  bool apart, interleaved; /* apart: the input is [batch, heads, tokens, size], with a separate axis
                              for heads */
} job;

static int64_t position_of_token(const job *j, int64_t batch, int64_t token) {
  const laci_buf *positions = j->eval->in[POSITIONS];
  return positions->count == 1 ? positions->i[0] + token : positions->i[batch * j->tokens + token];
}

static void rotate_tokens(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const laci_buf *cosines = j->eval->in[COS], *sines = j->eval->in[SIN];
  int64_t step = j->interleaved ? 1 : j->n_pairs;
  for (int64_t at = begin; at < end; at++) {
    int64_t batch = at / (j->heads * j->tokens), inner = at % (j->heads * j->tokens);
    int64_t row = position_of_token(j, batch, j->apart ? inner % j->tokens : inner / j->heads);
    const double *x = j->eval->in[X]->f + at * j->size;
    double *y = j->eval->out[0]->f + at * j->size;
    for (int64_t k = 0; k < j->size; k++) y[k] = x[k];
    for (int64_t pair = 0; pair < j->n_pairs; pair++) {
      int64_t a = j->interleaved ? 2 * pair : pair, b = a + step;
      double c = cosines->f[row * j->n_pairs + pair], s = sines->f[row * j->n_pairs + pair];
      y[a] = c * x[a] - s * x[b];
      y[b] = s * x[a] + c * x[b];
    }
  }
}

/** Do the tables have a row for every position? */
static bool has_table_row_for_positions(const job *j, int64_t batches) {
  const laci_buf *positions = j->eval->in[POSITIONS];
  bool one = positions->count == 1 && positions->shape.rank <= 1;
  if (!positions->i || (!one && positions->count != batches * j->tokens)) return false;
  for (int64_t at = 0; at < batches * j->tokens; at++) {
    int64_t row = position_of_token(j, at / j->tokens, at % j->tokens);
    if (row < 0 || row >= j->eval->in[COS]->shape.dims[0]) return false;
  }
  return true;
}

static lac_status eval(laci_eval *eval) {
  const laci_node *node = eval->node;
  const laci_shape *x = &eval->in[X]->shape;
  const laci_buf *cosines = eval->in[COS];
  job j = {.eval = eval,
           .apart = x->rank == 4,
           .n_pairs = cosines->shape.dims[1],
           .interleaved = laci_node_int(node, "interleaved", 0) != 0};
  int64_t width = x->dims[x->rank - 1];
  j.heads = j.apart ? x->dims[1] : laci_node_int(node, "num_heads", 0);
  if (!j.apart && j.heads == 0 && j.n_pairs > 0) j.heads = width / (2 * j.n_pairs);
  j.tokens = x->dims[j.apart ? 2 : 1];
  if (j.heads < 1 || (!j.apart && width % j.heads != 0)) {
    return laci_node_fail(node, eval->err, LAC_BAD_SHAPE, "%lld heads of %lld channels",
                          (long long)j.heads, (long long)width);
  }
  j.size = j.apart ? width : width / j.heads;
  bool scaled = laci_node_float(node, "scale", 1) != 1;
  if (scaled || laci_node_int(node, "is_packed_batching", 0) || !cosines->f || !eval->in[X]->f ||
      !eval->in[SIN]->f)
    return laci_node_fail(node, eval->err, LAC_UNSUPPORTED,
                          "a scale, ragged batches or operands that are no floats");
  if (2 * j.n_pairs > j.size || !has_table_row_for_positions(&j, x->dims[0]))
    return laci_node_fail(node, eval->err, LAC_BAD_SHAPE,
                          "tables of angles or positions do not fit the data");
  laci_eval_parallel(eval, x->dims[0] * j.tokens * j.heads, rotate_tokens, &j);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *x = laci_port_shape(c, X), *positions = laci_port_shape(c, POSITIONS);
  c->why = "every pair of channels is rotated by its own angle";
  if (!x || x->rank < 3 || x->rank > 4 || !laci_port_shape(c, LACI_OUT(0)) || !positions)
    return laci_coupling_status(c);
  bool ragged = laci_node_int(node, "is_packed_batching", 0) != 0;
  laci_coupling_mark_described(c, X);
  laci_coupling_mark_described(c, LACI_OUT(0));
  for (int axis = 0; axis < x->rank - 2 && !ragged; axis++) {
    /* each batch entry has its own positions, so the batch axis is FIXED */
    if (axis == 0 && positions->rank > 1) continue;
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, X, axis, label);
    laci_coupling_set_label(c, LACI_OUT(0), axis, label);
  }
  return laci_coupling_status(c);
}

const laci_op laci_op_ms_rotary_embedding = {
    .name = "RotaryEmbedding",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes =
        LACI_ATTRIBUTES({"interleaved", LACI_ATTR_INT}, {"is_packed_batching", LACI_ATTR_INT},
                        {"num_heads", LACI_ATTR_INT}, {"rotary_embedding_dim", LACI_ATTR_INT},
                        {"scale", LACI_ATTR_FLOAT}),
    .inputs_without_channels = 1u << 1 | 1u << 2 | 1u << 3,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
