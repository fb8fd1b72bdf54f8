/* SPDX-License-Identifier: Apache-2.0
 * Lists the N:M blocks of a row of taps * channels columns, and keeps the largest elements of each.
 * */
#include <math.h>

#include "base/divide.h"
#include "calibrate/score_in.h"

static int count_blocks_in_tap(const laci_fit *fit) {
  return (int)laci_ceil_div(fit->channels, fit->pattern.m);
}

int laci_fit_count_blocks(const laci_fit *fit) {
  return fit->columns / fit->channels * count_blocks_in_tap(fit);
}

laci_fit_block laci_fit_find_block(const laci_fit *fit, int at) {
  const int per_tap = count_blocks_in_tap(fit), m = fit->pattern.m;
  const int channel = at % per_tap * m, left = fit->channels - channel;
  return (laci_fit_block){at / per_tap * fit->channels + channel, left < m ? left : m};
}

void laci_fit_mask_block(const double *score, int n_columns, int n, uint8_t *mask) {
  for (int c = 0; c < n_columns; c++) {
    int rank = 0;
    for (int d = 0; d < c; d++) rank += score[d] >= score[c];
    for (int d = c + 1; d < n_columns; d++) rank += score[d] > score[c];
    mask[c] = rank < n;
  }
}

void laci_fit_mask_row(const laci_fit *fit, const double *score, uint8_t *mask) {
  const int n_blocks = laci_fit_count_blocks(fit);
  for (int at = 0; at < n_blocks; at++) {
    const laci_fit_block block = laci_fit_find_block(fit, at);
    laci_fit_mask_block(score + block.first, block.n_columns, fit->pattern.n, mask + block.first);
  }
}

void laci_fit_mask_row_by_magnitude(const laci_fit *fit, const float *score, uint8_t *mask) {
  const int n_blocks = laci_fit_count_blocks(fit);
  for (int at = 0; at < n_blocks; at++) {
    const laci_fit_block block = laci_fit_find_block(fit, at);
    float s[LACI_MOST_PATTERN_M] = {0};
    for (int c = 0; c < block.n_columns; c++) s[c] = fabsf(score[block.first + c]);
    for (int c = 0; c < block.n_columns; c++) {
      int rank = 0;
      for (int d = 0; d < c; d++) rank += s[d] >= s[c];
      for (int d = c + 1; d < block.n_columns; d++) rank += s[d] > s[c];
      mask[block.first + c] = rank < fit->pattern.n;
    }
  }
}
