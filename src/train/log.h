/* SPDX-License-Identifier: Apache-2.0
 * log.jsonl: the events of a training, one JSON object in each line, for scripts and for plots.
 *
 *     {"step": 1, "epoch": 0, "loss": 0.0, "lr": 0.1, "images_per_second": 0.0, "top1": 0.0}
 *     {"eval": true, "step": 391, "top1": 0.0, "top5": 0.0, "loss": 0.0}
 *
 * Each line is appended immediately. A run that continues from step k first removes lines about
 * later steps, so that the log is the same as that of an uninterrupted run. */
#ifndef LACI_TRAIN_LOG_H
#define LACI_TRAIN_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_train_log laci_train_log;

typedef struct laci_log_line {
  bool is_eval;
  int64_t step;  /* steps taken so far */
  int64_t epoch; /* number of epochs completed before a training step; not set for an evaluation */
  double loss;   /* loss of the step or of the evaluation; null in the file if it is not finite */
  double rate, images_per_second; /* learning rate and speed of a training step; not set for an
                                     evaluation */
  double top1;                    /* percent: of the evaluation, or of the step's images */
  double top5;                    /* evaluation only, percent */
} laci_log_line;

/** Opens or creates folder/log.jsonl and keeps the lines of steps up to `step`; -1 keeps none. A
 * last line that is cut off is removed. Fails LAC_NOT_FOUND, LAC_IO, LAC_NO_MEMORY, and
 * LAC_BAD_FILE where the file is larger than 1 GiB, a link, or no regular file. */
LAC_MUST_CHECK lac_status laci_train_log_open(const char *folder, int64_t step,
                                              laci_train_log **log, lac_error *err);
LAC_MUST_CHECK lac_status laci_train_log_write(laci_train_log *log, const laci_log_line *line,
                                               lac_error *err);
/** Returns all lines so far, those of earlier runs included; a view, until the next write. */
const laci_log_line *laci_train_log_lines(const laci_train_log *log, int64_t *n);
/** Closes the file. Fails LAC_IO if the system reports that it could not be written. NULL is
 * fine. */
LAC_MUST_CHECK lac_status laci_train_log_close(laci_train_log *log, lac_error *err);

#endif
