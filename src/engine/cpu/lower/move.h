/* SPDX-License-Identifier: Apache-2.0
 * Parts of tensors, for the files that move data. */
#ifndef LACI_ENGINE_CPU_LOWER_MOVE_H
#define LACI_ENGINE_CPU_LOWER_MOVE_H

#include "engine/cpu/net_in.h"

/** The node's "axis" (0 where it has none) of `value`, as a number from 0. */
int64_t laci_move_axis(const laci_net *net, const laci_node *node, int value);

/** The part of a tensor that starts at `offsets`, as it is stored if blocks allow that. */
int laci_move_part(laci_net *net, int tensor, const laci_shape *shape, const int64_t *offsets);

#endif
