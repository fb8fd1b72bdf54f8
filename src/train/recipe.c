/* SPDX-License-Identifier: Apache-2.0
 * Converts training recipes (recipe.h) to schedules in steps, and describes what a shorter run
 * changes in them. recipes.c has the table of recipes. */
#include "train/recipe.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/** Returns the recipe's settings for a global batch of this size; NULL: the batch is not large. */
static const laci_large_batch *find_large_batch_settings(const laci_training_recipe *recipe,
                                                         const laci_run_size *size) {
  const laci_large_batch *found = NULL;
  for (int k = 0; k < recipe->n_large; k++) {
    if (size->global_batch > recipe->large[k].above) found = &recipe->large[k];
  }
  return found;
}

static double learning_rate_for_batch(const laci_training_recipe *recipe,
                                      const laci_run_size *size) {
  const laci_large_batch *large = find_large_batch_settings(recipe, size);
  if (size->rate >= 0) return size->rate;
  if (large) return large->rate;
  bool many = size->n_processes > 1 && recipe->rate_many > 0;
  double rate = many ? recipe->rate_many : recipe->rate;
  if (recipe->base_batch == 0) return rate;
  return rate * (double)size->global_batch / recipe->base_batch;
}

static double warmup_epochs_for_batch(const laci_training_recipe *recipe,
                                      const laci_run_size *size) {
  const laci_large_batch *large = find_large_batch_settings(recipe, size);
  return large ? large->warmup_epochs : recipe->warmup_epochs;
}

/** Returns the number of steps in the full warm-up, even if the run is shorter. */
static double full_warmup_steps(const laci_training_recipe *recipe, const laci_run_size *size) {
  return warmup_epochs_for_batch(recipe, size) * (double)size->steps_per_epoch;
}

/** Returns the number of steps in the warm-up, at most half of the run, so that the rest of the
 * schedule has enough steps. */
static int64_t limited_warmup_steps(const laci_training_recipe *recipe, const laci_run_size *size,
                                    int64_t steps) {
  double wanted = full_warmup_steps(recipe, size);
  double whole = recipe->warmup_of_epochs * (double)size->steps_per_epoch;
  if ((double)steps < whole) wanted = fmax(wanted * (double)steps / whole, wanted > 0);
  int64_t warmup = llround(wanted);
  return warmup < steps ? warmup : steps / 2;
}

lac_status laci_training_recipe_make_schedule(const laci_training_recipe *recipe,
                                              const laci_run_size *size, laci_schedule *schedule,
                                              lac_error *err) {
  double an_epoch = (double)size->steps_per_epoch, most = (double)(INT64_MAX / 2);
  *schedule = (laci_schedule){.kind = recipe->schedule};
  if (size->global_batch < 1 || size->steps_per_epoch < 1 || size->steps < 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%lld images a step, %lld steps an epoch, %lld in all",
                     (long long)size->global_batch, (long long)size->steps_per_epoch,
                     (long long)size->steps);
  }
  if (!(recipe->epochs >= 0 && recipe->epochs * an_epoch < most) ||
      !(recipe->warmup_epochs >= 0 && recipe->warmup_epochs * an_epoch < most) ||
      recipe->n_stages < 0 || recipe->n_stages > LACI_SCHEDULE_MAX_STAGES) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%g epochs, %g of them warm-up, %d stages: wanted numbers from 0 on",
                     recipe->epochs, recipe->warmup_epochs, recipe->n_stages);
  }
  int64_t steps = size->steps ? size->steps : llround(recipe->epochs * an_epoch);
  schedule->rate = learning_rate_for_batch(recipe, size);
  schedule->end_rate = fmin(recipe->end_rate, schedule->rate);
  schedule->power = recipe->power > 0 ? recipe->power : 1;
  schedule->steps = steps > 0 ? steps : 1;
  schedule->warmup_steps = limited_warmup_steps(recipe, size, schedule->steps);
  schedule->n_stages = recipe->n_stages;
  for (int k = 0; k < recipe->n_stages; k++) {
    schedule->stages[k].from = llround(fmin(recipe->stages[k].from_epoch * an_epoch, most));
    schedule->stages[k].factor = recipe->stages[k].factor;
  }
  return laci_schedule_check(schedule, err);
}

/* ---- What a short run changes ---- */

/* A text that is written in parts; what does not fit is cut off. */
typedef struct lines {
  char *text;
  size_t capacity, used;
} lines;

static void append_line(lines *to, const char *format, ...) LAC_PRINTF(2, 3);
static void append_line(lines *to, const char *format, ...) {
  va_list values;
  va_start(values, format);
  int n = vsnprintf(to->text + to->used, to->capacity - to->used, format, values);
  va_end(values);
  if (n > 0)
    to->used += (size_t)n < to->capacity - to->used ? (size_t)n : to->capacity - to->used - 1;
}

/* Adds the epochs at which the stages from number `first` on begin, such as "30, 60 and 80". */
static void append_stage_epochs(lines *to, const laci_training_recipe *recipe, int first) {
  for (int k = first; k < recipe->n_stages; k++) {
    const char *between = k == first ? "" : k + 1 == recipe->n_stages ? " and " : ", ";
    append_line(to, "%s%.3g", between, recipe->stages[k].from_epoch);
  }
}

static const char *plural_ending(int64_t n) { return n == 1 ? "" : "s"; }

void laci_training_recipe_describe_changes(const laci_training_recipe *recipe,
                                           const laci_run_size *size, const laci_schedule *schedule,
                                           char *text, size_t capacity) {
  const double an_epoch = (double)size->steps_per_epoch;
  const int64_t steps = schedule->steps, warmup = llround(full_warmup_steps(recipe, size));
  const double warmup_epochs = warmup_epochs_for_batch(recipe, size);
  bool falls = schedule->kind == LACI_SCHEDULE_PIECEWISE;
  int reached = 0;
  lines to = {text, capacity, 0};
  text[0] = '\0';
  if (size->steps == 0 && llround(recipe->epochs * an_epoch) < 1) {
    append_line(&to, "%g epochs are less than a step: one is made\n", recipe->epochs);
  }
  if (schedule->warmup_steps != warmup) {
    bool half = (double)steps >= recipe->warmup_of_epochs * an_epoch;
    append_line(&to, "warm-up: %" PRId64 " step%s, %s, not %g epoch%s (%" PRId64 " steps)\n",
                schedule->warmup_steps, plural_ending(schedule->warmup_steps),
                half ? "half of the run" : "this run's share", warmup_epochs,
                warmup_epochs == 1 ? "" : "s", warmup);
  }
  if (falls && recipe->stages_of && recipe->n_stages > 0) {
    append_line(&to, "the rate falls at the shares of the run where it does in %s: epochs ",
                recipe->stages_of);
    append_stage_epochs(&to, recipe, 0);
    append_line(&to, "\n");
  }
  while (reached < recipe->n_stages && schedule->stages[reached].from < steps) reached++;
  if (falls && reached < recipe->n_stages) {
    append_line(&to, "the rate does not fall at epoch%s ",
                plural_ending(recipe->n_stages - reached));
    append_stage_epochs(&to, recipe, reached);
    append_line(&to, ": the run ends before, after %.3g\n", (double)steps / an_epoch);
  }
}
