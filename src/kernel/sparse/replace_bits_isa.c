/* SPDX-License-Identifier: Apache-2.0
 * laci_sparse_replace_bits of reorder_in.h, compiled for every instruction set. The loop is
 * plain, so that the compiler vectorizes it. */
#include <string.h>

#include "kernel/sparse/reorder_in.h"

void LACI_VARIANT(laci_sparse_replace_bits)(const uint32_t *restrict keep,
                                            const uint32_t *restrict with, int64_t n,
                                            float *restrict channels, int64_t n_channels) {
  for (int64_t channel = 0; channel < n_channels; channel++) {
    float *restrict to = channels + channel * n;
    for (int64_t at = 0; at < n; at++) {
      uint32_t bits;
      memcpy(&bits, to + at, sizeof bits);
      bits = (bits & keep[at]) | with[at];
      memcpy(to + at, &bits, sizeof bits);
    }
  }
}
