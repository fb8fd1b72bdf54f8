/* SPDX-License-Identifier: Apache-2.0
 * The analysis: layers, the groups of channels that may change places, and what prevents that.
 *
 * tracks_in.h says what a track is, classes_in.h what a class; this header is what the other rooms
 * see. */
#ifndef LACI_ANALYZE_ANALYZE_H
#define LACI_ANALYZE_ANALYZE_H

#include "base/memory.h"
#include "sparse/weight_view.h"
#include "tensor/shape.h"

typedef struct laci_budget laci_budget;
typedef struct laci_target_choice laci_target_choice;
typedef struct laci_target_layer laci_target_layer;
typedef struct laci_graph laci_graph;
typedef struct laci_stored laci_stored;

/** Which layers are to be pruned. */
typedef struct laci_rules {
  laci_pattern pattern;
  bool padding, all_sizes;
  const laci_target_choice *targets; /* [n_targets]: only what all of these take, too */
  int n_targets;
  const char *include,
      *exclude; /* regular expressions (base/expression.h) on node or weight names; NULL: none */
  const laci_budget *budget; /* the limit, and what others hold; NULL: no limit */
} laci_rules;

/** A node with a weight that is stored, or follows from stored tensors alone. Axes are those of the
 * stored tensor. */
typedef struct laci_layer {
  int node, stored; /* stored -1: the weight is computed, and there is no view */
  int weight;       /* the value that the node reads */
  int computed;  /* a value from which on the weight could be a stored tensor, were it stored; -1:
                    it is one already, or what it is made of is not known */
  bool storable; /* ... and it can be: it is the same in every run, and exact */
  bool alone;    /* ... and nothing else reads what it is made of */
  bool packed;   /* stored -1: it is stored in blocks, and its shape is not that of the value */
  bool constant; /* stored -1: its content can be looked at, quantized or not */
  int k_axis, c_axis;
  int64_t groups;                    /* convolution groups */
  int64_t channels_in, channels_out; /* per group */
  laci_weight_view view;             /* bytes as they were when the analysis was made */
  bool eligible;
  bool odd_size;   /* it would be eligible, were it not for a size that Tensor Cores do not take */
  bool declined;   /* a target does not take it */
  int gain;        /* stored tensor g of a weight g * v / |v|, of which v is masked; -1: none */
  int gain_axis;   /* of v, along which g runs */
  int product;     /* the value that both make */
  bool searchable; /* an input channel belongs to a group of two or more that is free */
  int group_c, group_k; /* index into groups, -1: none */
  const char *reason;   /* why it is not eligible, or else not searchable; NULL: nothing to say */
} laci_layer;

/** Places of a group in the input axis of one layer: column[c] of the weight, for rows of
 * convolution group conv_group
 *  (-1: all rows). Slots of one group in one layer differ by their copy label. */
typedef struct laci_consumer {
  int layer, conv_group;
  const int32_t *column; /* [n_channels] */
} laci_consumer;

/** norms[k] = root of the sum of squares at index k of the axis, in bytes of the stored tensor. */
void laci_norms_along(const laci_stored *stored, const uint8_t *bytes, int axis, double *norms);

typedef struct laci_group {
  int n_channels;
  bool frozen;
  const char *cause;
  int class_id; /* of the classes; -1: frozen */
  int n_consumers, n_layers,
      n_producers; /* consumers: eligible layers' slots; layers: distinct ones */
  const laci_consumer *consumers;
  const int *layers;    /* [n_layers] eligible layers that consume it, ascending */
  const int *producers; /* [n_producers] layers whose output channels it is */
} laci_group;

/** An axis of a stored tensor that belongs to a track. */
typedef struct laci_stored_axis {
  int stored, axis, conv_groups;
} laci_stored_axis;

typedef struct laci_analysis {
  const laci_graph *graph;
  laci_arena arena;
  struct laci_tracks *tracks;
  struct laci_classes *classes;
  int n_layers; /* with a stored weight */
  int n_rows;   /* layers [n_layers, n_rows) have a computed one; they are not eligible */
  int n_groups, n_searchable; /* groups [0, n_searchable) are free and have an eligible consumer */
  laci_layer *layers;
  int *layer_of_node; /* [n_nodes] index into layers, -1: none */
  int *other_layer;   /* [n_layers] the first other layer of the same stored tensor, -1: none */
  laci_group *groups;
  int *stored_first; /* [n_tracks + 1] where the axes of a track begin in stored_axes */
  laci_stored_axis *stored_axes;
} laci_analysis;

/** Fails LAC_BAD_ARGUMENT where targets of the rules take no layer at all: a file pruned for them
 * would hold nothing that is pruned. */
LAC_MUST_CHECK lac_status laci_analysis_check_targets(const laci_analysis *analysis,
                                                      lac_error *err);

/** The graph must be inferred already and must outlive the analysis. Fails LAC_BAD_ARGUMENT for a
 * bad regular expression, LAC_NO_MEMORY, LAC_MEMORY_LIMIT (axes of so many positions that what is
 * kept of each is above the budget). */
LAC_MUST_CHECK lac_status laci_analyze(const laci_graph *graph, const laci_rules *rules,
                                       laci_analysis **analysis, lac_error *err);
void laci_analysis_destroy(laci_analysis *analysis);

/** A computed weight of known shape, whose elements are `bytes` of that type, as stored ones are
 * seen. False: its shape is not known. */
bool laci_layer_view_computed(const laci_analysis *analysis, const laci_layer *layer,
                              lac_dtype dtype, const uint8_t *bytes, laci_weight_view *view);

/** A layer as targets see it: a view of the analysis and its graph. */
void laci_analysis_target_layer(const laci_analysis *analysis, int layer, laci_target_layer *out);

/** One line a step, from the node to the first cause that keeps its input (or output) channels in
 * place; text from laci_alloc. Fails LAC_NOT_FOUND. */
LAC_MUST_CHECK lac_status laci_analysis_why(const laci_analysis *analysis, const char *node,
                                            char **text, lac_error *err);

/** Whether the channels of node's output 0 can move, for drawings of a network. */
typedef struct laci_node_channels {
  bool free;   /* some axis of its outputs holds a group that is free (searched or not) */
  bool blocks; /* it is itself the first cause that something is frozen */
} laci_node_channels;
void laci_analysis_node(const laci_analysis *analysis, int node, laci_node_channels *channels);

/** First place of group's channel c in slot s, for the permutation file and for matching two
 * models: walks all slots. A slot is a set of positions of one track, one a channel. */
typedef struct laci_slot {
  int track;               /* root */
  const int32_t *position; /* [n_channels] */
} laci_slot;
int laci_group_slots(const laci_analysis *analysis, int group);
laci_slot laci_group_slot(const laci_analysis *analysis, int group, int slot);

/** Tracks are numbered [0, n); only roots have positions (size 0 otherwise). */
int laci_analysis_tracks(const laci_analysis *analysis);
int64_t laci_track_size(const laci_analysis *analysis, int track);

/** Axes of a value that belong to a track: position = row-major index over axes. n_groups > 0: see
 * laci_axis_order. */
typedef struct laci_value_axes {
  int track; /* root */
  int n_axes;
  int axes[LACI_MAX_RANK]; /* slowest first */
  int64_t n_groups;
  int row_axis;
} laci_value_axes;
/** Fills axes (capacity: LACI_MAX_RANK) and returns how many there are. */
int laci_value_on_tracks(const laci_analysis *analysis, int value, laci_value_axes *axes);

/** The certificate: do the orders of all tracks (order[track]: new place -> old position, NULL:
 * identity) take each position once and respect every link, tag and frozen position? *group -1:
 * yes; else the group (or -2) that breaks one, which is a mistake of the analysis. False: no memory
 * to look. */
bool laci_analysis_certify(const laci_analysis *analysis, int32_t *const *order, int *group);

/** The (single-axis) places of a track in stored tensors: calls visit for each. conv_groups > 0: a
 * grouped weight. */
typedef void laci_stored_axis_visit(int stored, int axis, int conv_groups, void *context);
void laci_track_stored_axes(const laci_analysis *analysis, int track, laci_stored_axis_visit *visit,
                            void *context);

#endif
