/* SPDX-License-Identifier: Apache-2.0
 * Makes readers (base/reader.h) of files that a caller's functions read. The results of these
 * functions are not trusted: sizes are checked, and bytes that are read twice are compared. */
#include "api/model/caller_files.h"

#include <pthread.h>
#include <string.h>

#include "api/model/callback.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/reader.h"
#include "lacuna/model.h"

struct laci_caller_files {
  lac_load_options from;
  pthread_mutex_t lock; /* held during a call, and to count readers */
  int n_readers;
};

/** One of the files, as the origin of a reader. */
typedef struct caller_file {
  laci_caller_files *files;
  size_t size_bytes;
  const char *shown; /* the name in messages */
  char name[];
} caller_file;

static lac_status call_read_function(const caller_file *f, size_t offset, void *to, size_t *n,
                                     lac_error *err) {
  const lac_load_options *from = &f->files->from;
  const size_t wanted = *n;
  lac_error said = {0};
  lac_status st = from->read(from->read_context, f->name, offset, to, n, &said);
  if (st) return laci_callback_copy_error(st, &said, f->shown, "options.read", err);
  if (*n > wanted) {
    return laci_fail(err, LAC_IO, "%s: options.read gave %zu bytes, wanted at most %zu", f->shown,
                     *n, wanted);
  }
  if (*n > 0) return LAC_OK;
  return laci_fail(err, LAC_IO, "%s: it ends at byte %zu, but its size was %zu", f->shown, offset,
                   f->size_bytes);
}

static lac_status fetch_caller_bytes(void *context, size_t offset, size_t size_bytes, void *to,
                                     lac_error *err) {
  const caller_file *f = context;
  uint8_t *at = to;
  lac_status st = LAC_OK;
  (void)pthread_mutex_lock(&f->files->lock);
  while (size_bytes > 0 && !st) {
    size_t n = size_bytes;
    st = call_read_function(f, offset, at, &n, err);
    if (st) break;
    at += n;
    offset += n;
    size_bytes -= n;
  }
  (void)pthread_mutex_unlock(&f->files->lock);
  return st;
}

static void close_file(void *context) {
  caller_file *f = context;
  laci_caller_files *files = f->files;
  (void)pthread_mutex_lock(&files->lock);
  const bool last = --files->n_readers == 0;
  (void)pthread_mutex_unlock(&files->lock);
  laci_free(f);
  if (!last) return;
  (void)pthread_mutex_destroy(&files->lock);
  laci_free(files);
}

/** Reads the last byte, so that a wrong size is found before anything depends on it. */
static lac_status check_last_byte(laci_reader *reader, lac_error *err) {
  uint8_t last;
  const size_t n = laci_reader_size(reader);
  return n == 0 ? LAC_OK : laci_reader_copy_range(reader, n - 1, 1, &last, err);
}

static lac_status open_file(laci_caller_files *files, const char *name, uint64_t size_bytes,
                            laci_reader **reader, lac_error *err) {
  const size_t n_name = strlen(name) + 1;
  caller_file *f = laci_alloc(1, sizeof *f + n_name);
  *reader = NULL;
  if (!f) return laci_fail_memory(err, "the model");
  f->files = files;
  f->size_bytes = (size_t)size_bytes;
  memcpy(f->name, name, n_name);
  f->shown = name[0] ? f->name : "the model";
  const laci_origin origin = {.name = f->shown,
                              .size_bytes = f->size_bytes,
                              .fetch = fetch_caller_bytes,
                              .close = close_file,
                              .context = f};
  lac_status st = laci_reader_open_callbacks(&origin, reader, err);
  if (st) {
    laci_free(f);
    return st;
  }
  files->n_readers++; /* no reader is used by another thread yet */
  st = laci_reader_watch_for_changes(*reader, err);
  if (!st) st = check_last_byte(*reader, err);
  if (!st) return LAC_OK;
  laci_reader_close(*reader);
  *reader = NULL;
  return st;
}

lac_status laci_caller_files_open(const lac_load_options *options, laci_caller_files **files,
                                  laci_reader **model, lac_error *err) {
  *model = NULL;
  *files = laci_alloc(1, sizeof **files);
  if (!*files) return laci_fail_memory(err, "the model");
  (*files)->from = *options;
  (void)pthread_mutex_init(&(*files)->lock, NULL); /* never fails with default attributes */
  (*files)->n_readers = 1;                         /* counts this function, until it returns */
  lac_status st = open_file(*files, "", options->size_bytes, model, err);
  if (--(*files)->n_readers > 0) return st;
  (void)pthread_mutex_destroy(&(*files)->lock);
  laci_free(*files);
  *files = NULL;
  return st;
}

lac_status laci_caller_files_open_data(void *files, const char *location, laci_reader **reader,
                                       lac_error *err) {
  laci_caller_files *own = files;
  const lac_load_options *from = &own->from;
  uint64_t size_bytes = 0;
  lac_error said = {0};
  if (!from->find_size) {
    return laci_fail(err, LAC_BAD_FILE, "external data '%s', but no options.find_size", location);
  }
  (void)pthread_mutex_lock(&own->lock);
  lac_status st = from->find_size(from->read_context, location, &size_bytes, &said);
  (void)pthread_mutex_unlock(&own->lock);
  if (st) return laci_callback_copy_error(st, &said, location, "options.find_size", err);
  return open_file(own, location, size_bytes, reader, err);
}
