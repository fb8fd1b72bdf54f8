/* SPDX-License-Identifier: Apache-2.0
 * The folder of a training run: which files in it are the run's, and whether a folder is one.
 *
 * A run writes run.json first, which says that the folder is its own. A folder with other files and
 * without it is not ours, and no run writes there: the names of a run's files are common
 * ones. Folders of before run.json are known by their checkpoints. */
#ifndef LACI_RUNS_RUN_FOLDER_H
#define LACI_RUNS_RUN_FOLDER_H

#include <stdbool.h>

#include "lacuna/status.h"

#define LACI_RUN_MARK "run.json"
#define LACI_RUN_LOG "log.jsonl"
#define LACI_RUN_CURVES "curves.svg"
#define LACI_RUN_ORDER "order.json"
#define LACI_RUN_BEST "best" /* a folder, of checkpoints */
#define LACI_RUN_CHECKPOINTS "checkpoint-*.lac"
#define LACI_RUN_EVENTS "events.out.tfevents.*.lacuna"

/** Does a run write files of this name, in its folder or in the one of its best checkpoints? */
bool laci_run_has_name(const char *name);

/** LAC_OK where the folder is not there, is empty, or is a run's; else LAC_EXISTS, naming a file in
 * it that is none. Fails LAC_BAD_FILE (its log is a link or not a regular file), LAC_IO, too. */
LAC_MUST_CHECK lac_status laci_run_folder_check(const char *folder, lac_error *err);

/** Whether path is a file that a run in the folder may write: by its place, or since it is the same
 * file under another name. */
bool laci_run_folder_writes(const char *folder, const char *path);

#endif
