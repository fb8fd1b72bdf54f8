/* SPDX-License-Identifier: Apache-2.0
 * train: the rate of every step against its closed form, and recipes in steps. */
#include "train/recipe.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void expect_near(double found, double wanted) {
  if (!(fabs(found - wanted) <= 1e-12 * (1 + fabs(wanted)))) {
    fail_msg("got %.17g, want %.17g", found, wanted);
  }
}

static void warm_up_rises_in_a_line_and_never_starts_at_zero(void **state) {
  (void)state;
  for (int kind = 0; kind < LACI_SCHEDULE_COUNT; kind++) {
    laci_schedule s = {.kind = (laci_schedule_kind)kind,
                       .rate = 0.5,
                       .power = 2,
                       .steps = 100,
                       .warmup_steps = 10};
    assert_int_equal(laci_schedule_check(&s, NULL), LAC_OK);
    for (int64_t k = 0; k < 10; k++) {
      expect_near(laci_schedule_rate(&s, k), 0.05 * (double)(k + 1));
    }
    expect_near(laci_schedule_rate(&s, 10), 0.5);
  }
}

static void schedules_are_their_formulas(void **state) {
  (void)state;
  static const struct {
    laci_schedule schedule;
    int64_t step;
    double rate;
  } cases[] = {
      {{.kind = LACI_SCHEDULE_CONSTANT, .rate = 0.3}, 1000000, 0.3},
      {{.kind = LACI_SCHEDULE_COSINE, .rate = 1, .steps = 100}, 50, 0.5},
      {{.kind = LACI_SCHEDULE_COSINE, .rate = 1, .steps = 100}, 25, 0.85355339059327373},
      {{.kind = LACI_SCHEDULE_COSINE, .rate = 1, .end_rate = 0.2, .steps = 110, .warmup_steps = 10},
       60,
       0.6},
      {{.kind = LACI_SCHEDULE_COSINE, .rate = 1, .steps = 100}, 100, 0},
      {{.kind = LACI_SCHEDULE_COSINE, .rate = 1, .steps = 100}, 500, 0},
      {{.kind = LACI_SCHEDULE_POLYNOMIAL, .rate = 4, .power = 2, .steps = 100}, 50, 1},
      {{.kind = LACI_SCHEDULE_POLYNOMIAL, .rate = 4, .power = 1, .steps = 100}, 75, 1},
      {{.kind = LACI_SCHEDULE_POLYNOMIAL, .rate = 4, .end_rate = 1, .power = 2, .steps = 100},
       1000,
       1},
      {{.kind = LACI_SCHEDULE_PIECEWISE,
        .rate = 2,
        .n_stages = 2,
        .stages = {{10, 0.1}, {20, 0.01}}},
       9,
       2},
      {{.kind = LACI_SCHEDULE_PIECEWISE,
        .rate = 2,
        .n_stages = 2,
        .stages = {{10, 0.1}, {20, 0.01}}},
       10,
       0.2},
      {{.kind = LACI_SCHEDULE_PIECEWISE,
        .rate = 2,
        .n_stages = 2,
        .stages = {{10, 0.1}, {20, 0.01}}},
       30,
       0.02},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    assert_int_equal(laci_schedule_check(&cases[k].schedule, NULL), LAC_OK);
    expect_near(laci_schedule_rate(&cases[k].schedule, cases[k].step), cases[k].rate);
  }
}

static void bad_schedules_are_refused(void **state) {
  (void)state;
  static const laci_schedule bad[] = {
      {.rate = -1},
      {.rate = (double)NAN},
      {.kind = LACI_SCHEDULE_COSINE, .rate = 1, .steps = 10, .warmup_steps = 10},
      {.kind = LACI_SCHEDULE_COSINE, .rate = 1},
      {.kind = LACI_SCHEDULE_POLYNOMIAL, .rate = 1, .steps = 10},
      {.kind = LACI_SCHEDULE_PIECEWISE, .n_stages = 9},
      {.kind = LACI_SCHEDULE_PIECEWISE, .n_stages = 2, .stages = {{5, 1}, {5, 1}}},
      {.kind = LACI_SCHEDULE_PIECEWISE, .n_stages = 1, .stages = {{5, -1}}},
  };
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    lac_error err = {0};
    assert_int_equal(laci_schedule_check(&bad[k], &err), LAC_BAD_ARGUMENT);
    assert_int_not_equal(err.text[0], 0);
  }
}

static void rates_scale_where_the_recipe_says_so(void **state) {
  (void)state;
  static const struct {
    const char *recipe;
    int64_t batch;
    int processes;
    double explicit_rate, rate;
  } cases[] = {
      {"resnet-sgd", 256, 1, -1, 0.128}, {"resnet-sgd", 2048, 8, -1, 0.8},
      {"resnet-sgd", 2048, 8, 0.1, 0.1}, {"resnet-sgd", 1024, 1, -1, 0.512},
      {"resnext", 128, 1, -1, 0.128},    {"mixup-250", 512, 1, -1, 0.512},
      {"cifar", 512, 1, -1, 0.1},        {"cifar", 128, 1, 0, 0},
      {"resnet-lars", 256, 1, -1, 2.5},  {"resnet-lars", 2048, 8, -1, 9.5},
      {"resnet-lars", 2048, 1, -1, 2.5}, {"resnet-lars", 8192, 8, -1, 9.5},
      {"resnet-lars", 8193, 8, -1, 10},  {"resnet-lars", 16384, 64, -1, 10},
      {"resnet-lars", 16385, 1, -1, 25}, {"resnet-lars", 32768, 64, -1, 25},
      {"resnet-lars", 32769, 8, -1, 32}, {"resnet-lars", 65536, 8, 7, 7},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const laci_training_recipe *recipe = laci_training_recipe_find(cases[k].recipe);
    laci_run_size size = {cases[k].batch, 100, 0, cases[k].processes, cases[k].explicit_rate};
    laci_schedule schedule;
    assert_non_null(recipe);
    assert_int_equal(laci_training_recipe_make_schedule(recipe, &size, &schedule, NULL), LAC_OK);
    expect_near(schedule.rate, cases[k].rate);
  }
}

static void large_batches_have_a_longer_warm_up(void **state) {
  (void)state;
  static const struct {
    int64_t batch;
    double epochs;
  } cases[] = {{8192, 3}, {8193, 5}, {16385, 5}, {32769, 14}};
  const laci_training_recipe *lars = laci_training_recipe_find("resnet-lars");
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    laci_run_size size = {cases[k].batch, 39, 0, 8, -1};
    laci_schedule s;
    assert_int_equal(laci_training_recipe_make_schedule(lars, &size, &s, NULL), LAC_OK);
    assert_int_equal(s.warmup_steps, (int64_t)(cases[k].epochs * 39));
    assert_int_equal(s.steps, 38 * 39);
    /* the polynomial begins after the warm-up, at the whole rate */
    expect_near(laci_schedule_rate(&s, s.warmup_steps), s.rate);
    double x = 500.0 / (double)(s.steps - s.warmup_steps);
    expect_near(laci_schedule_rate(&s, s.warmup_steps + 500),
                1e-4 + (s.rate - 1e-4) * (1 - x) * (1 - x));
  }
}

/* A third of the run has a third of the warm-up; what the caller says is used as it is. */
static void a_short_run_has_its_share_of_the_warm_up(void **state) {
  (void)state;
  laci_schedule s;
  laci_run_size size = {256, 5004, 0, 1, -1};
  laci_training_recipe recipe = *laci_training_recipe_find("resnet-sgd");
  recipe.epochs = 30;
  assert_int_equal(laci_training_recipe_make_schedule(&recipe, &size, &s, NULL), LAC_OK);
  assert_int_equal(s.warmup_steps, 5004);
  recipe.epochs = 1;
  assert_int_equal(laci_training_recipe_make_schedule(&recipe, &size, &s, NULL), LAC_OK);
  assert_int_equal(s.warmup_steps, 167); /* 5004 / 30, rounded */
  recipe.epochs = 180;
  assert_int_equal(laci_training_recipe_make_schedule(&recipe, &size, &s, NULL), LAC_OK);
  assert_int_equal(s.warmup_steps, 3 * 5004);
  recipe.warmup_of_epochs = 0;
  recipe.epochs = 5;
  assert_int_equal(laci_training_recipe_make_schedule(&recipe, &size, &s, NULL), LAC_OK);
  assert_int_equal(s.warmup_steps, 3 * 5004);
}

static void recipes_are_cut_into_steps(void **state) {
  (void)state;
  laci_schedule s;
  laci_run_size size = {256, 5004, 0, 1, -1};
  const laci_training_recipe *sgd = laci_training_recipe_find("resnet-sgd");
  assert_int_equal(laci_training_recipe_make_schedule(sgd, &size, &s, NULL), LAC_OK);
  assert_int_equal(s.steps, 90 * 5004);
  assert_int_equal(s.warmup_steps, 3 * 5004);
  expect_near(laci_schedule_rate(&s, 29 * 5004), 0.128);
  expect_near(laci_schedule_rate(&s, 30 * 5004), 0.0128);
  expect_near(laci_schedule_rate(&s, 80 * 5004), 0.000128);
  size.steps = 100; /* a trial run: warm-up may not eat all of it */
  assert_int_equal(
      laci_training_recipe_make_schedule(laci_training_recipe_find("resnext"), &size, &s, NULL),
      LAC_OK);
  assert_int_equal(s.steps, 100);
  assert_int_equal(s.warmup_steps, 9); /* 8 of 90 epochs are warm-up */
  size.steps = 1;
  assert_int_equal(
      laci_training_recipe_make_schedule(laci_training_recipe_find("resnext"), &size, &s, NULL),
      LAC_OK);
  assert_int_equal(s.warmup_steps, 0);
}

static void what_a_short_run_changes_is_said(void **state) {
  (void)state;
  static const struct {
    const char *recipe;
    int64_t steps; /* 0: the epochs */
    double epochs;
    const char *text;
  } cases[] = {
      {"resnet-sgd", 0, 90, ""},
      {"resnet-sgd", 0, 89, ""}, /* 30 steps all the same */
      {"resnet-sgd", 0, 80,
       "warm-up: 27 steps, this run's share, not 3 epochs (30 steps)\n"
       "the rate does not fall at epoch 80: the run ends before, after 80\n"},
      {"resnet-sgd", 0, 40,
       "warm-up: 13 steps, this run's share, not 3 epochs (30 steps)\n"
       "the rate does not fall at epochs 60 and 80: the run ends before, after 40\n"},
      {"resnet-lars", 0, 38, ""},
      {"resnet-lars", 21, 38, "warm-up: 2 steps, this run's share, not 3 epochs (30 steps)\n"},
      {"cifar", 0, 0.01, "0.01 epochs are less than a step: one is made\n"},
      {"resnext", 3, 90, "warm-up: 1 step, this run's share, not 8 epochs (80 steps)\n"},
  };
  laci_training_recipe own = *laci_training_recipe_find("resnet-sgd");
  laci_run_size few = {256, 10, 21, 1, -1};
  laci_schedule schedule;
  char line[512];
  own.warmup_of_epochs = 0; /* a warm-up that the caller asked for */
  assert_int_equal(laci_training_recipe_make_schedule(&own, &few, &schedule, NULL), LAC_OK);
  laci_training_recipe_describe_changes(&own, &few, &schedule, line, sizeof line);
  assert_non_null(strstr(line, "warm-up: 10 steps, half of the run, not 3 epochs (30 steps)\n"));
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    laci_training_recipe recipe = *laci_training_recipe_find(cases[k].recipe);
    laci_run_size size = {256, 10, cases[k].steps, 1, -1};
    laci_schedule s;
    char text[512];
    recipe.epochs = cases[k].epochs;
    assert_int_equal(laci_training_recipe_make_schedule(&recipe, &size, &s, NULL), LAC_OK);
    laci_training_recipe_describe_changes(&recipe, &size, &s, text, sizeof text);
    assert_string_equal(text, cases[k].text);
    char little[8]; /* cut off, not written beyond */
    laci_training_recipe_describe_changes(&recipe, &size, &s, little, sizeof little);
    assert_memory_equal(little, text, strlen(little));
    assert_true(strlen(little) < sizeof little);
  }
}

static void every_recipe_has_a_valid_optimizer(void **state) {
  (void)state;
  int n;
  const laci_training_recipe *all = laci_training_recipes(&n);
  assert_int_equal(n, 6);
  for (int k = 0; k < n; k++) {
    laci_optimizer *o = NULL;
    laci_parameter p = {.name = "w", .count = 4};
    assert_int_equal(laci_optimizer_create(&all[k].optimizer, &p, 1, NULL, &o, NULL), LAC_OK);
    laci_optimizer_destroy(o);
    for (int kind = 0; kind < LACI_OPTIMIZER_COUNT; kind++) { /* any recipe, any optimizer */
      laci_optimizer_options options = all[k].optimizer;
      laci_optimizer_options_set_kind(&options, (laci_optimizer_kind)kind);
      assert_int_equal(laci_optimizer_create(&options, &p, 1, NULL, &o, NULL), LAC_OK);
      assert_true(options.decay == all[k].optimizer.decay);
      laci_optimizer_destroy(o);
    }
  }
  assert_null(laci_training_recipe_find("resnet"));
}

static void every_setting_says_where_it_comes_from(void **state) {
  (void)state;
  int n;
  const laci_training_recipe *all = laci_training_recipes(&n);
  for (int k = 0; k < n; k++) {
    for (int at = 0; at < LACI_RECIPE_SETTINGS; at++) {
      char text[120];
      laci_recipe_format_setting(&all[k], (laci_recipe_setting)at, text, sizeof text);
      if (!text[0] == !all[k].from[at]) continue;
      fail_msg("%s: %s is '%s', from '%s'", all[k].name,
               laci_recipe_setting_name((laci_recipe_setting)at), text,
               all[k].from[at] ? all[k].from[at] : "nowhere");
    }
  }
}

static void names_lead_to_schedules(void **state) {
  (void)state;
  laci_schedule_kind kind;
  assert_true(laci_schedule_find_kind("polynomial", &kind) && kind == LACI_SCHEDULE_POLYNOMIAL);
  assert_false(laci_schedule_find_kind("linear", &kind));
  assert_string_equal(laci_schedule_kind_name(LACI_SCHEDULE_COSINE), "cosine");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(warm_up_rises_in_a_line_and_never_starts_at_zero),
      cmocka_unit_test(schedules_are_their_formulas),
      cmocka_unit_test(bad_schedules_are_refused),
      cmocka_unit_test(rates_scale_where_the_recipe_says_so),
      cmocka_unit_test(large_batches_have_a_longer_warm_up),
      cmocka_unit_test(a_short_run_has_its_share_of_the_warm_up),
      cmocka_unit_test(recipes_are_cut_into_steps),
      cmocka_unit_test(what_a_short_run_changes_is_said),
      cmocka_unit_test(every_recipe_has_a_valid_optimizer),
      cmocka_unit_test(every_setting_says_where_it_comes_from),
      cmocka_unit_test(names_lead_to_schedules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
