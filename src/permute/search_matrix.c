/* SPDX-License-Identifier: Apache-2.0
 * Converts the stored weights of a cut (a table of columns) to small integers (search_matrix.h),
 * block by block. Adjacent elements of the file become integers together, in the file's order, and
 * are then copied to their columns. Scores are only multiplied, added and truncated, and each
 * operation is rounded once. So every machine gets the same integers. Next:
 * kernel/search/quantize.h, kernel/search/transpose.h. */
#include "permute/search_matrix.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/to_int.h"
#include "cpu/pool.h"
#include "kernel/search/maxsum.h"
#include "kernel/search/quantize.h"
#include "kernel/search/transpose.h"
#include "permute/search_hold.h"
#include "permute/strategy.h"
#include "sparse/score.h"

/* A block of a weight is read in stretches of up to STRETCH adjacent elements: long enough for fast
 * reading, but so short that a block of many rows stays in the L2 cache. */
enum { STRETCH = 512, BLOCK = 64 * STRETCH, DOUBLES_AT_ONCE = 256, MOST_SPREAD = 128 };

static int64_t find_row_step(const laci_cut *cut) {
  double elements = (double)cut->n_rows * cut->n_columns;
  return 1 + laci_clamp_to_int64(elements / (double)LACI_MOST_ELEMENTS);
}

static int64_t count_sampled_rows(const laci_cut *cut) {
  int64_t step = find_row_step(cut);
  return (cut->n_rows + step - 1) / step;
}

size_t laci_matrix_count_padded_rows(const laci_cut *cut) {
  size_t rows = (size_t)count_sampled_rows(cut);
  return (rows + LACI_MAXSUM_ROWS - 1) / LACI_MAXSUM_ROWS * LACI_MAXSUM_ROWS;
}

/* Returns the largest integer that an element may become, so that a sum over all rows of any table
 * of columns stays within LACI_MAXSUM_LIMIT. */
static int find_largest_safe_element(laci_number number, const laci_cuts *cuts) {
  int64_t rows = 1, largest = number == LACI_U8 ? UINT8_MAX : INT16_MAX;
  for (int i = 0; i < cuts->n_cuts; i++) {
    int64_t here = count_sampled_rows(&cuts->cuts[i]);
    rows = here > rows ? here : rows;
  }
  return (int)(LACI_MAXSUM_LIMIT / rows < largest ? LACI_MAXSUM_LIMIT / rows : largest);
}

typedef struct job {
  const laci_cut *cut;
  laci_matrix *matrix;
  int64_t *first_block; /* [n_parts + 1] index of the first block of each part (rows of one
                           weight) */
  int64_t begin;        /* index of the first block of the parts (rows of one weight) that are in
                           memory now */
  laci_pool *pool;
  int64_t step; /* every step-th row of the table of columns is used */
  int largest;  /* largest integer that an element becomes */
  atomic_bool no_memory;
} job;

/* How a part is divided into blocks: a block has some outer indices, some columns, and all inner
 * indices. If the inner axis is long, it has one outer index and a range of inner ones. If the cut
 * is sampled and each row has an outer index of its own, only the sampled rows are counted and
 * read. */
typedef struct tiling {
  int64_t first_outer, outer_step, n_outers;
  int64_t outers, columns, inners; /* numbers of outer indices, columns and inner indices in a
                                      block */
  int64_t n_by_outer, n_by_inner, n_by_column;
} tiling;

static int64_t divide_rounding_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

static tiling divide_part_into_blocks(const laci_cut_part *part, int64_t step) {
  const int64_t inner = part->weight->inner;
  tiling t = {.outer_step = 1, .columns = 1, .inners = 1, .outers = 1};
  if (part->n_rows == 0) return t;
  t.n_outers = part->n_rows / inner;
  if (inner == 1) {
    t.first_outer = (step - part->first_row % step) % step;
    t.outer_step = step;
    t.n_outers =
        t.first_outer < t.n_outers ? divide_rounding_up(t.n_outers - t.first_outer, step) : 0;
  }
  t.inners = inner < STRETCH ? inner : STRETCH;
  t.columns = STRETCH / t.inners;
  if (t.columns > part->n_read) t.columns = part->n_read > 0 ? part->n_read : 1;
  if (t.inners == inner) t.outers = BLOCK / (t.columns * t.inners);
  t.n_by_outer = divide_rounding_up(t.n_outers, t.outers);
  t.n_by_inner = divide_rounding_up(inner, t.inners);
  t.n_by_column = divide_rounding_up(part->n_read, t.columns);
  return t;
}

static int64_t count_tiling_blocks(const tiling *t) {
  return t->n_by_outer * t->n_by_inner * t->n_by_column;
}

/* One block of a part (rows of one weight). Rows are numbered within the cut, through all parts. */
typedef struct block {
  const laci_cut_part *part;
  int64_t outer, outer_step; /* first outer index and distance between outer indices, counted from
                                the part's first one */
  int64_t inner;
  int column; /* index of the block's first column among the columns that the part reads */
  int n_outers, n_inners, n_columns;
  int64_t row;
} block;

static int min_int(int64_t n, int64_t most) { return (int)(n < most ? n : most); }

static block find_block_by_index(const job *j, int64_t index) {
  int low = 0, high = j->cut->n_parts - 1; /* finds the last part that begins at or before the
                                              block */
  while (low < high) {
    int middle = low + (high - low + 1) / 2;
    if (j->first_block[middle] <= index) low = middle;
    else high = middle - 1;
  }
  const laci_cut_part *part = &j->cut->parts[low];
  tiling t = divide_part_into_blocks(part, j->step);
  index -= j->first_block[low];
  int64_t by_column = index % t.n_by_column, by_inner = index / t.n_by_column % t.n_by_inner,
          by_outer = index / t.n_by_column / t.n_by_inner;
  block b = {.part = part, .outer_step = t.outer_step};
  b.outer = t.first_outer + by_outer * t.outers * t.outer_step;
  b.inner = by_inner * t.inners;
  b.column = (int)(by_column * t.columns);
  b.n_outers = min_int(t.n_outers - by_outer * t.outers, t.outers);
  b.n_inners = min_int(part->weight->inner - b.inner, t.inners);
  b.n_columns = min_int(part->n_read - b.column, t.columns);
  b.row = part->first_row + b.outer * part->weight->inner + b.inner;
  return b;
}

static void count_blocks(const job *j) {
  int n = j->cut->n_parts;
  for (int i = 0; i < n; i++) {
    tiling t = divide_part_into_blocks(&j->cut->parts[i], j->step);
    j->first_block[i + 1] = j->first_block[i] + count_tiling_blocks(&t);
  }
}

/* Converts n elements of a weight to integers through float64. For any element type and scale. */
static void quantize_doubles(const job *j, const laci_weight_view *w, int64_t first, int64_t n,
                             void *out) {
  double score[DOUBLES_AT_ONCE];
  for (int64_t done = 0; done < n; done += DOUBLES_AT_ONCE) {
    int64_t here = n - done < DOUBLES_AT_ONCE ? n - done : DOUBLES_AT_ONCE;
    laci_scores_read(w, first + done, here, score);
    for (int64_t i = 0; i < here; i++) {
      double scaled = score[i] * j->matrix->scale;
      int element = (int)laci_clamp_to_int64((scaled < j->largest ? scaled : j->largest) + 0.5);
      if (j->matrix->number == LACI_U8) ((uint8_t *)out)[done + i] = (uint8_t)element;
      else ((int16_t *)out)[done + i] = (int16_t)element;
    }
  }
}

/* Converts the elements [first, first + n) of a weight to integers. */
static void quantize_elements(const job *j, const laci_weight_view *w, int64_t first, int64_t n,
                              void *out) {
  const laci_matrix *m = j->matrix;
  if (w->n_scales || w->squared || w->grid ||
      !laci_search_can_quantize_in_float(w->dtype, m->scale)) {
    quantize_doubles(j, w, first, n, out);
    return;
  }
  laci_search_quantizer q = {w->dtype, m->number, (float)m->scale, (float)j->largest};
  laci_search_quantize(&q, w->bytes + (size_t)first * lac_dtype_size(w->dtype), (size_t)n, out);
}

/* Reads a block of a weight and converts it to integers, [n_outers][n_columns][n_inners]. */
static void read_quantized_block(const job *j, const block *b, uint8_t *integers) {
  const laci_weight_view *w = b->part->weight;
  const size_t size = laci_number_size(j->matrix->number);
  for (int o = 0; o < b->n_outers; o++) {
    int64_t outer = b->part->outer_begin + b->outer + o * b->outer_step;
    for (int at = 0, n; at < b->n_columns; at += n) {
      const int64_t *source = b->part->source + b->column + at;
      n = b->n_inners == w->inner ? laci_count_adjacent(source, b->n_columns - at) : 1;
      int64_t first = (outer * w->columns + source[0]) * w->inner + b->inner;
      quantize_elements(j, w, first, (int64_t)n * b->n_inners, integers);
      integers += (size_t)n * (size_t)b->n_inners * size;
    }
  }
}

static void *matrix_column_of_block(const job *j, const block *b, int c) {
  return laci_matrix_column(j->matrix, b->part->column[b->column + c]);
}

/* Copies a block to its columns. Only for weights in which each outer index is one row. */
static void write_single_row_columns(const job *j, const block *b, const uint8_t *integers) {
  void *to[STRETCH];
  for (int c = 0; c < b->n_columns; c++) to[c] = matrix_column_of_block(j, b, c);
  laci_transpose(j->matrix->number, integers, b->n_outers, b->n_columns, to,
                 (size_t)(b->row / j->step));
}

/* Writes those of n rows that are sampled to a column of the matrix. row: the first of the n
 * rows. */
static void write_sampled_rows(const job *j, void *column, int64_t row, int64_t n,
                               const uint8_t *integers) {
  const size_t size = laci_number_size(j->matrix->number);
  if (j->step == 1) {
    memcpy((uint8_t *)column + (size_t)row * size, integers, (size_t)n * size);
    return;
  }
  for (int64_t r = (j->step - row % j->step) % j->step; r < n; r += j->step) {
    memcpy((uint8_t *)column + (size_t)((row + r) / j->step) * size, integers + (size_t)r * size,
           size);
  }
}

/* Copies a block to its columns. Only for weights in which each outer index has a few rows. The
 * rows of a column are first gathered, 16 bytes at a time (each copy overwrites the surplus bytes
 * of the one before), and then written together. */
static void write_gathered_rows(const job *j, const block *b, const uint8_t *integers,
                                uint8_t *gathered) {
  const size_t size = laci_number_size(j->matrix->number), length = (size_t)b->n_inners * size;
  for (int c = 0; c < b->n_columns; c++) {
    const uint8_t *from = integers + (size_t)c * length;
    uint8_t *to = gathered;
    for (int o = 0; o < b->n_outers; o++, from += (size_t)b->n_columns * length, to += length) {
      for (size_t at = 0; at < length; at += 16) memcpy(to + at, from + at, 16);
    }
    write_sampled_rows(j, matrix_column_of_block(j, b, c), b->row,
                       (int64_t)b->n_outers * b->n_inners, gathered);
  }
}

/* Allocates the working memory of all threads: integers of a block, and gathered rows of a column.
 * *each: number of bytes for one thread. */
static uint8_t *alloc_buffers(const job *j, size_t *each) {
  int64_t all = j->cut->n_rows * j->cut->n_columns; /* number of elements of the table of columns;
                                                       no block is larger */
  *each = (size_t)(all < BLOCK ? all : BLOCK) * laci_number_size(j->matrix->number) + 16;
  return laci_alloc(2, *each);
}

static void fill_blocks(int64_t begin, int64_t end, void *context) {
  job *j = context; /* begin and end are counted from the first block of the parts (rows of one
                       weight) in memory */
  size_t each = 0;
  uint8_t *integers = alloc_buffers(j, &each);
  if (!integers) {
    atomic_store(&j->no_memory, true);
    return;
  }
  for (int64_t index = j->begin + begin; index < j->begin + end; index++) {
    block b = find_block_by_index(j, index);
    read_quantized_block(j, &b, integers);
    if (b.part->weight->inner == 1) write_single_row_columns(j, &b, integers);
    else write_gathered_rows(j, &b, integers, integers + each);
  }
  laci_free(integers);
}

/* Converts the blocks of parts first to end - 1 (each has rows of one weight) to integers. Their
 * weights are in memory. */
static void quantize_parts(const laci_cut *held, int first, int end, void *context) {
  job *j = context;
  const laci_cut *whole = j->cut;
  j->cut = held;
  j->begin = j->first_block[first];
  int64_t n = j->first_block[end] - j->begin, grain = n / (8 * (int64_t)laci_pool_threads(j->pool));
  laci_pool_for(j->pool, n, grain > 0 ? grain : 1, fill_blocks, j);
  j->cut = whole;
}

static lac_status quantize_cut(job *j, const char *name, lac_error *err) {
  j->first_block = laci_alloc((size_t)j->cut->n_parts + 1, sizeof *j->first_block);
  if (!j->first_block) return laci_fail_memory(err, name);
  count_blocks(j);
  lac_status st = laci_cut_load_and_visit_weights(j->cut, quantize_parts, j, err);
  laci_free(j->first_block);
  return !st && atomic_load(&j->no_memory) ? laci_fail_memory(err, name) : st;
}

lac_status laci_matrix_init(laci_matrix *matrix, laci_number number, const laci_matrix_source *from,
                            laci_pool *pool, lac_error *err) {
  const laci_cut *cut = from->cut;
  const char *name = from->cuts->problem->name;
  *matrix = (laci_matrix){
      .number = number, .n_columns = cut->n_columns, .rows = laci_matrix_count_padded_rows(cut)};
  /* one very large weight must not determine the scale of u8; values that are clipped are kept by
   * the pattern anyway */
  double top = from->measure->common;
  if (number == LACI_I16) {
    double most = MOST_SPREAD * top;
    top = from->measure->largest < most ? from->measure->largest : most;
  }
  int largest = find_largest_safe_element(number, from->cuts);
  /* the distance between columns is no power of two: with one, all columns would use the same cache
   * sets */
  matrix->column_bytes = matrix->rows * laci_number_size(number) + LACI_MAXSUM_ROWS;
  matrix->scale = top > 0 ? (double)largest / top : 0;
  if (!(matrix->scale < 1e300))
    matrix->scale = 0; /* the scale would overflow, since scores are so small */
  matrix->bytes = laci_alloc((size_t)cut->n_columns, matrix->column_bytes);
  if (!matrix->bytes) return laci_fail_memory(err, name);
  job j = {
      .cut = cut, .matrix = matrix, .pool = pool, .step = find_row_step(cut), .largest = largest};
  lac_status st = quantize_cut(&j, name, err);
  if (st) laci_matrix_clear(matrix);
  return st;
}

void laci_matrix_clear(laci_matrix *matrix) {
  laci_free(matrix->bytes);
  matrix->bytes = NULL;
}

lac_status laci_task_find_or_make_matrix(const laci_task *task, const laci_cut *cut,
                                         laci_number number, const laci_matrix **matrix,
                                         lac_error *err) {
  laci_matrix *kept = &task->matrices[cut - task->cuts->cuts][number];
  *matrix = kept;
  if (kept->bytes) return LAC_OK;
  const laci_matrix_source from = {task->cuts, cut, task->measure};
  return laci_matrix_init(kept, number, &from, task->pool, err);
}
