/* SPDX-License-Identifier: Apache-2.0
 * Chooses which layers are computed by native kernels, so that the sum of costs, reorders included,
 * is the least. Layers are toggled one by one, and two neighbours at a time, as long as the sum
 * decreases. */
#include <math.h>

#include "cpu/cpu.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/algorithms/algorithm.h"

/* Number of the layers after a layer that are toggled together with it, one at a time. */
enum { NEIGHBOURS = 3 };

/* ---- The total cost ---- */

/** How a value is stored and read if the layers that are chosen now are native. */
typedef struct node_value {
  bool written;          /* a chosen layer writes the value */
  bool read_as_stored;   /* a chosen layer reads or adds it as it is stored, in a native layout */
  bool norm;             /* the value is the result of a normalization, which can write a native
                          layout */
  bool images;           /* native layouts of the value store 16 images together (HWC16N) */
  bool quantized;        /* the value is the result of a quantization */
  bool written_as_bytes; /* a chosen layer writes its bytes, so that no step quantizes it */
  bool read_as_bytes;    /* a chosen layer reads its bytes */
  int stored_as; /* the value as which it is stored: itself, or a matrix with the same rows */
  int n_uses;    /* number of reads of it, and of the values that are stored as it */
  int n_read;    /* how many of the n_uses reads are by chosen layers */
  double floats; /* number of elements */
} node_value;

typedef struct choice {
  laci_net *net;
  node_value *values; /* [n_values] how each value is stored and read */
  laci_native_costs costs;
} choice;

static node_value *find_stored_value(choice *c, int value) {
  return &c->values[c->values[value].stored_as];
}

static void count_value_read(choice *c, int value, bool read_as_stored, bool as_bytes) {
  node_value *v = find_stored_value(c, value);
  v->n_read++;
  v->read_as_stored = v->read_as_stored || read_as_stored;
  v->read_as_bytes = v->read_as_bytes || as_bytes;
}

/** Returns the cost of a reordered copy of the layer's input that only this layer reads; 0: it
 * needs no such copy. */
static double private_copy_cost(const choice *c, const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  const bool as_stored = layer->reading == LACI_NATIVE_AS_STORED;
  const bool input = c->net->plan.graph->values[layer->input].is_input;
  if (as_stored || (layer->reading == LACI_NATIVE_ROW_MAJOR && input)) return 0;
  const double floats = c->values[layer->input].floats;
  const double one_lane = floats / (double)(g->stride_h * g->stride_w);
  return c->costs.step +
         c->costs.reorder * (layer->reading == LACI_NATIVE_SUBSAMPLED ? one_lane : floats);
}

/** Returns the cost of the step that quantizes the value, or makes floats of its bytes for others;
 * 0: there is none. */
static double quantization_cost(const choice *c, int value) {
  const node_value *v = &c->values[value];
  const bool becomes_bytes = (v->quantized || v->read_as_bytes) && !v->written_as_bytes;
  const bool becomes_floats = v->written_as_bytes && v->n_uses > v->n_read;
  return becomes_bytes || becomes_floats ? v->floats * c->costs.quantization : 0;
}

static double reorder_cost(const choice *c, int value) {
  const node_value *v = &c->values[value];
  const bool read_by_others = v->n_uses > v->n_read;
  if (!v->written && v->read_as_stored && v->norm && !read_by_others) {
    return v->images ? v->floats * c->costs.norm_of_images : 0;
  }
  const bool reordered = v->written ? read_by_others : v->read_as_stored;
  return reordered ? c->costs.step + v->floats * c->costs.reorder : 0;
}

static double compute_total_cost(choice *c) {
  enum { RESIDUAL = 2 }; /* number of the residual among a layer's values */
  const laci_native_net *native = c->net->native;
  double sum = 0;
  for (int v = 0; v < c->net->plan.graph->n_values; v++) {
    c->values[v].written = c->values[v].written_as_bytes = false;
    c->values[v].read_as_stored = c->values[v].read_as_bytes = false;
    c->values[v].n_read = 0;
  }
  for (int at = 0; at < native->n_layers; at++) {
    const laci_native_layer *layer = &native->layers[at];
    sum += layer->chosen ? c->costs.chosen[at] + private_copy_cost(c, layer)
                         : c->costs.of[LACI_ALGORITHM_dense][at];
    if (!layer->chosen) continue;
    node_value *output = find_stored_value(c, layer->output);
    output->written = true;
    output->written_as_bytes = layer->int8 && layer->int8->y;
    for (int v = 1; v < laci_native_n_values(layer); v++) {
      const int value = laci_native_nth_value(layer, v);
      const bool as_stored = v > 1 || layer->reading == LACI_NATIVE_AS_STORED;
      const bool as_bytes = layer->int8 && (v != RESIDUAL || layer->int8->residual);
      if (value >= 0) count_value_read(c, value, as_stored, as_bytes);
    }
  }
  for (int v = 0; v < c->net->plan.graph->n_values; v++) {
    sum += reorder_cost(c, v) + quantization_cost(c, v);
  }
  return sum;
}

/* ---- Toggling: choosing a layer, or not choosing it any more ---- */

static void toggle_layer(laci_native_net *native, int layer) {
  native->layers[layer].chosen = !native->layers[layer].chosen;
}

/** Toggles two layers (chosen or not), or one if both are the same. Keeps the change if the total
 * cost is then below *best, which it lowers. Returns whether it was. */
static bool toggle_layers_if_better(choice *c, int first, int second, double *best) {
  laci_native_net *native = c->net->native;
  toggle_layer(native, first);
  if (second != first) toggle_layer(native, second);
  const double sum = compute_total_cost(c);
  if (sum < *best) {
    *best = sum;
    return true;
  }
  toggle_layer(native, first);
  if (second != first) toggle_layer(native, second);
  return false;
}

/** Toggles layers until no toggling lowers the total cost; returns that cost. */
static double toggle_while_better(choice *c) {
  const laci_native_net *native = c->net->native;
  double best = compute_total_cost(c);
  for (bool better = true; better;) {
    better = false;
    for (int at = 0; at < native->n_layers; at++) {
      for (int to = at; to <= at + NEIGHBOURS && to < native->n_layers; to++) {
        better = toggle_layers_if_better(c, at, to, &best) || better;
      }
    }
  }
  return best;
}

static void set_all_chosen(laci_native_net *native, bool chosen) {
  for (int at = 0; at < native->n_layers; at++) native->layers[at].chosen = chosen;
}

/** Chooses all layers whose cost can be estimated. */
static void choose_layers_of_known_cost(choice *c) {
  laci_native_net *native = c->net->native;
  for (int at = 0; at < native->n_layers; at++) {
    native->layers[at].chosen = isfinite(c->costs.chosen[at]);
  }
}

/** Starts once from the choice of all layers and once from that of none, improves both, and keeps
 * the better result. */
static void choose_best_layers(choice *c) {
  laci_native_net *native = c->net->native;
  set_all_chosen(native, false);
  const double without = compute_total_cost(c);
  const double from_none = toggle_while_better(c);
  choose_layers_of_known_cost(c);
  if (toggle_while_better(c) > from_none) {
    set_all_chosen(native, false);
    (void)toggle_while_better(c);
  }
  if (compute_total_cost(c) > without - c->costs.least_gain) set_all_chosen(native, false);
}

/* ---- Choosing among all layers ---- */

static bool may_use_native_layers(const laci_net *net) {
  if (net->plan.status) return false;
  if (net->use->which == LACI_NATIVE_USE_FASTER) return laci_cpu_level_in_force() != LACI_CPU_ANY;
  return net->use->which != LACI_NATIVE_USE_NONE || net->timings;
}

/** Does a QuantizeLinear and DequantizeLinear compute the value, in a step or in a layer? */
static bool is_quantized_and_dequantized(const laci_cpu_plan *plan, int value) {
  const int node = plan->graph->values[value].producer;
  return node >= 0 && plan->computed[node] && plan->fused[node].output == value &&
         plan->fused[node].pattern == LACI_PATTERN_QUANTIZE;
}

/** Finds the sizes of all values, and which of them are results of normalizations or
 * quantizations. */
static void find_value_sizes_and_producers(choice *c) {
  const laci_cpu_plan *plan = &c->net->plan;
  const laci_native_net *native = c->net->native;
  for (int at = 0; at < plan->n_scheduled; at++) {
    const laci_fused *fused = &plan->fused[plan->schedule[at].fused];
    if (laci_native_reorder_can_normalize(c->net, fused)) c->values[fused->output].norm = true;
  }
  for (int at = 0; at < native->n_layers; at++) {
    const laci_native_layer *layer = &native->layers[at];
    if (layer->rows) c->values[layer->input].norm = false;
    for (int v = 0; v < laci_native_n_values(layer); v++) {
      const int value = laci_native_nth_value(layer, v);
      if (value < 0) continue;
      const laci_shape *shape = laci_plan_shape(plan, value);
      c->values[value].floats = (double)laci_shape_count(shape);
      c->values[value].images = laci_native_has_image_lanes(layer->n_images);
      c->values[value].quantized = is_quantized_and_dequantized(plan, value);
    }
  }
}

/** Makes layers read their input without phases if their algorithm transforms values (Winograd),
 * since it splits strided windows by itself. */
static void avoid_needless_phases(laci_native_net *native) {
  for (int at = 0; at < native->n_layers; at++) {
    laci_native_layer *layer = &native->layers[at];
    const bool itself = laci_algorithm_by_id(layer->algorithm)->transforms;
    if (itself && layer->reading == LACI_NATIVE_PHASES) layer->reading = LACI_NATIVE_ROW_MAJOR;
  }
}

/** Stores the costs of chosen layers, from which their time is predicted. Nothing is stored if the
 * costs are measured times, which have another unit (seconds). */
static void store_predicted_costs(const choice *c) {
  laci_native_net *native = c->net->native;
  for (int at = 0; at < native->n_layers && c->costs.step > 0; at++)
    native->layers[at].cost = native->layers[at].chosen ? c->costs.chosen[at] : 0;
}

/** Finds which values are stored as others, and how often each is read then. */
static void find_stored_values(choice *c) {
  laci_cpu_plan *plan = &c->net->plan;
  bool *images = laci_plan_alloc(plan, (size_t)plan->graph->n_values, sizeof *images);
  if (!images) return;
  laci_native_mark_images(c->net, false, images);
  for (int v = 0; v < plan->graph->n_values; v++) {
    c->values[v].stored_as = v;
    c->values[v].n_uses = laci_plan_count_uses(plan, v);
  }
  for (int at = 0; at < plan->n_scheduled; at++) {
    const int value = plan->fused[plan->schedule[at].fused].output;
    const int same = laci_native_find_same_rows(plan, value);
    const bool is_copy = same >= 0 && laci_native_canonical_value(plan, value) != value;
    if (same < 0 || (!is_copy && (images[value] || images[same]))) continue;
    node_value *stored = find_stored_value(c, same);
    c->values[value].stored_as = c->values[same].stored_as;
    stored->n_uses += c->values[value].n_uses - 1;
  }
}

static void choose_faster_layers(laci_net *net) {
  choice c = {.net = net};
  c.values = laci_plan_alloc(&net->plan, (size_t)net->plan.graph->n_values, sizeof *c.values);
  if (!c.values || !laci_native_find_costs(net, &c.costs)) return;
  laci_native_reduce_weight_memory(net, &c.costs);
  avoid_needless_phases(net->native);
  find_value_sizes_and_producers(&c);
  find_stored_values(&c);
  choose_best_layers(&c);
  store_predicted_costs(&c);
}

/** Chooses all layers that native kernels can compute, whatever they cost. If only algorithms that
 * use zeros were asked for, and the wanted algorithm transforms weights, all layers that it cannot
 * compute are left to dense kernels. */
static void choose_possible_layers(laci_net *net) {
  laci_native_net *native = net->native;
  const laci_algorithm_id wanted = net->use->algorithm;
  const bool alone =
      net->use->which == LACI_NATIVE_USE_ZEROS && laci_algorithm_by_id(wanted)->transforms;
  for (int at = 0; at < native->n_layers; at++) {
    laci_native_layer *layer = &native->layers[at];
    layer->algorithm = laci_algorithm_or_fallback(net, layer, wanted);
    layer->chosen = laci_native_algorithm_can_compute(net, layer, layer->algorithm);
    if (alone && layer->algorithm != wanted) layer->chosen = false;
  }
  avoid_needless_phases(native);
}

int laci_native_find_next_sparse(const laci_net *net, int *at) {
  const laci_native_net *native = net->native;
  while (native && *at < native->n_layers) {
    const laci_native_layer *layer = &native->layers[(*at)++];
    if (layer->kind == LACI_NATIVE_PRODUCT && layer->kept < 1 && !layer->joined)
      return layer->fused->node;
  }
  return -1;
}

void laci_native_choose_layers(laci_net *net) {
  if (!may_use_native_layers(net)) return;
  laci_native_find_layers(net);
  laci_native_net *native = net->native;
  if (!native || net->use->which == LACI_NATIVE_USE_NONE) return;
  if (net->use->which == LACI_NATIVE_USE_LISTED) return;
  native->layouts =
      laci_plan_alloc(&net->plan, (size_t)net->plan.graph->n_values, sizeof *native->layouts);
  if (!native->layouts) return;
  if (native->trained) laci_native_choose_trained_layers(net);
  else if (net->use->which == LACI_NATIVE_USE_FASTER) choose_faster_layers(net);
  else choose_possible_layers(net);
  laci_native_join_sums(net);
  laci_native_assign_layouts(net);
  native->code_limit = laci_native_max_code_bytes(net);
}
