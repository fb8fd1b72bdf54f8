/* SPDX-License-Identifier: Apache-2.0
 * A network in training: one plan that goes forward and backward, and flat buffers for all that
 * changes.
 *
 * A step is: gradients of one or more batches (added up), then an update by the optimizer. Weights
 * stay float32 whatever the plan computes in. Images and labels are the caller's; so are rates,
 * epochs, files. Next: graph/training_graph.h (what the plan computes), optimizer.h. */
#ifndef LACI_TRAIN_TRAINER_H
#define LACI_TRAIN_TRAINER_H

#include "graph/training_graph.h"
#include "train/optimizer.h"

typedef struct laci_budget laci_budget;
typedef struct laci_engine laci_engine;
typedef struct laci_engine_weight laci_engine_weight;

typedef struct laci_trainer laci_trainer;

typedef struct laci_trainer_options {
  laci_training_options graph;
  laci_optimizer_options optimizer;
  const char *engine;                /* as in laci_engine_options; NULL: the default */
  int threads;                       /* <= 0: the cores this process may use */
  bool bf16;                         /* images, activations and their gradients in bf16 */
  bool dense_only;                   /* no sparse kernels under masks: laci_engine_options has it */
  bool remat;                        /* less memory, more work: the engine may compute values of the
                                        forward part once more for gradients (its `recompute`) */
  const laci_engine_weight *weights; /* what is known of the model's stored tensors, by its values:
                                        what is trained stays so in every step */
  int n_weights;
  double ema;          /* decay of averages of weights and statistics, 0 <= d < 1; 0: none */
  bool shared;         /* several processes: memory for their gradients counts, too */
  laci_budget *budget; /* as that of laci_engine_options; with the optimizer's state */
} laci_trainer_options;

/** Plans the training of `model`, a finished classifier, which must outlive the trainer. Weights
 * and running statistics start as the model's. Fails as laci_training_graph_create,
 * laci_engine_create and laci_optimizer_create do. */
LAC_MUST_CHECK lac_status laci_trainer_create(const laci_graph *model,
                                              const laci_trainer_options *options,
                                              laci_trainer **trainer, lac_error *err);
void laci_trainer_destroy(laci_trainer *trainer); /* NULL is fine */

/** The graph with its parameters, for names, shapes and kinds. */
const laci_training_graph *laci_trainer_graph(const laci_trainer *trainer);
/** Where each parameter is in the flat buffers, in the graph's order. */
const laci_parameter *laci_trainer_parameters(const laci_trainer *trainer);
laci_optimizer *laci_trainer_optimizer(laci_trainer *trainer);
float *laci_trainer_weights(laci_trainer *trainer); /* [laci_optimizer_size] */
/** Since the last update, in the same places. Who has sums of more batches than the trainer may put
 * them there, with laci_trainer_count. */
float *laci_trainer_gradients(laci_trainer *trainer);
/** The gradients are of so many batches. */
void laci_trainer_count(laci_trainer *trainer, int n_batches);
/** Running means and variances, one after the other; *n floats in all. */
float *laci_trainer_statistics(laci_trainer *trainer, int64_t *n);
/** The plan, one line per step, and its memory. */
const char *laci_trainer_plan_text(const laci_trainer *trainer);
size_t laci_trainer_memory(const laci_trainer *trainer);
int laci_trainer_threads(const laci_trainer *trainer);
/** The plan itself, for what its steps are. */
const laci_engine *laci_trainer_engine(const laci_trainer *trainer);
/** From now on every batch writes the seconds of each step of the plan there,
 * [laci_engine_step_count]; the caller's; NULL: no longer. */
void laci_trainer_watch(laci_trainer *trainer, double *seconds);

/** One batch: images [batch, ...] row-major, labels [batch, classes] probabilities. Its gradients
 * are added to those since the last update, its running statistics count. *loss is its mean loss;
 * logits [batch, classes] may be NULL. */
LAC_MUST_CHECK lac_status laci_trainer_batch(laci_trainer *trainer, const float *images,
                                             const float *labels, float *loss, float *logits,
                                             lac_error *err);
/** The same for a graph that matches targets (LACI_LOSS_MATCH): targets[n_targets], in the graph's
 * order and shapes. */
LAC_MUST_CHECK lac_status laci_trainer_match(laci_trainer *trainer, const float *images,
                                             const float *const *targets, float *loss,
                                             lac_error *err);
/** A range of the gradients' buffer that is final at once, while the batch goes on. */
typedef struct laci_bucket {
  int64_t offset, count; /* floats */
  size_t step;           /* of the plan, after which it is */
} laci_bucket;

/** Cuts the gradients into ranges of whole parameters, of so many bytes at most (one that is larger
 * for itself) and ever smaller ones towards the last, whose sum no computation is left to hide; in
 * the order in which they become final. Every parameter is in one of them. Free with laci_free.
 * Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_trainer_buckets(const laci_trainer *trainer, size_t bytes,
                                               laci_bucket **buckets, int *n, lac_error *err);

/** Who watches a batch. */
typedef struct laci_batch_watch {
  const laci_bucket *buckets; /* of laci_trainer_buckets, all of them */
  int n_buckets;              /* 0: none is wanted */
  /** Bucket k is final, with the gradients of the batches before added. A failure ends it. */
  lac_status (*ready)(void *context, int bucket, lac_error *err);
  void (*between)(void *context); /* after every step of the plan */
  void *context;
  double *begins, *seconds; /* as laci_engine_watch has them; NULL: not wanted */
  bool keeps_on;            /* an interrupt does not end the batch */
} laci_batch_watch;

/** laci_trainer_batch without logits, for somebody who watches. */
LAC_MUST_CHECK lac_status laci_trainer_batch_watched(laci_trainer *trainer, const float *images,
                                                     const float *labels, float *loss,
                                                     const laci_batch_watch *watch, lac_error *err);
/** The optimizer's step with the mean of the gradients since the last one. */
void laci_trainer_update(laci_trainer *trainer, double rate);

/** Averages over the updates (train/average.h) of the weights, [laci_optimizer_size], and of the
 * statistics, in the same places; NULL: not wanted. They begin as what is averaged was at the
 * start, and are the caller's to fill where a run goes on. */
float *laci_trainer_average(laci_trainer *trainer);
float *laci_trainer_average_statistics(laci_trainer *trainer);
/** They begin as the weights of now: for who changed these before the first step. */
void laci_trainer_begin_average(laci_trainer *trainer);
/** Averages and what they are averages of change places, until the next call; nothing happens where
 * there are none. No step is taken in between. */
void laci_trainer_exchange_average(laci_trainer *trainer);

/** Writes weights and running statistics into the stored tensors of `model`, in their own types. */
LAC_MUST_CHECK lac_status laci_trainer_store(const laci_trainer *trainer, laci_graph *model,
                                             lac_error *err);

#endif
