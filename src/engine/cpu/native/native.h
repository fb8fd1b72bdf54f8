/* SPDX-License-Identifier: Apache-2.0
 * The native back end as the rest of the engine sees it. Layers are chosen before anything is
 * lowered. Native implementations are entries of the operators' lists of implementations
 * (lower/lower.h). What others may know about values in native layouts is in values.h. Read next:
 * layer.h. */
#ifndef LACI_ENGINE_CPU_NATIVE_NATIVE_H
#define LACI_ENGINE_CPU_NATIVE_NATIVE_H

#include "engine/cpu/lower/lower.h"
#include "engine/cpu/net.h"

/* ---- Choosing, sealing and destroying ---- */

/** Sets which layers may be native, from the options and the environment: LAC_SPARSE (0, all) and
 * LAC_ALGORITHM (a name of algorithms/algorithm.def). Fails LAC_BAD_ARGUMENT: no algorithm has that
 * name, or LAC_SPARSE has another value. choose/use.c */
LAC_MUST_CHECK lac_status laci_native_read_use_options(const laci_engine_options *options,
                                                       laci_native_use *use, lac_error *err);

/** Gives the net the costs of layers on this processor (costs/costs.h). Must be called before all
 * others. Fails as laci_costs_load does. choose/use.c */
LAC_MUST_CHECK lac_status laci_native_load_costs(laci_net *net, lac_error *err);
/** Finds the layers, chooses among them and assigns the layouts of values. The choice depends only
 * on shapes, zeros and the processor, so that a plan is the same every time. Must be called before
 * anything is lowered. */
void laci_native_choose_layers(laci_net *net);
/** A layer that the algorithm named by LAC_ALGORITHM cannot compute, and why. */
typedef struct laci_native_refusal {
  const char *algorithm, *node, *why; /* name of the algorithm; name of the node; text that says
                                         what prevents it */
} laci_native_refusal;
/** Finds the next layer that the algorithm named by LAC_ALGORITHM cannot compute, from layer *at
 * on, and sets *at to the layer after it; false: there are no more. */
bool laci_native_find_next_refusal(const laci_net *net, int *at, laci_native_refusal *refusal);
/** Finds the next layer, chosen or not, for whose weight a kernel skips zeros, from layer *at on,
 * and sets *at to the layer after it. Returns its node; -1: there are no more. */
int laci_native_find_next_sparse(const laci_net *net, int *at);
/** Predicts what a step costs, in units of costs/figures.def. info: the work of the step.
 * choose/predict.c */
double laci_native_predict_cost(laci_net *net, const laci_net_step *step,
                                const laci_engine_step *info);
/** Returns the time in seconds that corresponds to a cost, with the threads of the net. */
double laci_native_seconds_of_cost(const laci_net *net, double cost);
/** Was the fused node chosen to be a native layer? */
bool laci_native_is_chosen_layer(const laci_net *net, const laci_fused *fused);
/** Is the value, a result of a native layer, read within that layer alone? It is then stored
 * nowhere. */
bool laci_native_is_within_layer(const laci_net *net, int value);
/** Makes generated code executable. Called when everything is lowered. */
void laci_native_seal_code(laci_net *net);
void laci_native_destroy_layers(laci_net *net);

/* ---- Implementations ---- */

/** The implementation of layers that were chosen to be native: convolutions, products, pools and
 * sums. */
laci_lower_supports laci_can_lower_native;
laci_lower_function laci_lower_native;
/** Lowers the chosen move of bytes that computes the value, an output of a node; false: there is
 * none. */
bool laci_native_lower_output(laci_net *net, int value);
/** The implementation of the gradients of such layers' weights, in training under masks. */
laci_lower_supports laci_can_lower_native_gradient;
laci_lower_function laci_lower_native_gradient;
/** The implementation of batch normalizations with constant parameters whose results only native
 * layers read. */
laci_lower_supports laci_can_lower_native_norm;
laci_lower_function laci_lower_native_norm;
/** The implementation of products of few rows with a constant matrix of many zeros, by
 * kernel/sparse/vector. native/algorithms/vector.c */
laci_lower_supports laci_can_lower_product_sparse;
/** May kernel/sparse/vector be faster than a dense product, for a matrix of n_weights weights?
 * native/algorithms/costs.c */
bool laci_vector_kernel_may_be_faster(const laci_net *net, int64_t n_weights);
/** Is kernel/sparse/vector faster, if the share `kept` of the weights is not zero?
 * native/algorithms/costs.c */
bool laci_vector_kernel_is_faster(const laci_net *net, double kept);
/** Returns how many bytes products by kernel/sparse/vector save by storing their matrices without
 * zeros. */
double laci_native_bytes_saved_by_sparse_products(laci_net *net);
laci_lower_function laci_lower_product_sparse;
/** The implementations of training's batch normalization in HWC16N (kernel/sparse/image_norm.h),
 * where a native layer writes the input or reads the result, and of its gradient.
 * native/train/norm.c */
laci_lower_supports laci_can_lower_image_norm, laci_can_lower_image_norm_gradient;
laci_lower_function laci_lower_image_norm, laci_lower_image_norm_gradient;
/** The implementation of the sum of two values in HWC16N, in training. native/train/sum.c */
laci_lower_supports laci_can_lower_image_sum;
laci_lower_function laci_lower_image_sum;
/** The implementation of 3x3 convolutions of bf16 in training, and of the gradient of their input,
 * by kernel/convolution/winograd.h. Weights are dense. native/train/blocked_winograd.c */
laci_lower_supports laci_can_lower_conv_winograd;
laci_lower_function laci_lower_conv_winograd;
/** The implementation of ConvGradWeight in bf16, by kernel/convolution/weight_gradient.h.
 * native/train/blocked_weight_gradient.c */
laci_lower_supports laci_can_lower_conv_bf16_gradient;
laci_lower_function laci_lower_conv_bf16_gradient;

#endif
