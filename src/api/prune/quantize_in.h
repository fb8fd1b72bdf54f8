/* SPDX-License-Identifier: Apache-2.0
 * Quantization, which comes after pruning and before the new weights are committed to the model. */
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

/** Checks before the long work that the options are valid and that the network can be quantized
 * (laci_quantize_check). Returns LAC_OK without options->quantization. */
LAC_MUST_CHECK lac_status laci_check_quantization(const lac_model *model,
                                                  const lac_options *options, lac_error *err);

/** A finished pruning, and its inputs. */
typedef struct laci_quantize_source {
  lac_model *model;
  const lac_options *options;
  const laci_job *job;
  const laci_pruning *pruning;
  const laci_calibration_source *samples;
} laci_quantize_source;

/** Quantizes the model with a pruning's new weights, and adds the results to the report. *made is
 * NULL without options->quantization. Apart from its file, the model is not changed. */
LAC_MUST_CHECK lac_status laci_quantize_model(const laci_quantize_source *from, laci_report *report,
                                              laci_quantization **made, lac_error *err);

/** Replaces the model's network by the quantized one; pointers to the old network become invalid.
 * made NULL: does nothing. */
void laci_quantized_commit(lac_model *model, laci_quantization *made);

#endif
