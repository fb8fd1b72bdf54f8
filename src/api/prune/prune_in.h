/* SPDX-License-Identifier: Apache-2.0
 * Code shared by pruning, replaying a permutation, and checking. */
#ifndef LACI_API_PRUNE_PRUNE_IN_H
#define LACI_API_PRUNE_PRUNE_IN_H

#include "prune/prune.h"

typedef struct lac_options lac_options;
typedef struct laci_job laci_job;

/** Converts public options to those of src/prune, with views of `options` and `job`. */
laci_prune_options laci_prune_options_of(const lac_options *options, const laci_job *job);

#endif
