/* SPDX-License-Identifier: Apache-2.0
 * Uniform random numbers by seed and name: the baseline that other scores are compared with. */
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "calibrate/score_in.h"

static lac_status draw_random_saliency(const laci_score_input *input, double *out, lac_error *err) {
  const laci_fit *fit = input->fit;
  const int64_t count = (int64_t)fit->rows * fit->columns;
  const uint64_t stream = laci_hash64(fit->name, strlen(fit->name), 0);
  (void)err;
  for (int64_t at = 0; at < count; at++)
    out[at] = laci_rng_unit_interval(fit->seed, stream, (uint64_t)at);
  return LAC_OK;
}

const laci_score laci_score_random = {
    .name = "random",
    .title = "random",
    .paper = "uniform numbers: what every score has to better",
    .saliency = draw_random_saliency,
};
