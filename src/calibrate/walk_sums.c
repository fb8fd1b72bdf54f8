/* SPDX-License-Identifier: Apache-2.0
 * The sums that the fits of a stop's layers read: created before the walk runs to the stop, and
 * freed after the fits. */
#include "base/error.h"
#include "calibrate/fit.h"
#include "calibrate/residual_in.h"
#include "calibrate/walk_in.h"

/* Creates the sums for the layers of a stop (layers that read one value). */
static lac_status init_sums(const laci_walk_state *w, const laci_stop *stop, laci_stop_sums *sums,
                            lac_error *err) {
  bool asymmetric = !w->options->symmetric && w->plan.differs[stop->value];
  lac_status st = LAC_OK;
  for (int l = 0; l < stop->n_layers && !st; l++) {
    const laci_matrix_layer *layer = &w->plan.layers[stop->first_layer + l];
    const laci_unfold *unfold = &layer->unfold;
    int m = 0;
    while (m < sums->n_grams && !laci_unfold_equal(&sums->grams[m].unfold, unfold)) m++;
    sums->which[l] = m;
    if (m == sums->n_grams) {
      st = laci_grams_init(&sums->grams[m], unfold, asymmetric, laci_walk_max_positions(w, unfold),
                           err);
      if (st) return st;
      sums->grams[m].layer = stop->first_layer + l;
      sums->n_grams++;
    }
    st = laci_residual_init(&sums->residuals[l], w, layer, &sums->grams[m], err);
  }
  return st;
}

lac_status laci_walk_create_sums(const laci_walk_state *w, const laci_stop *stop,
                                 laci_stop_sums *sums, lac_error *err) {
  const size_t n = (size_t)stop->n_layers;
  *sums = (laci_stop_sums){.n_layers = stop->n_layers,
                           .grams = laci_alloc(n, sizeof *sums->grams),
                           .which = laci_alloc(n, sizeof *sums->which),
                           .residuals = laci_alloc(n, sizeof *sums->residuals)};
  if (!sums->grams || !sums->which || !sums->residuals)
    return laci_fail_memory(err, "sums over layers' inputs");
  const bool read = w->options->solve || laci_score_needs_gram(w->options->score);
  return read ? init_sums(w, stop, sums, err) : LAC_OK;
}

void laci_walk_clear_sums(laci_stop_sums *sums) {
  for (int m = 0; m < sums->n_grams; m++) laci_grams_clear(&sums->grams[m]);
  for (int l = 0; sums->residuals && l < sums->n_layers; l++)
    laci_residual_clear(&sums->residuals[l]);
  laci_free(sums->grams);
  laci_free(sums->which);
  laci_free(sums->residuals);
}
