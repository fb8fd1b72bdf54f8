/* SPDX-License-Identifier: Apache-2.0
 * Converts lac_calibration to the options of src/prune. */
#ifndef LACI_API_PRUNE_CALIBRATION_IN_H
#define LACI_API_PRUNE_CALIBRATION_IN_H

#include "prune/prune.h"

typedef struct lac_calibration lac_calibration;
typedef struct lac_calibration_result lac_calibration_result;
typedef struct lac_model lac_model;
typedef struct lac_options lac_options;
typedef struct laci_arena laci_arena;
typedef struct laci_distill_source laci_distill_source;
typedef struct laci_given_samples laci_given_samples;
typedef struct laci_job laci_job;
typedef struct laci_report laci_report;
typedef struct laci_sample_constant laci_sample_constant;
typedef struct laci_samples laci_samples;

/** Checks options->score. Fails LAC_BAD_ARGUMENT for an unknown score, and for one that needs
 * calibration without it. */
LAC_MUST_CHECK lac_status laci_check_score(const lac_options *options, lac_error *err);

/** laci_score_of_options returns the score that the options name, or the default score.
 * laci_score_name_of_options returns its name. */
const laci_score *laci_score_of_options(const lac_options *options);
const char *laci_score_name_of_options(const lac_options *options);
/** Checks options->calibration, which must not be NULL. Fails LAC_BAD_ARGUMENT, LAC_UNSUPPORTED. */
LAC_MUST_CHECK lac_status laci_check_calibration(const lac_options *options, lac_error *err);

/** Fails LAC_UNSUPPORTED where several processes prune; options->calibration must not be NULL. */
LAC_MUST_CHECK lac_status laci_check_one_process(const lac_options *options, lac_error *err);

/** Can the calibration be skipped? True if it is optional, and no layer is to be pruned or its
 * samples do not fit the network. *why is the reason. (optional.c) */
bool laci_calibration_can_be_skipped(const laci_analysis *analysis, const lac_options *options,
                                     lac_error *why);

/** laci_percent_of returns 100 * part / of. laci_agreement_lower_bound returns a lower confidence
 * bound, in percent, of how often the pruned network gives the dense network's answer on such data.
 * It returns 0 if there are no held-back samples, or samples without exactly one answer. */
double laci_percent_of(int64_t part, int64_t of);
double laci_agreement_lower_bound(const laci_output_difference *d, int64_t n_held_back);

/** The open samples of a calibration, and how they are used. */
typedef struct laci_calibration_source {
  laci_given_samples *given; /* the caller's samples in memory; NULL: the samples are opened from a
                                path, or drawn */
  laci_samples *samples;
  bool is_synthetic;             /* all samples are drawn (synthetic), none come from data */
  laci_shape *shapes;            /* [n inputs of the network] the shape of each input */
  int *axes;                     /* [n inputs of the network] the axis of each input along which
                                    samples are; -1: none */
  const void **constants;        /* [n inputs] elements of each input that all samples share; NULL:
                                    the samples differ */
  const laci_shape **shape_sets; /* [n shape sets] input shapes of each set of samples with equal
                                    shapes */
  int *shape_set_of;             /* [count + judging] index of the shape set of each sample */
  laci_calibration_samples list;
  laci_prune_calibration calibration;
  double error_data, error_mixed; /* errors of the outputs after a fit to the samples of the data
                                     alone (error_data), and after one to drawn samples as well
                                     (error_mixed); 0: no samples were drawn in addition to the
                                     data */
  laci_distill_source *distill;   /* samples and options of the steps on the network as a whole;
                                     NULL: they are not wanted */
} laci_calibration_source;

/** Opens options->calibration->data for the model's inputs, and logs a description of the data.
 * Does nothing without options->calibration. Fails as lac_prune. */
LAC_MUST_CHECK lac_status laci_calibration_open(const lac_model *model, const lac_options *options,
                                                const laci_job *job,
                                                laci_calibration_source *source, lac_error *err);
/** Can the samples judge orders of channels? Drawn ones cannot: no order that lowered the errors of
 * outputs on them lowered those on real samples, too (bench/notes/without-training.md). Then a line
 * of the log says that the file's order stays. */
bool laci_calibration_can_judge_orders(const laci_calibration_source *source);
void laci_calibration_close(laci_calibration_source *source); /* *source may be empty */

/** Describes the open source->samples for the network in source->list, all but labels. Fails
 * LAC_NO_MEMORY. (calibration_list.c) */
LAC_MUST_CHECK lac_status laci_calibration_describe_samples(const laci_graph *graph,
                                                            laci_calibration_source *source,
                                                            lac_error *err);
void laci_calibration_clear_list(laci_calibration_source *source);
/** Parses calibration->constants, "NAME=NUMBER". *constants and their names are in the arena. Fails
 * LAC_BAD_ARGUMENT, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_calibration_parse_constants(const lac_calibration *calibration,
                                                           laci_sample_constant **constants,
                                                           laci_arena *arena, lac_error *err);

/** What samples are opened from. given: the caller's samples in memory; NULL: they are opened from
 * a path. */
typedef struct laci_calibration_data {
  const laci_graph *graph;
  const lac_options *options;
  const laci_job *job;
  const laci_given_samples *given;
} laci_calibration_data;

/** Opens the samples of options->calibration, with `copies` augmented copies of each image that is
 * not held back. */
LAC_MUST_CHECK lac_status laci_calibration_samples_open(const laci_calibration_data *from,
                                                        int copies, laci_samples **samples,
                                                        lac_error *err);
laci_calibration_fetch laci_calibration_fetch_samples;

/** Is there no data, so that all samples are drawn? */
bool laci_calibration_is_drawn(const lac_calibration *calibration);
/** Adds drawn samples to those of options->calibration's data (laci_samples_join_drawn). Fails as
 * laci_samples_join_drawn, and as laci_calibration_samples_open where nothing can be drawn. */
LAC_MUST_CHECK lac_status laci_calibration_mix(const laci_calibration_data *from,
                                               laci_samples **samples, lac_error *err);
/** Decides whether *source keeps its drawn samples in addition to those of the data. Fits with and
 * without the drawn samples, in the file's order of channels, are compared on the samples of the
 * data that are held back. The drawn samples are removed if the data alone do as well. Fails as
 * laci_calibrate. (calibration_mixed.c) */
LAC_MUST_CHECK lac_status laci_calibration_judge_drawn(const lac_options *options,
                                                       const laci_job *job,
                                                       laci_calibration_source *source,
                                                       lac_error *err);

/** Does the network classify, so that each sample has one answer? True for an output [N, classes],
 * and if the shape is not known. */
bool laci_is_classifier(const laci_graph *graph);

/** Opens source->distill for the steps of options->calibration on the network as a whole
 * (recalibrate, refine, max_drop). */
LAC_MUST_CHECK lac_status laci_calibration_open_distill(const lac_model *model,
                                                        const lac_options *options,
                                                        const laci_job *job,
                                                        laci_calibration_source *source,
                                                        lac_error *err);
void laci_calibration_close_distill(laci_distill_source *distill); /* NULL is fine */

/** Runs the steps of source->distill, between laci_prune_begin and laci_prune_end. Fails as
 * laci_distill. */
LAC_MUST_CHECK lac_status laci_calibration_distill(laci_calibration_source *source,
                                                   laci_pruning *pruning,
                                                   const laci_prune_options *options,
                                                   laci_pool *pool, lac_error *err);

/** Copies what distillation did (errors, steps, seconds, why it was not kept) into `to`; texts go
 * into the report's arena. from NULL: there was no distillation, and *to stays unchanged. */
LAC_MUST_CHECK lac_status laci_report_add_distillation(laci_report *report,
                                                       const laci_distill_source *from,
                                                       lac_calibration_result *to, lac_error *err);

/** Adds the pruning's results of calibration to the report. */
LAC_MUST_CHECK lac_status laci_report_add_calibration(laci_report *report,
                                                      const laci_pruning *pruning,
                                                      const laci_calibration_source *source,
                                                      lac_error *err);

#endif
