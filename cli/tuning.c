/* SPDX-License-Identifier: Apache-2.0
 * The path of the timings' file, in the user's cache folder (XDG Base Directory). */
#include "tuning.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"

lac_tuning tuning_from_arguments(const arguments *args) {
  if (strcmp(args->tune, "full") == 0) return LAC_TUNING_FULL;
  return strcmp(args->tune, "quick") == 0 ? LAC_TUNING_QUICK : LAC_TUNING_OFF;
}

const char *tuning_file(void) {
  static char path[PATH_MAX];
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  /* relative paths must be ignored, says the XDG specification */
  const bool has_cache = cache && cache[0] == '/';
  if (!has_cache && !(home && home[0] == '/')) return NULL;
  const int n = snprintf(path, sizeof path, "%s%s/lacuna/timings.json", has_cache ? cache : home,
                         has_cache ? "" : "/.cache");
  return n > 0 && (size_t)n < sizeof path ? path : NULL;
}
