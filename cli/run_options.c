/* SPDX-License-Identifier: Apache-2.0
 * How a network is run, from the command line. The times that --tune measures are stored in the
 * user's cache folder (XDG Base Directory). */
#include "run_options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"

static lac_tuning tuning_of(const arguments *args) {
  if (strcmp(args->tune, "full") == 0) return LAC_TUNING_FULL;
  return strcmp(args->tune, "quick") == 0 ? LAC_TUNING_QUICK : LAC_TUNING_OFF;
}

/* Returns the path of the file with timings: $XDG_CACHE_HOME/lacuna/timings.json, or the same below
 * ~/.cache; NULL: there is no home folder. */
static const char *find_timings(void) {
  static char path[PATH_MAX];
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  /* relative paths must be ignored, says the XDG specification */
  const bool has_cache = cache && cache[0] == '/';
  if (!has_cache && !(home && home[0] == '/')) return NULL;
  const int n = snprintf(path, sizeof path, "%s%s/lacuna/timings.json", has_cache ? cache : home,
                         has_cache ? "" : "/.cache");
  return n > 0 && (size_t)n < sizeof path ? path : NULL;
}

lac_run_options run_options_of(const arguments *args) {
  return (lac_run_options){
      .threads = args->threads,
      .dtype = strcmp(args->dtype, "bf16") == 0 ? LAC_DTYPE_BF16 : LAC_DTYPE_F32,
      .max_memory = args->max_memory,
      .engine = args->engine,
      .dense_only = !args->sparse_kernels,
      .tuning = tuning_of(args),
      .timings = find_timings()};
}
