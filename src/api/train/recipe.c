/* SPDX-License-Identifier: Apache-2.0
 * The recipe of a training: a copy of the named one with the caller's changes, and its settings as
 * texts. Next: train/recipe.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/model/structs.h"
#include "api/run/infer.h"
#include "api/train/plan_in.h"
#include "base/error.h"
#include "data/augment.h"

/* Defaults of RandAugment, as in its paper and torchvision: number of changes per image, and their
 * magnitude. */
enum { USUAL_CHANGES = 2, USUAL_MAGNITUDE = 9 };

static lac_status fail_unknown_name(const char *what, const char *name, const char *names,
                                    lac_error *err) {
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s %s: wanted %s", what, name, names);
}

/** Returns a common learning rate for an optimizer, if the recipe has none for it. */
static double default_rate_of_optimizer(laci_optimizer_kind kind) {
  if (kind == LACI_OPTIMIZER_ADAMW) return 0.001;
  return kind == LACI_OPTIMIZER_LARS ? 2.5 : 0.1;
}

static lac_status change_optimizer(const lac_train_options *o, laci_training_recipe *r,
                                   lac_error *err) {
  laci_optimizer_kind kind = r->optimizer.kind;
  if (o->optimizer && !laci_optimizer_find_kind(o->optimizer, &kind)) {
    return fail_unknown_name("optimizer", o->optimizer, "sgd, lars or adamw", err);
  }
  if (kind != r->optimizer.kind) {
    if (o->rate < 0) {
      return laci_hint(
          err, LAC_HINT_RATE,
          laci_fail(err, LAC_BAD_ARGUMENT,
                    "optimizer %s: the rate of recipe %s is made for %s: wanted a rate, %g say",
                    o->optimizer, r->name, laci_optimizer_kind_name(r->optimizer.kind),
                    default_rate_of_optimizer(kind)));
    }
    laci_optimizer_options_set_kind(&r->optimizer, kind);
  }
  if (o->momentum >= 0) r->optimizer.momentum = (float)o->momentum;
  if (o->weight_decay >= 0) r->optimizer.decay = (float)o->weight_decay;
  if (o->nesterov >= 0) r->optimizer.nesterov = o->nesterov > 0;
  if (o->decay_all) r->optimizer.decay_all = true;
  return LAC_OK;
}

/** Gives a piecewise schedule its stages if the recipe has none: those of the first recipe, at the
 * same fractions of the training. */
static void set_default_stages(laci_training_recipe *r) {
  int n;
  const laci_training_recipe *first = laci_training_recipes(&n);
  if (r->schedule != LACI_SCHEDULE_PIECEWISE || r->n_stages > 0) return;
  r->n_stages = first->n_stages;
  r->stages_of = first->name;
  for (int k = 0; k < r->n_stages; k++) {
    r->stages[k] = first->stages[k];
    r->stages[k].from_epoch *= r->epochs / first->epochs;
  }
}

/** Sets the stages of the piecewise schedule: the rate falls at each of the caller's epochs. */
static lac_status set_schedule_stages(const lac_train_options *o, laci_training_recipe *r,
                                      lac_error *err) {
  double factor = o->decay >= 0 ? o->decay : 0.1, before = 0;
  if (!o->schedule) r->schedule = LACI_SCHEDULE_PIECEWISE;
  if (r->schedule != LACI_SCHEDULE_PIECEWISE) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "boundaries with schedule %s: wanted piecewise",
                     laci_schedule_kind_name(r->schedule));
  }
  if (o->n_boundaries < 0 || o->n_boundaries > LACI_SCHEDULE_MAX_STAGES) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%d boundaries: wanted %d at most", o->n_boundaries,
                     LACI_SCHEDULE_MAX_STAGES);
  }
  r->n_stages = o->n_boundaries;
  r->stages_of = NULL;
  for (int k = 0; k < o->n_boundaries; k++) {
    if (!(o->boundaries[k] > before && o->boundaries[k] <= 1e6)) {
      return laci_fail(err, LAC_BAD_ARGUMENT,
                       "boundary %g after %g: wanted ascending epochs above 0, 1000000 at most",
                       o->boundaries[k], before);
    }
    before = o->boundaries[k];
    r->stages[k] = (laci_preprocessing_stage){before, pow(factor, k + 1)};
  }
  return LAC_OK;
}

/** Sets the caller's factor by which the rate falls at each stage of the recipe's schedule. */
static lac_status set_stage_decay(const lac_train_options *o, laci_training_recipe *r,
                                  lac_error *err) {
  if (r->schedule != LACI_SCHEDULE_PIECEWISE) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "decay %g with schedule %s: wanted piecewise", o->decay,
                     laci_schedule_kind_name(r->schedule));
  }
  for (int k = 0; k < r->n_stages; k++) r->stages[k].factor = pow(o->decay, k + 1);
  return LAC_OK;
}

static void set_warmup(double epochs, laci_training_recipe *r) {
  r->warmup_epochs = epochs;
  r->warmup_of_epochs = 0;
  for (int k = 0; k < r->n_large; k++) r->large[k].warmup_epochs = epochs;
}

static lac_status set_policy(const lac_train_options *o, laci_training_recipe *r, lac_error *err) {
  laci_policy_kind kind = LACI_POLICY_NONE;
  const char *name = o->policy ? o->policy : r->policy;
  if (name && !laci_policy_find(name, &kind)) {
    return fail_unknown_name("policy", name, "none, randaugment or trivialaugment", err);
  }
  if (o->policy && kind != LACI_POLICY_NONE && !o->augment) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "policy %s without augmentation: wanted none", name);
  }
  if (o->policy_magnitude >= 0 && kind != LACI_POLICY_RANDAUGMENT) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "policy magnitude %d with policy %s: wanted randaugment", o->policy_magnitude,
                     laci_policy_name(kind));
  }
  r->policy = kind == LACI_POLICY_NONE || !r->augment ? NULL : laci_policy_name(kind);
  if (kind != LACI_POLICY_RANDAUGMENT) {
    r->policy_changes = r->policy_magnitude = 0;
  } else if (!r->policy_changes) {
    r->policy_changes = USUAL_CHANGES;
    r->policy_magnitude = USUAL_MAGNITUDE;
  }
  if (o->policy_magnitude >= 0) r->policy_magnitude = o->policy_magnitude;
  return LAC_OK;
}

lac_status laci_train_make_recipe(const lac_train_options *o, laci_training_recipe *r,
                                  lac_error *err) {
  int n;
  const laci_training_recipe *from = laci_training_recipes(&n);
  if (o->recipe) from = laci_training_recipe_find(o->recipe);
  if (!from) {
    return fail_unknown_name("recipe", o->recipe,
                             "resnet-sgd, resnet-lars, resnext, mixup-250, cifar or adamw-300",
                             err);
  }
  *r = *from;
  if (o->schedule && !laci_schedule_find_kind(o->schedule, &r->schedule)) {
    return fail_unknown_name("schedule", o->schedule, "constant, piecewise, cosine or polynomial",
                             err);
  }
  if (o->epochs >= 0) r->epochs = o->epochs;
  if (o->warmup_epochs >= 0) set_warmup(o->warmup_epochs, r);
  if (o->label_smoothing >= 0) r->smoothing = o->label_smoothing;
  if (o->mixup >= 0) r->mixup = o->mixup;
  if (o->cutmix >= 0) r->cutmix = o->cutmix;
  if (o->erasing >= 0) r->erasing = o->erasing;
  if (o->clip_norm >= 0) r->clip_norm = o->clip_norm;
  if (!o->augment) r->augment = false;
  lac_status st = set_policy(o, r, err);
  if (!st && o->n_boundaries) st = set_schedule_stages(o, r, err);
  else set_default_stages(r);
  if (!st && o->decay >= 0 && !o->n_boundaries) st = set_stage_decay(o, r, err);
  return st ? st : change_optimizer(o, r, err);
}

/** Writes the setting of an explicit rate, which does not depend on the batch size. */
static void set_explicit_rate(const lac_train_options *o, laci_training_recipe *r) {
  if (o->batch) r->batch = o->batch;
  else if (!r->batch && laci_dtype_find_supported(o->run.engine, o->run.dtype) == LAC_DTYPE_BF16)
    r->batch = LACI_BATCH_BF16;
  if (o->rate < 0) return;
  r->rate = o->rate;
  r->rate_many = 0;
  r->base_batch = r->n_large = 0;
}

lac_status lac_train_settings(const lac_train_options *options, lac_train_setting *settings, int *n,
                              lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"options", options}, {"settings", settings}, {"n", n});
  laci_training_recipe r;
  lac_train_options own;
  if (!st) st = laci_take_train_options(options, &own, err);
  if (!st) st = laci_train_check_options(&own, err);
  if (!st) st = laci_train_make_recipe(&own, &r, err);
  if (st) return st;
  const laci_training_recipe *named = laci_training_recipe_find(r.name);
  *n = 0;
  set_explicit_rate(&own, &r);
  for (int k = 0; k < LACI_RECIPE_SETTINGS; k++) {
    lac_train_setting *row = &settings[*n];
    char usual[sizeof row->value];
    laci_recipe_format_setting(&r, (laci_recipe_setting)k, row->value, sizeof row->value);
    laci_recipe_format_setting(named, (laci_recipe_setting)k, usual, sizeof usual);
    if (!row->value[0]) continue;
    row->name = laci_recipe_setting_name((laci_recipe_setting)k);
    row->from = strcmp(row->value, usual) == 0 ? named->from[k] : NULL;
    ++*n;
  }
  return LAC_OK;
}
