/* SPDX-License-Identifier: Apache-2.0
 * Draws the loss over the number of pruned layers. */
#include <stdio.h>
#include <string.h>

#include "base/ending.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/writer.h"
#include "lacuna/calibration.h"
#include "lacuna/report.h"
#include "report/curve.h"

static lac_status check_plot_request(const lac_report *report, const char *path, lac_error *err) {
  if (!report->calibration || report->calibration->n_curve < 1) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: the loss over the layers was not measured",
                     report->model);
  }
  if (laci_ends_with(path, ".svg")) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: curves end in .svg", path);
}

lac_status lac_calibration_plot(const lac_report *report, const char *path, bool force,
                                lac_error *err) {
  char *svg = NULL, data[300];
  size_t size_bytes = 0;
  lac_status st = LACI_CHECK_GIVEN(err, {"report", report}, {"path", path});
  if (!st) st = check_plot_request(report, path, err);
  if (st) return st;
  const lac_calibration_result *c = report->calibration;
  const size_t n = (size_t)c->n_curve;
  laci_curve_point *points = laci_alloc(2 * n, sizeof *points);
  if (!points) return laci_fail_memory(err, path);
  for (size_t k = 0; k < n; k++) {
    points[k] = (laci_curve_point){(int64_t)k, 100 * c->curve[k].outputs_error};
    points[n + k] = (laci_curve_point){(int64_t)k, c->curve[k].top1};
  }
  (void)snprintf(data, sizeof data, "layers of least effect first; %.200s", c->data);
  laci_curve curve = {.title = report->model,
                      .data = data,
                      .loss = {{"of the pruned network", points, n, true}},
                      .n_loss = 1,
                      .accuracy = {{"top-1", points + n, n, true}},
                      .n_accuracy = c->labelled > 0,
                      .axis = "layers",
                      .loss_name = "error of the outputs, %",
                      .dense = c->labelled > 0 ? c->curve[0].top1 : 0};
  st = laci_curve_svg(&curve, &svg, &size_bytes, err);
  if (!st) st = laci_file_write(path, svg, size_bytes, force, err);
  laci_free(svg);
  laci_free(points);
  return st;
}
