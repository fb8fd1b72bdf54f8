/* SPDX-License-Identifier: Apache-2.0
 * Quantization between a pruning and its commit. */
#ifndef LACI_API_PRUNE_QUANTIZE_IN_H
#define LACI_API_PRUNE_QUANTIZE_IN_H

#include "lacuna/status.h"

typedef struct lac_model lac_model;
typedef struct lac_options lac_options;
typedef struct laci_calibration_source laci_calibration_source;
typedef struct laci_job laci_job;
typedef struct laci_pruning laci_pruning;
typedef struct laci_quantization laci_quantization;
typedef struct laci_report laci_report;

/** What can be refused before the long work: options that make no sense, and what
 * laci_quantize_check says. Without options->quantization all is well. */
LAC_MUST_CHECK lac_status laci_check_quantization(const lac_model *model,
                                                  const lac_options *options, lac_error *err);

/** A pruning that is done, and what it was made of. */
typedef struct laci_quantize_source {
  lac_model *model;
  const lac_options *options;
  const laci_job *job;
  const laci_pruning *pruning;
  const laci_calibration_source *samples;
} laci_quantize_source;

/** Quantizes the model with a pruning's new weights, and says so in the report; NULL without
 * options->quantization. The model stays as it is, but for its file. */
LAC_MUST_CHECK lac_status laci_quantize_model(const laci_quantize_source *from, laci_report *report,
                                              laci_quantization **made, lac_error *err);

/** The quantized network takes the place of the model's, which nobody may look at any more; made
 * NULL: nothing is done. */
void laci_quantized_commit(lac_model *model, laci_quantization *made);

#endif
