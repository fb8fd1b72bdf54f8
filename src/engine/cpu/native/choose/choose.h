/* SPDX-License-Identifier: Apache-2.0
 * Which fused nodes native kernels can do, what each algorithm takes for them, and the choice. */
#ifndef LACI_ENGINE_CPU_NATIVE_CHOOSE_CHOOSE_H
#define LACI_ENGINE_CPU_NATIVE_CHOOSE_CHOOSE_H

#include "engine/cpu/native/layer.h"

/* ---- limits.c ---- */

/** Pads, dilations and strides make no layout much larger than the image. */
bool laci_native_padding_is_small(const laci_native_layer *layer);
/** Can the layer be computed in bf16? Values then have channels last, in bf16 pairs; outputs of the
 * network are not rounded to bf16 first, so that no native layer writes them. */
bool laci_native_can_bf16(const laci_net *net, const laci_native_layer *layer);

/* ---- posts.c ---- */

/** Sets what follows the layer's sums; false where sparse kernels lack it. */
bool laci_native_take_posts(laci_net *net, laci_native_layer *layer);

/* ---- find.c ---- */

/** Finds the layers that native kernels can do: net->native has them, none of them chosen; it stays
 * NULL where there are none. */
void laci_native_find_layers(laci_net *net);

/* ---- find_between.c ---- */

/** Is it a sum of two values of bytes, which becomes bytes itself? */
bool laci_native_find_sum(laci_net *net, const laci_fused *fused, laci_native_layer *layer);
/** Is it a MaxPool of floats, with nothing fused after it? */
bool laci_native_find_pool(laci_net *net, const laci_fused *fused, laci_native_layer *layer);
/** Is it one of a value of bytes, which stays bytes of the same units? */
bool laci_native_find_pool_of_bytes(laci_net *net, const laci_fused *fused,
                                    laci_native_layer *layer);

/* ---- Finders of other folders ---- */

/** The value, or the one that it is, too: of bytes that several DequantizeLinear read. */
int laci_native_same_value(const laci_cpu_plan *plan, int value);
/** The QuantizeLinear and DequantizeLinear that alone read the value; NULL: others do. */
const laci_fused *laci_native_quantized_after(const laci_cpu_plan *plan, int value);
/** A convolution, or the gradient of its input, whose weights change and keep their zeros? */
bool laci_native_find_trained(laci_net *net, const laci_fused *fused, laci_native_layer *layer);
/** Chooses among such layers. */
void laci_native_choose_trained(laci_net *net);
/** Makes the layer, which was found as one of floats, one of int8 where its input, its weight and
 * what follows allow it; else it stays. */
void laci_native_take_bytes(laci_net *net, laci_native_layer *layer);

/* ---- name.c ---- */

enum { LACI_NATIVE_NAME = 256 };
/** Writes the name that a layer's time is kept by: all that the time depends on but the machine.
 * layer NULL: reorders. */
void laci_native_name(const laci_net *net, const laci_native_layer *layer, laci_algorithm_id id,
                      char name[LACI_NATIVE_NAME]);

/* ---- cost.c, estimate.c ---- */

typedef struct laci_native_costs {
  double *of[LACI_N_ALGORITHMS]; /* by each algorithm, [n_layers], in the plan's memory;
                                    infinite where it cannot compute a layer */
  double *chosen;                /* by the layer's own algorithm, if it is chosen */
  double reorder;                /* of a float */
  double norm_of_images;         /* of a float that a normalization writes in HWC16N, more than
                                    in another layout */
  double step;                   /* of a reorder, however few floats it has */
  double least_gain; /* of the whole network, for which it is worth to leave dense kernels */
} laci_native_costs;

/** Room for all layers; false: no memory (noted). */
bool laci_native_new_costs(laci_net *net, laci_native_costs *costs);
/** The times of all layers; false where one was not timed. */
bool laci_native_find_timings(const laci_net *net, const laci_timings *timings,
                              laci_native_costs *costs);
/** Estimates of all of it. estimate.c */
void laci_native_estimate(const laci_net *net, laci_native_costs *costs);
/** Finds times, or else estimates, and gives each layer the algorithm that costs the least. False:
 * no memory (noted). */
bool laci_native_find_costs(laci_net *net, laci_native_costs *costs);

/* ---- budget.c ---- */

/** Gives layers with zeros another algorithm than one that transforms weights, until weights are no
 * more than 1.7 times the bytes that they have, or than those of a dense plan, or no such layer is
 * left.
 */
void laci_native_save_memory(laci_net *net, laci_native_costs *costs);

#endif
