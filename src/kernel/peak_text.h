/* SPDX-License-Identifier: Apache-2.0
 * The text of peak.h's variants: the file that includes it names its function (PEAK), its vector of
 * LANES floats (VECTOR), how many chains it takes to fill the pipes (CHAINS) and its step
 * (NEXT(x, half, one): half * x + one). Chains begin at different values, or the compiler would
 * walk one for all. */
#ifndef LACI_KERNEL_PEAK_TEXT_H
#define LACI_KERNEL_PEAK_TEXT_H

#include "kernel/peak.h"

double PEAK(int64_t turns, float *value) {
  VECTOR x[CHAINS], half, one;
  for (int lane = 0; lane < LANES; lane++) {
    half[lane] = 0.5F;
    one[lane] = 1.0F;
    for (int chain = 0; chain < CHAINS; chain++) x[chain][lane] = (float)-(chain + CHAINS * lane);
  }
  for (int64_t turn = 0; turn < turns; turn++) {
#pragma GCC unroll 32
    for (int chain = 0; chain < CHAINS; chain++) x[chain] = NEXT(x[chain], half, one);
  }
  float most = x[0][0];
  for (int chain = 0; chain < CHAINS; chain++) {
    for (int lane = 0; lane < LANES; lane++) most = x[chain][lane] > most ? x[chain][lane] : most;
  }
  *value = most;
  return 2.0 * CHAINS * LANES * (double)turns;
}

#endif
