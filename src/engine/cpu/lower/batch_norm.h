/* SPDX-License-Identifier: Apache-2.0
 * What the files of batch normalization share. */
#ifndef LACI_ENGINE_CPU_LOWER_BATCH_NORM_H
#define LACI_ENGINE_CPU_LOWER_BATCH_NORM_H

#include "engine/cpu/net_in.h"

/** Is the node a batch norm of a value with two to five axes, and are its four parameters constant
 * floats, one for each channel? */
laci_lower_supports laci_can_lower_norm_constant;

/** Implementations of batch norms by oneDNN: with constant statistics, with those of the batch
 * (training), and the gradient of the latter. batch_norm.c */
laci_lower_function laci_lower_norm_constant, laci_lower_norm_train, laci_lower_norm_train_gradient;

/** Does a batch norm of training, or its gradient, use fixed statistics instead of those of the
 * batch (attribute "fixed" of gradient.h)? */
bool laci_norm_has_fixed_statistics(const laci_node *node);
/** Finds the mean (from[0]) and the variance (from[1]) that a batch norm of training reads: values
 * that are inputs of the node, or, in a recomputation, results of its first computation. False: the
 * node computes mean and variance itself. */
bool laci_norm_find_statistics(const laci_net *net, const laci_node *node, int from[2]);

/** laci_norm_new_vector returns a new tensor of n floats in the arena. laci_norm_read_vector
 * returns a value's content as such a tensor. */
int laci_norm_new_vector(laci_net *net, int64_t n);
int laci_norm_read_vector(laci_net *net, int value);
/** Adds a step that updates the running mean and variance, which are outputs of the node. mean,
 * var: tensors with the batch's mean and variance. Does nothing if the node has no such outputs. */
void laci_norm_update_running_statistics(laci_net *net, const laci_node *node, int mean, int var);

#endif
