/* SPDX-License-Identifier: Apache-2.0
 * Weight normalization that was left in the graph: w = g * v / |v|, the norm along all axes of v
 * but one (Salimans and Kingma, arXiv:1602.07868, 2016).
 *
 * Exporters write g * (v / |v|), v * (g / |v|) or (g * v) / |v|, and |v| as ReduceL2 or as the root
 * of a sum of squares, with a Reshape before or after it. g and v are stored tensors, and only
 * these nodes may read them: v is masked, and g is scaled with the norm of v (prune/weights.c). */
#include <math.h>

#include "analyze/analyze.h"
#include "analyze/layers_in.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/buf.h"

static bool has_operator_type(const laci_node *node, const char *type) {
  return node && laci_node_is(node, type);
}

static const laci_shape *shape_of_value(const laci_graph *graph, int value) {
  return &graph->values[value].type.shape;
}

/* Returns the node that computes a value, and adds it to the nodes of the weight normalization.
 * NULL: there is none, or an input is absent. */
static const laci_node *record_producer_in_pattern(const laci_graph *graph, int value,
                                                   laci_weight_norm *n) {
  int id = value < 0 ? -1 : graph->values[value].producer;
  if (id < 0 || n->n_nodes == LACI_NORM_NODES) return NULL;
  const laci_node *node = &graph->nodes[id];
  for (int i = 0; i < node->n_inputs; i++) {
    if (node->inputs[i] < 0) return NULL;
  }
  if (node->n_inputs < 1 || node->n_outputs != 1) return NULL;
  n->nodes[n->n_nodes++] = id;
  return node;
}

/* Has the value size 1 along all axes of v except `axis`? */
static bool has_size_one_except_along(const laci_graph *graph, int value, int v, int axis) {
  const laci_shape *x = shape_of_value(graph, value), *whole = shape_of_value(graph, v);
  bool along = x->rank == whole->rank;
  for (int a = 0; along && a < x->rank; a++) along = x->dims[a] == (a == axis ? whole->dims[a] : 1);
  return along;
}

/* Returns the axes of a reduction as bits; 0: not known. */
static unsigned find_reduced_axes_mask(const laci_graph *graph, const laci_node *node, int rank) {
  size_t n = 0;
  unsigned bits = 0;
  const int64_t *axes = NULL;
  if (node->n_inputs > 1) {
    const laci_buf *known = graph->values[node->inputs[1]].known;
    axes = known ? known->i : NULL;
    n = axes ? (size_t)known->count : 0;
  } else {
    axes = laci_node_ints(node, "axes", &n);
  }
  for (size_t k = 0; axes && k < n; k++) {
    int64_t axis = axes[k] < 0 ? axes[k] + rank : axes[k];
    if (axis < 0 || axis >= rank) return 0;
    bits |= 1u << axis;
  }
  return bits;
}

/* Returns the value, or the input of the Reshape that computes it. */
static int find_value_before_reshape(const laci_graph *graph, int value, laci_weight_norm *n) {
  int producer = value < 0 ? -1 : graph->values[value].producer;
  if (producer < 0 || !has_operator_type(&graph->nodes[producer], "Reshape")) return value;
  const laci_node *node = record_producer_in_pattern(graph, value, n);
  return node ? node->inputs[0] : -1;
}

/* Returns x where the value is x * x or x^2; -1: it is neither. */
static int find_squared_operand(const laci_graph *graph, int value, laci_weight_norm *n) {
  const laci_node *node = record_producer_in_pattern(graph, value, n);
  if (has_operator_type(node, "Mul") && node->inputs[0] == node->inputs[1]) return node->inputs[0];
  if (!has_operator_type(node, "Pow")) return -1;
  const laci_value *exponent = &graph->values[node->inputs[1]];
  double two = 0;
  if (exponent->stored < 0 || laci_shape_count(&exponent->type.shape) != 1 ||
      !laci_dtype_is_float(graph->stored[exponent->stored].dtype))
    return -1;
  laci_read_f64(graph->stored[exponent->stored].dtype, graph->stored[exponent->stored].bytes, 0, 1,
                &two);
  return two == 2 ? node->inputs[0] : -1;
}

/* Is the value |v| along one axis? Then n->axis is set. */
static bool find_norm_axis(const laci_graph *graph, int value, int v, laci_weight_norm *n) {
  int at = find_value_before_reshape(graph, value, n);
  const laci_node *node = record_producer_in_pattern(graph, at, n);
  int reduced = -1;
  if (has_operator_type(node, "ReduceL2")) {
    reduced = node->inputs[0];
  } else if (has_operator_type(node, "Sqrt")) {
    node = record_producer_in_pattern(graph, node->inputs[0], n);
    if (has_operator_type(node, "ReduceSum"))
      reduced = find_squared_operand(graph, node->inputs[0], n);
  }
  if (reduced < 0) return false;
  const laci_shape *inner = shape_of_value(graph, reduced), *whole = shape_of_value(graph, v);
  unsigned bits = find_reduced_axes_mask(graph, node, inner->rank);
  int read = find_value_before_reshape(graph, reduced, n);
  if (read != v || inner->rank < 1 || !bits) return false;
  unsigned left = ~bits & ((1u << inner->rank) - 1);
  if (!left || (left & (left - 1))) return false;
  n->axis = 0;
  while (!(left >> n->axis & 1)) n->axis++;
  /* a Reshape may come before the norm if it keeps the first axis, along which g runs */
  bool kept = reduced == v || (n->axis == 0 && inner->dims[0] == whole->dims[0]);
  return kept && has_size_one_except_along(graph, value, v, n->axis);
}

static bool is_changeable_stored_float(const laci_graph *graph, int value) {
  if (value < 0 || graph->values[value].stored < 0 || graph->values[value].is_output) return false;
  const laci_stored *stored = &graph->stored[graph->values[value].stored];
  return laci_dtype_is_float(stored->dtype) && !stored->overridable && !stored->in_function;
}

/* Do the values form a weight normalization? v and g must be stored, and the divisor `below` must
 * be the norm of v. */
static bool is_weight_norm(const laci_graph *graph, int v, int g, int below,
                           const laci_weight_norm *from, laci_weight_norm *out) {
  laci_weight_norm n = *from;
  if (!is_changeable_stored_float(graph, v) || !is_changeable_stored_float(graph, g) || v == g ||
      !find_norm_axis(graph, below, v, &n) || !has_size_one_except_along(graph, g, v, n.axis))
    return false;
  n.v = v;
  n.g = g;
  *out = n;
  return true;
}

/* Are the values inside of the pattern read only by nodes of the pattern, and does the weight have
 * a single reader? */
static bool is_read_only_inside(const laci_graph *graph, const laci_weight_norm *n, int weight) {
  const int values[2] = {n->v, n->g};
  for (int k = -2; k < n->n_nodes; k++) {
    int value = k < 0 ? values[k + 2] : graph->nodes[n->nodes[k]].outputs[0];
    const laci_value *one = &graph->values[value];
    if (one->is_output) return false;
    for (int r = 0; r < one->n_readers; r++) {
      bool inside = value == weight && one->n_readers == 1;
      for (int i = 0; i < n->n_nodes; i++) inside |= n->nodes[i] == one->readers[r];
      if (!inside) return false;
    }
  }
  return true;
}

void laci_compute_norms_along_axis(const laci_stored *stored, const uint8_t *bytes, int axis,
                                   double *norms) {
  enum { AT_ONCE = 1024 };
  double run[AT_ONCE];
  const laci_shape *shape = &stored->shape;
  int64_t n = laci_shape_count(shape), size = shape->dims[axis];
  int64_t stride = laci_shape_count_range(shape, axis + 1, shape->rank);
  for (int64_t k = 0; k < size; k++) norms[k] = 0;
  for (int64_t first = 0; first < n; first += AT_ONCE) {
    int64_t length = n - first < AT_ONCE ? n - first : AT_ONCE;
    laci_read_f64(stored->dtype, bytes, first, length, run);
    for (int64_t i = 0; i < length; i++) norms[(first + i) / stride % size] += run[i] * run[i];
  }
  for (int64_t k = 0; k < size; k++) norms[k] = sqrt(norms[k]);
}

bool laci_trace_weight_norm(const laci_graph *graph, int value, laci_weight_norm *out) {
  laci_weight_norm n = {.v = -1, .g = -1};
  const laci_node *top = record_producer_in_pattern(graph, value, &n);
  bool found = false;
  if (has_operator_type(top, "Mul")) {
    for (int side = 0; side < 2 && !found; side++) {
      laci_weight_norm inner = n;
      int stored = top->inputs[side];
      const laci_node *quotient = record_producer_in_pattern(graph, top->inputs[1 - side], &inner);
      if (!has_operator_type(quotient, "Div")) continue;
      int over = quotient->inputs[0], below = quotient->inputs[1];
      found = is_weight_norm(graph, over, stored, below, &inner, out) ||
              is_weight_norm(graph, stored, over, below, &inner, out);
    }
  } else if (has_operator_type(top, "Div")) {
    laci_weight_norm inner = n;
    const laci_node *product = record_producer_in_pattern(graph, top->inputs[0], &inner);
    for (int side = 0; has_operator_type(product, "Mul") && side < 2 && !found; side++)
      found = is_weight_norm(graph, product->inputs[side], product->inputs[1 - side],
                             top->inputs[1], &inner, out);
  }
  return found && is_read_only_inside(graph, out, value);
}
