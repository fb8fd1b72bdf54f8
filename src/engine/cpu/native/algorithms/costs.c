/* SPDX-License-Identifier: Apache-2.0
 * What the cost formulas of several algorithms have in common, for layers that were not timed. Each
 * algorithm has its formula in its own file, and the figures of processors are in costs/. */
#include "base/divide.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/algorithms/algorithm.h"

static const laci_cost_figures *find_section_figures(const laci_net *net,
                                                     laci_cost_section section) {
  return &net->costs->tables[section]->figures[section];
}

const laci_cost_figures *laci_cost_figures_of(const laci_net *net, const laci_native_layer *layer) {
  if (net->plan.bf16) return find_section_figures(net, LACI_COSTS_bf16);
  return find_section_figures(net, layer && layer->int8 ? LACI_COSTS_int8 : LACI_COSTS_f32);
}

const laci_cost_figures *laci_cost_figures_of_floats(const laci_net *net) {
  return find_section_figures(net, LACI_COSTS_f32);
}

bool laci_vector_kernel_may_be_faster(const laci_net *net, int64_t n_weights) {
  return (double)n_weights >= laci_cost_figures_of_floats(net)->vector_weights;
}

bool laci_vector_kernel_is_faster(const laci_net *net, double kept) {
  return kept * 100 <= laci_cost_figures_of_floats(net)->vector_kept;
}

bool laci_cost_is_memory_bound(const laci_native_layer *layer) {
  return layer->kind == LACI_NATIVE_POOL || layer->kind == LACI_NATIVE_MOVE ||
         laci_native_is_elementwise(layer);
}

double laci_cost_of_memory_bound(const laci_net *net, const laci_native_layer *layer) {
  return laci_cost_n_results(layer) * (layer->int8
                                           ? find_section_figures(net, LACI_COSTS_int8)->light
                                           : laci_cost_figures_of_floats(net)->pool);
}

double laci_cost_of_memory_bound_dense(const laci_net *net, const laci_native_layer *layer) {
  const laci_cost_figures *c = laci_cost_figures_of_floats(net);
  if (!layer->int8) return laci_cost_n_results(layer) * c->pool;
  if (layer->kind == LACI_NATIVE_MOVE)
    return layer->move->is_view
               ? 0
               : laci_cost_n_results(layer) * laci_cost_figures_of(net, NULL)->reorder;
  if (layer->kind == LACI_NATIVE_TABLE) return laci_cost_n_results(layer) * c->light;
  return laci_cost_n_results(layer) * (c->light + laci_cost_figures_of(net, NULL)->reorder);
}

double laci_cost_n_results(const laci_native_layer *layer) {
  return (double)layer->n_images * (double)layer->window.channels_out *
         (double)(layer->window.out_h * layer->window.out_w);
}

double laci_cost_n_terms(const laci_sparse_window *g) {
  return (double)laci_sparse_weights_per_row(g);
}

double laci_cost_n_weights(const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  return (double)(g->channels_out * laci_sparse_weights_per_row(g));
}

/** Returns the number of tiles of 16 result pixels. The rows of an image make one long row, with
 * `between` zeros after each row of pixels. Most windows need one zero; dilated ones may need more
 * than the image has columns. */
int64_t laci_cost_n_tiles(const laci_native_layer *layer, int64_t between) {
  const laci_sparse_window *g = &layer->window;
  const laci_sparse_border border = laci_sparse_needed_border(g);
  if (laci_native_has_image_lanes(layer->n_images)) {
    return laci_ceil_div(layer->n_images, LACI_SPARSE_LANES) * g->out_h * g->out_w;
  }
  if (between > 0 && border.left > between) between = border.left;
  if (between > 0 && border.right > between) between = border.right;
  return layer->n_images *
         laci_ceil_div((g->out_h - 1) * (g->out_w + between) + g->out_w, LACI_SPARSE_LANES);
}
