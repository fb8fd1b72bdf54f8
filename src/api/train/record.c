/* SPDX-License-Identifier: Apache-2.0
 * The records of a training: one line per step in log.jsonl, TensorBoard events at the first and
 * every display step, summary and curves. Every evaluation makes summary and curves again from all
 * lines so far, including those of earlier runs. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/train/record_in.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/memory.h"
#include "runs/run_folder.h"
#include "base/writer.h"
#include "lacuna/train.h"
#include "report/curve.h"
#include "train/events.h"
#include "train/log.h"

struct laci_train_record {
  laci_train_log *log;
  laci_events *events;
  laci_train_about about;
  int folder; /* descriptor of the folder, which stays valid if its path changes */
  char curves[PATH_MAX], summary[PATH_MAX];
  bool has_step; /* a step of this run was recorded */
};

lac_status laci_train_record_open(const char *folder, int64_t step, const laci_train_about *about,
                                  laci_train_record **record, lac_error *err) {
  *record = NULL;
  laci_train_record *r = laci_alloc(1, sizeof *r);
  if (!r) return laci_fail_memory(err, "the log");
  r->about = *about;
  r->folder = -1;
  int n = snprintf(r->summary, sizeof r->summary, "%s/" LACI_RUN_SUMMARY, folder);
  lac_status st = LAC_OK;
  /* if the summary's path fits, so does this one, which is shorter */
  (void)snprintf(r->curves, sizeof r->curves, "%s/" LACI_RUN_CURVES, folder);
  if (n < 0 || (size_t)n >= sizeof r->summary) {
    st = laci_fail(err, LAC_BAD_ARGUMENT, "%s: the name is too long", folder);
  }
  if (!st) st = laci_folder_enter(folder, &r->folder, err);
  if (!st) st = laci_train_log_open(folder, step > 0 ? step : -1, &r->log, err);
  if (!st) st = laci_events_create(folder, &r->events, err);
  if (!st) {
    *record = r;
    return LAC_OK;
  }
  lac_status ignored = laci_train_record_close(r, NULL); /* the first failure is reported */
  (void)ignored;
  return st;
}

/* ---- Curves ---- */

/** The curves; each draws one number of one kind of log line. */
typedef enum series { TRAIN_LOSS, EVAL_LOSS, TOP1, TOP5, N_SERIES } series;

static double find_series_value(const laci_log_line *line, series which) {
  if (which == TOP1) return line->top1;
  return which == TOP5 ? line->top5 : line->loss;
}

static laci_curve_series gather_series(const laci_log_line *lines, int64_t n, series which,
                                       laci_curve_point *points) {
  static const char *const labels[N_SERIES] = {"training", "test", "top-1", "top-5"};
  laci_curve_series made = {
      .label = labels[which], .points = points, .is_marked = which != TRAIN_LOSS};
  for (int64_t at = 0; at < n; at++) {
    if (lines[at].is_eval != (which != TRAIN_LOSS)) continue;
    points[made.n++] = (laci_curve_point){lines[at].step, find_series_value(&lines[at], which)};
  }
  return made;
}

static lac_status draw_curves(const laci_train_record *r, lac_error *err) {
  int64_t n = 0;
  const laci_log_line *lines = laci_train_log_lines(r->log, &n);
  laci_curve_point *points = laci_alloc((size_t)n, N_SERIES * sizeof *points);
  char *svg = NULL;
  size_t size_bytes = 0;
  if (!points) return laci_fail_memory(err, "the curves");
  const char *slash = strrchr(r->about.network, '/');
  char data[128];
  (void)snprintf(data, sizeof data,
                 "%s, %" PRId64 " images for training, %" PRId64 " step%s an epoch",
                 r->about.format, r->about.images, r->about.steps_per_epoch,
                 r->about.steps_per_epoch == 1 ? "" : "s");
  laci_curve curve = {.title = slash ? slash + 1 : r->about.network,
                      .data = data,
                      .n_loss = 2,
                      .n_accuracy = 2,
                      .steps_per_epoch = (double)r->about.steps_per_epoch,
                      .dense = r->about.dense_top1};
  curve.loss[0] = gather_series(lines, n, TRAIN_LOSS, points);
  curve.loss[1] = gather_series(lines, n, EVAL_LOSS, points + n);
  curve.accuracy[0] = gather_series(lines, n, TOP1, points + 2 * n);
  curve.accuracy[1] = gather_series(lines, n, TOP5, points + 3 * n);
  lac_status st = laci_curve_svg(&curve, &svg, &size_bytes, err);
  if (!st) st = laci_file_write_at(r->folder, LACI_RUN_CURVES, r->curves, svg, size_bytes, err);
  laci_free(svg);
  laci_free(points);
  return st;
}

/* ---- The summary ---- */

/** The steps since the last evaluation. */
typedef struct stretch {
  double loss, top1, images_per_second; /* sums over these steps */
  int64_t n;
  double rate; /* learning rate of the last step */
} stretch;

static void add_step_to_interval(stretch *s, const laci_log_line *line) {
  s->loss += line->loss;
  s->top1 += line->top1;
  s->images_per_second += line->images_per_second;
  s->rate = line->rate;
  s->n++;
}

/** Writes a cell: a number, or nothing if there is no number. */
static void print_csv_cell(FILE *out, double value, bool exists) {
  fputc(',', out);
  if (exists && isfinite(value)) fprintf(out, "%.6g", value);
}

/** Writes summary.csv: one row per evaluation, with means over the steps before it. It is computed
 * from the log's lines, so that a continued run writes the same rows as an uninterrupted one. */
static lac_status write_summary(const laci_train_record *r, lac_error *err) {
  int64_t n = 0;
  const laci_log_line *lines = laci_train_log_lines(r->log, &n);
  char *text = NULL;
  size_t size = 0;
  stretch s = {0};
  FILE *out = open_memstream(&text, &size);
  if (!out) return laci_fail_memory(err, LACI_RUN_SUMMARY);
  fprintf(out, "step,epoch,train_loss,train_top1,test_loss,top1,top5,lr,images_per_second\n");
  for (int64_t k = 0; k < n; k++) {
    const laci_log_line *line = &lines[k];
    if (!line->is_eval) {
      add_step_to_interval(&s, line);
      continue;
    }
    const double steps = s.n ? (double)s.n : 1;
    fprintf(out, "%" PRId64, line->step);
    print_csv_cell(out, (double)line->step / (double)r->about.steps_per_epoch, true);
    print_csv_cell(out, s.loss / steps, s.n > 0);
    print_csv_cell(out, s.top1 / steps, s.n > 0);
    print_csv_cell(out, line->loss, true);
    print_csv_cell(out, line->top1, true);
    print_csv_cell(out, line->top5, true);
    print_csv_cell(out, s.rate, s.n > 0);
    print_csv_cell(out, s.images_per_second / steps, s.n > 0);
    fputc('\n', out);
    s = (stretch){0};
  }
  lac_status st = fclose(out) ? laci_fail_memory(err, LACI_RUN_SUMMARY) : LAC_OK;
  if (!st) st = laci_file_write_at(r->folder, LACI_RUN_SUMMARY, r->summary, text, size, err);
  free(text); /* by free, since open_memstream allocated it */
  return st;
}

/* ---- Events ---- */

static lac_status record_step(laci_train_record *r, const lac_train_event *e, lac_error *err) {
  const laci_log_line line = {.step = e->step,
                              .epoch = e->epoch,
                              .loss = e->loss,
                              .top1 = e->top1,
                              .rate = e->rate,
                              .images_per_second = e->images_per_second};
  const laci_scalar scalars[] = {{"loss/train", e->loss},
                                 {"accuracy/train", e->top1},
                                 {"rate", e->rate},
                                 {"images_per_second", e->images_per_second}};
  const bool is_first = !r->has_step;
  lac_status st = laci_train_log_write(r->log, &line, err);
  r->has_step = true;
  if (st || !(e->is_display || is_first)) return st;
  return laci_events_write(r->events, e->step, scalars, sizeof scalars / sizeof *scalars, err);
}

/** Does the log end with the evaluation of this step? If an earlier run was killed after an
 * evaluation and before the next checkpoint, the evaluation is done again. */
static bool is_evaluation_logged(const laci_train_record *r, int64_t step) {
  int64_t n = 0;
  const laci_log_line *lines = laci_train_log_lines(r->log, &n);
  return n > 0 && lines[n - 1].is_eval && lines[n - 1].step == step;
}

static lac_status record_evaluation(laci_train_record *r, const lac_train_event *e,
                                    lac_error *err) {
  const laci_log_line line = {
      .is_eval = true, .step = e->step, .loss = e->loss, .top1 = e->top1, .top5 = e->top5};
  const laci_scalar scalars[] = {
      {"loss/test", e->loss}, {"accuracy/top1", e->top1}, {"accuracy/top5", e->top5}};
  lac_status st =
      is_evaluation_logged(r, e->step) ? LAC_OK : laci_train_log_write(r->log, &line, err);
  if (!st) st = laci_events_write(r->events, e->step, scalars, 3, err);
  if (!st) st = write_summary(r, err);
  return st ? st : draw_curves(r, err);
}

lac_status laci_train_record_add_event(laci_train_record *r, const lac_train_event *e,
                                       lac_error *err) {
  if (e->kind == LAC_TRAIN_STEP) return record_step(r, e, err);
  if (e->kind == LAC_TRAIN_EVALUATED) return record_evaluation(r, e, err);
  return LAC_OK;
}

lac_status laci_train_record_close(laci_train_record *r, lac_error *err) {
  if (!r) return LAC_OK;
  lac_status st = r->log && r->events ? write_summary(r, err) : LAC_OK;
  if (!st && r->log && r->events) st = draw_curves(r, err);
  lac_status closed = laci_train_log_close(r->log, st ? NULL : err);
  if (!st) st = closed;
  closed = laci_events_close(r->events, st ? NULL : err);
  if (r->folder >= 0) (void)close(r->folder);
  laci_free(r);
  return st ? st : closed;
}
