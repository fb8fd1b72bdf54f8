/* SPDX-License-Identifier: Apache-2.0
 * Checks and queries that operators share: inputs, axes, short integer lists, broadcast shapes with
 * symbols. Next: walk.c (strided operands), elementwise.c (evaluation). */
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "base/error.h"
#include "base/acquire.h"
#include "base/plural.h"
#include "tensor/buf.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

lac_status laci_node_fail(const laci_node *node, lac_error *err, lac_status status,
                          const char *format, ...) {
  char text[768];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return laci_fail(err, status, "%s (%s): %s", node->name, node->type, text);
}

lac_status laci_check_n_inputs(laci_infer *infer, int min, int max) {
  if (max >= 0 && infer->n_in > max) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_FILE, "%d input%s, at most %d wanted",
                          infer->n_in, laci_plural(infer->n_in), max);
  }
  for (int port = 0; port < min; port++) {
    if (port >= infer->n_in || !infer->in[port]) {
      return laci_node_fail(infer->node, infer->err, LAC_BAD_FILE,
                            "input %d is missing, %d are wanted", port, min);
    }
  }
  return infer->n_out > 0 ? LAC_OK
                          : laci_node_fail(infer->node, infer->err, LAC_BAD_FILE, "no outputs");
}

static lac_status check_float(const laci_eval *eval, const laci_buf *buf) {
  if (!buf || buf->f) return LAC_OK;
  return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED,
                        "elements of type %s, a float type is wanted", lac_dtype_name(buf->dtype));
}

lac_status laci_check_floats(const laci_eval *eval) {
  lac_status st = LAC_OK;
  for (int port = 0; port < eval->n_in && !st; port++) st = check_float(eval, eval->in[port]);
  for (int port = 0; port < eval->n_out && !st; port++) st = check_float(eval, eval->out[port]);
  return st;
}

int laci_axis_counted_from_first(int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? (int)axis : -1;
}

lac_status laci_check_axis(const laci_node *node, int rank, int64_t *axis, lac_error *err) {
  int checked = laci_axis_counted_from_first(*axis, rank);
  if (checked < 0) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "axis %" PRId64 " of a tensor of %d axes",
                          *axis, rank);
  }
  *axis = checked;
  return LAC_OK;
}

lac_status laci_check_index(const laci_eval *eval, int64_t size, int64_t *index) {
  int64_t checked = *index < 0 ? *index + size : *index;
  if (checked < 0 || checked >= size) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "index %" PRId64 " into an axis of size %" PRId64, *index, size);
  }
  *index = checked;
  return LAC_OK;
}

const laci_shape *laci_in_shape(const laci_infer *infer, int port) {
  if (port >= infer->n_in || !infer->in[port] || infer->in[port]->shape.rank < 0) return NULL;
  return &infer->in[port]->shape;
}

const laci_buf *laci_in_known_content(const laci_infer *infer, int port) {
  return port < infer->n_in ? infer->known[port] : NULL;
}

const laci_buf *laci_known_content(const laci_graph *graph, const laci_node *node, int port) {
  if (!laci_has_input(node, port)) return NULL;
  const laci_buf *known = graph->values[node->inputs[port]].known;
  for (int64_t at = 0; known && known->i && at < known->count; at++) {
    if (laci_is_symbol(known->i[at])) return NULL;
  }
  return known;
}

laci_buf *laci_copy_constant_content(const laci_graph *graph, const laci_node *node, int port) {
  laci_buf *copy = NULL;
  if (!laci_has_input(node, port)) return NULL;
  const laci_buf *known = laci_known_content(graph, node, port);
  if (known) {
    if (laci_buf_create(known->dtype, &known->shape, &copy, NULL)) return NULL;
    laci_copy_elements(copy, 0, known, 0, known->count);
    return copy;
  }
  const laci_value *value = &graph->values[node->inputs[port]];
  if (value->stored < 0 || graph->stored[value->stored].overridable) return NULL;
  const laci_stored *stored = &graph->stored[value->stored];
  laci_type type = {.dtype = stored->dtype, .shape = stored->shape};
  laci_acquired_bytes held;
  if (laci_stored_acquire(graph, stored, &held, NULL)) return NULL;
  if (laci_buf_from_bytes(&type, held.bytes, stored->size_bytes, &copy, NULL)) copy = NULL;
  laci_bytes_release(&held);
  return copy;
}

static laci_ints make_int_list(const int64_t *from, int64_t n) {
  laci_ints ints = {.present = true, .known = from && n <= LACI_INTS_ROOM, .n = (int)n};
  if (n > LACI_INTS_ROOM) ints.n = -1;
  for (int at = 0; ints.known && at < ints.n; at++) {
    ints.v[at] = from[at];
    ints.has_symbols |= laci_is_symbol(from[at]);
  }
  return ints;
}

laci_ints laci_read_int_list(const laci_node *node, const char *attr, int port,
                             const laci_buf *content) {
  if (port >= 0 && laci_has_input(node, port)) {
    if (content && content->i) return make_int_list(content->i, content->count);
    return (laci_ints){.present = true, .n = -1};
  }
  size_t n = 0;
  const int64_t *from = attr ? laci_node_ints(node, attr, &n) : NULL;
  if (from) return make_int_list(from, (int64_t)n);
  return (laci_ints){0};
}

lac_status laci_axes_to_flags(const laci_node *node, const laci_ints *axes, int rank, bool all,
                              bool flags[LACI_MAX_RANK], lac_error *err) {
  bool absent = !axes->present;
  for (int axis = 0; axis < LACI_MAX_RANK; axis++) flags[axis] = absent && all && axis < rank;
  for (int at = 0; !absent && at < axes->n; at++) {
    int64_t axis = axes->v[at];
    lac_status st = laci_check_axis(node, rank, &axis, err);
    if (st) return st;
    if (flags[axis]) {
      return laci_node_fail(node, err, LAC_BAD_SHAPE, "axis %" PRId64 " is given twice", axis);
    }
    flags[axis] = true;
  }
  return LAC_OK;
}

/** Computes the size of an axis from two sizes to be broadcast; returns false where they do not
 * fit. */
static bool broadcast_size(laci_infer *infer, int64_t a, int64_t b, int64_t *out) {
  if (a == b || b == 1) *out = a;
  else if (a == 1) *out = b;
  else if (a >= 0 && b >= 0) return false;
  /* the unknown size is equal to the known one, or 1 */
  else if (a >= 0 || b >= 0) *out = a >= 0 ? a : b;
  else *out = infer->new_symbol(infer);
  return true;
}

lac_status laci_broadcast_shapes(laci_infer *infer, const laci_shape *a, const laci_shape *b,
                                 laci_shape *out) {
  char text_a[128], text_b[128];
  laci_shape result = laci_shape_unknown();
  if (a->rank >= 0 && b->rank >= 0) {
    result.rank = a->rank > b->rank ? a->rank : b->rank;
    for (int back = 1; back <= result.rank; back++) {
      int64_t size_a = back <= a->rank ? a->dims[a->rank - back] : 1;
      int64_t size_b = back <= b->rank ? b->dims[b->rank - back] : 1;
      if (broadcast_size(infer, size_a, size_b, &result.dims[result.rank - back])) continue;
      return laci_node_fail(
          infer->node, infer->err, LAC_BAD_SHAPE, "shapes %s and %s cannot be broadcast",
          laci_shape_text(a, text_a, sizeof text_a), laci_shape_text(b, text_b, sizeof text_b));
    }
  }
  *out = result;
  return LAC_OK;
}

int64_t laci_multiply_sizes(laci_infer *infer, const laci_shape *shape, int from, int to) {
  int64_t known = 1, symbol = 0;
  int n_symbols = 0;
  for (int axis = from; axis < to; axis++) {
    if (shape->dims[axis] < 0) {
      n_symbols++;
      symbol = shape->dims[axis];
    } else if (__builtin_mul_overflow(known, shape->dims[axis], &known)) {
      return infer->new_symbol(infer);
    }
  }
  if (n_symbols == 0 || known == 0) return known;
  return n_symbols == 1 && known == 1 ? symbol : infer->new_symbol(infer);
}

lac_status laci_infer_same_type(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, -1);
  if (!st) infer->out[0] = *infer->in[0];
  return st;
}

lac_status laci_infer_bool_like_input(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (!st) infer->out[0] = (laci_type){.dtype = LAC_DTYPE_BOOL, .shape = infer->in[0]->shape};
  return st;
}

lac_status laci_infer_broadcast_all(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, -1);
  if (st) return st;
  laci_shape shape = infer->in[0]->shape;
  for (int port = 1; port < infer->n_in; port++) {
    if (!infer->in[port]) continue;
    st = laci_broadcast_shapes(infer, &shape, &infer->in[port]->shape, &shape);
    if (st) return st;
  }
  infer->out[0] = (laci_type){.dtype = infer->in[0]->dtype, .shape = shape};
  return LAC_OK;
}

lac_status laci_infer_broadcast(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 2);
  return st ? st : laci_infer_broadcast_all(infer);
}

lac_status laci_infer_broadcast_bool(laci_infer *infer) {
  lac_status st = laci_infer_broadcast(infer);
  if (!st) infer->out[0].dtype = LAC_DTYPE_BOOL;
  return st;
}

bool laci_is_axis_mappable(const laci_coupling *c, int port, int axis) {
  const laci_shape *shape = laci_port_shape(c, port);
  if (!shape || axis < 0 || axis >= shape->rank) return false;
  return shape->dims[axis] >= 0 && shape->dims[axis] <= LACI_MAP_LIMIT;
}

void laci_couple_other_axes(laci_coupling *c, int in_port, int out_port, int axis) {
  const laci_shape *in = laci_port_shape(c, in_port), *out = laci_port_shape(c, out_port);
  if (!in || !out || in->rank != out->rank) return;
  for (int at = 0; at < in->rank; at++) {
    if (at == axis) continue;
    int label = laci_coupling_get_label(c, in_port, at);
    if (label <= 0) label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, in_port, at, label);
    laci_coupling_set_label(c, out_port, at, label);
  }
}
