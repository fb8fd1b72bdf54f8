/* SPDX-License-Identifier: Apache-2.0
 * A trace of the last steps of a training, in the format of chrome://tracing and Perfetto: when
 * each process ran which step of the plan, and which sums were in progress meanwhile. */
#ifndef LACI_TRAIN_TRACE_H
#define LACI_TRAIN_TRACE_H

#include <stdint.h>

#include "comm/comm.h"

typedef struct laci_engine laci_engine;

typedef struct laci_trace laci_trace;

/** Creates a trace for an engine whose plan runs once in each step, or more often (the last run is
 * recorded), and for n_sums sums. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_trace_create(const laci_engine *engine, int n_sums,
                                            laci_trace **trace, lac_error *err);
void laci_trace_destroy(laci_trace *trace); /* NULL is fine */

/** Return the arrays into which a run writes when each step of its plan began and how long it took
 * (laci_engine_watch). */
double *laci_trace_step_begin_times(laci_trace *trace);
double *laci_trace_step_durations(laci_trace *trace);
/** Records when sum number `sum` of this step was in progress; bytes: its size. */
void laci_trace_record_sum(laci_trace *trace, int sum, laci_comm_times times, size_t bytes);
/** Records the end of a training step; begun and ended are times of laci_clock_seconds. */
void laci_trace_record_step(laci_trace *trace, int64_t step, double begun, double ended);

/** Collects the traces of all processes, on one clock. *text at process 0: JSON, to be freed by
 * laci_free; at the others: NULL. All processes must call it. Fails LAC_PEER, LAC_NO_MEMORY, on all
 * alike. */
LAC_MUST_CHECK lac_status laci_trace_collect_json(const laci_trace *trace, laci_comm *comm,
                                                  char **text, lac_error *err);

#endif
