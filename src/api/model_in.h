/* SPDX-License-Identifier: Apache-2.0
 * A loaded network, as the functions of include/lacuna share it. */
#ifndef LACI_API_MODEL_IN_H
#define LACI_API_MODEL_IN_H

#include "analyze/analyze.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "lacuna/prune.h"
#include "onnx/onnx.h"

struct lac_model {
  laci_onnx *file;
  laci_graph *graph;
  char *path;    /* "(memory)" where there is none */
  bool inferred; /* shapes are known */
  char *
      assumed; /* the shapes and declarations that inference was given; they stay for the model's life */
};

/** What every verb starts with: shapes inferred, a pool, the analysis. */
typedef struct laci_session {
  laci_pool *pool;
  laci_analysis *analysis;
} laci_session;

LAC_MUST_CHECK lac_status laci_session_open(lac_model *model, const lac_options *options,
                                            laci_session *session, lac_error *err);
void laci_session_close(laci_session *session);

#endif
