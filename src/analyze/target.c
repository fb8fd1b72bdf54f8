/* SPDX-License-Identifier: Apache-2.0
 * Describes a layer for `target` (target/target.h). */
#include "target/target.h"

#include "analyze/analyze.h"
#include "graph/graph.h"

void laci_analysis_describe_target_layer(const laci_analysis *a, int l, laci_target_layer *out) {
  const laci_layer *layer = &a->layers[l];
  const bool computed = layer->stored < 0; /* the weight is a product, and the caller sets its view
                                              (layout and bytes) */
  const laci_stored *stored = computed ? NULL : &a->graph->stored[layer->stored];
  const laci_type *type = &a->graph->values[layer->weight].type;
  int other = computed ? -1 : a->other_layer[l];
  *out = (laci_target_layer){
      .op = a->graph->nodes[layer->node].type,
      .dtype = computed ? type->dtype : stored->dtype,
      .rank = computed ? type->shape.rank : stored->shape.rank,
      .k_axis = layer->k_axis,
      .c_axis = layer->c_axis,
      .dims = computed ? type->shape.dims : stored->shape.dims,
      .groups = layer->groups,
      .channels_in = layer->channels_in,
      .channels_out = layer->channels_out,
      .shared_with = other < 0 ? NULL : a->graph->nodes[a->layers[other].node].name,
      .view = layer->view};
}
