/* SPDX-License-Identifier: Apache-2.0
 * Which values a run checks, so that no NaN or infinity is lost unnoticed.
 *
 * Kernels may lose a NaN or an infinity: max(NaN, 0) is 0 in most of them, and a sparse kernel
 * never reads what a zero weight multiplies. So a plan proves that there is none. It computes a
 * bound of every value from bounds of the inputs and sums of the weights' magnitudes. Where a bound
 * leaves the range of floats, a run checks a value that is in memory anyway. As long as all checked
 * values are within LACI_FINITE_CHECK_LIMIT, every number in between is finite. Else the caller
 * runs a careful plan, in which nothing is fused, and everything but moves of data is computed by
 * the operators' own evaluation, in double.
 *
 * Some infinities are intended: padding around the input of a MaxPool, or masked scores. They need
 * no careful plan as long as the nodes that read them only pick one of several numbers. Such nodes
 * lose nothing but NaN, so the value is checked before it is padded or masked.
 *
 *     |y| <= max over rows of sum |w| * max |x| + max |bias|              of a product
 *
 * docs/explain/robustness.md says what that means for users. */
#ifndef LACI_ENGINE_CPU_PLAN_FINITE_H
#define LACI_ENGINE_CPU_PLAN_FINITE_H

#include "engine/cpu/plan/plan.h"

/** The largest magnitude that a checked value may have. A run that finds a larger one, or a NaN,
 * cannot be sure that all numbers are finite. */
#define LACI_FINITE_CHECK_LIMIT 1e9
/** The largest bound that is accepted: sums of a few hundred such numbers, and the transforms of
 * Winograd's algorithm, still fit in floats. */
#define LACI_FINITE_BOUND 1e33

/** Fills plan->checked, the values to be checked; nodes must be fused. Where no check helps, as
 * with a weight that is not finite, plan->careless names the node. */
void laci_plan_find_values_to_check(laci_cpu_plan *plan);

/** What is known of the core of a fused node: of its result before the posts (the functions and
 * sums that were fused to it). It follows from bounds of the operands. */
typedef struct laci_finite_core {
  double bound;         /* largest |element| that the core's result can have; INFINITY: not known */
  bool loses_nonfinite; /* kernels of the core may lose a NaN or an infinity, so that the operands
                           must be known to be finite */
  bool propagates_nonfinite; /* if an operand is not finite, the result is not, so that checking the
                                result is enough. Examples: softmax gives NaN, max pooling of values
                                without NaN keeps +infinity */
  bool selects_elements;     /* each element of the result is one of the operands' elements, so that
                                infinities are kept as long as no operand is NaN */
} laci_finite_core;

/* ---- finite_core.c ---- */

/** Returns the largest |element| that an operand can have: that of the constant, or bounds[value].
 * bounds: [n_values]. */
double laci_finite_operand_bound(laci_cpu_plan *plan, const double *bounds, int value);
/** Returns the bound and the flags of a fused node's core. bounds: as for
 * laci_finite_operand_bound. */
laci_finite_core laci_finite_core_bounds(laci_cpu_plan *plan, const double *bounds,
                                         const laci_fused *fused);
/** Returns a bound of |f(v)| for |v| <= x. */
double laci_finite_function_bound(const laci_function *f, double x);
/** Can the function's result be infinite or NaN for finite operands? Then nothing may be fused
 * after it. */
bool laci_function_may_be_nonfinite(const laci_function *f);
/** How laci_finite_largest_row_sum divides a constant into rows: element i belongs to row i /
 * (inner * length) * inner + i % inner. scale: a factor for each of the first n_scale rows; NULL:
 * ones. */
typedef struct laci_finite_rows {
  int64_t inner, length;
  const float *scale;
  int64_t n_scale;
} laci_finite_rows;
/** Returns the largest sum of magnitudes of a row of the constant (with rows->length 1, its largest
 * magnitude); NaN or INFINITY: the constant is not finite. */
double laci_finite_largest_row_sum(laci_cpu_plan *plan, int value, const laci_finite_rows *rows);

#endif
