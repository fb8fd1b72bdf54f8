/* SPDX-License-Identifier: Apache-2.0
 * Fields of options that several functions take, checked in one place. */
#ifndef LACI_API_MODEL_FIELDS_H
#define LACI_API_MODEL_FIELDS_H

#include "lacuna/status.h"

/** Is value one of the n first of its enum? Fails LAC_BAD_ARGUMENT: "effort 99: wanted 0 to 2". */
LAC_MUST_CHECK lac_status laci_check_choice(const char *field, long long value, int n,
                                            lac_error *err);

#endif
