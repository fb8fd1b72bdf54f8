/* SPDX-License-Identifier: Apache-2.0
 * What the files of batch normalization share. */
#ifndef LACI_ENGINE_CPU_LOWER_BATCH_NORM_H
#define LACI_ENGINE_CPU_LOWER_BATCH_NORM_H

#include "engine/cpu/net_in.h"

/** Is the node a batch norm of a value of two to five axes, whose four parameters are constant
 * floats, one for each channel? */
laci_lower_supports laci_can_lower_norm_constant;

/** Batch norms by oneDNN: with constant statistics, with those of the batch, and the gradient of
 * the latter. batch_norm.c */
laci_lower_function laci_lower_norm_constant, laci_lower_norm_train, laci_lower_norm_train_gradient;

/** Does a batch norm of training, or its gradient, use given statistics instead of those of the
 * batch (attribute "fixed" of gradient.h)? */
bool laci_norm_has_fixed_statistics(const laci_node *node);
/** Sets from[0] and from[1] to the values of the mean and the variance that a batch norm of
 * training reads: inputs of the node, or results of its first computation. False: the node
 * computes mean and variance itself. */
bool laci_norm_find_statistics(const laci_net *net, const laci_node *node, int from[2]);

/** laci_norm_new_vector: returns a new tensor of n floats in the arena. laci_norm_read_vector:
 * returns the content of a value as a tensor of that kind. */
int laci_norm_new_vector(laci_net *net, int64_t n);
int laci_norm_read_vector(laci_net *net, int value);
/** Adds the step that updates the running mean and variance, which are outputs of the node, from
 * those of the batch. mean, var: tensors of the batch's mean and variance. Does nothing where the
 * node has no such outputs. */
void laci_norm_update_running_statistics(laci_net *net, const laci_node *node, int mean, int var);

#endif
