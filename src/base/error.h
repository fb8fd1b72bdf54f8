/* SPDX-License-Identifier: Apache-2.0
 * Filling a lac_error. `return laci_fail(err, LAC_BAD_SHAPE, "%s: ...", name)` is the one way to
 * fail. */
#ifndef LACI_BASE_ERROR_H
#define LACI_BASE_ERROR_H

#include "lacuna/status.h"

/** Writes the text (if err is given) and returns status, so that a failure is one statement. */
lac_status laci_fail(lac_error *err, lac_status status, const char *format, ...) LAC_PRINTF(3, 4);

/** Puts "format: " in front of the text already in err; returns the status that err holds. */
lac_status laci_fail_in(lac_error *err, lac_status status, const char *format, ...)
    LAC_PRINTF(3, 4);

/** For a failed allocation: "not enough memory for WHAT". */
lac_status laci_fail_memory(lac_error *err, const char *what);

#endif
