/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target of the ONNX importer: any bytes give a model or one error line.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc -I<generated> \
 *         tests/fuzz/fuzz_onnx.c <generated>/onnx.pb-c.c <the library's sources> \
 *         -lprotobuf-c -lxxhash -lm
 *     ./a.out -max_len=4096 tests/fuzz/corpus_onnx
 * Inputs worth keeping go into corpus_onnx, which tests/unit/onnx_corpus.c replays. */
#include "onnx/onnx.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void require(bool holds) {
  if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes) {
  laci_onnx *file = NULL;
  laci_graph *graph = NULL;
  lac_error err = {0};
  lac_status st = laci_onnx_load_memory(bytes, size_bytes, NULL, &file, &graph, &err);
  require((st == LAC_OK) == (graph != NULL) && (st == LAC_OK) == (err.text[0] == '\0'));
  require(!strchr(err.text, '\n'));
  for (int at = 0; graph && at < graph->n_stored; at++) {
    uint8_t *copy = laci_stored_mut(&graph->stored[at]); /* reads every byte */
    require(copy != NULL);
  }
  laci_graph_destroy(graph);
  laci_onnx_destroy(file);
  return 0;
}
