/* SPDX-License-Identifier: Apache-2.0
 * Runs a whole graph node by node (engine/engine.h), as the reference of other tests. */
#ifndef TESTS_SUPPORT_WALK_H
#define TESTS_SUPPORT_WALK_H

#include "engine/stepper.h"
#include "graph/graph.h"
#include "tensor/buf.h"

/** Opens a walk with the graph's stored tensors, without inputs yet; pool NULL: one thread. */
static inline lac_status walk_open(const laci_graph *graph, laci_pool *pool, laci_stepper **walk,
                                   lac_error *err) {
  const laci_stepper_options options = {.pool = pool};
  return laci_stepper_create(graph, &options, walk, err);
}

/** Runs all nodes in order. */
static inline lac_status walk_all(laci_stepper *walk, const laci_graph *graph, lac_error *err) {
  lac_status st = LAC_OK;
  for (int node = 0; node < graph->n_nodes && !st; node++) st = laci_stepper_step(walk, node, err);
  return st;
}

#endif
