/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.GroupQueryAttention: attention whose heads of queries share heads of keys and
 * values (Ainslie et al., arXiv:2305.13245), with a cache of keys and values. With do_rotary,
 * queries and keys are rotated by position.
 *
 * Queries [B, S, heads * size], keys and values [B, S, kv_heads * size], or all three concatenated
 * as one input. Batch entry b has seqlens_k[b] + 1 valid tokens; the last S of them are the new
 * ones (all, where S is the total length). A query attends to the keys up to its own position.
 *
 * Channels: without a cache, channels of values are those of y, within a head; channels of queries
 * and keys share an order where they are not rotated. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/ops/shared/attend_in.h"
#include "graph/ops/shared/microsoft_in.h"
#include "tensor/buf.h"

enum { Q, K, V, PAST_K, PAST_V, LENGTHS, TOTAL, COS, SIN, POSITIONS, SCORE_BIAS, SINK };
enum { Y, PRESENT_K, PRESENT_V, SCORES };

/** Numbers of heads of queries and of keys, and channels of a head; -1: not known. */
typedef struct heads {
  int64_t q, kv, size;
  bool packed; /* queries, keys and values are one input */
} heads;

static bool read_head_sizes(const laci_node *node, const laci_shape *q, const laci_shape *k,
                            heads *h) {
  h->q = laci_node_int(node, "num_heads", 0);
  h->kv = laci_node_int(node, "kv_num_heads", 0);
  h->packed = node->n_inputs <= K || node->inputs[K] < 0;
  h->size = -1;
  if (h->q < 1 || h->kv < 1 || h->q % h->kv) return false;
  if (!q) return true;
  int64_t shares = h->packed ? h->q + 2 * h->kv : h->q;
  if (q->rank != 3 || (q->dims[2] >= 0 && q->dims[2] % shares)) return false;
  if (q->dims[2] >= 0) h->size = q->dims[2] / shares;
  return h->packed || !k ||
         (k->rank == 3 && (k->dims[2] < 0 || h->size < 0 || k->dims[2] == h->kv * h->size));
}

static lac_status fail_operands(const laci_node *node, lac_error *err) {
  return laci_node_fail(node, err, LAC_BAD_SHAPE, "queries, keys and values do not fit");
}

/** Returns the tokens of the cache: the larger of the past's length and the total length. */
static int64_t infer_cached_tokens(laci_infer *infer, const laci_shape *q) {
  bool has_past = PAST_K < infer->n_in && infer->in[PAST_K];
  int64_t past = has_past ? laci_in_size(infer, PAST_K, 2) : 0;
  const laci_buf *known = laci_in_known_content(infer, TOTAL);
  int64_t total = known && known->i && known->count == 1 ? known->i[0] : -1;
  if (total < 0) total = has_past ? -1 : q->dims[1];
  if (total < 0 || past < 0) return infer->new_symbol(infer);
  return total > past ? total : past;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 17);
  if (st) return st;
  const laci_shape *q = laci_in_shape(infer, Q), *k = laci_in_shape(infer, K);
  for (int out = 0; out < infer->n_out; out++) infer->out[out].dtype = infer->in[Q]->dtype;
  heads h;
  if (!read_head_sizes(infer->node, q, k, &h)) return fail_operands(infer->node, infer->err);
  int64_t batch = q ? q->dims[0] : -1, tokens = q ? q->dims[1] : -1;
  int64_t width = h.size < 0 ? -1 : h.kv * h.size;
  for (int port = K; port <= V && !st; port++)
    st = laci_check_input_sizes(infer, port, 3, (const int64_t[]){batch, tokens, width});
  for (int port = PAST_K; port <= PAST_V && !st; port++)
    st = laci_check_input_sizes(infer, port, 4, (const int64_t[]){batch, h.kv, -1, h.size});
  if (st || !q) return st;
  int64_t y = h.size < 0 ? infer->new_symbol(infer) : h.q * h.size;
  infer->out[Y].shape = (laci_shape){.rank = 3, .dims = {batch, tokens, y}};
  if (infer->n_out <= PRESENT_K || h.size < 0) return LAC_OK;
  int64_t total = infer_cached_tokens(infer, q);
  for (int out = PRESENT_K; out < infer->n_out && out <= PRESENT_V; out++)
    infer->out[out].shape = (laci_shape){.rank = 4, .dims = {batch, h.kv, total, h.size}};
  return LAC_OK;
}

/* ---- Values ---- */

typedef struct job {
  const laci_eval *eval;
  heads h;
  int64_t batch, tokens, n_keys, n_past; /* n_past: number of rows in the past operands, which may
                                            have space for more tokens */
  int64_t window;                        /* local attention window; -1: none */
  bool first, causal;                    /* first: there are no earlier tokens */
  double *q, *k, *v;                     /* [B, heads, S, size], [B, kv, n_keys, size] */
} job;

/** Returns how many tokens of a batch entry come before the new ones. */
static int64_t count_tokens_before(const job *j, int64_t batch) {
  const laci_buf *lengths = j->eval->in[LENGTHS];
  return j->first ? 0 : laci_buf_get_i(lengths, batch) + 1 - j->tokens;
}

static int64_t position_of_token(const job *j, int64_t batch, int64_t token) {
  const laci_buf *positions = laci_operand(j->eval, POSITIONS);
  if (!positions) return count_tokens_before(j, batch) + token;
  return j->first ? positions->i[0] + token : positions->i[batch * j->tokens + token];
}

/** Rotates channels of a row, two by two, by the angles of its position. Returns false if the
 * tables have no such position. */
static bool rotate_row(const job *j, double *row, int64_t position) {
  const laci_buf *cosines = j->eval->in[COS], *sines = j->eval->in[SIN];
  bool interleaved = laci_node_int(j->eval->node, "rotary_interleaved", 0) != 0;
  int64_t n = cosines->shape.dims[1], step = interleaved ? 1 : n;
  if (position < 0 || position >= cosines->shape.dims[0]) return false;
  for (int64_t pair = 0; pair < n; pair++) {
    int64_t a = interleaved ? 2 * pair : pair, b = a + step;
    double c = cosines->f[position * n + pair], s = sines->f[position * n + pair];
    double x = row[a], y = row[b];
    row[a] = c * x - s * y;
    row[b] = s * x + c * y;
  }
  return true;
}

/** Returns a row of one head of an operand; where Q, K and V are packed, they are consecutive in a
 * row. */
static const double *find_row_of_head(const job *j, int port, int64_t head, int64_t row) {
  const heads *h = &j->h;
  int64_t own = port == Q ? h->q : h->kv;
  int64_t skip = port == Q ? 0 : port == K ? h->q : h->q + h->kv;
  if (!h->packed) return j->eval->in[port]->f + (row * own + head) * h->size;
  return j->eval->in[Q]->f + (row * (h->q + 2 * h->kv) + skip + head) * h->size;
}

/** Copies the new rows of a head, rotated where do_rotary requires it. */
static bool copy_rows_of_head(const job *j, int port, int64_t batch, int64_t head, double *out) {
  bool rotated = port != V && laci_node_int(j->eval->node, "do_rotary", 0) != 0, ok = true;
  for (int64_t token = 0; token < j->tokens; token++) {
    double *to = out + token * j->h.size;
    memcpy(to, find_row_of_head(j, port, head, batch * j->tokens + token),
           (size_t)j->h.size * sizeof *to);
    ok = ok && (!rotated || rotate_row(j, to, position_of_token(j, batch, token)));
  }
  return ok;
}

/** Fills the queries and all keys and values, past and new. */
static bool copy_queries_keys_and_values(const job *j) {
  bool ok = true;
  for (int64_t at = 0; at < j->batch * j->h.q; at++)
    ok &= copy_rows_of_head(j, Q, at / j->h.q, at % j->h.q, j->q + at * j->tokens * j->h.size);
  for (int64_t at = 0; at < j->batch * j->h.kv; at++) {
    int64_t batch = at / j->h.kv, n = count_tokens_before(j, batch);
    for (int port = K; port <= V; port++) {
      const laci_buf *past = laci_operand(j->eval, port == K ? PAST_K : PAST_V);
      double *out = (port == K ? j->k : j->v) + at * j->n_keys * j->h.size;
      if (past && n)
        memcpy(out, past->f + at * j->n_past * j->h.size, (size_t)(n * j->h.size) * sizeof *out);
      ok &= copy_rows_of_head(j, port, batch, at % j->h.kv, out + n * j->h.size);
    }
  }
  return ok;
}

static double score_bias(const laci_row_attention *a, laci_pair_place place) {
  const job *j = a->context;
  const laci_buf *bias = laci_operand(j->eval, SCORE_BIAS);
  int64_t own = count_tokens_before(j, place.batch) + place.query;
  int64_t last = j->causal ? own : count_tokens_before(j, place.batch) + j->tokens - 1;
  if (place.key > last || (j->window >= 0 && place.key <= own - j->window)) return -INFINITY;
  if (!bias) return 0;
  const int64_t *dims = bias->shape.dims;
  int64_t batch = dims[0] == 1 ? 0 : place.batch, head = dims[1] == 1 ? 0 : place.head;
  return bias->f[((batch * dims[1] + head) * dims[2] + place.query) * dims[3] + place.key];
}

/** Returns why the node cannot be evaluated; NULL: it can. */
static const char *find_unsupported_reason(const laci_eval *eval) {
  for (int port = SINK + 1; port < eval->n_in; port++) {
    if (eval->in[port]) return "scales, norms or lengths of queries inside of it";
  }
  if (laci_result(eval, SCORES)) return "scores as an output";
  if (laci_node_int(eval->node, "sliding_window_cache", 0)) return "a cache that slides";
  if (!laci_operand(eval, LENGTHS) || !laci_operand(eval, TOTAL)) return "no lengths";
  if (!laci_operand(eval, PAST_K) != !laci_operand(eval, PAST_V)) return "half a past";
  for (int port = Q; port < eval->n_in; port++) {
    bool ints = port == LENGTHS || port == TOTAL || port == POSITIONS;
    if (eval->in[port] && !(ints ? eval->in[port]->i != NULL : eval->in[port]->f != NULL))
      return "operands of another type";
  }
  return NULL;
}

static bool has_fitting_tables(const job *j) {
  const laci_buf *cosines = laci_operand(j->eval, COS), *sines = laci_operand(j->eval, SIN);
  const laci_buf *positions = laci_operand(j->eval, POSITIONS);
  if (!laci_node_int(j->eval->node, "do_rotary", 0)) return true;
  return cosines && sines && cosines->shape.rank == 2 &&
         laci_shape_equal(&cosines->shape, &sines->shape) &&
         2 * cosines->shape.dims[1] <= j->h.size &&
         (!positions || positions->count == j->batch * j->tokens);
}

/** Do the shapes of lengths, tables and bias fit the other operands? */
static bool has_fitting_operands(const job *j) {
  const laci_eval *eval = j->eval;
  const laci_buf *bias = laci_operand(eval, SCORE_BIAS), *sink = laci_operand(eval, SINK);
  const laci_buf *past_v = laci_operand(eval, PAST_V);
  if (eval->in[LENGTHS]->count != j->batch || (sink && sink->count != j->h.q) ||
      (past_v && past_v->shape.dims[2] != j->n_past) || !has_fitting_tables(j))
    return false;
  for (int64_t batch = 0; batch < j->batch; batch++) {
    int64_t n = count_tokens_before(j, batch);
    if (n < 0 || n > j->n_past || n + j->tokens > j->n_keys) return false;
  }
  if (!bias) return true;
  const int64_t *dims = bias->shape.dims;
  return bias->shape.rank == 4 && (dims[0] == 1 || dims[0] == j->batch) &&
         (dims[1] == 1 || dims[1] == j->h.q) && dims[2] == j->tokens && dims[3] >= j->n_keys;
}

static lac_status run_attention(const job *j, double *zeros) {
  const laci_node *node = j->eval->node;
  const laci_buf *sink = laci_operand(j->eval, SINK);
  int64_t size = j->h.size, keys = j->n_keys * size;
  laci_row_attention a = {.n_batch = j->batch,
                          .n_heads = j->h.q,
                          .n_shared = j->h.kv,
                          .n_queries = j->tokens,
                          .n_keys = j->n_keys,
                          .size = size,
                          .size_v = size,
                          .q = {j->q, j->h.q * j->tokens * size, j->tokens * size, size},
                          .k = {j->k, j->h.kv * keys, keys, size},
                          .v = {j->v, j->h.kv * keys, keys, size},
                          .softcap = laci_node_float(node, "softcap", 0),
                          .bias = score_bias,
                          .context = j,
                          .y = j->eval->out[Y]->f};
  a.scale = laci_node_float(node, "scale", 0);
  if (a.scale == 0) a.scale = 1 / sqrt((double)size);
  if (sink) a.sink = sink->f;
  else if (laci_node_int(node, "smooth_softmax", 0) > 0) a.sink = zeros;
  return laci_attention_run(j->eval, &a);
}

static lac_status eval(laci_eval *eval) {
  const laci_node *node = eval->node;
  const laci_shape *q = &eval->in[Q]->shape;
  const laci_buf *past = laci_operand(eval, PAST_K), *k = laci_operand(eval, K);
  const char *why = find_unsupported_reason(eval);
  job j = {.eval = eval,
           .batch = q->dims[0],
           .tokens = q->dims[1],
           .n_past = past ? past->shape.dims[2] : 0,
           .window = laci_node_int(node, "local_window_size", -1),
           .causal = laci_node_int(node, "causal", 1) != 0};
  if (why) return laci_node_fail(node, eval->err, LAC_UNSUPPORTED, "%s", why);
  if (!read_head_sizes(node, q, k ? &k->shape : NULL, &j.h)) return fail_operands(node, eval->err);
  const laci_buf *total = eval->in[TOTAL];
  int64_t last = total->count == 1 ? total->i[0] : -1;
  j.first = j.tokens == last;
  j.n_keys = last > j.n_past ? last : j.n_past;
  if (!has_fitting_operands(&j))
    return laci_node_fail(node, eval->err, LAC_BAD_SHAPE, "lengths, tables or past do not fit");
  laci_buf *present_k = laci_result(eval, PRESENT_K), *present_v = laci_result(eval, PRESENT_V);
  int64_t n = j.batch * j.h.kv * j.n_keys * j.h.size;
  if ((present_k && present_k->count != n) || (present_v && present_v->count != n))
    return laci_node_fail(node, eval->err, LAC_BAD_SHAPE, "the total length does not fit");
  int64_t n_queries = j.batch * j.h.q * j.tokens * j.h.size;
  double *buffer = laci_alloc((size_t)(2 * n + n_queries + j.h.q), sizeof *buffer);
  if (!buffer) return laci_fail_memory(eval->err, node->name);
  j.q = buffer + 2 * n;
  j.k = present_k ? present_k->f : buffer;
  j.v = present_v ? present_v->f : buffer + n;
  lac_status st = LAC_OK;
  if (!copy_queries_keys_and_values(&j))
    st = laci_node_fail(node, eval->err, LAC_BAD_SHAPE, "a position is beyond the tables");
  if (!st) st = run_attention(&j, buffer + 2 * n + n_queries);
  laci_free(buffer);
  return st;
}

/* ---- Coupling ---- */

/** Returns why all channels are FIXED; NULL: they are not. */
static const char *find_reason_for_fixed_channels(const laci_node *node) {
  for (int port = SINK + 1; port < node->n_inputs; port++) {
    if (laci_has_input(node, port)) return "norms and scales inside of it know channels of heads";
  }
  for (int port = PAST_K; port <= PAST_V; port++) {
    if (laci_has_input(node, port)) return "channels of heads are kept in a cache";
  }
  for (int out = PRESENT_K; out <= SCORES; out++) {
    if (laci_has_output(node, out)) return "channels of heads are kept in a cache";
  }
  return NULL;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *q = laci_port_shape(c, Q), *k = laci_port_shape(c, K);
  heads h;
  c->why = find_reason_for_fixed_channels(node);
  if (c->why) return laci_coupling_status(c);
  c->why = laci_node_int(node, "do_rotary", 0)
               ? "every pair of channels of queries and keys is rotated by its own angle"
               : "tokens and heads of GroupQueryAttention stand in an order";
  if (!q || !laci_port_shape(c, LACI_OUT(Y)) || !read_head_sizes(node, q, k, &h) ||
      !laci_is_axis_mappable(c, Q, 2) ||
      (!h.packed && (!laci_is_axis_mappable(c, K, 2) || !laci_is_axis_mappable(c, V, 2))))
    return laci_coupling_status(c);
  int64_t copies = h.q / h.kv;
  const laci_channels places[] = {{Q, 2, 0}, {h.packed ? Q : K, 2, h.packed ? h.q * h.size : 0}};
  const laci_channels value = {h.packed ? Q : V, 2, h.packed ? (h.q + h.kv) * h.size : 0};
  const laci_query_keys keys = {.places = places,
                                .keys = (const bool[]){false, true},
                                .n_places = 2,
                                .n_heads = h.q,
                                .size = h.size,
                                .copies = copies};
  laci_coupling_mark_described(c, LACI_OUT(Y));
  if (laci_node_int(node, "do_rotary", 0)) laci_fix_query_key_channels(c, &keys);
  else laci_couple_query_keys(c, &keys);
  laci_couple_attention_values(
      c, &(laci_query_keys){
             .places = &value, .n_places = 1, .n_heads = h.q, .size = h.size, .copies = copies});
  return laci_coupling_status(c);
}

const laci_op laci_op_ms_group_query_attention = {
    .name = "GroupQueryAttention",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_INFER,
    .attributes =
        LACI_ATTRIBUTES({"causal", LACI_ATTR_INT}, {"do_rotary", LACI_ATTR_INT},
                        {"k_norm_epsilon", LACI_ATTR_FLOAT}, {"k_quant_type", LACI_ATTR_TEXT},
                        {"kv_cache_bit_width", LACI_ATTR_INT}, {"kv_num_heads", LACI_ATTR_INT},
                        {"local_window_size", LACI_ATTR_INT}, {"num_heads", LACI_ATTR_INT},
                        {"q_norm_epsilon", LACI_ATTR_FLOAT}, {"qk_norm_epsilon", LACI_ATTR_FLOAT},
                        {"qk_output", LACI_ATTR_INT}, {"rotary_interleaved", LACI_ATTR_INT},
                        {"scale", LACI_ATTR_FLOAT}, {"sliding_window_cache", LACI_ATTR_INT},
                        {"smooth_softmax", LACI_ATTR_INT}, {"softcap", LACI_ATTR_FLOAT},
                        {"v_quant_type", LACI_ATTR_TEXT}),
    .inputs_without_channels = 1u << 5 | 1u << 6 | 1u << 7 | 1u << 8,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
