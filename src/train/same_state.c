/* SPDX-License-Identifier: Apache-2.0
 * Compares the training states of processes (same_state.h): first a single hash of each state, and
 * the hashes of its tensors only if that differs. */
#include "train/same_state.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "train/trainer.h"

/** The kinds of hashes that each parameter has, in this order. */
enum { WEIGHTS, MASK, SLOT, KINDS = SLOT + LACI_OPTIMIZER_MAX_SLOTS };
static const char *const KIND_TEXT[KINDS] = {"its weights differ", "its mask differs",
                                             "the optimizer's momentum differs",
                                             "the optimizer's mean of squares differs"};

typedef struct hashes {
  int n; /* number of hashes: KINDS for each parameter, one for the running statistics, and one for
            the number of steps */
  uint64_t *own, *first;
} hashes;

static void hash_parameter(laci_trainer *t, const uint8_t *masks, const laci_parameter *p,
                           uint64_t hash[KINDS]) {
  laci_optimizer *optimizer = laci_trainer_optimizer(t);
  const size_t bytes = (size_t)p->count * sizeof(float);
  hash[WEIGHTS] = laci_hash64(laci_trainer_weights(t) + p->offset, bytes, 0);
  hash[MASK] = masks ? laci_hash64(masks + p->offset, (size_t)p->count, 0) : 0;
  for (int s = 0; s < LACI_OPTIMIZER_MAX_SLOTS; s++) {
    bool has = s < laci_optimizer_count_slots(optimizer);
    hash[SLOT + s] = has ? laci_hash64(laci_optimizer_slot(optimizer, s) + p->offset, bytes, 0) : 0;
  }
}

static void hash_training_state(laci_trainer *t, const uint8_t *masks, hashes *h) {
  const int n_params = laci_trainer_graph(t)->n_params;
  const laci_parameter *parameters = laci_trainer_parameters(t);
  int64_t n_statistics, steps = laci_optimizer_steps(laci_trainer_optimizer(t));
  const float *statistics = laci_trainer_statistics(t, &n_statistics);
  for (int p = 0; p < n_params; p++)
    hash_parameter(t, masks, &parameters[p], h->own + (size_t)p * KINDS);
  h->own[h->n - 2] = laci_hash64(statistics, (size_t)n_statistics * sizeof(float), 0);
  h->own[h->n - 1] = (uint64_t)steps;
}

/* Fails with a text about the first difference. at: index of the first hash that differs. */
static lac_status fail_for_differing_state(const laci_trainer *t, const hashes *h, int at,
                                           int64_t step, lac_error *err) {
  const char *name = "the run", *what = "the optimizer's steps differ";
  if (at == h->n - 2) what = "the running statistics differ";
  if (at < h->n - 2) {
    name = laci_trainer_parameters(t)[at / KINDS].name;
    what = KIND_TEXT[at % KINDS];
  }
  return laci_fail(err, LAC_BAD_VALUE, "%s: %s from process 0's after step %" PRId64, name, what,
                   step);
}

static lac_status compare_hashes(laci_comm *comm, const laci_trainer *t, hashes *h, int64_t step,
                                 lac_error *err) {
  const size_t bytes = (size_t)h->n * sizeof *h->own;
  uint64_t whole[2] = {laci_hash64(h->own, bytes, 0)}; /* whole[0]: hash of all hashes of this
                                                          process. whole[1]: that of process 0 */
  whole[1] = whole[0];
  lac_status st = laci_comm_broadcast(comm, &whole[1], sizeof whole[1], err);
  if (st) return st;
  uint32_t any = whole[0] != whole[1];
  st = laci_comm_vote_begin(comm, any, err);
  if (!st) st = laci_comm_vote_end(comm, &any, err);
  if (st || !any) return st;
  for (int at = 0; at < h->n; at++) h->first[at] = h->own[at];
  st = laci_comm_broadcast(comm, h->first, bytes, err);
  for (int at = 0; at < h->n && !st; at++) {
    if (h->first[at] != h->own[at]) st = fail_for_differing_state(t, h, at, step, err);
  }
  return laci_comm_agree_on_status(comm, st, err);
}

lac_status laci_compare_states_of_processes(laci_comm *comm, laci_trainer *trainer,
                                            const uint8_t *masks, int64_t step, lac_error *err) {
  if (!comm) return LAC_OK;
  hashes h = {.n = laci_trainer_graph(trainer)->n_params * KINDS + 2};
  h.own = laci_alloc((size_t)h.n, sizeof *h.own);
  h.first = laci_alloc((size_t)h.n, sizeof *h.first);
  lac_status st = h.own && h.first ? LAC_OK : laci_fail_memory(err, "hashes of the parameters");
  if (!st) hash_training_state(trainer, masks, &h);
  st = laci_comm_agree_on_status(comm, st, err);
  if (!st) st = compare_hashes(comm, trainer, &h, step, err);
  laci_free(h.own);
  laci_free(h.first);
  return st;
}
