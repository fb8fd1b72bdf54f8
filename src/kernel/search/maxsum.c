/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of the value table, and computes it chunk by chunk of rows. A chunk of a tile
 * of t fits in the first-level cache, and the columns of x that are read with it fit in the second.
 * Most tables of small networks are one chunk, and are passed on unchanged. */
#include "kernel/search/maxsum.h"

#include "cpu/cpu.h"

enum { CHUNK_BYTES = 2048, COLUMNS_AT_ONCE = 128 };

static laci_maxsum *const of_level[][2] = {
#define VARIANT(name, level) [level] = {laci_maxsum_u8_##name, laci_maxsum_i16_##name},
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

void laci_maxsum_compute_table(laci_number number, const laci_maxsum_job *job) {
  laci_maxsum *make = of_level[laci_cpu_level_in_force()][number];
  const size_t chunk = CHUNK_BYTES / laci_number_size(number);
  laci_maxsum_job part = *job;
  part.first = 0;
  do { /* a table without rows is all zeros: it is one empty chunk */
    part.rows = job->rows - part.first < chunk ? job->rows - part.first : chunk;
    part.adds = part.first > 0;
    for (int j = 0; j < job->nx; j += COLUMNS_AT_ONCE) {
      part.x = job->x + j;
      part.nx = job->nx - j < COLUMNS_AT_ONCE ? job->nx - j : COLUMNS_AT_ONCE;
      part.out = job->out + j;
      make(&part);
    }
    part.first += chunk;
  } while (part.first < job->rows);
}
