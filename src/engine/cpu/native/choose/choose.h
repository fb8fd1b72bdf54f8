/* SPDX-License-Identifier: Apache-2.0
 * Which fused nodes native kernels can compute, what each algorithm costs for them, and the
 * choice. */
#ifndef LACI_ENGINE_CPU_NATIVE_CHOOSE_CHOOSE_H
#define LACI_ENGINE_CPU_NATIVE_CHOOSE_CHOOSE_H

#include "engine/cpu/native/layer.h"

/* ---- limits.c ---- */

/** Is the padded layout of the layer's input not much larger than the image? Its size depends on
 * the window's pads, dilations and strides. */
bool laci_native_padding_is_small(const laci_native_layer *layer);
/** Can native kernels compute the layer in bf16? Its values then have channels last, in bf16
 * pairs. Outputs of the network must not be rounded to bf16, so no native layer writes them. */
bool laci_native_can_compute_bf16(const laci_net *net, const laci_native_layer *layer);

/* ---- posts.c ---- */

/** Sets the functions, bounds and residual that are applied after the layer's sums; false if native
 * kernels cannot compute them. */
bool laci_native_set_post_functions(laci_net *net, laci_native_layer *layer);

/* ---- find.c ---- */

/** Lists the layers that native kernels can compute in net->native; none of them is chosen yet.
 * net->native stays NULL if there are none. */
void laci_native_find_layers(laci_net *net);

/** Describes a convolution, or a product with a constant matrix, as a layer without zeros, to find
 * its cost by dense kernels. False: the fused node is neither, or cannot be described. */
bool laci_native_describe_product(laci_net *net, const laci_fused *fused, laci_native_layer *layer);

/* ---- find_between.c ---- */

/** Is the node a sum of two int8 values whose result is int8? If so, describes it in *layer. */
bool laci_native_find_int8_sum(laci_net *net, const laci_fused *fused, laci_native_layer *layer);
/** Is the node a MaxPool of floats, with nothing fused after it? If so, describes it in *layer. */
bool laci_native_find_max_pool(laci_net *net, const laci_fused *fused, laci_native_layer *layer);
/** Returns the quantization of a node's result `value`: that after it, or else that of its
 * operands, whose elements it has. Sets *output to the value that has it. NULL: there is none. */
const laci_fake_quantized *laci_native_quantized_result(const laci_cpu_plan *plan, int value,
                                                        int *output);
/** Is the node a MaxPool of an int8 value, whose result is not quantized with another scale or zero
 * point? If so, describes it in *layer. */
bool laci_native_find_int8_max_pool(laci_net *net, const laci_fused *fused,
                                    laci_native_layer *layer);

/** Is the node the sum of an int8 matrix and one constant for each column, whose result is int8? If
 * so, describes it in *layer. */
bool laci_native_find_int8_shift(laci_net *net, const laci_fused *fused, laci_native_layer *layer);
/** Is the node the product of an int8 image and one int8 factor for each channel, whose result is
 * int8? If so, describes it in *layer. */
bool laci_native_find_int8_gate(laci_net *net, const laci_fused *fused, laci_native_layer *layer);
/** Is the fused node a table from an int8 value to another one? If so, describes it in *layer. */
bool laci_native_find_int8_table(laci_net *net, const laci_fused *fused, laci_native_layer *layer);
/** Is the node an AveragePool or GlobalAveragePool of an int8 value, whose result is int8? If so,
 * describes it in *layer. */
bool laci_native_find_int8_average_pool(laci_net *net, const laci_fused *fused,
                                        laci_native_layer *layer);

/** Is the value stored as a matrix of rows? It is if it was computed from a matrix product, and not
 * from images of a convolution. */
bool laci_native_is_matrix_of_rows(const laci_cpu_plan *plan, int value);

/* ---- find_moves.c ---- */

/** Is the node's output `port` made of elements of int8 values that are moved along axes, and
 * quantized? If so, describes that in *layer. */
bool laci_native_find_int8_move(laci_net *net, const laci_fused *fused, int port,
                                laci_native_layer *layer);

/* ---- Functions that find layers, in other folders ---- */

/** Returns the value that stands for `value`. If several DequantizeLinear nodes read one int8
 * value, one of their results stands for all of them; any other value stands for itself. */
int laci_native_canonical_value(const laci_cpu_plan *plan, int value);
/** Returns the fused node of the QuantizeLinear and DequantizeLinear that are the value's only
 * readers; NULL: there are other readers. */
const laci_fused *laci_native_quantization_after(const laci_cpu_plan *plan, int value);
/** Is the node a convolution, or the gradient of its input, whose weights change in training and
 * keep their zeros? If so, describes it in *layer. */
bool laci_native_find_trained_layer(laci_net *net, const laci_fused *fused,
                                    laci_native_layer *layer);
/** Chooses the layers that native kernels compute, among those whose weights are trained under
 * masks. */
void laci_native_choose_trained_layers(laci_net *net);
/** Makes a layer of floats an int8 layer, if its input, its weight and what follows it allow
 * that. */
void laci_native_make_int8_if_possible(laci_net *net, laci_native_layer *layer);

/* ---- name.c ---- */

enum { LACI_NATIVE_NAME = 256 };
/** Writes the name under which a layer's time by algorithm `id` is stored. The name has all that
 * the time depends on except the machine. layer NULL: the name for reorders. */
void laci_native_layer_name(const laci_net *net, const laci_native_layer *layer,
                            laci_algorithm_id id, char name[LACI_NATIVE_NAME]);

/* ---- join_sums.c ---- */

/** Joins each chosen sum of int8 values to a chosen product that computes one of its operands, if
 * the product's algorithm can add the other one. Fails only where memory is short, which is
 * recorded in the plan. */
void laci_native_join_sums(laci_net *net);

/* ---- cost.c, estimate.c ---- */

typedef struct laci_native_costs {
  double *of[LACI_N_ALGORITHMS]; /* of[id]: array [n_layers] in the plan's memory, cost of each
                                    layer by algorithm `id`; infinite: the algorithm cannot compute
                                    the layer */
  double *chosen;                /* [n_layers] cost of each layer by its own algorithm
                                    (laci_native_layer.algorithm), if it is chosen */
  double reorder;                /* cost of reordering one float */
  double quantization;           /* cost of quantizing one float in a step of its own */
  double norm_of_images;         /* cost, for each float, that a normalization takes more if it
                                    writes the layout HWC16N instead of another one */
  double step;                   /* fixed cost of a reorder, to which that of its floats is added */
  /* minimum gain of native kernels in the whole network; if they gain less, dense kernels compute
   * all layers */
  double least_gain;
} laci_native_costs;

/** Allocates the arrays of costs for all layers; false: no memory, which is recorded in the
 * plan. */
bool laci_native_alloc_costs(laci_net *net, laci_native_costs *costs);
/** Sets `costs` to the measured times of all layers in `timings`; false if some layer was not
 * timed. */
bool laci_native_find_timings(const laci_net *net, const laci_timings *timings,
                              laci_native_costs *costs);
/** Sets `costs` to estimates for all layers. Defined in estimate.c. */
void laci_native_estimate_costs(const laci_net *net, laci_native_costs *costs);
/** Sets `costs` to measured times, or to estimates if times are missing, and gives each layer the
 * algorithm that costs the least. False: no memory, which is recorded in the plan. */
bool laci_native_find_costs(laci_net *net, laci_native_costs *costs);

/* ---- budget.c ---- */

/** Reduces the memory of weights: layers whose algorithm transforms their weights get another one,
 * until all weights take at most 1.7 times the bytes of the untransformed weights, or the bytes of
 * a dense plan if that is more, or until no such layer is left. */
void laci_native_reduce_weight_memory(laci_net *net, laci_native_costs *costs);

#endif
