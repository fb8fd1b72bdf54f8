/* SPDX-License-Identifier: Apache-2.0
 * Checks that all processes hold the same training state. It compares hashes with those of process
 * 0: of every parameter's weights, mask and optimizer state, and of the running statistics. */
#ifndef LACI_TRAIN_SAME_STATE_H
#define LACI_TRAIN_SAME_STATE_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_comm laci_comm;
typedef struct laci_trainer laci_trainer;

/** Compares the states of all processes, each of which must call it. masks:
 * [laci_optimizer_count_floats] bytes, or NULL. If a process differs from process 0, fails with
 * LAC_BAD_VALUE in all processes; the text names the process and the first tensor. Also fails with
 * LAC_PEER or LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_compare_states_of_processes(laci_comm *comm, laci_trainer *trainer,
                                                           const uint8_t *masks, int64_t step,
                                                           lac_error *err);

#endif
