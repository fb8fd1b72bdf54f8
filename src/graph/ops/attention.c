/* SPDX-License-Identifier: Apache-2.0
 * Attention (opsets 23 to 25): y = softmax(softcap(scale * q k^T) + bias) v for every head. Vaswani
 * et al., arXiv:1706.03762, 2017; several heads of queries may share one head of keys and values
 * (Ainslie et al., arXiv:2305.13245, 2023).
 *
 * q, k, v are [B, heads, tokens, size], or [B, tokens, heads * size] with the heads as attributes.
 * Keys and values of past tokens may come before the new ones; nonpad_kv_seqlen is the number of
 * valid ones. The bias combines the mask (bool: minus infinity where false), the causal limit, the
 * window and that number. A query that attends to no key gives 0.
 *
 * Channels: q and k share an order, for their channels are summed together; channels of v are those
 * of y. Where heads have no axis of their own, this holds within each head. The axis of heads
 * passes where each head of queries has its own keys. Tokens pass where nothing depends on their
 * position. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

enum { Q, K, V, MASK, PAST_K, PAST_V, N_VALID };
enum { Y, PRESENT_K, PRESENT_V, SCORES };
/* Values of the attribute qk_matmul_output_mode: which scores are an output. */
enum { RAW, CAPPED, BIASED, PROBABLE };

/** The sizes of an operand in either of its layouts. */
typedef struct heads {
  int64_t batch, heads, tokens, size;
  bool apart; /* the layout has a separate axis for heads, [batch, heads, tokens, size] */
} heads;

/** Reads the sizes of an operand; -1: not known. Returns false where the shape does not fit. */
static bool read_head_sizes(const laci_node *node, const laci_shape *x, const char *attr,
                            heads *h) {
  *h = (heads){.apart = x->rank == 4};
  if (x->rank != 3 && x->rank != 4) return false;
  h->batch = x->dims[0];
  h->tokens = x->dims[h->apart ? 2 : 1];
  h->heads = h->apart ? x->dims[1] : laci_node_int(node, attr, 0);
  h->size = x->dims[x->rank - 1];
  if (h->apart) return true;
  if (h->heads < 1 || (h->size >= 0 && h->size % h->heads != 0)) return false;
  if (h->size >= 0) h->size /= h->heads;
  return true;
}

static bool read_head_sizes_of_operands(const laci_node *node, const laci_shape *const *in,
                                        heads *q, heads *k, heads *v) {
  if (!read_head_sizes(node, in[Q], "q_num_heads", q) ||
      !read_head_sizes(node, in[K], "kv_num_heads", k) ||
      !read_head_sizes(node, in[V], "kv_num_heads", v))
    return false;
  bool known = q->heads > 0 && k->heads > 0;
  bool sizes = q->size < 0 || k->size < 0 || q->size == k->size;
  return sizes && q->apart == k->apart && q->apart == v->apart &&
         (!known || q->heads % k->heads == 0);
}

static lac_status fail_operands(const laci_node *node, lac_error *err) {
  return laci_node_fail(node, err, LAC_BAD_SHAPE, "queries, keys and values do not fit");
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 7);
  if (st) return st;
  const laci_shape *in[3] = {laci_in_shape(infer, Q), laci_in_shape(infer, K),
                             laci_in_shape(infer, V)};
  const laci_shape *past = laci_in_shape(infer, PAST_K);
  bool has_past = PAST_K < infer->n_in && infer->in[PAST_K];
  for (int out = 0; out < infer->n_out; out++) {
    infer->out[out].dtype = infer->in[out == PRESENT_V ? V : out == PRESENT_K ? K : Q]->dtype;
  }
  if (!in[Q] || !in[K] || !in[V]) return LAC_OK;
  heads q, k, v;
  if (!read_head_sizes_of_operands(infer->node, in, &q, &k, &v))
    return fail_operands(infer->node, infer->err);
  int64_t before = !has_past ? 0 : past && past->rank == 4 ? past->dims[2] : -1;
  int64_t total = before >= 0 && k.tokens >= 0 ? before + k.tokens
                  : !has_past                  ? k.tokens
                                               : infer->new_symbol(infer);
  const laci_shape shapes[] = {[Y] = {.rank = 4, .dims = {q.batch, q.heads, q.tokens, v.size}},
                               [PRESENT_K] = {.rank = 4, .dims = {k.batch, k.heads, total, k.size}},
                               [PRESENT_V] = {.rank = 4, .dims = {v.batch, v.heads, total, v.size}},
                               [SCORES] = {.rank = 4, .dims = {q.batch, q.heads, q.tokens, total}}};
  for (int out = 0; out < infer->n_out && out <= SCORES; out++) infer->out[out].shape = shapes[out];
  if (q.apart) return LAC_OK;
  int64_t width = v.size >= 0 ? v.size * q.heads : infer->new_symbol(infer);
  infer->out[Y].shape = (laci_shape){.rank = 3, .dims = {q.batch, q.tokens, width}};
  return LAC_OK;
}

/* ---- Values ---- */

typedef struct job {
  const laci_eval *eval;
  heads q, k, v;
  int64_t past, total; /* past: number of past keys; total: of all keys */
  double scale, cap;
  bool causal;
  int64_t left, right; /* limits of the local window; negative: no limit */
  int mode;
  double *work; /* [B, heads of q, tokens of q] rows of `total` scores */
} job;

/** Returns the index of the first element of a token's row in an operand. */
static int64_t offset_of_token_row(const heads *h, int64_t batch, int64_t head, int64_t token) {
  int64_t row = h->apart ? (batch * h->heads + head) * h->tokens + token
                         : (batch * h->tokens + token) * h->heads + head;
  return row * h->size;
}

/** Returns row `token` of keys (or values), counted over past and new ones together. */
static const double *find_key_or_value_row(const job *j, int port, int64_t batch, int64_t head,
                                           int64_t token) {
  const heads *h = port == K ? &j->k : &j->v;
  const laci_buf *past = laci_operand(j->eval, port == K ? PAST_K : PAST_V);
  if (token >= j->past)
    return j->eval->in[port]->f + offset_of_token_row(h, batch, head, token - j->past);
  return past->f + ((batch * h->heads + head) * j->past + token) * h->size;
}

/** Returns what the mask adds to the score of a query and a key. */
static double mask_bias_of_score(const job *j, int64_t batch, int64_t head, int64_t query,
                                 int64_t key) {
  const laci_buf *mask = laci_operand(j->eval, MASK);
  if (!mask) return 0;
  const laci_shape *shape = &mask->shape;
  const int64_t index[4] = {batch, head, query, key};
  int64_t at = 0;
  if (shape->rank > 0 && key >= shape->dims[shape->rank - 1])
    return -INFINITY; /* a mask may have fewer columns than there are keys */
  for (int axis = 0; axis < shape->rank; axis++) {
    int64_t place = shape->dims[axis] == 1 ? 0 : index[axis + 4 - shape->rank];
    at = at * shape->dims[axis] + place;
  }
  return mask->f ? mask->f[at] : mask->i[at] ? 0 : -INFINITY;
}

/** May the query attend to the key? */
static bool may_query_attend_to_key(const job *j, int64_t batch, int64_t query, int64_t key) {
  const laci_buf *valid = laci_operand(j->eval, N_VALID);
  int64_t n = valid ? laci_buf_get_i(valid, batch) : j->total;
  int64_t place = query + (valid && !laci_operand(j->eval, PAST_K) ? n - j->q.tokens : j->past);
  if (key >= n || (j->causal && key > place)) return false;
  return (j->left < 0 || key >= place - j->left) && (j->right < 0 || key <= place + j->right);
}

static double dot_product(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/** Replaces a row of scores by its softmax; by zeros if the query attends to no key (seen is
 * false). */
static void softmax_row(double *row, int64_t n, bool seen) {
  double largest = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; i++) largest = fmax(largest, row[i]);
  for (int64_t i = 0; i < n && seen; i++) sum += row[i] = exp(row[i] - largest);
  for (int64_t i = 0; i < n; i++) row[i] = seen ? row[i] / sum : 0;
}

static void attend_query_rows(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  laci_buf *y = laci_result(j->eval, Y), *out = laci_result(j->eval, SCORES);
  heads to = {j->q.batch, j->q.heads, j->q.tokens, j->v.size, j->q.apart};
  for (int64_t at = begin; at < end; at++) {
    int64_t query = at % j->q.tokens, head = at / j->q.tokens % j->q.heads;
    int64_t batch = at / j->q.tokens / j->q.heads, shared = head / (j->q.heads / j->k.heads);
    const double *q = j->eval->in[Q]->f + offset_of_token_row(&j->q, batch, head, query);
    double *row = j->work + at * j->total, *shown = out ? out->f + at * j->total : NULL;
    bool any = false;
    for (int64_t key = 0; key < j->total; key++) {
      double score =
          j->scale * dot_product(q, find_key_or_value_row(j, K, batch, shared, key), j->q.size);
      if (shown && j->mode == RAW) shown[key] = score;
      if (j->cap > 0) score = j->cap * tanh(score / j->cap);
      if (shown && j->mode == CAPPED) shown[key] = score;
      double bias = may_query_attend_to_key(j, batch, query, key)
                        ? mask_bias_of_score(j, batch, head, query, key)
                        : -INFINITY;
      any = any || !(isinf(bias) && bias < 0);
      row[key] = isinf(bias) && bias < 0 ? -INFINITY : score + bias;
      if (shown && j->mode == BIASED) shown[key] = row[key];
    }
    softmax_row(row, j->total, any);
    if (shown && j->mode == PROBABLE) memcpy(shown, row, (size_t)j->total * sizeof *row);
    double *sum = y->f + offset_of_token_row(&to, batch, head, query);
    for (int64_t key = 0; key < j->total; key++) {
      const double *v = find_key_or_value_row(j, V, batch, shared, key);
      for (int64_t i = 0; i < j->v.size && row[key] != 0; i++) sum[i] += row[key] * v[i];
    }
  }
}

/** Writes the past and the new rows of keys (or values), one after the other, to an output. */
static void write_past_and_new_rows(const job *j, int port, laci_buf *out) {
  const heads *h = port == K ? &j->k : &j->v;
  for (int64_t row = 0; out && row < h->batch * h->heads * j->total; row++) {
    int64_t head = row / j->total;
    memcpy(out->f + row * h->size,
           find_key_or_value_row(j, port, head / h->heads, head % h->heads, row % j->total),
           (size_t)h->size * sizeof *out->f);
  }
}

/** Do the shapes of past, mask and lengths fit the other operands? */
static bool has_fitting_sizes(const job *j) {
  const laci_buf *past_k = laci_operand(j->eval, PAST_K), *past_v = laci_operand(j->eval, PAST_V);
  const laci_buf *mask = laci_operand(j->eval, MASK), *valid = laci_operand(j->eval, N_VALID);
  const int64_t most[4] = {j->q.batch, j->q.heads, j->q.tokens, j->total};
  if (!past_k != !past_v || (valid && valid->count != j->q.batch)) return false;
  if (past_k && (!past_k->f || past_k->count != j->k.batch * j->k.heads * j->past * j->k.size))
    return false;
  if (past_v && (!past_v->f || past_v->count != j->v.batch * j->v.heads * j->past * j->v.size))
    return false;
  for (int axis = 0; mask && axis < mask->shape.rank; axis++) {
    int64_t size = mask->shape.dims[axis], limit = most[axis + 4 - mask->shape.rank];
    bool last = axis == mask->shape.rank - 1;
    if (mask->shape.rank > 4 || (size != 1 && size != limit && !(last && size < limit)))
      return false;
  }
  return j->k.batch == j->q.batch && j->v.batch == j->q.batch && j->k.tokens == j->v.tokens &&
         j->k.heads == j->v.heads;
}

static lac_status eval(laci_eval *eval) {
  const laci_node *node = eval->node;
  const laci_shape *in[3] = {&eval->in[Q]->shape, &eval->in[K]->shape, &eval->in[V]->shape};
  const laci_buf *past = laci_operand(eval, PAST_K);
  job j = {.eval = eval,
           .past = past && past->shape.rank == 4 ? past->shape.dims[2] : 0,
           .cap = laci_node_float(node, "softcap", 0),
           .causal = laci_node_int(node, "is_causal", 0) != 0,
           .left = laci_node_int(node, "left_window_size", -1),
           .right = laci_node_int(node, "right_window_size", -1),
           .mode = (int)laci_node_int(node, "qk_matmul_output_mode", 0)};
  bool floats = eval->in[Q]->f && eval->in[K]->f && eval->in[V]->f;
  if (!floats || !read_head_sizes_of_operands(node, in, &j.q, &j.k, &j.v))
    return fail_operands(node, eval->err);
  j.total = j.past + j.k.tokens;
  j.scale = laci_node_attr(node, "scale") ? laci_node_float(node, "scale", 1)
                                          : 1 / sqrt((double)j.q.size);
  if (!has_fitting_sizes(&j)) return fail_operands(node, eval->err);
  write_past_and_new_rows(&j, K, laci_result(eval, PRESENT_K));
  write_past_and_new_rows(&j, V, laci_result(eval, PRESENT_V));
  int64_t n = j.q.batch * j.q.heads * j.q.tokens;
  j.work = laci_alloc((size_t)(n * j.total), sizeof *j.work);
  if (!j.work) return laci_fail_memory(eval->err, node->name);
  laci_eval_parallel(eval, n, attend_query_rows, &j);
  laci_free(j.work);
  return LAC_OK;
}

/* ---- Coupling ---- */

/** Returns the axis of tokens of an operand, whose last axis has the channels. */
static int tokens_axis(const laci_shape *x) { return x->rank - 2; }

/** Couples the channels of two operands, within each head where heads share an axis with
 * channels. */
static void couple_head_channels(laci_coupling *c, int a, int b, int64_t n_heads) {
  const laci_shape *x = laci_port_shape(c, a), *y = laci_port_shape(c, b);
  if (!x || !y || x->dims[x->rank - 1] != y->dims[y->rank - 1]) return;
  int label = laci_coupling_new_label(c);
  laci_coupling_set_label(c, a, -1, label);
  laci_coupling_set_label(c, b, -1, label);
  if (x->rank == 4) return;
  laci_coupling_add_axis_parts(c, a, x->rank - 1, n_heads);
  laci_coupling_add_axis_parts(c, b, y->rank - 1, n_heads);
}

/** Has the node no inputs but queries, keys and values (no mask, no past keys and values), and no
 * outputs but the first (no present keys and values, no scores)? */
static bool has_only_qkv_and_one_output(const laci_node *node) {
  for (int port = MASK; port < node->n_inputs; port++) {
    if (laci_has_input(node, port)) return false;
  }
  for (int out = PRESENT_K; out < node->n_outputs; out++) {
    if (laci_has_output(node, out)) return false;
  }
  return true;
}

static bool uses_token_positions(const laci_node *node) {
  return laci_node_int(node, "is_causal", 0) || laci_node_int(node, "left_window_size", -1) >= 0 ||
         laci_node_int(node, "right_window_size", -1) >= 0;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *in[3] = {laci_port_shape(c, Q), laci_port_shape(c, K), laci_port_shape(c, V)};
  const laci_shape *y = laci_port_shape(c, LACI_OUT(Y));
  heads q, k, v;
  c->why = "tokens and heads of Attention stand in an order";
  if (!in[Q] || !in[K] || !in[V] || !y || !read_head_sizes_of_operands(node, in, &q, &k, &v))
    return laci_coupling_status(c);
  bool cached = laci_has_input(node, PAST_K) || laci_has_output(node, PRESENT_K) ||
                laci_has_input(node, PAST_V) || laci_has_output(node, PRESENT_V);
  bool simple = has_only_qkv_and_one_output(node), own_keys = q.heads == k.heads && q.heads > 0;
  for (int port = Q; port <= V; port++) laci_coupling_mark_described(c, port);
  laci_coupling_mark_described(c, LACI_OUT(Y));
  if (!cached && (q.apart || own_keys)) {
    couple_head_channels(c, Q, K, q.heads);
    couple_head_channels(c, V, LACI_OUT(Y), q.heads);
  }
  if (!simple) return laci_coupling_status(c);
  int batch = laci_coupling_new_label(c), head = laci_coupling_new_label(c);
  for (int port = Q; port <= V; port++) {
    laci_coupling_set_label(c, port, 0, batch);
    if (q.apart && own_keys) laci_coupling_set_label(c, port, 1, head);
  }
  laci_coupling_set_label(c, LACI_OUT(Y), 0, batch);
  if (q.apart && own_keys) laci_coupling_set_label(c, LACI_OUT(Y), 1, head);
  if (uses_token_positions(node)) return laci_coupling_status(c);
  int queries = laci_coupling_new_label(c), keys = laci_coupling_new_label(c);
  laci_coupling_set_label(c, Q, tokens_axis(in[Q]), queries);
  laci_coupling_set_label(c, LACI_OUT(Y), tokens_axis(y), queries);
  laci_coupling_set_label(c, K, tokens_axis(in[K]), keys);
  laci_coupling_set_label(c, V, tokens_axis(in[V]), keys);
  return laci_coupling_status(c);
}

const laci_op laci_op_attention = {
    .name = "Attention",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes =
        LACI_ATTRIBUTES({"is_causal", LACI_ATTR_INT}, {"kv_num_heads", LACI_ATTR_INT},
                        {"left_window_size", LACI_ATTR_INT}, {"q_num_heads", LACI_ATTR_INT},
                        {"qk_matmul_output_mode", LACI_ATTR_INT},
                        {"right_window_size", LACI_ATTR_INT}, {"scale", LACI_ATTR_FLOAT},
                        {"softcap", LACI_ATTR_FLOAT}, {"softmax_precision", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
