/* SPDX-License-Identifier: Apache-2.0
 * Writes an event file for TensorBoard, in which each message has a frame. events.h has the format;
 * cmake/onnx.cmake generates events.pb-c.h. */
#include "train/events.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/memory.h"
#include "runs/run_folder.h"
#include "base/to_int.h"
#include "events.pb-c.h"

enum { MOST_TRIES = 1000, HEAD_BYTES = 12, TAIL_BYTES = 4 };

struct laci_events {
  char *path;
  int fd;
};

static double unix_time_seconds(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static lac_status write_bytes(laci_events *events, const uint8_t *bytes, size_t n, lac_error *err) {
  while (n > 0) {
    ssize_t written = write(events->fd, bytes, n);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return laci_fail(err, LAC_IO, "%s: %s", events->path, strerror(errno));
    bytes += written;
    n -= (size_t)written;
  }
  return LAC_OK;
}

static lac_status write_event(laci_events *events, Tensorboard__Event *event, lac_error *err) {
  size_t size = tensorboard__event__get_packed_size(event);
  uint8_t *record = laci_alloc(HEAD_BYTES + size + TAIL_BYTES, 1);
  if (!record) return laci_fail_memory(err, "an event");
  uint64_t length = size;
  memcpy(record, &length, sizeof length);
  uint32_t crc = laci_crc32c_masked(record, sizeof length);
  memcpy(record + sizeof length, &crc, sizeof crc);
  (void)tensorboard__event__pack(event, record + HEAD_BYTES);
  crc = laci_crc32c_masked(record + HEAD_BYTES, size);
  memcpy(record + HEAD_BYTES + size, &crc, sizeof crc);
  lac_status st = write_bytes(events, record, HEAD_BYTES + size + TAIL_BYTES, err);
  laci_free(record);
  return st;
}

/** Creates a new event file in the folder. If another run began in the same second and has this
 * name, the next free name is taken. */
static lac_status create_event_file(laci_events *e, const char *folder, size_t capacity,
                                    lac_error *err) {
  int64_t seconds = laci_clamp_to_int64(unix_time_seconds());
  size_t n_folder = strlen(folder) + 1;
  int in;
  lac_status st = laci_folder_enter(folder, &in, err);
  if (st) return st;
  for (int k = 0; k < MOST_TRIES; k++) {
    (void)snprintf(e->path, capacity, "%s/events.out.tfevents.%" PRId64 ".lacuna", folder,
                   seconds + k);
    e->fd = openat(in, e->path + n_folder, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (e->fd >= 0 || errno != EEXIST) break;
  }
  int cause = errno;
  (void)close(in);
  if (e->fd >= 0) return LAC_OK;
  return laci_fail(err, cause == ENOENT || cause == ENOTDIR ? LAC_NOT_FOUND : LAC_IO, "%s: %s",
                   e->path, strerror(cause));
}

lac_status laci_events_remove_files(const char *folder, lac_error *err) {
  return laci_folder_remove_matching(folder, LACI_RUN_EVENTS, err);
}

static void destroy_events(laci_events *events) {
  if (events->fd >= 0) (void)close(events->fd);
  laci_free(events->path);
  laci_free(events);
}

lac_status laci_events_create(const char *folder, laci_events **events, lac_error *err) {
  Tensorboard__Event first = TENSORBOARD__EVENT__INIT;
  size_t capacity = strlen(folder) + 64;
  *events = NULL;
  laci_events *e = laci_alloc(1, sizeof *e);
  if (!e) return laci_fail_memory(err, folder);
  e->fd = -1;
  e->path = laci_alloc(capacity, 1);
  lac_status st =
      e->path ? create_event_file(e, folder, capacity, err) : laci_fail_memory(err, folder);
  first.has_wall_time = true;
  first.wall_time = unix_time_seconds();
  first.file_version = "brain.Event:2";
  if (!st) st = write_event(e, &first, err);
  if (st) destroy_events(e);
  else *events = e;
  return st;
}

const char *laci_events_path(const laci_events *events) { return events->path; }

lac_status laci_events_write(laci_events *events, int64_t step, const laci_scalar *scalars, int n,
                             lac_error *err) {
  Tensorboard__Event event = TENSORBOARD__EVENT__INIT;
  Tensorboard__Summary summary = TENSORBOARD__SUMMARY__INIT;
  laci_arena arena = {0};
  Tensorboard__Summary__Value *values = laci_arena_alloc(&arena, (size_t)n, sizeof *values);
  Tensorboard__Summary__Value **list = laci_arena_alloc(&arena, (size_t)n, sizeof(void *));
  lac_status st = LAC_OK;
  if (!values || !list) {
    st = laci_fail_memory(err, "an event");
    goto out;
  }
  for (int k = 0; k < n; k++) {
    tensorboard__summary__value__init(&values[k]);
    values[k].tag = (char *)(uintptr_t)scalars[k].tag;
    values[k].has_simple_value = true;
    values[k].simple_value = (float)scalars[k].value;
    list[k] = &values[k];
  }
  summary.n_value = (size_t)n;
  summary.value = list;
  event.has_wall_time = event.has_step = true;
  event.wall_time = unix_time_seconds();
  event.step = step;
  event.summary = &summary;
  st = write_event(events, &event, err);
out:
  laci_arena_clear(&arena);
  return st;
}

lac_status laci_events_close(laci_events *events, lac_error *err) {
  lac_status st = LAC_OK;
  if (!events) return LAC_OK;
  if (close(events->fd) != 0) st = laci_fail(err, LAC_IO, "%s: %s", events->path, strerror(errno));
  events->fd = -1;
  destroy_events(events);
  return st;
}
