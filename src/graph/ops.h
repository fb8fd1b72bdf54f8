/* SPDX-License-Identifier: Apache-2.0
 * Every operator by its name in C: laci_op_conv, laci_op_relu_grad ..., for code that tests a
 * node's operator (node->op == &laci_op_conv). Generated from the lists ops.def in ops/ and its
 * folders; op.h describes laci_op. */
#ifndef LACI_GRAPH_OPS_H
#define LACI_GRAPH_OPS_H

typedef struct laci_op laci_op;

#define LAC_OP(name) extern const laci_op laci_op_##name;
#include "graph/ops/internal/ops.def"
#include "graph/ops/microsoft/ops.def"
#include "graph/ops/ops.def"
#undef LAC_OP

#endif
