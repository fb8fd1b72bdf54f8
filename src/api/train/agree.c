/* SPDX-License-Identifier: Apache-2.0
 * Checks that all processes have the same options, numbers of images, and structure of the network;
 * without the same structure, bytes of weights could not be exchanged. */
#include <inttypes.h>
#include <string.h>

#include "api/model/model_in.h"
#include "api/run/process_group_in.h"
#include "api/train/plan_in.h"
#include "api/train/train_in.h"
#include "base/error.h"
#include "base/hash.h"
#include "comm/comm.h"
#include "data/dataset.h"
#include "graph/graph.h"
#include "lacuna/mask.h"
#include "tensor/shape.h"

/** Returns a hash of names, types and sizes of all stored tensors, and of the masks' names. */
static uint64_t hash_network_structure(const laci_graph *graph, const lac_mask *mask) {
  uint64_t hash = 0;
  for (int s = 0; s < graph->n_stored; s++) {
    const laci_stored *stored = &graph->stored[s];
    int64_t about[2] = {(int64_t)stored->dtype, laci_shape_count(&stored->shape)};
    hash = laci_hash64(stored->name, strlen(stored->name), hash);
    hash = laci_hash64(about, sizeof about, hash);
  }
  for (int k = 0; k < lac_mask_count(mask); k++) {
    const char *name = lac_mask_name(mask, k);
    hash = laci_hash64(name, strlen(name), hash);
  }
  return hash;
}

static lac_status compare_structure(laci_comm *comm, const laci_graph *graph, const lac_mask *mask,
                                    lac_error *err) {
  const uint64_t ours = hash_network_structure(graph, mask);
  uint64_t first = ours;
  lac_status st = laci_comm_broadcast(comm, &first, sizeof first, err);
  if (!st && first != ours) {
    st = laci_fail(err, LAC_BAD_SHAPE,
                   "its network has other tensors or masks than process 0's: wanted the same file "
                   "and options everywhere");
  }
  return laci_comm_agree_on_status(comm, st, err);
}

/** Returns a hash of everything that determines the number of steps and the work between them:
 * processes that differ in this would wait for each other forever. */
static uint64_t hash_training_plan(const laci_training *t) {
  const lac_train_options *o = t->options;
  const laci_train_plan *p = t->plan;
  const int64_t numbers[] = {
      p->steps,          p->steps_per_epoch,  p->eval_every,   p->checkpoint_every,
      p->batch,          p->accumulate,       p->test_images,  laci_dataset_count(p->set),
      o->steps_per_loop, o->paranoid_steps,   o->bucket_bytes, (int64_t)o->wire,
      o->evaluate,       o->eval_first,       o->eval_only,    o->keep_best,
      o->trace,          o->model_dir != NULL};
  const uint64_t hash = laci_hash64(numbers, sizeof numbers, 0);
  const double threshold = o->stop_threshold;
  return laci_hash64(p->about, strlen(p->about), laci_hash64(&threshold, sizeof threshold, hash));
}

static lac_status compare_plans(laci_comm *comm, const laci_training *t, lac_error *err) {
  const uint64_t ours = hash_training_plan(t);
  uint64_t first = ours;
  lac_status st = laci_comm_broadcast(comm, &first, sizeof first, err);
  if (!st && first != ours) {
    st = laci_fail(err, LAC_BAD_ARGUMENT,
                   "its options or data are not those of process 0 (it has %" PRId64
                   " images, %" PRId64 " steps of %d x %d): wanted the same everywhere",
                   laci_dataset_count(t->plan->set), t->plan->steps, t->plan->accumulate,
                   t->plan->batch);
  }
  return laci_comm_agree_on_status(comm, st, err);
}

lac_status laci_training_compare_jobs(const laci_training *t, const lac_mask *mask,
                                      lac_error *err) {
  laci_comm *comm = laci_process_group_comm(t->options->group);
  lac_status st = compare_plans(comm, t, err);
  return st ? st : compare_structure(comm, t->model->graph, mask, err);
}
