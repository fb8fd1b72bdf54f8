/* SPDX-License-Identifier: Apache-2.0
 * What the files of batch normalization share. */
#ifndef LACI_ENGINE_CPU_LOWER_BATCH_NORM_H
#define LACI_ENGINE_CPU_LOWER_BATCH_NORM_H

#include "engine/cpu/net_in.h"

/** By constants: floats, one a channel, of two to five axes? */
laci_lower_supports laci_norm_constant_fits;

/** By oneDNN: by constants, by the batch's statistics, and the gradient of these. batch_norm.c */
laci_lower_function laci_norm_constant, laci_norm_train, laci_norm_train_gradient;

/** Does a norm of training, or its gradient, take statistics as they come in (gradient.h)? */
bool laci_norm_is_fixed(const laci_node *node);
/** The values from which a norm of training has its mean and variance: inputs, or what its first
 * computation found. False: it computes them. */
bool laci_norm_given(const laci_net *net, const laci_node *node, int from[2]);

/** A vector of f32 in the arena, and a value as one. */
int laci_norm_vector(laci_net *net, int64_t n);
int laci_norm_input(laci_net *net, int value);
/** The step that brings running statistics up to date from the tensors of the batch's, where they
 * are wanted. */
void laci_norm_running(laci_net *net, const laci_node *node, int mean, int var);

#endif
