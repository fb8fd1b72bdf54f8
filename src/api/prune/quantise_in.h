/* SPDX-License-Identifier: Apache-2.0
 * Quantisation between a pruning and its commit. */
#ifndef LACI_API_PRUNE_QUANTISE_IN_H
#define LACI_API_PRUNE_QUANTISE_IN_H

#include "lacuna/status.h"

typedef struct lac_model lac_model;
typedef struct lac_options lac_options;
typedef struct laci_calibration_source laci_calibration_source;
typedef struct laci_job laci_job;
typedef struct laci_pruning laci_pruning;
typedef struct laci_quantisation laci_quantisation;
typedef struct laci_report laci_report;

/** What can be refused before the long work: options that make no sense, and what
 * laci_quantize_check says. Without options->quantisation all is well. */
LAC_MUST_CHECK lac_status laci_check_quantisation(const lac_model *model,
                                                  const lac_options *options, lac_error *err);

/** A pruning that is done, and what it was made of. */
typedef struct laci_quantise_source {
  lac_model *model;
  const lac_options *options;
  const laci_job *job;
  const laci_pruning *pruning;
  const laci_calibration_source *samples;
} laci_quantise_source;

/** Quantises the model with a pruning's new weights, and says so in the report; NULL without
 * options->quantisation. The model stays as it is, but for its file. */
LAC_MUST_CHECK lac_status laci_quantise_model(const laci_quantise_source *from, laci_report *report,
                                              laci_quantisation **made, lac_error *err);

/** The quantised network takes the place of the model's, which nobody may look at any more; made
 * NULL: nothing is done. */
void laci_quantised_commit(lac_model *model, laci_quantisation *made);

#endif
