/* SPDX-License-Identifier: Apache-2.0
 * The folder of a training run: which files in it belong to the run, and how such a folder is
 * recognized.
 *
 * A run first writes run.json, which marks the folder as one of a training run. No run writes to a
 * folder that has files but no run.json, since a run's files have common names. Folders from before
 * run.json was introduced are recognized by their checkpoints. */
#ifndef LACI_RUNS_RUN_FOLDER_H
#define LACI_RUNS_RUN_FOLDER_H

#include <stdbool.h>

#include "lacuna/status.h"

#define LACI_RUN_MARK "run.json"
#define LACI_RUN_LOG "log.jsonl"
#define LACI_RUN_CURVES "curves.svg"
#define LACI_RUN_SUMMARY "summary.csv"
#define LACI_RUN_ORDER "order.json"
#define LACI_RUN_BEST "best" /* name of the subfolder for the best checkpoints */
#define LACI_RUN_CHECKPOINTS "checkpoint-*.lac"
#define LACI_RUN_EVENTS "events.out.tfevents.*.lacuna"

/** Does a run write files of this name in its folder, or in the subfolder of its best
 * checkpoints? */
bool laci_is_run_file_name(const char *name);

/** Checks that a run may use the folder: it does not exist, is empty, or is a run's folder.
 * Otherwise fails with LAC_EXISTS; the text names a file in it that is not a run's. Also fails with
 * LAC_BAD_FILE if the log in it is a link or not a regular file, and with LAC_IO. */
LAC_MUST_CHECK lac_status laci_run_folder_check_usable(const char *folder, lac_error *err);

/** Is path a file that a run in this folder may write? It may be the same file under another
 * name. */
bool laci_run_may_write_path(const char *folder, const char *path);

#endif
