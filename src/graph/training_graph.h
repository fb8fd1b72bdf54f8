/* SPDX-License-Identifier: Apache-2.0
 * A model's graph made trainable: parameters become inputs, batch normalization takes its
 * statistics from the batch, a loss is added at the end, and gradients come out. The loss is
 * cross-entropy of classes, or the distance of values from those of another network; or there is no
 * loss, and only statistics are outputs.
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
  LACI_PARAM_WEIGHT, /* weight of Conv, ConvTranspose, Gemm, MatMul, Gather (an embedding) */
  /* bias of such a layer, as an operand or added to its result; also any other tensor that is
   * broadcast into the data: position embeddings, scales of a layer */
  LACI_PARAM_BIAS,
  LACI_PARAM_NORM, /* scale or bias of a normalization */
} laci_param_kind;

typedef struct laci_training_param {
  const char *name; /* the name of the stored tensor */
  int stored;       /* index of the stored tensor in the model's graph */
  int input;        /* value in the training graph: a graph input, f32 unless the model says f64 */
  int gradient;     /* value in the training graph: a graph output of the same type */
  laci_shape shape;
  int64_t count;
  laci_param_kind kind;
} laci_training_param;

typedef struct laci_training_stat { /* a running mean or variance of one BatchNormalization */
  const char *name;
  int stored;
  int input;  /* value in the training graph: a graph input, the statistic before the step */
  int update; /* value in the training graph: a graph output, the statistic after the step */
  int64_t count;
} laci_training_stat;

/** What training minimizes. */
typedef enum laci_training_loss {
  LACI_LOSS_CLASSES, /* softmax cross-entropy of logits and labels */
  /* sum |logits - t|^2 / batch + mean over blocks of sum |x - t|^2 / sum |t|^2, where x is the
   * value of a block and each t is a target, an input of the training graph */
  LACI_LOSS_MATCH,
  LACI_LOSS_NONE, /* no loss, no gradients, no parameters: only statistics */
  /* no loss either: the outputs are the targets for another training graph with LACI_LOSS_MATCH */
  LACI_LOSS_TARGETS,
} laci_training_loss;

typedef struct laci_training_graph {
  laci_graph *graph;
  /* values that are graph inputs. labels: class probabilities, f32 [batch, n_classes]; -1 unless
   * the loss is LACI_LOSS_CLASSES */
  int images, labels;
  int loss, logits; /* outputs of shapes [] and [batch, n_classes]; -1: there is no loss */
  int64_t batch;
  /* number of classes; with LACI_LOSS_MATCH, the number of elements of the logits for each
   * sample */
  int64_t n_classes;
  int n_targets; /* 1 + n_blocks with LACI_LOSS_MATCH, else 0 */
  /* [n_targets] values that are graph inputs and hold the targets: first that of the logits, then
   * that of each block, each in the shape of its value */
  int *targets;
  /* the first n_forward nodes are the forward part, all others compute gradients */
  int n_forward;
  int n_params, n_stats;
  laci_training_param *params; /* [n_params] the parameters, in the order of the model's stored
                                  tensors */
  laci_training_stat *stats;
} laci_training_graph;

typedef struct laci_training_options {
  int64_t batch; /* images in one run, at least 1 */
  /* BatchNormalization works as in inference: its statistics are constants */
  bool keep_statistics;
  /* the outputs for running statistics give the statistics of the batch alone, not averages */
  bool batch_statistics;
  laci_training_loss loss;
  const int *blocks; /* [n_blocks] values of the model, for LACI_LOSS_MATCH and _TARGETS */
  int n_blocks;
  /* shape of an image, [channels, height, width], used where the model leaves these sizes open;
   * rank 0: not given */
  laci_shape image;
} laci_training_options;

/** Builds the training graph from the finished and inferred graph of a classifier with one image
 * input (fixed sizes but for the batch); its first output is the logits (a last Softmax is left out
 * of the training graph, and so are axes of size 1 after the classes). Stored float tensors that
 * are weights, biases or scales become parameters. Tensors of one element that no operator names as
 * its parameter are not trained, and neither are tensors applied to the image before any weight
 * (preprocessing). The model's graph must outlive the result, whose constants are its bytes. Nodes
 * that the logits do not need are left out. Only LACI_LOSS_CLASSES needs logits of classes. Fails
 * LAC_UNSUPPORTED, naming it, where an operator has no gradient, and for several inputs;
 * LAC_BAD_SHAPE where shapes do not fit or the model works for another batch only. */
LAC_MUST_CHECK lac_status laci_training_graph_create(const laci_graph *model,
                                                     const laci_training_options *options,
                                                     laci_training_graph **made, lac_error *err);
void laci_training_graph_destroy(laci_training_graph *made);

/** Returns the value of the model that counts as its logits: the first output, or the input of a
 * Softmax that computes it. */
int laci_training_find_logits(const laci_graph *model);

#endif
