/* SPDX-License-Identifier: Apache-2.0
 * RIA, relative importance and activations: a weight's share of the weights of its input and of its
 * output, times the root of its input's norm,
 *
 *     (|w_ij| / sum_i |w_ij| + |w_ij| / sum_j |w_ij|) * |x_j|^(1/2),    |x_j| = sqrt(H_jj) */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "calibrate/score_in.h"

static double share_of_sum(double weight, double sum) { return sum > 0 ? weight / sum : 0; }

static lac_status compute_ria_saliency(const laci_score_input *input, double *out, lac_error *err) {
  const laci_fit *fit = input->fit;
  const int columns = fit->columns;
  double *of_column = laci_alloc((size_t)columns, sizeof *of_column);
  if (!of_column) return laci_fail_memory(err, "the sums of a layer's columns");
  for (int row = 0; row < fit->rows; row++) {
    for (int c = 0; c < columns; c++) {
      of_column[c] += fabs(fit->weight[(int64_t)row * columns + c]);
    }
  }
  for (int row = 0; row < fit->rows; row++) {
    const double *weight = fit->weight + (int64_t)row * columns;
    double of_row = 0;
    for (int c = 0; c < columns; c++) of_row += fabs(weight[c]);
    for (int c = 0; c < columns; c++) {
      const double squares = fit->h[(int64_t)c * columns + c];
      const double relative =
          share_of_sum(fabs(weight[c]), of_column[c]) + share_of_sum(fabs(weight[c]), of_row);
      out[(int64_t)row * columns + c] = relative * sqrt(sqrt(squares > 0 ? squares : 0));
    }
  }
  laci_free(of_column);
  return LAC_OK;
}

static uint64_t ria_memory_bytes(const laci_fit *fit, int n_threads) {
  (void)n_threads;
  return (uint64_t)fit->columns * sizeof(double);
}

const laci_score laci_score_ria = {
    .name = "ria",
    .title = "RIA",
    .paper =
        "Zhang, Bai, Lin, Zhao, Hou, Cannistraci, \"Plug-and-play: an efficient post-training "
        "pruning method for large language models\", ICLR 2024",
    .needs_gram = true,
    .saliency = compute_ria_saliency,
    .memory = ria_memory_bytes,
};
