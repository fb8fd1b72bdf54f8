/* SPDX-License-Identifier: Apache-2.0
 * Turning groups into search problems, and their results into a plan.
 *
 * Groups whose blocks hold no channel of another searched group are independent and go together;
 * the others follow one by one, each with the orders found so far held still. */
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "permute/plan.h"

typedef struct builder {
  laci_plan *plan;
  laci_pattern pattern;
  laci_arena arena; /* of the problems */
} builder;

static bool same_rows(const laci_consumer *a, const laci_consumer *b) {
  return a->layer == b->layer && a->conv_group == b->conv_group;
}

/* The same weight read by two layers counts once. */
static bool seen_before(const builder *b, const laci_group *group, int at) {
  const laci_analysis *a = b->plan->analysis;
  const laci_consumer *one = &group->consumers[at];
  for (int k = 0; k < at; k++) {
    const laci_consumer *other = &group->consumers[k];
    if (a->layers[other->layer].stored == a->layers[one->layer].stored &&
        other->conv_group == one->conv_group &&
        memcmp(other->column, one->column, (size_t)group->n_channels * sizeof *one->column) == 0) {
      return true;
    }
  }
  return false;
}

/* Behind an NCHW Flatten a channel is a run of copies. Blocks inside a run hold the same channel in
 * any order; where runs are much longer than blocks, hardly a block says anything about the order,
 * and the layer is left out. */
static bool is_long_run(const builder *b, const laci_group *group, int at) {
  const laci_consumer *one = &group->consumers[at];
  int32_t low = one->column[0], high = low, n_copies = 0;
  for (int k = 0; k < group->n_consumers; k++) {
    const laci_consumer *other = &group->consumers[k];
    if (!same_rows(one, other)) continue;
    n_copies++;
    if (other->column[0] < low) low = other->column[0];
    if (other->column[0] > high) high = other->column[0];
  }
  return n_copies >= 4 * b->pattern.m && high - low + 1 == n_copies;
}

/* Of such a group no order is proven. */
static bool leaves_out(const builder *b, int g) {
  const laci_group *group = &b->plan->analysis->groups[g];
  for (int k = 0; k < group->n_consumers; k++) {
    if (is_long_run(b, group, k)) return true;
  }
  return false;
}

/* What now stands at every column of the consumer's rows: the orders found so far. NULL: nothing
 * has moved. */
static bool held_columns(builder *b, const laci_consumer *one, const int32_t **held) {
  const laci_analysis *a = b->plan->analysis;
  const laci_layer *layer = &a->layers[one->layer];
  laci_value_axes axes[LACI_MAX_RANK];
  int n = laci_value_on_tracks(a, a->graph->stored[layer->stored].value, axes);
  *held = NULL;
  for (int i = 0; i < n; i++) {
    const int32_t *order = b->plan->track_order[axes[i].track];
    if (axes[i].axes[0] != layer->c_axis || !order) continue;
    int64_t first = one->conv_group >= 0 ? one->conv_group * layer->view.columns : 0;
    int32_t *columns = laci_arena_alloc(&b->arena, (size_t)layer->view.columns, sizeof *columns);
    if (!columns) return false;
    for (int64_t c = 0; c < layer->view.columns; c++)
      columns[c] = (int32_t)(order[first + c] - first);
    *held = columns;
  }
  return true;
}

static bool make_problem(builder *b, int g, laci_problem *problem) {
  const laci_analysis *a = b->plan->analysis;
  const laci_group *group = &a->groups[g];
  laci_sheet *sheets = laci_arena_alloc(&b->arena, (size_t)group->n_consumers, sizeof *sheets);
  if (!sheets) return false;
  *problem =
      (laci_problem){.n_channels = group->n_channels, .pattern = b->pattern, .sheets = sheets};
  problem->name = a->graph->nodes[a->layers[group->layers[0]].node].name;
  for (int k = 0; k < group->n_consumers; k++) {
    const laci_consumer *one = &group->consumers[k];
    const laci_layer *layer = &a->layers[one->layer];
    if (seen_before(b, group, k) || is_long_run(b, group, k)) continue;
    laci_sheet *sheet = &sheets[problem->n_sheets++];
    *sheet =
        (laci_sheet){.weight = layer->view, .outer_end = layer->view.outer, .column = one->column};
    if (one->conv_group >= 0) {
      int64_t rows = layer->view.outer / layer->groups;
      sheet->outer_begin = one->conv_group * rows;
      sheet->outer_end = sheet->outer_begin + rows;
    }
    if (!held_columns(b, one, &sheet->held)) return false;
  }
  return true;
}

/* Does a block of the group also hold channels of another searchable group? */
static bool mixes(const builder *b, int g, const int32_t *searched_by, const laci_consumer *one) {
  const laci_analysis *a = b->plan->analysis;
  const laci_weight_view *view = &a->layers[one->layer].view;
  int n = a->groups[g].n_channels;
  for (int c = 0; c < n; c++) {
    int64_t run = one->column[c] / view->run * view->run, in_run = one->column[c] - run;
    int64_t first = run + in_run / b->pattern.m * b->pattern.m;
    for (int64_t k = first; k < first + b->pattern.m && k < run + view->run; k++) {
      if (searched_by[k] >= 0 && searched_by[k] != g) return true;
    }
  }
  return false;
}

/* searched_by[column] for the rows of one consumer. */
static bool group_mixes(const builder *b, int g, bool *result) {
  const laci_analysis *a = b->plan->analysis;
  const laci_group *group = &a->groups[g];
  *result = false;
  for (int k = 0; k < group->n_consumers && !*result; k++) {
    const laci_consumer *one = &group->consumers[k];
    int64_t columns = a->layers[one->layer].view.columns;
    int32_t *searched_by = laci_alloc((size_t)columns, sizeof *searched_by);
    if (!searched_by) return false;
    for (int64_t c = 0; c < columns; c++) searched_by[c] = -1;
    for (int other = 0; other < a->n_searchable; other++) {
      if (b->plan->held[other]) continue;
      for (int j = 0; j < a->groups[other].n_consumers; j++) {
        const laci_consumer *theirs = &a->groups[other].consumers[j];
        if (!same_rows(one, theirs)) continue;
        for (int c = 0; c < a->groups[other].n_channels; c++)
          searched_by[theirs->column[c]] = other;
      }
    }
    *result = mixes(b, g, searched_by, one);
    laci_free(searched_by);
  }
  return true;
}

static lac_status search_independent(builder *b, const bool *mixed,
                                     const laci_search_options *options, laci_pool *pool,
                                     lac_error *err) {
  laci_plan *plan = b->plan;
  int n = plan->analysis->n_searchable, n_problems = 0;
  laci_problem *problems = laci_alloc((size_t)n, sizeof *problems);
  laci_found *found = laci_alloc((size_t)n, sizeof *found);
  int *group = laci_alloc((size_t)n, sizeof *group);
  lac_status st = problems && found && group ? LAC_OK : laci_fail_memory(err, "the search");
  for (int g = 0; g < n && !st; g++) {
    if (mixed[g] || plan->held[g]) continue;
    if (!make_problem(b, g, &problems[n_problems])) st = laci_fail_memory(err, "the search");
    found[n_problems] = plan->found[g];
    group[n_problems++] = g;
  }
  if (!st) st = laci_search_all(problems, n_problems, options, pool, found, err);
  for (int i = 0; i < n_problems && !st; i++) {
    plan->found[group[i]] = found[i];
    plan->found[group[i]].proven &= !leaves_out(b, group[i]);
  }
  laci_free(problems);
  laci_free(found);
  laci_free(group);
  return st;
}

/* Seconds of a time limit that are left for what costs `part` of `whole`; 0: no limit. */
static double share_of(double end, double part, double whole) {
  if (!(end > 0)) return 0;
  double seconds = (end - laci_clock_seconds()) * (whole > 0 ? part / whole : 1);
  return seconds > 1e-6 ? seconds : 1e-6;
}

/* One by one: each holds the orders found so far still. */
static lac_status search_mixed(builder *b, const bool *mixed, laci_search_options options,
                               double end, double cost, laci_pool *pool, lac_error *err) {
  lac_status st = LAC_OK;
  for (int g = 0; g < b->plan->analysis->n_searchable && !st; g++) {
    if (!mixed[g] || b->plan->held[g]) continue;
    laci_problem problem;
    if (!make_problem(b, g, &problem)) return laci_fail_memory(err, "the search");
    double here = laci_search_cost(&problem, options.effort);
    options.seconds = share_of(end, here, cost);
    cost -= here;
    st = laci_search(&problem, &options, pool, &b->plan->found[g], err);
    b->plan->found[g].proven &= !leaves_out(b, g);
    if (!st) st = laci_plan_complete(b->plan, err);
  }
  return st;
}

lac_status laci_plan_search(laci_plan *plan, laci_pattern pattern,
                            const laci_search_options *options, laci_pool *pool, lac_error *err) {
  builder b = {.plan = plan, .pattern = pattern};
  const int n = plan->analysis->n_searchable;
  const double end = options->seconds > 0 ? laci_clock_seconds() + options->seconds : 0;
  laci_search_options how = *options;
  double cost[2] = {0}; /* of independent and of mixed groups; the latter use one thread mostly */
  bool *mixed = laci_alloc((size_t)n, sizeof *mixed);
  lac_status st = mixed ? LAC_OK : laci_fail_memory(err, "the search");
  for (int g = 0; g < n && !st; g++) {
    laci_problem problem;
    if (plan->held[g]) continue;
    bool ok = group_mixes(&b, g, &mixed[g]);
    if (ok && end > 0) { /* only a time limit has to be shared */
      ok = make_problem(&b, g, &problem);
      if (ok) cost[mixed[g]] += laci_search_cost(&problem, options->effort);
    }
    if (!ok) st = laci_fail_memory(err, "the search");
  }
  cost[0] /= laci_pool_threads(pool);
  how.seconds = share_of(end, cost[0], cost[0] + cost[1]);
  if (!st) st = search_independent(&b, mixed, &how, pool, err);
  if (!st) st = laci_plan_complete(plan, err);
  if (!st) st = search_mixed(&b, mixed, how, end, cost[1], pool, err);
  laci_arena_clear(&b.arena);
  laci_free(mixed);
  return st;
}
