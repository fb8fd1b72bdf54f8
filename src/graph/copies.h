/* SPDX-License-Identifier: Apache-2.0
 * Values that are copies of others, as exporters write them between QuantizeLinear and
 * DequantizeLinear, or for a stored tensor that several nodes read:
 *
 *     x -> QuantizeLinear -> Cast to the same type -> DequantizeLinear
 *     x -> QuantizeLinear -> Clip to 0 .. 127      -> DequantizeLinear
 *     stored zero point -> Identity -> QuantizeLinear */
#ifndef LACI_GRAPH_COPIES_H
#define LACI_GRAPH_COPIES_H

#include <stdbool.h>

typedef struct laci_graph laci_graph;
typedef struct laci_node laci_node;

/** Is the node an Identity, or a Cast to the type that its input has? */
bool laci_is_copy(const laci_graph *graph, const laci_node *node);
/** Returns the value that this one is a copy of, through Identity and Cast to the same type in one
 * body; the value itself where it is no copy. */
int laci_graph_skip_copies(const laci_graph *graph, int value);
/** Is it a value of integers of 8 or 16 bits, as far as is known before types are inferred? */
bool laci_is_quantized_integer(const laci_graph *graph, int value);
/** Is the node a Clip of quantized integers, of 8 or 16 bits? */
bool laci_is_clip_of_integers(const laci_graph *graph, const laci_node *node);
/** Do the bounds of a Clip of integers leave 0, or each of the zero points (value `zero`, -1:
 * none), as they are? False where they are not stored. */
bool laci_clip_keeps_zero_points(const laci_graph *graph, const laci_node *clip, int zero);
/** Returns the index of the QuantizeLinear node that computed these integers, which copies and one
 * Clip may follow; *clip is that Clip, or -1. -1: they come from elsewhere. */
int laci_graph_find_quantizer(const laci_graph *graph, int value, int *clip);

#endif
