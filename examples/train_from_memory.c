/* SPDX-License-Identifier: Apache-2.0
 * train_from_memory IN.onnx OUT.onnx: prunes and trains a network that a function reads, on samples
 * in memory. What each call does: docs/reference/c-api.md. */
#include <stdio.h>
#include <string.h>

#include "lacuna/lacuna.h"

enum { SAMPLES = 64, PIXELS = 64 };

/* Bytes that could be in an archive, in an encrypted store or far away. */
typedef struct store {
  FILE *file;
  uint64_t size;
} store;

static lac_status read_part(void *context, const char *name, uint64_t offset, void *to, size_t *n,
                            lac_error *err) {
  const store *from = context;
  if (name[0]) return LAC_NOT_FOUND; /* this one has no external data */
  if (fseek(from->file, (long)offset, SEEK_SET) == 0) {
    *n = fread(to, 1, *n, from->file); /* fewer are no failure */
    if (!ferror(from->file)) return LAC_OK;
  }
  (void)snprintf(err->text, sizeof err->text, "the store is gone");
  return LAC_IO;
}

static float images[SAMPLES * PIXELS];
static int64_t labels[SAMPLES];

/* Some strokes, where a program would have its samples. */
static void make_samples(void) {
  for (int k = 0; k < SAMPLES; k++) {
    labels[k] = k % 10;
    for (int p = 0; p < PIXELS; p++) images[k * PIXELS + p] = (float)(p % (k % 10 + 2) == 0);
  }
}

int main(int argc, char **argv) {
  lac_error err = {0};
  lac_model *model = NULL;
  lac_finetune_options tuning = lac_finetune_options_default();
  lac_finetune_result done = LAC_SIZED(lac_finetune_result);
  lac_train_options training = lac_finetune_training_default();
  lac_eval_options how = lac_eval_options_default();
  lac_eval_result found = LAC_SIZED(lac_eval_result);
  if (argc != 3) return fprintf(stderr, "usage: train_from_memory IN.onnx OUT.onnx\n"), 2;
  store archive = {.file = fopen(argv[1], "rb")};
  if (!archive.file || fseek(archive.file, 0, SEEK_END))
    return fprintf(stderr, "no %s\n", argv[1]), 1;
  archive.size = (uint64_t)ftell(archive.file);

  lac_load_options source = lac_load_options_default();
  source.read = read_part;
  source.size_bytes = archive.size;
  source.read_context = &archive;
  lac_status st = lac_model_load(NULL, &source, &model, &err);

  make_samples();
  const lac_array arrays[] = {
      {"image", LAC_DTYPE_F32, 4, {SAMPLES, 1, 8, 8}, images, sizeof images, false},
      {"labels", LAC_DTYPE_I64, 1, {SAMPLES}, labels, sizeof labels, false}};
  const lac_samples samples = {.size = sizeof samples, .arrays = arrays, .n_arrays = 2};
  training.batch = 16;
  training.steps = 40;
  training.from_memory = &samples;
  tuning.training = &training;
  if (!st) st = lac_finetune(model, NULL, &tuning, &done, &err); /* prunes and trains */

  how.from_memory = &samples;
  if (!st) st = lac_eval(model, NULL, &how, &found, &err);
  if (!st) printf("%lld samples: top-1 %.1f%%\n", (long long)found.images, found.top1);
  for (int k = 0; !st && k < lac_mask_count(done.mask); k++) {
    const char *name = lac_mask_name(done.mask, k);
    const uint8_t *kept = NULL;
    size_t n = 0, n_kept = 0;
    if (!st) st = lac_mask_bytes(done.mask, name, &kept, &n, &err);
    for (size_t e = 0; !st && e < n; e++) n_kept += kept[e];
    if (!st) printf("%s: %zu of %zu weights kept\n", name, n_kept, n);
  }
  if (!st) st = lac_model_save(model, argv[2], true, &err);
  if (st) fprintf(stderr, "train_from_memory: %s\n", err.text[0] ? err.text : lac_status_text(st));
  lac_finetune_result_clear(&done), lac_model_destroy(model), (void)fclose(archive.file);
  return st != LAC_OK;
}
