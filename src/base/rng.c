/* SPDX-License-Identifier: Apache-2.0
 * Implements Philox4x32-10, and numbers made from its blocks. The constants are those of table 2 of
 * the paper. */
#include "base/rng.h"

enum { N_ROUNDS = 10 };

static const uint32_t multiplier[2] = {0xD2511F53u, 0xCD9E8D57u};
static const uint32_t weyl[2] = {0x9E3779B9u, 0xBB67AE85u}; /* golden ratio, sqrt(3) - 1 */

void laci_rng_block(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < N_ROUNDS; round++) {
    const uint64_t low = (uint64_t)multiplier[0] * c0, high = (uint64_t)multiplier[1] * c2;
    c0 = (uint32_t)(high >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)high;
    c2 = (uint32_t)(low >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)low;
    k0 += weyl[0];
    k1 += weyl[1];
  }
  out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
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

uint64_t laci_rng_integer_below(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t n) {
  return multiply_high(laci_rng(seed, stream, counter), n);
}

double laci_rng_unit_interval(uint64_t seed, uint64_t stream, uint64_t counter) {
  return (double)(laci_rng(seed, stream, counter) >> 11) * 0x1p-53;
}
