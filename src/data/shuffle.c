/* SPDX-License-Identifier: Apache-2.0
 * Permutes numbers with a Feistel network, which is a permutation of all numbers of 2 h bits,
 * whatever its round function is:
 *
 *     (left, right) -> (right, left ^ f(round, right))        f: h bits of base/rng.h
 *
 * A result outside of 0 .. n - 1 is permuted again until it is inside. The whole is still a
 * permutation, and since 4^h < 4 n, it takes fewer than four passes on average. */
#include "data/shuffle.h"

#include "base/rng.h"

enum { ROUNDS = 6 };

static uint64_t feistel_permute(uint64_t seed, uint64_t epoch, int half, uint64_t x) {
  const uint64_t low = ((uint64_t)1 << half) - 1;
  uint64_t left = x >> half, right = x & low;
  for (uint64_t round = 0; round < ROUNDS; round++) {
    uint64_t next = left ^ (laci_rng(seed, epoch, right * ROUNDS + round) & low);
    left = right;
    right = next;
  }
  return left << half | right;
}

int64_t laci_shuffled_index(uint64_t seed, uint64_t epoch, int64_t n, int64_t at) {
  int half = 1;
  while ((int64_t)1 << (2 * half) < n) half++;
  uint64_t x = (uint64_t)at;
  do x = feistel_permute(seed, epoch, half, x);
  while (x >= (uint64_t)n);
  return (int64_t)x;
}
