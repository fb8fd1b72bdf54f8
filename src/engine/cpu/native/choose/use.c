/* SPDX-License-Identifier: Apache-2.0
 * Which layers are native, and by which algorithm, according to the environment (for the whole
 * process) and the caller's options (for one engine). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/costs/costs.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/algorithms/algorithm.h"

/** Writes the names of all algorithms as text: "dense, generated, ...". */
static void write_algorithm_names(char *text, size_t size) {
  size_t used = 0;
  for (int id = 0; id < LACI_N_ALGORITHMS && used < size; id++) {
    const char *between = id == 0 ? "" : id + 1 < LACI_N_ALGORITHMS ? ", " : " and ";
    used +=
        (size_t)snprintf(text + used, size - used, "%s%s", between, laci_algorithm_by_id(id)->name);
  }
}

lac_status laci_native_read_use_options(const laci_engine_options *options, laci_native_use *use,
                                        lac_error *err) {
  const char *word = getenv("LAC_SPARSE"), *name = getenv("LAC_ALGORITHM");
  const bool all = word && strcmp(word, "all") == 0;
  laci_algorithm_id id = LACI_ALGORITHM_dense;
  *use = (laci_native_use){LACI_NATIVE_USE_NONE, 0};
  if (word && *word && !all && strcmp(word, "0") != 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "LAC_SPARSE=%s: wanted 0 or all", word);
  }
  if (name && *name && !laci_algorithm_find(name, &id)) {
    char names[256];
    write_algorithm_names(names, sizeof names);
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "LAC_ALGORITHM=%s: no algorithm has that name; there are %s", name, names);
  }
  if (options->dense_only || (word && strcmp(word, "0") == 0)) return LAC_OK;
  if (name && *name && id == LACI_ALGORITHM_dense) return LAC_OK;
  use->which = id != LACI_ALGORITHM_dense || all ? LACI_NATIVE_USE_ALL : LACI_NATIVE_USE_FASTER;
  use->algorithm = id;
  return LAC_OK;
}

lac_status laci_native_load_costs(laci_net *net, lac_error *err) {
  laci_costs *costs = laci_plan_alloc(&net->plan, 1, sizeof *costs);
  net->costs = costs;
  return costs ? laci_costs_load(costs, err) : net->plan.status;
}
