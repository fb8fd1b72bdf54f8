/* SPDX-License-Identifier: Apache-2.0
 * Quantising a cut straight from its stored weights, tile by tile. Only additions, multiplications
 * and truncation touch a score, each rounded once: every machine gets the same integers. */
#include "permute/search_matrix.h"

#include <stdatomic.h>

#include "base/error.h"
#include "kernel/maxsum.h"
#include "permute/search_rows.h"

#define MOST_ELEMENTS (INT64_C(1) << 26)

static int64_t row_step(const laci_cut *cut) {
  double elements = (double)cut->n_rows * cut->n_columns;
  return 1 + (int64_t)(elements / (double)MOST_ELEMENTS);
}

static int64_t sampled_rows(const laci_cut *cut) {
  int64_t step = row_step(cut);
  return (cut->n_rows + step - 1) / step;
}

size_t laci_matrix_rows(const laci_cut *cut) {
  size_t rows = (size_t)sampled_rows(cut);
  return (rows + LACI_MAXSUM_ROWS - 1) / LACI_MAXSUM_ROWS * LACI_MAXSUM_ROWS;
}

/* The largest element that keeps the sum over all rows of the tallest cut within the limit. */
static int largest_element(laci_number number, const laci_cuts *cuts) {
  int64_t rows = 1, largest = number == LACI_U8 ? UINT8_MAX : INT16_MAX;
  for (int i = 0; i < cuts->n_cuts; i++) {
    int64_t here = sampled_rows(&cuts->cuts[i]);
    rows = here > rows ? here : rows;
  }
  return (int)(LACI_MAXSUM_LIMIT / rows < largest ? LACI_MAXSUM_LIMIT / rows : largest);
}

typedef struct job {
  const laci_cut *cut;
  laci_matrix *matrix;
  int64_t step;
  double largest; /* element */
  atomic_bool no_memory;
} job;

static double quantised(double score, const job *j) {
  double scaled = score * j->matrix->scale;
  return scaled < j->largest ? scaled + 0.5 : j->largest;
}

static void write_tile(const job *j, const laci_tile *tile) {
  for (int c = 0; c < j->matrix->n_columns; c++) {
    void *column = laci_matrix_column(j->matrix, c);
    const double *score = tile->score + (int64_t)c * LACI_TILE_ROWS;
    for (int r = (int)((j->step - tile->first_row % j->step) % j->step); r < tile->n_rows;
         r += (int)j->step) {
      int64_t row = (tile->first_row + r) / j->step;
      if (j->matrix->number == LACI_U8) ((uint8_t *)column)[row] = (uint8_t)quantised(score[r], j);
      else ((int16_t *)column)[row] = (int16_t)quantised(score[r], j);
    }
  }
}

static void do_tiles(int64_t begin, int64_t end, void *context) {
  job *j = context;
  laci_tile tile = {.score =
                        laci_alloc((size_t)j->cut->n_columns * LACI_TILE_ROWS, sizeof(double))};
  if (!tile.score) {
    atomic_store(&j->no_memory, true);
    return;
  }
  for (int64_t index = begin; index < end; index++) {
    laci_tile_read(j->cut, index, &tile);
    write_tile(j, &tile);
  }
  laci_free(tile.score);
}

lac_status laci_matrix_init(laci_matrix *matrix, laci_number number, const laci_cuts *cuts,
                            const laci_cut *cut, const laci_measure *measure, laci_pool *pool,
                            lac_error *err) {
  *matrix =
      (laci_matrix){.number = number, .n_columns = cut->n_columns, .rows = laci_matrix_rows(cut)};
  double top = number == LACI_U8 ? measure->common : measure->largest;
  int largest = largest_element(number, cuts);
  /* columns start a little apart from powers of two, or they would all want the same lines of the
   * cache */
  matrix->column_bytes = matrix->rows * laci_number_size(number) + LACI_MAXSUM_ROWS;
  matrix->scale = top > 0 ? (double)largest / top : 0;
  if (!(matrix->scale < 1e300)) matrix->scale = 0; /* scores so small that they have no inverse */
  matrix->bytes = laci_alloc((size_t)cut->n_columns, matrix->column_bytes);
  if (!matrix->bytes) return laci_fail_memory(err, cuts->problem->name);
  job j = {.cut = cut, .matrix = matrix, .step = row_step(cut), .largest = largest};
  int64_t n_tiles = laci_tiles_count(cut), grain = n_tiles / (8 * (int64_t)laci_pool_threads(pool));
  laci_pool_for(pool, n_tiles, grain > 0 ? grain : 1, do_tiles, &j);
  if (!atomic_load(&j.no_memory)) return LAC_OK;
  laci_matrix_clear(matrix);
  return laci_fail_memory(err, cuts->problem->name);
}

void laci_matrix_clear(laci_matrix *matrix) {
  laci_free(matrix->bytes);
  matrix->bytes = NULL;
}
