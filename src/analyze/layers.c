/* SPDX-License-Identifier: Apache-2.0
 * Finds the layers of a graph, and describes their stored tensors as weights. */

#include "analyze/analyze.h"
#include "analyze/layers_in.h"
#include "base/error.h"
#include "base/divide.h"
#include "base/acquire.h"
#include "base/memory.h"
#include "graph/copies.h"
#include "graph/constants.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/buf.h"

/* Reads a stored float or integer tensor as doubles in the arena; NULL: no memory, or it cannot be
 * read. */
static const double *read_tensor_as_doubles(laci_analysis *analysis, int value, int64_t *n) {
  laci_acquired_bytes held;
  const laci_graph *graph = analysis->graph;
  const laci_stored *stored =
      &graph->stored[graph->values[laci_graph_skip_copies(graph, value)].stored];
  *n = laci_shape_count(&stored->shape);
  double *out = laci_arena_alloc(&analysis->arena, (size_t)*n, sizeof *out);
  if (!out || laci_stored_acquire(analysis->graph, stored, &held, NULL)) return NULL;
  if (laci_dtype_is_float(stored->dtype)) {
    laci_read_f64(stored->dtype, held.bytes, 0, *n, out);
  } else {
    for (int64_t k = 0; k < *n; k++) {
      int64_t one;
      laci_read_i64(stored->dtype, held.bytes, k, 1, &one);
      out[k] = (double)one;
    }
  }
  laci_bytes_release(&held);
  return out;
}

static int64_t stride_of_axis(const laci_shape *shape, int axis) {
  return laci_shape_count_range(shape, axis + 1, shape->rank);
}

/* Returns the number of scales: one, one for each index along the axis, or one for each block. */
static int64_t count_scales(int64_t block, const laci_shape *shape, int axis) {
  if (axis < 0) return 1;
  if (block == 0) return shape->dims[axis];
  return laci_shape_count(shape) / shape->dims[axis] * laci_ceil_div(shape->dims[axis], block);
}

static void set_scale_strides(laci_weight_view *view, const laci_shape *shape, int axis,
                              int64_t block) {
  view->n_scales = count_scales(block, shape, axis);
  view->scale_stride = axis >= 0 ? stride_of_axis(shape, axis) : 1;
  view->scale_block = block;
  view->scale_size = axis >= 0 ? shape->dims[axis] : 1;
}

/* Sets the scales of a dequantized or multiplied weight, which run along at most one axis, or in
 * blocks along one. Returns false where they cannot be read. */
static bool set_scales(laci_analysis *analysis, const laci_weight_source *source,
                       laci_layer *layer) {
  const laci_shape *shape = &analysis->graph->stored[source->stored].shape;
  laci_weight_view *view = &layer->view;
  int axis = source->scale_axis >= 0 ? source->scale_axis : source->factor_axis;
  if (source->scale_axis >= 0 && source->factor_axis >= 0 &&
      source->scale_axis != source->factor_axis)
    return false;
  if (source->scale_block && source->factor_value >= 0) return false;
  if (source->scale_value < 0 && source->factor_value < 0 && source->zero_value < 0) return true;
  int64_t n = count_scales(source->scale_block, shape, axis);
  double *scale = laci_arena_alloc(&analysis->arena, (size_t)n, sizeof *scale);
  double *zero =
      source->zero_value >= 0 ? laci_arena_alloc(&analysis->arena, (size_t)n, sizeof *zero) : NULL;
  if (!scale || (source->zero_value >= 0 && !zero)) return false;
  for (int64_t k = 0; k < n; k++) scale[k] = 1;
  const int values[3] = {source->scale_value, source->factor_value, source->zero_value};
  for (int i = 0; i < 3; i++) {
    if (values[i] < 0) continue;
    int64_t count;
    const double *read = read_tensor_as_doubles(analysis, values[i], &count);
    if (!read || (count != n && (count != 1 || source->scale_block))) return false;
    for (int64_t k = 0; k < n; k++) {
      if (i < 2) scale[k] *= read[count == 1 ? 0 : k];
      else zero[k] = read[count == 1 ? 0 : k];
    }
  }
  set_scale_strides(view, shape, axis, source->scale_block);
  view->scale = scale;
  view->zero = zero;
  return true;
}

/* Sets the grid (scales and zero points) to which a float weight is rounded, if the graph quantizes
 * it between the stored tensor and the layer. Returns false where its scales cannot be read. */
static bool set_quantization_grid(laci_analysis *analysis, const laci_weight_source *source,
                                  laci_layer *layer) {
  const laci_graph *graph = analysis->graph;
  if (source->grid_node < 0 || (!source->grid_after_scales && source->scale_value >= 0))
    return true;
  const laci_node *node = &graph->nodes[source->grid_node];
  laci_weight_grid *grid = laci_arena_alloc(&analysis->arena, 1, sizeof *grid);
  if (!grid) return false;
  laci_weight_view *to = &grid->to;
  const int zero = node->n_inputs > 2 ? node->inputs[2] : -1;
  set_scale_strides(to, &graph->stored[source->stored].shape, source->grid_axis,
                    source->grid_block);
  int64_t n_scales, n_zeros = to->n_scales;
  to->dtype = graph->values[node->outputs[0]].type.dtype;
  to->scale = read_tensor_as_doubles(analysis, node->inputs[1], &n_scales);
  if (zero >= 0) to->zero = read_tensor_as_doubles(analysis, zero, &n_zeros);
  if (!to->scale || (zero >= 0 && !to->zero)) return false;
  grid->precision = laci_quantizer_precision(node, graph->values[node->inputs[1]].type.dtype);
  grid->rounding = laci_node_rounding_flags(node);
  grid->after_scales = source->grid_after_scales;
  if (n_scales == to->n_scales && n_zeros == to->n_scales) layer->view.grid = grid;
  return true;
}

/* Finds scales and zero points that a layer with integer weights has as inputs. Returns false where
 * they are computed, or are not one number or one for each output channel. */
static bool find_input_scales(const laci_graph *graph, const laci_node *node,
                              const laci_weight_axes *axes, laci_weight_source *source) {
  const int ports[2] = {axes->scale_port, axes->zero_port};
  int *const values[2] = {&source->scale_value, &source->zero_value};
  for (int i = 0; i < 2; i++) {
    if (ports[i] == 0) continue;
    int value = node->inputs[ports[i]];
    if (value < 0) continue;
    const laci_value *v = &graph->values[laci_graph_skip_copies(graph, value)];
    if (v->stored < 0 || *values[i] >= 0 || v->type.shape.rank > 1) return false;
    if (i == 1 && v->type.dtype != graph->stored[source->stored].dtype) return false;
    *values[i] = value;
    if (laci_shape_count(&v->type.shape) != 1) source->scale_axis = source->axis_of[axes->k_axis];
  }
  return true;
}

/* Sets the scales of a normalized weight: g / |v| along its axis. Returns the reason if this
 * fails. */
static const char *set_norm_scales(laci_analysis *analysis, const laci_weight_source *source,
                                   laci_layer *layer) {
  const laci_graph *graph = analysis->graph;
  const laci_stored *v = &graph->stored[source->stored];
  int64_t count, n = v->shape.dims[source->norm.axis];
  layer->gain = graph->values[source->norm.g].stored;
  layer->gain_axis = source->norm.axis;
  layer->product = source->product;
  double *scale = laci_arena_alloc(&analysis->arena, (size_t)n, sizeof *scale);
  const double *g = scale ? read_tensor_as_doubles(analysis, source->norm.g, &count) : NULL;
  if (!g) return "there is no memory for its norms";
  laci_acquired_bytes held;
  if (laci_stored_acquire(graph, v, &held, NULL)) return "its weight cannot be read for its norms";
  laci_compute_norms_along_axis(v, held.bytes, layer->gain_axis, scale);
  laci_bytes_release(&held);
  for (int64_t k = 0; k < n; k++) {
    if (!(scale[k] > 0)) return "its weight is divided by a norm that is 0 or no number";
    scale[k] = g[k] / scale[k];
  }
  layer->view.n_scales = n;
  layer->view.scale_stride = stride_of_axis(&v->shape, layer->gain_axis);
  layer->view.scale = scale;
  return NULL;
}

/* Has a float weight a zero point other than 0? A mask writes 0, which would be another number
 * then. */
static bool has_float_zero_point(const laci_weight_view *view) {
  bool found = false;
  for (int64_t k = 0; view->zero && k < view->n_scales; k++) found |= view->zero[k] != 0;
  return found && laci_dtype_is_float(view->dtype);
}

/* Is a factor 0? Such factors are a mask of channels, whose zeros the stored tensor does not
 * have. */
static bool has_zero_scale(const laci_weight_view *view) {
  bool found = false;
  for (int64_t k = 0; view->scale && k < view->n_scales && !found; k++) found = view->scale[k] == 0;
  return found;
}

/* Sets the numbers of channels in each group, for a weight with sizes k and c along its k_axis and
 * c_axis. */
static void set_channel_counts(const laci_weight_axes *axes, int64_t k, int64_t c,
                               laci_layer *layer) {
  bool groups_along_c =
      axes->c_axis < axes->k_axis && axes->groups > 1; /* ConvTranspose: axis 0 holds all groups */
  layer->groups = axes->groups;
  layer->channels_in = groups_along_c ? c / axes->groups : c;
  layer->channels_out = groups_along_c ? k : k / axes->groups;
}

/* Returns the layout of a weight of that shape; name, type and bytes are not set. */
static laci_weight_view make_weight_view(const laci_layer *layer, const laci_shape *shape) {
  return (laci_weight_view){.outer = laci_shape_count_range(shape, 0, layer->c_axis),
                            .columns = shape->dims[layer->c_axis],
                            .inner = stride_of_axis(shape, layer->c_axis),
                            .run = layer->channels_in,
                            .rows = shape->dims[layer->k_axis],
                            .row_step = stride_of_axis(shape, layer->k_axis),
                            .row_run = layer->channels_out};
}

bool laci_layer_fill_computed_view(const laci_analysis *analysis, const laci_layer *layer,
                                   lac_dtype dtype, const uint8_t *bytes, laci_weight_view *view) {
  const laci_value *value = &analysis->graph->values[layer->weight];
  if (layer->stored >= 0 || !laci_shape_is_known(&value->type.shape)) return false;
  *view = make_weight_view(layer, &value->type.shape);
  view->name = value->name;
  view->dtype = dtype;
  view->bytes = bytes;
  return true;
}

/* Describes a layer with a stored weight. Returns false where the operand is not a stored weight of
 * a valid shape. */
static bool describe_stored_weight(laci_analysis *analysis, int node_id,
                                   const laci_weight_axes *axes, laci_layer *layer) {
  const laci_graph *graph = analysis->graph;
  laci_weight_source source;
  int value = graph->nodes[node_id].inputs[axes->port];
  if (value < 0 || !laci_trace_weight(graph, value, &source)) return false;
  bool own = find_input_scales(graph, &graph->nodes[node_id], axes, &source);
  const laci_stored *stored = &graph->stored[source.stored];
  const laci_shape *shape = &stored->shape;
  if (shape->rank < 2 || laci_shape_count(shape) <= 0 ||
      (!source.reshaped && shape->rank != graph->values[value].type.shape.rank))
    return false;
  if (source.axis_of[axes->k_axis] < 0 || source.axis_of[axes->c_axis] < 0) return false;
  *layer = (laci_layer){.node = node_id,
                        .stored = source.stored,
                        .weight = value,
                        .computed = -1,
                        .k_axis = source.axis_of[axes->k_axis],
                        .c_axis = source.axis_of[axes->c_axis],
                        .gain = -1,
                        .group_c = -1,
                        .group_k = -1};
  int64_t c = shape->dims[layer->c_axis], k = shape->dims[layer->k_axis];
  set_channel_counts(axes, k, c, layer);
  layer->view = make_weight_view(layer, shape);
  layer->view.name = stored->name;
  layer->view.dtype = stored->dtype;
  layer->view.bytes = stored->bytes;
  layer->view.bytes_from = graph->bytes_from;
  if (!set_scales(analysis, &source, layer)) layer->reason = "its scales run along two axes";
  else if (has_float_zero_point(&layer->view))
    layer->reason = "its floats have a zero point that is not 0";
  if (!set_quantization_grid(analysis, &source, layer))
    layer->reason = "the scales it is rounded by cannot be read";
  if (!own)
    layer->reason =
        "its scales or zero points are computed, of another type, or more than one a "
        "channel";
  if (source.normalized && own) layer->reason = set_norm_scales(analysis, &source, layer);
  if (axes->groups > 1 && (source.n_chain || source.normalized))
    layer->reason = "a grouped weight that is computed from a stored one";
  bool is_obstructed = layer->reason || (source.factor_value >= 0 && has_zero_scale(&layer->view));
  if (is_obstructed && (source.n_chain || source.normalized))
    layer->computed = laci_find_computed_value_to_store(graph, value, axes->groups > 1);
  return true;
}

/** Facts about values, from graph/constants.h. */
typedef struct value_facts {
  uint8_t *constants; /* [n_values] flags of laci_graph_find_constants */
  int *unknown;       /* [n_values] the result of laci_graph_find_unknown_nodes */
} value_facts;

/* Describes a layer whose weight is computed: constant, or constant if all operators were known.
 * Returns false for others. */
static bool describe_computed_weight(const laci_graph *graph, int node_id,
                                     const laci_weight_axes *axes, const value_facts *facts,
                                     laci_layer *layer) {
  const uint8_t *constants = facts->constants;
  int value = graph->nodes[node_id].inputs[axes->port];
  if (value < 0 || graph->values[value].stored >= 0) return false;
  if (!constants[value] && !facts->unknown[value]) return false;
  const laci_shape *shape = &graph->values[value].type.shape;
  if (laci_shape_is_known(shape) && (shape->rank < 2 || laci_shape_count(shape) <= 0)) return false;
  *layer = (laci_layer){.node = node_id,
                        .stored = -1,
                        .weight = value,
                        .computed = facts->unknown[value] ? -1
                                                          : laci_find_computed_value_to_store(
                                                                graph, value, axes->groups > 1),
                        .k_axis = axes->k_axis,
                        .c_axis = axes->c_axis,
                        .constant = constants[value] && !(constants[value] & LACI_IN_BODY),
                        .gain = -1,
                        .group_c = -1,
                        .group_k = -1};
  if (laci_shape_is_known(shape))
    set_channel_counts(axes, shape->dims[axes->k_axis], shape->dims[axes->c_axis], layer);
  return true;
}

/* Describes a layer whose weight is stored in packed blocks. */
static bool describe_packed_weight(const laci_graph *graph, int node_id, const value_facts *facts,
                                   laci_layer *layer) {
  const laci_node *node = &graph->nodes[node_id];
  const int port = node->op ? node->op->packed_weight : 0;
  if (port == 0 || port >= node->n_inputs || node->inputs[port] < 0) return false;
  const int value = node->inputs[port];
  if (!facts->constants[value] && !facts->unknown[value]) return false;
  *layer = (laci_layer){.node = node_id,
                        .stored = -1,
                        .weight = value,
                        .computed = -1,
                        .packed = true,
                        .c_axis = 1,
                        .groups = 1,
                        .channels_in = laci_node_int(node, "K", 0),
                        .channels_out = laci_node_int(node, "N", 0),
                        .gain = -1,
                        .group_c = -1,
                        .group_k = -1};
  return true;
}

/* Fills layer_of_node, and other_layer: for each layer the first other layer with the same stored
 * tensor. */
static bool index_layers(laci_analysis *analysis) {
  const int n_stored = analysis->graph->n_stored;
  int *first = laci_alloc((size_t)n_stored, sizeof *first);
  analysis->other_layer = laci_alloc((size_t)analysis->n_layers, sizeof *analysis->other_layer);
  if (!first || !analysis->other_layer) {
    laci_free(first);
    return false;
  }
  for (int s = 0; s < n_stored; s++) first[s] = -1;
  for (int l = 0; l < analysis->n_layers; l++) {
    int *of_stored = &first[analysis->layers[l].stored];
    analysis->other_layer[l] = *of_stored;
    if (*of_stored < 0) *of_stored = l;
    else if (analysis->other_layer[*of_stored] < 0) analysis->other_layer[*of_stored] = l;
  }
  laci_free(first);
  return true;
}

/* Is the node's output the same in every run? Then the node computes a part of a weight, and is no
 * layer. */
static bool has_constant_output(const laci_node *node, const uint8_t *constants) {
  return node->n_outputs > 0 && node->outputs[0] >= 0 && constants[node->outputs[0]];
}

/* Lists layers with a stored weight, or (computed) those with a computed one. */
static void list_weight_layers(laci_analysis *analysis, const value_facts *facts, bool computed) {
  const laci_graph *graph = analysis->graph;
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    laci_weight_axes axes[2];
    int candidates = node->op && node->op->weights && !has_constant_output(node, facts->constants)
                         ? node->op->weights(graph, node, axes)
                         : 0;
    if (!computed) analysis->layer_of_node[n] = -1;
    else if (analysis->layer_of_node[n] >= 0 && !node->op->each_weight) candidates = 0;
    for (int i = 0; i < candidates; i++) {
      laci_layer *layer = &analysis->layers[analysis->n_rows];
      laci_layer stored;
      bool is_stored = describe_stored_weight(analysis, n, &axes[i], &stored);
      if (computed ? is_stored || !describe_computed_weight(graph, n, &axes[i], facts, layer)
                   : !is_stored)
        continue;
      if (!computed) {
        *layer = stored;
        analysis->layer_of_node[n] = analysis->n_rows;
      }
      analysis->n_rows++;
      if (!node->op->each_weight) break;
    }
    if (computed && describe_packed_weight(graph, n, facts, &analysis->layers[analysis->n_rows]))
      analysis->n_rows++;
  }
}

lac_status laci_find_layers(laci_analysis *analysis, const laci_rules *rules, lac_error *err) {
  const laci_graph *graph = analysis->graph;
  size_t most = (size_t)graph->n_nodes * sizeof(laci_weight_axes[2]) / sizeof(laci_weight_axes);
  value_facts facts = {.constants = laci_graph_find_constants(graph)};
  if (facts.constants) facts.unknown = laci_graph_find_unknown_nodes(graph, facts.constants);
  analysis->layers = laci_alloc(most + 1, sizeof *analysis->layers);
  analysis->layer_of_node = laci_alloc((size_t)graph->n_nodes, sizeof *analysis->layer_of_node);
  lac_status st = LAC_OK;
  if (!facts.unknown || !analysis->layers || !analysis->layer_of_node)
    st = laci_fail_memory(err, "the layers");
  if (!st) {
    list_weight_layers(analysis, &facts, false);
    analysis->n_layers = analysis->n_rows;
    list_weight_layers(analysis, &facts, true);
    st = laci_classify_computed_weights(analysis, facts.constants, facts.unknown, err);
  }
  laci_free(facts.constants);
  laci_free(facts.unknown);
  if (!st && !index_layers(analysis)) st = laci_fail_memory(err, "the layers");
  return st ? st : laci_decide_layer_eligibility(analysis, rules, err);
}
