/* SPDX-License-Identifier: Apache-2.0
 * Nodes that do to each image of a batch what they would do to it alone. */
#ifndef LACI_ENGINE_CPU_MICROBATCH_PER_IMAGE_H
#define LACI_ENGINE_CPU_MICROBATCH_PER_IMAGE_H

#include "engine/cpu/plan/plan.h"

/** Is it one of those, on images along axis 0 of all that it reads and makes? Types and constants
 * of the plan are known. An operator that is not listed is none, whatever it does. */
bool laci_node_is_per_image(laci_cpu_plan *plan, const laci_node *node, int64_t batch);

#endif
