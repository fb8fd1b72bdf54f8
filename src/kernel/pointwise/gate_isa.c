/* SPDX-License-Identifier: Apache-2.0
 * gate.h for every instruction set: the build compiles this once for each (variants.h). */
#include <string.h>

#include "kernel/pointwise/gate.h"

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
enum { VECTORS = LACI_GATE_BLOCK / LANES };

typedef float lanes __attribute__((vector_size(4 * LANES)));

void LACI_VARIANT(laci_gate)(const float *x, const float *factor, int64_t n_pixels, float *y) {
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
