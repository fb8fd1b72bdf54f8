/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a model and its data file: two bytes say how long the model is, the rest is what its
 * external tensors find, whatever they call it. A graph whose stored bytes can all be read, or one
 * error line. */
#include "base/reader.h"
#include "fuzz/fuzz.h"
#include "graph/graph.h"
#include "onnx/onnx.h"

typedef struct data_file {
  const uint8_t *bytes;
  size_t size_bytes;
} data_file;

static lac_status open_data(void *context, const char *location, laci_reader **reader,
                            lac_error *err) {
  const data_file *data = context;
  return laci_reader_open_memory(location, data->bytes, data->size_bytes, reader, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes) {
  laci_onnx *file = NULL;
  laci_graph *graph = NULL;
  laci_reader *model = NULL;
  lac_error err = {0};
  if (size_bytes < 2) return 0;
  size_t said = (size_t)bytes[0] | (size_t)bytes[1] << 8, rest = size_bytes - 2;
  size_t n = said < rest ? said : rest;
  data_file data = {bytes + 2 + n, rest - n};
  require(laci_reader_open_memory("x.onnx", bytes + 2, n, &model, &err) == LAC_OK);
  const laci_onnx_outside outside = {.open = open_data, .context = &data};
  lac_status st = laci_onnx_load_readers(model, &outside, &file, &graph, &err);
  require_one_line(st, &err);
  require((st == LAC_OK) == (graph != NULL));
  for (int at = 0; graph && at < graph->n_stored; at++) {
    require(laci_stored_writable_bytes(&graph->stored[at]) != NULL); /* reads every byte */
  }
  laci_graph_destroy(graph);
  laci_onnx_destroy(file);
  return 0;
}
