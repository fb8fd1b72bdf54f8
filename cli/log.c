/* SPDX-License-Identifier: Apache-2.0
 * Log lines and one progress bar on standard error. The bar is erased before a line and drawn again
 * after it. The library calls the log's sink and the progress sink from any thread, each one call
 * at a time; a mutex prevents calls of both at the same time. */
#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/to_int.h"
#include "group.h"
#include "page.h"
#include "terminal.h"

enum { BAR_WIDTH = 30, BAR_FRAME = 3, SHORTEST_BAR = 4, NAME_WIDTH = 24, INDENT = 2 };
static const double BAR_EVERY_S = 0.1, LINE_EVERY_S = 5;
/* The time left is shown once this much time and this share of the job have passed. */
static const double KNOWN_AFTER_S = 1, KNOWN_AFTER_SHARE = 0.02;

static struct {
  pthread_mutex_t lock;
  bool quiet, is_terminal;
  char bar[512]; /* the progress line on the screen; empty: none */
  char job[64];
  char note[64];               /* text that is shown after the bar */
  double shown_s;              /* time when progress was last shown */
  double begun_s, begun_share; /* time of the job's first progress report, and the share that was
                                  done then */
} display = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void erase_bar(void) {
  if (display.bar[0]) fputs("\r\033[K", stderr);
}

static void print_log_line(lac_log_level level, const char *line, void *context) {
  (void)context;
  if (level == LAC_LOG_WARNING) page_record_warning(line);
  if (display.quiet) return;
  static const char *const marks[] = {"error: ", "warning: ", "", "  ", "    "};
  pthread_mutex_lock(&display.lock);
  erase_bar();
  const char *mark = (unsigned)level < sizeof marks / sizeof marks[0] ? marks[level] : "";
  int columns = terminal_columns(stderr), indent = (int)strlen(mark) + INDENT;
  fputs(mark, stderr);
  if (columns) text_print_wrapped(stderr, line, columns, (int)strlen(mark), indent);
  else fprintf(stderr, "%s\n", line);
  fputs(display.bar, stderr);
  fflush(stderr);
  pthread_mutex_unlock(&display.lock);
}

/* Writes the note, followed by the estimated time left as soon as that is known: ", 40 s left". The
 * estimate assumes the mean speed so far. */
static void format_note_and_time_left(double now, double share, char *text, size_t size) {
  enum { A_MINUTE = 60, AN_HOUR = 3600 };
  const double spent = now - display.begun_s, done = share - display.begun_share;
  const bool is_known = spent >= KNOWN_AFTER_S && done >= KNOWN_AFTER_SHARE;
  const double left = is_known ? spent * (1 - share) / done : 0;
  if (!is_known) snprintf(text, size, "%s", display.note);
  else if (left < 2 * A_MINUTE) snprintf(text, size, "%s, %.0f s left", display.note, left);
  else if (left < 2 * AN_HOUR)
    snprintf(text, size, "%s, %.0f min left", display.note, left / A_MINUTE);
  else snprintf(text, size, "%s, %.1f h left", display.note, left / AN_HOUR);
}

/* Draws "what [####....] 40%, note" in one line, whose last cell stays empty, since a cursor there
 * may wrap. On a narrow terminal the note is left out, and then the bar gets shorter. */
static void draw_bar(double share, const char *rest) {
  char full[BAR_WIDTH + 1] = {0}, name[sizeof display.job + 4], percent[8];
  int available = terminal_columns_ignoring_wide(stderr) - 1, n_percent, n_bar;
  n_percent =
      snprintf(percent, sizeof percent, " %3d%%", (int)laci_clamp_to_range(100 * share, 0, 100));
  text_shorten(display.job, NAME_WIDTH, name);
  available -= text_count_cells(name) + n_percent;
  bool with_rest = available - text_count_cells(rest) >= SHORTEST_BAR + BAR_FRAME;
  n_bar = available - (with_rest ? text_count_cells(rest) : 0) - BAR_FRAME;
  if (n_bar > BAR_WIDTH) n_bar = BAR_WIDTH;
  for (int i = 0; i < n_bar; i++) full[i] = i < laci_clamp_to_int64(share * n_bar) ? '#' : '.';
  erase_bar();
  snprintf(display.bar, sizeof display.bar, "%s [%s]%s%s", name, full, percent,
           with_rest ? rest : "");
  fputs(display.bar, stderr);
}

static void show_progress(const char *what, int64_t done, int64_t total, void *context) {
  (void)context;
  char rest[sizeof display.note + 32];
  double now = laci_clock_seconds();
  double share = total > 0 && done < total ? (double)done / (double)total : 1;
  pthread_mutex_lock(&display.lock);
  if (strncmp(what, display.job, sizeof display.job - 1) != 0) {
    snprintf(display.job, sizeof display.job, "%s", what);
    display.shown_s = now; /* a new job's progress is shown only after the first interval, so short
                              jobs show nothing */
    display.note[0] = 0;
    display.begun_s = now;
    display.begun_share = share;
  }
  if (done >= total) {
    erase_bar();
    display.bar[0] = display.job[0] = display.note[0] = 0;
  } else if (now - display.shown_s >= (display.is_terminal ? BAR_EVERY_S : LINE_EVERY_S)) {
    display.shown_s = now;
    format_note_and_time_left(now, share, rest, sizeof rest);
    if (display.is_terminal) draw_bar(share, rest);
    else fprintf(stderr, "%s: %d%%%s\n", what, (int)laci_clamp_to_range(100 * share, 0, 100), rest);
  }
  fflush(stderr);
  pthread_mutex_unlock(&display.lock);
}

void log_begin_printing(const arguments *args) {
  static const lac_log_level levels[] = {LAC_LOG_WARNING, LAC_LOG_INFO, LAC_LOG_DEBUG,
                                         LAC_LOG_TRACE};
  int level = args->verbose + (args->verb != VERB_demo); /* the demo logs its steps itself, so the
                                                            library is one level quieter there */
  display.quiet = args->quiet || !group_is_first_process(args);
  const char *terminal = getenv("TERM");
  display.is_terminal = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
  if (display.quiet && args->html) lac_log_set(LAC_LOG_WARNING, print_log_line, NULL);
  if (display.quiet) return;
  lac_log_set(levels[level < 3 ? level : 3], print_log_line, NULL);
  lac_progress_set(show_progress, NULL);
}

void log_end_printing(void) {
  lac_progress_set(NULL, NULL);
  lac_log_set(LAC_LOG_ERROR, NULL, NULL);
  pthread_mutex_lock(&display.lock);
  erase_bar();
  display.bar[0] = 0;
  fflush(stderr);
  pthread_mutex_unlock(&display.lock);
}

void log_line(const char *format, ...) {
  if (display.quiet) return;
  char line[1024];
  va_list values;
  va_start(values, format);
  vsnprintf(line, sizeof line, format, values);
  va_end(values);
  print_log_line(LAC_LOG_INFO, line, NULL);
}

void log_images_per_second(double images_per_second, int n_sparse) {
  char sparse[64] = "";
  if (n_sparse > 0)
    snprintf(sparse, sizeof sparse, ", %d layer%s by sparse kernels", n_sparse,
             laci_plural(n_sparse));
  log_line("%.*f images a second%s", images_per_second < 100 ? 1 : 0, images_per_second, sparse);
}

void log_set_progress_note(const char *format, ...) {
  char note[sizeof display.note];
  va_list values;
  va_start(values, format);
  vsnprintf(note, sizeof note, format, values);
  va_end(values);
  pthread_mutex_lock(&display.lock);
  memcpy(display.note, note, sizeof note);
  pthread_mutex_unlock(&display.lock);
}
