/* SPDX-License-Identifier: Apache-2.0
 * Judges how much quality the pruned network loses, on samples that no fit and no choice has read.
 * It computes the loss on these samples, and an upper bound for all data of this kind.
 *
 *     labels, one answer a sample:  lost - won: right before and wrong now; wrong before, right now
 *     one answer a sample:          answers that change: a bound of the loss for any labels
 *     else:                         the worst of the outputs' parts (laci_output_part):
 *         numbers of one scale      sum |y - y_p|^2 / sum |y|^2
 *         rows of probabilities,    the share whose largest element moves
 *         or of logits
 *
 * The first two are exact, whatever the rates are (base/binomial.h): with d = lost + won of n, the
 * loss is d/n (2 lost/d - 1), and each factor has an upper bound. The bounds of the others are
 * Student's, for a ratio of sums over samples. Without labels, the worst part of the outputs
 * counts, if it is worse than the answers of the first output. Several networks are judged on the
 * same samples, so the probability of error is divided among them: the bound of the network that is
 * kept then holds with the promised confidence. */
#include <inttypes.h>
#include <math.h>

#include "analyze/analyze.h"
#include "base/binomial.h"
#include "base/error.h"
#include "base/min.h"
#include "prune/prune_in.h"

enum { LEAST_UNITS = 100, MOST_UNITS = 4096, TIMES_LEAST = 6, LOOKS = 3 };
static const double doubt = (1 - LACI_DROP_CONFIDENCE) / LACI_DROP_TRIES;
/* Quantiles of the normal distribution. deviations: for the probability of error of one network. A
 * judgment ends early if the loss is too large with probability of error `hopeless`, or by
 * hopeless_deviations standard errors; this can only refuse a network. */
static const double deviations = 2.4977, hopeless = 1e-3, hopeless_deviations = 3.1;

int64_t laci_drop_least_samples(double max_drop, bool has_answers) {
  return has_answers ? laci_binomial_find_least_trials(max_drop / 100, doubt / 2) : LEAST_UNITS;
}

/* Returns the number of samples that can show a loss of half of max_drop to be below max_drop. */
int64_t laci_drop_enough_samples(double max_drop, bool has_answers) {
  int64_t least = laci_drop_least_samples(max_drop, has_answers);
  if (!has_answers) return MOST_UNITS;
  return least > INT64_MAX / TIMES_LEAST ? INT64_MAX : least * TIMES_LEAST;
}

/* ---- Bounds ---- */

static laci_drop_measure choose_measure(const laci_output_difference *d) {
  if (d->n_labelled > 0) return LACI_DROP_TOP1;
  return d->n_answers > 0 && d->n_answers == d->n_samples ? LACI_DROP_ANSWERS : LACI_DROP_OUTPUTS;
}

/* Returns an upper bound of (lost - won) / n, which is wrong with probability `of` at most. It is a
 * product of two upper bounds, each wrong with half of that probability. */
static double loss_upper_bound(int64_t lost, int64_t won, int64_t n, double of) {
  double share = laci_binomial_upper_bound(lost, lost + won, of / 2);
  return share <= 0.5 ? 0 : laci_binomial_upper_bound(lost + won, n, of / 2) * (2 * share - 1);
}

static double loss_lower_bound(int64_t lost, int64_t won, int64_t n, double of) {
  return laci_binomial_lower_bound(lost, n, of / 2) - laci_binomial_upper_bound(won, n, of / 2);
}

/* Returns the standard error of the ratio of two sums, s->e / s->s, to first order. */
static double standard_error_of_ratio(const laci_error_sums *s) {
  if (s->n < 2 || s->s <= 0) return INFINITY;
  double ratio = s->e / s->s, squares = s->ee - 2 * ratio * s->es + ratio * ratio * s->ss;
  return sqrt(fmax(0, squares) * (double)s->n / (double)(s->n - 1)) / s->s;
}

/* Returns the quantile of Student's distribution for n samples. z: the same quantile of the normal
 * distribution. */
static double student_quantile(double z, int64_t n) {
  return z + (z * z * z + z) / (4 * (double)(n - 1));
}

/* Returns the largest bound of all parts of the outputs. A part's bound is `times` standard errors
 * above its ratio of errors (below it if `times` is negative). *part: the part with that bound; -1:
 * there are no parts. Of n upper bounds, each may be wrong with an n-th of the probability of error
 * only: z^2 + 2 ln n is above the square of that quantile. */
static double worst_bound_of_parts(const laci_output_difference *d, double times, int *part) {
  const double more = d->n_parts > 1 ? 2 * log((double)d->n_parts) : 0;
  const double z = times > 0 ? sqrt(times * times + more) : times;
  const bool upper = times > 0;
  double worst = d->n_parts > 0 ? -INFINITY : 0;
  *part = -1;
  for (int p = -(d->n_parts == 0); p < d->n_parts; p++) {
    const laci_error_sums *s = p < 0 ? &d->sums : &d->parts[p].sums;
    const double ratio = laci_error_sums_ratio(s);
    const double error = s->s > 0 ? standard_error_of_ratio(s) : 0;
    const double bound = ratio + (upper ? student_quantile(z, s->n) : z) * error;
    if (p >= 0 && !(bound > worst)) continue;
    worst = bound;
    *part = p;
  }
  return worst;
}

static double compute_drop_lower_bound(const laci_output_difference *d, laci_drop_measure measure) {
  int part;
  if (measure == LACI_DROP_TOP1)
    return 100 * loss_lower_bound(d->n_lost, d->n_won, d->n_labelled, hopeless);
  if (measure == LACI_DROP_ANSWERS)
    return 100 * laci_binomial_lower_bound(d->n_answers - d->n_agree, d->n_answers, hopeless);
  return 100 * worst_bound_of_parts(d, -hopeless_deviations, &part);
}

void laci_drop_compute_bound(const laci_output_difference *d, laci_judged_drop *to) {
  const int64_t n_changed = d->n_answers - d->n_agree;
  to->measure = choose_measure(d);
  to->n = d->n_samples;
  if (to->measure == LACI_DROP_TOP1) {
    to->found = 100 * (double)(d->n_lost - d->n_won) / (double)d->n_labelled;
    to->most = 100 * loss_upper_bound(d->n_lost, d->n_won, d->n_labelled, doubt);
  } else if (to->measure == LACI_DROP_ANSWERS) {
    to->found = 100 * (double)n_changed / (double)d->n_answers;
    to->most = 100 * laci_binomial_upper_bound(n_changed, d->n_answers, doubt);
  }
  if (to->measure == LACI_DROP_TOP1 || (to->measure == LACI_DROP_ANSWERS && d->n_parts < 2)) return;
  int part;
  const double most = 100 * worst_bound_of_parts(d, deviations, &part);
  if (to->measure == LACI_DROP_ANSWERS && !(most > to->most)) return;
  const laci_error_sums *s = part < 0 ? &d->sums : &d->parts[part].sums;
  to->measure = part >= 0 && d->parts[part].kind == LACI_OUTPUT_PART_ANSWERS ? LACI_DROP_POSITIONS
                                                                             : LACI_DROP_OUTPUTS;
  to->found = s->s > 0 ? 100 * s->e / s->s : 0;
  to->most = most;
}

/* ---- The samples ---- */

static void add_difference(laci_output_difference *to, const laci_output_difference *from) {
  to->n_samples += from->n_samples;
  to->n_answers += from->n_answers;
  to->n_agree += from->n_agree;
  to->n_labelled += from->n_labelled;
  to->n_right_a += from->n_right_a;
  to->n_right_b += from->n_right_b;
  to->n_lost += from->n_lost;
  to->n_won += from->n_won;
  laci_error_sums_add(&to->sums, &from->sums);
  for (int p = 0; p < from->n_parts; p++) {
    if (p >= to->n_parts) to->parts[p] = (laci_output_part){0};
    laci_error_sums_add(&to->parts[p].sums, &from->parts[p].sums);
    to->parts[p].shift += from->parts[p].shift;
    to->parts[p].output = from->parts[p].output;
    to->parts[p].kind = from->parts[p].kind;
  }
  if (from->n_parts > to->n_parts) to->n_parts = from->n_parts;
  to->relative = to->sums.s > 0 ? to->sums.e / to->sums.s : 0;
}

typedef struct trial {
  const laci_weighted_graph *dense, *pruned;
  const laci_calibration_samples *samples;
  const laci_calibration_cut *cut;
  laci_pool *pool;
  const laci_budget *budget;
  laci_output_cache *kept;
  laci_output_difference all;
} trial;

/* Compares the two networks on samples [first, end) of those for judging: in whole batches, then
 * the rest as one batch. A batch of one sample cannot show whether outputs vary; for it, only
 * outputs that are not finite make the result doubtful. */
static lac_status compare_sample_range(trial *t, int64_t first, int64_t end, lac_error *err) {
  lac_status st = LAC_OK;
  for (int64_t at = first; at < end && !st;) {
    int64_t batch = laci_min(t->cut->judging_batch, end - at);
    const laci_compare_options how = {.first = t->samples->count + at,
                                      .n = (end - at) / batch * batch,
                                      .batch = batch,
                                      .pool = t->pool,
                                      .budget = t->budget,
                                      .cache = t->kept};
    laci_output_difference part;
    st = laci_compare_outputs(t->dense, t->pruned, t->samples, &how, &part, err);
    if (!st && part.doubt && (how.n > 1 || !isfinite(part.sums.e)))
      st = laci_fail(err, LAC_BAD_VALUE, "a loss cannot be judged: %s", part.doubt);
    if (!st) add_difference(&t->all, &part);
    at += how.n;
  }
  return st;
}

/* Checks that n samples are enough to judge the loss. Call it after a first comparison of outputs,
 * which determines how the loss is measured. */
static lac_status check_sample_count(const trial *t, double max_drop, int64_t n, lac_error *err) {
  const bool has_answers = choose_measure(&t->all) != LACI_DROP_OUTPUTS;
  const int64_t per_unit = has_answers ? 1 : t->all.n_samples / t->all.sums.n;
  const int64_t least = laci_drop_least_samples(max_drop, has_answers);
  if (n / per_unit >= least) return LAC_OK;
  if (per_unit > 1) {
    return laci_fail(err, LAC_BAD_VALUE,
                     "a loss of at most %g percent is to be judged by %" PRId64
                     " batches of %" PRId64
                     " samples that were not fitted, since an output has no axis of samples: "
                     "wanted %" PRId64 " samples or more",
                     max_drop, n / per_unit, per_unit, least * per_unit);
  }
  return laci_fail(err, LAC_BAD_VALUE,
                   "a loss of at most %g %s is to be judged by %" PRId64
                   " samples that were not fitted: wanted %" PRId64 " or more",
                   max_drop, has_answers ? "points" : "percent", n, least);
}

lac_status laci_pruning_judge_drop(const laci_pruning *p, const laci_prune_options *options,
                                   const laci_drop_candidate *candidate, laci_judged_drop *drop,
                                   lac_error *err) {
  const laci_calibration_cut *cut = candidate->cut;
  const laci_prune_calibration *how = options->calibration;
  const laci_weighted_graph dense = {p->analysis->graph, (const uint8_t *const *)p->weights};
  trial t = {&dense,          candidate->pruned, how->samples,     cut,
             candidate->pool, options->budget,   candidate->cache, {0}};
  const int64_t batch = cut->judging_batch;
  const int64_t n = cut->fixed ? how->samples->judging / batch * batch : how->samples->judging;
  int64_t at = 0;
  if (n < 1)
    return laci_fail(err, LAC_BAD_VALUE,
                     "a loss of at most %g is wanted: no samples to judge it by", how->max_drop);
  *drop = (laci_judged_drop){.most = INFINITY};
  for (int k = LOOKS; k-- > 0 && !drop->hopeless;) {
    int64_t end = k > 0 ? n / (batch << 2 * k) * batch : n; /* first a sixteenth of the samples,
                                                               then a quarter, then all */
    if (end <= at) continue;
    lac_status st = compare_sample_range(&t, at, end, err);
    if (!st && at == 0) st = check_sample_count(&t, how->max_drop, n, err);
    if (st) return st;
    at = end;
    laci_drop_compute_bound(&t.all, drop);
    drop->hopeless = at < n && compute_drop_lower_bound(&t.all, drop->measure) > how->max_drop;
  }
  if (drop->hopeless) drop->most = INFINITY;
  return LAC_OK;
}
