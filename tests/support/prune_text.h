/* SPDX-License-Identifier: Apache-2.0
 * Prunes a network that a test writes as text (support/graph_build.h). */
#ifndef TESTS_SUPPORT_PRUNE_TEXT_H
#define TESTS_SUPPORT_PRUNE_TEXT_H

#include "api/model/model_in.h"
#include "lacuna/model.h"
#include "lacuna/prune.h"
#include "lacuna/report.h"
#include "support/graph_build.h"

/** A model from text. */
static inline lac_model *read_model(const char *text) {
  lac_model *model = NULL;
  lac_error err = {0};
  assert_int_equal(laci_model_create_empty("(test)", &model, NULL), LAC_OK);
  if (net_read(text, &model->graph, &err)) fail_msg("%s", err.text);
  return model;
}

/* Prunes a network of this text, all sizes, with these options of calibration. */
static inline lac_report *prune_text(const char *text, const lac_calibration *calibration,
                                     const char *score) {
  lac_model *model = read_model(text);
  lac_report *report = NULL;
  lac_error err = {0};
  lac_options options = lac_options_default();
  options.calibration = calibration;
  options.score = score;
  options.all_sizes = true;
  if (lac_prune(model, &options, &report, &err)) fail_msg("%s", err.text);
  assert_int_equal(report->summary.pruned, 1);
  lac_model_destroy(model);
  return report;
}

#endif
