/* SPDX-License-Identifier: Apache-2.0
 * Draws the recovery after pruning: the dense network's score, the score right after pruning, and
 * its rise during training, for one or several methods of pruning. */
#include <string.h>

#include "api/model/structs.h"
#include "base/ending.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/writer.h"
#include "lacuna/train.h"
#include "report/curve.h"

static lac_status check_recovery(const lac_recovery *recovery, const char *path, lac_error *err) {
  if (!recovery->runs || !recovery->title)
    return laci_fail(err, LAC_BAD_ARGUMENT, "a title and runs are needed");
  if (recovery->n_runs < 1 || recovery->n_runs > LACI_CURVE_MAX_SERIES) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%d runs in one chart, wanted 1 to %d",
                     recovery->n_runs, LACI_CURVE_MAX_SERIES);
  }
  if (laci_ends_with(path, ".svg")) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: curves end in .svg", path);
}

static lac_status copy_points(const lac_recovery_run *run, laci_arena *arena,
                              laci_curve_series *series, lac_error *err) {
  if (!run->label || run->n_scores < 1 || !run->scores)
    return laci_fail(err, LAC_BAD_ARGUMENT, "a run of the chart has no label or no scores");
  size_t n = (size_t)run->n_scores;
  laci_curve_point *points = laci_arena_alloc(arena, n, sizeof *points);
  if (!points) return laci_fail_memory(err, "the curves");
  for (size_t at = 0; at < n; at++) {
    if (at > 0 && run->scores[at].step <= run->scores[at - 1].step)
      return laci_fail(err, LAC_BAD_ARGUMENT, "%s: its steps do not ascend", run->label);
    points[at] = (laci_curve_point){run->scores[at].step, run->scores[at].top1};
  }
  *series = (laci_curve_series){.label = run->label, .points = points, .n = n, .is_marked = true};
  return LAC_OK;
}

lac_status lac_recovery_plot(const lac_recovery *recovery, const char *path, bool force,
                             lac_error *err) {
  laci_arena arena = {0};
  char *svg = NULL;
  size_t size_bytes = 0;
  lac_recovery own;
  lac_status st = LACI_CHECK_GIVEN(err, {"recovery", recovery}, {"path", path});
  if (!st) st = laci_take_recovery(recovery, &own, err);
  if (!st) st = check_recovery(&own, path, err);
  if (st) return st;
  recovery = &own;
  laci_curve curve = {.title = recovery->title,
                      .data = recovery->data,
                      .n_accuracy = recovery->n_runs,
                      .steps_per_epoch = recovery->steps_per_epoch,
                      .dense = recovery->dense_top1,
                      .has_starts = true};
  for (int at = 0; at < recovery->n_runs && !st; at++) {
    st = copy_points(&recovery->runs[at], &arena, &curve.accuracy[at], err);
  }
  if (!st) st = laci_curve_svg(&curve, &svg, &size_bytes, err);
  if (!st) st = laci_file_write(path, svg, size_bytes, force, err);
  laci_free(svg);
  laci_arena_clear(&arena);
  return st;
}
