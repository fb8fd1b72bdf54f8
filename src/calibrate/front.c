/* SPDX-License-Identifier: Apache-2.0
 * Values kept in memory as long as they may, then in files. A file is unlinked as soon as it is
 * open, so that it is gone however the process ends. Room that a value no longer needs is kept for
 * the next one of its size. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fallocate */
#endif
#include "calibrate/front_in.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/temporary.h"

static const char *folder_of(const laci_front *front) {
  const char *parent = front->folder ? front->folder : getenv("TMPDIR");
  return parent && *parent ? parent : "/tmp";
}

static lac_status open_file(const laci_front *front, laci_kept_room *place, lac_error *err) {
  const char *folder = folder_of(front);
  place->file = laci_temporary_nameless(folder);
  if (place->file < 0) return laci_fail_errno(err, folder, "opening a temporary file");
  /* Space now, where the file system can say so: better than to fail after minutes. */
  bool full = place->bytes > 0 && fallocate(place->file, 0, 0, (off_t)place->bytes) &&
              (errno == ENOSPC || errno == EFBIG);
  if (!full) return LAC_OK;
  (void)close(place->file);
  char size[32];
  return laci_fail(err, LAC_IO, "%s: no space for a temporary file of %s for values between layers",
                   folder, laci_size_text(place->bytes, size, sizeof size));
}

/* ---- Room that is free again ---- */

static void free_place(laci_front *front, laci_kept_room *place) {
  if (place->memory) front->held_bytes -= place->bytes;
  else (void)close(place->file);
  laci_free(place->memory);
}

static laci_kept_room take_spare(laci_front *front, int kind, int at) {
  laci_kept_room place = front->spares[kind][at];
  front->n_spares[kind]--;
  for (; at < front->n_spares[kind]; at++) front->spares[kind][at] = front->spares[kind][at + 1];
  return place;
}

static void drop_oldest(laci_front *front, int kind) {
  laci_kept_room place = take_spare(front, kind, 0);
  free_place(front, &place);
}

static bool find_spare(laci_front *front, uint64_t bytes, laci_kept_room *place) {
  for (int kind = 0; kind < 2; kind++) {
    for (int at = front->n_spares[kind] - 1; at >= 0; at--) {
      if (front->spares[kind][at].bytes != bytes) continue;
      *place = take_spare(front, kind, at);
      return true;
    }
  }
  return false;
}

static void give_back(laci_front *front, const laci_kept_room *place) {
  int kind = place->memory ? 0 : 1;
  if (front->n_spares[kind] == LACI_SPARES) drop_oldest(front, kind);
  front->spares[kind][front->n_spares[kind]++] = *place;
}

void laci_front_clear(laci_front *front) {
  for (int kind = 0; kind < 2; kind++)
    while (front->n_spares[kind] > 0) drop_oldest(front, kind);
}

/* ---- Values ---- */

static bool fits(const laci_front *front, uint64_t bytes) {
  return bytes <= front->memory_limit && front->held_bytes <= front->memory_limit - bytes;
}

static lac_status find_place(laci_front *front, uint64_t bytes, laci_kept_room *place,
                             lac_error *err) {
  if (find_spare(front, bytes, place)) return LAC_OK;
  while (!fits(front, bytes) && front->n_spares[0] > 0) drop_oldest(front, 0);
  *place = (laci_kept_room){.bytes = bytes, .file = -1};
  if (fits(front, bytes)) place->memory = laci_alloc((size_t)bytes, 1);
  if (!place->memory) return open_file(front, place, err);
  front->held_bytes += bytes;
  return LAC_OK;
}

lac_status laci_kept_create(laci_front *front, size_t batch_bytes, int64_t first, int64_t n,
                            laci_kept **kept, lac_error *err) {
  laci_kept *k = laci_alloc(1, sizeof *k);
  *kept = NULL;
  if (!k) return laci_fail_memory(err, "values between layers");
  *k = (laci_kept){.front = front, .batch_bytes = batch_bytes, .first = first, .n = n};
  lac_status st = find_place(front, (uint64_t)n * batch_bytes, &k->place, err);
  if (st) {
    laci_free(k);
    return st;
  }
  *(k->place.memory ? &front->memory_bytes : &front->file_bytes) += k->place.bytes;
  uint64_t all = front->memory_bytes + front->file_bytes;
  if (all > front->most_bytes) front->most_bytes = all;
  if (front->file_bytes > front->most_file_bytes) front->most_file_bytes = front->file_bytes;
  *kept = k;
  return LAC_OK;
}

void laci_kept_destroy(laci_kept *kept) {
  if (!kept) return;
  laci_front *front = kept->front;
  *(kept->place.memory ? &front->memory_bytes : &front->file_bytes) -= kept->place.bytes;
  give_back(front, &kept->place);
  laci_free(kept);
}

void *laci_kept_place(const laci_kept *kept, int64_t batch) {
  return kept->place.memory ? kept->place.memory + (size_t)(batch - kept->first) * kept->batch_bytes
                            : NULL;
}

static off_t offset_of(const laci_kept *kept, int64_t batch) {
  return (off_t)((uint64_t)(batch - kept->first) * kept->batch_bytes);
}

lac_status laci_kept_write(const laci_kept *kept, int64_t batch, const void *from, lac_error *err) {
  const uint8_t *at = from;
  off_t offset = offset_of(kept, batch);
  for (size_t left = kept->batch_bytes; left > 0;) {
    ssize_t n = pwrite(kept->place.file, at, left, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return laci_fail_errno(err, folder_of(kept->front), "writing a temporary file");
    at += n;
    offset += n;
    left -= (size_t)n;
  }
  return LAC_OK;
}

lac_status laci_kept_read(const laci_kept *kept, int64_t batch, void *to, lac_error *err) {
  uint8_t *at = to;
  off_t offset = offset_of(kept, batch);
  for (size_t left = kept->batch_bytes; left > 0;) {
    ssize_t n = pread(kept->place.file, at, left, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return laci_fail_errno(err, folder_of(kept->front), "reading a temporary file");
    at += n;
    offset += n;
    left -= (size_t)n;
  }
  return LAC_OK;
}
