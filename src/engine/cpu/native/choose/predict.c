/* SPDX-License-Identifier: Apache-2.0
 * Predicts the time of a step of a plan by the figures that layers are chosen by: native layers by
 * their algorithm's cost, products by that of dense kernels, all else by the bytes that it
 * moves. */
#include <math.h>

#include "engine/cpu/lower/product.h"
#include "engine/cpu/net_in.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/tensors.h"
#include "engine/cpu/native/native.h"

enum { FLOAT = sizeof(float), SUM_OPERANDS = 3 };
/* Seconds that a unit of cost takes, if the table of costs does not say it: those of a core with
 * AVX2 at 3 GHz. */
static const double usual_unit = 2e-11;

static const laci_fused *find_fused_node(const laci_net *net, const laci_node *node) {
  const laci_cpu_plan *plan = &net->plan;
  if (node < plan->graph->nodes || node >= plan->graph->nodes + plan->graph->n_nodes) return NULL;
  const int n = (int)(node - plan->graph->nodes);
  const laci_fused *fused = &plan->fused[laci_plan_find_computing_node(plan, n)];
  return fused->output >= 0 ? fused : NULL;
}

static double cost_of_bytes(const laci_net *net, const laci_engine_step *info) {
  const double bytes = (double)info->bytes_read + (double)info->bytes_written;
  return bytes * laci_cost_figures_of_floats(net)->light / (SUM_OPERANDS * FLOAT);
}

/* Returns the cost of a matrix product by dense kernels. With few rows it is the time of reading
 * the matrix. */
static double cost_of_product(laci_net *net, const laci_net_step *step,
                              const laci_engine_step *info) {
  const laci_fused *fused = find_fused_node(net, step->node);
  laci_native_layer layer;
  double cost = (double)info->flops / 2;
  if (fused && laci_native_describe_product(net, fused, &layer))
    cost = laci_algorithm_by_id(LACI_ALGORITHM_dense)->cost(net, &layer);
  return fmax(cost, cost_of_bytes(net, info));
}

double laci_native_predict_cost(laci_net *net, const laci_net_step *step,
                                const laci_engine_step *info) {
  const laci_cost_figures *c = laci_cost_figures_of(net, NULL);
  const laci_fused *fused = step->node ? find_fused_node(net, step->node) : NULL;
  const laci_native_layer *layer = fused ? laci_native_chosen_layer(net, fused) : NULL;
  if (layer && layer->cost > 0) return layer->cost;
  if (!step->node || laci_native_is_reorder(step))
    return c->step + c->reorder * (double)info->bytes_written / FLOAT;
  return info->flops > 0 ? cost_of_product(net, step, info) : cost_of_bytes(net, info);
}

double laci_native_seconds_of_cost(const laci_net *net, double cost) {
  const double known = laci_cost_figures_of_floats(net)->unit * 1e-12;
  return cost * (known > 0 ? known : usual_unit) / net->n_threads;
}
