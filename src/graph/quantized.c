/* SPDX-License-Identifier: Apache-2.0
 * Reads descriptions of operators on quantized operands: quantized.h. */
#include "graph/quantized.h"

#include "graph/op.h"
#include "graph/ops.h"

enum { PORTS_EACH = 3, NEWEST_OPSET = 21 };

static bool has_input(const laci_node *node, int port) {
  return port >= 0 && port < node->n_inputs && node->inputs[port] >= 0;
}

int laci_quantized_count_operands(const laci_quantized_form *form, const laci_node *node) {
  if (form->n_operands > 0) return form->n_operands;
  return node->n_inputs < form->first
             ? 0
             : (node->n_inputs - form->first + PORTS_EACH - 1) / PORTS_EACH;
}

laci_quantized_operand laci_quantized_operand_ports(const laci_quantized_form *form,
                                                    const laci_node *node, int k) {
  const int at = form->first + k * PORTS_EACH;
  laci_quantized_operand operand =
      form->n_operands > 0 ? form->operands[k] : (laci_quantized_operand){at, at + 1, at + 2, 0};
  if (form->like == &laci_op_gemm && k == 1) operand.axis = !laci_node_int(node, "transB", 0);
  if (!has_input(node, operand.data)) operand.data = -1;
  if (!has_input(node, operand.scale)) operand.scale = -1;
  if (!has_input(node, operand.zero)) operand.zero = -1;
  return operand;
}

bool laci_quantized_has_result_scale(const laci_quantized_form *form, const laci_node *node) {
  return form->quantizes && has_input(node, form->y_scale);
}

laci_node laci_quantized_float_node(const laci_quantized_form *form, const laci_node *node) {
  laci_node made = *node;
  made.op = form->like;
  made.type = form->like->name;
  made.domain = form->like->domain ? form->like->domain : "";
  /* QLinearSoftmax says by an attribute which operator set's Softmax it is */
  if (made.domain[0] == 0 && node->domain[0])
    made.version = (int)laci_node_int(node, "opset", NEWEST_OPSET);
  return made;
}
