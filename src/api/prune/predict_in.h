/* SPDX-License-Identifier: Apache-2.0
 * Predicts how long the library's own engine takes for a network, layer by layer. The prediction
 * uses the costs by which the engine chooses its plans. It is made for a network as it is, or with
 * some layers pruned. */
#ifndef LACI_API_PRUNE_PREDICT_IN_H
#define LACI_API_PRUNE_PREDICT_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_analysis laci_analysis;
typedef struct laci_arena laci_arena;

/** A network whose run time is to be predicted. */
typedef struct laci_predict_source {
  const laci_analysis *analysis;
  const uint8_t *const *weights; /* [n_stored] bytes of each stored tensor, instead of the graph's;
                                    NULL, or NULL for a tensor: the graph's bytes are used */
  int threads;
  bool bf16;
} laci_predict_source;

/** What the plan is predicted to do with a layer. */
typedef struct laci_predicted_layer {
  bool sparse;        /* the layer is run by a kernel that skips the weight's zeros */
  const char *reason; /* why the zeros are not skipped; NULL: they are */
  double seconds;     /* predicted seconds of the layer's step, with all nodes fused into it; 0: the
                         layer has no step */
  int64_t flops;      /* multiplications and additions of the layer's step, including those by zeros
                         */
} laci_predicted_layer;

typedef struct laci_prediction {
  const char *refusal;          /* why no plan is possible; NULL: a plan was made */
  bool assumed;                 /* the network leaves input sizes open, and usual ones were assumed
                                   */
  double seconds;               /* predicted seconds of a run */
  int64_t flops;                /* multiplications and additions of all steps, including those by
                                   zeros */
  int n_layers;                 /* number of the analysis' layers; the layers in bodies, which
                                   reports list, are not among them */
  laci_predicted_layer *layers; /* [n_layers] what is predicted of each layer */
} laci_prediction;

/** Predicts a run. All that the prediction points to is in the arena. Fails LAC_NO_MEMORY, and as
 * laci_engine_ask. */
LAC_MUST_CHECK lac_status laci_predict_times(const laci_predict_source *from, laci_arena *arena,
                                             laci_prediction *prediction, lac_error *err);

#endif
