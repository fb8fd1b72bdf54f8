/* SPDX-License-Identifier: Apache-2.0
 * Writes log.jsonl, a file with the events of a training for scripts and plots. Each line is a JSON
 * object:
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
  int64_t step;  /* number of steps taken so far */
  int64_t epoch; /* training step: number of epochs completed before it; not set for an
                    evaluation */
  double loss;   /* loss of the training step or of the evaluation; null in the file if it is not
                    finite */
  double rate, images_per_second; /* training step: learning rate and speed; not set for an
                                     evaluation */
  double top1;                    /* top-1 accuracy in percent, of the evaluation or of the training
                                     step's images */
  double top5;                    /* evaluation: top-5 accuracy in percent; not set for a training
                                     step */
} laci_log_line;

/** Opens or creates folder/log.jsonl. Keeps the lines about steps up to `step`, none if it is -1,
 * and removes the others, and a last line that is cut off. Fails with LAC_NOT_FOUND, LAC_IO,
 * LAC_NO_MEMORY, or LAC_BAD_FILE if the file is larger than 1 GiB, is a link, or is no regular
 * file. */
LAC_MUST_CHECK lac_status laci_train_log_open(const char *folder, int64_t step,
                                              laci_train_log **log, lac_error *err);
LAC_MUST_CHECK lac_status laci_train_log_write(laci_train_log *log, const laci_log_line *line,
                                               lac_error *err);
/** Returns all lines so far, including those of earlier runs, and sets *n to their number. They are
 * valid until the next write. */
const laci_log_line *laci_train_log_lines(const laci_train_log *log, int64_t *n);
/** Closes the file. Fails with LAC_IO if the system reports that it could not be written. log may
 * be NULL. */
LAC_MUST_CHECK lac_status laci_train_log_close(laci_train_log *log, lac_error *err);

#endif
