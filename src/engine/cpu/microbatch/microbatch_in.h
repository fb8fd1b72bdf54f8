/* SPDX-License-Identifier: Apache-2.0
 * What stages are made of: make.c makes them, run.c runs them, microbatch.c tells of them. */
#ifndef LACI_ENGINE_CPU_MICROBATCH_MICROBATCH_IN_H
#define LACI_ENGINE_CPU_MICROBATCH_MICROBATCH_IN_H

#include "base/memory.h"
#include "engine/cpu/microbatch/microbatch.h"

enum { LACI_MOST_STAGES = 4 };

typedef struct laci_stage {
  laci_net *net;
  int64_t micro_batches; /* for a micro-batch each */
  size_t first_step;     /* of its steps among those of all stages */
  size_t n_steps;
  /* Of all stages but the last one: */
  size_t bytes_read;    /* of the input, for a micro-batch */
  size_t bytes_written; /* of the value at the cut, for a micro-batch */
  uint8_t *written;     /* that value, of the whole batch */
} laci_stage;

struct laci_microbatches {
  laci_arena memory; /* of the parts of the graph */
  laci_pool *pool;
  int n; /* the last one runs once, for the whole batch, and makes the outputs */
  laci_stage stages[LACI_MOST_STAGES];
  /* Of several: */
  laci_engine_port input; /* of the whole batch */
  double *seconds;        /* [n_steps] of the longest one */
  char *text;
  /* Of runs that are not sure that all is finite; careful.c: */
  const laci_graph *graph; /* the whole one */
  laci_budget *budget;     /* what was left after the stages; NULL: no limit */
  laci_engine_fetch *fetch;
  void *fetch_context;
  bool observed;
  laci_net *careful;       /* NULL: not needed so far */
  double *careful_seconds; /* of its steps, in a run that is watched */
};

static inline const laci_stage *laci_microbatches_last(const laci_microbatches *stages) {
  return &stages->stages[stages->n - 1];
}

/** The last stage goes. */
void laci_microbatches_drop(laci_microbatches *stages);
/** Where a stage is careless, one careful stage in their place. before: the options' budget before
 * the stages were made. Fails as laci_net_create. */
LAC_MUST_CHECK lac_status laci_microbatches_make_careful(laci_microbatches *stages,
                                                         const laci_engine_options *options,
                                                         const laci_budget *before, lac_error *err);
/** The run once more, carefully: `stage` suspects a value. Its time goes to the stages' steps, as
 * watch->seconds has them, each node's to the step of that name. Fails LAC_BAD_VALUE where it
 * cannot be, and as laci_net_create and laci_net_run. */
LAC_MUST_CHECK lac_status laci_microbatches_run_careful(
    laci_microbatches *stages, const laci_stage *stage, const void *const *inputs,
    void *const *outputs, const laci_engine_watch *watch, lac_error *err);

/** What all of them are, one after the other. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_microbatches_write_text(laci_microbatches *stages, lac_error *err);

#endif
