/* SPDX-License-Identifier: Apache-2.0
 * Draws the error of each value, in the networks' order. */
#include <string.h>

#include "api/model/structs.h"
#include "base/ending.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/writer.h"
#include "lacuna/compare.h"
#include "report/curve.h"

enum { PERCENT = 100 };

lac_status lac_compare_plot(const lac_compare_result *result, const char *path, bool force,
                            lac_error *err) {
  char *svg = NULL;
  size_t size_bytes = 0;
  lac_status st = LACI_CHECK_GIVEN(err, {"result", result}, {"path", path});
  if (st) return st;
  if (!laci_ends_with(path, ".svg"))
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: a comparison is drawn as .svg", path);
  laci_curve_point *points = laci_alloc((size_t)result->n_values + 1, sizeof *points);
  if (!points) return laci_fail_memory(err, "the drawing");
  for (int at = 0; at < result->n_values; at++)
    points[at] = (laci_curve_point){at + 1, PERCENT * result->values[at].error};
  const char *slash = strrchr(result->model, '/'), *other = strrchr(result->other, '/');
  laci_curve curve = {.title = slash ? slash + 1 : result->model,
                      .data = other ? other + 1 : result->other,
                      .loss = {{.label = "error",
                                .points = points,
                                .n = (size_t)result->n_values,
                                .is_marked = true}},
                      .n_loss = 1,
                      .axis = "value",
                      .loss_name = "error"};
  st = laci_curve_svg(&curve, &svg, &size_bytes, err);
  if (!st) st = laci_file_write(path, svg, size_bytes, force, err);
  laci_free(svg);
  laci_free(points);
  return st;
}
