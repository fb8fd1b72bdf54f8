/* SPDX-License-Identifier: Apache-2.0
 * What runs of parts have in common: run.c, choice_run.c. */
#ifndef LACI_ENGINE_AUTO_RUN_IN_H
#define LACI_ENGINE_AUTO_RUN_IN_H

#include "engine/auto/auto_in.h"

/** Copies a result of exact nodes from the stepper (the exact engine) to a buffer, for a fast part
 * or the caller. Fails LAC_UNSUPPORTED (not computed), LAC_BAD_SHAPE (not of the port's shape). */
LAC_MUST_CHECK lac_status laci_auto_copy_from_stepper(laci_auto *a, int value,
                                                      const laci_engine_port *port, void *bytes,
                                                      lac_error *err);
/** Runs the engine of a part on the values that it reads; its results are written to part->out. */
LAC_MUST_CHECK lac_status laci_auto_run_engine(laci_auto *a, const laci_auto_part *part,
                                               const laci_engine_watch *watch, lac_error *err);
/** Steps a node by the exact engine, as step `step` of the network's run. */
LAC_MUST_CHECK lac_status laci_auto_run_exact_step(laci_auto *a, int node, size_t step,
                                                   const laci_engine_watch *watch, lac_error *err);

#endif
