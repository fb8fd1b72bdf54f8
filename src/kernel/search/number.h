/* SPDX-License-Identifier: Apache-2.0
 * The small integers that the permutation search counts in: weight magnitudes, quantized. Coarse
 * ones are twice as fast and do most of the search, fine ones finish it. */
#ifndef LACI_KERNEL_SEARCH_NUMBER_H
#define LACI_KERNEL_SEARCH_NUMBER_H

#include <stddef.h>
#include <stdint.h>

typedef enum laci_number {
  LACI_U8,  /* uint8_t */
  LACI_I16, /* int16_t, never negative */
} laci_number;

enum {
  LACI_NUMBER_ROWS = 64
}; /* columns are padded with zeros to a multiple of this many
                                   elements */

static inline size_t laci_number_size(laci_number number) {
  return number == LACI_U8 ? sizeof(uint8_t) : sizeof(int16_t);
}

#endif
