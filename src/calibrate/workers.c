/* SPDX-License-Identifier: Apache-2.0
 * Creates and runs the engines of a part of the network. */
#include "calibrate/lanes_in.h"

#include "base/error.h"
#include "engine/engine.h"

lac_status laci_part_engines_create(const laci_network *network, const laci_part *part,
                                    const uint8_t *const *weights, laci_part_engines *lanes,
                                    lac_error *err) {
  lanes->engines = laci_alloc((size_t)lanes->n, sizeof(laci_engine *));
  lac_status st = lanes->engines ? LAC_OK : laci_fail_memory(err, "a part of the network");
  if (!st) st = laci_part_build_graph(network, part, weights, &lanes->graph, err);
  for (int lane = 0; lane < lanes->n && !st; lane++) {
    laci_engine_options options = {
        .engine = lanes->engine, .threads = 1, .dense_only = true, .budget = lanes->budget};
    st = laci_engine_create(lanes->graph, &options, &lanes->engines[lane], err);
  }
  if (st) laci_part_engines_clear(lanes);
  return st;
}

void laci_part_engines_clear(laci_part_engines *lanes) {
  for (int lane = 0; lanes->engines && lane < lanes->n; lane++)
    laci_engine_destroy(lanes->engines[lane]);
  laci_free(lanes->engines);
  laci_graph_destroy(lanes->graph);
  *lanes = (laci_part_engines){0};
}

lac_status laci_part_engines_run(const laci_part_engines *lanes, int lane,
                                 const void *const *inputs, void *const *outputs, lac_error *err) {
  return laci_engine_run(lanes->engines[lane], inputs, outputs, err);
}
