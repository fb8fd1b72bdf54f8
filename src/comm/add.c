/* SPDX-License-Identifier: Apache-2.0
 * Adds the numbers of several processes. Memory is read and written only once, which is the whole
 * cost, since compilers vectorize these loops. */
#include <string.h>

#include "comm/comm_in.h"
#include "tensor/bf16.h"

/* Number of floats that stay in the first-level cache while parts are added. */
enum { BLOCK = 1024 };

static int64_t size_of_block_at(int64_t at, int64_t n) { return n - at < BLOCK ? n - at : BLOCK; }

void laci_comm_sum_parts_f32(const float *parts, int n_parts, int64_t n, float *sum) {
  for (int64_t at = 0; at < n; at += BLOCK) {
    int64_t count = size_of_block_at(at, n);
    float *restrict to = sum + at;
    memcpy(to, parts + at, (size_t)count * sizeof *to);
    for (int k = 1; k < n_parts; k++) {
      const float *restrict from = parts + k * n + at;
      for (int64_t i = 0; i < count; i++) to[i] += from[i];
    }
  }
}

void laci_comm_sum_parts_bf16(const uint16_t *parts, int n_parts, int64_t n, uint16_t *sum) {
  float all[BLOCK];
  for (int64_t at = 0; at < n; at += BLOCK) {
    int64_t count = size_of_block_at(at, n);
    laci_comm_from_bf16(parts + at, count, all);
    for (int k = 1; k < n_parts; k++) {
      const uint16_t *restrict from = parts + k * n + at;
      for (int64_t i = 0; i < count; i++) all[i] += laci_bf16_value(from[i]);
    }
    laci_comm_to_bf16(all, count, sum + at);
  }
}

void laci_comm_to_bf16(const float *from, int64_t n, uint16_t *to) {
  for (int64_t i = 0; i < n; i++) to[i] = laci_bf16_round(from[i]);
}

void laci_comm_from_bf16(const uint16_t *from, int64_t n, float *to) {
  for (int64_t i = 0; i < n; i++) to[i] = laci_bf16_value(from[i]);
}
