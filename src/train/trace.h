/* SPDX-License-Identifier: Apache-2.0
 * A trace of the last steps of a training, as chrome://tracing and Perfetto read it: when each
 * process ran which step of the plan, and which sums were in progress meanwhile. */
#ifndef LACI_TRAIN_TRACE_H
#define LACI_TRAIN_TRACE_H

#include <stdint.h>

#include "comm/comm.h"

typedef struct laci_engine laci_engine;

typedef struct laci_trace laci_trace;

/** Of a plan that is run once a step, or more often (the last run counts), and so many sums. Fails
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_trace_create(const laci_engine *engine, int n_sums,
                                            laci_trace **trace, lac_error *err);
void laci_trace_destroy(laci_trace *trace); /* NULL is fine */

/** Where the run of this step writes when each of its steps began and how long it took
 * (laci_engine_watch). */
double *laci_trace_begins(laci_trace *trace);
double *laci_trace_seconds(laci_trace *trace);
/** When sum k of this step was in progress; bytes: how much it sums. */
void laci_trace_sum(laci_trace *trace, int sum, laci_comm_times times, size_t bytes);
/** The step is done: begun and ended by laci_clock_seconds. */
void laci_trace_step(laci_trace *trace, int64_t step, double begun, double ended);

/** What all processes have seen, on one clock, as JSON text at process 0, to be freed by laci_free;
 * NULL at the others, which only take part. Fails LAC_PEER, LAC_NO_MEMORY, on all alike. */
LAC_MUST_CHECK lac_status laci_trace_text(const laci_trace *trace, laci_comm *comm, char **text,
                                          lac_error *err);

#endif
