/* SPDX-License-Identifier: Apache-2.0
 * A pruned network (the student) trained towards the dense one it came from (the teacher), without
 * labels: all parameters, masks fixed.
 *
 *   loss = 1/B sum over the batch |z - z'|^2 + mean over blocks of sum |x - x'|^2 / sum |x'|^2
 *
 * z are the student's logits, x the outputs of its blocks (blocks.h); z' and x' are the teacher's.
 * Both networks use batch normalization with running statistics, as in inference. Hinton et al.,
 * "Distilling the Knowledge in a Neural Network" (2015), with squared errors; blocks: Romero et
 * al., "FitNets" (2015). Next: refine.h (how long, and whether it is kept). */
#ifndef LACI_DISTILL_RECONSTRUCT_H
#define LACI_DISTILL_RECONSTRUCT_H

#include "tensor/shape.h"

typedef struct laci_budget laci_budget;
typedef struct laci_graph laci_graph;
typedef struct laci_trainer laci_trainer;

typedef struct laci_reconstruct_options {
  const uint8_t *const *masks; /* [n_stored] the mask of each stored tensor, a byte for each element
                                  in the tensor's order, 1 = kept; NULL, or a NULL entry: nothing is
                                  masked. Must outlive the reconstruction */
  int64_t batch;               /* number of samples in a training step */
  laci_shape image;            /* shape of an image, [channels, height, width], used if the network
                                  leaves these sizes open */
  const char *engine;          /* name of the engine that runs both networks; NULL: the fast
                                  engine */
  int threads;                 /* number of threads; <= 0: as many as cores that this process may
                                  use */
  bool bf16;                   /* activations and their gradients are bf16, in both networks */
  bool dense_only;             /* dense kernels are used for masked weights, too */
  const laci_budget *budget;   /* memory budget; NULL: no limit */
} laci_reconstruct_options;

typedef struct laci_reconstruct laci_reconstruct;

/** Plans the training steps of `student` towards `teacher`. The two graphs have the same structure,
 * different weights (graph/view.h) and one input; they must outlive the reconstruction. Fails
 * LAC_UNSUPPORTED where an operator has no gradient, naming the node, or weights are not f32;
 * LAC_MEMORY_LIMIT; as laci_trainer_create. */
LAC_MUST_CHECK lac_status laci_reconstruct_create(const laci_graph *student,
                                                  const laci_graph *teacher,
                                                  const laci_reconstruct_options *options,
                                                  laci_reconstruct **reconstruct, lac_error *err);
void laci_reconstruct_destroy(laci_reconstruct *reconstruct); /* NULL is fine */

/** Returns the number of targets: one for the logits, then one for each block's output. */
int laci_reconstruct_count_targets(const laci_reconstruct *reconstruct);
/** Returns the number of floats of target k for one sample. */
int64_t laci_reconstruct_floats_of_target(const laci_reconstruct *reconstruct, int k);
/** Returns the number of floats of one sample of the input. */
int64_t laci_reconstruct_floats_of_image(const laci_reconstruct *reconstruct);
/** Runs the teacher on a batch of images and writes the targets that the student is to reproduce.
 * targets[k] is [batch, laci_reconstruct_floats_of_target(k)]; k = 0 is the logits, k >= 1 a
 * block's output. */
LAC_MUST_CHECK lac_status laci_reconstruct_run_teacher(laci_reconstruct *reconstruct,
                                                       const float *images, float *const *targets,
                                                       lac_error *err);
/** Runs one training step at this learning rate; *loss is the loss before the step. Fails
 * LAC_BAD_VALUE where the loss is not finite: the weights are then unchanged. */
LAC_MUST_CHECK lac_status laci_reconstruct_train_step(laci_reconstruct *reconstruct,
                                                      const float *images,
                                                      const float *const *targets, double rate,
                                                      float *loss, lac_error *err);
/** Writes the student's current weights and running statistics into the model's stored tensors. */
LAC_MUST_CHECK lac_status laci_reconstruct_store_student(const laci_reconstruct *reconstruct,
                                                         laci_graph *model, lac_error *err);
/** Returns the trainer of the student, which has its weights, gradients and plan. */
laci_trainer *laci_reconstruct_trainer(laci_reconstruct *reconstruct);

#endif
