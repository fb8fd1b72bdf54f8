/* SPDX-License-Identifier: Apache-2.0
 * The time that the library's own engine is predicted to take, layer by layer, by the costs that
 * its plans are chosen by: of a network as it is, and with layers pruned. */
#ifndef LACI_API_PRUNE_PREDICT_IN_H
#define LACI_API_PRUNE_PREDICT_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_analysis laci_analysis;
typedef struct laci_arena laci_arena;

/** A network that is planned. */
typedef struct laci_predict_source {
  const laci_analysis *analysis;
  const uint8_t *const *weights; /* [n_stored] bytes that replace the graph's; NULL, or a NULL
                                    entry: the graph's own */
  int threads;
  bool bf16;
} laci_predict_source;

/** What the plan is predicted to do with a layer. */
typedef struct laci_predicted_layer {
  bool sparse;        /* it skips the weight's zeros */
  const char *reason; /* why it does not; NULL: it does */
  double seconds;     /* of its step, with all that was fused into it; 0: it has none */
  int64_t flops;      /* multiplications and additions of its step, those by zeros included */
} laci_predicted_layer;

typedef struct laci_prediction {
  const char *refusal;          /* why no plan is possible; NULL: one is */
  bool assumed;                 /* sizes of inputs are open, and were assumed */
  double seconds;               /* of a run */
  int64_t flops;                /* of all steps */
  laci_predicted_layer *layers; /* [analysis->n_layers] */
} laci_prediction;

/** Predicts a run. All that the prediction points to is in the arena. Fails LAC_NO_MEMORY, and as
 * laci_engine_ask. */
LAC_MUST_CHECK lac_status laci_predict(const laci_predict_source *from, laci_arena *arena,
                                       laci_prediction *prediction, lac_error *err);

#endif
