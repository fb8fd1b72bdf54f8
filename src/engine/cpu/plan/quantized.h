/* SPDX-License-Identifier: Apache-2.0
 * Values of a quantized network: which of them hold only multiples of a scale, and functions of one
 * such value, which are tables.
 *
 * A value that went through QuantizeLinear and DequantizeLinear has at most 256 different elements.
 * So has every value that is computed from it alone, element by element. Such a group of nodes
 * becomes one fused node, whose table has the result for each of the 256 elements. The table is
 * computed once, while planning, by the operators' own evaluation.
 *
 *     x -> Q DQ -> Sigmoid -> Q DQ -> Mul -> Q DQ -> y          y = table[byte of x]
 *            `--------------------------^
 *
 * Next: quantized.c, fuse_table.c, fill_table.c. */
#ifndef LACI_ENGINE_CPU_PLAN_QUANTIZED_H
#define LACI_ENGINE_CPU_PLAN_QUANTIZED_H

#include "engine/cpu/plan/plan.h"
#include "kernel/pointwise/table.h"

/** The details of LACI_PATTERN_TABLE. The fused node reads the operand, or several duplicates of
 * it. */
typedef struct laci_table_pattern {
  const laci_fake_quantized *from; /* scale and bounds of the operand */
  const laci_fake_quantized *to;   /* scale and bounds of the result; NULL: it is not quantized */
  const char *what;                /* names of the operators, for the plan's text */
  laci_byte_table table;           /* results as floats */
  uint8_t bytes[LACI_N_BYTES];     /* results as bytes, if `to` is set */
} laci_table_pattern;

/** Returns the scale and bounds of the quantization whose results all elements of the value are;
 * NULL: the value is not quantized. Moves of elements, such as a Transpose, keep them. */
const laci_fake_quantized *laci_plan_quantization_of(const laci_cpu_plan *plan, int value);

/** Scales and bounds of a quantization: one, or one for each index of an axis. Element `at` has
 * number at / inner % n. Integers have 16 bits at most. */
typedef struct laci_quantize_list {
  int64_t n, inner;
  const laci_fake_quantized *each; /* [n] */
} laci_quantize_list;

/** Reads scales and zero points of a QuantizeLinear or DequantizeLinear node, for integers of that
 * type. False: they are not constant, are for blocks, or are not computed with in f32. */
bool laci_plan_read_quantize_list(laci_cpu_plan *plan, const laci_node *node, lac_dtype integers,
                                  laci_quantize_list *list);

/** Do both quantizations have the same scale and bounds, so that equal bytes mean equal numbers? */
static inline bool laci_plan_has_same_scale_and_bounds(const laci_fake_quantized *a,
                                                       const laci_fake_quantized *b) {
  return a->scale == b->scale && a->low == b->low && a->high == b->high;
}

/** Is the fused node a QuantizeLinear and the DequantizeLinear after it? Its details are then their
 * scale and bounds. It is a duplicate if its operand was quantized with the same ones before. */
static inline bool laci_plan_is_quantize_pair(const laci_fused *fused) {
  const bool pattern =
      fused->pattern == LACI_PATTERN_QUANTIZE || fused->pattern == LACI_PATTERN_DUPLICATE;
  return pattern && fused->n_nodes > 1 && fused->output >= 0;
}

/** Returns the value of which `value` is a copy with another name, because it was quantized again
 * with the same scale; otherwise the value itself. */
int laci_plan_skip_duplicates(const laci_cpu_plan *plan, int value);

/** Fuses the groups of nodes that are functions of one quantized value. Patterns must have been
 * fused before, and chains not yet. */
void laci_plan_fuse_tables(laci_cpu_plan *plan);

/** The fused nodes of a table, each after those that it reads. */
typedef struct laci_table_nodes {
  const laci_fused *const *list; /* [n] the fused nodes; each is a single node or a pattern */
  int n;
  int source; /* the value that is the table's operand; other values with the same elements are
                 duplicates of it */
} laci_table_nodes;

/** Computes a table, for every element of the operand. False: an operator cannot be evaluated, or
 * there is no memory, which is recorded in the plan. fill_table.c */
bool laci_plan_fill_table(laci_cpu_plan *plan, const laci_table_nodes *nodes,
                          laci_table_pattern *table);

#endif
