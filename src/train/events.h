/* SPDX-License-Identifier: Apache-2.0
 * Writes event files for TensorBoard. Each event is a protobuf message in the frame of a TFRecord:
 *
 *     length u64   masked crc32c of the length u32   bytes   masked crc32c of the bytes u32
 *
 * Every event is written immediately, so that a killed process leaves complete events and at most
 * one that is cut off, which readers skip. */
#ifndef LACI_TRAIN_EVENTS_H
#define LACI_TRAIN_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_events laci_events;

/** Creates a new file events.out.tfevents.SECONDS.lacuna in the folder, which must exist. An old
 * file is never extended: a run that continues from a checkpoint creates another one. Fails with
 * LAC_NOT_FOUND, LAC_IO or LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_events_create(const char *folder, laci_events **events,
                                             lac_error *err);
/** Removes all event files of the folder. Fails with LAC_IO. */
LAC_MUST_CHECK lac_status laci_events_remove_files(const char *folder, lac_error *err);
/** Returns the path of the event file; the text belongs to `events`. */
const char *laci_events_path(const laci_events *events);

typedef struct laci_scalar {
  const char *tag; /* name of the value, such as "loss" or "accuracy/top1" */
  double value;
} laci_scalar;

/** Writes one event with n values. Fails with LAC_IO or LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_events_write(laci_events *events, int64_t step,
                                            const laci_scalar *scalars, int n, lac_error *err);
/** Closes the file. Fails with LAC_IO if an event could not be written. events may be NULL. */
LAC_MUST_CHECK lac_status laci_events_close(laci_events *events, lac_error *err);

#endif
