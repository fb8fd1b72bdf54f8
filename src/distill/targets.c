/* SPDX-License-Identifier: Apache-2.0
 * Makes batches by one of two methods. If all samples fit into memory, a batch is a random choice
 * of them, and targets may be kept, too. Otherwise fixed batches are read again in each epoch, in a
 * new order. */
#include "distill/targets.h"

#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "cpu/pool.h"
#include "distill/reconstruct.h"

struct laci_distill_targets {
  laci_reconstruct *reconstruct;
  const laci_calibration_samples *samples;
  laci_distill_targets_options how;
  int n_targets;
  int64_t image_size,
      target_sizes; /* number of floats of a sample's image (image_size), and of all its targets
                       (target_sizes) */
  float *images;    /* [n, image_size] all samples; NULL: they are not kept in memory */
  float *kept;      /* [n, target_sizes] targets of all samples; NULL: they are not kept in
                       memory */
  bool *known;      /* [n] the sample's targets are stored in `kept` */
  int64_t *order;   /* [n_order] the order of this epoch: indices of samples, or of batches if
                       samples are not in memory */
  int64_t n_order, at, epoch;
  float *batch_images; /* [batch, image_size] images of the current batch */
  float **targets;     /* [n_targets] targets of the current batch, each [batch, size] */
};

/** Does memory allow this number of bytes in addition to *held? If so, adds it to *held. */
static bool reserve_if_fits(const laci_distill_targets *t, uint64_t bytes, uint64_t *held) {
  if (bytes > t->how.most_bytes || *held > t->how.most_bytes - bytes) return false;
  if (!laci_budget_allows(t->how.budget, *held + bytes)) return false;
  *held += bytes;
  return true;
}

static lac_status read_all_samples(laci_distill_targets *t, lac_error *err) {
  const laci_distill_targets_options *o = &t->how;
  lac_status st = LAC_OK;
  for (int64_t at = 0; at < o->n && !st; at += o->batch) {
    int64_t n = o->n - at < o->batch ? o->n - at : o->batch;
    void *to = t->images + at * t->image_size;
    st = t->samples->fetch(t->samples->context, o->first + at, n, &to, err);
  }
  return st;
}

static lac_status alloc_target_buffers(laci_distill_targets *t, lac_error *err) {
  const laci_distill_targets_options *o = &t->how;
  size_t n = (size_t)o->n, image = (size_t)t->image_size, all = (size_t)t->target_sizes;
  uint64_t held = (uint64_t)o->batch * (image + all) * sizeof(float);
  if (reserve_if_fits(t, n * image * sizeof(float), &held)) {
    t->images = laci_alloc(n * image, sizeof *t->images);
    if (reserve_if_fits(t, n * all * sizeof(float), &held)) {
      t->kept = laci_alloc(n * all, sizeof *t->kept);
      t->known = laci_alloc(n, sizeof *t->known);
    }
  }
  t->n_order = t->images ? o->n : o->n / o->batch;
  t->at = t->n_order; /* the next batch begins an epoch */
  t->order = laci_alloc((size_t)t->n_order, sizeof *t->order);
  t->batch_images = laci_alloc((size_t)o->batch * image, sizeof *t->batch_images);
  t->targets = laci_alloc((size_t)t->n_targets, sizeof *t->targets);
  bool made = t->order && t->batch_images && t->targets && (!t->kept || t->known);
  for (int k = 0; k < t->n_targets && made; k++) {
    int64_t size = laci_reconstruct_floats_of_target(t->reconstruct, k);
    t->targets[k] = laci_alloc((size_t)(o->batch * size), sizeof **t->targets);
    made = t->targets[k] != NULL;
  }
  return made ? LAC_OK : laci_fail_memory(err, "what the dense network gives");
}

lac_status laci_distill_targets_create(laci_reconstruct *reconstruct,
                                       const laci_calibration_samples *samples,
                                       const laci_distill_targets_options *options,
                                       laci_distill_targets **made, lac_error *err) {
  laci_distill_targets *t = laci_alloc(1, sizeof *t);
  *made = NULL;
  if (!t) return laci_fail_memory(err, "what the dense network gives");
  *t = (laci_distill_targets){.reconstruct = reconstruct,
                              .samples = samples,
                              .how = *options,
                              .n_targets = laci_reconstruct_count_targets(reconstruct),
                              .image_size = laci_reconstruct_floats_of_image(reconstruct)};
  for (int k = 0; k < t->n_targets; k++)
    t->target_sizes += laci_reconstruct_floats_of_target(reconstruct, k);
  lac_status st = alloc_target_buffers(t, err);
  if (!st && t->images) st = read_all_samples(t, err);
  if (st) laci_distill_targets_destroy(t);
  else *made = t;
  return st;
}

void laci_distill_targets_destroy(laci_distill_targets *t) {
  if (!t) return;
  for (int k = 0; k < t->n_targets && t->targets; k++) laci_free(t->targets[k]);
  laci_free(t->targets);
  laci_free(t->batch_images);
  laci_free(t->order);
  laci_free(t->known);
  laci_free(t->kept);
  laci_free(t->images);
  laci_free(t);
}

/* ---- Batches ---- */

static void shuffle_samples(laci_distill_targets *t) {
  for (int64_t i = 0; i < t->n_order; i++) t->order[i] = i;
  for (int64_t i = t->n_order - 1; i > 0; i--) {
    int64_t other = (int64_t)laci_rng_integer_below(t->how.seed, (uint64_t)t->epoch, (uint64_t)i,
                                                    (uint64_t)i + 1);
    int64_t moved = t->order[i];
    t->order[i] = t->order[other];
    t->order[other] = moved;
  }
  t->epoch++;
  t->at = 0;
}

/** Copies a sample's targets from the batch to `kept` (keep), or from `kept` to the batch. */
static void move_sample_targets(laci_distill_targets *t, int64_t row, int64_t sample, bool keep) {
  float *kept = t->kept + sample * t->target_sizes;
  for (int k = 0; k < t->n_targets; k++) {
    int64_t size = laci_reconstruct_floats_of_target(t->reconstruct, k);
    float *target = t->targets[k] + row * size;
    memcpy(keep ? kept : target, keep ? target : kept, (size_t)size * sizeof *target);
    kept += size;
  }
}

typedef struct gathering {
  laci_distill_targets *t;
  const int64_t *order;
  bool targets, keep;
} gathering;

static void gather_sample_rows(int64_t begin, int64_t end, void *context) {
  const gathering *g = context;
  laci_distill_targets *t = g->t;
  for (int64_t row = begin; row < end; row++) {
    if (g->targets) move_sample_targets(t, row, g->order[row], g->keep);
    else
      memcpy(t->batch_images + row * t->image_size, t->images + g->order[row] * t->image_size,
             (size_t)t->image_size * sizeof *t->images);
  }
}

/** Makes a batch of the next samples in t->order, which are in memory. */
static lac_status make_batch_from_memory(laci_distill_targets *t, lac_error *err) {
  const int64_t batch = t->how.batch;
  gathering g = {.t = t, .order = t->order + t->at};
  bool known = t->kept != NULL;
  laci_pool_for(t->how.pool, batch, 1, gather_sample_rows, &g);
  for (int64_t row = 0; row < batch && known; row++) known = t->known[g.order[row]];
  g.targets = true;
  g.keep = !known;
  lac_status st =
      known ? LAC_OK
            : laci_reconstruct_run_teacher(t->reconstruct, t->batch_images, t->targets, err);
  if (!st && t->kept) laci_pool_for(t->how.pool, batch, 1, gather_sample_rows, &g);
  for (int64_t row = 0; row < batch && t->kept && !st; row++) t->known[g.order[row]] = true;
  t->at += batch;
  return st;
}

/** Reads the next batch in t->order: neighbouring samples of the data. */
static lac_status read_next_batch(laci_distill_targets *t, lac_error *err) {
  void *to = t->batch_images;
  int64_t first = t->how.first + t->order[t->at++] * t->how.batch;
  lac_status st = t->samples->fetch(t->samples->context, first, t->how.batch, &to, err);
  return st ? st : laci_reconstruct_run_teacher(t->reconstruct, t->batch_images, t->targets, err);
}

lac_status laci_distill_targets_next_batch(laci_distill_targets *t, const float **images,
                                           const float *const **targets, lac_error *err) {
  if (t->at + (t->images ? t->how.batch : 1) > t->n_order) shuffle_samples(t);
  *images = t->batch_images;
  *targets = (const float *const *)t->targets;
  return t->images ? make_batch_from_memory(t, err) : read_next_batch(t, err);
}
