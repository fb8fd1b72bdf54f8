/* SPDX-License-Identifier: Apache-2.0
 * Stores values between parts of the network, batch by batch. A value is in memory or in a
 * temporary file without a name. Private to calibrate. */
#ifndef LACI_CALIBRATE_BATCH_ALLOCATOR_IN_H
#define LACI_CALIBRATE_BATCH_ALLOCATOR_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

/* Limit of the spare storages (freed, kept for new values of the same size), for memory and for
 * files each. In small networks, getting fresh pages costs more than the computation. */
enum { LACI_SPARES = 3 };

/** Storage of a value (a tensor between two parts of the network). */
typedef struct laci_batch_storage {
  uint64_t bytes;
  uint8_t *memory; /* address of the value's storage; NULL: the value is in the file */
  int file;        /* descriptor of the file that holds the value; -1: the value is in memory */
} laci_batch_storage;

/** Where values may be stored, and how many bytes are stored now. */
typedef struct laci_batch_allocator {
  const char *folder;                   /* folder of the temporary files; NULL: that of TMPDIR, or
                                           /tmp */
  uint64_t memory_limit;                /* limit of the bytes in memory, spare storage included */
  uint64_t held_bytes;                  /* bytes in memory now, spare storage included */
  uint64_t memory_bytes, file_bytes;    /* bytes of the values that are stored now: in memory, and
                                           in files */
  uint64_t most_file_bytes, most_bytes; /* peak number of bytes so far: in files (most_file_bytes),
                                           and in memory and files together (most_bytes) */
  int n_spares[2];                      /* number of spares in memory [0] and in files [1]; the
                                           oldest spare comes first */
  laci_batch_storage spares[2][LACI_SPARES];
} laci_batch_allocator;

void laci_batch_allocator_clear(laci_batch_allocator *allocator); /* zeroed is fine */

/** The stored batches of one value of one network: batches first .. first + n - 1. */
typedef struct laci_stored_batches {
  laci_batch_allocator *allocator;
  size_t batch_bytes;
  int64_t first, n;
  laci_batch_storage place;
} laci_stored_batches;

/** Allocates storage for n batches of batch_bytes, in memory or in a file. Fails LAC_NO_MEMORY,
 * LAC_IO (no file). */
LAC_MUST_CHECK lac_status laci_stored_batches_create(laci_batch_allocator *allocator,
                                                     size_t batch_bytes, int64_t first, int64_t n,
                                                     laci_stored_batches **kept, lac_error *err);
void laci_stored_batches_destroy(laci_stored_batches *kept); /* NULL is fine */

static inline bool laci_stored_batches_in_memory(const laci_stored_batches *kept) {
  return kept->place.memory != NULL;
}

/** Returns the batch's address in memory, for reading and writing; NULL: it is in a file. */
void *laci_stored_batches_address(const laci_stored_batches *kept, int64_t batch);
/** laci_stored_batches_write writes a batch to the file; laci_stored_batches_read reads it from
 * there. Threads may access different batches at the same time. Both fail LAC_IO. */
LAC_MUST_CHECK lac_status laci_stored_batches_write(const laci_stored_batches *kept, int64_t batch,
                                                    const void *from, lac_error *err);
LAC_MUST_CHECK lac_status laci_stored_batches_read(const laci_stored_batches *kept, int64_t batch,
                                                   void *to, lac_error *err);

#endif
