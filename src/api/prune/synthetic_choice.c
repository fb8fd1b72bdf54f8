/* SPDX-License-Identifier: Apache-2.0
 * Chooses synthetic images by the statistics that a network's batch normalizations store. */
#include "api/prune/calibration_in.h"
#include "api/prune/synthetic_in.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "calibrate/choose.h"
#include "graph/graph.h"

/* If more images are wanted, they are drawn without a choice: its time grows with the square of
 * their number. */
enum { MOST_CHOSEN = 4096 };

bool laci_synthetic_is_network_failure(lac_status status) {
  return status && status != LAC_NO_MEMORY && status != LAC_INTERRUPTED &&
         status != LAC_MEMORY_LIMIT;
}

lac_status laci_synthetic_choose_images(const laci_graph *graph,
                                        const laci_synthetic_options *options, int64_t n,
                                        laci_synthetic_input *input, int64_t **chosen,
                                        lac_error *err) {
  laci_samples *candidates = NULL;
  laci_choice choice = {.n_norms = 0};
  lac_error why = {0};
  *chosen = NULL;
  if (n > MOST_CHOSEN) return LAC_OK;
  const int64_t n_candidates = n * LACI_SYNTHETIC_CANDIDATES;
  lac_status st =
      laci_synthetic_samples_open(graph, options, n_candidates, input, &candidates, err);
  if (st) return st;
  const laci_calibration_samples list = {.count = laci_samples_count(candidates),
                                         .shapes = &laci_samples_type(candidates, 0)->shape,
                                         .fetch = laci_calibration_fetch_samples,
                                         .context = candidates,
                                         .engine = options->engine};
  const laci_choose_options wish = {
      .candidates = &list, .n = n, .pool = options->pool, .budget = options->budget};
  int64_t *places = laci_alloc((size_t)n, sizeof *places);
  st = places ? laci_choose_samples(graph, &wish, places, &choice, &why)
              : laci_fail_memory(&why, "synthetic images");
  if (!st && choice.n_norms > 0) {
    for (int64_t k = 0; k < n; k++) places[k] = laci_samples_data_index(candidates, places[k]);
    laci_log(LAC_LOG_INFO,
             "synthetic images: %lld of %lld are chosen by the statistics of %d batch "
             "normalizations, %.2g from those stored (the first ones: %.2g)",
             (long long)n, (long long)n_candidates, choice.n_norms, choice.chosen, choice.first);
    input->chosen = *chosen = places;
    input->n_chosen = n;
    input->candidates = n_candidates;
    places = NULL;
  }
  laci_free(places);
  laci_samples_close(candidates);
  if (!st || laci_synthetic_is_network_failure(st)) return LAC_OK;
  if (err) *err = why;
  return st;
}
