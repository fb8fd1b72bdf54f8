/* SPDX-License-Identifier: Apache-2.0
 * Elements of attributes, as ONNX Runtime hands them over. */
#ifndef LAC_ORT_ATTRIBUTE_H
#define LAC_ORT_ATTRIBUTE_H

#include "graph.h"

/** Reads an attribute's elements of this type into memory that the caller frees, with a zero byte
 * after them. */
LAC_MUST_CHECK lac_status laci_ort_attribute_read(const laci_ort *ort,
                                                  const ort_attribute *attribute, int type,
                                                  void **elements, size_t *n_bytes, lac_error *err);

/** Finds a node's string attribute by its name, and reads it as laci_ort_attribute_read does. *text
 * is NULL where the node has no such attribute. */
LAC_MUST_CHECK lac_status laci_ort_read_text_attribute(laci_ort_graph *graph,
                                                       const laci_ort_node *node, const char *name,
                                                       char **text, size_t *n_bytes,
                                                       lac_error *err);

/** Does the node hold a packed model (written by `lacuna pack --ort`)? */
LAC_MUST_CHECK lac_status laci_ort_is_packed_node(laci_ort_graph *graph, const laci_ort_node *node,
                                                  bool *is, lac_error *err);

#endif
