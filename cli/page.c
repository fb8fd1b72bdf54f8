/* SPDX-License-Identifier: Apache-2.0
 * Remembers the command line and the warnings, which the HTML page (--html) shows, and writes the
 * page. */
#include "page.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "lacuna/prune.h"
#include "lacuna/train.h"

enum { MOST_WARNINGS = 100, MOST_COMMAND = 8192 };

static struct {
  char command[MOST_COMMAND];
  char *warnings[MOST_WARNINGS];
  int n_warnings;
} kept;

/* Appends n bytes to the text of the command line; what does not fit is left out. */
static void append_to_command(const char *bytes, size_t n) {
  size_t used = strlen(kept.command);
  if (used + n < sizeof kept.command) memcpy(kept.command + used, bytes, n);
}

/* Appends a word to the text of the command line, quoted for a shell if necessary. */
static void append_shell_word(const char *word) {
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "-_./:=,+@%";
  if (*word && word[strspn(word, plain)] == '\0') {
    append_to_command(word, strlen(word));
    return;
  }
  append_to_command("'", 1);
  for (; *word; word++) {
    if (*word == '\'') append_to_command("'\\''", 4);
    else append_to_command(word, 1);
  }
  append_to_command("'", 1);
}

void page_record_command(int argc, char **argv) {
  append_to_command("lacuna", strlen("lacuna"));
  for (int at = 1; at < argc; at++) {
    append_to_command(" ", 1);
    append_shell_word(argv[at]);
  }
}

void page_record_warning(const char *text) {
  if (kept.n_warnings == MOST_WARNINGS) return;
  size_t n = strlen(text);
  char *copy = laci_alloc(n + 1, 1);
  if (!copy) return;
  memcpy(copy, text, n);
  kept.warnings[kept.n_warnings++] = copy;
}

static void free_warnings(void) {
  for (int at = 0; at < kept.n_warnings; at++) laci_free(kept.warnings[at]);
  kept.n_warnings = 0;
}

/* ---- The lines of a training ---- */

struct page_log {
  laci_json_writer writer;
  json_t *lines;
};

void page_log_add(page_log **log, const lac_train_event *event) {
  const bool is_eval = event->kind == LAC_TRAIN_EVALUATED;
  if (!is_eval && (event->kind != LAC_TRAIN_STEP || !event->is_display)) return;
  if (!*log) *log = laci_alloc(1, sizeof **log);
  page_log *to = *log;
  if (!to) return;
  if (!to->lines) *to = (page_log){.writer = {.whole = true}, .lines = json_array()};
  laci_json_writer *w = &to->writer;
  json_t *line = json_object();
  if (is_eval) laci_json_add(w, line, "eval", json_true());
  laci_json_add(w, line, "step", json_integer((json_int_t)event->step));
  laci_json_add(w, line, "epoch", json_integer((json_int_t)event->epoch));
  laci_json_add(w, line, "loss", laci_json_number(event->loss));
  if (is_eval) {
    laci_json_add(w, line, "top1", laci_json_number(event->top1));
    laci_json_add(w, line, "top5", laci_json_number(event->top5));
  } else {
    laci_json_add(w, line, "lr", laci_json_number(event->rate));
    laci_json_add(w, line, "images_per_second", laci_json_number(event->images_per_second));
  }
  laci_json_append(w, to->lines, line);
}

lac_status page_log_to_json(page_log *log, char **text, lac_error *err) {
  *text = NULL;
  if (!log) return LAC_OK;
  laci_json_writer w = {.whole = log->writer.whole};
  return laci_json_finish(&w, json_incref(log->lines), LACI_JSON_REPORT(15), "the log", text, err);
}

void page_log_destroy(page_log *log) {
  if (!log) return;
  json_decref(log->lines);
  laci_arena_clear(&log->writer.arena);
  laci_free(log);
}

/* ---- The page ---- */

lac_status page_write(const lac_page *page, const char *path, bool force, lac_error *err) {
  lac_page whole = *page;
  whole.size = sizeof whole;
  whole.command = kept.command;
  whole.warnings = (const char *const *)kept.warnings;
  whole.n_warnings = kept.n_warnings;
  lac_status st = lac_page_write(&whole, path, force, NULL, err);
  free_warnings();
  return st;
}

lac_status page_inspect_model(lac_model *model, int n, int m, lac_report **report, lac_error *err) {
  lac_options options = lac_options_default();
  lac_error why = {0};
  options.n = n;
  options.m = m;
  lac_status st = lac_inspect(model, &options, report, &why);
  if (!st) return LAC_OK;
  *report = NULL;
  if (st == LAC_INTERRUPTED || st == LAC_NO_MEMORY) {
    *err = why;
    return st;
  }
  laci_log(LAC_LOG_WARNING, "the page has no drawing and no layers: %s", why.text);
  return LAC_OK;
}
