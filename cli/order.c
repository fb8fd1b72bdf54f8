/* SPDX-License-Identifier: Apache-2.0
 * Keeping and replaying the order of channels of a training run. */
#include "order.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/log.h"
#include "base/run_folder.h"

static bool find(const char *model_dir, char path[PATH_MAX]) {
  int n = model_dir ? snprintf(path, PATH_MAX, "%s/" LACI_RUN_ORDER, model_dir) : -1;
  return n > 0 && n < PATH_MAX;
}

bool order_replay(const char *model_dir, const lac_options *options, lac_model *model) {
  char path[PATH_MAX];
  lac_options how = *options;
  lac_report *report = NULL;
  lac_error err = {0};
  if (!find(model_dir, path) || access(path, F_OK) != 0) return false;
  /* without one the run begins anew, perhaps from another network */
  if (!laci_folder_has(model_dir, LACI_RUN_CHECKPOINTS)) return false;
  how.verify = false; /* it was proven before it was kept */
  lac_status st = lac_permutation_apply(model, path, false, &how, &report, &err);
  lac_report_destroy(report);
  if (st) laci_log(LAC_LOG_WARNING, "%s; an order is searched again", err.text);
  return st == LAC_OK;
}

void order_keep(const char *model_dir, const lac_report *report) {
  char path[PATH_MAX];
  lac_error err = {0};
  if (!find(model_dir, path)) return;
  if (report && !lac_permutation_save(report, path, true, &err)) return;
  (void)unlink(path); /* that of an earlier run would mislead this one */
  if (report)
    laci_log(LAC_LOG_WARNING, "%s; a run that goes on will search the order again", err.text);
}
