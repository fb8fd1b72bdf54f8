/* SPDX-License-Identifier: Apache-2.0
 * The option --tune, and the file that stores its timings. */
#ifndef CLI_TUNING_H
#define CLI_TUNING_H

#include "lacuna/engine.h"

typedef struct arguments arguments;

lac_tuning tuning_from_arguments(const arguments *args);
/** Returns the path of the file with timings: $XDG_CACHE_HOME/lacuna/timings.json, or the same
 * below ~/.cache; NULL: there is no home folder. Valid until the next call. */
const char *tuning_file(void);

#endif
