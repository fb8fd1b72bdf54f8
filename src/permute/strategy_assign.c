/* SPDX-License-Identifier: Apache-2.0
 * Strategy assign: annealing by linear assignments. The temperature is controlled by its effect.
 *
 * No fixed schedule of temperatures suits all weights. Instead, the target is the share of blocks
 * that change in a step. It falls from 15 % to 0.3 %, evenly on a logarithmic scale, and feedback
 * adapts the temperature to it. Most steps use coarse integers, the last ones fine integers.
 * search_anneal.h has the steps. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/to_int.h"
#include "permute/search_anneal.h"
#include "permute/search_noise.h"
#include "permute/strategy.h"

enum {
  LOG_ONE = 1 << 16,          /* 1.0 in fixed-point logarithms */
  FALL = 256381,              /* fall of the target share's logarithm from 15 % to 0.3 %: ln(0.15 /
                                 0.003) * LOG_ONE */
  MOST_COOLING = LOG_ONE / 4, /* maximum decrease of the temperature's logarithm in one step */
  WARM_STEPS = 3,             /* number of steps without noise at the beginning */
  MOST_BLOCKS = 12288,        /* maximum number of blocks: a square table then takes 576 MiB, and
                                 there are two */
  MOST_ASKED = 64,            /* maximum number of channels for which strategy stripes is tried,
                                 too */
  MOST_FINE = 64,             /* maximum number of channels for which all steps use fine integers */
};
#define ONE \
  (INT64_C(1) << 32) /* 1.0 in fixed-point numbers for progress and for shares of blocks */
#define SHARE_FIRST (ONE * 15 / 100)
#define WARM_END (ONE / 25)
#define COARSE_END (ONE * 95 / 100)
#define NOISE_END (ONE * 97 / 100)

/* Small problems get more iterations: a step takes only a microsecond, and if there are few blocks,
 * one bad block matters more. */
int64_t laci_assign_iterations(laci_effort effort, int n_channels) {
  static const int64_t base[] = {
      [LACI_EFFORT_FAST] = 25, [LACI_EFFORT_NORMAL] = 100, [LACI_EFFORT_BEST] = 1000};
  static const struct {
    int most_channels, times;
  } sizes[] = {{32, 80}, {64, 20}, {128, 8}, {256, 4}, {512, 2}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    if (n_channels <= sizes[i].most_channels) return base[effort] * sizes[i].times;
  }
  return base[effort];
}

/* How far a search has come, from 0 to ONE: measured by iterations, or by the clock if there is a
 * deadline. */
typedef struct pace {
  int64_t n;         /* number of iterations, if there is no deadline */
  double begin, end; /* begin: time of the start. end: deadline; 0: none */
  int64_t now, step; /* now: how far the search has come. step: how far the last iteration advanced
                        it */
} pace;

static void update_search_progress(pace *p, int64_t iterations) {
  const int64_t before = p->now;
  double share = (double)iterations / (double)p->n;
  if (p->end > 0) {
    const double now = laci_clock_seconds();
    share = now < p->end ? (now - p->begin) / (p->end - p->begin) : 1;
  }
  p->now = share < 1 ? laci_clamp_to_int64(share * (double)ONE) : ONE;
  p->step = p->now - before;
}

typedef struct search {
  laci_task *task;
  laci_anneal anneal;
  const laci_matrix *coarse, *fine; /* matrices of coarse and of fine integers; small problems do
                                       not use coarse */
  int32_t *best_order;              /* best order so far, in the task's memory */
  int64_t best_total;
  pace pace;
  int64_t noise_begin; /* progress at which noise started; -1: not yet */
  int64_t temperature;
  int64_t carry;  /* cooling that was too small to change the temperature and is added to the next,
                     in units of 1 / (LOG_ONE * LOG_ONE) */
  int64_t wanted; /* target share of blocks that change in a step */
  int64_t fallen; /* how much the logarithm of the target share has decreased so far */
  int64_t least;  /* this many steps are made even after the deadline, since the first steps gain
                     most */
  bool is_coarse, caches;
} search;

static void keep_best_order(search *s) {
  if (s->anneal.total <= s->best_total) return;
  s->best_total = s->anneal.total;
  memcpy(s->best_order, s->anneal.order, (size_t)s->task->cuts->n_channels * sizeof *s->best_order);
}

static int64_t clamp_temperature(int64_t temperature) {
  const int64_t most = LACI_TEMPERATURE_LIMIT;
  return temperature < 1 ? 1 : temperature < most ? temperature : most;
}

/* Cools in proportion to how far the number of changed blocks exceeds the target. If on average as
 * many blocks change as the target says, the temperature stays, even if changes are rare. Clamping
 * the logarithm instead would leave small problems too hot. */
static void adapt_temperature(search *s, int n_changed) {
  int64_t share = ONE * n_changed / s->anneal.n_groups;
  int64_t off = share * LOG_ONE / s->wanted - LOG_ONE;
  int64_t rate = 10 * s->pace.step < ONE / 5 ? 10 * s->pace.step : ONE / 5;
  int64_t cooling = rate * off / LOG_ONE;
  const int64_t most = (int64_t)MOST_COOLING * LOG_ONE;
  s->carry += cooling < most ? cooling : most;
  int64_t whole = s->carry / LOG_ONE;
  s->carry -= whole * LOG_ONE;
  s->temperature = clamp_temperature(laci_cool_temperature(s->temperature, whole));
}

/* Lowers the target share of changed blocks, evenly on a logarithmic scale as long as there is
 * noise. */
static void lower_target_share(search *s) {
  int64_t done = s->pace.now - s->noise_begin, all = NOISE_END - s->noise_begin;
  int64_t fall = (done < all ? done : all) * FALL / all - s->fallen;
  while (fall > 0) {
    int64_t part = fall < MOST_COOLING ? fall : MOST_COOLING;
    s->wanted = laci_cool_temperature(s->wanted, part);
    s->fallen += part;
    fall -= part;
  }
}

/* Decides whether steps use the table that has the values of all channels. Making that table takes
 * as long as m * m steps without it. After that, each block that changes invalidates m - 1 rows,
 * each m times as long as a row of a step's own table. So the table saves time if few blocks
 * change, and enough steps remain until the integers change. */
static bool decide_use_of_table(search *s) {
  const int64_t m = s->task->cuts->pattern.m,
                left = (s->is_coarse ? COARSE_END : ONE) - s->pace.now;
  s->caches |=
      s->noise_begin >= 0 && s->wanted < ONE * 4 / (3 * m * m) && left >= 2 * m * m * s->pace.step;
  return s->caches;
}

/* Changes from coarse to fine integers, and computes the scores of the present order and of the
   best one again. */
static void switch_to_fine_integers(search *s) {
  s->temperature = clamp_temperature(
      laci_clamp_to_int64((double)s->temperature * laci_matrix_growth(s->coarse, s->fine)));
  laci_anneal_use_matrix(&s->anneal, s->fine);
  s->best_total = laci_values_sum_kept(&s->anneal.values, s->best_order);
  keep_best_order(s);
  s->is_coarse = s->caches = false;
}

/* Decides whether this step uses noise. Noise starts after a few steps, which make the easy gains.
 * It stops at least two steps before the end. */
static bool decide_use_of_noise(search *s) {
  if (s->noise_begin < 0) {
    if (s->task->iterations < WARM_STEPS && s->pace.now < WARM_END) return false;
    s->noise_begin = s->pace.now;
    s->temperature = clamp_temperature(laci_anneal_mean_deviation(&s->anneal) *
                                       (1 << LACI_TEMPERATURE_BITS) / 10);
  }
  return s->pace.now < NOISE_END && s->pace.now + 2 * s->pace.step < ONE;
}

static void run_annealing(search *s) {
  laci_anneal_use_matrix(&s->anneal, s->is_coarse ? s->coarse : s->fine);
  s->best_total = s->anneal.total;
  s->wanted = SHARE_FIRST;
  s->noise_begin = -1;
  while (s->task->iterations < s->least || (s->pace.now < ONE && !laci_interrupted())) {
    if (s->is_coarse && s->pace.now >= COARSE_END) switch_to_fine_integers(s);
    bool noisy = decide_use_of_noise(s);
    laci_anneal_step step = {.iteration = s->task->iterations, .caches = decide_use_of_table(s)};
    if (noisy) step.temperature = s->temperature;
    int n_changed = laci_anneal_run_step(&s->anneal, step);
    keep_best_order(s);
    update_search_progress(&s->pace, ++s->task->iterations);
    if (!noisy) continue;
    adapt_temperature(s, n_changed);
    lower_target_share(s);
  }
}

lac_status laci_search_cut_by_assignment(laci_task *task, const laci_cut *cut, lac_error *err) {
  search s = {.task = task, .best_order = task->order};
  const int n = task->cuts->n_channels;
  s.is_coarse = n > MOST_FINE;
  s.pace = (pace){.n = task->iterations_wanted, .begin = laci_clock_seconds()};
  s.pace.end = task->deadline;
  if (s.pace.n <= 0) s.pace.n = laci_assign_iterations(task->effort, n);
  s.least = s.pace.n < WARM_STEPS ? s.pace.n : WARM_STEPS;
  if (cut->n_blocks < 2) return LAC_OK; /* with a single block, all orders keep the same weights */
  lac_status st = laci_anneal_init(&s.anneal, task->cuts, cut, task->order, task->pool, err);
  if (st) goto out;
  s.anneal.seed = task->seed;
  st = laci_task_find_or_make_matrix(task, cut, LACI_I16, &s.fine, err);
  if (!st && s.is_coarse) st = laci_task_find_or_make_matrix(task, cut, LACI_U8, &s.coarse, err);
  if (!st) run_annealing(&s);
out:
  laci_anneal_clear(&s.anneal);
  return st;
}

static bool is_assign_applicable(const laci_cuts *cuts, bool asked) {
  (void)asked;
  return cuts->n_cuts == 1 && cuts->cuts[0].stacked && cuts->cuts[0].n_blocks <= MOST_BLOCKS;
}

/* For small problems, also runs strategy stripes, which takes little time, and keeps the better
 * result, since annealing depends more on chance there. */
static lac_status try_stripes_strategy(laci_task *task, lac_error *err) {
  const laci_strategy *stripes = &laci_strategy_stripes;
  const size_t n = (size_t)task->cuts->n_channels;
  if (n > MOST_ASKED || task->deadline > 0 || !stripes->fits(task->cuts, false)) return LAC_OK;
  int32_t *found = laci_alloc(n, sizeof *found);
  if (!found) return laci_fail_memory(err, task->cuts->problem->name);
  laci_task other = *task;
  double kept = 0, other_kept = 0;
  for (size_t j = 0; j < n; j++) found[j] = (int32_t)j;
  other.order = found;
  lac_status st = stripes->run(&other, err);
  if (!st) st = laci_cuts_score_order(task->cuts, task->order, task->pool, &kept, err);
  if (!st) st = laci_cuts_score_order(task->cuts, found, task->pool, &other_kept, err);
  if (!st && other_kept > kept) {
    memcpy(task->order, found, n * sizeof *found);
    task->found_by = "stripes";
  }
  laci_free(found);
  return st;
}

static lac_status run_strategy(laci_task *task, lac_error *err) {
  task->proven = task->cuts->cuts[0].n_blocks < 2;
  lac_status st = laci_search_cut_by_assignment(task, &task->cuts->cuts[0], err);
  return st || task->effort == LACI_EFFORT_FAST ? st : try_stripes_strategy(task, err);
}

const laci_strategy laci_strategy_assign = {.fits = is_assign_applicable, .run = run_strategy};
