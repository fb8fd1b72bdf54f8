/* SPDX-License-Identifier: Apache-2.0
 * Builds the CSR form of csr.h. */
#include "kernel/sparse/csr.h"

#include <string.h>

#include "base/divide.h"
#include "base/error.h"
#include "base/memory.h"
#include "cpu/cpu.h"
#include "kernel/variants.h"

static laci_csr_run *const of_level[] = {
#define VARIANT(name, level) [level] = laci_csr_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_csr_run *laci_csr_variant(void) { return of_level[laci_cpu_level_in_force()]; }

/* Returns as many vectors of sums as hide the latency of a multiply-add, and leave registers for a
 * weight. */
int64_t laci_csr_tiles_per_strip(void) {
  static const int8_t strips[] = {
      [LACI_CPU_ANY] = 4, [LACI_CPU_AVX2] = 5, [LACI_CPU_AVX512] = 8, [LACI_CPU_NEON] = 4};
  return strips[laci_cpu_level_in_force()];
}

int64_t laci_csr_n_strips(int64_t n_tiles) {
  return laci_ceil_div(n_tiles, laci_csr_tiles_per_strip());
}

/* ---- Blocks ---- */

/* The set of cache lines that a strip reads for some columns. */
enum {
  LINE = 64 / (int)sizeof(float), /* number of floats in a cache line */
  MOST_LINES = 256,               /* maximum number of lines in a set: half of a first-level cache
                                     of 32 KB */
  SLOTS = 1024,                   /* number of slots in the hash table, which is never full */
  FOUR = 4,                       /* number of columns in a group of 2:4 */
};

typedef struct lines {
  int64_t slot[SLOTS]; /* number of the line + 1; 0: the slot is free */
  int n;
} lines;

static void add_cache_line_to_set(lines *l, int64_t line) {
  uint64_t at = (uint64_t)line * 0x9E3779B97F4A7C15U >> 54;
  while (l->slot[at] && l->slot[at] != line + 1) at = (at + 1) % SLOTS;
  l->n += !l->slot[at];
  l->slot[at] = line + 1;
}

/* Returns the end of the block of columns that begins at first_column; the last block ends at
 * end_column. A block has as many groups of four columns as fit in the cache, but at least one.
 * With 2:4, all rows of a block then have the same number of entries, so that the ends of loops are
 * predicted well. */
static int64_t end_of_column_block(const laci_sparse_product *p, const laci_sparse_tile *tiles,
                                   int64_t n_tiles, int64_t first_column, int64_t end_column) {
  lines l = {.n = 0};
  int64_t column = first_column;
  for (; column < end_column && (l.n < MOST_LINES || (column - first_column) % FOUR); column++) {
    for (int64_t t = 0; t < n_tiles; t++) {
      const int64_t at = tiles[t].in + p->column_at[column];
      add_cache_line_to_set(&l, at / LINE);
      add_cache_line_to_set(&l, (at + LACI_SPARSE_LANES - 1) / LINE);
    }
  }
  return column;
}

/* ---- Chunks ---- */

/* The state while the CSR form is built. */
typedef struct builder {
  const laci_sparse_product *p;
  const float *weight;
  const laci_sparse_tile *tiles;
  int64_t n_tiles, chunk_rows;
  int64_t *ends;  /* [n_columns]: where the blocks of columns end, group by group */
  int64_t *first; /* [n_groups + 1]: number of blocks before each group */
  laci_csr *csr;
} builder;

static void find_column_blocks(builder *m) {
  const int64_t n_groups = m->p->n_rows / m->p->rows_together,
                each = laci_sparse_columns_per_group(m->p);
  int64_t n = 0;
  for (int64_t group = 0; group < n_groups; group++) {
    m->first[group] = n;
    for (int64_t at = group * each; at < (group + 1) * each; n++) {
      at = m->ends[n] = end_of_column_block(m->p, m->tiles, m->n_tiles, at, (group + 1) * each);
    }
  }
  m->first[n_groups] = n;
}

/* Fills a chunk with the entries of some rows of a group, and sets where they begin. */
static void fill_chunk_of_rows(const builder *m, int64_t group, int64_t row_first,
                               laci_csr_chunk *chunk, int64_t *begin) {
  const laci_sparse_product *p = m->p;
  const int64_t group_end = (group + 1) * p->rows_together, row_end = row_first + m->chunk_rows;
  int64_t n = p->row_begin[row_first];
  *chunk = (laci_csr_chunk){.row_first = row_first,
                            .row_last = row_end < group_end ? row_end : group_end,
                            .n_blocks = m->first[group + 1] - m->first[group],
                            .begin = begin};
  int64_t next_kept[LACI_CSR_MOST_ROWS]; /* the next kept weight of each row */
  for (int64_t row = row_first; row < chunk->row_last; row++) {
    next_kept[row - row_first] = p->row_begin[row];
  }
  for (int64_t block = m->first[group]; block < m->first[group + 1]; block++) {
    for (int64_t row = row_first; row < chunk->row_last; row++) {
      int64_t *k = &next_kept[row - row_first];
      *begin++ = n;
      for (; *k < p->row_begin[row + 1] && p->column[*k] < m->ends[block]; ++*k, n++) {
        m->csr->entries[n] = (laci_csr_entry){(int32_t)p->column_at[p->column[*k]], m->weight[*k]};
      }
    }
  }
  *begin = n;
}

/* Allocates the chunks, and the memory of their arrays `begin`. */
static bool allocate_chunks(const builder *m, int64_t n_groups) {
  const laci_sparse_product *p = m->p;
  laci_csr *csr = m->csr;
  const int64_t each = laci_ceil_div(p->rows_together, m->chunk_rows);
  int64_t n_begins = 0;
  csr->n_chunks = n_groups * each;
  for (int64_t group = 0; group < n_groups; group++) {
    n_begins += (m->first[group + 1] - m->first[group]) * p->rows_together + each;
  }
  const int64_t n_kept = p->row_begin[p->n_rows];
  csr->chunks = laci_alloc((size_t)csr->n_chunks, sizeof *csr->chunks);
  csr->begin = laci_alloc((size_t)n_begins, sizeof *csr->begin);
  csr->entries = laci_alloc((size_t)n_kept, sizeof *csr->entries);
  csr->bytes = (size_t)csr->n_chunks * sizeof *csr->chunks + (size_t)n_begins * sizeof *csr->begin +
               (size_t)n_kept * sizeof *csr->entries;
  return csr->chunks && csr->begin && csr->entries;
}

static void fill_all_chunks(const builder *m, int64_t n_groups) {
  int64_t *begin = m->csr->begin;
  laci_csr_chunk *chunk = m->csr->chunks;
  for (int64_t group = 0; group < n_groups; group++) {
    const int64_t end = (group + 1) * m->p->rows_together;
    for (int64_t row = group * m->p->rows_together; row < end; row += m->chunk_rows, chunk++) {
      fill_chunk_of_rows(m, group, row, chunk, begin);
      begin += chunk->n_blocks * (chunk->row_last - chunk->row_first) + 1;
    }
  }
}

lac_status laci_csr_init(const laci_sparse_product *p, const float *weight, const laci_csr_cut *cut,
                         laci_csr *csr, lac_error *err) {
  const int64_t n_groups = p->n_rows / p->rows_together, strip = laci_csr_tiles_per_strip();
  builder m = {.p = p, .weight = weight, .tiles = cut->tiles, .csr = csr};
  m.n_tiles = cut->n_tiles < strip ? cut->n_tiles : strip;
  m.chunk_rows = cut->chunk_rows < LACI_CSR_MOST_ROWS ? cut->chunk_rows : LACI_CSR_MOST_ROWS;
  *csr = (laci_csr){.row_stride = p->row_stride};
  lac_status st = laci_sparse_check_columns(p, err);
  if (st) return st;
  m.ends = laci_alloc((size_t)p->n_columns, sizeof *m.ends);
  m.first = laci_alloc((size_t)n_groups + 1, sizeof *m.first);
  if (m.ends && m.first) find_column_blocks(&m);
  if (!m.ends || !m.first || !allocate_chunks(&m, n_groups)) {
    st = laci_fail_memory(err, "a sparse product's CSR");
    laci_csr_clear(csr);
  } else {
    fill_all_chunks(&m, n_groups);
  }
  laci_free(m.ends);
  laci_free(m.first);
  return st;
}

void laci_csr_clear(laci_csr *csr) {
  laci_free(csr->chunks);
  laci_free(csr->begin);
  laci_free(csr->entries);
  *csr = (laci_csr){.n_chunks = 0};
}
