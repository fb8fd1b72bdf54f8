/* SPDX-License-Identifier: Apache-2.0
 * A report as JSON, for scripts. The fields are described in docs/json.md. */
#ifndef LACI_REPORT_JSON_H
#define LACI_REPORT_JSON_H

#include "lacuna/report.h"

/** *text: UTF-8, two-space indent, final newline; the caller frees it with laci_free. The same
 * report gives the same bytes. Numbers that are not finite become null. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_report_json(const lac_report *report, char **text, lac_error *err);

#endif
