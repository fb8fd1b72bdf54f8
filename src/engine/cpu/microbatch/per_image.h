/* SPDX-License-Identifier: Apache-2.0
 * Nodes that compute each image of a batch independently of the others. */
#ifndef LACI_ENGINE_CPU_MICROBATCH_PER_IMAGE_H
#define LACI_ENGINE_CPU_MICROBATCH_PER_IMAGE_H

#include "engine/cpu/plan/plan.h"

/** Does the node compute each image by itself? The images must be along axis 0 of all values that
 * it reads and computes. Types and constants of the plan must be known. False for operators that
 * are not listed. */
bool laci_node_is_per_image(laci_cpu_plan *plan, const laci_node *node, int64_t batch);

#endif
