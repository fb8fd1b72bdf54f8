/* SPDX-License-Identifier: Apache-2.0
 * Keeps values in memory up to the limit, then in files. A file has no name, so it is removed
 * however the process ends. Memory or a file that a value no longer needs is kept for the next
 * value of the same size. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* declares fallocate */
#endif
#include "calibrate/batch_allocator_in.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/temporary.h"

static const char *find_temporary_folder(const laci_batch_allocator *allocator) {
  const char *parent = allocator->folder ? allocator->folder : getenv("TMPDIR");
  return parent && *parent ? parent : "/tmp";
}

static lac_status open_file(const laci_batch_allocator *allocator, laci_batch_storage *place,
                            lac_error *err) {
  const char *folder = find_temporary_folder(allocator);
  place->file = laci_temporary_open_nameless(folder);
  if (place->file < 0) return laci_fail_errno(err, folder, "opening a temporary file");
  /* Reserves the disk space now if the file system supports it; otherwise a full disk would be
   * noticed only after minutes. */
  bool full = place->bytes > 0 && fallocate(place->file, 0, 0, (off_t)place->bytes) &&
              (errno == ENOSPC || errno == EFBIG);
  if (!full) return LAC_OK;
  (void)close(place->file);
  char size[32];
  return laci_fail(err, LAC_IO, "%s: no space for a temporary file of %s for values between layers",
                   folder, laci_size_text(place->bytes, size, sizeof size));
}

/* ---- Spare storage ---- */

static void free_storage(laci_batch_allocator *allocator, laci_batch_storage *place) {
  if (place->memory) allocator->held_bytes -= place->bytes;
  else (void)close(place->file);
  laci_free(place->memory);
}

static laci_batch_storage take_spare_storage(laci_batch_allocator *allocator, int kind, int at) {
  laci_batch_storage place = allocator->spares[kind][at];
  allocator->n_spares[kind]--;
  for (; at < allocator->n_spares[kind]; at++)
    allocator->spares[kind][at] = allocator->spares[kind][at + 1];
  return place;
}

static void free_oldest_spare(laci_batch_allocator *allocator, int kind) {
  laci_batch_storage place = take_spare_storage(allocator, kind, 0);
  free_storage(allocator, &place);
}

static bool take_spare_of_size(laci_batch_allocator *allocator, uint64_t bytes,
                               laci_batch_storage *place) {
  for (int kind = 0; kind < 2; kind++) {
    for (int at = allocator->n_spares[kind] - 1; at >= 0; at--) {
      if (allocator->spares[kind][at].bytes != bytes) continue;
      *place = take_spare_storage(allocator, kind, at);
      return true;
    }
  }
  return false;
}

static void keep_storage_as_spare(laci_batch_allocator *allocator,
                                  const laci_batch_storage *place) {
  int kind = place->memory ? 0 : 1;
  if (allocator->n_spares[kind] == LACI_SPARES) free_oldest_spare(allocator, kind);
  allocator->spares[kind][allocator->n_spares[kind]++] = *place;
}

void laci_batch_allocator_clear(laci_batch_allocator *allocator) {
  for (int kind = 0; kind < 2; kind++)
    while (allocator->n_spares[kind] > 0) free_oldest_spare(allocator, kind);
}

/* ---- Values ---- */

static bool fits_in_memory(const laci_batch_allocator *allocator, uint64_t bytes) {
  return bytes <= allocator->memory_limit &&
         allocator->held_bytes <= allocator->memory_limit - bytes;
}

static lac_status alloc_storage(laci_batch_allocator *allocator, uint64_t bytes,
                                laci_batch_storage *place, lac_error *err) {
  if (take_spare_of_size(allocator, bytes, place)) return LAC_OK;
  while (!fits_in_memory(allocator, bytes) && allocator->n_spares[0] > 0)
    free_oldest_spare(allocator, 0);
  *place = (laci_batch_storage){.bytes = bytes, .file = -1};
  if (fits_in_memory(allocator, bytes)) place->memory = laci_alloc((size_t)bytes, 1);
  if (!place->memory) return open_file(allocator, place, err);
  allocator->held_bytes += bytes;
  return LAC_OK;
}

lac_status laci_stored_batches_create(laci_batch_allocator *allocator, size_t batch_bytes,
                                      int64_t first, int64_t n, laci_stored_batches **kept,
                                      lac_error *err) {
  laci_stored_batches *k = laci_alloc(1, sizeof *k);
  *kept = NULL;
  if (!k) return laci_fail_memory(err, "values between layers");
  *k = (laci_stored_batches){
      .allocator = allocator, .batch_bytes = batch_bytes, .first = first, .n = n};
  lac_status st = alloc_storage(allocator, (uint64_t)n * batch_bytes, &k->place, err);
  if (st) {
    laci_free(k);
    return st;
  }
  *(k->place.memory ? &allocator->memory_bytes : &allocator->file_bytes) += k->place.bytes;
  uint64_t all = allocator->memory_bytes + allocator->file_bytes;
  if (all > allocator->most_bytes) allocator->most_bytes = all;
  if (allocator->file_bytes > allocator->most_file_bytes)
    allocator->most_file_bytes = allocator->file_bytes;
  *kept = k;
  return LAC_OK;
}

void laci_stored_batches_destroy(laci_stored_batches *kept) {
  if (!kept) return;
  laci_batch_allocator *allocator = kept->allocator;
  *(kept->place.memory ? &allocator->memory_bytes : &allocator->file_bytes) -= kept->place.bytes;
  keep_storage_as_spare(allocator, &kept->place);
  laci_free(kept);
}

void *laci_stored_batches_address(const laci_stored_batches *kept, int64_t batch) {
  return kept->place.memory ? kept->place.memory + (size_t)(batch - kept->first) * kept->batch_bytes
                            : NULL;
}

static off_t file_offset_of_batch(const laci_stored_batches *kept, int64_t batch) {
  return (off_t)((uint64_t)(batch - kept->first) * kept->batch_bytes);
}

lac_status laci_stored_batches_write(const laci_stored_batches *kept, int64_t batch,
                                     const void *from, lac_error *err) {
  const uint8_t *at = from;
  off_t offset = file_offset_of_batch(kept, batch);
  for (size_t left = kept->batch_bytes; left > 0;) {
    ssize_t n = pwrite(kept->place.file, at, left, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return laci_fail_errno(err, find_temporary_folder(kept->allocator),
                             "writing a temporary file");
    at += n;
    offset += n;
    left -= (size_t)n;
  }
  return LAC_OK;
}

lac_status laci_stored_batches_read(const laci_stored_batches *kept, int64_t batch, void *to,
                                    lac_error *err) {
  uint8_t *at = to;
  off_t offset = file_offset_of_batch(kept, batch);
  for (size_t left = kept->batch_bytes; left > 0;) {
    ssize_t n = pread(kept->place.file, at, left, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return laci_fail_errno(err, find_temporary_folder(kept->allocator),
                             "reading a temporary file");
    at += n;
    offset += n;
    left -= (size_t)n;
  }
  return LAC_OK;
}
