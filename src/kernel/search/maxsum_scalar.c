/* SPDX-License-Identifier: Apache-2.0
 * maxsum.h in plain C: the reference for the other variants. */
#include "kernel/search/maxsum.h"

static int32_t sum_u8(const uint8_t *t, const uint8_t *x, size_t rows) {
  int32_t sum = 0;
  for (size_t r = 0; r < rows; r++) sum += t[r] > x[r] ? t[r] : x[r];
  return sum;
}

static int32_t sum_i16(const int16_t *t, const int16_t *x, size_t rows) {
  int32_t sum = 0;
  for (size_t r = 0; r < rows; r++) sum += t[r] > x[r] ? t[r] : x[r];
  return sum;
}

void laci_maxsum_u8_scalar(const laci_maxsum_job *job) {
  for (int i = 0; i < job->nt; i++) {
    const uint8_t *t = (const uint8_t *)job->t[i] + job->first;
    int32_t *out = job->out + (size_t)i * job->out_stride;
    for (int j = 0; j < job->nx; j++) {
      int32_t sum = sum_u8(t, (const uint8_t *)job->x[j] + job->first, job->rows);
      out[j] = job->adds ? out[j] + sum : sum;
    }
  }
}

void laci_maxsum_i16_scalar(const laci_maxsum_job *job) {
  for (int i = 0; i < job->nt; i++) {
    const int16_t *t = (const int16_t *)job->t[i] + job->first;
    int32_t *out = job->out + (size_t)i * job->out_stride;
    for (int j = 0; j < job->nx; j++) {
      int32_t sum = sum_i16(t, (const int16_t *)job->x[j] + job->first, job->rows);
      out[j] = job->adds ? out[j] + sum : sum;
    }
  }
}
