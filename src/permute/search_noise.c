/* SPDX-License-Identifier: Apache-2.0
 * Computes random noise for annealing with integers only: logarithms by repeated squaring, a table
 * of Gumbel quantiles, and a pool of prepared random indices. A row of costs uses a run of the pool
 * that begins at a position which depends on the row's key. This is ten times as fast as drawing
 * every element, and no search was measurably worse. */
#include "permute/search_noise.h"

#include <pthread.h>

enum { N_QUANTILES = 1 << LACI_NOISE_BITS, LOG_BITS = 24, N_POOL = 1 << 16, LONGEST_RUN = 1 << 12 };

static int16_t table[N_QUANTILES];
static int16_t pool[N_POOL + LONGEST_RUN]; /* random indices in `table`; the first ones are repeated
                                              at the end */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Returns log2 of x >= 1, with LOG_BITS fraction bits. Squaring a number in [1, 2) doubles its
 * logarithm; whenever the square is 2 or more, the next bit is one. */
static int64_t log2_fixed_point(uint64_t x) {
  int whole = 63 - __builtin_clzll(x);
  /* fixed-point number in [1, 2), stored in [2^31, 2^32) */
  uint64_t mantissa = whole >= 31 ? x >> (whole - 31) : x << (31 - whole);
  int64_t log = whole;
  for (int bit = 0; bit < LOG_BITS; bit++) {
    uint64_t square = mantissa * mantissa >> 31; /* its square in [1, 4), stored in [2^31, 2^33) */
    int carry = square >> 32 != 0;
    mantissa = square >> carry;
    log = 2 * log + carry;
  }
  return log;
}

/* Fills the table with the Gumbel quantiles -ln(-ln u), u = (2i + 1) / 8192. It computes  y = -ln u
 * = (13 - log2(2i + 1)) * ln 2,  then -ln y likewise from log2 y. */
static void make_gumbel_table(void) {
  const int64_t ln2 = 11629080; /* ln 2 * 2^24 */
  for (int i = 0; i < N_QUANTILES; i++) {
    int64_t log_u =
        ((int64_t)(LACI_NOISE_BITS + 1) << LOG_BITS) - log2_fixed_point(2 * (uint64_t)i + 1);
    int64_t y = log_u * ln2 >> LOG_BITS; /* y has 24 fraction bits */
    int64_t log_y = log2_fixed_point((uint64_t)y) - ((int64_t)LOG_BITS << LOG_BITS);
    int64_t gumbel =
        -(log_y * (ln2 >> 4) / (1 << 20)); /* 24 fraction bits; division rounds alike on every
                                              machine */
    table[i] = (int16_t)(gumbel * LACI_NOISE_ONE / (1 << LOG_BITS));
  }
}

/* Hashes 32 bits by multiplications and shifts, with the constants that Chris Wellons found by
 * search ("Prospecting for hash functions", 2018: lowbias32). */
static inline uint32_t hash_32_bits(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352dU;
  x = (x ^ x >> 15) * 0x846ca68bU;
  return x ^ x >> 16;
}

static void make_noise_tables(void) {
  make_gumbel_table();
  for (uint32_t i = 0; i < N_POOL + LONGEST_RUN; i++) {
    pool[i] = table[hash_32_bits(i & (N_POOL - 1)) & (N_QUANTILES - 1)];
  }
}

const int16_t *laci_gumbel_noise_table(void) {
  (void)pthread_once(&once, make_noise_tables);
  return table;
}

void laci_gumbel_noise_subtract(int32_t *cost, int n, int64_t temperature, uint32_t key) {
  enum { ONE_BITS = 11 + LACI_TEMPERATURE_BITS };
  (void)pthread_once(&once, make_noise_tables);
  const int bits = temperature > 0 ? 64 - __builtin_clzll((uint64_t)temperature) : 0;
  const int shift = bits > 15 ? bits - 15 : 0; /* so that a product of 16 by 15 bits fits into a
                                                  SIMD lane */
  const int16_t factor = (int16_t)(temperature >> shift);
  for (int at = 0; at < n; at += LONGEST_RUN) {
    const int length = n - at < LONGEST_RUN ? n - at : LONGEST_RUN;
    const int16_t *noise = pool + (hash_32_bits(key + (uint32_t)at) & (N_POOL - 1));
    for (int i = 0; i < length; i++) cost[at + i] -= (noise[i] * factor) >> (ONE_BITS - shift);
  }
}

int64_t laci_cool_temperature(int64_t temperature, int64_t exponent) {
  int64_t square = exponent * exponent >> 16, cube = square * exponent / (1 << 16);
  int64_t factor = (1 << 16) - exponent + square / 2 - cube / 6; /* e^x with 16 fraction bits */
  return temperature * factor >> 16;
}
