/* SPDX-License-Identifier: Apache-2.0
 * RotaryEmbedding (opset 23): pairs (a, b) of a head's channels are rotated by the angle of their
 * token, a' = cos a - sin b, b' = sin a + cos b. A pair is two neighbours (interleaved), or the
 * channels at the same index of the two halves of the rotated channels. Channels after the rotated
 * ones are copied. Su et al., arXiv:2104.09864, 2021.
 *
 * x [B, heads, S, D] or [B, S, heads * D]. The axes of batch and tokens, and a separate axis of
 * heads, pass channel orders through (coupling.h); channels are FIXED, for every pair has its own
 * angle. */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

enum { X, COS, SIN, POSITIONS };

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 4);
  if (st) return st;
  infer->out[0] = *infer->in[0];
  const laci_shape *x = laci_in_shape(infer, X);
  if (!x || x->rank == 3 || x->rank == 4) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "%d axes, wanted 3 or 4", x->rank);
}

typedef struct job {
  const laci_eval *eval;
  int64_t heads, tokens, size; /* size: of a head */
  int64_t n_pairs, step;       /* n_pairs: rotated pairs; step: distance from a to b */
  bool apart, interleaved;     /* apart: the input is [batch, heads, tokens, size], with a separate
                                  axis for heads */
} job;

/** Returns the row of the tables for a token. */
static int64_t table_row_of_token(const job *j, int64_t batch, int64_t token) {
  const laci_buf *positions = laci_operand(j->eval, POSITIONS);
  int64_t at = batch * j->tokens + token;
  return positions ? laci_buf_get_i(positions, at) : at;
}

static void rotate_tokens(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const laci_buf *cosines = j->eval->in[COS], *sines = j->eval->in[SIN];
  for (int64_t at = begin; at < end; at++) {
    int64_t batch = at / (j->heads * j->tokens), inner = at % (j->heads * j->tokens);
    int64_t row = table_row_of_token(j, batch, j->apart ? inner % j->tokens : inner / j->heads);
    const double *x = j->eval->in[X]->f + at * j->size;
    double *y = j->eval->out[0]->f + at * j->size;
    for (int64_t k = 0; k < j->size; k++) y[k] = x[k];
    for (int64_t pair = 0; pair < j->n_pairs; pair++) {
      int64_t a = j->interleaved ? 2 * pair : pair, b = a + j->step;
      double c = cosines->f[row * j->n_pairs + pair], s = sines->f[row * j->n_pairs + pair];
      y[a] = c * x[a] - s * x[b];
      y[b] = s * x[a] + c * x[b];
    }
  }
}

static lac_status fail_tables(const laci_eval *eval) {
  return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                        "tables of angles or positions do not fit the data");
}

static lac_status eval(laci_eval *eval) {
  const laci_node *node = eval->node;
  const laci_shape *x = &eval->in[X]->shape;
  const laci_buf *cosines = eval->in[COS], *sines = eval->in[SIN];
  const laci_buf *positions = laci_operand(eval, POSITIONS);
  job j = {.eval = eval,
           .apart = x->rank == 4,
           .interleaved = laci_node_int(node, "interleaved", 0) != 0};
  j.heads = j.apart ? x->dims[1] : laci_node_int(node, "num_heads", 0);
  j.tokens = x->dims[j.apart ? 2 : 1];
  if (j.heads < 1 || (!j.apart && x->dims[2] % j.heads != 0)) {
    return laci_node_fail(node, eval->err, LAC_BAD_SHAPE, "%lld heads of %lld channels",
                          (long long)j.heads, (long long)x->dims[x->rank - 1]);
  }
  j.size = j.apart ? x->dims[3] : x->dims[2] / j.heads;
  int64_t rotated = laci_node_int(node, "rotary_embedding_dim", 0);
  if (rotated == 0) rotated = j.size;
  j.n_pairs = rotated / 2;
  j.step = j.interleaved ? 1 : j.n_pairs;
  int rank = positions ? 2 : 3;
  bool fits = rotated > 0 && rotated <= j.size && cosines->f && sines->f && eval->in[X]->f &&
              cosines->shape.rank == rank && cosines->shape.dims[rank - 1] == j.n_pairs &&
              laci_shape_equal(&cosines->shape, &sines->shape);
  int64_t wanted = x->dims[0] * j.tokens, rows = fits && j.n_pairs ? cosines->count / j.n_pairs : 0;
  if (!fits || (positions ? positions->count != wanted : rows != wanted)) return fail_tables(eval);
  for (int64_t at = 0; positions && at < wanted; at++) {
    int64_t row = laci_buf_get_i(positions, at);
    if (row < 0 || row >= rows) return fail_tables(eval);
  }
  laci_eval_parallel(eval, wanted * j.heads, rotate_tokens, &j);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *x = laci_port_shape(c, X);
  c->why = "every pair of channels is rotated by its own angle";
  if (!x || x->rank < 3 || x->rank > 4 || !laci_port_shape(c, LACI_OUT(0)))
    return laci_coupling_status(c);
  int batch = laci_coupling_new_label(c), tokens = laci_coupling_new_label(c);
  bool positions = laci_has_input(node, POSITIONS);
  laci_couple_other_axes(c, X, LACI_OUT(0), x->rank - 1);
  for (int port = X; port <= POSITIONS; port++) {
    /* with position ids, the rows of the tables of sines and cosines are read by index */
    bool picked = positions && (port == COS || port == SIN);
    if (picked) laci_coupling_mark_described(c, port);
    if (!laci_has_input(node, port) || picked) continue;
    laci_coupling_set_label(c, port, 0, batch);
    laci_coupling_set_label(c, port, port == X ? x->rank - 2 : 1, tokens);
  }
  laci_coupling_set_label(c, LACI_OUT(0), 0, batch);
  laci_coupling_set_label(c, LACI_OUT(0), x->rank - 2, tokens);
  return laci_coupling_status(c);
}

const laci_op laci_op_rotary_embedding = {
    .name = "RotaryEmbedding",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"interleaved", LACI_ATTR_INT}, {"num_heads", LACI_ATTR_INT},
                                  {"rotary_embedding_dim", LACI_ATTR_INT}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
