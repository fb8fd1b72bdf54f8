/* SPDX-License-Identifier: Apache-2.0
 * The native back end as others see it: layers are chosen before anything is lowered, and its
 * implementations stand in the lists of operators (lower/lower.h). What others may know of how a
 * value of its layers is stored is in values.h. Next: layer.h. */
#ifndef LACI_ENGINE_CPU_NATIVE_NATIVE_H
#define LACI_ENGINE_CPU_NATIVE_NATIVE_H

#include "engine/cpu/lower/lower.h"
#include "engine/cpu/net.h"

/* ---- Choice and life ---- */

/** What options and environment say: LAC_SPARSE (0, all) and LAC_ALGORITHM (a name of
 * algorithms/algorithm.def). Fails LAC_BAD_ARGUMENT: no algorithm has that name. choose/use.c */
LAC_MUST_CHECK lac_status laci_native_use_of(const laci_engine_options *options,
                                             laci_native_use *use, lac_error *err);

/** Gives the net what layers cost here (costs/costs.h), before anything is asked. Fails as
 * laci_costs_now. choose/use.c */
LAC_MUST_CHECK lac_status laci_native_begin(laci_net *net, lac_error *err);
/** Finds layers, chooses among them and lays them out: from shapes, zeros and instructions alone,
 * so that a plan is the same every time. Before anything is lowered. */
void laci_native_choose(laci_net *net);
/** Has a chosen layer the fused node? */
bool laci_native_has_layer(const laci_net *net, const laci_fused *fused);
/** Generated code becomes executable: once all is lowered. */
void laci_native_seal(laci_net *net);
void laci_native_destroy(laci_net *net);

/* ---- Implementations ---- */

/** The implementation, of convolutions and of products. */
laci_lower_supports laci_native_fits;
laci_lower_function laci_native_lower;
/** Of gradients of chosen layers' weights. */
laci_lower_supports laci_native_gradient_fits;
laci_lower_function laci_native_gradient_lower;
/** Of batch normalizations by constants that chosen layers alone read. */
laci_lower_supports laci_native_norm_fits;
laci_lower_function laci_native_norm_lower;
/** The same by kernel/sparse/vector, where few rows meet a matrix of many zeros.
 * native/algorithms/vector.c
 */
laci_lower_supports laci_product_sparse_fits;
/** May it be faster with a matrix of so many weights, and is it where such a share is kept?
 * native/algorithms/costs.c */
bool laci_vector_may_gain(const laci_net *net, int64_t n_weights);
bool laci_vector_gains(const laci_net *net, double kept);
/** How many bytes fewer the matrices of all that are done so take than as they are. */
double laci_product_sparse_saves(laci_net *net);
laci_lower_function laci_product_sparse;
/** Over images (kernel/sparse/image_norm.h): where a sparse layer makes what is normalized, or
 * reads the result; and the gradient of such a one. native/train/norm.c */
laci_lower_supports laci_image_norm_fits, laci_image_norm_gradient_fits;
laci_lower_function laci_image_norm_lower, laci_image_norm_lower_gradient;
/** The sum of two values in sparse layers' layout of images, in training. native/train/sum.c */
laci_lower_supports laci_image_sum_fits;
laci_lower_function laci_image_sum_lower;
/** By kernel/winograd: 3x3 windows of bf16 whose weights change, and their input's gradient.
 * native/train/blocked_winograd.c */
laci_lower_supports laci_conv_winograd_fits;
laci_lower_function laci_conv_winograd;
/** A ConvGradWeight of bf16 by kernel/weight_gradient. native/train/blocked_weight_gradient.c */
laci_lower_supports laci_conv_bf16_gradient_fits;
laci_lower_function laci_conv_bf16_gradient;

#endif
