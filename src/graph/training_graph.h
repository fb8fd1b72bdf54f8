/* SPDX-License-Identifier: Apache-2.0
 * A model's graph made trainable: parameters become inputs, batch normalization takes its
 * statistics from the batch, a loss is added at the end, and gradients come out. The loss is that
 * of classes, or how far values are from those of another network; or there is none, and only
 * statistics come out.
 *
 * The result is an ordinary graph that any engine can run: it reads images, labels, parameters and
 * running statistics and writes loss, logits, gradients and new running statistics. The optimizer
 * works on its own flat buffers between two runs. Next: gradient.h. */
#ifndef LACI_GRAPH_TRAINING_GRAPH_H
#define LACI_GRAPH_TRAINING_GRAPH_H

#include "tensor/shape.h"

typedef struct laci_graph laci_graph;

/** What a parameter is, for weight decay and LARS. */
typedef enum laci_param_kind {
  LACI_PARAM_WEIGHT, /* of Conv, ConvTranspose, Gemm, MatMul, Gather (an embedding) */
  LACI_PARAM_BIAS,   /* of one of those, as an operand or added to its result; any other tensor that
                      * is broadcast into the data: position embeddings, scales of a layer */
  LACI_PARAM_NORM,   /* scale or bias of a normalization */
} laci_param_kind;

typedef struct laci_training_param {
  const char *name; /* that of the stored tensor */
  int stored;       /* its index in the model's graph */
  int input;        /* value in the training graph: a graph input, f32 unless the model says f64 */
  int gradient;     /* value in the training graph: a graph output of the same type */
  laci_shape shape;
  int64_t count;
  laci_param_kind kind;
} laci_training_param;

typedef struct laci_training_stat { /* a running mean or variance of one BatchNormalization */
  const char *name;
  int stored;
  int input;  /* before the step */
  int update; /* after it: a graph output */
  int64_t count;
} laci_training_stat;

/** What a training makes small. */
typedef enum laci_training_loss {
  LACI_LOSS_CLASSES, /* softmax cross-entropy of logits and labels */
  LACI_LOSS_MATCH,   /* sum |logits - t|^2 / batch + mean over blocks of sum |x - t|^2 / sum |t|^2,
                        x the value of a block and t its target, as are those of the logits */
  LACI_LOSS_NONE,    /* nothing: neither loss nor gradients nor parameters, only statistics */
  LACI_LOSS_TARGETS, /* nothing, too: what comes out is the targets that another one matches */
} laci_training_loss;

typedef struct laci_training_graph {
  laci_graph *graph;
  int images, labels; /* inputs; labels are class probabilities, f32 [batch, n_classes]; only of
                         LACI_LOSS_CLASSES, else -1 */
  int loss, logits;   /* outputs: [], [batch, n_classes]; -1: there is no loss */
  int64_t batch;
  int64_t n_classes; /* of LACI_LOSS_MATCH: elements of the logits for each of the batch */
  int n_targets;     /* of LACI_LOSS_MATCH: 1 + n_blocks, else 0 */
  int *targets;      /* inputs: of the logits, then of every block, in their shapes */
  int n_forward;     /* the first so many nodes are the forward part, all others its gradients */
  int n_params, n_stats;
  laci_training_param *params; /* in the order of the model's stored tensors */
  laci_training_stat *stats;
} laci_training_graph;

typedef struct laci_training_options {
  int64_t batch;         /* images a run, at least 1 */
  bool keep_statistics;  /* BatchNormalization as in inference: statistics are constants */
  bool batch_statistics; /* what comes out as running statistics are the batch's own */
  laci_training_loss loss;
  const int *blocks; /* [n_blocks] values of the model; of LACI_LOSS_MATCH and _TARGETS */
  int n_blocks;
  laci_shape image; /* [channels, height, width] where the model leaves them open; rank 0: not */
} laci_training_options;

/** The training graph of a finished and inferred graph of a classifier with one image input (fixed
 * sizes but for the batch); its first output are the logits (a last Softmax is left out of the
 * training graph, and axes of size 1 after the classes too). Trained are the stored float tensors
 * that are weights, biases, scales: not those of one element that no operator names as its
 * parameter, and not those that meet the image before any weight does (they prepare it). The
 * model's graph must outlive the result, whose constants are its bytes. Nodes that the logits do
 * not need are left out. Only LACI_LOSS_CLASSES needs logits of classes. Fails LAC_UNSUPPORTED,
 * naming it, where an operator has no gradient, and for several inputs; LAC_BAD_SHAPE where shapes
 * do not fit or the model works for another batch only. */
LAC_MUST_CHECK lac_status laci_training_graph_create(const laci_graph *model,
                                                     const laci_training_options *options,
                                                     laci_training_graph **made, lac_error *err);
void laci_training_graph_destroy(laci_training_graph *made);

/** The value of the model that counts as its logits: the first output, before a last softmax. */
int laci_training_logits(const laci_graph *model);

#endif
