/* SPDX-License-Identifier: Apache-2.0
 * The common part of prune and permute: reads the model, does the work, writes all files, prints
 * the result. */
#ifndef CLI_PIPELINE_H
#define CLI_PIPELINE_H

#include "lacuna/prune.h"
#include "verbs.h"

/** The work of the verb: changes the model and makes the report. */
typedef lac_status pipeline_step(const arguments *args, const lac_options *options,
                                 lac_model *model, lac_report **report, lac_error *err);

exit_code pipeline_run_verb(const arguments *args, pipeline_step *step, lac_error *err);

#endif
