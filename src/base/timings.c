/* SPDX-License-Identifier: Apache-2.0
 * The file of timings.h has the form
 *
 *     {"timings": 1, "version": "0.1.0", "machine": "...", "seconds": {"name": 0.001, ...}} */
#include "base/timings.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/writer.h"
#include "lacuna/version.h"

enum { FORMAT = 1, MOST_BYTES = 16 << 20, DIGITS = 6 };

struct laci_timings {
  laci_arena texts;
  const char *path; /* NULL: no file is read or written */
  const char *machine;
  json_t *seconds;
  bool changed;
};

static bool has_json_text(const json_t *root, const char *key, const char *text) {
  const char *has = json_string_value(json_object_get(root, key));
  return has && strcmp(has, text) == 0;
}

static bool has_version_and_machine(const json_t *root, const char *machine) {
  const json_t *seconds = json_object_get(root, "seconds");
  return json_integer_value(json_object_get(root, "timings")) == FORMAT &&
         has_json_text(root, "version", lac_version()) && has_json_text(root, "machine", machine) &&
         json_is_object(seconds);
}

/** Returns the "seconds" object of the file, owned by the caller; NULL if the file is missing,
 * damaged, or of another version or machine. */
static json_t *read_times_of_machine(const char *path, const char *machine) {
  char *text = NULL;
  json_t *root = NULL, *seconds = NULL;
  lac_error why = {0};
  if (access(path, F_OK) != 0) return NULL;
  lac_status st = laci_file_read_text(path, MOST_BYTES, &text, &why);
  if (!st) st = laci_json_read(path, "a file of timings", text, &root, &why);
  if (st) laci_log(LAC_LOG_WARNING, "timings are measured anew: %s", why.text);
  if (root && has_version_and_machine(root, machine))
    seconds = json_incref(json_object_get(root, "seconds"));
  json_decref(root);
  laci_free(text);
  return seconds;
}

/** Fails early if the path is not a regular file and so could not be replaced later, after hours of
 * timing. */
static lac_status check_file_kind(const char *path, lac_error *err) {
  struct stat info;
  if (!path || stat(path, &info) != 0 || S_ISREG(info.st_mode)) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: found no regular file, wanted a file of timings",
                   path);
}

lac_status laci_timings_open(const char *path, const char *machine, laci_timings **timings,
                             lac_error *err) {
  *timings = NULL;
  lac_status st = check_file_kind(path, err);
  if (st) return st;
  laci_timings *t = laci_alloc(1, sizeof *t);
  *timings = t;
  if (!t) return laci_fail_memory(err, "timings");
  t->machine = laci_arena_text(&t->texts, machine);
  t->path = path ? laci_arena_text(&t->texts, path) : NULL;
  t->seconds = path ? read_times_of_machine(path, machine) : NULL;
  if (!t->seconds) t->seconds = json_object();
  if (t->machine && t->seconds && (t->path || !path)) return LAC_OK;
  laci_timings_close(t);
  *timings = NULL;
  return laci_fail_memory(err, "timings");
}

void laci_timings_close(laci_timings *t) {
  if (!t) return;
  json_decref(t->seconds);
  laci_arena_clear(&t->texts);
  laci_free(t);
}

bool laci_timings_find(const laci_timings *t, const char *name, double *seconds) {
  const json_t *value = json_object_get(t->seconds, name);
  if (!json_is_number(value) || !(json_number_value(value) > 0)) return false;
  *seconds = json_number_value(value);
  return isfinite(*seconds);
}

lac_status laci_timings_set(laci_timings *t, const char *name, double seconds, lac_error *err) {
  t->changed = true;
  if (json_object_set_new(t->seconds, name, json_real(seconds)) == 0) return LAC_OK;
  return laci_fail_memory(err, "timings");
}

/** Creates all folders of the file's path. Failures are ignored here, since writing the file then
 * fails, too. */
static void make_folders(laci_timings *t) {
  char *folder = laci_arena_text(&t->texts, t->path);
  for (char *at = folder; at && (at = strchr(at + 1, '/'));) {
    *at = 0;
    (void)mkdir(folder, 0777);
    *at = '/';
  }
}

lac_status laci_timings_save(laci_timings *t, lac_error *err) {
  laci_json_writer w = {.whole = true};
  char *text = NULL;
  if (!t->path || !t->changed) return LAC_OK;
  json_t *root = json_object();
  laci_json_add(&w, root, "timings", json_integer(FORMAT));
  laci_json_add(&w, root, "version", laci_json_text(&w, lac_version()));
  laci_json_add(&w, root, "machine", laci_json_text(&w, t->machine));
  laci_json_add(&w, root, "seconds", json_incref(t->seconds));
  lac_status st =
      laci_json_finish(&w, root, LACI_JSON_REPORT(DIGITS) | JSON_SORT_KEYS, t->path, &text, err);
  if (!st) make_folders(t);
  if (!st) st = laci_file_write(t->path, text, strlen(text), true, err);
  laci_free(text);
  if (!st) t->changed = false;
  return st;
}
