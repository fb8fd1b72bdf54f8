/* SPDX-License-Identifier: Apache-2.0
 * Makes lac_run_options, which say how a network is run, from the command line. The times that
 * --tune measures are stored in the user's cache folder (XDG Base Directory). */
#include "run_options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "base/ending.h"
#include "base/error.h"
#include "lacuna/engine.h"

static lac_tuning find_tuning(const arguments *args) {
  if (strcmp(args->tune, "full") == 0) return LAC_TUNING_FULL;
  return strcmp(args->tune, "quick") == 0 ? LAC_TUNING_QUICK : LAC_TUNING_OFF;
}

/* Returns the path of the file with timings: $XDG_CACHE_HOME/lacuna/timings.json, or the same below
 * ~/.cache; NULL: there is no home folder. */
static const char *find_timings_path(void) {
  static char path[PATH_MAX];
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  /* relative paths must be ignored, says the XDG specification */
  const bool has_cache = cache && cache[0] == '/';
  if (!has_cache && !(home && home[0] == '/')) return NULL;
  const int n = snprintf(path, sizeof path, "%s%s/lacuna/timings.json", has_cache ? cache : home,
                         has_cache ? "" : "/.cache");
  return n > 0 && (size_t)n < sizeof path ? path : NULL;
}

/* Is the text the path of a plug-in, not the name of an engine? */
static bool is_plugin_file_name(const char *text) {
  return strchr(text, '/') || laci_ends_with(text, ".so");
}

lac_status run_options_load_engine_plugin(arguments *args, lac_error *err) {
  char known[256] = "";
  size_t used = 0;
  if (!args->engine) return LAC_OK;
  if (is_plugin_file_name(args->engine)) return lac_engine_load(args->engine, &args->engine, err);
  for (int at = 0; lac_engine_name(at); at++) {
    if (strcmp(lac_engine_name(at), args->engine) == 0) return LAC_OK;
    int n = snprintf(known + used, sizeof known - used, "%s, ", lac_engine_name(at));
    if (n > 0 && used + (size_t)n < sizeof known) used += (size_t)n;
  }
  return laci_fail(err, LAC_BAD_ARGUMENT,
                   "--engine %s: there is no engine of this name; wanted %sor a plug-in's FILE.so",
                   args->engine, known);
}

lac_run_options run_options_from_arguments(const arguments *args) {
  return (lac_run_options){
      .threads = args->threads,
      .dtype = strcmp(args->dtype, "bf16") == 0 ? LAC_DTYPE_BF16 : LAC_DTYPE_F32,
      .max_memory = args->max_memory,
      .engine = args->engine,
      .dense_only = !args->sparse_kernels,
      .careful = args->careful,
      .tuning = find_tuning(args),
      .timings = find_timings_path()};
}
