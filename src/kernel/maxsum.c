/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of the value table and feeds it rows piece by piece: a piece of a tile fits
 * the first cache, and the columns that stream past it stay in the second. */
#include "kernel/maxsum.h"

#include "cpu/cpu.h"

enum {
  PIECE_BYTES = 2048,
  PACK_T = 32, /* columns move on in packs, so that the pointers of a piece need no memory of their
                  own */
  PACK_X = 128,
};

static laci_maxsum *variant_in_force(laci_number number) {
#define VARIANT(name, level) {level, {laci_maxsum_u8_##name, laci_maxsum_i16_##name}},
  static const struct {
    laci_cpu_level level;
    laci_maxsum *of_number[2];
  } variants[] = {LACI_MAXSUM_VARIANTS(VARIANT)};
#undef VARIANT
  int last = 0;
  for (int i = 1; i < (int)(sizeof variants / sizeof *variants); i++) {
    if (variants[i].level <= laci_cpu()) last = i;
  }
  return variants[last].of_number[number];
}

static void clear_table(const laci_maxsum_job *job) {
  for (int i = 0; i < job->nt; i++) {
    for (int j = 0; j < job->nx; j++) job->out[(size_t)i * job->out_stride + (size_t)j] = 0;
  }
}

/* Up to `room` columns from `first` on, moved forward by `offset` bytes; returns how many. */
static int take_pack(const void *const *columns, int n, int first, size_t offset, int room,
                     const void **pack) {
  int taken = n - first < room ? n - first : room;
  for (int i = 0; i < taken; i++) pack[i] = (const char *)columns[first + i] + offset;
  return taken;
}

void laci_maxsum_table(laci_number number, const laci_maxsum_job *job) {
  laci_maxsum *add = variant_in_force(number);
  const size_t size = laci_number_size(number), piece = PIECE_BYTES / size;
  const void *t[PACK_T], *x[PACK_X];
  clear_table(job);
  for (size_t row = 0; row < job->rows; row += piece) {
    laci_maxsum_job part = {.t = t, .x = x, .out_stride = job->out_stride};
    part.rows = job->rows - row < piece ? job->rows - row : piece;
    for (int j = 0; j < job->nx; j += PACK_X) {
      part.nx = take_pack(job->x, job->nx, j, row * size, PACK_X, x);
      for (int i = 0; i < job->nt; i += PACK_T) {
        part.nt = take_pack(job->t, job->nt, i, row * size, PACK_T, t);
        part.out = job->out + (size_t)i * job->out_stride + (size_t)j;
        add(&part);
      }
    }
  }
}
