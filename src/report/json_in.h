/* SPDX-License-Identifier: Apache-2.0
 * What reports say alike: how a layer begins, and a pattern. Private to report. */
#ifndef LACI_REPORT_JSON_IN_H
#define LACI_REPORT_JSON_IN_H

#include "base/json.h"
#include "lacuna/dtype.h"

typedef struct lac_calibration_result lac_calibration_result;
typedef struct lac_layer lac_layer;
typedef struct lac_quantization_result lac_quantization_result;

/** What names a layer in any report. */
typedef struct laci_layer_name {
  const char *name, *op, *weight;
  lac_dtype dtype;
  int rank;
  const int64_t *shape; /* [rank] */
} laci_layer_name;

/** {"name", "op", "weight", "dtype", "shape"}, to which a report adds its own fields. */
json_t *laci_layer_json(laci_json_writer *w, const laci_layer_name *layer);

/** What calibration did as a whole; NULL is null. */
json_t *laci_calibration_json(laci_json_writer *w, const lac_calibration_result *calibration);
/** ... and of a layer. */
void laci_layer_add_calibration(laci_json_writer *w, json_t *object, const lac_layer *layer);

/** What was quantized, and how. */
json_t *laci_quantization_json(laci_json_writer *w, const lac_quantization_result *quantization);

/** "N:M"; null where m is 0. */
json_t *laci_pattern_json(int n, int m);

#endif
