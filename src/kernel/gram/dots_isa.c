/* SPDX-License-Identifier: Apache-2.0
 * dots.h for instruction sets whose vectors have four floats, or for which the compiler emulates
 * these. */
#include "kernel/gram/dots.h"

#include <string.h>

typedef float vector __attribute__((vector_size(16)));
enum { LANES = 4 };
#define ROWS 3
#define COLUMNS 4
#define LOAD(at) load_vector(at)
#define TIMES(sum, a, b) ((sum) + (a) * (b))
#define TOTAL(v) (((v)[0] + (v)[2]) + ((v)[1] + (v)[3]))

static inline vector load_vector(const float *at) {
  vector v;
  memcpy(&v, at, sizeof v);
  return v;
}

#include "kernel/gram/dots_text.def"

void LACI_VARIANT(laci_dots)(const laci_dots *dots) { sum_runs(dots); }
