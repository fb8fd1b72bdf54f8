/* SPDX-License-Identifier: Apache-2.0
 * Networks of one operator as nobody would write them: number k of a seed is always the same one.
 *
 * Half of them begin as a network that fits (a template of support/random_ops.h), of which a few
 * things are changed: ranks 0 to 8, empty and huge sizes, types, attributes that go, come, change
 * their kind, their count or their value, inputs and outputs that go, come or change places. The
 * others are a node of drawn ports. Such a network can be answered or refused. */
#ifndef TESTS_TORTURE_SWEEP_H
#define TESTS_TORTURE_SWEEP_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_graph laci_graph;

/** Network k, finished but not inferred. NULL where it was refused while it was built: err says
 * why. */
laci_graph *sweep_network(uint64_t seed, uint64_t k, lac_error *err);

/** The name of the operator that network k is about. */
const char *sweep_operator(uint64_t k);

#endif
