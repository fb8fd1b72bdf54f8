/* SPDX-License-Identifier: Apache-2.0
 * What rules read and return: the gradient of an output, and contributions to the gradient of an
 * input. Next: gradient_nodes.c (by which they add nodes), gradient.c (who calls them). */
#include "graph/gradient_in.h"
#include "graph/ops/shared/op_in.h"

int laci_gradient_of(laci_gradient_builder *b, const laci_node *node, int port) {
  return laci_has_output(node, port) ? b->gradient[node->outputs[port]] : -1;
}

bool laci_gradient_is_needed(const laci_gradient_builder *b, const laci_node *node, int port) {
  return laci_has_input(node, port) && b->depends[node->inputs[port]];
}

void laci_gradient_contribute(laci_gradient_builder *b, const laci_node *node, int port,
                              int gradient) {
  if (b->status || gradient < 0 || !laci_gradient_is_needed(b, node, port)) return;
  int value = node->inputs[port];
  laci_shape have = laci_gradient_shape_of_value(b, gradient),
             want = laci_gradient_shape_of_value(b, value);
  if (!laci_shape_equal(&have, &want)) {
    char found[128], wanted[128];
    b->status = laci_node_fail(
        node, b->err, LAC_INTERNAL, "the gradient of input %d is %s, wanted %s", port,
        laci_shape_text(&have, found, sizeof found), laci_shape_text(&want, wanted, sizeof wanted));
    return;
  }
  int before = b->gradient[value];
  b->gradient[value] = before < 0 ? gradient : laci_gradient_add_binary(b, "Add", before, gradient);
}

void laci_gradient_contribute_broadcast(laci_gradient_builder *b, const laci_node *node, int port,
                                        int gradient) {
  if (!laci_gradient_is_needed(b, node, port)) return;
  laci_shape shape = laci_gradient_shape_of_input(b, node, port);
  laci_gradient_contribute(b, node, port, laci_gradient_add_unbroadcast(b, gradient, &shape));
}

lac_status laci_gradient_contribute_zero(laci_gradient_builder *b, const laci_node *node) {
  (void)node;
  return b->status;
}

lac_status laci_gradient_status(const laci_gradient_builder *b) { return b->status; }

lac_status laci_gradient_fail_unsupported(laci_gradient_builder *b, const laci_node *node,
                                          const char *text) {
  if (!b->status) b->status = laci_node_fail(node, b->err, LAC_UNSUPPORTED, "%s", text);
  return b->status;
}

laci_shape laci_gradient_shape_of_input(const laci_gradient_builder *b, const laci_node *node,
                                        int port) {
  return laci_gradient_shape_of_value(b, laci_has_input(node, port) ? node->inputs[port] : -1);
}

const laci_buf *laci_gradient_known_content(const laci_gradient_builder *b, const laci_node *node,
                                            int port) {
  return laci_known_content(b->graph, node, port);
}
