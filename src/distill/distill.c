/* SPDX-License-Identifier: Apache-2.0
 * Improves the network as a whole, after its layers were fitted. It re-estimates the statistics of
 * batch normalization, then trains towards the dense network. Both networks are in the new order of
 * channels. */
#include "distill/distill.h"

#include <stdio.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "base/log.h"
#include "base/plural.h"
#include "calibrate/walk.h"
#include "cpu/cpu.h"
#include "calibrate/recalibrate.h"
#include "distill/refine.h"
#include "graph/graph.h"
#include "graph/view.h"
#include "prune/prune.h"

enum { AGAIN_BATCH = 128, AGAIN_MOST = 64 * AGAIN_BATCH, SMALL_BATCH = 16 };

typedef struct refiner {
  laci_pruning *p;
  const laci_prune_options *options;
  const laci_distill_options *how;
  laci_pool *pool;
  laci_calibrated *fitted;
  laci_distilled *to;
  uint8_t **new_bytes;   /* [n_stored] new bytes of each weight, which will replace it at the end;
                            NULL: the weight is unchanged */
  const uint8_t **mixed; /* [n_stored] current bytes of the pruned network's weights; NULL entry:
                            the graph's bytes */
  const uint8_t **masks; /* [n_stored] mask of each weight, a byte per element; NULL entry: the
                            weight is dense */
  uint8_t **unpacked;    /* [n_stored] masks from earlier prunings, unpacked to a byte per
                            element */
} refiner;

static const laci_graph *get_graph(const refiner *r) { return r->p->analysis->graph; }

static int64_t count_fitting_samples(const refiner *r) {
  return r->how->samples->count - r->how->samples->held_back;
}

/* ---- The pruned network with its current weights ---- */

static void list_current_weights(refiner *r) {
  for (int s = 0; s < get_graph(r)->n_stored; s++) {
    r->mixed[s] = r->new_bytes[s]         ? r->new_bytes[s]
                  : r->fitted->weights[s] ? r->fitted->weights[s]
                                          : r->p->weights[s];
  }
}

/* Collects the masks that calibration chose, and those of layers whose mask an earlier pruning
 * chose. */
static lac_status collect_masks(refiner *r, lac_error *err) {
  for (int s = 0; s < get_graph(r)->n_stored; s++) r->masks[s] = r->fitted->masks[s];
  for (int k = 0; k < r->p->n_masks; k++) {
    const laci_pruned_mask *mask = &r->p->masks[k];
    uint8_t *bytes = laci_alloc((size_t)mask->count, 1);
    if (!bytes) return laci_fail_memory(err, "masks");
    for (int64_t i = 0; i < mask->count; i++) bytes[i] = mask->bits[i / 8] >> (i % 8) & 1;
    laci_free(r->unpacked[mask->stored]);
    r->unpacked[mask->stored] = bytes;
    r->masks[mask->stored] = bytes;
  }
  return LAC_OK;
}

static void replace_new_weight(refiner *r, int stored, uint8_t *take) {
  laci_free(r->new_bytes[stored]);
  r->new_bytes[stored] = take;
}

/* Moves the new weights into the pruning, which has the dense network's weights until then. */
static void move_new_weights(refiner *r) {
  for (int s = 0; s < get_graph(r)->n_stored; s++) {
    if (!r->new_bytes[s]) continue;
    uint8_t **place = r->fitted->masks[s] ? &r->fitted->weights[s] : &r->p->weights[s];
    laci_free(*place);
    *place = r->new_bytes[s];
    r->new_bytes[s] = NULL;
  }
}

/* ---- Errors before and after ---- */

static lac_status compare_outputs(refiner *r, const laci_weighted_graph *candidate,
                                  laci_output_difference *difference, lac_error *err) {
  const laci_calibration_cut *cut = &r->fitted->cut;
  const int64_t n_held = cut->n_batches - cut->n_fitted;
  const int64_t first = n_held > 0 ? cut->n_fitted : 0, n = n_held > 0 ? n_held : cut->n_batches;
  const laci_compare_options how = {.first = first * cut->batch,
                                    .n = n * cut->batch,
                                    .batch = cut->batch,
                                    .pool = r->pool,
                                    .budget = r->options->budget};
  const laci_weighted_graph dense = {get_graph(r), (const uint8_t *const *)r->p->weights};
  return laci_compare_outputs(&dense, candidate, r->options->calibration->samples, &how, difference,
                              err);
}

/* If the failure st only means that the network or the machine does not allow this improvement,
 * stores its text as to->reason and returns LAC_OK. Otherwise returns st. */
static lac_status store_reason_if_unsupported(refiner *r, lac_status st, const char *what,
                                              lac_error *err) {
  if (st != LAC_UNSUPPORTED && st != LAC_BAD_SHAPE && st != LAC_MEMORY_LIMIT && st != LAC_BAD_VALUE)
    return st;
  char text[sizeof err->text + 64];
  (void)snprintf(text, sizeof text, "%s: %s", what, err->text);
  laci_log(LAC_LOG_WARNING, "%s", text);
  err->text[0] = '\0';
  r->to->reason = laci_arena_text(&r->p->arena, text);
  return r->to->reason ? LAC_OK : laci_fail_memory(err, "the pruning");
}

/* ---- Statistics of batch normalization ---- */

static lac_status estimate_statistics(refiner *r, laci_graph *view, lac_error *err) {
  int64_t first = r->how->first_changed < count_fitting_samples(r) ? r->how->first_changed : 0;
  int64_t n = count_fitting_samples(r) - first;
  const laci_recalibrate_options how = {.batch = AGAIN_BATCH,
                                        .first = first,
                                        .n = n < AGAIN_MOST ? n : AGAIN_MOST,
                                        .pool = r->pool,
                                        .budget = r->options->budget};
  laci_recalibrated done;
  lac_status st = laci_recalibrate_batch_norms(view, r->how->samples, &how, &done, err);
  if (!st)
    laci_log(LAC_LOG_DEBUG, "statistics of %d norm%s again, from %lld batches", done.n_norms,
             laci_plural(done.n_norms), (long long)done.n_batches);
  return st;
}

static lac_status recalibrate_norms(refiner *r, lac_error *err) {
  laci_graph *view = NULL;
  laci_output_difference found;
  lac_status st = laci_graph_view_create(get_graph(r), r->mixed, &view, err);
  if (!st) st = estimate_statistics(r, view, err);
  const laci_weighted_graph candidate = {.graph = view};
  if (!st) st = compare_outputs(r, &candidate, &found, err);
  if (!st) {
    r->to->error_recalibrated = found.relative;
    r->to->recalibrated = found.relative < r->fitted->outputs.relative;
  }
  for (int s = 0; !st && r->to->recalibrated && s < view->n_stored; s++) {
    if (!view->stored[s].owned) continue;
    replace_new_weight(r, s, view->stored[s].owned);
    view->stored[s].owned = NULL;
  }
  if (!st && r->to->recalibrated) r->fitted->outputs = found;
  laci_graph_view_destroy(view);
  list_current_weights(r);
  return st;
}

/* ---- Training steps ---- */

/* Trains with the largest batch size that memory allows. */
static lac_status train_in_largest_batch(refiner *r, const laci_weighted_graph *student,
                                         const laci_weighted_graph *teacher, laci_refined *refined,
                                         lac_error *err) {
  laci_refine_options how = {.seconds = r->how->steps > 0 ? 0 : r->how->seconds,
                             .steps = r->how->steps,
                             .n_fitted = count_fitting_samples(r),
                             .first_held = count_fitting_samples(r),
                             .n_held = r->how->samples->held_back,
                             .masks = r->masks,
                             .batch = AGAIN_BATCH,
                             .seed = r->how->seed,
                             .bf16 = laci_cpu_has_avx512bf16(),
                             .pool = r->pool,
                             .budget = r->options->budget};
  lac_status st;
  for (;; how.batch /= 2) {
    st = laci_refine_towards_teacher(student, teacher, r->how->samples, &how, refined, err);
    if (st != LAC_MEMORY_LIMIT || how.batch <= SMALL_BATCH) return st;
  }
}

static lac_status refine_network(refiner *r, lac_error *err) {
  const int n = get_graph(r)->n_stored;
  const laci_weighted_graph student = {get_graph(r), r->mixed};
  const laci_weighted_graph teacher = {get_graph(r), (const uint8_t *const *)r->p->weights};
  laci_refined refined;
  laci_output_difference found = r->fitted->outputs;
  lac_status st = train_in_largest_batch(r, &student, &teacher, &refined, err);
  if (st) return st;
  for (int s = 0; s < n && refined.kept; s++)
    if (refined.weights[s]) r->mixed[s] = refined.weights[s];
  if (refined.kept) st = compare_outputs(r, &student, &found, err);
  for (int s = 0; s < n && refined.kept && !st; s++) {
    if (refined.weights[s]) replace_new_weight(r, s, refined.weights[s]);
    refined.weights[s] = NULL;
  }
  if (!st) {
    r->to->refined = refined.kept;
    r->to->steps = refined.steps;
    r->to->seconds = refined.seconds;
    r->to->error_refined = refined.kept ? found.relative : refined.after.relative;
    r->fitted->outputs = found;
    laci_log(LAC_LOG_INFO, "refined: %lld step%s of %lld samples and %.2f s%s",
             (long long)refined.steps, laci_plural(refined.steps), (long long)refined.batch,
             refined.step_seconds,
             refined.kept ? "" : "; the outputs err more than before, so nothing of it is kept");
  }
  laci_refined_clear(&refined);
  return st;
}

/* Compares the improved network's loss with the limit max_drop, since a lower error of the outputs
 * may still change more answers. If the limit is exceeded, the new weights are dropped. */
static lac_status keep_if_loss_allows(refiner *r, const laci_output_difference *fitted,
                                      lac_error *err) {
  const double limit = r->options->calibration->max_drop;
  const laci_weighted_graph pruned = {get_graph(r), r->mixed};
  laci_judged_drop drop;
  if (limit < 0 || !(r->to->recalibrated || r->to->refined)) return LAC_OK;
  const laci_drop_candidate candidate = {&r->fitted->cut, &pruned, r->pool, NULL};
  lac_status st = laci_pruning_judge_drop(r->p, r->options, &candidate, &drop, err);
  if (st) return st;
  if (drop.most <= limit) {
    r->p->calibration.drop = drop;
    return LAC_OK;
  }
  for (int s = 0; s < get_graph(r)->n_stored; s++) replace_new_weight(r, s, NULL);
  r->fitted->outputs = *fitted;
  r->to->recalibrated = r->to->refined = false;
  r->to->reason =
      "the outputs err less for the network as a whole, but it loses more than is "
      "allowed: left as its layers were fitted";
  return LAC_OK;
}

static lac_status recalibrate_and_refine(refiner *r, lac_error *err) {
  lac_status st = LAC_OK;
  const laci_output_difference fitted = r->fitted->outputs;
  r->to->error_fitted = fitted.relative;
  if (r->how->recalibrate)
    st = store_reason_if_unsupported(r, recalibrate_norms(r, err), "statistics again", err);
  if (!st && (r->how->seconds > 0 || r->how->steps > 0))
    st = store_reason_if_unsupported(r, refine_network(r, err), "no refinement", err);
  return st ? st : keep_if_loss_allows(r, &fitted, err);
}

lac_status laci_distill(laci_pruning *p, const laci_prune_options *options,
                        const laci_distill_options *how, laci_pool *pool, laci_distilled *to,
                        lac_error *err) {
  const size_t n = (size_t)p->analysis->graph->n_stored;
  lac_error own = {0}; /* a separate error: its text is read below */
  *to = (laci_distilled){.reason = NULL};
  refiner r = {.p = p, .options = options, .how = how, .pool = pool, .fitted = p->fitted, .to = to};
  if (!p->fitted) return LAC_OK;
  const char *unlike =
      laci_calibration_explain_unstackable_samples(how->samples, p->analysis->graph->n_inputs);
  if (p->fitted->outputs_reason || unlike) {
    char text[160] = "outputs could not be compared";
    if (unlike) (void)snprintf(text, sizeof text, "%s: no steps are taken on such data", unlike);
    r.to->reason = laci_arena_text(&p->arena, text);
    return r.to->reason ? LAC_OK : laci_fail_memory(err, "the pruning");
  }
  r.new_bytes = (uint8_t **)laci_alloc(n + 1, sizeof *r.new_bytes);
  r.mixed = (const uint8_t **)laci_alloc(n + 1, sizeof *r.mixed);
  r.masks = (const uint8_t **)laci_alloc(n + 1, sizeof *r.masks);
  r.unpacked = (uint8_t **)laci_alloc(n + 1, sizeof *r.unpacked);
  lac_status st = r.new_bytes && r.mixed && r.masks && r.unpacked
                      ? LAC_OK
                      : laci_fail_memory(&own, "the pruning");
  if (!st) st = collect_masks(&r, &own);
  if (!st) {
    list_current_weights(&r);
    st = recalibrate_and_refine(&r, &own);
  }
  if (!st) move_new_weights(&r);
  if (st && err) *err = own;
  for (size_t s = 0; s < n && r.new_bytes; s++) laci_free(r.new_bytes[s]);
  for (size_t s = 0; s < n && r.unpacked; s++) laci_free(r.unpacked[s]);
  laci_free((void *)r.new_bytes);
  laci_free((void *)r.mixed);
  laci_free((void *)r.masks);
  laci_free((void *)r.unpacked);
  return st;
}
