/* SPDX-License-Identifier: Apache-2.0
 * The forecast of a walk: private to calibrate. */
#ifndef LACI_CALIBRATE_FORECAST_IN_H
#define LACI_CALIBRATE_FORECAST_IN_H

#include "calibrate/walk_in.h"

/** Sets forecast_seconds and forecast_bytes of the result, for the options' n_walks calibrations
 * together, and logs them if these are not short. Call it after laci_walk_read_inputs. It takes as
 * long as a few batches. If the calibrations are short, or something cannot be timed,
 * forecast_seconds stays 0. */
void laci_walk_forecast(laci_walk_state *w);

/** Returns the seconds that the fits of all layers take; negative: not known (forecast_fit.c). */
double laci_walk_forecast_fits(const laci_walk_state *w);

#endif
