/* SPDX-License-Identifier: Apache-2.0
 * How an operator's axes hang together: a description in data, made by op->couple and interpreted
 * by `analyze`.
 *
 * Every axis of every port (input or output) gets a *label*, as in an einsum. Reordering the
 * indices of one label at all places that carry it, together, must commute with the operator. Conv:
 * x[n c h w] weight[k c . .] bias[k] -> y[n k . .]. The rules:
 *   - the same label at two places: the same index runs over both (sizes are equal);
 *   - label only in inputs: reduced over, so that the order does not matter (sum, max, mean);
 *   - label only in an output: *uniform*, all indices along it hold the same content (Expand of a
 *     size-1 axis);
 *   - LACI_FIXED: the operator says nothing, or order matters there: nothing may move along it;
 *   - LACI_MAPPED: the axis is described by a map (Concat, Slice, Gather, Pad ...).
 *
 * A size-1 axis that is broadcast against a longer one gets a fresh label of its own: it joins
 * nothing. Ports that couple() leaves untouched are wholly FIXED, so forgetting is safe. Composite
 * tracks (heads x size on two axes) are the interpreter's business: an operator only speaks of
 * axes. */
#ifndef LACI_GRAPH_COUPLING_H
#define LACI_GRAPH_COUPLING_H

#include "tensor/shape.h"

typedef struct laci_arena laci_arena;
typedef struct laci_graph laci_graph;
typedef struct laci_node laci_node;

enum { LACI_FIXED = 0, LACI_MAPPED = -1 };

/** A place: axis `axis` of input `port` (port >= 0) or of output ~port (port < 0; LACI_OUT(0) is
 * the first output). */
#define LACI_OUT(i) (-1 - (i))

/** As the out axis of maps: axis k of no value. What several maps read at one position of it is one
 * channel: the queries and keys of a packed weight, which meet in sums that no output shows. */
#define LACI_UNSEEN(k) (-2 - (k))

/** Out position start + i of (out_port, out_axis), 0 <= i < n, reads in position from[i] of
 * (in_port, in_axis); -1: reads nothing there (a constant fill). Of the out positions before and
 * after, the map says nothing. Both axes are LACI_MAPPED. Several maps may share an out axis
 * (Concat: a run each) or an in axis (Split); where several of them cover the same out position
 * (DepthToSpace: one map a block offset), all the in positions they name are one channel with it. A
 * scalar index (Gather) leaves out_axis == -1: one virtual out position. n_out == size of the out
 * axis (1 when virtual). An operator's maps together take memory and time for the runs that they
 * cover, not for n_out each: a Concat may have ten thousand. An out axis LACI_UNSEEN(k) is one that
 * only these maps share, and no port has. */
typedef struct laci_axis_map {
  int out_port, out_axis, in_port, in_axis;
  int64_t n_out, start, n;
  int32_t *from; /* [n] arena of the coupling */
} laci_axis_map;

/** Positions of an axis are cut into n_parts equal runs that nothing may cross (grouped
 * convolution). */
typedef struct laci_axis_parts {
  int port, axis;
  int64_t n_parts;
} laci_axis_parts;

/** The weight of a grouped Conv: along `axis` each of the n_groups runs of `row_axis` has its own
 * order, which is that run's part of (data_port, data_axis): position j of group g is channel g *
 * size(axis) + j there. */
typedef struct laci_grouped_axis {
  int port, row_axis, axis;
  int data_port, data_axis;
  int64_t n_groups;
} laci_grouped_axis;

/** Positions [start, start + n) of an axis that is mapped stay in place. */
typedef struct laci_axis_hold {
  int port, axis;
  int64_t start, n;
} laci_axis_hold;

typedef struct laci_port_labels {
  bool described; /* false: all FIXED */
  bool fresh; /* of an output: its contents come from a later node (a loop's end); each axis is a
                 track of its own, which that node joins */
  int label[LACI_MAX_RANK];
} laci_port_labels;

typedef struct laci_coupling {
  const laci_graph *graph;
  const laci_node *node;
  laci_arena *arena;
  laci_port_labels *in, *out; /* n_inputs, n_outputs of the node */
  int n_labels;               /* labels 1 .. n_labels are in use */
  uint8_t
      *normalized; /* [label]: order along it does not matter only if the whole track is taken */
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
  bool no_memory;  /* a helper failed; laci_coupling_ok() says so */
  const char *why; /* why FIXED axes are fixed: "order matters to ArgMax"; NULL: a default text */
} laci_coupling;

/* Helpers for couple(). All return the label, or 0 / false when there is no memory (couple then
 * returns LAC_NO_MEMORY; laci_coupling_ok() at the end makes a status of that). */
int laci_coupling_label(laci_coupling *c); /* a fresh label */
void laci_set_label(laci_coupling *c, int port, int axis,
                    int label); /* axis may be negative; marks port described */
int laci_get_label(const laci_coupling *c, int port, int axis);
const laci_shape *laci_port_shape(const laci_coupling *c,
                                  int port);    /* NULL: port absent or rank unknown */
void laci_describe(laci_coupling *c, int port); /* described, all axes FIXED so far */
void laci_fresh_axes(laci_coupling *c, int port, int from,
                     int to); /* fresh labels on axes [from, to) */
/** All given ports (n) are read elementwise with NumPy broadcasting into output 0 (and further
 * outputs of equal shape, if listed): labels for every axis. For unary ops: ports = {0}, n = 1. */
void laci_couple_elementwise(laci_coupling *c, const int *ports, int n);
/** Output `out_port` has the axes of input `in_port`, one to one: same labels. */
void laci_couple_same(laci_coupling *c, int in_port, int out_port);
/** Ports of equal axes, wherever they are: one label an axis. Nothing may move along an axis whose
 * sizes differ or are not known, nor where a shape is not known. */
void laci_couple_joined(laci_coupling *c, const int *ports, int n);
/** Marks an output as fresh. */
void laci_coupling_fresh(laci_coupling *c, int port);
void laci_normalize(laci_coupling *c, int label);
/** A map record of the whole out axis with from[] to be filled by the caller (all -1). NULL: no
 * memory. Sets both axes MAPPED. */
laci_axis_map *laci_map(laci_coupling *c, int out_port, int out_axis, int in_port, int in_axis,
                        int64_t n_out);
/** The same for a run of it: all fields of `map` but from. */
laci_axis_map *laci_map_run(laci_coupling *c, laci_axis_map map);
/** A run of it that reads positions from, from + 1 ... of the in axis. */
void laci_map_straight(laci_coupling *c, laci_axis_map map, int64_t from);
bool laci_coupling_parts(laci_coupling *c, int port, int axis, int64_t n_parts);
bool laci_hold_axis(laci_coupling *c, laci_axis_hold hold);
bool laci_grouped(laci_coupling *c, laci_grouped_axis grouped);
lac_status laci_coupling_ok(laci_coupling *c);

/** The coupling of a node, by its operator's couple; clear it. Nothing moves along any port where
 * the shape of one is unknown, or where couple says nothing of an input that is not `aside` (op.h).
 * So a connected operand never counts as absent, neither because its shape is unknown nor because
 * couple forgot it. What begins and ends bodies has its ports in groups, each with that rule of its
 * own. */
LAC_MUST_CHECK lac_status laci_couple(laci_coupling *c, const laci_graph *graph,
                                      const laci_node *node);
LAC_MUST_CHECK lac_status laci_coupling_init(laci_coupling *c, const laci_graph *graph,
                                             const laci_node *node);
void laci_coupling_clear(laci_coupling *c);

/* Ready-made couple functions. */
lac_status laci_couple_unary(const laci_graph *graph, const laci_node *node,
                             laci_coupling *c); /* in 0 -> out 0 */
lac_status laci_couple_nary(const laci_graph *graph, const laci_node *node,
                            laci_coupling *c); /* all inputs */
lac_status laci_couple_nothing(const laci_graph *graph, const laci_node *node,
                               laci_coupling *c); /* all FIXED */

#endif
