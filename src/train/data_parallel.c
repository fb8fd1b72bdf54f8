/* SPDX-License-Identifier: Apache-2.0
 * Sums the gradients of a training over several processes (data_parallel.h). Sums are ended in the
 * order in which they were begun. That is the order of the buckets, which is the same in all
 * processes, since their plans are the same. */
#include "train/data_parallel.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "train/trace.h"
#include "train/trainer.h"

struct laci_data_parallel {
  laci_comm *comm;
  laci_trainer *trainer;
  laci_bucket *buckets;
  int n_buckets, n_begun; /* number of buckets, and of sums that were begun in this step */
  int64_t *offsets;       /* [n_buckets] offset of each bucket in the gradients, in the order of
                             process 0 */
  laci_comm_sum **sums;   /* [n_buckets] the sum over all processes of each bucket */
  laci_comm_sum *of_statistics;
  double *losses; /* [size of the group] loss of each process in a step */
  bool has_voted; /* true: the vote of this step has ended, and all processes have read their
                     batches */
  laci_data_parallel_times times;
  laci_trace *trace; /* where steps are recorded; NULL: they are not */
};

/* ---- Creating ---- */

/* Sets the order of the buckets to that of process 0. Plans, and with them the order in which
 * buckets become final, may differ between processors. */
static lac_status broadcast_bucket_order(laci_data_parallel *s, lac_error *err) {
  const size_t n = (size_t)s->n_buckets;
  int64_t *offsets = s->offsets;
  for (size_t b = 0; b < n; b++) offsets[b] = s->buckets[b].offset;
  lac_status st = laci_comm_broadcast(s->comm, offsets, n * sizeof *offsets, err);
  for (size_t b = 0; b < n && !st; b++) {
    size_t at = b;
    while (at + 1 < n && s->buckets[at].offset != offsets[b]) at++;
    const laci_bucket here = s->buckets[b];
    s->buckets[b] = s->buckets[at];
    s->buckets[at] = here;
  }
  return st;
}

static lac_status create_bucket_sums(laci_data_parallel *s, laci_wire wire, lac_error *err) {
  int64_t n_statistics;
  (void)laci_trainer_statistics(s->trainer, &n_statistics);
  s->sums = laci_alloc((size_t)s->n_buckets, sizeof(laci_comm_sum *));
  s->losses = laci_alloc((size_t)laci_comm_size(s->comm), sizeof *s->losses);
  s->offsets = laci_alloc((size_t)s->n_buckets, sizeof *s->offsets);
  if (!s->sums || !s->losses || !s->offsets)
    return laci_fail_memory(err, "sums over all processes");
  lac_status st =
      laci_comm_sum_create(s->comm, n_statistics, LACI_WIRE_F32, &s->of_statistics, err);
  for (int b = 0; b < s->n_buckets && !st; b++) {
    st = laci_comm_sum_create(s->comm, s->buckets[b].count, wire, &s->sums[b], err);
  }
  return st;
}

/* Limits for the size of a bucket, in bytes. Sums of small buckets begin early and overlap better
 * with computation, but each needs messages of its own. */
enum { BUCKETS = 16, LEAST_BUCKET = 256 << 10, MOST_BUCKET = 4 << 20 };

static size_t choose_bucket_bytes(const laci_trainer *trainer,
                                  const laci_data_parallel_options *options) {
  const laci_training_graph *graph = laci_trainer_graph(trainer);
  const laci_parameter *parameters = laci_trainer_parameters(trainer);
  size_t all = 0;
  if (options->bucket) return options->bucket;
  for (int p = 0; p < graph->n_params; p++) all += (size_t)parameters[p].count * sizeof(float);
  size_t part = all / BUCKETS;
  return part < LEAST_BUCKET ? LEAST_BUCKET : part > MOST_BUCKET ? MOST_BUCKET : part;
}

static lac_status init_data_parallel(laci_data_parallel *s, laci_trainer *trainer,
                                     const laci_data_parallel_options *options, lac_error *err) {
  if (!s) return laci_fail_memory(err, "what processes share");
  s->comm = options->comm;
  s->trainer = trainer;
  lac_status st = laci_trainer_make_buckets(trainer, choose_bucket_bytes(trainer, options),
                                            &s->buckets, &s->n_buckets, err);
  return st ? st : create_bucket_sums(s, options->wire, err);
}

lac_status laci_data_parallel_create(laci_trainer *trainer,
                                     const laci_data_parallel_options *options,
                                     laci_data_parallel **share, lac_error *err) {
  *share = NULL;
  laci_data_parallel *s = laci_alloc(1, sizeof *s);
  lac_status st = init_data_parallel(s, trainer, options, err);
  st = laci_comm_agree_on_status(options->comm, st, err);
  if (!st) st = broadcast_bucket_order(s, err);
  if (st) laci_data_parallel_destroy(s);
  else *share = s;
  return st;
}

void laci_data_parallel_destroy(laci_data_parallel *s) {
  if (!s) return;
  for (int b = 0; b < s->n_buckets && s->sums; b++) laci_comm_sum_destroy(s->sums[b]);
  laci_comm_sum_destroy(s->of_statistics);
  laci_free(s->buckets);
  laci_free(s->sums);
  laci_free(s->losses);
  laci_free(s->offsets);
  laci_free(s);
}

/* ---- Sending the state of process 0 ---- */

static lac_status broadcast_floats(laci_comm *comm, float *floats, int64_t n, lac_error *err) {
  return floats ? laci_comm_broadcast(comm, floats, (size_t)n * sizeof *floats, err) : LAC_OK;
}

lac_status laci_data_parallel_broadcast_state(laci_data_parallel *s, uint8_t *masks, void *note,
                                              size_t note_bytes, lac_error *err) {
  if (!s) return LAC_OK;
  laci_optimizer *optimizer = laci_trainer_optimizer(s->trainer);
  const int64_t n = laci_optimizer_count_floats(optimizer);
  int64_t n_statistics, steps = laci_optimizer_steps(optimizer);
  float *statistics = laci_trainer_statistics(s->trainer, &n_statistics);
  lac_status st = laci_comm_broadcast(s->comm, note, note_bytes, err);
  if (!st) st = laci_comm_broadcast(s->comm, &steps, sizeof steps, err);
  if (!st) st = broadcast_floats(s->comm, laci_trainer_weights(s->trainer), n, err);
  if (!st) st = broadcast_floats(s->comm, statistics, n_statistics, err);
  if (!st) st = broadcast_floats(s->comm, laci_trainer_average_weights(s->trainer), n, err);
  if (!st) {
    st = broadcast_floats(s->comm, laci_trainer_average_statistics(s->trainer), n_statistics, err);
  }
  for (int k = 0; k < laci_optimizer_count_slots(optimizer) && !st; k++) {
    st = broadcast_floats(s->comm, laci_optimizer_slot(optimizer, k), n, err);
  }
  if (!st && masks) st = laci_comm_broadcast(s->comm, masks, (size_t)n, err);
  if (!st) laci_optimizer_set_steps(optimizer, steps);
  return st;
}

/* ---- A step ---- */

/* Ends the vote on whether all processes have their batches; if one has none, all stop. mine:
 * status of this process. The vote was begun before the batch, so that the answers are here when
 * they are needed. */
static lac_status end_batch_vote(laci_data_parallel *s, lac_status mine, lac_error *err) {
  uint32_t any = 0;
  lac_status st = laci_comm_vote_end(s->comm, &any, err);
  s->has_voted = true;
  if (st || !any) return st;
  return laci_comm_agree_on_status(s->comm, mine, err);
}

lac_status laci_data_parallel_end_failed_step(laci_data_parallel *s, lac_status mine, int n_batches,
                                              lac_error *err) {
  if (!s) return mine;
  lac_error lost = {0};
  lac_status st = laci_comm_vote_begin(s->comm, 1, &lost);
  if (!st) st = laci_comm_vote_wait(s->comm, n_batches, &lost);
  if (!st) return end_batch_vote(s, mine, err);
  return err ? laci_fail(err, st, "%s", lost.text) : st;
}

static lac_status begin_sum_of_bucket(void *context, int bucket, lac_error *err) {
  laci_data_parallel *s = context;
  if (!s->has_voted) {
    lac_status st = end_batch_vote(s, LAC_OK, err);
    if (st) return st;
  }
  const laci_bucket *b = &s->buckets[bucket];
  laci_comm_sum_begin(s->sums[bucket], laci_trainer_gradients(s->trainer) + b->offset, b->count);
  s->n_begun++;
  return LAC_OK;
}

static void poll_sums(void *context) {
  const laci_data_parallel *s = context;
  laci_comm_advance_sums(s->comm);
}

/* Replaces the running statistics of all processes by their means. Processes have different images,
 * and so different statistics. */
static lac_status average_statistics(laci_data_parallel *s, lac_error *err) {
  int64_t n;
  float *statistics = laci_trainer_statistics(s->trainer, &n);
  const float part = 1.0F / (float)laci_comm_size(s->comm);
  laci_comm_sum_begin(s->of_statistics, statistics, n);
  lac_status st = laci_comm_sum_end(s->of_statistics, err);
  for (int64_t at = 0; at < n && !st; at++) statistics[at] *= part;
  return st;
}

static lac_status average_loss(laci_data_parallel *s, int n_batches, double *loss, lac_error *err) {
  const int size = laci_comm_size(s->comm);
  double sum = 0;
  lac_status st = laci_comm_gather(s->comm, loss, sizeof *loss, s->losses, err);
  for (int k = 0; k < size && !st; k++) sum += s->losses[k];
  *loss = sum / ((double)n_batches * size);
  return st;
}

/* Measures how long sums were in progress in total; overlapping times count once. waited: seconds
 * that the step waited for them. */
static void measure_sum_times(laci_data_parallel *s, double waited) {
  double busy = 0, until = 0;
  for (int b = 0; b < s->n_buckets; b++) {
    laci_comm_times t = laci_comm_sum_times(s->sums[b]);
    double from = t.begun > until ? t.begun : until;
    if (t.done > from) busy += t.done - from;
    if (t.done > until) until = t.done;
  }
  s->times = (laci_data_parallel_times){.busy = busy, .waited = waited};
}

static lac_status end_bucket_sums(laci_data_parallel *s, lac_error *err) {
  const double begin = laci_clock_seconds();
  lac_status st = LAC_OK;
  for (int b = 0; b < s->n_buckets && !st; b++) st = laci_comm_sum_end(s->sums[b], err);
  if (st) return st;
  measure_sum_times(s, laci_clock_seconds() - begin);
  for (int b = 0; b < s->n_buckets && s->trace; b++) {
    laci_trace_record_sum(s->trace, b, laci_comm_sum_times(s->sums[b]),
                          (size_t)s->buckets[b].count * sizeof(float));
  }
  return LAC_OK;
}

lac_status laci_data_parallel_run_early_batch(laci_data_parallel *s, const float *images,
                                              const float *labels, double *loss, lac_error *err) {
  const laci_batch_watch watch = {.ignores_interrupt = true};
  float part = 0;
  lac_status st = laci_trainer_run_batch_watched(s->trainer, images, labels, &part, &watch, err);
  *loss += (double)part;
  return st;
}

lac_status laci_data_parallel_run_last_batch(laci_data_parallel *s, const float *images,
                                             const float *labels, int n_batches, double *loss,
                                             lac_error *err) {
  const laci_batch_watch watch = {.buckets = s->buckets,
                                  .n_buckets = s->n_buckets,
                                  .ready = begin_sum_of_bucket,
                                  .after_step = poll_sums,
                                  .context = s,
                                  .begins = s->trace ? laci_trace_step_begin_times(s->trace) : NULL,
                                  .seconds = s->trace ? laci_trace_step_durations(s->trace) : NULL,
                                  .ignores_interrupt = true};
  float part = 0;
  s->has_voted = false;
  s->n_begun = 0;
  lac_status st = laci_comm_vote_begin(s->comm, 0, err);
  if (!st) st = laci_trainer_run_batch_watched(s->trainer, images, labels, &part, &watch, err);
  if (st) return st;
  *loss += (double)part;
  laci_trainer_set_n_batches(s->trainer, n_batches * laci_comm_size(s->comm));
  st = end_bucket_sums(s, err);
  if (!st) st = average_statistics(s, err);
  return st ? st : average_loss(s, n_batches, loss, err);
}

/* ---- Queries ---- */

laci_data_parallel_times laci_data_parallel_times_of_last_step(const laci_data_parallel *s) {
  return s->times;
}
int laci_data_parallel_count_buckets(const laci_data_parallel *s) { return s ? s->n_buckets : 0; }

void laci_data_parallel_set_trace(laci_data_parallel *s, laci_trace *trace) {
  if (s) s->trace = trace;
}
