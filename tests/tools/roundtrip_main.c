/* SPDX-License-Identifier: Apache-2.0
 * Loads a model and saves it unchanged:  roundtrip_main IN.onnx OUT.onnx
 * For tests that compare the two with another implementation of ONNX. */
#include "graph/graph.h"
#include "onnx/onnx.h"

#include <stdio.h>

int main(int argc, char **argv) {
  laci_onnx *file = NULL;
  laci_graph *graph = NULL;
  lac_error err = {0};
  if (argc != 3) {
    (void)fprintf(stderr, "usage: roundtrip_main IN.onnx OUT.onnx\n");
    return 2;
  }
  lac_status st = laci_onnx_load(argv[1], &file, &graph, &err);
  if (!st) {
    (void)printf("%d nodes, %d values, %d stored tensors\n", graph->n_nodes, graph->n_values,
                 graph->n_stored);
    st = laci_onnx_save(file, graph, argv[2], false, &err);
  }
  if (st) (void)fprintf(stderr, "%s\n", err.text);
  laci_graph_destroy(graph);
  laci_onnx_destroy(file);
  return st ? 1 : 0;
}
