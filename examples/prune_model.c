/* SPDX-License-Identifier: Apache-2.0
 * prune_model IN.onnx OUT.onnx: the library in forty lines. What each call does: docs/c-api.md. */
#include <stdio.h>
#include <stdlib.h>

#include "lacuna/model.h"
#include "lacuna/prune.h"
#include "lacuna/report.h"

/* The model from memory: bytes may come from anywhere. lac_model_load(path, ...) does the same for
 * a file. */
static lac_status load(const char *path, lac_model **model, lac_error *err) {
  static unsigned char bytes[64 << 20];
  FILE *in = fopen(path, "rb");
  size_t size_bytes = in ? fread(bytes, 1, sizeof bytes, in) : 0;
  if (in) fclose(in);
  if (!in || size_bytes == sizeof bytes) return lac_model_load(path, model, err);
  return lac_model_load_memory(bytes, size_bytes, NULL, model, err);
}

int main(int argc, char **argv) {
  lac_error err = {0};
  lac_model *model = NULL;
  lac_report *found = NULL, *done = NULL;
  lac_options options = lac_options_default(); /* 2:4, permuted, proven */
  if (argc != 3) return fprintf(stderr, "usage: prune_model IN.onnx OUT.onnx\n"), 2;
  lac_status st = load(argv[1], &model, &err);
  if (!st) st = lac_inspect(model, &options, &found, &err); /* changes nothing */
  if (!st)
    printf("%d of %d layers can be pruned\n", found->summary.eligible, found->summary.layers);
  if (!st) st = lac_prune(model, &options, &done, &err);
  for (int i = 0; !st && i < done->n_layers; i++) {
    const lac_layer *layer = &done->layers[i];
    size_t n_channels = (size_t)layer->shape[layer->c_axis], n = (size_t)layer->n_elements;
    if (!layer->pruned || layer->convolution_groups != 1) continue;
    int32_t *order =
        malloc(n_channels * sizeof *order); /* order[j]: old index of the channel now at place j */
    unsigned char *mask = malloc(n);        /* 1: kept; in the tensor's new order */
    if (order) st = lac_report_order(done, layer->weight, layer->c_axis, order, n_channels, &err);
    if (!st && mask) st = lac_report_mask(done, layer->weight, mask, n, &err);
    if (!st && order && mask) printf("%s: first was %d\n", layer->weight, order[0]);
    free(order), free(mask);
  }
  if (!st) st = lac_model_save(model, argv[2], true, &err);
  if (st) fprintf(stderr, "prune_model: %s\n", err.text);
  lac_report_destroy(found), lac_report_destroy(done), lac_model_destroy(model);
  return st ? 1 : 0;
}
