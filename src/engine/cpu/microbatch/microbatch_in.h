/* SPDX-License-Identifier: Apache-2.0
 * The data of stages: make.c creates them, run.c runs them, microbatch.c describes them. */
#ifndef LACI_ENGINE_CPU_MICROBATCH_MICROBATCH_IN_H
#define LACI_ENGINE_CPU_MICROBATCH_MICROBATCH_IN_H

#include "base/memory.h"
#include "engine/cpu/microbatch/microbatch.h"

enum { LACI_MOST_STAGES = 4 };

typedef struct laci_stage {
  laci_net *net;
  int64_t micro_batches; /* number of runs of `net` that process the batch */
  size_t first_step;     /* index of the stage's first step among the steps of all stages */
  size_t n_steps;
  /* set in all stages except the last one: */
  size_t bytes_read;    /* bytes of the input of one micro-batch */
  size_t bytes_written; /* bytes of the value at the cut of one micro-batch */
  uint8_t *written;     /* the value at the cut, for the whole batch */
} laci_stage;

struct laci_microbatches {
  laci_arena memory; /* memory of the graphs of the stages */
  laci_pool *pool;
  int n; /* number of stages; the last stage runs once for the whole batch, and computes the
            outputs */
  laci_stage stages[LACI_MOST_STAGES];
  /* set only if there are several stages: */
  laci_engine_port input; /* the network's input, for the whole batch */
  double *seconds;        /* times of the steps of one micro-batch; [number of steps of the longest
                             stage] */
  char *text;
  /* For repeating a run that may have met NaN or infinity: a careful plan, which keeps these
   * (plan/finite.h); careful.c: */
  const laci_graph *graph; /* the whole network */
  laci_budget *budget;     /* the budget after the memory of the stages was added; NULL: no limit */
  laci_engine_fetch *fetch; /* fetches stored bytes for the careful plan; NULL: they are in
                               memory */
  void *fetch_context;      /* first argument of `fetch` */
  bool observed;            /* an observer sees values of the network */
  laci_net *careful;        /* the careful plan of the whole network; NULL: not needed so far */
  double *careful_seconds;  /* [steps of `careful`] times of the steps of a watched run of
                               `careful` */
};

static inline const laci_stage *laci_microbatches_last_stage(const laci_microbatches *stages) {
  return &stages->stages[stages->n - 1];
}

/** Destroys the last stage. */
void laci_microbatches_destroy_last(laci_microbatches *stages);
/** If a stage needs a careful plan from the start (plan/finite.h), replaces all stages by one
 * careful stage. before: the options' budget before the stages were created. Fails as
 * laci_net_create. */
LAC_MUST_CHECK lac_status laci_microbatches_make_careful_stage(laci_microbatches *stages,
                                                               const laci_engine_options *options,
                                                               const laci_budget *before,
                                                               lac_error *err);
/** Repeats the run on the careful plan, because `stage` met a value that may not be finite. Adds
 * the time of each node, in watch->seconds, to the step with the same name. Fails LAC_BAD_VALUE
 * where a careful run is not possible, and as laci_net_create and laci_net_run. */
LAC_MUST_CHECK lac_status laci_microbatches_run_careful(
    laci_microbatches *stages, const laci_stage *stage, const void *const *inputs,
    void *const *outputs, const laci_engine_watch *watch, lac_error *err);

/** Writes stages->text, which describes all stages one after the other. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_microbatches_write_text(laci_microbatches *stages, lac_error *err);

#endif
