/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a model: a graph whose stored bytes can all be read, or one error line. */
#include "fuzz/fuzz.h"
#include "graph/graph.h"
#include "onnx/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes) {
  laci_onnx *file = NULL;
  laci_graph *graph = NULL;
  lac_error err = {0};
  lac_status st = laci_onnx_load_memory(bytes, size_bytes, NULL, &file, &graph, &err);
  require_one_line(st, &err);
  require((st == LAC_OK) == (graph != NULL));
  for (int at = 0; graph && at < graph->n_stored; at++) {
    uint8_t *copy = laci_stored_writable_bytes(&graph->stored[at]); /* reads every byte */
    require(copy != NULL);
  }
  laci_graph_destroy(graph);
  laci_onnx_destroy(file);
  return 0;
}
