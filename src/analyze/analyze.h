/* SPDX-License-Identifier: Apache-2.0
 * The analysis: layers, groups of channels that may be reordered, and what prevents reordering.
 *
 * tracks_in.h defines tracks, classes_in.h classes; this header is the interface for other
 * folders. */
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
  /* padding: the input channels of matrix products count as rounded up to the next eligible number;
   * all_sizes: any number of channels is accepted; recurrent: layers of LSTM, GRU and RNN, too */
  bool padding, all_sizes, recurrent;
  const laci_target_choice *targets; /* [n_targets] inference targets; only layers that all targets
                                        accept are pruned */
  int n_targets;
  /* regular expressions (base/expression.h) on names of nodes or weights; NULL: none */
  const char *include, *exclude;
  const laci_budget *budget; /* memory limit, and the memory that others use; NULL: no limit */
} laci_rules;

/** A node with a weight that is stored, or is computed from stored tensors alone. Axes are those of
 * the stored tensor. */
typedef struct laci_layer {
  int node, stored; /* index of the node, and of the stored tensor that holds its weight; stored is
                       -1 if the weight is computed, and `view` is then not set */
  int weight;       /* index of the value that the node reads as its weight */
  /* index of the value that a stored tensor could replace, so that the weight could be pruned; -1:
   * the weight is stored already, or depends on unknown values */
  int computed;
  /* the value `computed` can be replaced by a stored tensor, since it is the same in every run and
   * exact */
  bool storable;
  bool alone; /* the value `computed` can be replaced by a stored tensor, and no other node reads
                 the tensors from which it is computed */
  /* the file stores the weight in packed blocks, in another shape than the weight's (stored is
   * -1) */
  bool packed;
  /* the weight is a constant, quantized or not, whose content can be computed (stored is -1) */
  bool constant;
  int k_axis, c_axis;
  int64_t groups;                    /* number of convolution groups; 1 for other layers */
  int64_t channels_in, channels_out; /* number of input and of output channels of each convolution
                                        group */
  /* the layout of the weight, with its bytes at the time of the analysis */
  laci_weight_view view;
  bool eligible;
  bool odd_size; /* not eligible only because of a size that Tensor Cores do not accept */
  bool declined; /* a target does not accept the layer */
  /* index of the stored tensor g of a weight g * v / |v|, whose v gets the mask; -1: the weight is
   * not computed so */
  int gain;
  int gain_axis; /* the axis of v along which g runs (see `gain`) */
  int product;   /* index of the value g * v / |v| (see `gain`) */
  /* some input channels belong to a group of at least two channels that may be reordered */
  bool searchable;
  int group_c, group_k; /* indices into laci_analysis.groups: the group of channels that holds the
                           layer's input channels (c), and that of its output channels (k); -1:
                           none */
  /* why the layer is not eligible; for an eligible layer, why it is not searchable; NULL: it is
   * eligible and searchable */
  const char *reason;
} laci_layer;

/** The columns of one layer's weight that belong to a group of channels: channel c of the group is
 * column[c] of the weight, in the rows of the convolution group conv_group (-1: in all rows). A
 * group has one consumer in a layer for each copy of its channels that the layer reads. */
typedef struct laci_consumer {
  int layer, conv_group;
  const int32_t *column; /* [n_channels] the column of the weight at which each channel is */
} laci_consumer;

/** Computes norms[k], the root of the sum of squares at index k of the axis; `bytes` are those of
 * the stored tensor. */
void laci_compute_norms_along_axis(const laci_stored *stored, const uint8_t *bytes, int axis,
                                   double *norms);

/** Channels that are reordered together: one order, in all layers that read or produce them.
 * frozen: all of them must stay in their places. A convolution's groups are called conv_groups. */
typedef struct laci_group {
  int n_channels;
  bool frozen;
  const char *cause;
  int class_id; /* index of its class; -1: frozen */
  int n_consumers, n_layers,
      /* lengths of the arrays `consumers`, `layers` and `producers` */
      n_producers;
  const laci_consumer *consumers;
  const int *layers;    /* [n_layers] indices of the eligible layers that read the group's channels,
                           ascending, each once */
  const int *producers; /* [n_producers] indices of the layers whose output channels are the
                           group's */
} laci_group;

/** An axis of a stored tensor. conv_groups > 0: the tensor is the weight of a grouped convolution
 * with so many groups. A track is a set of axes that must share one channel order. */
typedef struct laci_stored_axis {
  int stored, axis, conv_groups;
} laci_stored_axis;

typedef struct laci_analysis {
  const laci_graph *graph;
  laci_arena arena;
  struct laci_tracks *tracks;
  struct laci_classes *classes;
  int n_layers; /* layers with a stored weight */
  /* number of rows of `layers`; rows from n_layers on have a computed weight and are not eligible
   */
  int n_rows;
  /* number of groups; the first n_searchable of them may be reordered and have an eligible consumer
   */
  int n_groups, n_searchable;
  laci_layer *layers;
  int *layer_of_node; /* [n_nodes] index in `layers` of each node's layer; -1: none */
  int *other_layer;   /* [n_layers] index of the first other layer whose weight is the same stored
                         tensor; -1: there is none */
  laci_group *groups;
  int *stored_first; /* [n_tracks + 1] index in stored_axes at which the axes of each track (set of
                        tied axes) begin */
  laci_stored_axis *stored_axes;
} laci_analysis;

/** Fails LAC_BAD_ARGUMENT where the targets of the rules accept no layer at all, for nothing in the
 * file would be pruned. */
LAC_MUST_CHECK lac_status laci_analysis_check_targets(const laci_analysis *analysis,
                                                      lac_error *err);

/** The graph must be inferred already and must outlive the analysis. Fails LAC_BAD_ARGUMENT for a
 * bad regular expression, LAC_NO_MEMORY, LAC_MEMORY_LIMIT (the analysis keeps data for every
 * position of an axis, and this exceeds the budget). */
LAC_MUST_CHECK lac_status laci_analyze(const laci_graph *graph, const laci_rules *rules,
                                       laci_analysis **analysis, lac_error *err);
void laci_analysis_destroy(laci_analysis *analysis);

/** Fills *view, the layout of a computed weight, as if it were stored. bytes: its elements, of type
 * dtype. Returns false if its shape is not known. */
bool laci_layer_fill_computed_view(const laci_analysis *analysis, const laci_layer *layer,
                                   lac_dtype dtype, const uint8_t *bytes, laci_weight_view *view);

/** Fills *out with the facts of a layer that inference targets are asked about; *out points into
 * the analysis and its graph. */
void laci_analysis_describe_target_layer(const laci_analysis *analysis, int layer,
                                         laci_target_layer *out);

/** Describes the path from the node to the first cause that keeps its input (or output) channels in
 * place, one line for each step; the caller frees *text by laci_free. Fails LAC_NOT_FOUND for an
 * unknown node. */
LAC_MUST_CHECK lac_status laci_analysis_explain_node(const laci_analysis *analysis,
                                                     const char *node, char **text, lac_error *err);

/** Whether the channels of node's output 0 can move, for drawings of a network. */
typedef struct laci_node_mobility {
  bool free;   /* some axis of the node's outputs has channels that may be reordered */
  bool blocks; /* the node itself is the first cause that keeps channels from being reordered */
} laci_node_mobility;
void laci_analysis_find_node_mobility(const laci_analysis *analysis, int node,
                                      laci_node_mobility *channels);

/** A slot of a group: for each of the group's channels, its position on one track, that is, on a
 * set of axes that share one channel order. A group has a slot for every copy of its channels on
 * every track. Used for the permutation file and to match two models. */
typedef struct laci_slot {
  int track;               /* number of a root track (analyze/tracks_in.h) */
  const int32_t *position; /* [n_channels] the position of each channel on the track */
} laci_slot;
int laci_group_count_slots(const laci_analysis *analysis, int group);
laci_slot laci_group_slot(const laci_analysis *analysis, int group, int slot);

/** Return the number of tracks (sets of tied axes), and the number of positions of a track: 0 if it
 * was merged into another track. */
int laci_analysis_count_tracks(const laci_analysis *analysis);
int64_t laci_track_count_positions(const laci_analysis *analysis, int track);

/** The axes of a value that belong to one track: the position on the track is the row-major index
 * over these axes. n_groups and row_axis: see laci_axis_order. */
typedef struct laci_value_axes {
  int track; /* number of a root track (analyze/tracks_in.h) */
  int n_axes;
  int axes[LACI_MAX_RANK]; /* in row-major order, slowest first */
  int64_t n_groups;
  int row_axis;
} laci_value_axes;
/** Fills axes (capacity: LACI_MAX_RANK) and returns how many there are. */
int laci_value_find_track_axes(const laci_analysis *analysis, int value, laci_value_axes *axes);

/** Checks the orders of all tracks (order[track]: new position -> old position, NULL: identity):
 * each position is used once, frozen positions stay, and ties between tracks (links) and between
 * positions (tags) are respected. *group is -1 if the orders are valid; else the first group that
 * breaks a rule, or -2 if the fault is in no group. Orders that are not valid are a bug in the
 * analysis. Returns false, *group unset, if there is no memory for the check. */
bool laci_analysis_check_orders(const laci_analysis *analysis, int32_t *const *order, int *group);

/** Calls visit for every axis of a stored tensor that belongs to the track (set of tied axes).
 * conv_groups > 0: the tensor is the weight of a grouped convolution. */
typedef void laci_stored_axis_visit(int stored, int axis, int conv_groups, void *context);
void laci_track_visit_stored_axes(const laci_analysis *analysis, int track,
                                  laci_stored_axis_visit *visit, void *context);

#endif
