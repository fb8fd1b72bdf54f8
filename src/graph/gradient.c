/* SPDX-License-Identifier: Apache-2.0
 * The backward walk. It finds the values that depend on a parameter and lead to the loss, and calls
 * the rule of each such node, last node first. So the gradient of an output is complete before the
 * rule of its node is called.
 *
 * A value "depends" if it is float and computed from a parameter; only such inputs get gradients,
 * and only such nodes are visited. Next: gradient_nodes.c (what rules build with). */
#include "graph/gradient.h"
#include "tensor/buf.h"

#include "base/error.h"
#include "base/memory.h"
#include "graph/gradient_in.h"
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/ops/shared/op_in.h"

/* ---- Walking the nodes backwards ---- */

static lac_status check_shape_is_known(const laci_gradient_builder *b, const char *name,
                                       int value) {
  if (laci_shape_is_known(&b->graph->values[value].type.shape)) return LAC_OK;
  return laci_fail(b->err, LAC_INTERNAL, "%s: the shape of its gradient is not known", name);
}

/** Adds a node and infers the types of its outputs: the function in
 * laci_gradient_builder.add_node. */
static lac_status add_and_infer_node(laci_gradient_builder *b, const laci_node *node) {
  int id;
  lac_status st = laci_graph_add_node(b->graph, node, &id, b->err);
  if (!st && !b->graph->nodes[id].op)
    st = laci_fail(b->err, LAC_INTERNAL, "%s: no operator %s", b->current, node->type);
  if (!st) st = laci_graph_infer_node(b->graph, id, b->err);
  for (int at = 0; at < node->n_outputs && !st; at++)
    st = check_shape_is_known(b, b->current, node->outputs[at]);
  return st;
}

/** Adds dX = dY * f'(X) as one UnaryGrad node that has the operator's name and attributes. */
static void add_unary_gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_attr *attrs = laci_alloc((size_t)node->n_attrs + 1, sizeof *attrs);
  if (!attrs) {
    b->status = laci_fail_memory(b->err, node->name);
    return;
  }
  attrs[0] = laci_attr_text("of", node->type);
  for (int at = 0; at < node->n_attrs; at++) attrs[at + 1] = node->attrs[at];
  int inputs[] = {laci_gradient_of(b, node, 0), node->inputs[0]};
  laci_gradient_node made = {.type = "UnaryGrad",
                             .domain = "lacuna",
                             .n_inputs = 2,
                             .n_attrs = node->n_attrs + 1,
                             .inputs = inputs,
                             .attrs = attrs};
  laci_gradient_contribute(b, node, 0, laci_gradient_add_node(b, &made, NULL));
  laci_free(attrs);
}

/** Checks that the shapes of all inputs and outputs of the node are known, for rules ask for
 * them. */
static lac_status check_shapes(const laci_gradient_builder *b, const laci_node *node) {
  for (int at = 0; at < node->n_inputs + node->n_outputs; at++) {
    bool in = at < node->n_inputs;
    int value = in ? node->inputs[at] : node->outputs[at - node->n_inputs];
    if (value < 0 || laci_shape_is_known(&b->graph->values[value].type.shape)) continue;
    return laci_node_fail(node, b->err, LAC_UNSUPPORTED,
                          "the shape of '%s' is not known, which its gradient needs",
                          b->graph->values[value].name);
  }
  return LAC_OK;
}

static lac_status add_gradient_of_node(laci_gradient_builder *b, int node_id) {
  /* A copy, because rules add nodes, which may move the array. Pointers inside the node stay
   * valid. */
  const laci_node node = b->graph->nodes[node_id];
  bool reached = false, leads = false;
  for (int at = 0; at < node.n_outputs; at++) reached |= laci_gradient_of(b, &node, at) >= 0;
  for (int at = 0; at < node.n_inputs; at++) leads |= laci_gradient_is_needed(b, &node, at);
  for (int at = 0; at < node.n_captures; at++) leads |= b->depends[node.captures[at]];
  if (!reached || !leads) return LAC_OK;
  if (!node.op || (!node.op->gradient && !node.op->slope)) {
    return laci_fail(b->err, LAC_UNSUPPORTED, "%s: operator %s%s%s has no gradient", node.name,
                     node.domain, node.domain[0] ? "." : "", node.type);
  }
  lac_status st = check_shapes(b, &node);
  if (st) return st;
  b->current = node.name;
  b->n_made = 0;
  if (!node.op->gradient) add_unary_gradient(b, &node);
  else if ((st = node.op->gradient(b, &node))) return st;
  return b->status;
}

static void mark_values_from_params(laci_gradient_builder *b) {
  for (int n = 0; n < b->n_nodes; n++) {
    const laci_node *node = &b->graph->nodes[n];
    bool leads = false;
    for (int at = 0; at < node->n_inputs; at++) leads |= laci_gradient_is_needed(b, node, at);
    for (int at = 0; at < node->n_captures; at++) leads |= b->depends[node->captures[at]];
    for (int at = 0; at < node->n_outputs && leads; at++) {
      int value = node->outputs[at];
      if (value >= 0)
        b->depends[value] = laci_dtype_is_float(laci_gradient_dtype_of_value(b, value));
    }
  }
}

static lac_status check_loss_and_params(const laci_graph *graph, int loss, int n_params,
                                        const int *params, lac_error *err) {
  char text[128];
  const laci_type *type = &graph->values[loss].type;
  if (!laci_dtype_is_float(type->dtype) || laci_shape_count(&type->shape) != 1) {
    return laci_fail(err, LAC_BAD_SHAPE, "the loss '%s' is %s %s, wanted one float",
                     graph->values[loss].name, lac_dtype_name(type->dtype),
                     laci_shape_text(&type->shape, text, sizeof text));
  }
  for (int at = 0; at < n_params; at++) {
    const laci_value *value = &graph->values[params[at]];
    if (laci_dtype_is_float(value->type.dtype) && laci_shape_is_known(&value->type.shape) &&
        value->producer < 0) {
      continue;
    }
    return laci_fail(err, LAC_BAD_SHAPE, "the parameter '%s' is no stored or given float tensor",
                     value->name);
  }
  return LAC_OK;
}

static lac_status builder_init(laci_gradient_builder *b, int n_params, const int *params) {
  size_t n_values = (size_t)b->graph->n_values;
  b->depends = laci_alloc(n_values, sizeof *b->depends);
  b->gradient = laci_alloc(n_values, sizeof *b->gradient);
  if (!b->depends || !b->gradient) return laci_fail_memory(b->err, "gradients");
  for (size_t v = 0; v < n_values; v++) b->gradient[v] = -1;
  for (int at = 0; at < n_params; at++) b->depends[params[at]] = true;
  mark_values_from_params(b);
  return LAC_OK;
}

lac_status laci_gradient_build(laci_graph *graph, int loss, int n_params, const int *params,
                               int *grad_values, lac_error *err) {
  laci_gradient_builder b = {.graph = graph,
                             .add_node = add_and_infer_node,
                             .n_nodes = graph->n_nodes,
                             .err = err,
                             .current = "loss"};
  lac_status st = check_loss_and_params(graph, loss, n_params, params, err);
  if (!st) st = builder_init(&b, n_params, params);
  if (st) goto out;
  laci_shape shape = laci_gradient_shape_of_value(&b, loss);
  b.gradient[loss] = laci_gradient_store_filled(&b, loss, &shape, 1);
  for (int n = b.n_nodes - 1; n >= 0 && !st; n--) st = add_gradient_of_node(&b, n);
  for (int at = 0; at < n_params && !st; at++) {
    grad_values[at] = b.gradient[params[at]];
    if (grad_values[at] >= 0) continue;
    shape = laci_gradient_shape_of_value(&b, params[at]);
    grad_values[at] = laci_gradient_store_filled(&b, params[at], &shape, 0);
    st = b.status;
  }
  if (!st) st = laci_graph_finish(graph, err);
out:
  laci_free(b.depends);
  laci_free(b.gradient);
  return st;
}
