/* SPDX-License-Identifier: Apache-2.0
 * Pad: adds elements before and after x along its axes: a constant, or elements of x (reflect,
 * edge, wrap). Negative pads crop. pads is an attribute before opset 11, then an input; from opset
 * 18 on, another input lists its axes.
 *
 * With constant padding, the map of an axis reads nothing at padded positions. The other modes read
 * elements by position, so a padded axis is FIXED. Axes without pads pass channel orders through
 * (coupling.h). */
#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/gradient.h"
#include "graph/pad.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

typedef struct pad_args {
  laci_pad_mode mode;
  bool known; /* whether begin and end are known */
  int64_t begin[LACI_MAX_RANK], end[LACI_MAX_RANK];
} pad_args;

lac_status laci_pad_read_mode(const laci_node *node, laci_pad_mode *mode, lac_error *err) {
  static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
  const char *text = laci_node_text(node, "mode", "constant");
  for (int at = 0; at < 4; at++) {
    if (strcmp(text, names[at]) != 0) continue;
    *mode = (laci_pad_mode)at;
    return LAC_OK;
  }
  return laci_node_fail(node, err, LAC_UNSUPPORTED, "mode '%s'", text);
}

static lac_status read_pads(const laci_node *node, int rank, const laci_buf *const content[2],
                            pad_args *args, lac_error *err) {
  bool inputs = node->version >= 11 || node->version == 0;
  laci_ints pads = laci_read_int_list(node, inputs ? NULL : "pads", inputs ? 1 : -1, content[0]);
  laci_ints axes = laci_read_int_list(node, NULL, inputs ? 3 : -1, content[1]);
  *args = (pad_args){.known = false};
  lac_status st = laci_pad_read_mode(node, &args->mode, err);
  if (st) return st;
  if (!pads.present) return laci_node_fail(node, err, LAC_BAD_FILE, "pads are missing");
  if (!pads.known || pads.has_symbols || (axes.present && (!axes.known || axes.has_symbols)))
    return LAC_OK;
  int n = axes.present ? axes.n : rank;
  if (pads.n != 2 * n)
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "%d pads for %d axes", pads.n, n);
  args->known = true;
  for (int at = 0; at < n; at++) {
    int64_t axis = axes.present ? axes.v[at] : at;
    st = laci_check_axis(node, rank, &axis, err);
    if (st) return st;
    args->begin[axis] = pads.v[at];
    args->end[axis] = pads.v[at + n];
  }
  return LAC_OK;
}

static lac_status infer(laci_infer *infer) {
  pad_args args;
  lac_status st = laci_check_n_inputs(infer, 1, 4);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  if (!x) return LAC_OK;
  const laci_buf *content[2] = {laci_in_known_content(infer, 1), laci_in_known_content(infer, 3)};
  st = read_pads(infer->node, x->rank, content, &args, infer->err);
  if (st) return st;
  laci_shape *out = &infer->out[0].shape;
  out->rank = x->rank;
  for (int axis = 0; axis < x->rank; axis++) {
    int64_t size = x->dims[axis];
    bool none = args.known && args.begin[axis] == 0 && args.end[axis] == 0;
    if (none) out->dims[axis] = size;
    else if (!args.known || size < 0) out->dims[axis] = infer->new_symbol(infer);
    else {
      bool bad = __builtin_add_overflow(size, args.begin[axis], &size);
      bad |= __builtin_add_overflow(size, args.end[axis], &size);
      if (bad || size < 0) {
        return laci_node_fail(
            infer->node, infer->err, LAC_BAD_SHAPE, "pads %lld and %lld of an axis of size %lld",
            (long long)args.begin[axis], (long long)args.end[axis], (long long)x->dims[axis]);
      }
      out->dims[axis] = size;
    }
  }
  return LAC_OK;
}

static int64_t positive_mod(int64_t x, int64_t n) { return (x % n + n) % n; }

int64_t laci_pad_source_position(const laci_pad_axis *pad, int64_t o) {
  int64_t start = pad->before < 0 ? -pad->before : 0;
  int64_t n = pad->size - start + (pad->after < 0 ? pad->after : 0);
  int64_t i = o - (pad->before > 0 ? pad->before : 0);
  if (i >= 0 && i < n) return i + start;
  if (pad->mode == LACI_PAD_CONSTANT || n <= 0) return -1;
  if (pad->mode == LACI_PAD_EDGE) return (i < 0 ? 0 : n - 1) + start;
  if (pad->mode == LACI_PAD_WRAP) return positive_mod(i, n) + start;
  if (n == 1) return start;
  int64_t swing = positive_mod(
      i, 2 * (n - 1)); /* position in a period of the reflection: forwards and backwards over the
                          axis, both ends counted once */
  return (swing < n ? swing : 2 * (n - 1) - swing) + start;
}

typedef struct padding {
  const laci_buf *x;
  laci_buf *out;
  int64_t *from[LACI_MAX_RANK]; /* for each axis of out: the positions of x that are read; -1: the
                                   constant */
  const laci_buf *fill;         /* NULL: fill_value is used */
  double fill_value;
} padding;

static void write_fill_value(const padding *job, int64_t at) {
  if (job->fill) laci_copy_elements(job->out, at, job->fill, 0, 1);
  else if (job->out->f) job->out->f[at] = job->fill_value;
  else job->out->i[at] = laci_int_truncate(job->out->dtype, job->fill_value);
}

static void pad_rows(int64_t begin, int64_t end, void *context) {
  const padding *job = context;
  const laci_shape *x = &job->x->shape, *out = &job->out->shape;
  int last = out->rank - 1;
  for (int64_t row = begin; row < end; row++) {
    int64_t rest = row, base = 0, stride = x->dims[last];
    bool filled = false;
    for (int axis = last - 1; axis >= 0; axis--) {
      int64_t from = job->from[axis][rest % out->dims[axis]];
      filled |= from < 0;
      base += from * stride;
      stride *= x->dims[axis];
      rest /= out->dims[axis];
    }
    for (int64_t o = 0; o < out->dims[last]; o++) {
      int64_t from = job->from[last][o], to = row * out->dims[last] + o;
      if (filled || from < 0) write_fill_value(job, to);
      else laci_copy_elements(job->out, to, job->x, base + from, 1);
    }
  }
}

static lac_status read_fill_value(const laci_eval *eval, padding *job) {
  bool inputs = eval->node->version >= 11 || eval->node->version == 0;
  job->fill = inputs ? laci_operand(eval, 2) : NULL;
  job->fill_value = inputs ? 0 : laci_node_float(eval->node, "value", 0);
  if (job->fill && (job->fill->count < 1 || !job->fill->f != !job->out->f)) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "constant_value is no scalar of the input's type");
  }
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) {
  pad_args args;
  padding job = {.x = eval->in[0], .out = eval->out[0]};
  const laci_shape *out = &job.out->shape;
  const laci_buf *content[2] = {laci_operand(eval, 1), laci_operand(eval, 3)};
  lac_status st = read_pads(eval->node, out->rank, content, &args, eval->err);
  if (!st) st = read_fill_value(eval, &job);
  if (st || job.out->count == 0) return st;
  if (out->rank == 0) {
    laci_copy_elements(job.out, 0, job.x, 0, 1);
    return LAC_OK;
  }
  size_t total = 0;
  for (int axis = 0; axis < out->rank; axis++) total += (size_t)out->dims[axis];
  int64_t *table = laci_alloc(total, sizeof *table), *next = table;
  if (!table) return laci_fail_memory(eval->err, "Pad");
  for (int axis = 0; axis < out->rank; axis++) {
    job.from[axis] = next;
    const laci_pad_axis pad = {args.mode, args.begin[axis], args.end[axis],
                               job.x->shape.dims[axis]};
    for (int64_t o = 0; o < out->dims[axis]; o++) next[o] = laci_pad_source_position(&pad, o);
    next += out->dims[axis];
  }
  laci_eval_parallel(eval, job.out->count / out->dims[out->rank - 1], pad_rows, &job);
  laci_free(table);
  return LAC_OK;
}

static void couple_padded_axis(laci_coupling *c, int axis, const pad_args *args) {
  bool none = args->begin[axis] == 0 && args->end[axis] == 0;
  int label = none ? laci_coupling_new_label(c) : LACI_FIXED;
  laci_coupling_set_label(c, 0, axis, label);
  laci_coupling_set_label(c, LACI_OUT(0), axis, label);
  if (none || args->mode != LACI_PAD_CONSTANT) return;
  if (!laci_is_axis_mappable(c, 0, axis) || !laci_is_axis_mappable(c, LACI_OUT(0), axis)) return;
  int64_t n = laci_port_shape(c, LACI_OUT(0))->dims[axis], size = laci_port_shape(c, 0)->dims[axis];
  laci_axis_map *map = laci_coupling_add_map(c, LACI_OUT(0), axis, 0, axis, n);
  const laci_pad_axis pad = {LACI_PAD_CONSTANT, args->begin[axis], args->end[axis], size};
  for (int64_t o = 0; map && o < n; o++) map->from[o] = (int32_t)laci_pad_source_position(&pad, o);
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  pad_args args;
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  const laci_buf *content[2] = {laci_known_content(graph, node, 1),
                                laci_known_content(graph, node, 3)};
  c->why = "Pad reads places by their position";
  if (!x || !y || x->rank != y->rank || read_pads(node, x->rank, content, &args, NULL) ||
      !args.known) {
    return laci_coupling_status(c);
  }
  for (int axis = 0; axis < x->rank; axis++) couple_padded_axis(c, axis, &args);
  return laci_coupling_status(c);
}

/** dX is dY with negated pads: Pad crops where it padded, and pads with zeros where it cropped. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  pad_args args;
  int64_t back[2 * LACI_MAX_RANK];
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  const laci_buf *content[2] = {laci_gradient_known_content(b, node, 1),
                                laci_gradient_known_content(b, node, 3)};
  if (read_pads(node, x.rank, content, &args, NULL) || !args.known)
    return laci_gradient_fail_unsupported(b, node, "its pads are not known");
  if (args.mode != LACI_PAD_CONSTANT)
    return laci_gradient_fail_unsupported(b, node, "only constant padding has a gradient");
  if (laci_gradient_is_needed(b, node, 2))
    return laci_gradient_fail_unsupported(b, node, "the value it fills with has no gradient");
  for (int axis = 0; axis < x.rank; axis++) {
    back[axis] = -args.begin[axis];
    back[axis + x.rank] = -args.end[axis];
  }
  int pads = laci_gradient_store_ints(b, 2 * x.rank, back);
  laci_gradient_contribute(b, node, 0,
                           laci_gradient_add_binary(b, "Pad", laci_gradient_of(b, node, 0), pads));
  return laci_gradient_status(b);
}

const laci_op laci_op_pad = {
    .name = "Pad",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"mode", LACI_ATTR_TEXT}, {"pads", LACI_ATTR_INTS},
                                  {"value", LACI_ATTR_FLOAT}),
    .moves_data = true,
    .is_fold = true,
    .inputs_without_channels = 1u << 1 | 1u << 2 | 1u << 3,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders,
    .gradient = gradient};
