/* SPDX-License-Identifier: Apache-2.0
 * Reads which elements of their operands the results of moves are: moves.h. */
#include "engine/cpu/plan/moves.h"

#include <string.h>

#include "graph/op.h"
#include "graph/ops.h"
#include "graph/pad.h"
#include "graph/resample.h"
#include "tensor/buf.h"

/* ---- Slice ---- */

typedef struct integers {
  size_t n;
  int64_t v[LACI_MAX_RANK];
  bool given, known;
} integers;

/** Reads a list of integers of a Slice: an attribute (before opset 10) or a constant input. */
static integers read_integers(laci_cpu_plan *plan, const laci_node *node, const char *name,
                              int port) {
  integers out = {.known = true};
  const bool inputs = node->version >= 10 || node->version == 0;
  const int64_t *from = inputs ? NULL : laci_node_ints(node, name, &out.n);
  laci_buf *buf = NULL;
  if (inputs && laci_plan_has_input(node, port)) {
    buf = laci_plan_is_constant(plan, node->inputs[port])
              ? laci_plan_copy_constant(plan, node->inputs[port])
              : NULL;
    from = buf ? buf->i : NULL;
    out.n = buf ? (size_t)buf->count : 0;
    out.known = from != NULL;
  }
  out.given = from != NULL;
  if (out.n > LACI_MAX_RANK) out.known = false;
  for (size_t at = 0; at < out.n && out.known && from; at++) out.v[at] = from[at];
  laci_buf_destroy(buf);
  return out;
}

bool laci_plan_read_slice_start(laci_cpu_plan *plan, const laci_node *node,
                                laci_slice_start *slice) {
  const laci_shape *x = laci_plan_shape(plan, node->inputs[0]);
  integers starts = read_integers(plan, node, "starts", 1);
  integers axes = read_integers(plan, node, "axes", 3),
           steps = read_integers(plan, node, "steps", 4);
  *slice = (laci_slice_start){.strided = false};
  if (!starts.known || !axes.known || !steps.known) return false;
  if (!laci_plan_is_float(plan, node->inputs[0])) return false;
  for (int axis = 0; axis < x->rank; axis++) slice->steps[axis] = 1;
  for (size_t at = 0; at < starts.n; at++) {
    int64_t axis = axes.given && at < axes.n ? axes.v[at] : (int64_t)at, start = starts.v[at];
    int64_t step = steps.given && at < steps.n ? steps.v[at] : 1;
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis >= x->rank || step == 0) return false;
    int64_t last = step < 0 ? x->dims[axis] - 1 : x->dims[axis];
    if (start < 0) start += x->dims[axis];
    slice->starts[axis] = start < 0 ? 0 : start > last ? last : start;
    slice->steps[axis] = step;
    slice->strided = slice->strided || step != 1;
  }
  return true;
}

/* ---- Lists of indices ---- */

/** Returns the node's attribute "axis" for an operand of this rank; -1: there is no such axis. */
static int read_axis(const laci_node *node, int rank) {
  int64_t axis = laci_node_int(node, "axis", 0);
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? (int)axis : -1;
}

/** Returns a list for n indices, from `start` on and `step` apart; NULL: no memory. */
static int32_t *make_index_list(laci_cpu_plan *plan, int64_t n, int64_t start, int64_t step) {
  int32_t *list = laci_plan_alloc(plan, (size_t)n, sizeof *list);
  for (int64_t at = 0; at < n && list; at++) list[at] = (int32_t)(start + at * step);
  return list;
}

/** Adds a part that has all of its operand's elements in order, along all axes. False: no memory.
 */
static bool add_part(laci_cpu_plan *plan, laci_moves *moves, int value, const laci_shape *y) {
  laci_moved_part *part = &moves->parts[moves->n_parts++];
  part->value = value;
  for (int axis = 0; axis < y->rank; axis++) {
    part->at[axis] = make_index_list(plan, y->dims[axis], 0, 1);
    if (!part->at[axis]) return false;
  }
  return true;
}

/** Replaces the list of the last part along an axis; false: there is none. */
static bool set_indices_of_axis(laci_moves *moves, int axis, const int32_t *list) {
  moves->parts[moves->n_parts - 1].at[axis] = list;
  return list != NULL;
}

/* ---- Operators ---- */

/** A result whose moves are looked for. */
typedef struct moved_result {
  laci_cpu_plan *plan;
  const laci_node *node;
  int port; /* of the output */
  const laci_shape *x, *y;
} moved_result;

static bool find_concat(const moved_result *r, laci_moves *moves) {
  const int axis = read_axis(r->node, r->y->rank);
  int64_t first = 0;
  if (axis < 0) return false;
  for (int at = 0; at < r->node->n_inputs; at++) {
    const int value = r->node->inputs[at];
    const int64_t n = laci_plan_shape(r->plan, value)->dims[axis];
    int32_t *list = make_index_list(r->plan, r->y->dims[axis], -first, 1);
    for (int64_t o = 0; list && o < r->y->dims[axis]; o++) {
      if (list[o] < 0 || list[o] >= n) list[o] = -1;
    }
    if (!add_part(r->plan, moves, value, r->y) || !set_indices_of_axis(moves, axis, list))
      return false;
    first += n;
  }
  return true;
}

static bool find_slice(const moved_result *r, laci_moves *moves) {
  laci_slice_start start;
  if (!laci_plan_read_slice_start(r->plan, r->node, &start)) return false;
  if (!add_part(r->plan, moves, r->node->inputs[0], r->y)) return false;
  moves->is_view = !start.strided;
  for (int axis = 0; axis < r->y->rank; axis++) {
    const int64_t first = start.starts[axis], step = start.steps[axis];
    if (!set_indices_of_axis(moves, axis, make_index_list(r->plan, r->y->dims[axis], first, step)))
      return false;
  }
  return true;
}

static bool find_split(const moved_result *r, laci_moves *moves) {
  const int axis = read_axis(r->node, r->x->rank);
  int64_t first = 0;
  if (axis < 0) return false;
  for (int at = 0; at < r->port; at++) {
    if (r->node->outputs[at] < 0) return false; /* its size is not known */
    first += laci_plan_shape(r->plan, r->node->outputs[at])->dims[axis];
  }
  moves->is_view = true;
  return add_part(r->plan, moves, r->node->inputs[0], r->y) &&
         set_indices_of_axis(moves, axis, make_index_list(r->plan, r->y->dims[axis], first, 1));
}

/** A Gather by a constant list of indices. */
static bool find_gather(const moved_result *r, laci_moves *moves) {
  const int axis = read_axis(r->node, r->x->rank), indices = r->node->inputs[1];
  if (axis < 0 || laci_plan_shape(r->plan, indices)->rank != 1) return false;
  laci_buf *list = laci_plan_copy_constant(r->plan, indices);
  int32_t *at = make_index_list(r->plan, r->y->dims[axis], 0, 0);
  bool fits = list && list->i && at && list->count == r->y->dims[axis];
  for (int64_t o = 0; fits && o < list->count; o++) {
    const int64_t index = list->i[o] < 0 ? list->i[o] + r->x->dims[axis] : list->i[o];
    fits = index >= 0 && index < r->x->dims[axis];
    at[o] = (int32_t)index;
  }
  laci_buf_destroy(list);
  return fits && add_part(r->plan, moves, r->node->inputs[0], r->y) &&
         set_indices_of_axis(moves, axis, at);
}

static bool find_tile(const moved_result *r, laci_moves *moves) {
  if (!add_part(r->plan, moves, r->node->inputs[0], r->y)) return false;
  for (int axis = 0; axis < r->y->rank; axis++) {
    int32_t *list = make_index_list(r->plan, r->y->dims[axis], 0, 1);
    for (int64_t o = 0; list && o < r->y->dims[axis]; o++) list[o] %= (int32_t)r->x->dims[axis];
    if (!set_indices_of_axis(moves, axis, list)) return false;
  }
  return true;
}

static bool find_pad(const moved_result *r, laci_moves *moves) {
  const laci_node *node = r->node;
  const bool inputs = node->version >= 11 || node->version == 0;
  laci_pad_axis pad = {LACI_PAD_CONSTANT, 0, 0, 0};
  laci_pads pads;
  if (laci_pad_read_mode(node, &pad.mode, NULL) || !laci_plan_read_pads(r->plan, node, &pads))
    return false;
  moves->constant = inputs ? 0 : laci_node_float(node, "value", 0);
  if (inputs && laci_plan_has_input(node, 2) &&
      !laci_plan_read_scalar(r->plan, node->inputs[2], &moves->constant))
    return false;
  if (!add_part(r->plan, moves, node->inputs[0], r->y)) return false;
  for (int axis = 0; axis < r->y->rank; axis++) {
    pad.before = pads.before[axis];
    pad.after = pads.after[axis];
    pad.size = r->x->dims[axis];
    int32_t *list = make_index_list(r->plan, r->y->dims[axis], 0, 1);
    for (int64_t o = 0; list && o < r->y->dims[axis]; o++) {
      list[o] = (int32_t)laci_pad_source_position(&pad, o);
      moves->is_padded = moves->is_padded || list[o] < 0;
    }
    if (!set_indices_of_axis(moves, axis, list)) return false;
  }
  return true;
}

/** Copies the contents of all inputs of the node except the first; false: one of them is not
 * constant. */
static bool read_operands(const moved_result *r, laci_buf *operands[LACI_MAX_RANK]) {
  bool constant = r->node->n_inputs <= LACI_MAX_RANK;
  for (int at = 1; at < r->node->n_inputs && constant; at++) {
    if (r->node->inputs[at] < 0) continue;
    operands[at] = laci_plan_copy_constant(r->plan, r->node->inputs[at]);
    constant = operands[at] != NULL;
  }
  return constant;
}

/** Returns the elements that an axis of a Resize to the nearest one has; NULL: it computes sums, or
 * numbers that are no elements. */
static const int32_t *list_nearest_elements(const moved_result *r, const laci_resampled *of,
                                            int axis) {
  laci_resample_taps taps;
  lac_error err = {0};
  const int64_t n = r->y->dims[axis], last = r->x->dims[axis] - 1;
  if (laci_resample_find_taps(of, axis, &taps, &err)) return NULL;
  int32_t *list = make_index_list(r->plan, n, 0, 1);
  bool fits = list && (taps.n_out == 0 ? n == last + 1 : taps.width == 1);
  for (int64_t o = 0; fits && o < taps.n_out; o++) {
    const int64_t at = taps.first[o];
    fits = at != INT64_MIN;
    list[o] = (int32_t)(at < 0 ? 0 : at > last ? last : at);
  }
  laci_resample_clear_taps(&taps);
  return fits ? list : NULL;
}

static bool find_resize(const moved_result *r, laci_moves *moves) {
  laci_buf *operands[LACI_MAX_RANK] = {NULL};
  const laci_resampled of = {r->node, r->x, r->y, (const laci_buf *const *)operands};
  bool fits = strcmp(laci_node_text(r->node, "mode", "nearest"), "nearest") == 0 &&
              read_operands(r, operands) && add_part(r->plan, moves, r->node->inputs[0], r->y);
  for (int axis = 0; axis < r->y->rank && fits; axis++)
    fits = set_indices_of_axis(moves, axis, list_nearest_elements(r, &of, axis));
  for (int at = 0; at < LACI_MAX_RANK; at++) laci_buf_destroy(operands[at]);
  return fits;
}

/* ---- DepthToSpace and SpaceToDepth: a part for each place of a block ---- */

enum { MOST_PLACES = 64, RANK = 4 };

/** Sets the lists of the place [row, column] of blocks of b x b elements, which are channels of the
 * operand. */
static bool set_depth_lists(const moved_result *r, laci_moves *moves, int64_t b, int64_t place) {
  const bool crd = strcmp(laci_node_text(r->node, "mode", "DCR"), "CRD") == 0;
  const int64_t n = r->y->dims[1], places[] = {place / b, place % b};
  int32_t *channels =
      crd ? make_index_list(r->plan, n, place, b * b) : make_index_list(r->plan, n, place * n, 1);
  if (!set_indices_of_axis(moves, 1, channels)) return false;
  for (int axis = 2; axis < RANK; axis++) {
    int32_t *list = make_index_list(r->plan, r->y->dims[axis], 0, 1);
    for (int64_t o = 0; list && o < r->y->dims[axis]; o++)
      list[o] = o % b == places[axis - 2] ? (int32_t)(o / b) : -1;
    if (!set_indices_of_axis(moves, axis, list)) return false;
  }
  return true;
}

/** The same where channels of the result are places of the operand. */
static bool set_space_lists(const moved_result *r, laci_moves *moves, int64_t b, int64_t place) {
  const bool crd = strcmp(laci_node_text(r->node, "mode", "DCR"), "CRD") == 0;
  const int64_t n = r->x->dims[1], places[] = {place / b, place % b};
  int32_t *channels = make_index_list(r->plan, r->y->dims[1], 0, 1);
  for (int64_t o = 0; channels && o < r->y->dims[1]; o++) {
    const int64_t its = crd ? o % (b * b) : o / n;
    channels[o] = its == place ? (int32_t)(crd ? o / (b * b) : o % n) : -1;
  }
  if (!set_indices_of_axis(moves, 1, channels)) return false;
  for (int axis = 2; axis < RANK; axis++) {
    int32_t *list = make_index_list(r->plan, r->y->dims[axis], places[axis - 2], b);
    if (!set_indices_of_axis(moves, axis, list)) return false;
  }
  return true;
}

static bool find_depth_or_space(const moved_result *r, laci_moves *moves) {
  const int64_t b = laci_node_int(r->node, "blocksize", 0);
  if (r->x->rank != RANK || b < 1 || b * b > MOST_PLACES) return false;
  for (int64_t place = 0; place < b * b; place++) {
    if (!add_part(r->plan, moves, r->node->inputs[0], r->y)) return false;
    if (r->node->op == &laci_op_depth_to_space ? !set_depth_lists(r, moves, b, place)
                                               : !set_space_lists(r, moves, b, place))
      return false;
  }
  return true;
}

/* ---- The list of operators ---- */

static const struct operator_of_moves {
  const laci_op *op;
  bool (*find)(const moved_result *r, laci_moves *moves);
} operators[] = {
    {&laci_op_concat, find_concat},
    {&laci_op_slice, find_slice},
    {&laci_op_split, find_split},
    {&laci_op_gather, find_gather},
    {&laci_op_tile, find_tile},
    {&laci_op_pad, find_pad},
    {&laci_op_resize, find_resize},
    {&laci_op_upsample, find_resize},
    {&laci_op_depth_to_space, find_depth_or_space},
    {&laci_op_space_to_depth, find_depth_or_space},
};

static const struct operator_of_moves *find_operator(const laci_node *node) {
  for (size_t at = 0; at < sizeof operators / sizeof *operators; at++) {
    if (node->op == operators[at].op) return &operators[at];
  }
  return NULL;
}

bool laci_plan_is_move(const laci_node *node) { return find_operator(node) != NULL; }

/** Are all sizes of the result and its operands, which have the same rank, in 32 bits? */
static bool has_small_sizes(const laci_cpu_plan *plan, const laci_node *node, const laci_shape *y) {
  const laci_shape *x = laci_plan_shape(plan, node->inputs[0]);
  bool fits = x->rank == y->rank && y->rank > 0;
  for (int axis = 0; axis < y->rank && fits; axis++)
    fits = x->dims[axis] < INT32_MAX && y->dims[axis] < INT32_MAX;
  return fits;
}

bool laci_plan_find_moves(laci_cpu_plan *plan, const laci_node *node, int port, laci_moves *moves) {
  const struct operator_of_moves *of = find_operator(node);
  if (!of || node->outputs[port] < 0 || !laci_plan_has_elements(plan, node)) return false;
  const laci_shape *y = laci_plan_shape(plan, node->outputs[port]);
  if (!has_small_sizes(plan, node, y)) return false;
  const int most = node->n_inputs > MOST_PLACES ? node->n_inputs : MOST_PLACES;
  *moves = (laci_moves){.parts = laci_plan_alloc(plan, (size_t)most, sizeof *moves->parts)};
  const moved_result r = {plan, node, port, laci_plan_shape(plan, node->inputs[0]), y};
  return moves->parts && of->find(&r, moves);
}
