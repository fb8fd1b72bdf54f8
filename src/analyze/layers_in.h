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

/** Fills analysis->layers with view, eligibility and reasons (layers.c). */
LAC_MUST_CHECK lac_status laci_find_layers(laci_analysis *analysis, const laci_rules *rules,
                                           lac_error *err);
/** Decides which layers are eligible (eligible.c); the weights' other readers count too. */
LAC_MUST_CHECK lac_status laci_judge_layers(laci_analysis *analysis, const laci_rules *rules,
                                            lac_error *err);
/** Says of layers whose weight is computed why, and whether the product may be stored (computed.c).
 * constants: laci_graph_constants; unknown: laci_graph_unknown. */
LAC_MUST_CHECK lac_status laci_judge_computed(laci_analysis *analysis, const uint8_t *constants,
                                              const int *unknown, lac_error *err);
/** The value to be stored for a weight that is computed: before what only casts and transposes it;
 * whole: not before that. */
int laci_computed_value(const laci_graph *graph, int value, bool whole);
/** Gives layers that include and exclude leave out that reason (names.c). Fails LAC_BAD_ARGUMENT
 * for an expression that is none or matches no layer, and where nothing is left. */
LAC_MUST_CHECK lac_status laci_judge_by_names(laci_analysis *analysis, const laci_rules *rules,
                                              lac_error *err);
/** Fills analysis->groups, and the layers' group_c, group_k, searchable (groups.c). */
LAC_MUST_CHECK lac_status laci_find_groups(laci_analysis *analysis, lac_error *err);

enum { LACI_NORM_NODES = 10 };

/** w = g * v / |v|, the norm along all axes but one: values v and g, and the nodes in between. */
typedef struct laci_weight_norm {
  int v, g;
  int axis; /* of v, along which g runs; all others are summed over */
  int n_nodes, nodes[LACI_NORM_NODES];
} laci_weight_norm;

/** Is the value such a product, whose parts nothing else reads? */
bool laci_trace_weight_norm(const laci_graph *graph, int value, laci_weight_norm *out);

/** Where the weight of a node comes from. */
typedef struct laci_weight_source {
  int stored;
  int n_chain;
  int chain[16]; /* nodes between the stored tensor and the layer, from the layer backwards */
  int axis_of[LACI_MAX_RANK]; /* axis of the weight at the layer -> axis of the stored tensor */
  int scale_value, zero_value,
      factor_value;    /* DequantizeLinear's operands, Mul's constant; -1: none */
  int scale_axis;      /* axis of the stored tensor; -1: one scale for all */
  int64_t scale_block; /* places along it that share a scale; 0: one place, and all other axes */
  int factor_axis;     /* likewise */
  int grid;            /* QuantizeLinear of a pair that the float passes; -1: none */
  int grid_axis;       /* likewise, of its scales */
  int64_t grid_block;
  bool grid_after_scales; /* what is multiplied is so before */
  bool reshaped;          /* between the stored tensor and the layer */
  bool normalized;        /* the stored tensor is norm.v, `product` is made of it */
  laci_weight_norm norm;
  int product;
} laci_weight_source;

/** Follows value backwards through Identity, Cast, Transpose, DequantizeLinear, QuantizeLinear
 * before it, Mul by a constant,
 * a Reshape that leaves axes alone, and a weight normalization. axis_of is -1 for an axis that a
 * Reshape has made of others. False: it does not come from a stored tensor through such nodes. */
bool laci_trace_weight(const laci_graph *graph, int value, laci_weight_source *source);

/** Is a DequantizeLinear node the second of a pair of which the first, *quantizer, takes floats and
 * has the same stored scales and zero points? */
bool laci_is_quantized_pair(const laci_graph *graph, const laci_node *back, int *quantizer);

/** The stored tensor's name, or that of the value which is computed. */
const char *laci_layer_weight_name(const laci_analysis *analysis, const laci_layer *layer);

/** printf into the analysis' arena; NULL when there is no memory. */
const char *laci_analysis_text(laci_analysis *analysis, const char *format, ...) LAC_PRINTF(2, 3);

/** "; the nearest: conv1, conv2": names of layers that a pattern which matches none could have
 * meant; where none is near, "; the layers are named conv1, conv2, ...". In the analysis' arena.
 * NULL: no memory. */
const char *laci_nearest_layers(laci_analysis *analysis, const char *pattern);

#endif
