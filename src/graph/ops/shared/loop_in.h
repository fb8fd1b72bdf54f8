/* SPDX-License-Identifier: Apache-2.0
 * What Loop, Scan and the nodes that begin their iterations share (graph.h, laci_body).
 *
 * A slice is the part of a value that one iteration reads or writes; iterations run along one axis
 * of that value. */
#ifndef LACI_GRAPH_OPS_SHARED_LOOP_IN_H
#define LACI_GRAPH_OPS_SHARED_LOOP_IN_H

#include "graph/ops/shared/op_in.h"

/** Returns how many values a node that begins an iteration carries into it. The other inputs of a
 * Scan are slices; those of a Loop are the number of the iteration and the condition, ports 0 and
 * 1. */
int laci_loop_begin_count_carried(const laci_node *node);

/** Gives output `out` the type of input `in`, for carried values and slices. */
void laci_loop_copy_type_to_output(laci_infer *infer, int in, int out);
LAC_MUST_CHECK lac_status laci_loop_end_infer(laci_infer *infer);
lac_status laci_loop_end_couple_orders(const laci_node *node, laci_coupling *c);

/** Describes a carried value at the beginning of an iteration: the channels of input `in` may move,
 * and so may those of output `out`, which the body reads. The node that ends the iteration joins
 * them. */
void laci_couple_carried_value(laci_coupling *c, int in, int out);
/** Gives a slice the channel orders of the whole value (labels, coupling.h). Along `axis` nothing
 * may be reordered. */
void laci_couple_slice_of_value(laci_coupling *c, int whole, int slice, int64_t axis);

#endif
