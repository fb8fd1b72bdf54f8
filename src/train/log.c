/* SPDX-License-Identifier: Apache-2.0
 * Reads the lines that an earlier run wrote to the log (log.h), truncates the file at the step from
 * which this run continues, and appends lines. Lines of another form (from an edited file) are kept
 * and ignored. */
#include "train/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/memory.h"
#include "runs/run_folder.h"

static const int64_t max_bytes = (int64_t)1 << 30;

struct laci_train_log {
  char *path;
  int fd;
  laci_log_line *lines;
  size_t n, capacity;
};

static lac_status fail_errno(const laci_train_log *log, lac_error *err) {
  int cause = errno;
  lac_status st = cause == ENOENT || cause == ENOTDIR ? LAC_NOT_FOUND : LAC_IO;
  return laci_fail(err, st, "%s: %s", log->path, strerror(cause));
}

static lac_status append_to_lines(laci_train_log *log, const laci_log_line *line, lac_error *err) {
  void *array = log->lines;
  if (!laci_grow(&array, log->n, &log->capacity, sizeof *log->lines)) {
    return laci_fail_memory(err, log->path);
  }
  log->lines = array;
  log->lines[log->n++] = *line;
  return LAC_OK;
}

/* ---- Reading ---- */

static double read_number(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/** Parses a line of the file. *is_line becomes false if the text is no line of a log. Fails with
 * LAC_NO_MEMORY. */
static lac_status parse_line(const laci_train_log *log, const char *text, size_t n,
                             laci_log_line *line, bool *is_line, lac_error *err) {
  json_error_t cause;
  json_t *object = json_loadb(text, n, 0, &cause);
  /* if an allocation fails, jansson may cut a token short and report a syntax error, so a failure
     is tried again */
  if (!object) object = json_loadb(text, n, 0, &cause);
  /* jansson gives no text if an allocation failed */
  if (!object && !cause.text[0]) return laci_fail_memory(err, log->path);
  const json_t *step = json_object_get(object, "step");
  *is_line = json_is_object(object) && json_is_integer(step) && json_integer_value(step) >= 0;
  *line = (laci_log_line){0};
  if (*is_line) {
    line->is_eval = json_is_true(json_object_get(object, "eval"));
    line->step = json_integer_value(step);
    line->epoch = json_integer_value(json_object_get(object, "epoch"));
    line->loss = read_number(object, "loss");
    line->rate = read_number(object, "lr");
    line->images_per_second = read_number(object, "images_per_second");
    line->top1 = read_number(object, "top1");
    line->top5 = read_number(object, "top5");
  }
  json_decref(object);
  return LAC_OK;
}

/** Lists the lines about steps up to `step`. *kept: offset in the file of the end of the last of
 * them. */
static lac_status parse_lines_up_to_step(laci_train_log *log, const char *text, size_t n,
                                         int64_t step, size_t *kept, lac_error *err) {
  lac_status st = LAC_OK;
  *kept = 0;
  for (size_t at = 0; at < n && !st;) {
    const char *end = memchr(text + at, '\n', n - at);
    laci_log_line line;
    bool is_line = false;
    if (!end) break;
    size_t length = (size_t)(end - text) - at;
    st = parse_line(log, text + at, length, &line, &is_line, err);
    if (is_line && line.step > step) break;
    if (is_line) st = append_to_lines(log, &line, err);
    at += length + 1;
    *kept = at;
  }
  return st;
}

/** Reads the file's text. *n: before, the size of the file; afterwards, the number of bytes that
 * were read, fewer if it was truncated meanwhile. */
static lac_status read_text(const laci_train_log *log, char *text, size_t *n, lac_error *err) {
  size_t done = 0;
  while (done < *n) {
    ssize_t got = pread(log->fd, text + done, *n - done, (off_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(log, err);
    if (got == 0) break;
    done += (size_t)got;
  }
  *n = done;
  return LAC_OK;
}

static lac_status truncate_log_after_step(laci_train_log *log, int64_t step, lac_error *err) {
  struct stat found;
  size_t kept = 0;
  lac_status st = LAC_OK;
  if (fstat(log->fd, &found) != 0) return fail_errno(log, err);
  if (found.st_size > max_bytes) {
    return laci_fail(err, LAC_BAD_FILE, "%s: %" PRId64 " bytes, more than a log can have",
                     log->path, (int64_t)found.st_size);
  }
  if (step >= 0 && found.st_size > 0) {
    size_t n = (size_t)found.st_size;
    char *text = laci_alloc(n, 1);
    if (!text) return laci_fail_memory(err, log->path);
    st = read_text(log, text, &n, err);
    if (!st) st = parse_lines_up_to_step(log, text, n, step, &kept, err);
    laci_free(text);
  }
  if (st) return st;
  if (ftruncate(log->fd, (off_t)kept) != 0) return fail_errno(log, err);
  return LAC_OK;
}

static void destroy_log(laci_train_log *log) {
  if (log->fd >= 0) (void)close(log->fd);
  laci_free(log->lines);
  laci_free(log->path);
  laci_free(log);
}

lac_status laci_train_log_open(const char *folder, int64_t step, laci_train_log **log,
                               lac_error *err) {
  size_t capacity = strlen(folder) + 16;
  *log = NULL;
  laci_train_log *l = laci_alloc(1, sizeof *l);
  if (!l) return laci_fail_memory(err, folder);
  l->fd = -1;
  l->path = laci_alloc(capacity, 1);
  int in = -1;
  lac_status st = l->path ? laci_folder_enter(folder, &in, err) : laci_fail_memory(err, folder);
  if (!st) {
    const int flags = O_RDWR | O_CREAT | O_APPEND;
    (void)snprintf(l->path, capacity, "%s/" LACI_RUN_LOG, folder);
    st = laci_folder_open_file(in, LACI_RUN_LOG, l->path, flags, &l->fd, err);
    (void)close(in);
  }
  if (!st) st = truncate_log_after_step(l, step, err);
  if (st) destroy_log(l);
  else *log = l;
  return st;
}

/* ---- Writing ---- */

/** Writes a number for JSON, which has no NaN or infinity; these become null. */
static const char *format_number(double value, char text[32]) {
  (void)snprintf(text, 32, isfinite(value) ? "%.9g" : "null", value);
  return text;
}

lac_status laci_train_log_write(laci_train_log *log, const laci_log_line *line, lac_error *err) {
  char text[320], a[32], b[32], c[32], d[32];
  int n;
  if (line->is_eval) {
    n = snprintf(text, sizeof text,
                 "{\"eval\": true, \"step\": %" PRId64
                 ", \"top1\": %s, \"top5\": %s, \"loss\": %s}\n",
                 line->step, format_number(line->top1, a), format_number(line->top5, b),
                 format_number(line->loss, c));
  } else {
    n = snprintf(text, sizeof text,
                 "{\"step\": %" PRId64 ", \"epoch\": %" PRId64
                 ", \"loss\": %s, \"lr\": %s, \"images_per_second\": %s, \"top1\": %s}\n",
                 line->step, line->epoch, format_number(line->loss, a),
                 format_number(line->rate, b), format_number(line->images_per_second, c),
                 format_number(line->top1, d));
  }
  for (int at = 0; at < n;) {
    ssize_t written = write(log->fd, text + at, (size_t)(n - at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno(log, err);
    at += (int)written;
  }
  return append_to_lines(log, line, err);
}

const laci_log_line *laci_train_log_lines(const laci_train_log *log, int64_t *n) {
  *n = (int64_t)log->n;
  return log->lines;
}

lac_status laci_train_log_close(laci_train_log *log, lac_error *err) {
  lac_status st = LAC_OK;
  if (!log) return LAC_OK;
  if (close(log->fd) != 0) st = fail_errno(log, err);
  log->fd = -1;
  destroy_log(log);
  return st;
}
