/* SPDX-License-Identifier: Apache-2.0
 * Checks of fields that are in the options of several functions. */
#ifndef LACI_API_MODEL_FIELDS_H
#define LACI_API_MODEL_FIELDS_H

#include "lacuna/status.h"

/** Checks that an enum's value is in [0, n). Fails LAC_BAD_ARGUMENT: "effort 99: wanted 0 to 2". */
LAC_MUST_CHECK lac_status laci_check_choice(const char *field, long long value, int n,
                                            lac_error *err);

#endif
