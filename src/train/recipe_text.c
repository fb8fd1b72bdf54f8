/* SPDX-License-Identifier: Apache-2.0
 * Writes a recipe's settings as text, one at a time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/augment.h"
#include "train/recipe.h"

static const char *const names[LACI_RECIPE_SETTINGS] = {
    [LACI_RECIPE_OPTIMIZER] = "optimizer",
    [LACI_RECIPE_MOMENTUM] = "momentum",
    [LACI_RECIPE_WEIGHT_DECAY] = "weight decay",
    [LACI_RECIPE_TRUST] = "trust",
    [LACI_RECIPE_RATE] = "rate",
    [LACI_RECIPE_RATE_MANY] = "rate, several processes",
    [LACI_RECIPE_LARGE_BATCHES] = "rate, large batches",
    [LACI_RECIPE_SCHEDULE] = "schedule",
    [LACI_RECIPE_WARMUP] = "warm-up",
    [LACI_RECIPE_EPOCHS] = "epochs",
    [LACI_RECIPE_BATCH] = "batch",
    [LACI_RECIPE_SMOOTHING] = "label smoothing",
    [LACI_RECIPE_MIXUP] = "MixUp",
    [LACI_RECIPE_CUTMIX] = "CutMix",
    [LACI_RECIPE_ERASING] = "random erasing",
    [LACI_RECIPE_CLIP_NORM] = "largest gradient norm",
    [LACI_RECIPE_AUGMENT] = "augmentation",
    [LACI_RECIPE_POLICY] = "drawn changes",
};

const char *laci_recipe_setting_name(laci_recipe_setting setting) { return names[setting]; }

/** Returns the length of a text after snprintf wrote to it. n: snprintf's result; used: length
 * before; capacity: size of the text. */
static size_t count_written_characters(int n, size_t used, size_t capacity) {
  if (n < 0) return used;
  return used + (size_t)n < capacity ? used + (size_t)n : capacity - 1;
}

static void format_rate(const laci_training_recipe *r, double rate, char *text, size_t capacity) {
  if (r->base_batch == 0) (void)snprintf(text, capacity, "%.10g at any batch", rate);
  else (void)snprintf(text, capacity, "%.10g for %d images a step", rate, r->base_batch);
}

static void format_large_batch_rates(const laci_training_recipe *r, char *text, size_t capacity) {
  size_t used = 0;
  for (int k = 0; k < r->n_large; k++) {
    const laci_large_batch *large = &r->large[k];
    int n = snprintf(text + used, capacity - used, "%s%.10g, warm-up %.10g above %" PRId64,
                     k ? "; " : "", large->rate, large->warmup_epochs, large->above);
    used = count_written_characters(n, used, capacity);
  }
}

static void format_stages(const laci_training_recipe *r, char *text, size_t capacity) {
  size_t used = count_written_characters(snprintf(text, capacity, "piecewise: times"), 0, capacity);
  for (int k = 0; k < r->n_stages; k++) {
    int n = snprintf(text + used, capacity - used, "%s %.3g from epoch %.4g", k ? "," : "",
                     r->stages[k].factor, r->stages[k].from_epoch);
    used = count_written_characters(n, used, capacity);
  }
}

static void format_schedule(const laci_training_recipe *r, char *text, size_t capacity) {
  switch (r->schedule) {
    case LACI_SCHEDULE_PIECEWISE: format_stages(r, text, capacity); return;
    case LACI_SCHEDULE_COSINE:
      (void)snprintf(text, capacity, "cosine to %.10g", r->end_rate);
      return;
    case LACI_SCHEDULE_POLYNOMIAL:
      (void)snprintf(text, capacity, "polynomial of power %.10g to %.10g",
                     r->power > 0 ? r->power : 1, r->end_rate);
      return;
    default: (void)snprintf(text, capacity, "%s", laci_schedule_kind_name(r->schedule)); return;
  }
}

/** Writes the weight decay with as few digits as identify the float: 0.0001, not
 * 9.999999747e-05. */
static void format_decay(const laci_optimizer_options *o, char *text, size_t capacity) {
  char number[32];
  for (int digits = 6; digits <= 9; digits++) {
    (void)snprintf(number, sizeof number, "%.*g", digits, (double)o->decay);
    if (strtof(number, NULL) == o->decay) break;
  }
  (void)snprintf(text, capacity, "%s, %s", number,
                 o->decay_all ? "of all" : "not of normalizations and biases");
}

static void format_optimizer(const laci_optimizer_options *o, char *text, size_t capacity) {
  const char *inside = o->kind == LACI_OPTIMIZER_SGD && o->rate_inside
                           ? ", the momentum of rate times gradient"
                           : "";
  (void)snprintf(text, capacity, "%s%s%s", laci_optimizer_kind_name(o->kind),
                 o->nesterov ? ", Nesterov's" : "", inside);
}

static void write_policy(const laci_training_recipe *r, char *text, size_t capacity) {
  laci_policy_kind kind = LACI_POLICY_NONE;
  if (r->policy) (void)laci_policy_find(r->policy, &kind);
  if (kind == LACI_POLICY_RANDAUGMENT) {
    (void)snprintf(text, capacity, "%s: %d changes of magnitude %d of %d", r->policy,
                   r->policy_changes, r->policy_magnitude, LACI_POLICY_BINS - 1);
  } else if (kind == LACI_POLICY_TRIVIALAUGMENT) {
    (void)snprintf(text, capacity, "%s: one change of any magnitude", r->policy);
  }
}

void laci_recipe_format_setting(const laci_training_recipe *r, laci_recipe_setting setting,
                                char *text, size_t capacity) {
  const laci_optimizer_options *o = &r->optimizer;
  text[0] = '\0';
  switch (setting) {
    case LACI_RECIPE_OPTIMIZER: format_optimizer(o, text, capacity); return;
    case LACI_RECIPE_MOMENTUM: (void)snprintf(text, capacity, "%.7g", (double)o->momentum); return;
    case LACI_RECIPE_WEIGHT_DECAY: format_decay(o, text, capacity); return;
    case LACI_RECIPE_TRUST:
      if (o->kind != LACI_OPTIMIZER_LARS) return;
      (void)snprintf(text, capacity, "%.7g", (double)o->trust);
      return;
    case LACI_RECIPE_RATE: format_rate(r, r->rate, text, capacity); return;
    case LACI_RECIPE_RATE_MANY:
      if (r->rate_many > 0) format_rate(r, r->rate_many, text, capacity);
      return;
    case LACI_RECIPE_LARGE_BATCHES: format_large_batch_rates(r, text, capacity); return;
    case LACI_RECIPE_SCHEDULE: format_schedule(r, text, capacity); return;
    case LACI_RECIPE_WARMUP:
      if (r->warmup_epochs > 0) (void)snprintf(text, capacity, "%.10g epochs", r->warmup_epochs);
      return;
    case LACI_RECIPE_EPOCHS: (void)snprintf(text, capacity, "%.10g", r->epochs); return;
    case LACI_RECIPE_BATCH:
      (void)snprintf(text, capacity, "%d images", r->batch ? r->batch : LACI_BATCH_F32);
      return;
    case LACI_RECIPE_SMOOTHING:
      if (r->smoothing > 0) (void)snprintf(text, capacity, "%.10g", r->smoothing);
      return;
    case LACI_RECIPE_MIXUP:
      if (r->mixup > 0) (void)snprintf(text, capacity, "alpha %.10g", r->mixup);
      return;
    case LACI_RECIPE_CUTMIX:
      if (r->cutmix > 0) (void)snprintf(text, capacity, "alpha %.10g", r->cutmix);
      return;
    case LACI_RECIPE_ERASING:
      if (r->erasing > 0) (void)snprintf(text, capacity, "%.10g of the images", r->erasing);
      return;
    case LACI_RECIPE_CLIP_NORM:
      if (r->clip_norm > 0) (void)snprintf(text, capacity, "%.10g", r->clip_norm);
      return;
    case LACI_RECIPE_AUGMENT:
      (void)snprintf(text, capacity, "%s", r->augment ? "crop and flip" : "none");
      return;
    case LACI_RECIPE_POLICY: write_policy(r, text, capacity); return;
    case LACI_RECIPE_SETTINGS: return;
  }
}
