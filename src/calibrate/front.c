/* SPDX-License-Identifier: Apache-2.0
 * Values kept in memory as long as they may, then in files. A file is unlinked as soon as it is
 * open, so that it is gone however the process ends. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_TMPFILE, fallocate */
#endif
#include "calibrate/front_in.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"

static const char *folder_of(const laci_front *front) {
  const char *parent = front->folder ? front->folder : getenv("TMPDIR");
  return parent && *parent ? parent : "/tmp";
}

static lac_status open_file(laci_kept *kept, lac_error *err) {
  const char *folder = folder_of(kept->front);
  kept->file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (kept->file < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/lacuna-XXXXXX", folder) < (int)sizeof path) {
      kept->file = mkostemp(path, O_CLOEXEC);
      if (kept->file >= 0) (void)unlink(path);
    }
  }
  if (kept->file < 0) return laci_fail_errno(err, folder, "opening a temporary file");
  /* Space now, where the file system can say so: better than to fail after minutes. */
  off_t size = (off_t)((uint64_t)kept->n * kept->batch_bytes);
  bool full = size > 0 && fallocate(kept->file, 0, 0, size) && (errno == ENOSPC || errno == EFBIG);
  if (!full) return LAC_OK;
  return laci_fail(err, LAC_IO,
                   "%s: no space for %" PRIu64
                   " bytes of values between layers in a temporary "
                   "file",
                   folder, (uint64_t)size);
}

static void count(laci_front *front) {
  uint64_t all = front->memory_bytes + front->file_bytes;
  if (all > front->most_bytes) front->most_bytes = all;
  if (front->memory_bytes > front->most_memory_bytes)
    front->most_memory_bytes = front->memory_bytes;
  if (front->file_bytes > front->most_file_bytes) front->most_file_bytes = front->file_bytes;
}

lac_status laci_kept_create(laci_front *front, size_t batch_bytes, int64_t first, int64_t n,
                            laci_kept **kept, lac_error *err) {
  laci_kept *k = laci_alloc(1, sizeof *k);
  *kept = NULL;
  if (!k) return laci_fail_memory(err, "values between layers");
  *k = (laci_kept){.front = front, .batch_bytes = batch_bytes, .first = first, .n = n, .file = -1};
  uint64_t bytes = (uint64_t)n * batch_bytes;
  bool fits = bytes <= front->memory_limit && front->memory_bytes <= front->memory_limit - bytes;
  if (fits) k->memory = laci_alloc((size_t)n, batch_bytes);
  lac_status st = k->memory ? LAC_OK : open_file(k, err);
  if (st) {
    if (k->file >= 0) (void)close(k->file);
    laci_free(k);
    return st;
  }
  if (k->memory) front->memory_bytes += bytes;
  else front->file_bytes += bytes;
  count(front);
  *kept = k;
  return LAC_OK;
}

void laci_kept_destroy(laci_kept *kept) {
  if (!kept) return;
  uint64_t bytes = (uint64_t)kept->n * kept->batch_bytes;
  if (kept->memory) kept->front->memory_bytes -= bytes;
  else kept->front->file_bytes -= bytes;
  if (kept->file >= 0) (void)close(kept->file);
  laci_free(kept->memory);
  laci_free(kept);
}

void *laci_kept_place(const laci_kept *kept, int64_t batch) {
  return kept->memory ? kept->memory + (size_t)(batch - kept->first) * kept->batch_bytes : NULL;
}

static off_t offset_of(const laci_kept *kept, int64_t batch) {
  return (off_t)((uint64_t)(batch - kept->first) * kept->batch_bytes);
}

lac_status laci_kept_write(const laci_kept *kept, int64_t batch, const void *from, lac_error *err) {
  const uint8_t *at = from;
  off_t offset = offset_of(kept, batch);
  for (size_t left = kept->batch_bytes; left > 0;) {
    ssize_t n = pwrite(kept->file, at, left, offset);
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
    ssize_t n = pread(kept->file, at, left, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return laci_fail_errno(err, folder_of(kept->front), "reading a temporary file");
    at += n;
    offset += n;
    left -= (size_t)n;
  }
  return LAC_OK;
}
