/* SPDX-License-Identifier: Apache-2.0
 * Scores a weight by |w|, which needs no inputs. */
#include <math.h>

#include "calibrate/score_in.h"

static lac_status compute_magnitude_saliency(const laci_score_input *input, double *out,
                                             lac_error *err) {
  const laci_fit *fit = input->fit;
  const int64_t count = (int64_t)fit->rows * fit->columns;
  (void)err;
  for (int64_t at = 0; at < count; at++) out[at] = fabs(fit->weight[at]);
  return LAC_OK;
}

const laci_score laci_score_magnitude = {
    .name = "magnitude",
    .title = "magnitude",
    .paper =
        "Han, Pool, Tran, Dally, \"Learning both weights and connections for efficient neural "
        "networks\", NeurIPS 2015",
    .saliency = compute_magnitude_saliency,
};
