/* SPDX-License-Identifier: Apache-2.0
 * Creates, locks and marks the folder of a training run. Next: record.c. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/model/model_in.h"
#include "api/train/plan_in.h"
#include "api/train/record_in.h"
#include "api/train/train_in.h"
#include "base/error.h"
#include "base/folder.h"
#include "runs/run_folder.h"
#include "train/events.h"
#include "train/loop.h"

/** Writes run.json, which marks the folder as a run's; a run that continues keeps the file of its
 * start. */
static lac_status mark_folder(const laci_training *t, lac_error *err) {
  const lac_train_options *o = t->options;
  if (o->recover && laci_folder_has_match(o->model_dir, LACI_RUN_MARK)) return LAC_OK;
  return laci_train_mark_folder(t, err);
}

/* Creates the folder and those above it: a, a/b, a/b/c. */
static lac_status make_folder_path(const char *folder, lac_error *err) {
  char path[PATH_MAX];
  const size_t n = strlen(folder);
  if (n >= sizeof path) return laci_fail(err, LAC_IO, "%s: the name is too long", folder);
  for (size_t at = 1; at <= n; at++) {
    if (at < n && folder[at] != '/') continue;
    (void)snprintf(path, sizeof path, "%.*s", (int)at, folder);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
      return laci_fail(err, LAC_IO, "%s: %s", path, strerror(errno));
  }
  return LAC_OK;
}

bool laci_training_writes_files(const laci_training *t) {
  const lac_train_options *o = t->options;
  return o->model_dir && !o->eval_only && t->plan->process == 0;
}

lac_status laci_training_open_folder(laci_training *t, lac_error *err) {
  const lac_train_options *o = t->options;
  const char *folder = o->model_dir;
  if (!laci_training_writes_files(t)) return LAC_OK;
  lac_status st = make_folder_path(folder, err);
  if (!st) st = laci_folder_lock(folder, &t->lock, err);
  if (!st) st = laci_run_folder_check_usable(folder, err);
  if (st) return st;
  if (o->recover || !laci_loop_has_checkpoints(folder)) return mark_folder(t, err);
  if (o->force) {
    st = laci_loop_remove_checkpoints(folder, err);
    if (!st) st = laci_events_remove_files(folder, err);
    return st ? st : mark_folder(t, err);
  }
  return laci_fail(err, LAC_EXISTS,
                   "%s: it has checkpoints of another run; recovering goes on with it, forcing "
                   "begins anew",
                   folder);
}
