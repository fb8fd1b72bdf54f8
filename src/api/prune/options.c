/* SPDX-License-Identifier: Apache-2.0
 * Sets the defaults of lac_options, lac_calibration and lac_quantization, and copies such structs
 * of a caller. */
#include "api/prune/options_in.h"

#include <string.h>

#include "api/model/structs.h"
#include "base/error.h"
#include "data/prepare.h"

void lac_options_init(lac_options *options, size_t size) {
  const lac_options usual = {.size = sizeof usual,
                             .n = 2,
                             .m = 4,
                             .permute = true,
                             .verify = true,
                             .permute_for = "score",
                             .effort = LAC_EFFORT_NORMAL};
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

void lac_calibration_init(lac_calibration *options, size_t size) {
  const laci_preprocessing images = laci_preprocessing_default();
  lac_calibration usual = {.size = sizeof usual, .samples = 512, .solve = true, .max_drop = -1};
  memcpy(usual.mean, images.mean, sizeof usual.mean);
  memcpy(usual.std, images.std, sizeof usual.std);
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

void lac_quantization_init(lac_quantization *options, size_t size) {
  const lac_quantization usual = {.size = sizeof usual, .range = "mse", .format = "qdq-int8"};
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

const char laci_drawn_name[] = "synthetic";

/* Copies a caller's calibration; if it names no data, the samples (in memory or synthetic) get a
 * name for messages. */
static lac_status copy_calibration_of_caller(const lac_calibration *given, lac_calibration *own,
                                             lac_error *err) {
  lac_status st = laci_take_calibration(given, own, err);
  if (st || !(own->from_memory || own->synthetic)) return st;
  if (own->data && own->from_memory)
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "calibration with data and from_memory: wanted one of them");
  if (!own->data) own->data = own->from_memory ? "(memory)" : laci_drawn_name;
  return LAC_OK;
}

lac_status laci_own_options_copy(const lac_options *options, laci_own_options *own,
                                 lac_error *err) {
  lac_status st = laci_take_options(options, &own->options, err);
  if (st) return st;
  const lac_calibration *calibration = own->options.calibration;
  const lac_quantization *quantization = own->options.quantization;
  st = copy_calibration_of_caller(calibration, &own->calibration, err);
  if (!st) st = laci_take_quantization(quantization, &own->quantization, err);
  if (calibration) own->options.calibration = &own->calibration;
  if (quantization) own->options.quantization = &own->quantization;
  return st;
}
