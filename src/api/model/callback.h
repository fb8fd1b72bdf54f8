/* SPDX-License-Identifier: Apache-2.0
 * Failures of callers' functions, which may set no text or return no status of ours. */
#ifndef LACI_API_MODEL_CALLBACK_H
#define LACI_API_MODEL_CALLBACK_H

#include "lacuna/status.h"

/** Copies the error of a caller's function to err. If the function set no text, err says that it
 * failed for `name`. Returns status, or LAC_IO if status is no value of lac_status. */
lac_status laci_callback_copy_error(lac_status status, const lac_error *said, const char *name,
                                    const char *function, lac_error *err);

#endif
