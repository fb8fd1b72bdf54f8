/* SPDX-License-Identifier: Apache-2.0
 * Computes learning rates by the formulas of schedule.h, in float64. */
#include "train/schedule.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

static const double pi = 3.14159265358979323846;

static const char *const kind_names[] = {
#define LACI_SCHEDULE(name, text) text,
#include "train/schedule.def"
#undef LACI_SCHEDULE
};

const char *laci_schedule_kind_name(laci_schedule_kind kind) { return kind_names[kind]; }

bool laci_schedule_find_kind(const char *name, laci_schedule_kind *kind) {
  for (int k = 0; k < LACI_SCHEDULE_COUNT; k++) {
    if (strcmp(kind_names[k], name) != 0) continue;
    *kind = (laci_schedule_kind)k;
    return true;
  }
  return false;
}

static bool has_fixed_end(const laci_schedule *s) {
  return s->kind == LACI_SCHEDULE_COSINE || s->kind == LACI_SCHEDULE_POLYNOMIAL;
}

lac_status laci_schedule_check(const laci_schedule *s, lac_error *err) {
  if (!(s->rate >= 0 && isfinite(s->rate)) || !(s->end_rate >= 0 && isfinite(s->end_rate))) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "learning rate %g to %g, wanted 0 or more", s->rate,
                     s->end_rate);
  }
  if (s->warmup_steps < 0 || (has_fixed_end(s) && s->warmup_steps >= s->steps)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "a warm-up of %lld steps in a training of %lld",
                     (long long)s->warmup_steps, (long long)s->steps);
  }
  if (s->kind == LACI_SCHEDULE_POLYNOMIAL && !(s->power > 0 && isfinite(s->power))) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "a polynomial of power %g, wanted above 0", s->power);
  }
  if (s->n_stages < 0 || s->n_stages > LACI_SCHEDULE_MAX_STAGES) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%d stages, wanted at most %d", s->n_stages,
                     LACI_SCHEDULE_MAX_STAGES);
  }
  for (int k = 0; k < s->n_stages; k++) {
    const laci_schedule_stage *stage = &s->stages[k];
    bool follows = stage->from >= 0 && (k == 0 || stage->from > s->stages[k - 1].from);
    if (follows && stage->factor >= 0 && isfinite(stage->factor)) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT, "stage %d: %g times the rate from step %lld on", k,
                     stage->factor, (long long)stage->from);
  }
  return LAC_OK;
}

static double rate_factor_at_step(const laci_schedule *s, int64_t step) {
  double factor = 1;
  for (int k = 0; k < s->n_stages && step >= s->stages[k].from; k++) factor = s->stages[k].factor;
  return factor;
}

double laci_schedule_rate(const laci_schedule *s, int64_t step) {
  if (step < s->warmup_steps) return s->rate * (double)(step + 1) / (double)s->warmup_steps;
  double span = s->rate - s->end_rate, x = 0;
  if (has_fixed_end(s)) x = (double)(step - s->warmup_steps) / (double)(s->steps - s->warmup_steps);
  if (x > 1) x = 1;
  switch (s->kind) {
    case LACI_SCHEDULE_PIECEWISE: return s->rate * rate_factor_at_step(s, step);
    case LACI_SCHEDULE_COSINE: return s->end_rate + span * (1 + cos(pi * x)) / 2;
    case LACI_SCHEDULE_POLYNOMIAL: return s->end_rate + span * pow(1 - x, s->power);
    default: return s->rate;
  }
}
