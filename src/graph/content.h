/* SPDX-License-Identifier: Apache-2.0
 * Finds the values whose contents can change the outputs of a network. Of some inputs a node reads
 * only type and shape (Shape, Size, the second input of CastLike). Such a reader, and a node
 * computed only for such readers, is no reason to leave a weight unchanged. */
#ifndef LACI_GRAPH_CONTENT_H
#define LACI_GRAPH_CONTENT_H

#include "lacuna/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct laci_graph laci_graph;
typedef struct laci_node laci_node;

/** Does the node read the content of its input `port`? False: it reads only the input's type and
 * shape. Some operators without a laci_op are known too. */
bool laci_node_reads_port_content(const laci_node *node, int port);

/** matters[v]: the content of value v may reach an output of the network or a value that nothing
 * reads, or decide the shape of one; [n_values], to be freed with laci_free. The graph must be
 * inferred. A node in the body of a loop or an If, and one that ends it, always matters. Fails
 * LAC_NO_MEMORY. O(nodes). */
LAC_MUST_CHECK lac_status laci_find_values_affecting_outputs(const laci_graph *graph,
                                                             uint8_t **matters, lac_error *err);

/** Can the content of any output of the node affect the network's outputs (by `matters`)? */
bool laci_node_affects_outputs(const laci_graph *graph, const uint8_t *matters, int node);

/** Can the node affect the network's outputs (by `matters`), and does it read the content of the
 * value? */
bool laci_node_reads_content(const laci_graph *graph, const uint8_t *matters, int node, int value);

/** Returns the number of nodes that read the content of the value and can affect the network's
 * outputs. */
int laci_count_content_readers(const laci_graph *graph, const uint8_t *matters, int value);

#endif
