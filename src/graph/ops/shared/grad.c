/* SPDX-License-Identifier: Apache-2.0
 * Shapes as attributes of internal operators, and what several rules have in common;
 * see grad_in.h. */
#include "base/memory.h"
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/window_grad_in.h"

lac_status laci_node_read_shape_attr(const laci_node *node, const char *name, laci_shape *shape,
                                     lac_error *err) {
  size_t n = 0;
  const int64_t *ints = laci_node_ints(node, name, &n);
  bool fits = ints && n <= LACI_MAX_RANK;
  for (size_t at = 0; fits && at < n; at++) fits = ints[at] >= 0;
  if (fits) {
    *shape = laci_shape_of((int)n, ints);
    fits = laci_shape_count(shape) >= 0;
  }
  if (fits) return LAC_OK;
  return laci_node_fail(node, err, LAC_BAD_SHAPE, "attribute %s is no shape", name);
}

lac_status laci_check_input_shape(laci_infer *infer, int port, const laci_shape *shape) {
  const laci_shape *have = laci_in_shape(infer, port);
  if (!have || !laci_shape_is_known(have) || !laci_shape_is_known(shape)) return LAC_OK;
  if (laci_shape_equal(have, shape)) return LAC_OK;
  char found[128], wanted[128];
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "input %d is %s, wanted %s", port,
                        laci_shape_text(have, found, sizeof found),
                        laci_shape_text(shape, wanted, sizeof wanted));
}

lac_status laci_infer_equal_shapes(laci_infer *infer, int first, int last) {
  lac_status st = laci_check_n_inputs(infer, last + 1, -1);
  for (int port = first + 1; port <= last && !st; port++)
    st = laci_check_input_shape(infer, port, &infer->in[first]->shape);
  if (!st) infer->out[0] = *infer->in[first];
  return st;
}

int laci_gradient_add_internal(laci_gradient_builder *b, const char *type, int n_inputs,
                               const int *inputs, const laci_window_attrs *attrs) {
  return laci_gradient_add_node(b,
                                &(laci_gradient_node){.type = type,
                                                      .domain = "lacuna",
                                                      .n_inputs = n_inputs,
                                                      .inputs = inputs,
                                                      .n_attrs = attrs ? attrs->n : 0,
                                                      .attrs = attrs ? attrs->attr : NULL},
                                NULL);
}

/* ---- Parts of rules ---- */

void laci_gradient_contribute_channel_sums(laci_gradient_builder *b, const laci_node *node,
                                           int port, int x) {
  bool flags[LACI_MAX_RANK];
  for (int axis = 0; axis < LACI_MAX_RANK; axis++) flags[axis] = axis != 1;
  if (laci_gradient_is_needed(b, node, port))
    laci_gradient_contribute(b, node, port, laci_gradient_add_sum(b, x, flags, false));
}

int laci_gradient_add_slice(laci_gradient_builder *b, int x, int axis, int64_t start, int64_t n) {
  const int64_t end = start + n, axes = axis;
  const int inputs[] = {x, laci_gradient_store_ints(b, 1, &start),
                        laci_gradient_store_ints(b, 1, &end),
                        laci_gradient_store_ints(b, 1, &axes)};
  return laci_gradient_add_node(
      b, &(laci_gradient_node){.type = "Slice", .n_inputs = 4, .inputs = inputs}, NULL);
}

int laci_gradient_add_mean(laci_gradient_builder *b, int x, const bool flags[LACI_MAX_RANK]) {
  laci_shape shape = laci_gradient_shape_of_value(b, x);
  double n = 1;
  for (int axis = 0; axis < shape.rank; axis++) n *= flags[axis] ? (double)shape.dims[axis] : 1;
  return laci_gradient_add_scale(b, laci_gradient_add_sum(b, x, flags, true), 1 / n);
}

/** Returns 1 where x equals y, else 0, in x's type. */
static int add_equality_as_number(laci_gradient_builder *b, int x, int y) {
  laci_attr to = laci_attr_int("to", laci_gradient_dtype_of_value(b, x));
  int equal = laci_gradient_add_binary(b, "Equal", x, y);
  return laci_gradient_add_node(
      b,
      &(laci_gradient_node){
          .type = "Cast", .n_inputs = 1, .inputs = &equal, .n_attrs = 1, .attrs = &to},
      NULL);
}

int laci_gradient_share_among_equal(laci_gradient_builder *b, const laci_node *node, int dy,
                                    int y) {
  laci_shape shape = laci_gradient_shape_of_value(b, y);
  int mask = add_equality_as_number(b, node->inputs[0], y);
  int count = laci_gradient_add_unbroadcast(b, mask, &shape);
  return laci_gradient_add_binary(b, "Mul", mask, laci_gradient_add_binary(b, "Div", dy, count));
}

/** A Resize along an axis multiplies by a matrix: the identity, resampled. So dx is dy times the
 * transpose of that matrix. */
int laci_gradient_add_resize_gradient(laci_gradient_builder *b, int dy, int axis, int64_t in,
                                      const laci_attr *attrs, int n_attrs) {
  laci_shape y = laci_gradient_shape_of_value(b, dy), square = {.rank = 2, .dims = {in, in}};
  if (dy < 0) return -1;
  const int64_t sizes[2] = {in, y.dims[axis]};
  const int inputs[] = {
      laci_gradient_add_unary(b, "EyeLike", laci_gradient_store_filled(b, dy, &square, 0)),
      LACI_ABSENT, LACI_ABSENT, laci_gradient_store_ints(b, 2, sizes)};
  int matrix = laci_gradient_add_node(
      b,
      &(laci_gradient_node){
          .type = "Resize", .n_inputs = 4, .inputs = inputs, .n_attrs = n_attrs, .attrs = attrs},
      NULL);
  int64_t last[LACI_MAX_RANK], back[LACI_MAX_RANK];
  for (int at = 0; at < y.rank; at++) {
    last[at] = at == y.rank - 1 ? axis : at < axis ? at : at + 1;
    back[last[at]] = at;
  }
  int rows = laci_gradient_add_transpose(b, dy, y.rank, last);
  int transposed = laci_gradient_add_transpose(b, matrix, 2, (const int64_t[]){1, 0});
  return laci_gradient_add_transpose(b, laci_gradient_add_binary(b, "MatMul", rows, transposed),
                                     y.rank, back);
}

void laci_gradient_add_normalization(laci_gradient_builder *b, const laci_gradient_norm *norm,
                                     int out[3]) {
  const laci_attr attrs[] = {laci_attr_int("axis", norm->axis),
                             laci_attr_float("epsilon", norm->epsilon)};
  const int inputs[] = {norm->dy, norm->x, norm->scale};
  (void)laci_gradient_add_node(b,
                               &(laci_gradient_node){.type = "LayerNormalizationGrad",
                                                     .domain = "lacuna",
                                                     .n_inputs = 3,
                                                     .n_outputs = 3,
                                                     .inputs = inputs,
                                                     .n_attrs = 2,
                                                     .attrs = attrs},
                               out);
}

/* ---- Ready-made rules ---- */

lac_status laci_gradient_of_reshape(laci_gradient_builder *b, const laci_node *node) {
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  laci_gradient_contribute(b, node, 0,
                           laci_gradient_add_reshape(b, laci_gradient_of(b, node, 0), &x));
  return laci_gradient_status(b);
}

/** The gradient of Max and Min: all inputs that equal the result get equal shares of dY. */
lac_status laci_gradient_of_max_or_min(laci_gradient_builder *b, const laci_node *node) {
  int dy = laci_gradient_of(b, node, 0), count = -1;
  int *masks = laci_alloc((size_t)node->n_inputs, sizeof *masks);
  if (!masks) return LAC_NO_MEMORY;
  for (int port = 0; port < node->n_inputs; port++) {
    masks[port] = add_equality_as_number(b, node->inputs[port], node->outputs[0]);
    count = port ? laci_gradient_add_binary(b, "Add", count, masks[port]) : masks[port];
  }
  int share = laci_gradient_add_binary(b, "Div", dy, count);
  for (int port = 0; port < node->n_inputs; port++) {
    if (laci_gradient_is_needed(b, node, port))
      laci_gradient_contribute_broadcast(b, node, port,
                                         laci_gradient_add_binary(b, "Mul", share, masks[port]));
  }
  laci_free(masks);
  return laci_gradient_status(b);
}
