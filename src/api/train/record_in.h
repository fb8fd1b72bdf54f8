/* SPDX-License-Identifier: Apache-2.0
 * The records of a training in its folder: log and curves. train.c reports the events to be
 * recorded. */
#ifndef LACI_API_TRAIN_RECORD_IN_H
#define LACI_API_TRAIN_RECORD_IN_H

#include <stdint.h>

#include "lacuna/status.h"

typedef struct lac_train_event lac_train_event;
typedef struct laci_train_plan laci_train_plan;
typedef struct laci_training laci_training;

/** mark.c: writes run.json, which marks the folder as one of a training run: program, network's
 * name, seed, steps, time of the start, options, machine, and the data with their hash. Fails as
 * reading some of the images does, and LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_train_mark_folder(const laci_training *training, lac_error *err);

/** Returns the hash of all labels and some images of the training part. If an image cannot be read,
 * it hashes labels alone, and the training reports the failure. (data_hash.c) */
uint64_t laci_train_hash_data(const laci_train_plan *plan);

/** log.jsonl, TensorBoard events and curves.svg of a run. */
typedef struct laci_train_record laci_train_record;

/** The texts of the curves' titles. */
typedef struct laci_train_about {
  const char *network; /* a path, or a name */
  const char *format;  /* format of the data */
  int64_t images, steps_per_epoch;
  double dense_top1; /* top-1 before pruning, percent; 0: not known */
} laci_train_about;

/** Opens the record in `folder`, which must exist. What an earlier run logged about steps after
 * `step` is removed from log.jsonl. The texts that `about` points to must outlive the record. */
LAC_MUST_CHECK lac_status laci_train_record_open(const char *folder, int64_t step,
                                                 const laci_train_about *about,
                                                 laci_train_record **record, lac_error *err);
LAC_MUST_CHECK lac_status laci_train_record_add_event(laci_train_record *record,
                                                      const lac_train_event *event, lac_error *err);
/** Draws the curves a last time and closes the record; NULL is fine. */
LAC_MUST_CHECK lac_status laci_train_record_close(laci_train_record *record, lac_error *err);

#endif
