/* SPDX-License-Identifier: Apache-2.0
 * A part of a graph that this provider computes: a session of Lacuna, and what goes in and out. */
#ifndef LAC_ORT_COMPUTE_H
#define LAC_ORT_COMPUTE_H

#include <pthread.h>

#include "model.h"
#include "options.h"
#include "profile.h"

typedef struct lac_context lac_context; /* lacuna/context.h */

/** What all parts of one session of ONNX Runtime share. */
typedef struct laci_ort_shared {
  const laci_ort *ort;
  const ort_logger *logger;
  laci_ort_options options;
  lac_context *context;       /* context of Lacuna's calls; its log goes to `logger` */
  laci_ort_profiles profiles; /* profilers to which steps are added */
  pthread_mutex_t lock;
  int threads; /* number of the session's threads; 0: not counted yet */
} laci_ort_shared;

/** Makes the computation of a part, whose inputs and outputs are in the order of the fused node's.
 * They are matched to the model's by their names, in a packed model by their order. On success the
 * computation owns the model. Where all sizes are fixed, the part is planned at once. */
LAC_MUST_CHECK lac_status laci_ort_compute_create(laci_ort_shared *shared, laci_ort_graph *graph,
                                                  const laci_ort_part *part, laci_ort_model *model,
                                                  ort_compute **made, lac_error *err);
/** Destroys a computation; NULL is fine. */
void laci_ort_compute_destroy(ort_compute *made);

#endif
