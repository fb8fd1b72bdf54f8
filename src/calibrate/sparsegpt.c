/* SPDX-License-Identifier: Apache-2.0
 * SparseGPT: visits columns from left to right. At the first column of a block, its n weights of
 * largest w^2 / U_jj^2 are chosen to be kept. The columns to the right compensate for what a column
 * loses,
 *
 *     w[j:] -= (w_j - q_j) / U_jj * U[j, j:],    (H + d I)^-1 = U' U, U upper triangular
 *
 * Columns are grouped into panels of whole blocks: inside a panel, the others are updated after
 * every column; those to its right once a panel. In the asymmetric form, G (H + d I)^-1 is pruned
 * instead of W_d. */
#include "base/error.h"
#include "base/memory.h"
#include "calibrate/inverse_in.h"
#include "cpu/pool.h"
#include "kernel/linear/linear.h"

enum { PANEL_COLUMNS = 128, ROWS_AT_ONCE = 32 };

typedef struct pruning {
  const laci_fit *fit;
  const double *factor; /* [columns, columns] upper triangular Cholesky factor U of the inverse of
                           the damped Gram matrix (top of this file) */
  uint8_t *mask;
  double *weight; /* [rows, columns] weights, which are pruned in place */
} pruning;

/* Chooses the block's mask by the weights w, in which earlier columns have been compensated for. */
static void choose_block_mask(const pruning *p, laci_fit_block block, const double *w,
                              uint8_t *mask) {
  double worth[LACI_MOST_PATTERN_M] = {0};
  for (int c = 0; c < block.n_columns; c++) {
    const int at = block.first + c;
    const double scaled = w[at] / p->factor[(int64_t)at * p->fit->columns + at];
    worth[c] = scaled * scaled;
  }
  laci_fit_mask_block(worth, block.n_columns, p->fit->pattern.n, mask + block.first);
}

/** A panel: the columns [first, end), which are n_blocks whole N:M blocks. */
typedef struct column_panel {
  int first_block, n_blocks, first, end;
} column_panel;

static column_panel find_column_panel(const laci_fit *fit, int first_block) {
  column_panel p = {.first_block = first_block,
                    .first = laci_fit_find_block(fit, first_block).first};
  const int n_blocks = laci_fit_count_blocks(fit);
  for (p.end = p.first; first_block + p.n_blocks < n_blocks; p.n_blocks++) {
    const laci_fit_block block = laci_fit_find_block(fit, first_block + p.n_blocks);
    if (block.first + block.n_columns - p.first > PANEL_COLUMNS) break;
    p.end = block.first + block.n_columns;
  }
  return p;
}

/* Prunes the columns of a panel in one row. lost [end - first]: set to the errors for which the
 * columns to the right of the panel must still compensate. */
static void prune_row_in_panel(const pruning *p, const column_panel *panel, int64_t row,
                               double *lost) {
  const int columns = p->fit->columns;
  double *w = p->weight + row * columns;
  uint8_t *mask = p->mask + row * columns;
  for (int b = 0; b < panel->n_blocks; b++) {
    const laci_fit_block block = laci_fit_find_block(p->fit, panel->first_block + b);
    choose_block_mask(p, block, w, mask);
    for (int c = block.first; c < block.first + block.n_columns; c++) {
      const double *factor = p->factor + (int64_t)c * columns;
      const double part = mask[c] ? 0 : w[c] / factor[c];
      lost[c - panel->first] = part;
      if (mask[c]) continue;
      w[c] = 0;
      for (int j = c + 1; j < panel->end; j++) w[j] -= part * factor[j];
    }
  }
}

static void prune_rows_by_panels(int64_t begin, int64_t end, void *context) {
  const pruning *p = context;
  const int columns = p->fit->columns, n_blocks = laci_fit_count_blocks(p->fit);
  double lost[ROWS_AT_ONCE * PANEL_COLUMNS];
  for (int at = 0; at < n_blocks;) {
    const column_panel panel = find_column_panel(p->fit, at);
    for (int64_t row = begin; row < end; row++) {
      prune_row_in_panel(p, &panel, row, lost + (row - begin) * PANEL_COLUMNS);
    }
    laci_linear_product(NULL, &(laci_linear_operands){
                                  .m = (int)(end - begin),
                                  .n = columns - panel.end,
                                  .k = panel.end - panel.first,
                                  .alpha = -1,
                                  .beta = 1,
                                  .a = lost,
                                  .lda = PANEL_COLUMNS,
                                  .b = p->factor + (int64_t)panel.first * columns + panel.end,
                                  .ldb = columns,
                                  .c = p->weight + begin * columns + panel.end,
                                  .ldc = columns,
                              });
    at += panel.n_blocks;
  }
}

static lac_status choose_mask(const laci_score_input *input, uint8_t *mask, double *weight,
                              lac_error *err) {
  const laci_fit *fit = input->fit;
  const int n = fit->columns;
  double *factor = laci_alloc((size_t)n * (size_t)n, sizeof *factor);
  if (!factor) return laci_fail_memory(err, "the inverse of a layer's sums");
  lac_status st = laci_fit_invert_gram(input, factor, err);
  if (!st) st = laci_fit_compute_start_weights(input, factor, weight, err);
  if (!st) st = laci_fit_factorize_inverse(input, factor, err);
  if (!st) {
    pruning p = {fit, factor, mask, weight};
    laci_pool_for(input->pool, fit->rows, ROWS_AT_ONCE, prune_rows_by_panels, &p);
  }
  laci_free(factor);
  return st;
}

static uint64_t sparsegpt_memory_bytes(const laci_fit *fit, int n_threads) {
  (void)n_threads;
  return laci_fit_inverse_memory_bytes(fit);
}

const laci_score laci_score_sparsegpt = {
    .name = "sparsegpt",
    .title = "SparseGPT",
    .paper =
        "Frantar, Alistarh, \"SparseGPT: massive language models can be accurately pruned in "
        "one-shot\", ICML 2023",
    .needs_gram = true,
    .saliency = laci_fit_compute_obs_saliency,
    .choose = choose_mask,
    .memory = sparsegpt_memory_bytes,
};
