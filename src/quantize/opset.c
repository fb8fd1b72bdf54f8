/* SPDX-License-Identifier: Apache-2.0
 * Converts networks of opsets 11 and 12 to opset 13, the first with a scale for each channel. Axes
 * and split sizes, which are attributes before opset 13, become inputs. Softmax over the last axis
 * is the same in both. Otherwise, these opsets only differ in the element types that operators
 * accept. */
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "onnx/edit.h"
#include "quantize/quantize_in.h"

enum { FIRST_CONVERTED = 11 };

/* Returns the name of the node's attribute that becomes an input in opset 13; NULL: it has none. */
static const char *attribute_moved_to_input(const laci_node *node) {
  static const struct {
    const char *type, *attribute;
  } moved[] = {
      {"Squeeze", "axes"}, {"Unsqueeze", "axes"}, {"ReduceSum", "axes"}, {"Split", "split"}};
  for (size_t k = 0; k < sizeof moved / sizeof *moved; k++)
    if (laci_node_is(node, moved[k].type)) return moved[k].attribute;
  return NULL;
}

static bool is_softmax(const laci_node *node) {
  return laci_node_is(node, "Softmax") || laci_node_is(node, "LogSoftmax") ||
         laci_node_is(node, "Hardmax");
}

/* Is the node a softmax over the last axis? Before opset 13, it was over its axis and all axes
 * after it. */
static bool is_softmax_over_last_axis(const laci_graph *graph, const laci_node *node) {
  const int rank = graph->values[node->inputs[0]].type.shape.rank;
  const int64_t axis = laci_node_int(node, "axis", 1);
  return rank > 0 && (axis == -1 || axis == rank - 1);
}

static bool is_of_older_opset(const laci_node *node) {
  return node->version > 0 && node->version < LACI_QUANTIZE_OPSET && !node->domain[0];
}

/* Fails if the node's opset is older than those that the dynamic form needs. They are kept as they
 * are. */
static lac_status check_dynamic_opset(const laci_node *node, lac_error *err) {
  if (node->version >= LACI_QUANTIZE_DYNAMIC_OPSET) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED,
                   "opset %d of ai.onnx has no DynamicQuantizeLinear; wanted %d or later",
                   node->version, LACI_QUANTIZE_DYNAMIC_OPSET);
}

lac_status laci_quantize_check_opset(const laci_graph *graph, laci_quantize_form form,
                                     lac_error *err) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    if (!is_of_older_opset(node)) continue;
    if (form == LACI_QUANTIZE_DYNAMIC) {
      lac_status st = check_dynamic_opset(node, err);
      if (st) return st;
      continue;
    }
    if (node->version < FIRST_CONVERTED)
      return laci_fail(err, LAC_UNSUPPORTED,
                       "opset %d of ai.onnx has no DequantizeLinear with a scale for each channel; "
                       "wanted %d or later, of which those before %d are converted",
                       node->version, FIRST_CONVERTED, LACI_QUANTIZE_OPSET);
    if (is_softmax(node) && !is_softmax_over_last_axis(graph, node))
      return laci_fail(err, LAC_UNSUPPORTED,
                       "%s (%s) of opset %d is not over the last axis, and is not converted to "
                       "opset %d",
                       node->name, node->type, node->version, LACI_QUANTIZE_OPSET);
    if (node->body > 0 && attribute_moved_to_input(node))
      return laci_fail(err, LAC_UNSUPPORTED,
                       "%s (%s) of opset %d is in a body, and is not converted to opset %d",
                       node->name, node->type, node->version, LACI_QUANTIZE_OPSET);
  }
  return LAC_OK;
}

static lac_status move_attribute_to_input(laci_quantizing *q, int at, const char *attribute,
                                          lac_error *err) {
  const laci_node *node = &q->graph->nodes[at];
  const char *output = laci_quantize_edit_name_of_node(q, at);
  size_t n = 0;
  const int64_t *values = laci_node_ints(node, attribute, &n);
  /* the default is the same in both opsets: Squeeze removes all axes of size 1, ReduceSum sums over
   * all axes, and Split makes equal parts */
  if (!values) return LAC_OK;
  if (!laci_edit_is_computed(q->edit, output))
    return laci_fail(err, LAC_UNSUPPORTED,
                     "%s (%s) of opset %d is in a function, and is not converted to opset %d",
                     node->name, node->type, node->version, LACI_QUANTIZE_OPSET);
  const laci_shape shape = {1, {(int64_t)n}};
  const char *name = laci_edit_make_unique_name(q->edit, output, attribute);
  if (!name) return laci_fail_memory(err, output);
  lac_status st = laci_edit_add_tensor(q->edit, name, LAC_DTYPE_I64, &shape, values, err);
  if (!st) st = laci_edit_set_input(q->edit, output, 1, name, err);
  return st ? st : laci_edit_drop_attribute(q->edit, output, attribute, err);
}

lac_status laci_quantize_raise_opset(laci_quantizing *q, lac_error *err) {
  bool any = false;
  lac_status st = LAC_OK;
  for (int n = 0; n < q->graph->n_nodes && !st; n++) {
    const laci_node *node = &q->graph->nodes[n];
    if (!is_of_older_opset(node)) continue;
    any = true;
    const char *attribute = attribute_moved_to_input(node);
    if (attribute) st = move_attribute_to_input(q, n, attribute, err);
    else if (laci_node_is(node, "Dropout") &&
             laci_edit_is_computed(q->edit, laci_quantize_edit_name_of_node(q, n)))
      st = laci_edit_drop_attribute(q->edit, laci_quantize_edit_name_of_node(q, n), "ratio", err);
  }
  if (!st && any) laci_edit_set_opset_version(q->edit, LACI_QUANTIZE_OPSET);
  return st;
}
