/* SPDX-License-Identifier: Apache-2.0
 * Gradients as graph nodes: every operator has a rule (laci_op.gradient) that adds the nodes for
 * its part of the chain rule, and the builder walks the network backwards once, calling the rules
 * and adding up what they contribute. An engine then runs forward and backward as one plan and
 * learns nothing about training.
 *
 * Part one is for callers, part two for authors of rules, part three lists the internal operators
 * (domain "lacuna") that rules use where ONNX has none. Next: training_graph.h (a model's graph
 * made trainable), gradient.c, and ops/add.c, ops/relu.c, ops/conv.c for rules. */
#ifndef LACI_GRAPH_GRADIENT_H
#define LACI_GRAPH_GRADIENT_H

#include "graph/graph.h"

/* ---- One: for callers */

/** Adds nodes to a finished and inferred graph so that the value grad_values[i] is d loss / d
 * params[i], of the parameter's type; all zeros where the loss does not depend on the parameter.
 * Several parameters may share one gradient value, which may be a stored tensor.
 *
 *  loss     a float value of one element
 *  params   values: graph inputs or stored tensors, float; shapes of all values between them and
 *           the loss must be known (fix the batch first)
 *
 * Only paths that lead from a parameter to the loss get nodes. New nodes come after the old ones,
 * last layer first; their order and names depend on nothing but the graph. The graph stays finished
 * and inferred: nodes are sorted, ids of old values stay. Nothing becomes a graph output. Fails
 * LAC_UNSUPPORTED naming node and operator where a node on such a path has no gradient, or none for
 * its attributes; the caller then destroys the graph. */
LAC_MUST_CHECK lac_status laci_gradient_build(laci_graph *graph, int loss, int n_params,
                                              const int *params, int *grad_values, lac_error *err);

/* ---- Two: for rules. They call the builder `b`; `node` is valid during the whole rule. */

/** The state of the builder as a rule sees it. The first failure is kept: helpers called after it,
 * or with a value of -1, do nothing and return -1, so a rule reads like its formula. A rule ends
 * with laci_gradient_status. */
typedef struct laci_gradient_builder laci_gradient_builder;

/** Returns the value of d loss / d output `port` of the node; -1: no gradient reaches that output.
 * This can happen for the first output too. */
int laci_gradient_of(laci_gradient_builder *b, const laci_node *node, int port);
/** Must the rule contribute a gradient to input `port`? False too where the input is absent. */
bool laci_gradient_is_needed(const laci_gradient_builder *b, const laci_node *node, int port);
/** Contributes `gradient` to input `port`. It must have the input's shape. Does nothing where no
 * gradient of that input is needed. */
void laci_gradient_contribute(laci_gradient_builder *b, const laci_node *node, int port,
                              int gradient);
/** Contributes `gradient` to input `port`, summed over the axes along which the input was
 * broadcast, and reshaped to the input's shape. */
void laci_gradient_contribute_broadcast(laci_gradient_builder *b, const laci_node *node, int port,
                                        int gradient);
/** A gradient rule for operators whose derivative is zero wherever it exists, such as Round and
 * Sign. */
lac_status laci_gradient_contribute_zero(laci_gradient_builder *b, const laci_node *node);
/** Returns the status of the rule: LAC_OK, or its first failure. */
LAC_MUST_CHECK lac_status laci_gradient_status(const laci_gradient_builder *b);
/** Fails LAC_UNSUPPORTED with "NODE (Operator): text": this form of the operator has no gradient.
 * */
lac_status laci_gradient_fail_unsupported(laci_gradient_builder *b, const laci_node *node,
                                          const char *text);

/** A new node of up to eight outputs; inputs and attrs are copied. inputs may hold LACI_ABSENT;
 * domain NULL is ai.onnx in its newest version. laci_gradient_add_node returns the first output,
 * and writes all of them to outputs[n_outputs] where that is not NULL. */
enum { LACI_ABSENT = -2, LACI_GRADIENT_OUTPUTS = 8 };
typedef struct laci_gradient_node {
  const char *type, *domain;
  int n_inputs, n_outputs, n_attrs; /* n_outputs 0 means 1 */
  const int *inputs;
  const laci_attr *attrs;
} laci_gradient_node;
int laci_gradient_add_node(laci_gradient_builder *b, const laci_gradient_node *node, int *outputs);

/** Add a node of one output to the graph, and return the output. */
int laci_gradient_add_unary(laci_gradient_builder *b, const char *type, int x);
int laci_gradient_add_binary(laci_gradient_builder *b, const char *type, int x, int y);
/* adds x * factor; returns x itself if factor is 1 */
int laci_gradient_add_scale(laci_gradient_builder *b, int x, double factor);
int laci_gradient_add_where(laci_gradient_builder *b, int condition, int x, int y);
int laci_gradient_add_transpose(laci_gradient_builder *b, int x, int rank, const int64_t *order);
/** Adds a Reshape of x to that shape; returns x itself if it has the shape already. */
int laci_gradient_add_reshape(laci_gradient_builder *b, int x, const laci_shape *shape);
int laci_gradient_add_expand(laci_gradient_builder *b, int x, const laci_shape *shape);
/** Adds a sum over the flagged axes; with keep they stay as axes of size 1. */
int laci_gradient_add_sum(laci_gradient_builder *b, int x, const bool flags[LACI_MAX_RANK],
                          bool keep);
/** Adds a sum over all axes that `shape` lacks or has with size 1, so that the result has that
 * shape. */
int laci_gradient_add_unbroadcast(laci_gradient_builder *b, int x, const laci_shape *shape);

/** Return stored tensors, one for each distinct content: a float scalar of x's type, a list of
 * integers, and a float tensor of x's type filled with one number. */
int laci_gradient_store_scalar(laci_gradient_builder *b, int x, double number);
int laci_gradient_store_ints(laci_gradient_builder *b, int n, const int64_t *ints);
int laci_gradient_store_filled(laci_gradient_builder *b, int x, const laci_shape *shape,
                               double number);

/** Return the shape and the type of a value. Every value that a rule sees has a known shape. Value
 * -1 gives rank 0. */
laci_shape laci_gradient_shape_of_value(const laci_gradient_builder *b, int value);
lac_dtype laci_gradient_dtype_of_value(const laci_gradient_builder *b, int value);
/** Returns the shape of input `port`; rank 0 where the input is absent. */
laci_shape laci_gradient_shape_of_input(const laci_gradient_builder *b, const laci_node *node,
                                        int port);
/** Returns the content of input `port` if inference knows it, else NULL. */
const laci_buf *laci_gradient_known_content(const laci_gradient_builder *b, const laci_node *node,
                                            int port);

/* ---- Three: internal operators, domain "lacuna", each in a file of graph/ops/internal
 *
 * Attributes "input_shape" and the like are lists of integers; window attributes (kernel_shape,
 * strides, pads, dilations, ceil_mode, count_include_pad) are ONNX's, always all written out, with
 * auto_pad resolved. dY is d loss / d Y.
 *
 *  BatchNormTrain        X [N,C,...], scale [C], bias [C], running_mean [C], running_var [C] ->
 *                        Y, mean [C], var [C], new_running_mean [C], new_running_var [C];
 *                        epsilon, momentum, fixed
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
