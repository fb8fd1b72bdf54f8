/* SPDX-License-Identifier: Apache-2.0
 * What prune and permute have in common: read, work, write all files, print the result. */
#ifndef CLI_PIPELINE_H
#define CLI_PIPELINE_H

#include "lacuna/prune.h"
#include "verbs.h"

/** The work in the middle: changes the model and makes the report. */
typedef lac_status pipeline_step(const arguments *args, const lac_options *options,
                                 lac_model *model, lac_report **report, lac_error *err);

exit_code pipeline_run(const arguments *args, pipeline_step *step, lac_error *err);

#endif
