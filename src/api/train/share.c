/* SPDX-License-Identifier: Apache-2.0
 * Makes the network the same in all processes before a step is planned: weights and masks are those
 * of process 0.
 *
 * Every process has read or built the network itself, normally with the same result; to be sure,
 * the weights of process 0 are copied to all. Next: agree.c. */
#include "api/model/model_in.h"
#include "api/run/eval_in.h"
#include "api/run/process_group_in.h"
#include "api/train/mask_in.h"
#include "api/train/train_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "data/metrics.h"
#include "graph/graph.h"
#include "lacuna/mask.h"
#include "lacuna/train.h"
#include "train/data_parallel.h"

static lac_status broadcast_stored_tensor(laci_comm *comm, laci_graph *graph, lac_error *err) {
  lac_status st = LAC_OK;
  for (int s = 0; s < graph->n_stored && !st; s++) {
    laci_stored *stored = &graph->stored[s];
    uint8_t *bytes = laci_stored_writable_bytes(stored);
    if (!bytes) st = laci_fail_memory(err, stored->name);
    st = laci_comm_agree_on_status(comm, st, err);
    if (!st) st = laci_comm_broadcast(comm, bytes, stored->size_bytes, err);
  }
  return st;
}

/* Fails if a mask differs from process 0's; masks are not copied, since they belong to the caller.
 */
static lac_status compare_masks(laci_comm *comm, const lac_mask *mask, lac_error *err) {
  lac_status st = LAC_OK;
  for (int k = 0; k < lac_mask_count(mask) && !st; k++) {
    const char *name = lac_mask_name(mask, k);
    const uint64_t ours = laci_mask_hash(mask, k);
    uint64_t first = ours;
    st = laci_comm_broadcast(comm, &first, sizeof first, err);
    if (!st && first != ours) {
      st = laci_fail(err, LAC_BAD_VALUE, "%s: its mask differs from process 0's", name);
    }
    st = laci_comm_agree_on_status(comm, st, err);
  }
  return st;
}

lac_status laci_training_broadcast_weights(laci_training *t, const lac_mask *mask, lac_error *err) {
  laci_comm *comm = laci_process_group_comm(t->options->group);
  if (!comm) return LAC_OK;
  lac_status st = laci_training_compare_jobs(t, mask, err);
  if (!st) st = broadcast_stored_tensor(comm, t->model->graph, err);
  return st ? st : compare_masks(comm, mask, err);
}

laci_data_parallel_options laci_training_parallel_options(const laci_training *t) {
  const lac_train_options *o = t->options;
  return (laci_data_parallel_options){
      .comm = laci_process_group_comm(o->group),
      .wire = o->wire == LAC_DTYPE_BF16 ? LACI_WIRE_BF16 : LACI_WIRE_F32,
      .bucket = (size_t)o->bucket_bytes};
}

lac_status laci_training_agree_on_status(const laci_training *t, lac_status mine, lac_error *err) {
  return laci_comm_agree_on_status(laci_process_group_comm(t->options->group), mine, err);
}

lac_status laci_training_agree_without_timeout(const laci_training *t, lac_status mine,
                                               lac_error *err) {
  return laci_comm_agree_without_timeout(laci_process_group_comm(t->options->group), mine, err);
}

lac_status laci_training_gather_scores(const laci_training *t, const laci_eval_scores *scores,
                                       lac_error *err) {
  laci_comm *comm = laci_process_group_comm(t->options->group);
  const int size = laci_comm_size(comm);
  size_t *begin = laci_alloc((size_t)size + 1, sizeof *begin);
  lac_status st = laci_comm_agree_on_status(
      comm, begin ? LAC_OK : laci_fail_memory(err, "scores of all processes"), err);
  for (int k = 0; k <= size && begin; k++) {
    begin[k] = (size_t)laci_eval_part_begin(scores, k, size) * sizeof *scores->scores;
  }
  if (!st) st = laci_comm_gather_parts(comm, scores->scores, begin, err);
  laci_free(begin);
  return st;
}
