/* SPDX-License-Identifier: Apache-2.0
 * Computes moving averages (average.h) element by element, so that any division among threads gives
 * the same bits. */
#include "train/average.h"

#include "cpu/pool.h"

enum { GRAIN = 1 << 14 };

typedef struct moving {
  double d;
  const float *now;
  float *average;
} moving;

double laci_average_decay(double decay, int64_t t) {
  double early = (1 + (double)t) / (10 + (double)t);
  return early < decay ? early : decay;
}

static void update_average_range(int64_t begin, int64_t end, void *context) {
  const moving *m = context;
  const double d = m->d, rest = 1 - m->d;
  for (int64_t at = begin; at < end; at++) {
    m->average[at] = (float)(d * (double)m->average[at] + rest * (double)m->now[at]);
  }
}

void laci_average_update(laci_pool *pool, double d, const float *now, float *average, int64_t n) {
  moving m = {.d = d, .now = now, .average = average};
  laci_pool_for(pool, n, GRAIN, update_average_range, &m);
}

typedef struct exchanging {
  float *a, *b;
} exchanging;

static void swap_average_range(int64_t begin, int64_t end, void *context) {
  const exchanging *e = context;
  for (int64_t at = begin; at < end; at++) {
    float kept = e->a[at];
    e->a[at] = e->b[at];
    e->b[at] = kept;
  }
}

void laci_average_swap(laci_pool *pool, float *a, float *b, int64_t n) {
  exchanging e = {.a = a, .b = b};
  laci_pool_for(pool, n, GRAIN, swap_average_range, &e);
}
