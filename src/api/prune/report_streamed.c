/* SPDX-License-Identifier: Apache-2.0
 * Reports without figures of layers, for models that are larger than memory. */
#include "api/prune/report_in.h"
#include "base/log.h"

void laci_report_leave_unmeasured(laci_report *report, const char *path) {
  report->pub.summary.unmeasured = true;
  laci_log(LAC_LOG_INFO, "%s: large weights are not read: their zeros are not counted", path);
}
