/* SPDX-License-Identifier: Apache-2.0
 * Evaluation as other functions of the library use it. */
#ifndef LACI_API_EVAL_IN_H
#define LACI_API_EVAL_IN_H

#include "data/prepare.h"
#include "lacuna/eval.h"

/** lac_eval; quiet: no word of the plan and the data, for one evaluation of many. */
LAC_MUST_CHECK lac_status laci_eval(const lac_model *model, const char *data,
                                    const lac_eval_options *options, bool quiet,
                                    lac_eval_result *result, lac_error *err);

/** Mean and std, where somebody has set others than the usual ones, are for images in colour. Fails
 * LAC_BAD_ARGUMENT where `recipe` prepares grey ones, which have scales of their own. */
LAC_MUST_CHECK lac_status laci_check_colours(const laci_recipe *recipe, const char *data,
                                             const float mean[3], const float std[3],
                                             lac_error *err);

#endif
