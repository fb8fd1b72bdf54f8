/* SPDX-License-Identifier: Apache-2.0
 * The table of scores, and the steps that all scores share: masks from saliencies, memory. Next:
 * score_in.h, check.c, solve.c. */
#include "calibrate/fit.h"

#include <string.h>

#include "base/error.h"
#include "calibrate/score_in.h"
#include "calibrate/solve_in.h"
#include "cpu/pool.h"
#include "sparse/mask.h"

#define LACI_SCORE(name) &laci_score_##name,
static const laci_score *const scores[] = {
#include "calibrate/score.def"
};
#undef LACI_SCORE

const laci_score *laci_score_at(int at) {
  return at >= 0 && (size_t)at < sizeof scores / sizeof *scores ? scores[at] : NULL;
}

const laci_score *laci_score_find(const char *name) {
  for (size_t at = 0; at < sizeof scores / sizeof *scores; at++) {
    if (strcmp(scores[at]->name, name) == 0) return scores[at];
  }
  return NULL;
}

const char *laci_score_name(const laci_score *score) { return score->name; }
const char *laci_score_title(const laci_score *score) { return score->title; }
const char *laci_score_paper(const laci_score *score) { return score->paper; }
bool laci_score_needs_gram(const laci_score *score) { return score->needs_gram; }
bool laci_score_is_saliency(const laci_score *score) { return !score->choose; }

static laci_score_input make_score_input(const laci_fit *fit, const laci_score *score,
                                         laci_pool *pool) {
  return (laci_score_input){
      .fit = fit, .pool = pool, .damping = score->needs_gram ? laci_fit_compute_damping(fit) : 1};
}

/* ---- saliencies and masks ---- */

lac_status laci_fit_compute_saliency(const laci_fit *fit, const laci_score *score, laci_pool *pool,
                                     double *saliency, lac_error *err) {
  lac_status st = laci_fit_check_input(fit, score->needs_gram, err);
  if (st) return st;
  const laci_score_input input = make_score_input(fit, score, pool);
  return score->saliency(&input, saliency, err);
}

typedef struct ranking {
  const laci_fit *fit;
  uint8_t *mask;
  double *weight; /* [rows, columns] at first the saliencies; they are replaced by the masked
                     weights */
} ranking;

static void mask_rows_by_saliency(int64_t begin, int64_t end, void *context) {
  const ranking *r = context;
  const int columns = r->fit->columns;
  for (int64_t row = begin; row < end; row++) {
    double *weight = r->weight + row * columns;
    uint8_t *mask = r->mask + row * columns;
    if (r->fit->form == LACI_MASK_1D) laci_fit_mask_row(r->fit, weight, mask);
    for (int c = 0; c < columns; c++) {
      weight[c] = mask[c] ? r->fit->weight[row * columns + c] : 0;
    }
  }
}

/* Chooses masks whose blocks span several rows: the saliencies [rows, taps, channels] are passed to
 * sparse/mask.h as if they were a weight. */
static lac_status mask_blocks_of_rows(const laci_fit *fit, const double *saliency, laci_pool *pool,
                                      uint8_t *mask, lac_error *err) {
  const laci_weight_view view = {.name = fit->name,
                                 .dtype = LAC_DTYPE_F64,
                                 .bytes = (const uint8_t *)saliency,
                                 .outer = (int64_t)fit->rows * (fit->columns / fit->channels),
                                 .columns = fit->channels,
                                 .inner = 1,
                                 .run = fit->channels,
                                 .rows = fit->rows,
                                 .row_step = fit->columns,
                                 .row_run = fit->rows};
  const laci_mask_rule rule = {fit->pattern, fit->form, fit->v};
  return laci_mask_choose_by_rule(&view, &rule, pool, mask, err);
}

lac_status laci_fit_choose_mask(const laci_fit *fit, const laci_score *score, laci_pool *pool,
                                uint8_t *mask, double *weight, lac_error *err) {
  lac_status st = laci_fit_check_input(fit, score->needs_gram, err);
  if (st) return st;
  const laci_score_input input = make_score_input(fit, score, pool);
  if (score->choose && fit->form != LACI_MASK_1D) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: %s chooses masks along input channels alone",
                     fit->name, score->name);
  }
  if (score->choose) return score->choose(&input, mask, weight, err);
  st = score->saliency(&input, weight, err);
  if (!st && fit->form != LACI_MASK_1D) st = mask_blocks_of_rows(fit, weight, pool, mask, err);
  if (st) return st;
  ranking r = {fit, mask, weight};
  laci_pool_for(pool, fit->rows, 16, mask_rows_by_saliency, &r);
  return LAC_OK;
}

uint64_t laci_fit_memory_bytes(const laci_fit *fit, const laci_score *score, int n_threads) {
  const uint64_t solving = laci_fit_solve_memory_bytes(fit, n_threads);
  const uint64_t choosing = score && score->memory ? score->memory(fit, n_threads) : 0;
  return solving > choosing ? solving : choosing;
}
