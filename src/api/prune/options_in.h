/* SPDX-License-Identifier: Apache-2.0
 * A caller's lac_options, with the structs that they point to, in structs of this library
 * (api/model/structs.h). */
#ifndef LACI_API_PRUNE_OPTIONS_IN_H
#define LACI_API_PRUNE_OPTIONS_IN_H

#include "lacuna/calibration.h"
#include "lacuna/prune.h"
#include "lacuna/quantization.h"

/** The library's copies of a caller's structs. It must not be moved, since `options` points to the
 * other copies. */
typedef struct laci_own_options {
  lac_options options;
  lac_calibration calibration;
  lac_quantization quantization;
} laci_own_options;

/** The value of lac_calibration.data, known by its address, if there are no data and all samples
 * are drawn. */
extern const char laci_drawn_name[];

/** Copies the caller's options, and the calibration and quantization that they point to; options
 * NULL: all defaults. Fails LAC_BAD_ARGUMENT, LAC_UNSUPPORTED (api/model/structs.h). */
LAC_MUST_CHECK lac_status laci_own_options_copy(const lac_options *options, laci_own_options *own,
                                                lac_error *err);

#endif
