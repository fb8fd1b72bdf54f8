/* SPDX-License-Identifier: Apache-2.0
 * Evaluation as other functions of the library use it. */
#ifndef LACI_API_EVAL_IN_H
#define LACI_API_EVAL_IN_H

#include "lacuna/eval.h"

/** lac_eval; quiet: no word of the plan and the data, for one evaluation of many. */
LAC_MUST_CHECK lac_status laci_eval(const lac_model *model, const char *data,
                                    const lac_eval_options *options, bool quiet,
                                    lac_eval_result *result, lac_error *err);

#endif
