/* SPDX-License-Identifier: Apache-2.0
 * Finds the layers that move bytes of int8 values: operators of plan/moves.h whose operands are
 * quantized, and whose result is, too, perhaps with another scale. */

#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/layout/tensors.h"
#include "engine/cpu/plan/moves.h"
#include "engine/cpu/plan/quantized.h"
#include "graph/ops.h"

/** Which axes of a value are channels, rows and columns of a native layout. */
typedef struct moved_axes {
  bool rows; /* the value is a matrix: its last axis is channels, all others are columns */
  const laci_shape *y;
} moved_axes;

/* ---- The lists of a part ---- */

static bool is_identity(const int32_t *list, int64_t n, int64_t n_from) {
  bool same = n == n_from;
  for (int64_t at = 0; at < n && same; at++) same = list[at] == at;
  return same;
}

/** Returns the columns of a matrix: one for each row of elements along its last axis. NULL: no
 * memory. */
static const int32_t *list_matrix_rows(laci_cpu_plan *plan, const laci_moved_part *part,
                                       const laci_shape *y) {
  const laci_shape *x = laci_plan_shape(plan, part->value);
  const int64_t n = laci_shape_count_range(y, 0, y->rank - 1);
  int32_t *list = laci_plan_alloc(plan, (size_t)n, sizeof *list);
  for (int64_t at = 0; at < n && list; at++) {
    int64_t rest = at, from = 0, stride = 1;
    for (int axis = y->rank - 2; axis >= 0; axis--) {
      const int32_t its = part->at[axis][rest % y->dims[axis]];
      from = its < 0 || from < 0 ? -1 : from + its * stride;
      stride *= x->dims[axis];
      rest /= y->dims[axis];
    }
    list[at] = (int32_t)from;
  }
  return list;
}

/** Sets the lists of a part of the layer. False: it moves between images, or there is no memory. */
static bool set_part_lists(laci_cpu_plan *plan, const laci_moved_part *from, const moved_axes *axes,
                           laci_native_moved_part *part) {
  const laci_shape *x = laci_plan_shape(plan, from->value), *y = axes->y;
  const int last = y->rank - 1;
  const bool has_rows = !axes->rows && y->rank == 4;
  part->channels = from->at[axes->rows ? last : 1];
  part->rows = has_rows ? from->at[2] : laci_plan_alloc(plan, 1, sizeof *part->rows);
  part->columns = axes->rows ? list_matrix_rows(plan, from, y) : from->at[last];
  if (!axes->rows && !is_identity(from->at[0], y->dims[0], x->dims[0])) return false;
  return part->rows && part->columns;
}

/** Does the part move rows or columns? */
static bool moves_pixels(const laci_native_moved_part *part, const laci_sparse_window *g,
                         const laci_sparse_size *in) {
  return !is_identity(part->rows, g->out_h, in->h) || !is_identity(part->columns, g->out_w, in->w);
}

/* ---- The result ---- */

/** Sets the byte of the places that no part covers. False: no byte represents the constant. */
static bool set_fill_byte(const laci_moves *moves, const laci_fake_quantized *y, bool is_rounded,
                          laci_native_move *move) {
  const float value = (float)moves->constant;
  move->is_filled = !moves->is_padded;
  move->fill = laci_quantize_to_byte(y, value);
  return move->is_filled || is_rounded || ((float)move->fill + y->low) * y->scale == value;
}

/* ---- The sources ---- */

/** Sets the source of a part, a new one or one that another part has. False: it is not quantized,
 * or is a constant. */
static bool set_source_of_part(const laci_cpu_plan *plan, int value, laci_native_move *move,
                               int *values, laci_native_moved_part *part) {
  const int canonical = laci_native_canonical_value(plan, value);
  int at = 0;
  while (at < move->n_sources && values[at] != canonical) at++;
  part->source = at;
  if (at < move->n_sources) return true;
  values[at] = canonical;
  move->quantized[at] = laci_plan_quantization_of(plan, value);
  move->n_sources++;
  return move->quantized[at] != NULL;
}

/** Describes the parts and sources; NULL: they are no moves of int8 values between channels, rows
 * and columns, or there is no memory. */
static laci_native_move *describe_parts(laci_cpu_plan *plan, const laci_moves *moves,
                                        const moved_axes *axes) {
  const size_t n = (size_t)moves->n_parts;
  laci_native_move *move = laci_plan_alloc(plan, 1, sizeof *move);
  laci_native_moved_part *parts = laci_plan_alloc(plan, n, sizeof *parts);
  int *values = laci_plan_alloc(plan, n, sizeof *values);
  if (!move || !parts || !values) return NULL;
  *move = (laci_native_move){.n_parts = moves->n_parts,
                             .values = values,
                             .quantized = laci_plan_alloc(plan, n, sizeof *move->quantized),
                             .parts = parts,
                             .is_view = moves->is_view};
  if (!move->quantized) return NULL;
  for (int at = 0; at < moves->n_parts; at++) {
    if (!set_source_of_part(plan, moves->parts[at].value, move, values, &parts[at])) return NULL;
    if (!set_part_lists(plan, &moves->parts[at], axes, &parts[at])) return NULL;
  }
  return move;
}

/** Does the plan know that all operands of the node are quantized? */
static bool has_quantized_operands(const laci_cpu_plan *plan, const laci_node *node) {
  const int n = node->op == &laci_op_concat ? node->n_inputs : 1;
  for (int at = 0; at < n; at++) {
    if (!laci_plan_quantization_of(plan, node->inputs[at])) return false;
  }
  return true;
}

/** Can the node's output be moved as bytes, as far as its type and operands say? */
static bool may_be_int8_move(const laci_cpu_plan *plan, const laci_fused *fused, int port) {
  const laci_node *node = &plan->graph->nodes[fused->node];
  if (fused->output < 0 || fused->pattern || fused->n_posts > 0 || fused->scale || plan->bf16)
    return false;
  return laci_plan_is_move(node) && node->outputs[port] >= 0 && has_quantized_operands(plan, node);
}

/** Returns the window of a layer between values of these sizes, which only says the sizes. */
static laci_sparse_window make_move_window(const laci_sparse_size *in,
                                           const laci_sparse_size *out) {
  laci_sparse_window w = laci_native_make_1x1_window(in->channels, out->channels, in->h, in->w);
  w.out_h = out->h;
  w.out_w = out->w;
  w.values = LACI_SPARSE_S8;
  return w;
}

/** Sets whether any part moves rows or columns. */
static void set_moves_pixels(const laci_net *net, const laci_native_layer *layer,
                             laci_native_move *move) {
  for (int at = 0; at < move->n_parts; at++) {
    const laci_native_moved_part *part = &move->parts[at];
    const laci_shape *x = laci_plan_shape(&net->plan, move->values[part->source]);
    const laci_sparse_size in = laci_native_value_size(net, x, layer->rows);
    move->moves_pixels = move->moves_pixels || moves_pixels(part, &layer->window, &in);
  }
}

bool laci_native_find_int8_move(laci_net *net, const laci_fused *fused, int port,
                                laci_native_layer *layer) {
  laci_cpu_plan *plan = &net->plan;
  const laci_node *node = &plan->graph->nodes[fused->node];
  laci_moves moves;
  int output;
  if (!may_be_int8_move(plan, fused, port)) return false;
  const int result = node->outputs[port];
  const laci_fake_quantized *y = laci_native_quantized_result(plan, result, &output);
  const moved_axes axes = {laci_native_is_matrix_of_rows(plan, node->inputs[0]),
                           laci_plan_shape(plan, result)};
  const int rank = axes.y->rank;
  if (!y || (axes.rows ? rank < 2 : rank != 3 && rank != 4)) return false;
  if (!laci_plan_find_moves(plan, node, port, &moves)) return false;
  laci_native_move *move = describe_parts(plan, &moves, &axes);
  laci_native_int8_data *int8 = laci_plan_alloc(plan, 1, sizeof *int8);
  const bool is_rounded = laci_native_quantization_after(plan, result) != NULL;
  if (!move || !int8 || !set_fill_byte(&moves, y, is_rounded, move)) return false;
  const laci_shape *x = laci_plan_shape(plan, move->values[0]);
  const laci_sparse_size in = laci_native_value_size(net, x, axes.rows),
                         out = laci_native_value_size(net, axes.y, axes.rows);
  *int8 = (laci_native_int8_data){.x = move->quantized[0], .y = y};
  move->result = result;
  *layer = (laci_native_layer){.fused = fused,
                               .kind = LACI_NATIVE_MOVE,
                               .rows = axes.rows,
                               .int8 = int8,
                               .move = move,
                               .window = make_move_window(&in, &out),
                               .n_images = out.n_images,
                               .input = move->values[0],
                               .output = output,
                               .residual = -1,
                               .kept = 1};
  set_moves_pixels(net, layer, move);
  return true;
}
