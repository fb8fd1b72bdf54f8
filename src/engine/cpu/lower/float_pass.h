/* SPDX-License-Identifier: Apache-2.0
 * One pass over the floats of a tensor in any layout, by all threads: the step of a node each of
 * whose results follows from one element. Padding is included. */
#ifndef LACI_ENGINE_CPU_LOWER_FLOAT_PASS_H
#define LACI_ENGINE_CPU_LOWER_FLOAT_PASS_H

#include "engine/cpu/net_in.h"

/** Computes n results from n elements; y may be x. details: those of the pass. */
typedef void laci_compute_floats(const void *details, const float *x, int64_t n, float *y);

typedef struct laci_float_pass {
  laci_compute_floats *compute;
  const void *details; /* what `compute` reads, in the plan's memory */
  const char *what;    /* what the step computes, for the plan's text */
  int64_t grain;       /* number of floats that a thread computes at a time */
} laci_float_pass;

/** Are the plan's values floats? If not, *why says so. */
bool laci_can_lower_float_pass(laci_net *net, const laci_fused *fused, const char **why);
/** Returns the number of floats of a tensor, padding included. */
int64_t laci_net_count_floats(const laci_net *net, int tensor);
/** Adds the step that computes the fused node from tensor x, and binds its result. x -1: nothing is
 * added, since a failure is recorded in the plan. */
void laci_net_add_float_pass(laci_net *net, const laci_fused *fused, int x,
                             const laci_float_pass *pass);

#endif
