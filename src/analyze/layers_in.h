/* SPDX-License-Identifier: Apache-2.0
 * Finding layers: private to analyze. */
#ifndef LACI_ANALYZE_LAYERS_IN_H
#define LACI_ANALYZE_LAYERS_IN_H

#include "tensor/shape.h"

typedef struct laci_analysis laci_analysis;
typedef struct laci_graph laci_graph;
typedef struct laci_layer laci_layer;
typedef struct laci_node laci_node;
typedef struct laci_rules laci_rules;

/** Fills analysis->layers, with each weight's layout (view), eligibility and reasons (layers.c). */
LAC_MUST_CHECK lac_status laci_find_layers(laci_analysis *analysis, const laci_rules *rules,
                                           lac_error *err);
/** Decides which layers are eligible (eligible.c); all readers of their weights are considered. */
LAC_MUST_CHECK lac_status laci_decide_layer_eligibility(laci_analysis *analysis,
                                                        const laci_rules *rules, lac_error *err);
/** For layers whose weight is computed: finds the reason why they are not pruned, and whether the
 * product may be stored (computed.c). constants: laci_graph_find_constants; unknown:
 * laci_graph_find_unknown_nodes. */
LAC_MUST_CHECK lac_status laci_classify_computed_weights(laci_analysis *analysis,
                                                         const uint8_t *constants,
                                                         const int *unknown, lac_error *err);
/** Returns the value to be stored in place of a computed weight `value`: the one before the
 * trailing Identity, Cast, Transpose and quantize-dequantize nodes, which change no element. If
 * there are only such nodes after a stored tensor, or if `whole` is set (as for grouped weights),
 * returns `value` itself. */
int laci_find_computed_value_to_store(const laci_graph *graph, int value, bool whole);
/** Sets the reason of layers that `include` and `exclude` leave out (names.c). Fails
 * LAC_BAD_ARGUMENT for an expression that is invalid or matches no layer, and where no layer is
 * left. */
LAC_MUST_CHECK lac_status laci_exclude_layers_by_names(laci_analysis *analysis,
                                                       const laci_rules *rules, lac_error *err);
/** Fills analysis->groups, and the layers' group_c, group_k, searchable (groups.c). */
LAC_MUST_CHECK lac_status laci_find_groups(laci_analysis *analysis, lac_error *err);

enum { LACI_NORM_NODES = 10 };

/** A weight normalization w = g * v / |v|, where the norm runs over all axes but one: the values v
 * and g, and the nodes between them and w. */
typedef struct laci_weight_norm {
  int v, g;
  int axis; /* the axis of v along which g runs; the norm sums over all others */
  int n_nodes, nodes[LACI_NORM_NODES];
} laci_weight_norm;

/** Is the value a weight normalization whose parts nothing else reads? */
bool laci_trace_weight_norm(const laci_graph *graph, int value, laci_weight_norm *out);

/** The stored tensor that the weight of a node comes from, and the nodes between them. */
typedef struct laci_weight_source {
  int stored;
  int n_chain;
  int chain[16]; /* nodes between the stored tensor and the layer, starting at the layer */
  /* [axis of the layer's weight] the corresponding axis of the stored tensor */
  int axis_of[LACI_MAX_RANK];
  int scale_value, zero_value,
      /* indices of the values that hold the scales and zero points of DequantizeLinear, and the
       * constant factors of Mul (factor_value); -1: there is no such value */
      factor_value;
  int scale_axis; /* axis of the stored tensor that scales run along; -1: one scale for all */
  /* number of neighbouring indices along scale_axis that share a scale, separately for each index
   * of all other axes; 0: one scale for each index along scale_axis */
  int64_t scale_block;
  int factor_axis; /* axis of the stored tensor that factors run along; -1: one factor */
  /* the QuantizeLinear node of a Quantize-Dequantize sequence after the float tensor; -1: none */
  int grid_node;
  int grid_axis; /* axis of the stored tensor along which the scales of grid_node run; -1: one scale
                    for all */
  int64_t grid_block;
  bool grid_after_scales; /* true: the weight is multiplied by the factor before it is quantized to
                             the grid */
  bool reshaped;          /* there is a Reshape between the stored tensor and the layer */
  bool normalized;        /* the stored tensor is norm.v, and `product` is computed from it */
  laci_weight_norm norm;
  int product;
} laci_weight_source;

/** Follows the value backwards to a stored tensor, through Identity, Cast, Transpose,
 * DequantizeLinear, a QuantizeLinear before it, Mul by a constant, a Reshape that keeps the axes
 * that matter, and a weight normalization. axis_of is -1 for an axis that a Reshape changed.
 * Returns false where the value does not come from a stored tensor through such nodes. */
bool laci_trace_weight(const laci_graph *graph, int value, laci_weight_source *source);

/** Does a DequantizeLinear node follow a QuantizeLinear node, *quantizer, that reads floats and has
 * the same stored scales and zero points? */
bool laci_is_quantize_dequantize(const laci_graph *graph, const laci_node *back, int *quantizer);

/** Returns the name of the stored tensor, or of the computed value. */
const char *laci_layer_weight_name(const laci_analysis *analysis, const laci_layer *layer);

/** Formats a text into the analysis' arena; NULL when there is no memory. */
const char *laci_analysis_format_text(laci_analysis *analysis, const char *format, ...)
    LAC_PRINTF(2, 3);

/** Returns a hint for a pattern that matches no layer: "; the nearest: conv1, conv2", the layers
 * with similar names; where none is similar, "; the layers are named conv1, conv2, ...". In the
 * analysis' arena. NULL: no memory. */
const char *laci_format_nearest_layers_hint(laci_analysis *analysis, const char *pattern);

#endif
