/* SPDX-License-Identifier: Apache-2.0
 * Lets several processes prune together: checks that all have the same network, and sends the
 * findings of process 0's verification to the others. permute/plan_share.h divides the search among
 * them. */
#include <string.h>

#include "analyze/analyze.h"
#include "base/error.h"
#include "base/hash.h"
#include "comm/comm.h"
#include "permute/plan.h"
#include "prune/prune_in.h"

/* Returns a hash of everything that orders and masks depend on: the layers' sums of magnitudes
 * (every weight contributes to them), the channels, and the options. */
static uint64_t hash_pruning_run(const laci_pruning *p, const laci_prune_options *options) {
  const laci_analysis *a = p->analysis;
  const laci_search_options *search = &options->search;
  const int64_t numbers[] = {
      options->pattern.n, options->pattern.m,   options->permute,     options->mask,
      options->verify,    options->keep_pruned, options->permute_for, (int64_t)search->seed,
      search->effort,     options->form,        options->v,           p->scores != NULL,
      search->iterations, a->n_groups,          a->n_searchable,      a->n_layers};
  uint64_t hash = laci_hash64(numbers, sizeof numbers, 0);
  if (search->strategy) hash = laci_hash64(search->strategy, strlen(search->strategy), hash);
  for (int l = 0; l < a->n_layers; l++) {
    const double sums[] = {p->layers[l].kept_identity, p->layers[l].total, p->layers[l].score_kept,
                           p->layers[l].score_total};
    const int64_t counts[] = {p->layers[l].n_elements, p->layers[l].n_zeros, a->layers[l].eligible};
    hash = laci_hash64(sums, sizeof sums, hash);
    hash = laci_hash64(counts, sizeof counts, hash);
  }
  for (int g = 0; g < a->n_groups; g++) {
    const int about[] = {a->groups[g].n_channels, p->plan->fixed[g]};
    hash = laci_hash64(about, sizeof about, hash);
  }
  return hash;
}

lac_status laci_pruning_compare_processes(const laci_pruning *p, const laci_prune_options *options,
                                          lac_error *err) {
  laci_comm *comm = options->comm;
  if (!comm) return LAC_OK;
  const uint64_t ours = hash_pruning_run(p, options);
  uint64_t first = ours;
  lac_status st = laci_comm_broadcast(comm, &first, sizeof first, err);
  if (!st && first != ours) {
    st = laci_fail(err, LAC_BAD_ARGUMENT,
                   "its network or options are not those of process 0: wanted the same file and "
                   "options everywhere");
  }
  return laci_comm_agree_on_status(comm, st, err);
}

lac_status laci_pruning_share_verification(laci_pruning *p, laci_comm *comm, lac_error *err) {
  laci_pruning_verification *v = &p->verification, sent = *v;
  int engine = -1;
  if (!comm) return LAC_OK;
  for (int fast = 0; fast <= 1 && v->found.engine; fast++) {
    if (strcmp(v->found.engine, laci_verify_engine_name(fast)) == 0) engine = fast;
  }
  lac_status st = laci_comm_broadcast(comm, &engine, sizeof engine, err);
  if (!st) st = laci_comm_broadcast(comm, &sent, sizeof sent, err);
  if (st || laci_comm_rank(comm) == 0) return st;
  sent.found.engine = engine >= 0 ? laci_verify_engine_name(engine) : NULL;
  sent.found.worst_value = sent.found.first_skipped = NULL;
  *v = sent;
  return LAC_OK;
}
