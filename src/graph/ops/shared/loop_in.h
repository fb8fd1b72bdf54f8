/* SPDX-License-Identifier: Apache-2.0
 * What Loop, Scan and the nodes that begin their iterations share (graph.h, laci_body).
 *
 * A slice is what one iteration reads or gives of a value that has the iterations along one of its
 * axes. */
#ifndef LACI_GRAPH_OPS_SHARED_LOOP_IN_H
#define LACI_GRAPH_OPS_SHARED_LOOP_IN_H

#include "graph/ops/shared/op_in.h"

/** How many values a node that begins an iteration carries into it; the others are slices (of a
 * Scan), or the number of the iteration and the condition (of a Loop, ports 0 and 1). */
int laci_begin_carried(const laci_node *node);

/** Gives a carried value the type it comes with; the type of a slice. */
void laci_loop_copy_type(laci_infer *infer, int in, int out);
LAC_MUST_CHECK lac_status laci_loop_end_infer(laci_infer *infer);
lac_status laci_loop_end_couple(const laci_node *node, laci_coupling *c);

/** A carried value goes into an iteration: the channels of its first value may move, and so may
 * those that the body sees; the end of the iteration joins them. */
void laci_loop_carry(laci_coupling *c, int in, int out);
/** Axes of a slice are those of the whole but for `axis`, which stays. */
void laci_couple_slice(laci_coupling *c, int whole, int slice, int64_t axis);

#endif
