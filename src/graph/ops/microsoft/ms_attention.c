/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.Attention: x W + b holds queries, keys and values, concatenated, each with all its
 * heads; y = softmax(scale * q k^T + mask) v for every head. Vaswani et al., arXiv:1706.03762.
 *
 * x [B, S, C], W [C, q + k + v], b [q + k + v]; keys and values of past tokens may be given as
 * `past`, [2, B, heads, before, size]; the output `present` holds past and new ones. Scores that a
 * mask leaves out get mask_filter_value added.
 *
 * Channels: those of x are reduced with axis 0 of W. Within a head, channels of queries and keys
 * share an order, and channels of values are those of y. Tokens and heads are FIXED: their order
 * must stay (coupling.h). */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/ops/shared/attend_in.h"
#include "graph/ops/shared/gemm_f64.h"
#include "graph/ops/shared/microsoft_in.h"
#include "tensor/buf.h"

enum { X, W, BIAS, MASK, PAST, SCORE_BIAS, PAST_LENGTH };
enum { Y, PRESENT };

/** Channels of queries, keys and values, and the number of heads that they are divided into. */
typedef struct widths {
  int64_t heads, q, v; /* k has as many channels as q; -1: not known */
} widths;

/** Reads the widths from the attributes. Returns false where they do not fit the packed size
 * (negative: not known). */
static bool read_channel_counts(const laci_node *node, int64_t packed, widths *w) {
  size_t n;
  const int64_t *sizes = laci_node_ints(node, "qkv_hidden_sizes", &n);
  *w = (widths){.heads = laci_node_int(node, "num_heads", 0), .q = -1, .v = -1};
  if (w->heads < 1) return false;
  if (sizes && n) {
    if (n != 3 || sizes[0] != sizes[1]) return false;
    w->q = sizes[0];
    w->v = sizes[2];
    if (packed >= 0 && (w->q < 1 || w->v < 1 || packed - w->v != 2 * w->q)) return false;
  } else if (packed >= 0) {
    w->q = w->v = packed / 3;
    if (packed < 1 || packed % 3) return false;
  }
  return w->q % w->heads == 0 || packed < 0 ? w->v % w->heads == 0 || packed < 0 : false;
}

static lac_status infer(laci_infer *infer) {
  widths w;
  int64_t packed = laci_in_size(infer, W, 1);
  lac_status st = laci_check_n_inputs(infer, 2, 7);
  if (!st)
    st = laci_check_input_sizes(infer, X, 3, (const int64_t[]){-1, -1, laci_in_size(infer, W, 0)});
  if (!st) st = laci_check_input_sizes(infer, W, 2, (const int64_t[]){-1, -1});
  if (!st) st = laci_check_input_sizes(infer, BIAS, 1, &packed);
  if (st) return st;
  if (!read_channel_counts(infer->node, packed, &w)) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "%lld columns do not hold queries, keys and values of %lld heads",
                          (long long)packed, (long long)w.heads);
  }
  int64_t batch = laci_in_size(infer, X, 0), size = w.q < 0 ? -1 : w.q / w.heads;
  st = laci_check_input_sizes(infer, PAST, 5, (const int64_t[]){2, batch, w.heads, -1, size});
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, X), *past = laci_in_shape(infer, PAST);
  infer->out[Y].dtype = infer->in[X]->dtype;
  if (PRESENT < infer->n_out) infer->out[PRESENT].dtype = infer->in[X]->dtype;
  if (!x) return LAC_OK;
  int64_t v = w.v < 0 ? infer->new_symbol(infer) : w.v, total = infer->new_symbol(infer);
  bool has_past = PAST < infer->n_in && infer->in[PAST];
  if (!has_past) total = x->dims[1];
  else if (past && past->dims[3] >= 0 && x->dims[1] >= 0) total = past->dims[3] + x->dims[1];
  infer->out[Y].shape = (laci_shape){.rank = 3, .dims = {x->dims[0], x->dims[1], v}};
  if (PRESENT < infer->n_out && size >= 0)
    infer->out[PRESENT].shape =
        (laci_shape){.rank = 5, .dims = {2, x->dims[0], w.heads, total, size}};
  return LAC_OK;
}

/* ---- Values ---- */

/** Computes the packed queries, keys and values, x W + b, as [B * S, packed]. */
static lac_status project_input(const laci_eval *eval, double *out) {
  const laci_buf *x = eval->in[X], *w = eval->in[W], *bias = laci_operand(eval, BIAS);
  int64_t rows = x->shape.dims[0] * x->shape.dims[1], n = w->shape.dims[1], zero = 0;
  for (int64_t at = 0; bias && at < rows * n; at++) out[at] = bias->f[at % n];
  laci_gemm_matrix right = {.data = w->f, .row_stride = n, .col_stride = 1, .offset = &zero};
  laci_gemm product = {.n_batch = 1,
                       .m = rows,
                       .n = n,
                       .k = w->shape.dims[0],
                       .a = x->f,
                       .a_row_stride = w->shape.dims[0],
                       .a_col_stride = 1,
                       .a_offset = &zero,
                       .a_period = 1,
                       .pack_b = laci_gemm_pack_matrix,
                       .pack_context = &right,
                       .c = out,
                       .c_row_stride = n,
                       .c_offset = &zero};
  return laci_gemm_run(eval, &product);
}

static lac_status check_supported(const laci_eval *eval) {
  const laci_node *node = eval->node;
  bool shared = laci_node_int(node, "past_present_share_buffer", 0) != 0;
  if (shared || laci_operand(eval, PAST_LENGTH))
    return laci_node_fail(node, eval->err, LAC_UNSUPPORTED, "a past that shares its memory");
  if (laci_node_int(node, "do_rotary", 0))
    return laci_node_fail(node, eval->err, LAC_UNSUPPORTED, "a rotation inside of it");
  for (int port = X; port <= BIAS; port++) {
    const laci_buf *buf = laci_operand(eval, port);
    if (buf && !buf->f)
      return laci_node_fail(node, eval->err, LAC_UNSUPPORTED, "elements of type %s",
                            lac_dtype_name(buf->dtype));
  }
  return LAC_OK;
}

/** Returns the rows of keys (which 0) or values (1), joined with those of the past where there are
 * any. */
static laci_rows join_past_rows(const laci_row_attention *a, const laci_key_mask *mask,
                                const laci_buf *past, int which, laci_rows now, double *buffer) {
  int64_t size = which ? a->size_v : a->size, tokens = a->n_keys;
  laci_joined joined = {.n_batch = a->n_batch,
                        .n_heads = a->n_heads,
                        .n_past = mask->n_past,
                        .n_now = a->n_queries,
                        .size = size,
                        .past = past ? past->f + which * (past->count / 2) : NULL,
                        .now = now};
  laci_join_past_rows(&joined, buffer);
  return (laci_rows){
      .x = buffer, .batch = a->n_heads * tokens * size, .head = tokens * size, .token = size};
}

static lac_status run_attention(const laci_eval *eval, const widths *w, const double *packed,
                                double *buffer) {
  const laci_shape *x = &eval->in[X]->shape;
  const laci_buf *past = laci_operand(eval, PAST);
  int64_t row = 2 * w->q + w->v, tokens = x->dims[1];
  laci_key_mask mask = {.mask = laci_operand(eval, MASK),
                        .bias = laci_operand(eval, SCORE_BIAS),
                        .filter = laci_node_float(eval->node, "mask_filter_value", -10000),
                        .causal = laci_node_int(eval->node, "unidirectional", 0) != 0,
                        .n_past = past ? past->shape.dims[3] : 0};
  laci_row_attention a = {.n_batch = x->dims[0],
                          .n_heads = w->heads,
                          .n_shared = w->heads,
                          .n_queries = tokens,
                          .n_keys = mask.n_past + tokens,
                          .size = w->q / w->heads,
                          .size_v = w->v / w->heads,
                          .bias = laci_key_mask_compute_bias,
                          .context = &mask,
                          .y = eval->out[Y]->f};
  a.scale = laci_node_float(eval->node, "scale", 0);
  if (a.scale == 0) a.scale = 1 / sqrt((double)a.size);
  if (!laci_key_mask_has_fitting_shape(&mask, &a) || (past && (a.size != a.size_v || !past->f)))
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "mask or past do not fit");
  a.q = (laci_rows){.x = packed, .batch = tokens * row, .head = a.size, .token = row};
  a.k = a.v = a.q;
  a.k.x += w->q;
  a.v.x += 2 * w->q;
  a.v.head = a.size_v;
  laci_buf *present = laci_result(eval, PRESENT);
  double *keys = present ? present->f : buffer;
  if (past || present) {
    int64_t all_keys = a.n_batch * a.n_heads * a.n_keys * a.size;
    a.k = join_past_rows(&a, &mask, past, 0, a.k, keys);
    a.v = join_past_rows(&a, &mask, past, 1, a.v, keys + all_keys);
  }
  return laci_attention_run(eval, &a);
}

static lac_status eval(laci_eval *eval) {
  const laci_shape *x = &eval->in[X]->shape;
  const laci_buf *past = laci_operand(eval, PAST);
  widths w;
  lac_status st = check_supported(eval);
  if (st || !read_channel_counts(eval->node, eval->in[W]->shape.dims[1], &w)) return st;
  int64_t rows = x->dims[0] * x->dims[1];
  int64_t all = rows + (past ? x->dims[0] * past->shape.dims[3] : 0);
  double *packed = laci_alloc((size_t)(rows * (2 * w.q + w.v)), sizeof *packed);
  double *buffer = laci_alloc((size_t)(all * (w.q + w.v)), sizeof *buffer);
  if (!packed || !buffer) st = laci_fail_memory(eval->err, eval->node->name);
  if (!st) st = project_input(eval, packed);
  if (!st) st = run_attention(eval, &w, packed, buffer);
  laci_free(packed);
  laci_free(buffer);
  return st;
}

/* ---- Coupling ---- */

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph;
  const laci_shape *x = laci_port_shape(c, X), *weight = laci_port_shape(c, W);
  const laci_shape *y = laci_port_shape(c, LACI_OUT(Y));
  widths w;
  c->why = "tokens and heads of Attention stand in an order";
  if (!x || !weight || !y || !laci_is_axis_mappable(c, W, 1) ||
      !read_channel_counts(node, weight->dims[1], &w) ||
      (laci_has_input(node, BIAS) && !laci_is_axis_mappable(c, BIAS, 0)))
    return laci_coupling_status(c);
  bool cached = laci_has_input(node, PAST) || laci_has_output(node, PRESENT);
  int in = laci_coupling_new_label(c), n_places = laci_has_input(node, BIAS) ? 4 : 2;
  laci_coupling_mark_described(c, LACI_OUT(Y));
  laci_coupling_set_label(c, X, 2, in);
  laci_coupling_set_label(c, W, 0, in);
  const laci_channels places[] = {{W, 1, 0}, {W, 1, w.q}, {BIAS, 0, 0}, {BIAS, 0, w.q}};
  const laci_channels values[] = {{W, 1, 2 * w.q}, {BIAS, 0, 2 * w.q}};
  const laci_query_keys q = {.places = places,
                             .keys = (const bool[]){false, true, false, true},
                             .n_places = n_places,
                             .n_heads = w.heads,
                             .size = w.q / w.heads,
                             .copies = 1};
  const laci_query_keys v = {.places = values,
                             .n_places = n_places / 2,
                             .n_heads = w.heads,
                             .size = w.v / w.heads,
                             .copies = 1};
  if (cached) {
    c->why = "channels of heads are kept in a cache";
    return laci_coupling_status(c);
  }
  if (laci_node_int(node, "do_rotary", 0)) laci_fix_query_key_channels(c, &q);
  else laci_couple_query_keys(c, &q);
  laci_couple_attention_values(c, &v);
  return laci_coupling_status(c);
}

static int find_weight_axes(const laci_graph *graph, const laci_node *node,
                            laci_weight_axes axes[2]) {
  (void)graph;
  if (!laci_has_input(node, W)) return 0;
  axes[0] = (laci_weight_axes){.port = W, .k_axis = 1, .c_axis = 0, .groups = 1};
  return 1;
}

const laci_op laci_op_ms_attention = {
    .name = "Attention",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_ALLOW,
    .attributes = LACI_ATTRIBUTES(
        {"do_rotary", LACI_ATTR_INT}, {"mask_filter_value", LACI_ATTR_FLOAT},
        {"num_heads", LACI_ATTR_INT}, {"past_present_share_buffer", LACI_ATTR_INT},
        {"qkv_hidden_sizes", LACI_ATTR_INTS}, {"rotary_embedding_dim", LACI_ATTR_INT},
        {"scale", LACI_ATTR_FLOAT}, {"unidirectional", LACI_ATTR_INT}),
    .weights = find_weight_axes,
    .inputs_without_channels = 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
