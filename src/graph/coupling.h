/* SPDX-License-Identifier: Apache-2.0
 * How the axes of an operator's inputs and outputs correspond: data that op->couple writes and
 * `analyze` interprets.
 *
 * Every axis of every port (input or output) gets a *label*, as in an einsum. Reordering the
 * indices of one label at all places that carry it, together, must commute with the operator. Conv:
 * x[n c h w] weight[k c . .] bias[k] -> y[n k . .]. The rules:
 *   - the same label at two places: the same index runs over both (sizes are equal);
 *   - a label only in inputs: the axis is reduced, so its order does not matter (sum, max, mean);
 *   - a label only in an output: *uniform*, all indices along it hold the same content (Expand of a
 *     size-1 axis);
 *   - LACI_FIXED: nothing is known of the axis, or its order matters: nothing may move along it;
 *   - LACI_MAPPED: the axis is described by a map (Concat, Slice, Gather, Pad ...).
 *
 * A size-1 axis that is broadcast against a longer one gets a fresh label that no other axis has.
 * Ports that couple() does not describe are FIXED on all axes, so a forgotten port is safe.
 * Channels that two axes make up (heads x size) are found by `analyze`: an operator only describes
 * axes. */
#ifndef LACI_GRAPH_COUPLING_H
#define LACI_GRAPH_COUPLING_H

#include "tensor/shape.h"

typedef struct laci_arena laci_arena;
typedef struct laci_graph laci_graph;
typedef struct laci_node laci_node;

enum { LACI_FIXED = 0, LACI_MAPPED = -1 };

/** The port number of output i. Inputs have port numbers from 0 on, so that a port and an axis
 * together name any axis of a node. */
#define LACI_OUT(i) (-1 - (i))

/** Names virtual axis k, which belongs to no port of the node. Several maps may have it as their
 * output axis: all input positions that they read for one position of it form one channel. Used for
 * the queries and keys of a packed weight, whose products are summed inside the operator. */
#define LACI_VIRTUAL_AXIS(k) (-2 - (k))

/** Position start + i of an output axis (out_port, out_axis), 0 <= i < n, reads position from[i] of
 * an input axis (in_port, in_axis); -1: it reads nothing (a constant fill). The map says nothing of
 * the output positions before and after these n. Both axes are LACI_MAPPED. Several maps may share
 * an output axis (Concat: one run for each input) or an input axis (Split). Where several maps
 * cover the same output position (DepthToSpace: one map for each block offset), all input positions
 * that they name belong to its channel. A scalar index (Gather) leaves out_axis == -1: one virtual
 * output position. n_out: size of the output axis (1 when virtual). Memory and time grow with the
 * lengths of runs, not with n_out for each map: a Concat may have ten thousand inputs.
 * LACI_VIRTUAL_AXIS(k) as output axis: an axis of no port, which several maps share. */
typedef struct laci_axis_map {
  int out_port, out_axis, in_port, in_axis;
  int64_t n_out, start, n;
  int32_t *from; /* [n], allocated in the arena of the coupling */
} laci_axis_map;

/** The positions of an axis are divided into n_parts equal runs; no channel may move from one run
 * to another (grouped convolution). */
typedef struct laci_axis_parts {
  int port, axis;
  int64_t n_parts;
} laci_axis_parts;

/** The weight of a grouped Conv. Its row axis `row_axis` has n_groups runs of equal length, and
 * each run has its own channel order along `axis`. That order is the part of (data_port, data_axis)
 * that the group reads: position j of group g is channel g * size(axis) + j there. */
typedef struct laci_grouped_axis {
  int port, row_axis, axis;
  int data_port, data_axis;
  int64_t n_groups;
} laci_grouped_axis;

/** Positions [start, start + n) of a LACI_MAPPED axis must stay in place. */
typedef struct laci_axis_hold {
  int port, axis;
  int64_t start, n;
} laci_axis_hold;

typedef struct laci_port_labels {
  bool described; /* false: all axes are FIXED */
  /* set for an output whose contents come from a later node (the end of a loop): this node ties its
   * axes to no other axes, and that later node does */
  bool fresh;
  int label[LACI_MAX_RANK];
} laci_port_labels;

typedef struct laci_coupling {
  const laci_graph *graph;
  const laci_node *node;
  laci_arena *arena;
  laci_port_labels *in, *out; /* [n_inputs] and [n_outputs] the labels of the node's inputs and
                                 outputs */
  int n_labels;               /* labels 1 .. n_labels are in use */
  /* [label] 1: the operator normalizes along the axes of this label. Their order then matters,
   * unless it normalizes along all axes that share this order */
  uint8_t *normalized;
  size_t normalized_capacity;
  laci_axis_map *maps;
  size_t n_maps, map_capacity;
  laci_axis_parts *parts;
  size_t n_parts, part_capacity;
  laci_grouped_axis *grouped;
  size_t n_grouped, grouped_capacity;
  laci_axis_hold *holds;
  size_t n_holds, hold_capacity;
  bool reshape;    /* output 0 is input 0, the same elements in the same order under other axes */
  bool no_memory;  /* a helper ran out of memory; laci_coupling_status() then fails */
  const char *why; /* why FIXED axes are fixed: "order matters to ArgMax"; NULL: a default text */
} laci_coupling;

/* Helpers for couple(). All return the label, or 0 / false when there is no memory (couple then
 * returns LAC_NO_MEMORY: the result of laci_coupling_status() at its end). */
int laci_coupling_new_label(laci_coupling *c); /* returns a fresh label */
void laci_coupling_set_label(laci_coupling *c, int port, int axis,
                             int label); /* sets the label of an axis, where a negative axis counts
                                            from the last one; marks the port as described */
int laci_coupling_get_label(const laci_coupling *c, int port, int axis);
const laci_shape *laci_port_shape(const laci_coupling *c,
                                  int port); /* returns the shape of a port; NULL: the port is
                                                absent, or its rank is not known */
void laci_coupling_mark_described(laci_coupling *c, int port); /* marks the port as described; its
                                                                  axes stay FIXED until they get
                                                                  labels */
void laci_coupling_set_fresh_labels(laci_coupling *c, int port, int from,
                                    int to); /* sets a fresh label on each axis in [from, to) */
/** The n given input ports are read elementwise, with NumPy broadcasting, and give output 0: sets
 * labels for every axis. For unary operators: ports = {0}, n = 1. */
void laci_couple_broadcast_ports(laci_coupling *c, const int *ports, int n);
/** Output `out_port` has the same axes as input `in_port`, in the same order: sets equal labels. */
void laci_couple_equal_axes(laci_coupling *c, int in_port, int out_port);
/** Gives n ports (inputs or outputs) the same labels, axis by axis. Equal labels mean one channel
 * order. An axis whose sizes differ or are not known is FIXED, and so are all axes where a shape is
 * not known. */
void laci_couple_equal_ports(laci_coupling *c, const int *ports, int n);
/** Marks an output whose contents come from a later node, which ties its axes to others
 * (laci_port_labels.fresh). */
void laci_coupling_mark_output_fresh(laci_coupling *c, int port);
void laci_coupling_mark_label_normalized(laci_coupling *c, int label);
/** Adds a map of the whole output axis. from[] is all -1, and the caller fills it. Makes both axes
 * MAPPED. NULL: no memory. */
laci_axis_map *laci_coupling_add_map(laci_coupling *c, int out_port, int out_axis, int in_port,
                                     int in_axis, int64_t n_out);
/** Adds a map of a run of positions of the output axis. `map` has all fields except `from`, which
 * this function allocates and fills with -1, as laci_coupling_add_map does. */
laci_axis_map *laci_coupling_add_map_of_run(laci_coupling *c, laci_axis_map map);
/** Adds a map of a run of positions of the output axis as laci_coupling_add_map_of_run does. These
 * read consecutive positions of the input axis, the first one at `from`. */
void laci_coupling_add_map_of_consecutive(laci_coupling *c, laci_axis_map map, int64_t from);
bool laci_coupling_add_axis_parts(laci_coupling *c, int port, int axis, int64_t n_parts);
bool laci_coupling_add_axis_hold(laci_coupling *c, laci_axis_hold hold);
bool laci_coupling_add_grouped_axis(laci_coupling *c, laci_grouped_axis grouped);
lac_status laci_coupling_status(laci_coupling *c);

/** Initializes *c and fills it by the operator's couple function; the caller calls
 * laci_coupling_clear. All ports are FIXED where a shape is unknown, or where couple does not
 * describe an input that is not one of inputs_without_channels (op.h), so no connected operand is
 * ignored. For nodes that begin or end bodies, each group of ports follows this rule by itself. */
LAC_MUST_CHECK lac_status laci_couple_node(laci_coupling *c, const laci_graph *graph,
                                           const laci_node *node);
LAC_MUST_CHECK lac_status laci_coupling_init(laci_coupling *c, const laci_graph *graph,
                                             const laci_node *node);
void laci_coupling_clear(laci_coupling *c);

#endif
