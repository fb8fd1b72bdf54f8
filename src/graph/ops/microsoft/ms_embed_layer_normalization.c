/* SPDX-License-Identifier: Apache-2.0
 * com.microsoft.EmbedLayerNormalization: s = word[id] + position[place] + segment[kind], y = (s -
 * mean) / sqrt(var + epsilon) * gamma + beta over the last axis. Inputs: ids [B, S], kinds (may be
 * absent), the tables of words, positions and kinds, gamma, beta, a mask [B, S] and places (both
 * may be absent). Outputs: y [B, S, C], how many tokens the mask keeps [B], s.
 *
 * Channels: the last axes of the tables, of gamma, beta, y and s share one order. Rows of tables
 * are FIXED: their order must stay (coupling.h), since they are read by index. */
#include <math.h>

#include "graph/coupling.h"
#include "graph/ops/shared/microsoft_in.h"
#include "graph/ops/shared/norm_in.h"
#include "tensor/buf.h"

enum { IDS, KINDS, WORDS, PLACES, KIND_TABLE, GAMMA, BETA, MASK, PLACE_IDS };
enum { Y, KEPT, SUM };

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 9);
  static const int wanted[] = {WORDS, PLACES, GAMMA, BETA};
  for (int k = 0; k < 4 && !st; k++) {
    if (wanted[k] >= infer->n_in || !infer->in[wanted[k]])
      st = laci_node_fail(infer->node, infer->err, LAC_BAD_FILE, "input %d is missing", wanted[k]);
  }
  if (st) return st;
  int64_t size = laci_in_size(infer, WORDS, 1), batch = laci_in_size(infer, IDS, 0);
  const int64_t ids[] = {batch, laci_in_size(infer, IDS, 1)}, table[] = {-1, size};
  static const int of_ids[] = {IDS, KINDS, MASK}, tables[] = {WORDS, PLACES, KIND_TABLE};
  for (int k = 0; k < 3 && !st; k++) st = laci_check_input_sizes(infer, of_ids[k], 2, ids);
  for (int k = 0; k < 3 && !st; k++) st = laci_check_input_sizes(infer, tables[k], 2, table);
  for (int port = GAMMA; port <= BETA && !st; port++)
    st = laci_check_input_sizes(infer, port, 1, &size);
  if (st) return st;
  laci_shape y = {.rank = 3, .dims = {batch, ids[1], size}};
  const laci_shape *id_shape = laci_in_shape(infer, IDS), *words = laci_in_shape(infer, WORDS);
  if (!id_shape || !words) y.rank = -1;
  else y = (laci_shape){.rank = 3, .dims = {id_shape->dims[0], id_shape->dims[1], words->dims[1]}};
  infer->out[Y] = (laci_type){.dtype = infer->in[WORDS]->dtype, .shape = y};
  if (infer->n_out > SUM) infer->out[SUM] = infer->out[Y];
  if (infer->n_out > KEPT) {
    infer->out[KEPT] = (laci_type){.dtype = LAC_DTYPE_I32, .shape = {.rank = id_shape ? 1 : -1}};
    if (id_shape) infer->out[KEPT].shape.dims[0] = id_shape->dims[0];
  }
  return LAC_OK;
}

/** Adds row number `row` of a table. Returns false if the table has no such row. */
static bool add_table_row(const laci_eval *eval, int table, int64_t row, double *to) {
  const laci_shape *shape = &eval->in[table]->shape;
  int64_t n = shape->dims[1];
  if (row < 0 || row >= shape->dims[0]) return false;
  for (int64_t i = 0; i < n; i++) to[i] += eval->in[table]->f[row * n + i];
  return true;
}

static int64_t position_of_token(const laci_eval *eval, int64_t token, int64_t n_tokens) {
  const laci_buf *places = laci_operand(eval, PLACE_IDS);
  if (!places) return token % n_tokens;
  return places->i[places->count == n_tokens ? token % n_tokens : token];
}

static void count_kept_tokens(const laci_eval *eval, laci_buf *kept) {
  const laci_buf *mask = laci_operand(eval, MASK);
  for (int64_t at = 0; mask && at < mask->count; at++)
    kept->i[at / mask->shape.dims[1]] += mask->i[at] == 1;
}

static lac_status check_operands(const laci_eval *eval) {
  static const int floats[] = {WORDS, PLACES, KIND_TABLE, GAMMA, BETA};
  static const int integers[] = {IDS, KINDS, MASK, PLACE_IDS};
  const laci_buf *places = laci_operand(eval, PLACE_IDS), *ids = eval->in[IDS];
  bool ok = !laci_operand(eval, KINDS) == !laci_operand(eval, KIND_TABLE);
  for (int k = 0; k < 5; k++)
    ok &= !laci_operand(eval, floats[k]) || eval->in[floats[k]]->f != NULL;
  for (int k = 0; k < 4; k++)
    ok &= !laci_operand(eval, integers[k]) || eval->in[integers[k]]->i != NULL;
  ok &= !places || places->count == ids->count || places->count == ids->shape.dims[1];
  return ok ? LAC_OK
            : laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "its inputs do not fit");
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *ids = eval->in[IDS], *kinds = laci_operand(eval, KINDS);
  laci_buf *y = eval->out[Y], *sum = laci_result(eval, SUM), *kept = laci_result(eval, KEPT);
  const double *gamma = eval->in[GAMMA]->f, *beta = eval->in[BETA]->f;
  double epsilon = laci_node_attr(eval->node, "epsilon") ? laci_epsilon(eval->node) : 1e-12f;
  int64_t n = eval->in[WORDS]->shape.dims[1], n_tokens = ids->shape.dims[1];
  lac_status st = check_operands(eval);
  for (int64_t token = 0; token < ids->count && !st; token++) {
    double *row = y->f + token * n;
    bool there = add_table_row(eval, WORDS, ids->i[token], row) &&
                 add_table_row(eval, PLACES, position_of_token(eval, token, n_tokens), row) &&
                 (!kinds || add_table_row(eval, KIND_TABLE, kinds->i[token], row));
    if (!there)
      st = laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "a number is beyond its table");
    if (sum) memcpy(sum->f + token * n, row, (size_t)n * sizeof *row);
    laci_normalize_run(row, n, laci_moments_of(row, n), epsilon, row);
    for (int64_t i = 0; i < n; i++) row[i] = row[i] * gamma[i] + beta[i];
  }
  if (kept && !st) count_kept_tokens(eval, kept);
  return st;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  static const int tables[] = {WORDS, PLACES, KIND_TABLE}, vectors[] = {GAMMA, BETA};
  c->why = "rows of an embedding are picked by number";
  int label = laci_coupling_new_label(c);
  for (int k = 0; k < 3; k++) laci_coupling_set_label(c, tables[k], 1, label);
  for (int k = 0; k < 2; k++) laci_coupling_set_label(c, vectors[k], 0, label);
  laci_coupling_set_label(c, LACI_OUT(Y), 2, label);
  laci_coupling_set_label(c, LACI_OUT(SUM), 2, label);
  laci_coupling_mark_label_normalized(c, label);
  return laci_coupling_status(c);
}

const laci_op laci_op_ms_embed_layer_normalization = {
    .name = "EmbedLayerNormalization",
    .domain = LACI_MICROSOFT,
    .role = LACI_ROLE_INFER,
    .attributes = LACI_ATTRIBUTES({"epsilon", LACI_ATTR_FLOAT}, {"mask_index_type", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 0 | 1u << 1 | 1u << 7 | 1u << 8,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
