/* SPDX-License-Identifier: Apache-2.0
 * Wanda: scores a weight by |w| * |x_j|, where |x_j| = sqrt(H_jj) is the norm of the input that it
 * multiplies. */
#include <math.h>

#include "calibrate/score_in.h"

static lac_status compute_wanda_saliency(const laci_score_input *input, double *out,
                                         lac_error *err) {
  const laci_fit *fit = input->fit;
  (void)err;
  for (int row = 0; row < fit->rows; row++) {
    const int64_t at = (int64_t)row * fit->columns;
    for (int c = 0; c < fit->columns; c++) {
      const double squares = fit->h[(int64_t)c * fit->columns + c];
      out[at + c] = fabs(fit->weight[at + c]) * sqrt(squares > 0 ? squares : 0);
    }
  }
  return LAC_OK;
}

const laci_score laci_score_wanda = {
    .name = "wanda",
    .title = "Wanda",
    .paper =
        "Sun, Liu, Bair, Kolter, \"A simple and effective pruning approach for large language "
        "models\", ICLR 2024",
    .needs_gram = true,
    .saliency = compute_wanda_saliency,
};
