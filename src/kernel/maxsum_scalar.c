/* SPDX-License-Identifier: Apache-2.0
 * maxsum.h in plain C: the definition of right for the other variants. */
#include "kernel/maxsum.h"

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
    int32_t *out = job->out + (size_t)i * job->out_stride;
    for (int j = 0; j < job->nx; j++) out[j] += sum_u8(job->t[i], job->x[j], job->rows);
  }
}

void laci_maxsum_i16_scalar(const laci_maxsum_job *job) {
  for (int i = 0; i < job->nt; i++) {
    int32_t *out = job->out + (size_t)i * job->out_stride;
    for (int j = 0; j < job->nx; j++) out[j] += sum_i16(job->t[i], job->x[j], job->rows);
  }
}
