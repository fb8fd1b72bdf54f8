/* SPDX-License-Identifier: Apache-2.0
 * Implements Philox4x32-10, and numbers made from its blocks. The constants are those of table 2 of
 * the paper. */
#include "base/rng.h"

enum { N_ROUNDS = 10 };

static const uint32_t multiplier[2] = {0xD2511F53u, 0xCD9E8D57u};
static const uint32_t weyl[2] = {0x9E3779B9u, 0xBB67AE85u}; /* golden ratio, sqrt(3) - 1 */

void laci_rng_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]};
  uint32_t k[2] = {key[0], key[1]};
  for (int round = 0; round < N_ROUNDS; round++) {
    uint64_t low = (uint64_t)multiplier[0] * c[0];
    uint64_t high = (uint64_t)multiplier[1] * c[2];
    uint32_t next[4] = {(uint32_t)(high >> 32) ^ c[1] ^ k[0], (uint32_t)high,
                        (uint32_t)(low >> 32) ^ c[3] ^ k[1], (uint32_t)low};
    for (int i = 0; i < 4; i++) c[i] = next[i];
    k[0] += weyl[0];
    k[1] += weyl[1];
  }
  for (int i = 0; i < 4; i++) out[i] = c[i];
}

uint64_t laci_rng(uint64_t seed, uint64_t stream, uint64_t counter) {
  const uint32_t at[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream,
                          (uint32_t)(stream >> 32)};
  const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  uint32_t out[4];
  laci_rng_block(at, key, out);
  return (uint64_t)out[1] << 32 | out[0];
}

/* Returns the high half of the 128-bit product a * b, computed from 32-bit halves, since not every
 * compiler has a 128-bit type. */
static uint64_t multiply_high(uint64_t a, uint64_t b) {
  uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
  uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  uint64_t carry = a_low * b_high + (uint32_t)middle;
  return a_high * b_high + (middle >> 32) + (carry >> 32);
}

uint64_t laci_rng_below(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t n) {
  return multiply_high(laci_rng(seed, stream, counter), n);
}

double laci_rng_unit(uint64_t seed, uint64_t stream, uint64_t counter) {
  return (double)(laci_rng(seed, stream, counter) >> 11) * 0x1p-53;
}
