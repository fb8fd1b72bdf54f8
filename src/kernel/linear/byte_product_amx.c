/* SPDX-License-Identifier: Apache-2.0
 * byte_product.h by AMX: a matrix register has 16 rows of 64 bytes of x, or 16 groups of a block of
 * 16 columns, as both are stored. The sums of up to 32 rows and two blocks stay in four of the
 * eight registers. The last rows of a part are computed with some that are done already. */
#include <immintrin.h>

#include "kernel/amx.h"
#include "kernel/linear/byte_product_in.h"

enum {
  LINE = LACI_BYTE_LINE,
  TILE = LACI_BYTE_TILE,
  COLUMNS = LACI_BYTE_COLUMNS,
  REGISTER = TILE * LINE, /* bytes of a register */
  SUMS = TILE * COLUMNS,  /* sums of a register */
};

/* Operands of a tile, and their strides. */
typedef struct operands {
  const uint8_t *x;
  const int8_t *w;
  int64_t stride, block_bytes;
} operands;

/* Cache lines of the next two blocks of columns, which are prefetched while two blocks are
 * multiplied: `each` lines with each register of x. */
typedef struct ahead {
  const int8_t *from;
  int64_t each;
} ahead;

static inline void prefetch_later_lines(const ahead *next, int64_t k) {
  for (int64_t line = 0; line < next->each; line++)
    _mm_prefetch((const char *)(next->from + (k * next->each + line * LINE)), _MM_HINT_T1);
}

/* sums: [rows / 16][blocks][16][16] */
static void sum_two_by_two_tiles(const operands *o, const ahead *later, int32_t *sums) {
  const uint8_t *below = o->x + TILE * o->stride;
  const int8_t *next = o->w + o->block_bytes;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t k = 0; k < o->stride; k += LINE) {
    prefetch_later_lines(later, k);
    _tile_loadd(4, o->x + k, o->stride);
    _tile_loadd(6, o->w + k * COLUMNS, LINE);
    _tile_dpbusd(0, 4, 6);
    _tile_loadd(7, next + k * COLUMNS, LINE);
    _tile_dpbusd(1, 4, 7);
    _tile_loadd(5, below + k, o->stride);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  _tile_stored(0, sums, LINE);
  _tile_stored(1, sums + SUMS, LINE);
  _tile_stored(2, sums + 2 * SUMS, LINE);
  _tile_stored(3, sums + 3 * SUMS, LINE);
}

static void sum_two_by_one_tiles(const operands *o, int32_t *sums) {
  const uint8_t *below = o->x + TILE * o->stride;
  _tile_zero(0);
  _tile_zero(2);
  for (int64_t k = 0; k < o->stride; k += LINE) {
    _tile_loadd(4, o->x + k, o->stride);
    _tile_loadd(5, below + k, o->stride);
    _tile_loadd(6, o->w + k * COLUMNS, LINE);
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(2, 5, 6);
  }
  _tile_stored(0, sums, LINE);
  _tile_stored(2, sums + SUMS, LINE);
}

static void sum_one_by_two_tiles(const operands *o, int32_t *sums) {
  const int8_t *next = o->w + o->block_bytes;
  _tile_zero(0);
  _tile_zero(1);
  for (int64_t k = 0; k < o->stride; k += LINE) {
    _tile_loadd(4, o->x + k, o->stride);
    _tile_loadd(6, o->w + k * COLUMNS, LINE);
    _tile_loadd(7, next + k * COLUMNS, LINE);
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
  }
  _tile_stored(0, sums, LINE);
  _tile_stored(1, sums + SUMS, LINE);
}

static void sum_one_tile(const operands *o, int32_t *sums) {
  _tile_zero(0);
  for (int64_t k = 0; k < o->stride; k += LINE) {
    _tile_loadd(4, o->x + k, o->stride);
    _tile_loadd(6, o->w + k * COLUMNS, LINE);
    _tile_dpbusd(0, 4, 6);
  }
  _tile_stored(0, sums, LINE);
}

/* Computes 16 * n_tiles rows of n_blocks blocks of columns; both numbers are 1 or 2. */
static void multiply_tile(const laci_byte_product *p, int64_t row, int64_t n_tiles, int64_t block,
                          int64_t n_blocks, const ahead *later) {
  _Alignas(LINE) int32_t sums[4 * SUMS];
  const int64_t stride = p->rows.stride, bytes = laci_byte_block_bytes(p->matrix.depth);
  const operands o = {p->rows.x + row * stride, p->matrix.w + block * bytes, stride, bytes};
  if (n_tiles == 2 && n_blocks == 2) sum_two_by_two_tiles(&o, later, sums);
  else if (n_tiles == 2) sum_two_by_one_tiles(&o, sums);
  else if (n_blocks == 2) sum_one_by_two_tiles(&o, sums);
  else sum_one_tile(&o, sums);
  for (int64_t v = 0; v < n_blocks; v++) {
    byte_block b;
    prepare_byte_block(p, block + v, &b);
    for (int64_t r = 0; r < n_tiles * TILE; r++)
      finish_byte_sums(p, row + r, block + v, &b,
                       sums + (r / TILE * n_blocks + v) * SUMS + r % TILE * COLUMNS);
  }
}

/* Returns the cache lines of the next two blocks that are prefetched with tile number `tile` of
 * these two. All tiles of the part together prefetch both blocks. */
static ahead find_lines_to_prefetch(const laci_byte_product *p, const laci_byte_part *part,
                                    int64_t block, int64_t tile) {
  enum { LINES = 2 * COLUMNS }; /* lines of two blocks for each register of x */
  const int64_t n_tiles = (part->row_end - part->row) / (2 * TILE);
  const int64_t each = n_tiles > LINES ? 1 : LINES / (n_tiles > 0 ? n_tiles : 1);
  if (block + 2 >= part->block_end || tile >= LINES) return (ahead){p->matrix.w, 0};
  const int8_t *next = p->matrix.w + (block + 2) * laci_byte_block_bytes(p->matrix.depth);
  return (ahead){next + tile * each * p->rows.stride, each};
}

static void multiply_column_blocks(const laci_byte_product *p, const laci_byte_part *part,
                                   int64_t block, int64_t n_blocks) {
  static const ahead none = {0};
  int64_t row = part->row;
  for (int64_t tile = 0; row + 2 * TILE <= part->row_end; row += 2 * TILE, tile++) {
    const ahead later = find_lines_to_prefetch(p, part, block, tile);
    multiply_tile(p, row, 2, block, n_blocks, &later);
  }
  if (row + TILE < part->row_end && part->row_end - 2 * TILE >= part->row) {
    multiply_tile(p, part->row_end - 2 * TILE, 2, block, n_blocks, &none);
    return;
  }
  for (; row + TILE <= part->row_end; row += TILE) multiply_tile(p, row, 1, block, n_blocks, &none);
  if (row < part->row_end) multiply_tile(p, part->row_end - TILE, 1, block, n_blocks, &none);
}

void laci_multiply_bytes_amx(const laci_byte_product *p, const laci_byte_part *part) {
  laci_amx_configure_registers(16);
  for (int64_t block = part->block; block < part->block_end; block += 2)
    multiply_column_blocks(p, part, block, part->block_end - block > 1 ? 2 : 1);
  _tile_release();
}
