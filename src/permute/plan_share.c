/* SPDX-License-Identifier: Apache-2.0
 * Assigns search problems to processes, and gathers the results. Each process gets the orders and
 * the figures for the report, so that all continue with the same bytes. */
#include "permute/plan_share.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "permute/search.h"

/* ---- Assigning problems to processes ---- */

typedef struct priced {
  double cost;
  int problem;
} priced;

static int compare_most_expensive_first(const void *a, const void *b) {
  const priced *x = a, *y = b;
  if (x->cost != y->cost) return x->cost > y->cost ? -1 : 1;
  return x->problem - y->problem;
}

lac_status laci_plan_assign_owners(const double *cost, int n, int n_processes, int *owner,
                                   lac_error *err) {
  priced *order = laci_alloc((size_t)n, sizeof *order);
  double *load = laci_alloc((size_t)n_processes, sizeof *load);
  lac_status st = order && load ? LAC_OK : laci_fail_memory(err, "the search");
  for (int k = 0; k < n && !st; k++) order[k] = (priced){cost[k], k};
  if (!st && n > 1) qsort(order, (size_t)n, sizeof *order, compare_most_expensive_first);
  for (int k = 0; k < n && !st; k++) {
    int least = 0;
    for (int p = 1; p < n_processes; p++) least = load[p] < load[least] ? p : least;
    load[least] += order[k].cost;
    owner[order[k].problem] = least;
  }
  laci_free(load);
  laci_free(order);
  return st;
}

/* ---- Exchanging results ---- */

/** The result of a search, as processes send it. The order of its channels follows in the
 * message. */
typedef struct parcel {
  double kept_identity, kept, upper;
  int64_t iterations;
  int32_t proven;
  char strategy[20];
} parcel;

static size_t bytes_of_result(int n_channels) {
  return sizeof(parcel) + (size_t)n_channels * sizeof(int32_t);
}

static void serialize_result(const laci_search_result *found, int n_channels, uint8_t *to) {
  parcel p = {.kept_identity = found->kept_identity,
              .kept = found->kept,
              .upper = found->upper,
              .iterations = found->iterations,
              .proven = found->proven};
  (void)snprintf(p.strategy, sizeof p.strategy, "%s", found->strategy);
  memcpy(to, &p, sizeof p);
  memcpy(to + sizeof p, found->order, (size_t)n_channels * sizeof *found->order);
}

static void deserialize_result(const uint8_t *from, int n_channels, laci_search_result *found) {
  parcel p;
  memcpy(&p, from, sizeof p);
  memcpy(found->order, from + sizeof p, (size_t)n_channels * sizeof *found->order);
  *found = (laci_search_result){.order = found->order,
                                .kept_identity = p.kept_identity,
                                .kept = p.kept,
                                .upper = p.upper,
                                .iterations = p.iterations,
                                .proven = p.proven,
                                .strategy = laci_search_find_strategy_name(p.strategy)};
}

/** Where each result begins in the gathered bytes. They are ordered by process, then by problem. */
typedef struct layout {
  size_t *begin; /* [size + 1] offset at which the bytes of each process begin */
  size_t *at;    /* [n] offset at which the bytes of each problem begin */
  uint8_t *bytes;
} layout;

static lac_status init_gathered_layout(layout *l, int size, const laci_owned_problems *d,
                                       lac_error *err) {
  l->begin = laci_alloc((size_t)size + 1, sizeof *l->begin);
  l->at = laci_alloc((size_t)d->n, sizeof *l->at);
  if (!l->begin || !l->at) return laci_fail_memory(err, "the orders of all processes");
  for (int p = 0; p < size; p++) {
    l->begin[p + 1] = l->begin[p];
    for (int k = 0; k < d->n; k++) {
      if (d->owner[k] != p) continue;
      l->at[k] = l->begin[p + 1];
      l->begin[p + 1] += bytes_of_result(d->n_channels[k]);
    }
  }
  l->bytes = laci_alloc(l->begin[size], 1);
  return l->bytes ? LAC_OK : laci_fail_memory(err, "the orders of all processes");
}

lac_status laci_plan_exchange_results(laci_comm *comm, lac_status st, const laci_owned_problems *d,
                                      lac_error *err) {
  const int rank = laci_comm_rank(comm);
  layout l = {0};
  if (!comm) return st;
  if (!st) st = init_gathered_layout(&l, laci_comm_size(comm), d, err);
  st = laci_comm_agree_without_timeout(comm, st, err);
  for (int k = 0; k < d->n && !st; k++) {
    if (d->owner[k] == rank) serialize_result(&d->found[k], d->n_channels[k], l.bytes + l.at[k]);
  }
  if (!st) st = laci_comm_gather_parts(comm, l.bytes, l.begin, err);
  for (int k = 0; k < d->n && !st; k++) {
    if (d->owner[k] != rank) deserialize_result(l.bytes + l.at[k], d->n_channels[k], &d->found[k]);
  }
  laci_free(l.begin);
  laci_free(l.at);
  laci_free(l.bytes);
  return st;
}
