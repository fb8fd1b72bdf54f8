/* SPDX-License-Identifier: Apache-2.0
 * Records the last steps of a training (trace.h) in a ring of records of fixed size, one for each
 * step. A record is a row of numbers. A process can send it unchanged, since the plans of all
 * processes are the same. Names are in the plan. */
#include "train/trace.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/to_int.h"
#include "engine/engine.h"

/* RECORDS: number of steps that are kept. COMPUTES, SUMS: numbers of the rows in which a viewer
 * shows a process. */
enum { RECORDS = 3, COMPUTES = 1, SUMS = 2 };

/* A record begins with HEAD numbers: the training step, its begin and its end. Then follow the
 * begins and the durations of the plan's steps. For each sum follow SUM_NUMBERS numbers: the times
 * at which it was begun, exchanged and done, and its bytes. */
enum { HEAD = 3, SUM_NUMBERS = 4 };

struct laci_trace {
  const laci_engine *engine;
  size_t n_steps, n_sums, n_record;
  int n_taken;     /* number of records written so far; the next one is written at n_taken %
                      RECORDS */
  double *records; /* [RECORDS][n_record] the records of the last steps, as a ring */
};

lac_status laci_trace_create(const laci_engine *engine, int n_sums, laci_trace **trace,
                             lac_error *err) {
  laci_trace *t = laci_alloc(1, sizeof *t);
  *trace = NULL;
  if (!t) return laci_fail_memory(err, "a trace");
  t->engine = engine;
  t->n_steps = laci_engine_step_count(engine);
  t->n_sums = (size_t)n_sums;
  t->n_record = HEAD + 2 * t->n_steps + SUM_NUMBERS * t->n_sums;
  t->records = laci_alloc(RECORDS * t->n_record, sizeof *t->records);
  if (!t->records) {
    laci_trace_destroy(t);
    return laci_fail_memory(err, "a trace");
  }
  *trace = t;
  return LAC_OK;
}

void laci_trace_destroy(laci_trace *t) {
  if (!t) return;
  laci_free(t->records);
  laci_free(t);
}

/* ---- Recording ---- */

static double *find_current_record(laci_trace *t) {
  return t->records + (size_t)(t->n_taken % RECORDS) * t->n_record;
}

double *laci_trace_step_begin_times(laci_trace *t) { return find_current_record(t) + HEAD; }
double *laci_trace_step_durations(laci_trace *t) {
  return find_current_record(t) + HEAD + t->n_steps;
}

void laci_trace_record_sum(laci_trace *t, int sum, laci_comm_times times, size_t bytes) {
  double *to = find_current_record(t) + HEAD + 2 * t->n_steps + (size_t)sum * SUM_NUMBERS;
  to[0] = times.begun;
  to[1] = times.exchanged;
  to[2] = times.done;
  to[3] = (double)bytes;
}

void laci_trace_record_step(laci_trace *t, int64_t step, double begun, double ended) {
  double *to = find_current_record(t);
  to[0] = (double)step;
  to[1] = begun;
  to[2] = ended;
  t->n_taken++;
}

/* ---- Writing ---- */

/** The state of writing the events of one process as JSON. */
typedef struct writing {
  laci_json_writer w;
  json_t *events;
  int process;
  double zero; /* time of the process's clock that becomes 0 in the file */
} writing;

/* Adds an event to the JSON array, with times in microseconds. Returns NULL, and adds nothing, if
 * it never happened (begin is 0). */
static json_t *add_trace_event(writing *w, const char *name, int row, double begin,
                               double seconds) {
  if (begin <= 0) return NULL;
  json_t *event = json_object();
  laci_json_add(&w->w, event, "name", laci_json_text(&w->w, name));
  laci_json_add(&w->w, event, "ph", json_string("X"));
  laci_json_add(&w->w, event, "pid", json_integer(w->process));
  laci_json_add(&w->w, event, "tid", json_integer(row));
  laci_json_add(&w->w, event, "ts", json_real((begin - w->zero) * 1e6));
  laci_json_add(&w->w, event, "dur", json_real(seconds * 1e6));
  laci_json_append(&w->w, w->events, event);
  return event;
}

static void add_row_name(writing *w, int row, const char *kind, const char *name) {
  json_t *event = json_object(), *args = json_object();
  laci_json_add(&w->w, args, "name", laci_json_text(&w->w, name));
  laci_json_add(&w->w, event, "name", json_string(kind));
  laci_json_add(&w->w, event, "ph", json_string("M"));
  laci_json_add(&w->w, event, "pid", json_integer(w->process));
  laci_json_add(&w->w, event, "tid", json_integer(row));
  laci_json_add(&w->w, event, "args", args);
  laci_json_append(&w->w, w->events, event);
}

static void add_record_events(writing *w, const laci_trace *t, const double *record) {
  const double *begins = record + HEAD, *seconds = begins + t->n_steps;
  const double *sums = seconds + t->n_steps;
  char name[64];
  (void)snprintf(name, sizeof name, "step %" PRId64, laci_clamp_to_int64(record[0]));
  (void)add_trace_event(w, name, 0, record[1], record[2] - record[1]);
  for (size_t s = 0; s < t->n_steps; s++) {
    laci_engine_step look = laci_engine_step_info(t->engine, s);
    json_t *event =
        add_trace_event(w, look.name ? look.name : look.op, COMPUTES, begins[s], seconds[s]);
    if (!event) continue;
    json_t *args = json_object();
    laci_json_add(&w->w, args, "what", laci_json_text(&w->w, look.what));
    laci_json_add(&w->w, args, "kernel", laci_json_text(&w->w, look.kernel));
    laci_json_add(&w->w, event, "args", args);
  }
  for (size_t k = 0; k < t->n_sums; k++) {
    const double *sum = sums + k * SUM_NUMBERS;
    (void)snprintf(name, sizeof name, "sum %zu: %.1f MB", k, sum[3] / 1e6);
    json_t *event = add_trace_event(w, name, SUMS + (int)k, sum[0], sum[2] - sum[0]);
    if (!event) continue;
    json_t *args = json_object();
    laci_json_add(&w->w, args, "exchange_us", json_real((sum[1] - sum[0]) * 1e6));
    laci_json_add(&w->w, event, "args", args);
  }
}

/* Adds the events of one process. records: its records. zero: the time, on its clock, when the
 * first recorded step of any process began. */
static void add_process_events(writing *w, const laci_trace *t, const double *records,
                               double zero) {
  char name[64];
  w->zero = zero;
  (void)snprintf(name, sizeof name, "process %d", w->process);
  add_row_name(w, 0, "process_name", name);
  add_row_name(w, 0, "thread_name", "steps");
  add_row_name(w, COMPUTES, "thread_name", "plan");
  for (size_t k = 0; k < t->n_sums; k++) add_row_name(w, SUMS + (int)k, "thread_name", "sums");
  for (int r = 0; r < RECORDS; r++) {
    const double *record = records + (size_t)r * t->n_record;
    if (record[2] > 0) add_record_events(w, t, record);
  }
}

/* Returns when the first recorded step of any process began. It is counted from the moment at which
 * all processes met (laci_trace_collect_json). all: as in write_trace_json. */
static double find_earliest_begin(const laci_trace *t, const double *all, int size) {
  const size_t each = 1 + RECORDS * t->n_record;
  double first = 0;
  for (int k = 0; k < size; k++) {
    const double *row = all + (size_t)k * each, *record = row + 1;
    for (int r = 0; r < RECORDS; r++, record += t->n_record) {
      if (record[2] > 0 && record[1] - row[0] < first) first = record[1] - row[0];
    }
  }
  return first;
}

/* Writes the trace as JSON. all: for every process, the time on its clock when all processes met,
 * then its records. */
static lac_status write_trace_json(const laci_trace *t, const double *all, int size, char **text,
                                   lac_error *err) {
  writing w = {.w = {.whole = true}, .events = json_array()};
  json_t *root = json_object();
  const size_t each = 1 + RECORDS * t->n_record;
  const double first = find_earliest_begin(t, all, size);
  for (int k = 0; k < size; k++) {
    const double *row = all + (size_t)k * each;
    w.process = k;
    add_process_events(&w, t, row + 1, row[0] + first);
  }
  laci_json_add(&w.w, root, "traceEvents", w.events);
  laci_json_add(&w.w, root, "displayTimeUnit", json_string("ms"));
  return laci_json_finish(&w.w, root, JSON_COMPACT | JSON_REAL_PRECISION(15), "the trace", text,
                          err);
}

lac_status laci_trace_collect_json(const laci_trace *t, laci_comm *comm, char **text,
                                   lac_error *err) {
  const int size = laci_comm_size(comm), rank = laci_comm_rank(comm);
  const size_t each = 1 + RECORDS * t->n_record;
  *text = NULL;
  double *all = laci_alloc((size_t)size * each, sizeof *all);
  lac_status st =
      laci_comm_agree_on_status(comm, all ? LAC_OK : laci_fail_memory(err, "a trace"), err);
  if (!st) { /* all processes are here now, so this time is the same moment for all */
    double *ours = all + (size_t)rank * each;
    ours[0] = laci_clock_seconds();
    memcpy(ours + 1, t->records, RECORDS * t->n_record * sizeof *ours);
    st = laci_comm_gather(comm, ours, each * sizeof *ours, all, err);
  }
  if (!st && rank == 0) st = write_trace_json(t, all, size, text, err);
  laci_free(all);
  return laci_comm_agree_on_status(comm, st, err);
}
