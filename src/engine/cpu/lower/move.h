/* SPDX-License-Identifier: Apache-2.0
 * Axes and parts of tensors, for the files of operators that move data. */
#ifndef LACI_ENGINE_CPU_LOWER_MOVE_H
#define LACI_ENGINE_CPU_LOWER_MOVE_H

#include "engine/cpu/net_in.h"

/** Returns the node's attribute "axis" (0 if it is absent), for an axis of `value`. Negative
 * numbers are counted from the last axis and made positive. */
int64_t laci_move_read_axis(const laci_net *net, const laci_node *node, int value);

/** Adds a step that makes all bytes of the tensor's buffer 0. */
void laci_move_add_clear_step(laci_net *net, int tensor);

/** Returns a tensor of the given shape for the part of `tensor` that begins at `offsets`: a view if
 * the blocks of its layout allow that, else a copy. */
int laci_move_view_or_copy_part(laci_net *net, int tensor, const laci_shape *shape,
                                const int64_t *offsets);

/** Implementation of Pads that repeat elements of the value. pad.c */
laci_lower_supports laci_can_lower_pad_copies;
laci_lower_function laci_lower_pad_copies;

#endif
