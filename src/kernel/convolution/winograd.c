/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of winograd.h, and divides images into bands. */
#include "kernel/convolution/winograd.h"

#include "cpu/cpu.h"

enum {
  CACHE_BYTES = 384 << 10, /* bytes of transformed input that fit in a core's cache */
  TILE = LACI_WINOGRAD_POINTS * LACI_WINOGRAD_BLOCK * sizeof(uint16_t),
  AROUND = LACI_WINOGRAD_WINDOW - 1, /* rows of the input in addition to those of the result */
};

laci_winograd_kernel laci_winograd_variant(void) {
#if defined(__x86_64__)
  if (laci_cpu_level_in_force() == LACI_CPU_AVX512 && __builtin_cpu_supports("avx512bf16")) {
    return (laci_winograd_kernel){laci_winograd_transform_avx512bf16,
                                  laci_winograd_convolve_avx512bf16};
  }
#endif
  return (laci_winograd_kernel){NULL, NULL};
}

void laci_winograd_choose_band(const laci_winograd *g, int64_t *rows, int64_t *images) {
  int64_t row = g->c_blocks * laci_winograd_n_tiles(g) * TILE;
  *rows = CACHE_BYTES / row - AROUND;
  if (*rows < 4) *rows = 4;
  if (*rows > g->out_h) *rows = g->out_h;
  int64_t n_bands = (g->out_h + *rows - 1) / *rows;
  *rows = (g->out_h + n_bands - 1) / n_bands; /* bands of about the same height */
  *images = *rows == g->out_h ? CACHE_BYTES / (row * (*rows + AROUND)) : 1;
  if (*images < 1) *images = 1;
}

size_t laci_winograd_scratch_bytes(const laci_winograd *g, int64_t rows, int64_t images) {
  const int64_t most =
      (int64_t)1 << 19; /* maximum number of blocks that `transform` reaches with 32-bit offsets */
  if (g->c_blocks > most || g->out_w > most || rows > most || images > most) return 0;
  size_t bytes = (size_t)(g->c_blocks * laci_winograd_n_tiles(g)) * TILE;
  if (__builtin_mul_overflow(bytes, (size_t)(rows + AROUND), &bytes)) return 0;
  return __builtin_mul_overflow(bytes, (size_t)images, &bytes) ? 0 : bytes;
}
