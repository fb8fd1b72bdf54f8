/* SPDX-License-Identifier: Apache-2.0
 * What an operator on quantized operands computes: which operator on floats it stands for, and
 * which of its ports hold scales and zero points.
 *
 *     operand k  (x - zero) * scale
 *     result     round(y / scale) + zero, clipped to its type
 *
 * The operator's evaluation, the coupling of its channels, and the float form by which the fast
 * engine plans it (float_form.h) all read this one description. */
#ifndef LACI_GRAPH_QUANTIZED_H
#define LACI_GRAPH_QUANTIZED_H

#include <stdbool.h>

typedef struct laci_node laci_node;
struct laci_op;

enum { LACI_QUANTIZED_OPERANDS = 8 };

/** The input ports of one operand: its data, its scale and its zero point. scale is -1 where the
 * operand has none, since its data are plain integers, or are read by the operator on floats as
 * they are. zero is -1 where the zero point is 0. */
typedef struct laci_quantized_operand {
  int data, scale, zero;
  int axis; /* which axis of the data a list of scales belongs to; negative: counted from the end */
} laci_quantized_operand;

/** What an operator on quantized operands computes, in terms of one on floats. */
typedef struct laci_quantized_form {
  const struct laci_op *like; /* the operator on floats */
  int n_operands;             /* number of operands of `like`; 0: any number, each with three inputs
                                 of the node (data, scale, zero point), from port `first` on */
  int first;
  laci_quantized_operand operands[LACI_QUANTIZED_OPERANDS];
  int bias;       /* input port of a bias of 32-bit integers, whose scale is the product of the
                     first two operands' scales; 0: there is none */
  int sum;        /* input port of floats that are added to the result along its last axis; 0: there
                     is none */
  bool dynamic;   /* operand 0 is floats, which DynamicQuantizeLinear quantizes first */
  bool quantizes; /* the result is quantized, if the node has the input y_scale */
  int y_scale, y_zero;
  bool floors_steps; /* the result is multiplied by floor(1 / scale) where it is quantized, not
                        divided by the scale, as in ONNX Runtime's Softmax */
} laci_quantized_form;

/** Returns how many operands of `like` the node has, absent ones included. */
int laci_quantized_count_operands(const laci_quantized_form *form, const laci_node *node);
/** Returns the ports of operand k. A port that the node does not have is -1. */
laci_quantized_operand laci_quantized_operand_ports(const laci_quantized_form *form,
                                                    const laci_node *node, int k);
/** Has the node a scale by which its result is quantized? */
bool laci_quantized_has_result_scale(const laci_quantized_form *form, const laci_node *node);
/** Returns a node of the operator on floats with this node's attributes; its inputs and outputs are
 * not set. */
laci_node laci_quantized_float_node(const laci_quantized_form *form, const laci_node *node);

#endif
