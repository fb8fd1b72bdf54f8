/* SPDX-License-Identifier: Apache-2.0
 * Fits one layer at its stop: mask and weights from its sums, group by group. The weights before
 * and after the fit are judged on samples held back. */
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "calibrate/fit.h"
#include "calibrate/residual_in.h"
#include "calibrate/walk_in.h"

/* The new weights and mask of a layer, and memory for the matrices of one convolution group. */
typedef struct fitting {
  laci_walk_state *w;
  const laci_matrix_layer *layer;
  const laci_grams *grams;        /* sums over the layer's inputs; NULL: the score does not need
                                     them */
  const laci_residual *residual;  /* what the layer makes up for; NULL: nothing */
  uint8_t *before, *after, *mask; /* the stored tensor with the mask alone (before) and with fitted
                                     weights (after), as bytes; and its mask */
  double *dense, *fitted;         /* [rows, columns] weights of one group, before and after the
                                     fit */
  uint8_t *kept;                  /* [rows, columns] mask of one group */
} fitting;

static lac_status fitting_init(fitting *f, lac_error *err) {
  const laci_stored *stored = &f->w->network->graph.stored[f->layer->stored];
  size_t n = (size_t)(f->layer->rows * f->layer->columns);
  f->before = laci_alloc(stored->size_bytes, 1);
  f->after = laci_alloc(stored->size_bytes, 1);
  f->mask = laci_alloc((size_t)laci_shape_count(&stored->shape), 1);
  f->dense = laci_alloc(n, sizeof *f->dense);
  f->fitted = laci_alloc(n, sizeof *f->fitted);
  f->kept = laci_alloc(n, 1);
  bool ok = f->before && f->after && f->mask && f->dense && f->fitted && f->kept;
  return ok ? LAC_OK : laci_fail_memory(err, stored->name);
}

static void fitting_clear(fitting *f) {
  laci_free(f->before);
  laci_free(f->after);
  laci_free(f->mask);
  laci_free(f->dense);
  laci_free(f->fitted);
  laci_free(f->kept);
}

static lac_status fit_convolution_group(fitting *f, int64_t group, lac_error *err) {
  const laci_matrix_layer *l = f->layer;
  const laci_calibrate_options *o = f->w->options;
  const laci_network *n = f->w->network;
  const laci_grams *m = f->grams;
  int64_t at = group * l->columns * l->columns;
  laci_fit fit = {.name = n->graph.nodes[l->node].name,
                  .rows = (int)l->rows,
                  .columns = (int)l->columns,
                  .channels = (int)l->channels,
                  .pattern = o->pattern,
                  .form = o->form,
                  .v = o->v,
                  .seed = o->seed + (uint64_t)group,
                  .h = m ? m->h + at : NULL,
                  .k = m && m->k ? m->k + at : NULL,
                  .c = f->residual ? f->residual->sums + group * l->rows * l->columns : NULL,
                  .positions = m ? (double)m->n_positions : 0,
                  .weight = f->dense};
  const uint8_t *bytes = n->weights[l->stored];
  const laci_group_matrix dense = {group, f->dense, f->kept}, fitted = {group, f->fitted, f->kept};
  lac_status st = laci_matrix_layer_gather(l, n, bytes, &dense, err);
  if (!st) st = laci_fit_choose_mask(&fit, o->score, o->pool, f->kept, f->fitted, err);
  if (!st && o->solve) st = laci_fit_solve_weights(&fit, f->kept, o->pool, f->fitted, err);
  if (st) return st;
  laci_matrix_layer_scatter(l, n, &dense, f->before, f->mask);
  laci_matrix_layer_scatter(l, n, &fitted, f->after, f->mask);
  return LAC_OK;
}

/* Stores the layer's result. Fitted weights are dropped if their error on samples held back is
 * larger than that of the masked dense weights. Without options->solve, the weights of the score's
 * own method are always used, as its paper says. */
static void store_better_weights(fitting *f, const laci_layer_errors *errors) {
  laci_walk_state *w = f->w;
  laci_calibrated_layer *out = &w->out->layers[f->layer->layer];
  double energy = errors->energy > 0 ? errors->energy : 1;
  bool worse = w->options->solve && !(errors->errors[1] <= errors->errors[0]);
  uint8_t **chosen = worse ? &f->before : &f->after;
  out->pruned = out->calibrated = true;
  out->solved = w->options->solve && !worse;
  out->energy = errors->energy;
  out->error_before = errors->errors[0] / energy;
  out->error_after = errors->errors[worse ? 0 : 1] / energy;
  out->positions = f->grams ? f->grams->n_positions : 0;
  w->out->weights[f->layer->stored] = *chosen;
  w->out->masks[f->layer->stored] = f->mask;
  if (!w->options->each_alone) w->pruned[f->layer->stored] = *chosen;
  *chosen = f->mask = NULL;
}

lac_status laci_walk_fit_layer(laci_walk_state *w, const laci_matrix_layer *layer,
                               const laci_stop_sums *sums, int at, lac_error *err) {
  const bool summed = sums->n_grams > 0, adds = summed && sums->residuals[at].value >= 0;
  fitting f = {.w = w,
               .layer = layer,
               .grams = summed ? &sums->grams[sums->which[at]] : NULL,
               .residual = adds ? &sums->residuals[at] : NULL};
  laci_layer_errors errors;
  double began = laci_clock_seconds();
  lac_status st = fitting_init(&f, err);
  for (int64_t group = 0; group < layer->unfold.groups && !st; group++) {
    if (laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted while calibrating");
    else st = fit_convolution_group(&f, group, err);
  }
  const double fitted = laci_clock_seconds();
  w->out->fit_seconds += fitted - began;
  const uint8_t *const others[2] = {f.before, f.after};
  if (!st) st = laci_walk_measure_layer_error(w, layer, f.residual, others, &errors, err);
  if (!st) store_better_weights(&f, &errors);
  w->times.judging += laci_clock_seconds() - fitted;
  fitting_clear(&f);
  return st;
}
