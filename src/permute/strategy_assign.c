/* SPDX-License-Identifier: Apache-2.0
 * assign: annealing by linear assignments, the temperature led by what it does.
 *
 * No temperature fits all weights, so none is computed from them: the share of blocks that change
 * in a step is steered along a falling line, from 15 % to 0.3 % (on a logarithmic scale), and the
 * temperature follows by feedback. Coarse integers lead most of the way, fine ones finish. Steps
 * are search_anneal.h's. */
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "permute/search_anneal.h"
#include "permute/search_noise.h"
#include "permute/strategy.h"

enum {
  ONE = 1 << 16,          /* of fixed-point factors and logarithms */
  FALL = 256381,          /* ln(0.15 / 0.003) * ONE */
  MOST_COOLING = ONE / 4, /* of the temperature's logarithm, in one step */
};
#define SHARE_ONE (INT64_C(1) << 32) /* of shares of blocks */
#define SHARE_FIRST (SHARE_ONE * 15 / 100)
#define SHARE_REMEMBERED \
  (SHARE_ONE / 12) /* below it the table of all channels is the cheaper way */

static int64_t budget(laci_effort effort, int n_channels) {
  static const int64_t base[] = {
      [LACI_EFFORT_FAST] = 25, [LACI_EFFORT_NORMAL] = 100, [LACI_EFFORT_BEST] = 1000};
  int64_t times = n_channels <= 64 ? 10 : n_channels <= 128 ? 4 : n_channels <= 256 ? 2 : 1;
  return base[effort] * times;
}

/* The plan of a whole search. */
typedef struct schedule {
  int64_t n, warm, fine,
      cold;     /* iterations in all; until noise, until i16, until no noise any more */
  int64_t rate; /* of the feedback */
  int64_t fall; /* of the wanted share's logarithm in a step */
} schedule;

static schedule plan(laci_effort effort, int n_channels) {
  int64_t n = budget(effort, n_channels);
  schedule s = {.n = n, .warm = n >= 50 ? 3 : 1, .fine = n_channels <= 64 ? 0 : n * 85 / 100};
  s.cold = n - (n * 3 / 100 > 2 ? n * 3 / 100 : 2);
  s.rate = n > 50 ? 10 * ONE / n : ONE / 5;
  s.fall = FALL / (s.cold - s.warm);
  return s;
}

/* Cools by how much more blocks changed than were wanted to. On average that is nothing when as
 * many change as wanted, also where a change is rare; clamping the logarithm instead would leave
 * small problems too hot. */
static int64_t follow(int64_t temperature, const schedule *s, int64_t wanted, int n_changed,
                      int n_groups) {
  int64_t share = SHARE_ONE * n_changed / n_groups;
  int64_t off = share * ONE / wanted - ONE, cooling = s->rate * off / ONE;
  int64_t next = laci_cool(temperature, cooling < MOST_COOLING ? cooling : MOST_COOLING);
  return next < 1 ? 1 : next < LACI_TEMPERATURE_LIMIT ? next : LACI_TEMPERATURE_LIMIT;
}

typedef struct search {
  laci_task *task;
  laci_anneal anneal;
  laci_matrix coarse, fine;
  int32_t *best_order; /* the task's */
  int64_t best_total;
  int64_t temperature;
  int64_t wanted; /* share of blocks that should change in a step */
  bool remembers;
} search;

static void keep_best(search *s) {
  if (s->anneal.total <= s->best_total) return;
  s->best_total = s->anneal.total;
  memcpy(s->best_order, s->anneal.order, (size_t)s->task->cuts->n_channels * sizeof *s->best_order);
}

/* The table of all channels costs as much as 16 steps without it, and then makes steps cheap: if
 * few blocks change, and if there are steps enough until the integers change. */
static bool remembers(search *s, const schedule *plan, int64_t i) {
  int64_t end = i < plan->fine ? plan->fine : plan->n;
  if (i == plan->fine) s->remembers = false;
  s->remembers |= s->wanted < SHARE_REMEMBERED && end - i >= 32;
  return s->remembers;
}

/* Changes to fine integers: both the present order and the best so far are counted anew. */
static void refine(search *s) {
  s->temperature = (int64_t)((double)s->temperature * (s->fine.scale / s->coarse.scale));
  laci_anneal_use(&s->anneal, &s->fine);
  s->best_total = laci_values_total(&s->anneal.values, s->best_order);
  keep_best(s);
}

static void iterate(search *s, const schedule *plan) {
  laci_anneal_use(&s->anneal, plan->fine > 0 ? &s->coarse : &s->fine);
  s->best_total = s->anneal.total;
  s->wanted = SHARE_FIRST;
  for (int64_t i = 0; i < plan->n && !laci_interrupted(); i++) {
    if (i == plan->fine && i > 0) refine(s);
    if (i == plan->warm) {
      s->temperature = laci_anneal_spread(&s->anneal) * (1 << LACI_TEMPERATURE_BITS) / 10 + 1;
    }
    bool noisy = i >= plan->warm && i < plan->cold;
    laci_anneal_step step = {.iteration = i, .temperature = noisy ? s->temperature : 0};
    step.remembers = remembers(s, plan, i);
    int n_changed = laci_anneal_do(&s->anneal, step);
    if (noisy) {
      s->temperature = follow(s->temperature, plan, s->wanted, n_changed, s->anneal.n_groups);
      s->wanted = laci_cool(s->wanted, plan->fall);
    }
    keep_best(s);
    s->task->iterations++;
  }
}

lac_status laci_assign_cut(laci_task *task, const laci_cut *cut, lac_error *err) {
  search s = {.task = task, .best_order = task->order};
  schedule planned = plan(task->effort, task->cuts->n_channels);
  if (cut->n_blocks < 2) return LAC_OK; /* one block: every order keeps the same */
  lac_status st = laci_anneal_init(&s.anneal, task->cuts, cut, task->order, task->pool, err);
  if (st) goto out;
  s.anneal.seed = task->seed;
  st = laci_matrix_init(&s.fine, LACI_I16, task->cuts, cut, task->measure, task->pool, err);
  if (st) goto out;
  if (planned.fine > 0) {
    st = laci_matrix_init(&s.coarse, LACI_U8, task->cuts, cut, task->measure, task->pool, err);
    if (st) goto out;
  }
  iterate(&s, &planned);
out:
  laci_matrix_clear(&s.coarse);
  laci_matrix_clear(&s.fine);
  laci_anneal_clear(&s.anneal);
  return st;
}

static bool fits(const laci_cuts *cuts) { return cuts->n_cuts == 1 && cuts->cuts[0].stacked; }

static lac_status run(laci_task *task, lac_error *err) {
  task->proven = task->cuts->cuts[0].n_blocks < 2;
  return laci_assign_cut(task, &task->cuts->cuts[0], err);
}

const laci_strategy laci_strategy_assign = {.name = "assign", .fits = fits, .run = run};
