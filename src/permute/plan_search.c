/* SPDX-License-Identifier: Apache-2.0
 * Makes a search problem of each group of channels, searches them, and makes a plan from the
 * results.
 *
 * A group is independent if its blocks contain no channel of another group that is searched.
 * Independent groups are searched at the same time. The others are mixed groups. They are searched
 * one by one, while the orders found so far are fixed. Several processes divide the independent
 * groups among them (plan_share.h). */
#include <stdlib.h>
#include <string.h>

#include "analyze/analyze.h"
#include "base/clock.h"
#include "base/error.h"
#include "comm/comm.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "permute/plan.h"
#include "permute/plan_share.h"
#include "permute/search.h"

typedef struct builder {
  laci_plan *plan;
  laci_pattern pattern;
  const laci_weight_view *views; /* weights to be scored instead of the analysis's, as in
                                    laci_search_options */
  laci_arena arena;              /* memory of the problems and of the arrays below */
  int *first;         /* [n_searchable + 1] index in long_run at which the consumers of each group
                         begin */
  bool *long_run;     /* [consumers of all searchable groups] true: the search leaves this consumer
                         out (see mark_consumers_with_long_runs) */
  bool *mixed;        /* [n_searchable] true: a block of the group also holds channels of another
                         group */
  int *n_layers_with; /* [n_stored] number of layers that read each stored tensor */
} builder;

static bool read_same_rows(const laci_consumer *a, const laci_consumer *b) {
  return a->layer == b->layer && a->conv_group == b->conv_group;
}

/* Does an earlier consumer of the group read the same weight? Then this one is not counted again.
 * Consumers in the same layer read different columns. */
static bool is_weight_counted_before(const builder *b, const laci_group *group, int at) {
  const laci_analysis *a = b->plan->analysis;
  const laci_consumer *one = &group->consumers[at];
  if (b->n_layers_with[a->layers[one->layer].stored] < 2) return false;
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

/* ---- Consumers that read the same rows ---- */

/* A consumer (a layer that reads the group's channels): number `at` of the searchable group
 * `group`. */
typedef struct user {
  int layer, conv_group, group, at;
} user;

static const laci_consumer *consumer_of_user(const builder *b, const user *u) {
  return &b->plan->analysis->groups[u->group].consumers[u->at];
}

static int compare_users_by_rows(const void *x, const void *y) {
  const user *a = x, *b = y;
  if (a->layer != b->layer) return a->layer < b->layer ? -1 : 1;
  if (a->conv_group != b->conv_group) return a->conv_group < b->conv_group ? -1 : 1;
  if (a->group != b->group) return a->group < b->group ? -1 : 1;
  return a->at < b->at ? -1 : a->at > b->at;
}

/* After an NCHW Flatten, a channel is a run of columns. A block (of the pattern N:M) inside a run
 * contains copies of one channel only, whatever the order is. If runs are much longer than blocks,
 * hardly any block depends on the order, and the search leaves the layer out. The n users are all
 * consumers of one group that read the same rows. */
static void mark_consumers_with_long_runs(builder *b, const user *users, int n) {
  int32_t low = consumer_of_user(b, users)->column[0], high = low;
  for (int k = 1; k < n; k++) {
    int32_t column = consumer_of_user(b, &users[k])->column[0];
    low = column < low ? column : low;
    high = column > high ? column : high;
  }
  bool is_long = n >= 4 * b->pattern.m && high - low + 1 == n;
  for (int k = 0; k < n; k++) b->long_run[b->first[users[k].group] + users[k].at] = is_long;
}

static bool is_long_run(const builder *b, int g, int at) { return b->long_run[b->first[g] + at]; }

/* Does the search leave out a consumer of the group? Then it cannot prove that an order is the
 * best. */
static bool has_long_run(const builder *b, int g) {
  for (int k = 0; k < b->plan->analysis->groups[g].n_consumers; k++) {
    if (is_long_run(b, g, k)) return true;
  }
  return false;
}

/* Does a block that this consumer reads also hold channels of another searchable group?
 * searched_by: for each column, the group that it belongs to. */
static bool shares_blocks_with_group(const builder *b, int g, const int32_t *searched_by,
                                     const laci_consumer *one) {
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

/* Sets b->mixed for the groups that share blocks. The n users read the same rows. */
static bool mark_groups_that_share_blocks(builder *b, const user *users, int n) {
  const laci_analysis *a = b->plan->analysis;
  int64_t columns = a->layers[users->layer].view.columns;
  int32_t *searched_by = laci_alloc((size_t)columns, sizeof *searched_by);
  if (!searched_by) return false;
  for (int64_t c = 0; c < columns; c++) searched_by[c] = -1;
  for (int k = 0; k < n; k++) {
    if (b->plan->fixed[users[k].group]) continue;
    const int32_t *column = consumer_of_user(b, &users[k])->column;
    for (int c = 0; c < a->groups[users[k].group].n_channels; c++)
      searched_by[column[c]] = users[k].group;
  }
  for (int k = 0; k < n; k++) {
    int g = users[k].group;
    if (!b->plan->fixed[g] && !b->mixed[g])
      b->mixed[g] = shares_blocks_with_group(b, g, searched_by, consumer_of_user(b, &users[k]));
  }
  laci_free(searched_by);
  return true;
}

static bool mark_long_runs_and_mixed(builder *b, const user *users, int n_users) {
  for (int at = 0, n; at < n_users; at += n) {
    for (n = 1; at + n < n_users && read_same_rows(consumer_of_user(b, &users[at]),
                                                   consumer_of_user(b, &users[at + n]));)
      n++;
    if (!mark_groups_that_share_blocks(b, users + at, n)) return false;
    for (int k = 0, same; k < n; k += same) {
      for (same = 1; k + same < n && users[at + k + same].group == users[at + k].group;) same++;
      mark_consumers_with_long_runs(b, users + at + k, same);
    }
  }
  return true;
}

static bool init_plan_builder(builder *b) {
  const laci_analysis *a = b->plan->analysis;
  size_t n = (size_t)a->n_searchable;
  b->first = laci_arena_alloc(&b->arena, n + 1, sizeof *b->first);
  b->mixed = laci_arena_alloc(&b->arena, n, sizeof *b->mixed);
  b->n_layers_with =
      laci_arena_alloc(&b->arena, (size_t)a->graph->n_stored, sizeof *b->n_layers_with);
  if (!b->first || !b->mixed || !b->n_layers_with) return false;
  for (int l = 0; l < a->n_layers; l++) b->n_layers_with[a->layers[l].stored]++;
  for (int g = 0; g < a->n_searchable; g++)
    b->first[g + 1] = b->first[g] + a->groups[g].n_consumers;
  int n_users = b->first[n];
  b->long_run = laci_arena_alloc(&b->arena, (size_t)n_users, sizeof *b->long_run);
  user *users = laci_alloc((size_t)n_users, sizeof *users);
  bool ok = b->long_run && users;
  for (int g = 0, at = 0; ok && g < a->n_searchable; g++) {
    for (int k = 0; k < a->groups[g].n_consumers; k++) {
      const laci_consumer *one = &a->groups[g].consumers[k];
      users[at++] = (user){.layer = one->layer, .conv_group = one->conv_group, .group = g, .at = k};
    }
  }
  if (ok && n_users > 1) qsort(users, (size_t)n_users, sizeof *users, compare_users_by_rows);
  ok = ok && mark_long_runs_and_mixed(b, users, n_users);
  laci_free(users);
  return ok;
}

/* ---- Building and searching problems ---- */

/* Sets *held to a table: for each column of the consumer's rows, the old column that is there after
 * the orders found so far. NULL: these columns were not reordered. */
static bool find_reordered_columns(builder *b, const laci_consumer *one, const int32_t **held) {
  const laci_analysis *a = b->plan->analysis;
  const laci_layer *layer = &a->layers[one->layer];
  laci_value_axes axes[LACI_MAX_RANK];
  int n = laci_value_find_track_axes(a, a->graph->stored[layer->stored].value, axes);
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

/* Makes the search problem of group g. views: weights to be scored; NULL: the analysis's
 * weights. */
static bool make_search_problem(builder *b, int g, const laci_weight_view *views,
                                laci_problem *problem) {
  const laci_analysis *a = b->plan->analysis;
  const laci_group *group = &a->groups[g];
  laci_slice *slices = laci_arena_alloc(&b->arena, (size_t)group->n_consumers, sizeof *slices);
  const laci_consumer *before = NULL; /* consumer of the slice before */
  if (!slices) return false;
  *problem =
      (laci_problem){.n_channels = group->n_channels, .pattern = b->pattern, .slices = slices};
  problem->name = a->graph->nodes[a->layers[group->layers[0]].node].name;
  for (int k = 0; k < group->n_consumers; k++) {
    const laci_consumer *one = &group->consumers[k];
    const laci_layer *layer = &a->layers[one->layer];
    if (is_long_run(b, g, k) || is_weight_counted_before(b, group, k)) continue;
    laci_slice *slice = &slices[problem->n_slices++];
    *slice = (laci_slice){.weight = views ? views[one->layer] : layer->view,
                          .outer_end = layer->view.outer,
                          .column = one->column};
    if (one->conv_group >= 0) {
      int64_t rows = layer->view.outer / layer->groups;
      slice->outer_begin = one->conv_group * rows;
      slice->outer_end = slice->outer_begin + rows;
    }
    bool known = problem->n_slices > 1 && read_same_rows(one, before);
    before = one;
    if (known) slice->original_column = slice[-1].original_column;
    else if (!find_reordered_columns(b, one, &slice->original_column)) return false;
  }
  return true;
}

/* If options->views is set, the search of group g scored these weights in place of the analysis's.
 * Then measures the order that it found again, with the analysis's weights. */
static lac_status measure_with_original_weights(builder *b, int g, laci_pool *pool,
                                                laci_search_result *found, lac_error *err) {
  laci_problem problem;
  if (!b->views) return LAC_OK;
  if (!make_search_problem(b, g, NULL, &problem)) return laci_fail_memory(err, "the search");
  return laci_search_measure_order(&problem, pool, found, err);
}

/** The search problems of the independent groups, and which process searches each of them. */
typedef struct listed {
  int n;
  laci_problem *problems; /* [n], as are all arrays below: the problems */
  laci_search_result *found;
  int *group, *n_channels, *owner;
  double *cost;
} listed;

static void problem_list_clear(listed *l) {
  laci_free(l->problems);
  laci_free(l->found);
  laci_free(l->group);
  laci_free(l->n_channels);
  laci_free(l->owner);
  laci_free(l->cost);
}

static lac_status list_independent_problems(builder *b, laci_effort effort, listed *l,
                                            lac_error *err) {
  laci_plan *plan = b->plan;
  size_t most = (size_t)plan->analysis->n_searchable;
  l->problems = laci_alloc(most, sizeof *l->problems);
  l->found = laci_alloc(most, sizeof *l->found);
  l->group = laci_alloc(most, sizeof *l->group);
  l->n_channels = laci_alloc(most, sizeof *l->n_channels);
  l->owner = laci_alloc(most, sizeof *l->owner);
  l->cost = laci_alloc(most, sizeof *l->cost);
  bool ok = l->problems && l->found && l->group && l->n_channels && l->owner && l->cost;
  for (int g = 0; g < (int)most && ok; g++) {
    if (b->mixed[g] || plan->fixed[g]) continue;
    laci_problem *problem = &l->problems[l->n];
    ok = make_search_problem(b, g, b->views, problem);
    l->found[l->n] = plan->found[g];
    l->n_channels[l->n] = problem->n_channels;
    l->cost[l->n] = laci_search_estimate_ns(problem, effort);
    l->group[l->n++] = g;
  }
  return ok ? LAC_OK : laci_fail_memory(err, "the search");
}

/* Searches the problems that this process owns. */
static lac_status search_own_problems(builder *b, const listed *l,
                                      const laci_search_options *options, laci_pool *pool,
                                      lac_error *err) {
  const int rank = laci_comm_rank(options->comm);
  laci_problem *problems = laci_alloc((size_t)l->n, sizeof *problems);
  laci_search_result *found = laci_alloc((size_t)l->n, sizeof *found);
  int n = 0;
  lac_status st = problems && found ? LAC_OK : laci_fail_memory(err, "the search");
  for (int k = 0; k < l->n && !st; k++) {
    if (l->owner[k] != rank) continue;
    problems[n] = l->problems[k];
    found[n++] = l->found[k];
  }
  if (!st) st = laci_search_all(problems, n, options, pool, found, err);
  for (int k = 0, at = 0; k < l->n && !st; k++) {
    if (l->owner[k] != rank) continue;
    l->found[k] = found[at++];
    st = measure_with_original_weights(b, l->group[k], pool, &l->found[k], err);
  }
  laci_free(problems);
  laci_free(found);
  return st;
}

static lac_status search_independent_groups(builder *b, const laci_search_options *options,
                                            laci_pool *pool, lac_error *err) {
  laci_plan *plan = b->plan;
  laci_comm *comm = options->comm;
  listed l = {0};
  lac_status st = list_independent_problems(b, options->effort, &l, err);
  if (!st) st = laci_plan_assign_owners(l.cost, l.n, laci_comm_size(comm), l.owner, err);
  if (!st) st = search_own_problems(b, &l, options, pool, err);
  const laci_owned_problems dealt = {l.n, l.found, l.n_channels, l.owner};
  st = laci_plan_exchange_results(comm, st, &dealt, err);
  for (int k = 0; k < l.n && !st; k++) {
    plan->found[l.group[k]] = l.found[k];
    plan->found[l.group[k]].proven &= !has_long_run(b, l.group[k]);
  }
  problem_list_clear(&l);
  return st;
}

/* Divides the time until `end` by cost. part: cost of the work that begins now; whole: cost of all
 * remaining work. Returns the seconds for this work; 0: there is no limit. */
static double seconds_for_share(double end, double part, double whole) {
  if (!(end > 0)) return 0;
  double seconds = (end - laci_clock_seconds()) * (whole > 0 ? part / whole : 1);
  return seconds > 1e-6 ? seconds : 1e-6;
}

/* Searches the mixed groups one by one, while the orders found so far are fixed. end: time of the
 * limit. cost: sum over all mixed groups. */
static lac_status search_groups_that_share_blocks(builder *b, laci_search_options options,
                                                  double end, double cost, laci_pool *pool,
                                                  lac_error *err) {
  lac_status st = LAC_OK;
  for (int g = 0; g < b->plan->analysis->n_searchable && !st; g++) {
    if (!b->mixed[g] || b->plan->fixed[g]) continue;
    laci_problem problem;
    if (!make_search_problem(b, g, b->views, &problem)) return laci_fail_memory(err, "the search");
    double here = laci_search_estimate_ns(&problem, options.effort);
    options.seconds = seconds_for_share(end, here, cost);
    cost -= here;
    st = laci_search(&problem, &options, pool, &b->plan->found[g], err);
    if (!st) st = measure_with_original_weights(b, g, pool, &b->plan->found[g], err);
    b->plan->found[g].proven &= !has_long_run(b, g);
    if (!st) st = laci_plan_fix_group_order(b->plan, g, err);
  }
  return st;
}

/* Sends the orders of the mixed groups from process 0 to the others. Process 0 alone searches them,
 * since each search depends on the previous one. st: the status of that search. */
static lac_status broadcast_mixed_orders(const builder *b, lac_status st, laci_comm *comm,
                                         lac_error *err) {
  laci_plan *plan = b->plan;
  const size_t most = (size_t)plan->analysis->n_searchable;
  int n = 0, *n_channels = laci_alloc(most, sizeof *n_channels);
  int *owner = laci_alloc(most, sizeof *owner); /* zeros, since process 0 owns all */
  laci_search_result *found = laci_alloc(most, sizeof *found);
  if (!st && (!n_channels || !owner || !found)) st = laci_fail_memory(err, "the search");
  for (int g = 0; g < (int)most && !st; g++) {
    if (!b->mixed[g] || plan->fixed[g]) continue;
    n_channels[n] = plan->analysis->groups[g].n_channels;
    found[n++] = plan->found[g];
  }
  st = laci_plan_exchange_results(comm, st, &(laci_owned_problems){n, found, n_channels, owner},
                                  err);
  for (int g = 0, k = 0; g < (int)most && !st; g++) {
    if (b->mixed[g] && !plan->fixed[g]) plan->found[g] = found[k++];
  }
  laci_free(n_channels);
  laci_free(owner);
  laci_free(found);
  return st;
}

lac_status laci_plan_search_orders(laci_plan *plan, laci_pattern pattern,
                                   const laci_search_options *options, laci_pool *pool,
                                   lac_error *err) {
  builder b = {.plan = plan, .pattern = pattern, .views = options->views};
  const int n = plan->analysis->n_searchable;
  const double end = options->seconds > 0 ? laci_clock_seconds() + options->seconds : 0;
  laci_search_options how = *options;
  laci_comm *comm = options->comm;
  double cost[2] = {0}; /* cost[0]: of independent groups. cost[1]: of mixed groups, which use one
                           thread most of the time */
  lac_status st = init_plan_builder(&b) ? LAC_OK : laci_fail_memory(err, "the search");
  for (int g = 0; g < n && end > 0 && !st; g++) { /* costs are only needed to divide a time limit */
    laci_problem problem;
    if (plan->fixed[g]) continue;
    if (!make_search_problem(&b, g, b.views, &problem)) st = laci_fail_memory(err, "the search");
    else cost[b.mixed[g]] += laci_search_estimate_ns(&problem, options->effort);
  }
  cost[0] /= (double)laci_pool_threads(pool) * laci_comm_size(comm);
  how.seconds = seconds_for_share(end, cost[0], cost[0] + cost[1]);
  st = laci_comm_agree_on_status(comm, st, err);
  if (!st) st = search_independent_groups(&b, &how, pool, err);
  if (!st) st = laci_comm_agree_on_status(comm, laci_plan_make_value_orders(plan, err), err);
  if (!st) {
    bool first = laci_comm_rank(comm) == 0;
    if (first) st = search_groups_that_share_blocks(&b, how, end, cost[1], pool, err);
    st = broadcast_mixed_orders(&b, st, comm, err);
  }
  if (!st) st = laci_comm_agree_on_status(comm, laci_plan_make_value_orders(plan, err), err);
  laci_arena_clear(&b.arena);
  return st;
}
