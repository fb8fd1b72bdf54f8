/* SPDX-License-Identifier: Apache-2.0
 * What code blocks of all x86 instruction sets have in common: pointers, the loop over tiles,
 * prefetches. */
#include <stddef.h>

#include "base/divide.h"
#include "jit/sparse_in.h"

#define TILE_FIELD(name) laci_x86_at(LACI_SPARSE_TILE, (int32_t)offsetof(laci_sparse_tile, name))

size_t laci_sparse_write_tile_start(laci_code *code, int32_t x_ahead, int32_t weight_ahead) {
  laci_x86_load(code, LACI_SPARSE_SUMS, LACI_SPARSE_FIELD(sums));
  laci_x86_load(code, LACI_SPARSE_TILE, LACI_SPARSE_FIELD(tiles));
  laci_x86_load(code, LACI_SPARSE_AHEAD_CODE, LACI_SPARSE_FIELD(ahead_code));
  laci_x86_load(code, LACI_SPARSE_AHEAD_WEIGHT, LACI_SPARSE_FIELD(ahead_weight));
  const size_t loop = code->n;
  laci_x86_load(code, LACI_SPARSE_WEIGHT, LACI_SPARSE_FIELD(weight));
  if (weight_ahead) laci_x86_add(code, LACI_SPARSE_WEIGHT, weight_ahead);
  laci_x86_load(code, LACI_SPARSE_AT, TILE_FIELD(in));
  laci_x86_load(code, LACI_X86_R8, LACI_SPARSE_FIELD(x));
  laci_x86_lea(code, LACI_SPARSE_AT,
               (laci_x86_memory){LACI_X86_R8, LACI_SPARSE_AT, sizeof(float), x_ahead});
  return loop;
}

void laci_sparse_write_results_start(laci_code *code, bool residual) {
  laci_x86_load(code, LACI_SPARSE_AT, TILE_FIELD(out));
  if (residual) {
    laci_x86_load(code, LACI_SPARSE_WEIGHT, LACI_SPARSE_FIELD(residual));
    laci_x86_lea(code, LACI_SPARSE_WEIGHT,
                 (laci_x86_memory){LACI_SPARSE_WEIGHT, LACI_SPARSE_AT, sizeof(float), 0});
  }
  laci_x86_load(code, LACI_X86_R8, LACI_SPARSE_FIELD(y));
  laci_x86_lea(code, LACI_SPARSE_AT,
               (laci_x86_memory){LACI_X86_R8, LACI_SPARSE_AT, sizeof(float), 0});
}

static bool adds_residual(const laci_sparse_frame *f, const laci_code_block *code_block) {
  return f->after.residual && code_block->last;
}

void laci_sparse_write_prefetch_start(laci_code *code, const laci_sparse_frame *f,
                                      const laci_code_block *code_block) {
  if (!adds_residual(f, code_block)) return;
  laci_x86_load(code, LACI_X86_R8, LACI_SPARSE_FIELD(residual));
  laci_x86_load(code, LACI_SPARSE_AHEAD_RESIDUAL, TILE_FIELD(out));
  laci_x86_lea(code, LACI_SPARSE_AHEAD_RESIDUAL,
               (laci_x86_memory){LACI_X86_R8, LACI_SPARSE_AHEAD_RESIDUAL, sizeof(float), 0});
}

/* The cache lines [first, last) that are prefetched with one column, out of all to prefetch. */
typedef struct due_lines {
  int64_t first, last;
} due_lines;

static due_lines lines_due_at_column(int64_t n, int64_t done, int64_t n_columns) {
  return (due_lines){(done - 1) * n / n_columns, done * n / n_columns};
}

static void write_line_prefetches(laci_code *code, laci_x86_reg from, due_lines lines) {
  for (int64_t line = lines.first; line < lines.last; line++) {
    laci_x86_prefetch1(code, laci_x86_at(from, (int32_t)line * LACI_SPARSE_LINE));
  }
}

void laci_sparse_write_prefetch(laci_code *code, const laci_sparse_frame *f,
                                const laci_code_block *code_block, int64_t done) {
  const int64_t n = code_block->n_columns;
  write_line_prefetches(code, LACI_SPARSE_AHEAD_CODE,
                        lines_due_at_column(f->prefetch.n_code_lines, done, n));
  write_line_prefetches(code, LACI_SPARSE_AHEAD_WEIGHT,
                        lines_due_at_column(f->prefetch.n_weight_lines, done, n));
  if (!adds_residual(f, code_block)) return;
  const due_lines vectors =
      lines_due_at_column(laci_ceil_div(code_block->n_rows, f->rows_each), done, n);
  for (int64_t vector = vectors.first; vector < vectors.last; vector++) {
    const int64_t at = vector * f->row_stride * (int64_t)sizeof(float);
    laci_x86_prefetch0(code, laci_x86_at(LACI_SPARSE_AHEAD_RESIDUAL, (int32_t)at));
  }
}

void laci_sparse_write_end_of_tile(laci_code *code, const laci_sparse_frame *f, size_t loop,
                                   int32_t sums_bytes) {
  laci_x86_add(code, LACI_SPARSE_AHEAD_CODE, f->prefetch.n_code_lines * LACI_SPARSE_LINE);
  laci_x86_add(code, LACI_SPARSE_AHEAD_WEIGHT, f->prefetch.n_weight_lines * LACI_SPARSE_LINE);
  laci_x86_add(code, LACI_SPARSE_SUMS, sums_bytes);
  laci_x86_add(code, LACI_SPARSE_TILE, sizeof(laci_sparse_tile));
  laci_x86_load(code, LACI_X86_RDX, LACI_SPARSE_FIELD(tiles_end));
  laci_x86_compare(code, LACI_SPARSE_TILE, LACI_X86_RDX);
  laci_x86_jump_below(code, loop);
  laci_x86_zero_upper(code);
  laci_x86_return(code);
}
