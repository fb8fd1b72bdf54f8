/* SPDX-License-Identifier: Apache-2.0
 * Draws random token ids, uniform ones and some that are like a text. */
#ifndef LACI_SYNTHETIC_IDS_H
#define LACI_SYNTHETIC_IDS_H

#include <stdbool.h>
#include <stdint.h>

/** Draws n ids from 0 to below - 1 by the random numbers of a stream of the seed. They are uniform,
 * so that every row of the embedding table is looked up about equally often, or like a text: few
 * different ids, some of them often, in runs that are repeated. */
void laci_ids_draw(uint64_t seed, uint64_t stream, bool like_text, int64_t below, int64_t n,
                   int64_t *to);

#endif
