/* SPDX-License-Identifier: Apache-2.0
 * Corrects the statistics of batch normalizations for what masks changed, without any data (Nagel
 * and others, 2019).
 *
 * A mask moves the mean of a convolution's outputs and lowers their variance. Both follow from the
 * moments of its input channels (calibrate/moments.h), and the next batch normalization can take
 * them in: mean += change, variance *= ratio. Then its outputs have the old mean and variance
 * again, and the next layer's inputs are those that its weights were trained for. A convolution
 * without a batch normalization gets the mean into its bias.
 *
 * The dense network's own statistics test the prediction. A layer stays as it is where its inputs'
 * moments do not explain the means that are stored for its outputs. */
#include <math.h>

#include "analyze/analyze.h"
#include "base/acquire.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "base/plural.h"
#include "calibrate/change.h"
#include "calibrate/moments.h"
#include "graph/graph.h"
#include "graph/ops.h"
#include "permute/plan.h"
#include "prune/prune_in.h"
#include "tensor/buf.h"

/* A layer is corrected if the moments of its inputs explain at least three quarters of the squares
 * of the stored means; and no variance changes by more than a factor of 16. */
static const double most_unexplained = 0.25, least_ratio = 1.0 / 16, most_ratio = 16;

/* A layer that is corrected, and the stored tensors that take the correction. */
typedef struct correction {
  int layer;
  const laci_stored *mean, *variance; /* of the batch normalization; NULL: there is none */
  const laci_stored *bias;            /* of the convolution; NULL: there is none */
  int64_t rows, count;                /* number of output channels, and of elements of the weight */
  /* one allocation, *before: the weight before and after, in the file's order; what is known of the
   * outputs; and the change */
  double *before, *after, *known_mean, *known_variance, *own_bias, *change, *ratio;
} correction;

/* ---- Finding the tensors ---- */

/* Returns the stored tensor that the node alone reads at `port`, if it may be changed: a vector
 * [rows] of floats. */
static const laci_stored *find_own_vector(const laci_graph *graph, const laci_node *node, int port,
                                          int64_t rows) {
  if (port >= node->n_inputs || node->inputs[port] < 0) return NULL;
  const laci_value *value = &graph->values[node->inputs[port]];
  if (value->stored < 0 || value->n_readers != 1 || value->is_output) return NULL;
  const laci_stored *stored = &graph->stored[value->stored];
  const bool fits = laci_dtype_is_float(stored->dtype) && stored->shape.rank == 1 &&
                    stored->shape.dims[0] == rows && !stored->overridable && !stored->in_function;
  return fits ? stored : NULL;
}

/* Returns the batch normalization that alone reads the value; NULL: there is none. */
static const laci_node *find_normalization(const laci_graph *graph, int value) {
  const laci_value *v = &graph->values[value];
  if (v->n_readers != 1 || v->is_output) return NULL;
  const laci_node *node = &graph->nodes[v->readers[0]];
  return laci_node_has_statistics(graph, node) && node->inputs[0] == value ? node : NULL;
}

/* Finds the tensors that take the correction of layer l. Returns false if there are none. */
static bool find_targets(const laci_pruning *p, int l, correction *to) {
  const laci_analysis *a = p->analysis;
  const laci_graph *graph = a->graph;
  const laci_layer *layer = &a->layers[l];
  const laci_node *node = &graph->nodes[layer->node];
  const laci_stored *weight = &graph->stored[layer->stored];
  *to = (correction){.layer = l};
  if (!p->layers[l].pruned || node->op != &laci_op_conv || node->body ||
      node->inputs[1] != weight->value || graph->values[weight->value].n_readers != 1 ||
      layer->view.n_scales > 0 || layer->view.grid || layer->gain >= 0 ||
      !laci_dtype_is_float(weight->dtype) || node->outputs[0] < 0)
    return false;
  to->rows = weight->shape.dims[0];
  to->count = laci_shape_count(&weight->shape);
  to->bias = find_own_vector(graph, node, 2, to->rows);
  if (node->n_inputs > 2 && node->inputs[2] >= 0 && !to->bias) return false;
  const laci_node *norm = find_normalization(graph, node->outputs[0]);
  if (!norm) return to->bias != NULL;
  to->mean = find_own_vector(graph, norm, 3, to->rows);
  to->variance = find_own_vector(graph, norm, 4, to->rows);
  return to->mean && to->variance;
}

/* ---- Reading ---- */

static lac_status read_tensor(const laci_graph *graph, const laci_stored *from, double *to,
                              lac_error *err) {
  laci_acquired_bytes held;
  if (!from) return LAC_OK;
  lac_status st = laci_stored_acquire(graph, from, &held, err);
  if (st) return st;
  laci_read_f64(from->dtype, held.bytes, 0, laci_shape_count(&from->shape), to);
  laci_bytes_release(&held);
  return LAC_OK;
}

/* Reads the new weight, and puts its elements back to the places that they have in the file. */
static lac_status read_new_weight(const laci_pruning *p, const laci_stored *from, int64_t count,
                                  double *to, lac_error *err) {
  const laci_value_orders *orders = &p->plan->orders.values[from->value];
  const uint8_t *bytes = p->weights[from - p->analysis->graph->stored];
  int64_t *places, *moved;
  lac_status st = LAC_OK;
  laci_read_f64(from->dtype, bytes, 0, count, to);
  if (laci_orders_are_identity(orders)) return LAC_OK;
  double *reordered = laci_alloc(3 * (size_t)count + 1, sizeof *reordered);
  if (!reordered) return laci_fail_memory(err, from->name);
  places = (int64_t *)(void *)(reordered + count);
  moved = places + count;
  for (int64_t e = 0; e < count; e++) {
    reordered[e] = to[e];
    places[e] = e;
  }
  st = laci_reorder(&from->shape, sizeof *places, orders, places, moved, err);
  for (int64_t e = 0; e < count && !st; e++) to[moved[e]] = reordered[e];
  laci_free(reordered);
  return st;
}

/* Does what read_layer and read_new_weight allocate fit into the memory limit? */
static bool fits_into_memory(const laci_pruning *p, const correction *c,
                             const laci_prune_options *options) {
  const laci_stored *weight = &p->analysis->graph->stored[p->analysis->layers[c->layer].stored];
  laci_budget budget = *options->budget;
  const bool moved = !laci_orders_are_identity(&p->plan->orders.values[weight->value]);
  const uint64_t each = (moved ? 5 : 2) * sizeof(double);
  laci_budget_add(&budget, (uint64_t)c->count * each + weight->size_bytes, "%.200s (corrected)",
                  weight->name);
  return !laci_budget_check(&budget, "its correction", NULL);
}

static lac_status read_layer(const laci_pruning *p, correction *c, lac_error *err) {
  const laci_graph *graph = p->analysis->graph;
  const laci_stored *weight = &graph->stored[p->analysis->layers[c->layer].stored];
  c->before = laci_alloc(2 * (size_t)c->count + 5 * (size_t)c->rows, sizeof *c->before);
  if (!c->before) return laci_fail_memory(err, weight->name);
  c->after = c->before + c->count;
  c->known_mean = c->after + c->count;
  c->known_variance = c->known_mean + c->rows;
  c->own_bias = c->known_variance + c->rows;
  c->change = c->own_bias + c->rows;
  c->ratio = c->change + c->rows;
  lac_status st = read_tensor(graph, weight, c->before, err);
  if (!st) st = read_new_weight(p, weight, c->count, c->after, err);
  if (!st) st = read_tensor(graph, c->mean, c->known_mean, err);
  if (!st) st = read_tensor(graph, c->variance, c->known_variance, err);
  if (!st) st = read_tensor(graph, c->bias, c->own_bias, err);
  return st;
}

/* ---- Writing ---- */

/* Makes `values` [rows], in the file's order, the new elements of the tensor, in the new order. */
static lac_status write_vector(laci_pruning *p, const laci_stored *to, const double *values,
                               lac_error *err) {
  const laci_value_orders *orders = &p->plan->orders.values[to->value];
  const int64_t n = to->shape.dims[0];
  double *moved = laci_alloc((size_t)n + 1, sizeof *moved);
  uint8_t *bytes = laci_alloc(to->size_bytes + 1, 1);
  lac_status st = moved && bytes
                      ? laci_reorder(&to->shape, sizeof *moved, orders, values, moved, err)
                      : laci_fail_memory(err, to->name);
  if (!st) {
    laci_write_f64(to->dtype, moved, n, bytes);
    st = laci_pruning_replace_tensor(p, (int)(to - p->analysis->graph->stored), bytes, err);
    bytes = NULL;
  }
  laci_free(moved);
  laci_free(bytes);
  return st;
}

static lac_status write_correction(laci_pruning *p, correction *c, lac_error *err) {
  if (!c->mean) {
    for (int64_t k = 0; k < c->rows; k++) c->own_bias[k] -= c->change[k];
    return write_vector(p, c->bias, c->own_bias, err);
  }
  for (int64_t k = 0; k < c->rows; k++) {
    c->known_mean[k] += c->change[k];
    c->known_variance[k] *= fmin(fmax(c->ratio[k], least_ratio), most_ratio);
  }
  lac_status st = write_vector(p, c->mean, c->known_mean, err);
  return st ? st : write_vector(p, c->variance, c->known_variance, err);
}

/* ---- Layers ---- */

static bool is_finite_change(const correction *c) {
  bool finite = true;
  for (int64_t k = 0; k < c->rows; k++)
    finite = finite && isfinite(c->change[k]) && isfinite(c->ratio[k]);
  return finite;
}

static lac_status correct_layer(laci_pruning *p, correction *c, const laci_channel_moments *inputs,
                                lac_error *err) {
  const laci_graph *graph = p->analysis->graph;
  const int node = p->analysis->layers[c->layer].node;
  lac_status st = read_layer(p, c, err);
  const laci_changed_layer layer = {.graph = graph,
                                    .node = node,
                                    .before = c->before,
                                    .after = c->after,
                                    .inputs = inputs,
                                    .mean = c->mean ? c->known_mean : NULL,
                                    .variance = c->mean ? c->known_variance : NULL,
                                    .bias = c->bias ? c->own_bias : NULL};
  laci_output_change change = {.mean = c->change, .ratio = c->ratio};
  if (!st) st = laci_predict_change(&layer, &change, err);
  if (st == LAC_UNSUPPORTED) st = LAC_OK;
  else if (!st && change.unexplained <= most_unexplained && is_finite_change(c)) {
    st = write_correction(p, c, err);
    if (!st) p->n_corrected++;
  }
  if (!st)
    laci_log(LAC_LOG_DEBUG, "%s: %.3g %% of the stored means are not explained",
             graph->nodes[node].name, 100 * change.unexplained);
  laci_free(c->before);
  return st;
}

lac_status laci_pruning_correct_statistics(laci_pruning *p, const laci_prune_options *options,
                                           lac_error *err) {
  const laci_analysis *a = p->analysis;
  laci_network_moments moments;
  int n_pruned = 0;
  lac_status st = laci_network_moments_compute(a->graph, &moments, err);
  for (int l = 0; l < a->n_layers && !st; l++) {
    correction c;
    n_pruned += p->layers[l].pruned;
    if (!find_targets(p, l, &c) || !fits_into_memory(p, &c, options)) continue;
    const laci_layer *layer = &a->layers[l];
    const laci_channel_moments *inputs = &moments.values[a->graph->nodes[layer->node].inputs[0]];
    if (inputs->n == layer->channels_in * layer->groups) st = correct_layer(p, &c, inputs, err);
  }
  laci_network_moments_clear(&moments);
  if (!st && p->n_corrected > 0)
    laci_log(LAC_LOG_INFO,
             "mean and variance of the outputs of %d of %d pruned layer%s corrected by the "
             "statistics that batch normalizations store",
             p->n_corrected, n_pruned, laci_plural(n_pruned));
  return st;
}
