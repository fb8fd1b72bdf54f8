/* SPDX-License-Identifier: Apache-2.0
 * prune_model IN.onnx OUT.onnx: the library in forty lines. What each call does:
 * docs/reference/c-api.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lacuna/prune.h"

/* A file, or with - bytes that may come from anywhere. */
static lac_status load(const char *path, lac_model **model, lac_error *err) {
  static unsigned char bytes[64 << 20];
  if (strcmp(path, "-") != 0) return lac_model_load(path, NULL, model, err);
  lac_load_options options = lac_load_options_default();
  options.bytes = bytes;
  options.size_bytes = fread(bytes, 1, sizeof bytes, stdin);
  return lac_model_load(NULL, &options, model, err);
}

/* Where a layer's first input channel was, and what became of its first weight. */
static lac_status show(const lac_report *report, const lac_layer *layer, lac_error *err) {
  size_t n_channels = (size_t)(layer->channels_in * layer->convolution_groups);
  size_t n_weights = (size_t)layer->n_elements;
  int32_t *order = malloc(n_channels * sizeof *order); /* [j]: old index of what is at j now */
  unsigned char *mask = malloc(n_weights);             /* 1: kept; in the new order */
  lac_status st = order && mask ? LAC_OK : LAC_NO_MEMORY;
  if (!st) st = lac_report_order(report, layer->weight, layer->c_axis, order, n_channels, err);
  if (!st) st = lac_report_mask(report, layer->weight, mask, n_weights, err);
  if (!st)
    printf("%s: first channel was %d, first weight %s\n", layer->weight, (int)order[0],
           mask[0] ? "kept" : "pruned");
  free(order), free(mask);
  return st;
}

int main(int argc, char **argv) {
  lac_error err = {0};
  lac_model *model = NULL;
  lac_report *found = NULL, *done = NULL;
  lac_options options = lac_options_default(); /* 2:4, permuted, verified */
  if (argc != 3) return fprintf(stderr, "usage: prune_model IN.onnx OUT.onnx\n"), 2;
  lac_status st = load(argv[1], &model, &err);
  if (!st) st = lac_inspect(model, &options, &found, &err); /* changes nothing */
  if (!st) printf("%d of %d layers can be pruned\n", found->summary.eligible, found->n_layers);
  if (!st) st = lac_prune(model, &options, &done, &err);
  for (int i = 0; !st && i < done->n_layers; i++)
    if (done->layers[i].pruned) st = show(done, &done->layers[i], &err);
  if (!st) st = lac_model_save(model, argv[2], true, &err);
  if (st) fprintf(stderr, "prune_model: %s\n", err.text[0] ? err.text : lac_status_text(st));
  lac_report_destroy(found), lac_report_destroy(done), lac_model_destroy(model);
  return st ? 1 : 0;
}
