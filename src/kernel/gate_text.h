/* SPDX-License-Identifier: Apache-2.0
 * The text of gate.h, for files that name their variant in GATE and are compiled for one
 * instruction set each. */
#include <string.h>

#include "kernel/gate.h"

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
enum { VECTORS = LACI_GATE_BLOCK / LANES };

typedef float lanes __attribute__((vector_size(4 * LANES)));

void GATE(const float *x, const float *factor, int64_t n_pixels, float *y) {
  lanes f[VECTORS], t;
  memcpy(f, factor, sizeof f);
  for (int64_t pixel = 0; pixel < n_pixels; pixel++) {
    for (int v = 0; v < VECTORS; v++) {
      int64_t at = pixel * LACI_GATE_BLOCK + v * LANES;
      memcpy(&t, x + at, sizeof t);
      t *= f[v];
      memcpy(y + at, &t, sizeof t);
    }
  }
}
