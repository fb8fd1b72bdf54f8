/* SPDX-License-Identifier: Apache-2.0
 * Pools, for other files: the window of a node, and the mean over height and width as a pool.
 * Reductions use the latter, too, since it reads any layout. */
#ifndef LACI_ENGINE_CPU_ONEDNN_POOL_H
#define LACI_ENGINE_CPU_ONEDNN_POOL_H

#include "engine/cpu/net_in.h"

typedef struct laci_window laci_window;

/** Reads the window of a MaxPool or an AveragePool of floats with one output; false: oneDNN does
 * not support it. */
bool laci_pool_read_window(const laci_net *net, const laci_node *node, laci_window *w);

/** Is the gradient of this pool (a node) computed, which reads where its maxima are? */
bool laci_pool_has_gradient(const laci_net *net, int pool);

laci_lower_supports laci_can_lower_pool;
laci_lower_function laci_lower_pool;

laci_lower_supports laci_can_lower_pool_channels;
laci_lower_function laci_lower_pool_channels;

#endif
