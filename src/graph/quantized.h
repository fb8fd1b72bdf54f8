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

/** The input ports of one operand. scale -1: the data are no multiples of a scale: integers, or
 * what the operator on floats reads as it is. zero -1: the zero point is 0. */
typedef struct laci_quantized_operand {
  int data, scale, zero;
  int axis; /* which axis of the data a list of scales belongs to; negative: counted from the end */
} laci_quantized_operand;

/** What an operator on quantized operands computes, in terms of one on floats. */
typedef struct laci_quantized_form {
  const struct laci_op *like; /* the operator on floats */
  int n_operands;             /* of `like`; 0: all inputs from port `first` on, three for each */
  int first;
  laci_quantized_operand operands[LACI_QUANTIZED_OPERANDS];
  int bias;       /* operand of 32-bit integers in units of the first two operands' scales; 0: there
                     is none */
  int sum;        /* input port of floats that are added to the result along its last axis; 0: there
                     is none */
  bool dynamic;   /* operand 0 is floats, which DynamicQuantizeLinear quantizes first */
  bool quantizes; /* the result is quantized where the node has its scale */
  int y_scale, y_zero;
} laci_quantized_form;

/** Returns how many operands of `like` the node has, absent ones included. */
int laci_quantized_count_operands(const laci_quantized_form *form, const laci_node *node);
/** Returns the ports of operand k. A port that the node does not have is -1. */
laci_quantized_operand laci_quantized_operand_ports(const laci_quantized_form *form,
                                                    const laci_node *node, int k);
/** Has the node a scale by which its result is quantized? */
bool laci_quantized_has_result_scale(const laci_quantized_form *form, const laci_node *node);
/** Returns the node as its operator on floats would see it, but for inputs and outputs. */
laci_node laci_quantized_float_node(const laci_quantized_form *form, const laci_node *node);

#endif
