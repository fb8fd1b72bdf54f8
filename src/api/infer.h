/* SPDX-License-Identifier: Apache-2.0
 * What infer and eval have in common: telling the plan. */
#ifndef LACI_API_INFER_H
#define LACI_API_INFER_H

#include "lacuna/engine.h"

/** The plan's lines, the last with the memory that it needs, to the log at LAC_LOG_DEBUG. */
void laci_tell_plan(const lac_engine *engine);

#endif
