/* SPDX-License-Identifier: Apache-2.0
 * The forecast of a walk: private to calibrate. */
#ifndef LACI_CALIBRATE_FORECAST_IN_H
#define LACI_CALIBRATE_FORECAST_IN_H

#include "calibrate/walk_in.h"

/** Sets forecast_seconds and forecast_bytes of the result, of the options' n_walks together, and
 * logs them where the walks are not short. The samples have been read (laci_walk_read_inputs). It
 * costs a few batches' time; where the walks are short or something cannot be tried,
 * forecast_seconds stays 0. */
void laci_walk_forecast(laci_walk_state *w);

#endif
