/* SPDX-License-Identifier: Apache-2.0
 * What prune, permute --apply and check --against share. */
#ifndef LACI_API_PRUNE_IN_H
#define LACI_API_PRUNE_IN_H

#include "api/report_in.h"

/** Proves the plan, writes what was found into the report's summary and tells it; a plan that moves
 * nothing holds by itself. */
LAC_MUST_CHECK lac_status laci_prove_plan(const laci_plan *plan, const lac_options *options,
                                          const laci_job *job, laci_report *report, lac_error *err);

#endif
