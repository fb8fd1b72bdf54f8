/* SPDX-License-Identifier: Apache-2.0
 * What an input of a network is, as told by the first nodes that use it. */
#ifndef LACI_API_PRUNE_SYNTHETIC_FLOW_IN_H
#define LACI_API_PRUNE_SYNTHETIC_FLOW_IN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct laci_graph laci_graph;

/** Returns how many different token ids the value holds: the rows of the smallest stored table that
 * it looks up, or the length of a one-hot code; 0: it holds no ids. */
int64_t laci_synthetic_count_token_ids(const laci_graph *graph, int value);
/** Returns the least number above 0 that the network compares the value with, such as a rate of
 * samples; 0: none. */
int64_t laci_synthetic_find_compared_number(const laci_graph *graph, int value);
/** Is the value a sound, [N, samples], [N, 1, samples] or [N, samples, 1], that a convolution of
 * one channel or a Fourier transform reads? */
bool laci_synthetic_is_sound(const laci_graph *graph, int value);
/** Is the value [N, n] a row of n numbers for each sample, which a product with a stored matrix
 * reads? */
bool laci_synthetic_is_row_of_numbers(const laci_graph *graph, int value);
/** Finds the mean[n] and the deviation[n] by which the network's first steps scale a row of n
 * numbers: a batch normalization, or a subtraction and a division or multiplication. false: it does
 * not scale them. */
bool laci_synthetic_find_row_scale(const laci_graph *graph, int value, float *mean,
                                   float *deviation);

#endif
