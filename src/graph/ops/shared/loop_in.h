/* SPDX-License-Identifier: Apache-2.0
 * What Loop, Scan and the nodes that begin their turns share (graph.h, laci_body).
 *
 * A slice is what one turn reads or gives of a value that has all turns along one of its axes. */
#ifndef LACI_GRAPH_OPS_SHARED_LOOP_IN_H
#define LACI_GRAPH_OPS_SHARED_LOOP_IN_H

#include "graph/ops/shared/op_in.h"

/** How many values a node that begins a turn carries into it; the others are slices (of a Scan), or
 * the number of the turn and the condition (of a Loop, in front). */
int laci_begin_carried(const laci_node *node);

/** Gives a carried value the type it comes with; the type of a slice. */
void laci_loop_copy_type(laci_infer *infer, int in, int out);
LAC_MUST_CHECK lac_status laci_loop_end_infer(laci_infer *infer);
lac_status laci_loop_end_couple(const laci_node *node, laci_coupling *c);

/** A carried value goes into a turn: what it comes with may move, and so may what the body sees;
 * the end of the turn joins them. */
void laci_loop_carry(laci_coupling *c, int in, int out);
/** Axes of a slice are those of the whole but for `axis`, which stays. */
void laci_couple_slice(laci_coupling *c, int whole, int slice, int64_t axis);

#endif
