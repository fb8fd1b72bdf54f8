/* SPDX-License-Identifier: Apache-2.0
 * The small integer types in which the permutation search holds weight magnitudes, quantized.
 * LACI_U8 is coarse and twice as fast: it does most of the search. LACI_I16 is finer: it does the
 * end of the search. */
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
