/* SPDX-License-Identifier: Apache-2.0
 * Which values a run looks at, so that nothing that is not finite is lost in between.
 *
 * Kernels may lose a NaN or an infinity: max(NaN, 0) is 0 in most of them, and a sparse one never
 * reads what a zero multiplies. So a plan shows that there is none: from bounds of what it reads
 * and the sums of its weights' magnitudes follows a bound of every value, and where that leaves the
 * range of floats, a run looks at a value that is there anyway. As long as all of these are within
 * LACI_FINITE_MOST, every number in between is finite. Else the caller runs a careful plan, in
 * which nothing is fused, and all but moves are the operators' own evaluations, in double.
 *
 * Infinities that belong there, as around what a MaxPool reads or in what a mask leaves out, make
 * no run careful as long as only such nodes read them as pick one of several numbers: these lose
 * nothing but NaN, so that what was padded or masked is looked at, before it was.
 *
 *     |y| <= max over rows of sum |w| * max |x| + max |bias|              of a product
 *
 * docs/robustness.md says what that means for users. */
#ifndef LACI_ENGINE_CPU_PLAN_FINITE_H
#define LACI_ENGINE_CPU_PLAN_FINITE_H

#include "engine/cpu/plan/plan.h"

/** A run that finds more than this, or a NaN, is no longer sure. */
#define LACI_FINITE_MOST 1e9
/** Bounds end here: sums of a few hundred such numbers, and what Winograd's algorithm makes of
 * these, are floats. */
#define LACI_FINITE_BOUND 1e33

/** Fills plan->looked: once nodes are fused. Where no looking helps, as with a weight that is not
 * finite, plan->careless names the node. */
void laci_plan_find_looked(laci_cpu_plan *plan);

/** What a core can reach: what it computes before scales and posts, from bounds of its operands. */
typedef struct laci_finite_core {
  double bound; /* INFINITY: not known */
  bool loses;   /* its kernels may lose what is not finite: operands must be within bounds */
  bool shows;   /* softmax: an operand that is not finite shows in the result, which is looked at */
  bool picks;   /* each result is one of the operands' numbers, or the one that is in the window:
                   infinities come out as they went in, as long as no operand is NaN */
} laci_finite_core;

/* ---- finite_core.c ---- */

/** Of an operand, from the bounds of all values that are computed. */
double laci_finite_operand(laci_cpu_plan *plan, const double *bounds, int value);
/** Of a fused node without its posts. */
laci_finite_core laci_finite_core_of(laci_cpu_plan *plan, const double *bounds,
                                     const laci_fused *fused);
/** Of a function of what is within `x`. */
double laci_finite_function(const laci_function *f, double x);
/** Can the function's result be anything, so that nothing may be fused after it? */
bool laci_finite_is_open(const laci_function *f);
/** The largest sum of magnitudes of a constant matrix' rows, or its largest magnitude (rows of one
 * element). Element i belongs to row i / (inner * length) * inner + i % inner, and scale (NULL:
 * ones) has a number for each row of the first n_scale. NaN or INFINITY: it is not finite. */
typedef struct laci_finite_rows {
  int64_t inner, length;
  const float *scale;
  int64_t n_scale;
} laci_finite_rows;
double laci_finite_largest_row(laci_cpu_plan *plan, int value, const laci_finite_rows *rows);

#endif
