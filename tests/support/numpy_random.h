/* SPDX-License-Identifier: Apache-2.0
 * The numbers of NumPy's legacy generator: numpy.random.seed(s); numpy.random.rand(...), in order.
 *
 * Published figures hold for one random matrix only, so a test or bench that compares with them
 * must generate the same matrix, bit for bit. The generator is the Mersenne Twister MT19937 (M.
 * Matsumoto, T. Nishimura, 1998); a float64 takes 53 bits of two outputs. */
#ifndef TESTS_SUPPORT_NUMPY_RANDOM_H
#define TESTS_SUPPORT_NUMPY_RANDOM_H

#include <stdint.h>

enum { TWISTER_WORDS = 624, TWISTER_MIDDLE = 397 };

typedef struct twister {
  uint32_t state[TWISTER_WORDS];
  int at;
} twister;

static inline void twister_seed(twister *t, uint32_t seed) {
  for (uint32_t i = 0; i < TWISTER_WORDS; i++) {
    t->state[i] = seed;
    seed = 1812433253U * (seed ^ seed >> 30) + i + 1;
  }
  t->at = TWISTER_WORDS;
}

static inline void twister_twist(twister *t) {
  for (int i = 0; i < TWISTER_WORDS; i++) {
    uint32_t y = (t->state[i] & 0x80000000U) | (t->state[(i + 1) % TWISTER_WORDS] & 0x7FFFFFFFU);
    t->state[i] = t->state[(i + TWISTER_MIDDLE) % TWISTER_WORDS] ^ y >> 1;
    if (y & 1) t->state[i] ^= 0x9908B0DFU;
  }
  t->at = 0;
}

static inline uint32_t twister_next(twister *t) {
  if (t->at == TWISTER_WORDS) twister_twist(t);
  uint32_t y = t->state[t->at++];
  y ^= y >> 11;
  y ^= y << 7 & 0x9D2C5680U;
  y ^= y << 15 & 0xEFC60000U;
  return y ^ y >> 18;
}

/** Returns the next number in [0, 1), equal to that of numpy.random.rand. */
static inline double twister_unit(twister *t) {
  uint32_t high = twister_next(t) >> 5, low = twister_next(t) >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

#endif
