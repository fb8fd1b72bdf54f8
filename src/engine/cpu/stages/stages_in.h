/* SPDX-License-Identifier: Apache-2.0
 * What stages are made of: make.c makes them, run.c runs them, stages.c tells of them. */
#ifndef LACI_ENGINE_CPU_STAGES_STAGES_IN_H
#define LACI_ENGINE_CPU_STAGES_STAGES_IN_H

#include "base/memory.h"
#include "engine/cpu/stages/stages.h"

enum { LACI_MOST_STAGES = 4 };

typedef struct laci_stage {
  laci_net *net;
  int64_t turns;     /* for a micro-batch each */
  size_t first_step; /* of its steps among those of all stages */
  size_t n_steps;
  /* Of all stages but the last one: */
  size_t bytes_read;    /* of the input in a turn */
  size_t bytes_written; /* of the value at the cut in a turn */
  uint8_t *written;     /* that value, of the whole batch */
} laci_stage;

struct laci_stages {
  laci_arena memory; /* of the parts of the graph */
  laci_pool *pool;
  int n; /* the last one runs once, for the whole batch, and makes the outputs */
  laci_stage stages[LACI_MOST_STAGES];
  /* Of several: */
  laci_engine_port input; /* of the whole batch */
  double *seconds;        /* [n_steps] of the longest one */
  char *text;
};

static inline const laci_stage *laci_stages_last(const laci_stages *stages) {
  return &stages->stages[stages->n - 1];
}

/** What all of them are, one after the other. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_stages_write_text(laci_stages *stages, lac_error *err);

#endif
