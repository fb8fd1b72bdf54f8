/* SPDX-License-Identifier: Apache-2.0
 * Records a trace of the last steps of a training, in the format of chrome://tracing and Perfetto.
 * It shows when each process ran which step of the plan, and which sums over processes were in
 * progress meanwhile. */
#ifndef LACI_TRAIN_TRACE_H
#define LACI_TRAIN_TRACE_H

#include <stdint.h>

#include "comm/comm.h"

typedef struct laci_engine laci_engine;

typedef struct laci_trace laci_trace;

/** Creates a trace. engine: its plan runs once in each training step, or more often; then the last
 * run is recorded. n_sums: number of sums over processes in a step. Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_trace_create(const laci_engine *engine, int n_sums,
                                            laci_trace **trace, lac_error *err);
void laci_trace_destroy(laci_trace *trace); /* trace may be NULL */

/** Return the arrays for laci_engine_watch: a run writes to them when each step of its plan began,
 * and how long it took. */
double *laci_trace_step_begin_times(laci_trace *trace);
double *laci_trace_step_durations(laci_trace *trace);
/** Records when sum number `sum` of this training step was in progress. bytes: its size. */
void laci_trace_record_sum(laci_trace *trace, int sum, laci_comm_times times, size_t bytes);
/** Records the end of a training step. begun, ended: its times by laci_clock_seconds. */
void laci_trace_record_step(laci_trace *trace, int64_t step, double begun, double ended);

/** Collects the traces of all processes, on one clock. All processes must call it. *text: in
 * process 0, JSON that the caller frees by laci_free; in the others, NULL. Fails with LAC_PEER or
 * LAC_NO_MEMORY, in all processes alike. */
LAC_MUST_CHECK lac_status laci_trace_collect_json(const laci_trace *trace, laci_comm *comm,
                                                  char **text, lac_error *err);

#endif
