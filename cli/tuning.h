/* SPDX-License-Identifier: Apache-2.0
 * --tune, and where its timings are kept. */
#ifndef CLI_TUNING_H
#define CLI_TUNING_H

#include "lacuna/engine.h"

typedef struct arguments arguments;

lac_tuning tuning_of(const arguments *args);
/** $XDG_CACHE_HOME/lacuna/timings.json, or below ~/.cache; NULL: there is no home. A view, until it
 * is asked again. */
const char *tuning_file(void);

#endif
