/* SPDX-License-Identifier: Apache-2.0
 * A pruned network (the student) trained towards the dense one it came from (the teacher), without
 * labels: all parameters, masks fixed.
 *
 *   loss = 1/B sum over the batch |z - z'|^2 + mean over blocks of sum |x - x'|^2 / sum |x'|^2
 *
 * z are the logits, x what a block gives (blocks.h), both of the student; z' and x' the teacher's.
 * Batch normalization is as deployed, in both.
 * Hinton et al., "Distilling the Knowledge in a Neural Network" (2015), with squared errors;
 * blocks: Romero et al., "FitNets" (2015). Next: refine.h (how long, and whether it is kept). */
#ifndef LACI_DISTILL_RECONSTRUCT_H
#define LACI_DISTILL_RECONSTRUCT_H

#include "tensor/shape.h"

typedef struct laci_budget laci_budget;
typedef struct laci_graph laci_graph;
typedef struct laci_trainer laci_trainer;

typedef struct laci_reconstruct_options {
  const uint8_t *const *masks; /* [n_stored] bytes in the weight's own order, 1 = kept; entries and
                                  all may be NULL: dense. For as long as the reconstruction lives */
  int64_t batch;               /* samples a step */
  laci_shape image;            /* [channels, height, width] where the network leaves them open */
  int threads;                 /* <= 0: the cores this process may use */
  bool bf16;                   /* activations and their gradients, of both networks */
  bool dense_only;             /* no sparse kernels under masks */
  const laci_budget *budget;   /* NULL: no limit */
} laci_reconstruct_options;

typedef struct laci_reconstruct laci_reconstruct;

/** Plans the steps by which `student` comes nearer to `teacher`: two graphs of one shape with other
 * weights (graph/view.h), which outlive the reconstruction and have one input. Fails
 * LAC_UNSUPPORTED with the node where an operator has no gradient, where weights are not f32;
 * LAC_MEMORY_LIMIT; as laci_trainer_create. */
LAC_MUST_CHECK lac_status laci_reconstruct_create(const laci_graph *student,
                                                  const laci_graph *teacher,
                                                  const laci_reconstruct_options *options,
                                                  laci_reconstruct **reconstruct, lac_error *err);
void laci_reconstruct_destroy(laci_reconstruct *reconstruct); /* NULL is fine */

/** Targets of a step: that of the logits, then those of blocks. */
int laci_reconstruct_targets(const laci_reconstruct *reconstruct);
/** Floats of target k for one sample. */
int64_t laci_reconstruct_target_size(const laci_reconstruct *reconstruct, int k);
/** Floats of one sample of the input. */
int64_t laci_reconstruct_image_size(const laci_reconstruct *reconstruct);
/** What the teacher makes of a batch: targets[k] is [batch, size]. */
LAC_MUST_CHECK lac_status laci_reconstruct_teach(laci_reconstruct *reconstruct, const float *images,
                                                 float *const *targets, lac_error *err);
/** One step at that rate; *loss is that before it. Fails LAC_BAD_VALUE where it is no finite
 * number: nothing is stored then. */
LAC_MUST_CHECK lac_status laci_reconstruct_step(laci_reconstruct *reconstruct, const float *images,
                                                const float *const *targets, double rate,
                                                float *loss, lac_error *err);
/** Writes the student's weights and running statistics as they are now. */
LAC_MUST_CHECK lac_status laci_reconstruct_store(const laci_reconstruct *reconstruct,
                                                 laci_graph *model, lac_error *err);
/** Its weights, gradients, plan. */
laci_trainer *laci_reconstruct_trainer(laci_reconstruct *reconstruct);

#endif
