/* SPDX-License-Identifier: Apache-2.0
 * A lac_model that is made of nodes of ONNX Runtime's graph. The nodes are written as ONNX. Their
 * weights are read from where they are stored: ONNX Runtime's memory, a copy, or the model's data
 * files. */
#ifndef LAC_ORT_MODEL_H
#define LAC_ORT_MODEL_H

#include "graph.h"
#include "lacuna/model.h"

/** Nodes of a graph, and the values that they read from outside and that others read. */
typedef struct laci_ort_part {
  const int *nodes; /* [n_nodes] numbers of the nodes, ascending */
  int n_nodes;
  const int *inputs, *outputs; /* [n_inputs] numbers of the values from outside that the nodes read,
                                  constants left out; [n_outputs] numbers of the nodes' values that
                                  others read */
  int n_inputs, n_outputs;
} laci_ort_part;

typedef struct laci_ort_model laci_ort_model;

/** Finds the inputs and outputs of a part of these nodes: values from outside that are no
 * constants, and values that nodes outside or the graph's caller read. Allocates in the graph's
 * memory. */
LAC_MUST_CHECK lac_status laci_ort_find_part_values(laci_ort_graph *graph, const int *nodes,
                                                    int n_nodes, laci_ort_part *part,
                                                    lac_error *err);

/** Makes a model of the part. keep: copies weights that are in ONNX Runtime's memory; else the
 * model is valid only as long as the graph. *made is NULL on failure. */
LAC_MUST_CHECK lac_status laci_ort_model_make(laci_ort_graph *graph, const laci_ort_part *part,
                                              bool keep, laci_ort_model **made, lac_error *err);
/** Loads a packed model from its bytes, which are copied. */
LAC_MUST_CHECK lac_status laci_ort_model_unpack(const void *bytes, size_t n, laci_ort_model **made,
                                                lac_error *err);
/** Returns the loaded model, which `made` owns. */
const lac_model *laci_ort_get_loaded_model(const laci_ort_model *made);
/** Was the model loaded from a pack (laci_ort_model_unpack)? */
bool laci_ort_model_is_packed(const laci_ort_model *made);
/** Returns how many bytes of weights the model holds copies of. */
uint64_t laci_ort_model_copied_bytes(const laci_ort_model *made);
/** Destroys a model; NULL is fine. */
void laci_ort_model_destroy(laci_ort_model *made);

#endif
