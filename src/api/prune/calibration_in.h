/* SPDX-License-Identifier: Apache-2.0
 * From lac_calibration to what the room prune takes. */
#ifndef LACI_API_PRUNE_CALIBRATION_IN_H
#define LACI_API_PRUNE_CALIBRATION_IN_H

#include "prune/prune.h"

typedef struct lac_calibration_result lac_calibration_result;
typedef struct lac_model lac_model;
typedef struct lac_options lac_options;
typedef struct laci_distill_source laci_distill_source;
typedef struct laci_job laci_job;
typedef struct laci_report laci_report;
typedef struct laci_samples laci_samples;

/** The score that the options mean: their own, or the default one. Fails LAC_BAD_ARGUMENT for one
 * that is not known, and for one that reads inputs where there are none. */
LAC_MUST_CHECK lac_status laci_check_score(const lac_options *options, lac_error *err);

/** The score itself, and its name. */
const laci_score *laci_score_of(const lac_options *options);
const char *laci_score_name_of(const lac_options *options);
/** options->calibration, which is there. Fails LAC_BAD_ARGUMENT, LAC_UNSUPPORTED. */
LAC_MUST_CHECK lac_status laci_check_calibration(const lac_options *options, lac_error *err);

/** Of a report: part of `of`, and what the agreement of answers is at least on such data, by
 * samples that are held back and have one answer each; else 0. In percent. */
double laci_percent(int64_t part, int64_t of);
double laci_least_agreement(const laci_output_difference *d, int64_t n_held_back);

/** Samples that are open, and what is to be done with them. */
typedef struct laci_calibration_source {
  laci_samples *samples;
  laci_shape *shapes; /* [n inputs of the network] */
  laci_calibration_samples list;
  laci_prune_calibration calibration;
  laci_distill_source *distill; /* NULL: nothing is wanted for the network as a whole */
} laci_calibration_source;

/** Opens options->calibration->data for the model's inputs, and logs what it is; of options without
 * calibration nothing is made. Fails as lac_prune says. */
LAC_MUST_CHECK lac_status laci_calibration_open(const lac_model *model, const lac_options *options,
                                                const laci_job *job,
                                                laci_calibration_source *source, lac_error *err);
void laci_calibration_close(laci_calibration_source *source); /* an empty one is fine */

/** The samples of `options`, each of those that are not held back with so many copies. */
LAC_MUST_CHECK lac_status laci_calibration_samples_open(const laci_graph *graph,
                                                        const lac_options *options,
                                                        const laci_job *job, int copies,
                                                        laci_samples **samples, lac_error *err);
laci_calibration_fetch laci_calibration_fetch_samples;

/** What options->calibration wants for the network as a whole: source->distill. */
LAC_MUST_CHECK lac_status laci_calibration_open_distill(const lac_model *model,
                                                        const lac_options *options,
                                                        const laci_job *job,
                                                        laci_calibration_source *source,
                                                        lac_error *err);
void laci_calibration_close_distill(laci_distill_source *distill); /* NULL is fine */

/** Does it, between laci_prune_begin and laci_prune_end; as laci_distill. */
LAC_MUST_CHECK lac_status laci_calibration_distill(laci_calibration_source *source,
                                                   laci_pruning *pruning,
                                                   const laci_prune_options *options,
                                                   laci_pool *pool, lac_error *err);

/** Copies what distillation did (errors, steps, seconds, why it was not kept) into `to`; texts go
 * into the report's arena. `from` NULL: there was none, `to` stays as it is. */
LAC_MUST_CHECK lac_status laci_report_add_distilled(laci_report *report,
                                                    const laci_distill_source *from,
                                                    lac_calibration_result *to, lac_error *err);

/** What the result says of calibration goes into the report. */
LAC_MUST_CHECK lac_status laci_report_add_calibration(laci_report *report,
                                                      const laci_pruning *pruning,
                                                      const laci_calibration_source *source,
                                                      lac_error *err);

#endif
