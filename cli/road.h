/* SPDX-License-Identifier: Apache-2.0
 * What prune and permute have in common: read, work, write all files, print the result. */
#ifndef CLI_ROAD_H
#define CLI_ROAD_H

#include "lacuna/prune.h"
#include "verbs.h"

/** The work in the middle: changes the model and makes the report. */
typedef lac_status road_step(const arguments *args, const lac_options *options, lac_model *model,
                             lac_report **report, lac_error *err);

exit_code road_run(const arguments *args, road_step *step, lac_error *err);

#endif
