/* SPDX-License-Identifier: Apache-2.0
 * Plans the memory of pruning, phase by phase: search, new weights, verification. The phase that
 * needs most, together with the memory that is held all the time, must be within the limit. */
#include <stdlib.h>

#include "analyze/analyze.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/comm.h"
#include "graph/graph.h"
#include "prune/prune_in.h"
#include "tensor/shape.h"

static int compare_bytes(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x < y) - (x > y); /* the largest number comes first */
}

/* Returns the number of bytes that the search of a group holds: its magnitudes as 16-bit numbers,
 * and the values of its channels at all places. For a streamed model, also the weight that is being
 * read. Weights whose columns are the group's channels are stacked and sampled together, others
 * separately. */
static uint64_t bytes_of_group_search(const laci_analysis *a, const laci_group *group,
                                      bool streamed) {
  uint64_t stacked = 0, others = 0, largest = 0;
  for (int l = 0; l < group->n_layers; l++) {
    const laci_layer *layer = &a->layers[group->layers[l]];
    const laci_stored *stored = &a->graph->stored[layer->stored];
    const uint64_t count = (uint64_t)laci_shape_count(&stored->shape);
    if (layer->view.columns == group->n_channels) stacked += count;
    else others += count < LACI_MOST_ELEMENTS ? count : LACI_MOST_ELEMENTS;
    if (streamed && stored->size_bytes > largest) largest = stored->size_bytes;
  }
  if (stacked > LACI_MOST_ELEMENTS) stacked = LACI_MOST_ELEMENTS;
  return laci_count_bytes_saturated((int64_t)group->n_channels * group->n_channels, sizeof(float)) +
         laci_count_bytes_saturated((int64_t)(stacked + others), sizeof(uint16_t)) + largest;
}

/* Adds the memory of the searches of groups to the budget. As many searches as there are threads
 * may run at the same time: at worst, the largest ones. */
static lac_status add_searches_to_budget(const laci_analysis *a, bool streamed, int n_threads,
                                         laci_budget *budget, lac_error *err) {
  int n = a->n_searchable;
  uint64_t *bytes = laci_alloc((size_t)n, sizeof *bytes);
  if (!bytes) return laci_fail_memory(err, "the search");
  for (int g = 0; g < n; g++) bytes[g] = bytes_of_group_search(a, &a->groups[g], streamed);
  qsort(bytes, (size_t)n, sizeof *bytes, compare_bytes);
  for (int g = 0; g < n && g < n_threads; g++) {
    laci_budget_add(budget, bytes[g], "the search of one group of layers");
  }
  laci_free(bytes);
  return laci_budget_check(budget, "the search", err);
}

/* Adds the memory of new weights to the budget, if they are written to a file. Only one of them is
 * in memory at a time, with its mask as bytes and as bits. */
static lac_status add_spilled_weights_to_budget(const laci_analysis *a,
                                                const laci_prune_options *options,
                                                laci_budget *budget, lac_error *err) {
  laci_budget most = *budget;
  for (int l = 0; l < a->n_layers; l++) {
    const laci_stored *stored = &a->graph->stored[a->layers[l].stored];
    laci_budget one = *budget;
    laci_budget_add(&one, stored->size_bytes, "%.200s (made anew)", stored->name);
    if (options->mask) {
      laci_budget_add_unnamed(&one,
                              laci_count_bytes_saturated(laci_shape_count(&stored->shape), 9) / 8);
    }
    laci_budget_keep_larger(&most, &one);
  }
  *budget = most;
  return laci_budget_check(budget, "making the new weights", err);
}

/* Adds the memory of new weights to the budget. All reordered tensors and pruned weights are
 * allocated while the old ones are still in memory. */
static lac_status add_new_weights_to_budget(const laci_analysis *a,
                                            const laci_prune_options *options, laci_budget *budget,
                                            lac_error *err) {
  if (options->spill) return add_spilled_weights_to_budget(a, options, budget, err);
  for (int s = 0; s < a->graph->n_stored && options->permute; s++) {
    const laci_stored *stored = &a->graph->stored[s];
    laci_budget_add(budget, stored->size_bytes, "%.200s (made anew)", stored->name);
  }
  for (int l = 0; l < a->n_layers && options->mask; l++) {
    const laci_stored *stored = &a->graph->stored[a->layers[l].stored];
    if (!a->layers[l].eligible) continue;
    laci_budget_add_unnamed(budget,
                            laci_count_bytes_saturated(laci_shape_count(&stored->shape), 1) / 8);
    if (options->permute) continue;
    laci_budget_add(budget, stored->size_bytes, "%.200s (made anew)", stored->name);
  }
  return laci_budget_check(budget, "making the new weights", err);
}

lac_status laci_prune_check_memory(const laci_analysis *a, const laci_prune_options *options,
                                   int n_threads, lac_error *err) {
  laci_budget base = *options->budget, most = base, verification = base, phase = base;
  char text[32];
  bool verifies = options->permute && options->verify && a->n_searchable > 0 &&
                  laci_comm_rank(options->comm) == 0;
  lac_status st =
      options->permute ? add_searches_to_budget(a, options->spill, n_threads, &phase, err) : LAC_OK;
  if (st) return st;
  laci_budget_keep_larger(&most, &phase);
  phase = base;
  st = add_new_weights_to_budget(a, options, &phase, err);
  if (st) return st;
  laci_budget_keep_larger(&most, &phase);
  laci_verify_options how = {.engine = laci_verify_engine_by_name(options->engine),
                             .budget = &base};
  if (verifies) st = laci_verify_plan_memory(a->graph, &how, &verification, err);
  if (st == LAC_MEMORY_LIMIT) {
    return laci_hint(err, LAC_HINT_VERIFY,
                     laci_fail_with_prefix(
                         err, st, "the verification does not fit into memory (all else takes %s)",
                         laci_size_text(most.needed, text, sizeof text)));
  }
  if (st) return st;
  laci_budget_keep_larger(&most, &verification);
  laci_log(LAC_LOG_DEBUG, "memory: %s planned at most, %s of it for the model",
           laci_size_text(most.needed, text, sizeof text),
           laci_size_text(base.needed, (char[32]){0}, 32));
  return LAC_OK;
}
