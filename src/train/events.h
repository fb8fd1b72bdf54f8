/* SPDX-License-Identifier: Apache-2.0
 * What TensorBoard reads: a file of events, each a protobuf message framed as a TFRecord:
 *
 *     length u64   masked crc32c of the length u32   bytes   masked crc32c of the bytes u32
 *
 * Every event is written at once, so that a killed run leaves whole events and at most one that is
 * cut off, which readers pass over. */
#ifndef LACI_TRAIN_EVENTS_H
#define LACI_TRAIN_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_events laci_events;

/** A new file events.out.tfevents.SECONDS.lacuna in the folder, which is there; never an old one: a
 * run that goes on from a checkpoint makes another file. Fails LAC_NOT_FOUND, LAC_IO,
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_events_create(const char *folder, laci_events **events,
                                             lac_error *err);
/** Removes all such files. Fails LAC_IO. */
LAC_MUST_CHECK lac_status laci_events_clear(const char *folder, lac_error *err);
/** The file's path. */
const char *laci_events_path(const laci_events *events);

typedef struct laci_scalar {
  const char *tag; /* "loss", "accuracy/top1" */
  double value;
} laci_scalar;

/** One event of n values. Fails LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_events_write(laci_events *events, int64_t step,
                                            const laci_scalar *scalars, int n, lac_error *err);
/** Reports what could not be written. NULL is fine. */
LAC_MUST_CHECK lac_status laci_events_close(laci_events *events, lac_error *err);

#endif
