/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.MultiHeadAttention: y = softmax(scale * q k^T + mask) v for every head, of queries
 * [B, S, heads * size], keys [B, L, heads * size] and values [B, L, heads * size_v], to each of
 * which a part of the bias is added first. Keys and values may also be [B, heads, L, size], and may
 * be preceded by those of past tokens.
 *
 * Channels: within a head, channels of queries and keys share an order, and channels of values are
 * those of y. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/ops/shared/attend_in.h"
#include "graph/ops/shared/microsoft_in.h"
#include "tensor/buf.h"

enum { Q, K, V, BIAS, MASK, SCORE_BIAS, PAST_K, PAST_V, PAST_LENGTH, INDIRECTION };
enum { Y, PRESENT_K, PRESENT_V, SCORES };

/** Are queries, keys and values packed as [B, S, heads, 3, size], or keys and values as [B, L,
 * heads, 2, size]? */
static bool is_packed_operand(const laci_shape *q, const laci_shape *k) {
  return (q && q->rank == 5) || (k && k->rank == 5);
}

static lac_status fail_operands(const laci_node *node, lac_error *err) {
  return laci_node_fail(node, err, LAC_BAD_SHAPE, "queries, keys and values do not fit");
}

/** Checks what is known of an operand: [B, tokens, heads * size] or [B, heads, tokens, size].
 * False: it does not fit. */
static bool read_operand_sizes(const laci_shape *x, int64_t heads, bool may_be_apart,
                               int64_t *tokens, int64_t *size) {
  *tokens = *size = -1;
  if (!x) return true;
  if (x->rank == 4 && may_be_apart && (x->dims[1] < 0 || x->dims[1] == heads)) {
    *tokens = x->dims[2];
    *size = x->dims[3];
    return true;
  }
  if (x->rank != 3 || (x->dims[2] >= 0 && x->dims[2] % heads)) return false;
  *tokens = x->dims[1];
  *size = x->dims[2] < 0 ? -1 : x->dims[2] / heads;
  return true;
}

typedef struct operands {
  /* numbers of heads, images and tokens, and channels of a head; -1: not known */
  int64_t heads, batch, tokens, n_keys, size, size_v;
} operands;

static bool read_sizes_of_operands(const laci_node *node, const laci_shape *const in[3],
                                   operands *o) {
  int64_t size_k, n_values;
  *o = (operands){.heads = laci_node_int(node, "num_heads", 0)};
  if (o->heads < 1 || !read_operand_sizes(in[Q], o->heads, false, &o->tokens, &o->size) ||
      !read_operand_sizes(in[K], o->heads, true, &o->n_keys, &size_k) ||
      !read_operand_sizes(in[V], o->heads, true, &n_values, &o->size_v))
    return false;
  o->batch = in[Q] ? in[Q]->dims[0] : -1;
  if (o->n_keys < 0) o->n_keys = n_values;
  for (int port = K; port <= V; port++) {
    if (o->batch >= 0 && in[port] && in[port]->dims[0] >= 0 && in[port]->dims[0] != o->batch)
      return false;
  }
  bool sizes = o->size < 0 || size_k < 0 || o->size == size_k;
  return sizes && (n_values < 0 || n_values == o->n_keys);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 10);
  if (st) return st;
  const laci_shape *in[3] = {laci_in_shape(infer, Q), laci_in_shape(infer, K),
                             laci_in_shape(infer, V)};
  for (int out = 0; out < infer->n_out; out++) infer->out[out].dtype = infer->in[Q]->dtype;
  operands o;
  bool has_keys = K < infer->n_in && infer->in[K] && V < infer->n_in && infer->in[V];
  /* shapes of packed operands are not inferred */
  if (is_packed_operand(in[Q], in[K]) || !has_keys) return LAC_OK;
  if (!read_sizes_of_operands(infer->node, in, &o)) return fail_operands(infer->node, infer->err);
  int64_t all = o.size < 0 || o.size_v < 0 ? -1 : o.heads * (2 * o.size + o.size_v);
  st = laci_check_input_sizes(infer, BIAS, 1, &all);
  for (int port = PAST_K; port <= PAST_V && !st; port++) {
    const int64_t dims[] = {o.batch, o.heads, -1, port == PAST_K ? o.size : o.size_v};
    st = laci_check_input_sizes(infer, port, 4, dims);
  }
  if (st || !in[Q]) return st;
  bool has_past = PAST_K < infer->n_in && infer->in[PAST_K];
  int64_t past = has_past ? laci_in_size(infer, PAST_K, 2) : 0;
  int64_t total = past >= 0 && o.n_keys >= 0 ? past + o.n_keys : infer->new_symbol(infer);
  int64_t width = o.size_v < 0 ? infer->new_symbol(infer) : o.size_v * o.heads;
  const laci_shape shapes[] = {
      [Y] = {.rank = 3, .dims = {in[Q]->dims[0], in[Q]->dims[1], width}},
      [PRESENT_K] = {.rank = 4, .dims = {in[Q]->dims[0], o.heads, total, o.size}},
      [PRESENT_V] = {.rank = 4, .dims = {in[Q]->dims[0], o.heads, total, o.size_v}},
      [SCORES] = {.rank = 4, .dims = {in[Q]->dims[0], o.heads, in[Q]->dims[1], total}}};
  for (int out = Y; out < infer->n_out && out <= SCORES; out++) {
    bool known = out == PRESENT_K ? o.size >= 0 : out != PRESENT_V || o.size_v >= 0;
    if (known) infer->out[out].shape = shapes[out];
  }
  return LAC_OK;
}

/* ---- Values ---- */

static lac_status check_supported(const laci_eval *eval) {
  const laci_node *node = eval->node;
  const laci_buf *k = laci_operand(eval, K), *v = laci_operand(eval, V);
  const char *what = NULL;
  if (laci_result(eval, SCORES)) what = "scores as an output";
  if (laci_operand(eval, PAST_LENGTH) || laci_operand(eval, INDIRECTION))
    what = "a past that shares its memory";
  if (!k || !v || is_packed_operand(&eval->in[Q]->shape, &k->shape)) what = "packed operands";
  if (!laci_operand(eval, PAST_K) != !laci_operand(eval, PAST_V)) what = "half a past";
  for (int port = Q; port <= PAST_V && !what; port++) {
    const laci_buf *buf = laci_operand(eval, port);
    if (buf && !buf->f && port != MASK) what = "operands that are no floats";
  }
  return what ? laci_node_fail(node, eval->err, LAC_UNSUPPORTED, "%s", what) : LAC_OK;
}

/** Returns an operand's rows plus its part of the bias, as [B, tokens, heads * size], computed in
 * `buffer`, which is as large as the operand. An operand [B, heads, tokens, size] gets no bias. */
static laci_rows add_bias(const laci_eval *eval, int port, int64_t heads, int64_t first,
                          double *buffer) {
  const laci_buf *x = eval->in[port], *bias = laci_operand(eval, BIAS);
  const int64_t *dims = x->shape.dims;
  if (x->shape.rank == 4)
    return (laci_rows){x->f, dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3]};
  for (int64_t at = 0; at < x->count; at++)
    buffer[at] = x->f[at] + (bias ? bias->f[first + at % dims[2]] : 0);
  return (laci_rows){buffer, dims[1] * dims[2], dims[2] / heads, dims[2]};
}

/** Returns the rows of the past joined with the new ones, stored in the output `present`, or in
 * `buffer`. */
static laci_rows join_past_rows(const laci_eval *eval, int port, const laci_row_attention *a,
                                int64_t n_past, double *buffer) {
  const laci_buf *past = laci_operand(eval, port == K ? PAST_K : PAST_V);
  laci_buf *present = laci_result(eval, port == K ? PRESENT_K : PRESENT_V);
  laci_joined join = {.n_batch = a->n_batch,
                      .n_heads = a->n_heads,
                      .n_past = n_past,
                      .n_now = a->n_keys - n_past,
                      .size = port == K ? a->size : a->size_v,
                      .past = past ? past->f : NULL,
                      .now = port == K ? a->k : a->v};
  if (!past && !present) return join.now;
  double *out = present ? present->f : buffer;
  laci_join_past_rows(&join, out);
  int64_t head = a->n_keys * join.size;
  return (laci_rows){out, a->n_heads * head, head, join.size};
}

static lac_status run_attention(const laci_eval *eval, const operands *o, double *const buffer[5]) {
  const laci_node *node = eval->node;
  const laci_buf *past = laci_operand(eval, PAST_K), *past_v = laci_operand(eval, PAST_V);
  laci_key_mask mask = {.mask = laci_operand(eval, MASK),
                        .bias = laci_operand(eval, SCORE_BIAS),
                        .filter = laci_node_float(node, "mask_filter_value", -10000),
                        .causal = laci_node_int(node, "unidirectional", 0) != 0,
                        .n_past = past ? past->shape.dims[2] : 0};
  laci_row_attention a = {.n_batch = o->batch,
                          .n_heads = o->heads,
                          .n_shared = o->heads,
                          .n_queries = o->tokens,
                          .n_keys = mask.n_past + o->n_keys,
                          .size = o->size,
                          .size_v = o->size_v,
                          .bias = laci_key_mask_compute_bias,
                          .context = &mask,
                          .y = eval->out[Y]->f};
  a.scale = laci_node_float(node, "scale", 0);
  if (a.scale == 0) a.scale = 1 / sqrt((double)a.size);
  bool lengths = mask.mask && mask.mask->shape.rank == 1;
  if (!laci_key_mask_has_fitting_shape(&mask, &a) || (lengths && mask.mask->count != a.n_batch) ||
      (past_v && past_v->shape.dims[2] != mask.n_past))
    return laci_node_fail(node, eval->err, LAC_BAD_SHAPE, "mask or past do not fit");
  int64_t width = o->heads * o->size;
  a.q = add_bias(eval, Q, o->heads, 0, buffer[0]);
  a.k = add_bias(eval, K, o->heads, width, buffer[1]);
  a.v = add_bias(eval, V, o->heads, 2 * width, buffer[2]);
  a.k = join_past_rows(eval, K, &a, mask.n_past, buffer[3]);
  a.v = join_past_rows(eval, V, &a, mask.n_past, buffer[4]);
  return laci_attention_run(eval, &a);
}

static lac_status eval(laci_eval *eval) {
  operands o;
  lac_status st = check_supported(eval);
  if (st) return st;
  const laci_shape *in[3] = {&eval->in[Q]->shape, &eval->in[K]->shape, &eval->in[V]->shape};
  if (!read_sizes_of_operands(eval->node, in, &o)) return fail_operands(eval->node, eval->err);
  double *buffer[5] = {NULL};
  for (int k = 0; k < 5; k++) {
    int port = k < 3 ? k : k - 2;
    const laci_buf *past = laci_operand(eval, port == K ? PAST_K : PAST_V);
    int64_t n = eval->in[port]->count + (k > 2 && past ? past->count : 0);
    buffer[k] = laci_alloc((size_t)n, sizeof **buffer);
    if (!buffer[k]) st = laci_fail_memory(eval->err, eval->node->name);
  }
  if (!st) st = run_attention(eval, &o, buffer);
  for (int k = 0; k < 5; k++) laci_free(buffer[k]);
  return st;
}

/* ---- Coupling ---- */

/** Couples the channels of two ports, within a head. */
static void couple_head_channels(laci_coupling *c, int a, int b, int64_t n_heads) {
  const int ports[] = {a, b};
  int label = laci_coupling_new_label(c);
  for (int k = 0; k < 2; k++) {
    laci_coupling_set_label(c, ports[k], 2, label);
    laci_coupling_add_axis_parts(c, ports[k], 2, n_heads);
  }
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *in[3] = {laci_port_shape(c, Q), laci_port_shape(c, K), laci_port_shape(c, V)};
  operands o;
  c->why = "tokens and heads of MultiHeadAttention stand in an order";
  if (!in[Q] || !in[K] || !in[V] || !laci_port_shape(c, LACI_OUT(Y)) ||
      is_packed_operand(in[Q], in[K]) || !read_sizes_of_operands(node, in, &o))
    return laci_coupling_status(c);
  bool cached = laci_has_output(node, SCORES);
  for (int port = PAST_K; port <= INDIRECTION; port++) cached |= laci_has_input(node, port);
  for (int out = PRESENT_K; out <= PRESENT_V; out++) cached |= laci_has_output(node, out);
  if (cached || in[K]->rank != 3 || in[V]->rank != 3) {
    c->why = "channels of heads are kept in a cache";
    return laci_coupling_status(c);
  }
  for (int port = Q; port <= V; port++) laci_coupling_mark_described(c, port);
  laci_coupling_mark_described(c, LACI_OUT(Y));
  if (!laci_has_input(node, BIAS)) {
    couple_head_channels(c, Q, K, o.heads);
    couple_head_channels(c, V, LACI_OUT(Y), o.heads);
    return laci_coupling_status(c);
  }
  bool mapped = laci_is_axis_mappable(c, BIAS, 0);
  for (int port = Q; port <= V; port++) mapped &= laci_is_axis_mappable(c, port, 2);
  if (!mapped) return laci_coupling_status(c);
  int64_t width = o.heads * o.size;
  const laci_channels places[] = {{Q, 2, 0}, {K, 2, 0}, {BIAS, 0, 0}, {BIAS, 0, width}};
  const laci_channels values[] = {{V, 2, 0}, {BIAS, 0, 2 * width}};
  laci_couple_query_keys(c, &(laci_query_keys){.places = places,
                                               .keys = (const bool[]){false, true, false, true},
                                               .n_places = 4,
                                               .n_heads = o.heads,
                                               .size = o.size,
                                               .copies = 1});
  laci_couple_attention_values(
      c, &(laci_query_keys){
             .places = values, .n_places = 2, .n_heads = o.heads, .size = o.size_v, .copies = 1});
  return laci_coupling_status(c);
}

const laci_op laci_op_ms_multi_head_attention = {
    .name = "MultiHeadAttention",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_INFER,
    .attributes =
        LACI_ATTRIBUTES({"mask_filter_value", LACI_ATTR_FLOAT}, {"num_heads", LACI_ATTR_INT},
                        {"scale", LACI_ATTR_FLOAT}, {"unidirectional", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 8 | 1u << 9,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
