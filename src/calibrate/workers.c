/* SPDX-License-Identifier: Apache-2.0
 * Creates and runs the engines of a part of the network. */
#include "calibrate/workers_in.h"

#include "base/error.h"
#include "engine/engine.h"

lac_status laci_part_engines_create_for_graph(laci_graph *graph, laci_part_engines *workers,
                                              lac_error *err) {
  workers->graph = graph;
  workers->engines = laci_alloc((size_t)workers->n, sizeof(laci_engine *));
  lac_status st = workers->engines ? LAC_OK : laci_fail_memory(err, "a part of the network");
  for (int worker = 0; worker < workers->n && !st; worker++) {
    laci_engine_options options = {
        .engine = workers->engine, .threads = 1, .dense_only = true, .budget = workers->budget};
    st = laci_engine_create(workers->graph, &options, &workers->engines[worker], err);
  }
  if (st) laci_part_engines_clear(workers);
  return st;
}

lac_status laci_part_engines_create(const laci_network *network, const laci_part *part,
                                    const uint8_t *const *weights, laci_part_engines *workers,
                                    lac_error *err) {
  laci_graph *graph = NULL;
  lac_status st = laci_part_build_graph(network, part, weights, &graph, err);
  if (st) *workers = (laci_part_engines){0};
  return st ? st : laci_part_engines_create_for_graph(graph, workers, err);
}

void laci_part_engines_clear(laci_part_engines *workers) {
  for (int worker = 0; workers->engines && worker < workers->n; worker++)
    laci_engine_destroy(workers->engines[worker]);
  laci_free(workers->engines);
  laci_graph_destroy(workers->graph);
  *workers = (laci_part_engines){0};
}

lac_status laci_part_engines_run(const laci_part_engines *workers, int worker,
                                 const void *const *inputs, void *const *outputs, lac_error *err) {
  return laci_engine_run(workers->engines[worker], inputs, outputs, err);
}
