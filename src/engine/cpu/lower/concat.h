/* SPDX-License-Identifier: Apache-2.0
 * What the files of Concat share: concat.c, concat_rows.c. */
#ifndef LACI_ENGINE_CPU_LOWER_CONCAT_H
#define LACI_ENGINE_CPU_LOWER_CONCAT_H

#include "engine/cpu/net_in.h"

/** Returns the axis of a Concat, counted from the first. */
int64_t laci_concat_axis(const laci_net *net, const laci_node *node);

/** Implementation for parts with short rows along an axis after the channels. */
laci_lower_supports laci_can_lower_concat_rows;
laci_lower_function laci_lower_concat_rows;

#endif
