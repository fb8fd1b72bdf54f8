/* SPDX-License-Identifier: Apache-2.0
 * Gradients as graph nodes: every operator has a rule (laci_op.gradient) that adds the nodes of its
 * own chain rule, and the builder walks the network backwards once, calling the rules and adding up
 * what they contribute. An engine then runs forward and backward as one plan and learns nothing
 * about training.
 *
 * Part one is for callers, part two for authors of rules, part three lists the internal operators
 * (domain "lacuna") that rules use where ONNX has none. Next: training_graph.h (a model's graph
 * made trainable), gradient.c, and ops/add.c, ops/relu.c, ops/conv.c for rules. */
#ifndef LACI_GRAPH_GRADIENT_H
#define LACI_GRAPH_GRADIENT_H

#include "graph/graph.h"

/* ---- One: for callers */

/** Adds nodes to a finished and inferred graph so that grad_values[i] is d loss / d param i, a
 * value of the parameter's type; all zeros where the loss does not depend on it. Several parameters
 * may have the same value as gradient, and it may be a stored tensor.
 *
 *  loss     a float value of one element
 *  params   values: graph inputs or stored tensors, float; shapes of all values between them and
 *           the loss must be known (fix the batch first)
 *
 * Only paths that lead from a parameter to the loss get nodes. New nodes come after the old ones,
 * last layer first; their order and names depend on nothing but the graph. The graph stays finished
 * and inferred: nodes are sorted, ids of old values stay. Nothing becomes a graph output.
 * Fails LAC_UNSUPPORTED naming node and operator where one on such a path has no gradient, or not
 * in this form; the graph is then to be destroyed. */
LAC_MUST_CHECK lac_status laci_gradient_build(laci_graph *graph, int loss, int n_params,
                                              const int *params, int *grad_values, lac_error *err);

/* ---- Two: for rules. They call it `b`; node is their own, and stays valid. */

/** A rule's view of the work. The first failure stays: helpers called after it return -1 and do
 *  nothing, and so do helpers that are handed -1, so that a rule reads like its formula.
 *  laci_gradient_ok ends it. */
typedef struct laci_gradient_builder laci_gradient_builder;

/** d loss / d output `port` of the node; -1: nothing comes back through that output. The first
 *  output of a node whose rule is called may be among those. */
int laci_gradient_of(laci_gradient_builder *b, const laci_node *node, int port);
/** Must input `port` get a contribution? False too where it is absent. */
bool laci_gradient_wanted(const laci_gradient_builder *b, const laci_node *node, int port);
/** Contributes `gradient` to input `port`. It must have the input's shape. Ignored where it is not
 *  wanted. */
void laci_gradient_give(laci_gradient_builder *b, const laci_node *node, int port, int gradient);
/** The same, summed over the axes along which the input was broadcast, and in its shape. */
void laci_gradient_give_broadcast(laci_gradient_builder *b, const laci_node *node, int port,
                                  int gradient);
/** The rule of operators that are flat wherever they have a derivative: Round, Sign ... */
lac_status laci_gradient_zero(laci_gradient_builder *b, const laci_node *node);
/** Ends a rule. */
LAC_MUST_CHECK lac_status laci_gradient_ok(const laci_gradient_builder *b);
/** A form of the operator that has no gradient: LAC_UNSUPPORTED, "NODE (Operator): text". */
lac_status laci_gradient_refuse(laci_gradient_builder *b, const laci_node *node, const char *text);

/** A new node of up to eight outputs; what inputs and attrs point to is copied. inputs may hold
 *  LACI_ABSENT; domain NULL is ai.onnx in its newest version. The result is the first output; all
 * of them come back in outputs[n_outputs], where that is not NULL. */
enum { LACI_ABSENT = -2, LACI_GRADIENT_OUTPUTS = 8 };
typedef struct laci_gradient_node {
  const char *type, *domain;
  int n_inputs, n_outputs, n_attrs; /* n_outputs 0 is 1 */
  const int *inputs;
  const laci_attr *attrs;
} laci_gradient_node;
int laci_gradient_add(laci_gradient_builder *b, const laci_gradient_node *node, int *outputs);

/** The usual one-output nodes. */
int laci_gradient_unary(laci_gradient_builder *b, const char *type, int x);
int laci_gradient_binary(laci_gradient_builder *b, const char *type, int x, int y);
int laci_gradient_scale(laci_gradient_builder *b, int x, double factor); /* x where factor is 1 */
int laci_gradient_where(laci_gradient_builder *b, int condition, int x, int y);
int laci_gradient_transpose(laci_gradient_builder *b, int x, int rank, const int64_t *order);
/** In that shape: x itself where it has it already. */
int laci_gradient_reshape(laci_gradient_builder *b, int x, const laci_shape *shape);
int laci_gradient_expand(laci_gradient_builder *b, int x, const laci_shape *shape);
/** Sum over the flagged axes, which stay as size 1 where keep is set. */
int laci_gradient_sum(laci_gradient_builder *b, int x, const bool flags[LACI_MAX_RANK], bool keep);
/** Sum over all axes that `shape` lacks or has as 1, in that shape. */
int laci_gradient_unbroadcast(laci_gradient_builder *b, int x, const laci_shape *shape);

/** Stored tensors, one for each content: a float scalar of x's type, a list of integers, and a
 * float tensor full of one number. */
int laci_gradient_scalar(laci_gradient_builder *b, int x, double number);
int laci_gradient_ints(laci_gradient_builder *b, int n, const int64_t *ints);
int laci_gradient_full(laci_gradient_builder *b, int x, const laci_shape *shape, double number);

/** Every value that a rule meets has a known shape. -1 gives rank 0. */
laci_shape laci_gradient_shape(const laci_gradient_builder *b, int value);
lac_dtype laci_gradient_dtype(const laci_gradient_builder *b, int value);
/** Shape of input `port`; absent: rank 0. */
laci_shape laci_gradient_in_shape(const laci_gradient_builder *b, const laci_node *node, int port);
/** Content of an input of the node that inference knows, or NULL. */
const laci_buf *laci_gradient_known(const laci_gradient_builder *b, const laci_node *node,
                                    int port);

/* ---- Three: internal operators, domain "lacuna", each in a file of graph/ops/internal
 *
 * Attributes "input_shape" and the like are lists of integers; window attributes (kernel_shape,
 * strides, pads, dilations, ceil_mode, count_include_pad) are ONNX's, always all written out, with
 * auto_pad resolved. dY is d loss / d Y.
 *
 *  BatchNormTrain        X [N,C,...], scale [C], bias [C], running_mean [C], running_var [C]
 *     epsilon, momentum, -> Y, mean [C], var [C], new_running_mean [C], new_running_var [C]
 *     fixed
 *                        mean and var (biased) of this batch over N and space;
 *                        Y = (X - mean) / sqrt(var + epsilon) * scale + bias;
 *                        new_running = momentum * running + (1 - momentum) * (mean | var * n/(n-1))
 *                        fixed != 0: mean and var are the running ones, which stay: the last two
 *                        outputs are absent
 *  BatchNormTrainGrad    dY, X, scale, mean, var -> dX, dscale [C], dbias [C]; epsilon, fixed
 *  SoftmaxCrossEntropy   logits [N,C], labels [N,C] (probabilities) -> loss []
 *                        loss = -1/N sum over n, c of labels * log softmax(logits)
 *  SoftmaxCrossEntropyGrad  dloss [], logits, labels -> dlogits
 *  SquaredError          X, T -> loss [] = factor * sum (X - T)^2 / d; factor (1), relative (0):
 *                        d = sum T^2 where it is set (0 / 0 is 0), else 1
 *  SquaredErrorGrad      dloss [], X, T -> dX = dloss * 2 factor * (X - T) / d
 *  ConvGradInput         dY, W -> dX; input_shape, kernel_shape, strides, pads, dilations, group
 *  ConvGradWeight        X, dY -> dW; kernel_shape, strides, pads, dilations, group
 *                        (a bias gets a ReduceSum of dY over N and space)
 *  MaxPoolGrad           dY, X -> dX; kernel_shape, strides, pads, dilations, ceil_mode
 *                        the first of equal maxima in row-major order takes it
 *  AveragePoolGrad       dY -> dX; input_shape, kernel_shape, strides, pads, dilations, ceil_mode,
 *                        count_include_pad
 *  ReluGrad              dY, Y -> dX = dY where Y > 0, else 0 (Y, the output of Relu)
 *  ClipGrad              dY, X, min, max (scalars; may be absent) -> dX = dY where min < X < max
 *  UnaryGrad             dY, X -> dX = dY * f'(X); of: the operator's name, and its attributes. All
 *                        operators with laci_op.slope: Sigmoid Tanh Erf Gelu HardSwish Exp Sqrt ...
 *  SoftmaxGrad           dY, Y -> dX = (dY - sum(dY * Y)) * Y; axes: those that Softmax runs over
 *  LayerNormalizationGrad  dY, X, scale (broadcast to X) -> dX, dscale, dbias (in scale's shape);
 *     axis, epsilon      mean and variance over axes axis ... last
 *  GatherGrad            dY, indices -> dX; axis, input_shape: dY added up at its indices
 *  SliceGrad             dY -> dX; input_shape, starts, steps (one for each axis): dY written into
 *                        zeros at start + i * step
 */

#endif
