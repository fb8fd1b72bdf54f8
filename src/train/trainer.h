/* SPDX-License-Identifier: Apache-2.0
 * Trains a network: it has one plan for the forward and backward pass, and flat buffers for all
 * numbers that change.
 *
 * A step computes the gradients of one or more batches (added up); then the optimizer updates the
 * weights. Weights are float32, whatever type the plan computes in. The caller provides images,
 * labels and rates, and handles epochs and files. Next: graph/training_graph.h (what the plan
 * computes), optimizer.h. */
#ifndef LACI_TRAIN_TRAINER_H
#define LACI_TRAIN_TRAINER_H

#include "engine/engine.h"
#include "graph/training_graph.h"
#include "train/optimizer.h"

typedef struct laci_budget laci_budget;

typedef struct laci_trainer laci_trainer;

typedef struct laci_trainer_options {
  laci_training_options graph;
  laci_optimizer_options optimizer;
  laci_engine_options run;           /* how the plan runs. The trainer sets weights, budget, and
                                        what the caller promises. LACI_FINITE_SURE is replaced by
                                        LACI_FINITE_ASSUMED, since each step checks its loss */
  bool remat;                        /* true: saves memory. For gradients, the engine may compute
                                        values of the forward part a second time
                                        (laci_engine_options.recompute) */
  const laci_engine_weight *weights; /* facts about the model's stored tensors, which are identified
                                        by their values; they must remain true in every step */
  int n_weights;
  double ema;          /* decay d of the moving averages of weights and statistics, 0 <= d < 1; 0:
                          they are not kept */
  double clip_norm;    /* if the norm of a step's gradients is larger than this, they are scaled
                          down to it; 0: there is no limit */
  bool shared;         /* true: several processes train, and memory for exchanging gradients is
                          counted, too */
  laci_budget *budget; /* as laci_engine_options.budget; memory of the optimizer's state is counted,
                          too */
} laci_trainer_options;

/** Plans the training of `model`, a complete classifier, which must outlive the trainer. Weights
 * and running statistics start as the model's. Fails as laci_training_graph_create,
 * laci_engine_create and laci_optimizer_create do. */
LAC_MUST_CHECK lac_status laci_trainer_create(const laci_graph *model,
                                              const laci_trainer_options *options,
                                              laci_trainer **trainer, lac_error *err);
void laci_trainer_destroy(laci_trainer *trainer); /* trainer may be NULL */

/** Returns the training graph, which has the names, shapes and kinds of the parameters. */
const laci_training_graph *laci_trainer_graph(const laci_trainer *trainer);
/** Returns the positions of the parameters in the flat buffers, in the graph's order. */
const laci_parameter *laci_trainer_parameters(const laci_trainer *trainer);
laci_optimizer *laci_trainer_optimizer(laci_trainer *trainer);
float *laci_trainer_weights(laci_trainer *trainer); /* Returns the flat buffer of the weights,
                                                       [laci_optimizer_count_floats]. */
/** Returns the flat buffer of the gradients since the last update, at the same offsets as the
 * weights. A caller that has sums over more batches than the trainer may store them there. It must
 * then call laci_trainer_set_n_batches. */
float *laci_trainer_gradients(laci_trainer *trainer);
/** Sets the number of batches over which the gradients are summed. */
void laci_trainer_set_n_batches(laci_trainer *trainer, int n_batches);
/** Returns the running means and variances, one after the other, and sets *n to their number. */
float *laci_trainer_statistics(laci_trainer *trainer, int64_t *n);
/** laci_trainer_plan_text: returns the plan as text, one line for each step.
 * laci_trainer_count_memory_bytes: the plan's memory. laci_trainer_threads: its number of
 * threads. */
const char *laci_trainer_plan_text(const laci_trainer *trainer);
size_t laci_trainer_count_memory_bytes(const laci_trainer *trainer);
int laci_trainer_threads(const laci_trainer *trainer);
/** Returns the engine, which can tell about the steps of its plan. */
const laci_engine *laci_trainer_engine(const laci_trainer *trainer);
/** Makes every later batch write the duration of each step of the plan to seconds,
 * [laci_engine_step_count], an array of the caller; NULL: ends this. */
void laci_trainer_record_step_times(laci_trainer *trainer, double *seconds);

/** Computes one batch. images: [batch, ...] in row-major order. labels: [batch][classes]
 * probabilities. Its gradients are added to those since the last update, and the running statistics
 * are updated. *loss is its mean loss. logits: [batch][classes] result, or NULL. */
LAC_MUST_CHECK lac_status laci_trainer_run_batch(laci_trainer *trainer, const float *images,
                                                 const float *labels, float *loss, float *logits,
                                                 lac_error *err);
/** Computes one batch as laci_trainer_run_batch does, for a graph that matches targets
 * (LACI_LOSS_MATCH). targets: [n_targets] arrays, in the graph's order and shapes. */
LAC_MUST_CHECK lac_status laci_trainer_run_match_batch(laci_trainer *trainer, const float *images,
                                                       const float *const *targets, float *loss,
                                                       lac_error *err);
/** A bucket: a range of the gradients' buffer that becomes final at one step of the plan, while the
 * batch continues. */
typedef struct laci_bucket {
  int64_t offset, count; /* range of the bucket in the gradients' buffer, in floats: offset and
                            length */
  size_t step;           /* index of the plan's step after which the gradients of the bucket are
                            final */
} laci_bucket;

/** Divides the gradients into buckets of whole parameters, in the order in which they become final.
 * Each bucket has at most `bytes` bytes (or is one larger parameter). The last buckets are ever
 * smaller, since no computation is left during which they could be summed. Every parameter is in
 * one bucket. Free *buckets with laci_free. Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_trainer_make_buckets(const laci_trainer *trainer, size_t bytes,
                                                    laci_bucket **buckets, int *n, lac_error *err);

/** What a caller wants to be told about during a batch. */
typedef struct laci_batch_watch {
  const laci_bucket *buckets; /* all buckets that laci_trainer_make_buckets made */
  int n_buckets;              /* number of buckets; 0: buckets are not watched */
  /** Called when bucket number `bucket` is final, including the gradients of earlier batches. A
   * failure ends the batch. */
  lac_status (*ready)(void *context, int bucket, lac_error *err);
  void (*after_step)(void *context); /* called after every step of the plan */
  void *context;
  double *begins, *seconds; /* arrays for times, as in laci_engine_watch; NULL: times are not
                               recorded */
  bool ignores_interrupt;   /* true: an interrupt of the user does not end the batch */
} laci_batch_watch;

/** Computes a batch as laci_trainer_run_batch does, without logits, and with a watch. */
LAC_MUST_CHECK lac_status laci_trainer_run_batch_watched(laci_trainer *trainer, const float *images,
                                                         const float *labels, float *loss,
                                                         const laci_batch_watch *watch,
                                                         lac_error *err);
/** Returns the logits [batch][classes] of the last batch, if the caller gave no array for them.
 * They are valid until the next batch. */
const float *laci_trainer_last_logits(const laci_trainer *trainer);

/** Updates the weights: takes one step of the optimizer with the mean of the gradients since the
 * last update. The engine computes it if it can (laci_engine_update_weights). Fails as the engine
 * does; the weights are then undefined. */
LAC_MUST_CHECK lac_status laci_trainer_update(laci_trainer *trainer, double rate, lac_error *err);

/** Return the moving averages over the updates (train/average.h): of the weights,
 * [laci_optimizer_count_floats], and of the statistics, at the same offsets; NULL: they are not
 * kept. They start with the initial values. A run that goes on from a checkpoint must fill them. */
float *laci_trainer_average_weights(laci_trainer *trainer);
float *laci_trainer_average_statistics(laci_trainer *trainer);
/** Sets the moving averages to the current weights and statistics. For a caller that changed these
 * before the first step. */
void laci_trainer_reset_average(laci_trainer *trainer);
/** Exchanges the moving averages with the weights and statistics. A second call exchanges them
 * back. Does nothing if averages are not kept. No step may be taken in between. */
void laci_trainer_swap_average(laci_trainer *trainer);

/** Writes weights and running statistics into the stored tensors of `model`, in the types of these
 * tensors. */
LAC_MUST_CHECK lac_status laci_trainer_store_in_model(const laci_trainer *trainer,
                                                      laci_graph *model, lac_error *err);

#endif
