/* SPDX-License-Identifier: Apache-2.0
 * Parts of JSON that several reports share: the first fields of a layer, the results of calibration
 * and quantization, a pattern. Private to src/report. */
#ifndef LACI_REPORT_JSON_IN_H
#define LACI_REPORT_JSON_IN_H

#include "base/json.h"
#include "lacuna/dtype.h"

typedef struct lac_calibration_result lac_calibration_result;
typedef struct lac_layer lac_layer;
typedef struct lac_plan_facts lac_plan_facts;
typedef struct lac_plan_node lac_plan_node;
typedef struct lac_quantization_result lac_quantization_result;
typedef struct lac_report lac_report;

/** The fields that identify a layer in all reports. */
typedef struct laci_layer_name {
  const char *name, *op, *weight;
  lac_dtype dtype;
  int rank;
  const int64_t *shape; /* [rank] sizes of the weight's axes */
} laci_layer_name;

/** Returns a JSON object for a layer, {"name", "op", "weight", "dtype", "shape"}, to which each
 * report adds further fields. */
json_t *laci_layer_json(laci_json_writer *w, const laci_layer_name *layer);

/** Returns the result of a calibration of the network as JSON; null if calibration is NULL. */
json_t *laci_calibration_json(laci_json_writer *w, const lac_calibration_result *calibration);
/** Adds the results of a layer's calibration to its JSON object. */
void laci_layer_json_add_calibration(laci_json_writer *w, json_t *object, const lac_layer *layer);

/** Returns the predicted run times of the report's network as JSON. */
json_t *laci_prediction_json(laci_json_writer *w, const lac_report *report);

/** Returns as JSON the plan that an engine would make, and what would run each node. */
json_t *laci_plan_json(laci_json_writer *w, const lac_plan_facts *plan,
                       const lac_plan_node *const *nodes);

/** Returns the result of a quantization as JSON. */
json_t *laci_quantization_json(laci_json_writer *w, const lac_quantization_result *quantization);

/** Returns the pattern as the JSON text "N:M"; null if m is 0. */
json_t *laci_pattern_json(int n, int m);

#endif
