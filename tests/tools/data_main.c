/* SPDX-License-Identifier: Apache-2.0
 * What the room data makes of files, so that NumPy and Pillow can be asked for their opinion.
 *
 *     data_main npy IN.npy OUT.npy                 reads and writes an array again
 *     data_main bf16 IN.npy OUT.npy                ... its f32 cut to bf16 before it is written
 *     data_main image IN.jpg OUT.npy               u8 [height, width, 3]
 *     data_main prepare IN.jpg RESIZE HEIGHT WIDTH OUT.npy
 *                                                  f32 [3, height, width], ImageNet's mean and std
 *     data_main draws SEED WIDTH HEIGHT N OUT.npy  i32 [N, 4]: left, top, width, height
 *
 *     data_main part IN.jpg SEED SAMPLE SIDE OUT.npy
 *                                                  one drawn, resized: f32 [3, SIDE, SIDE], in grey
 *                                                  levels; its place goes to standard output
 *
 *     data_main policy IN.png KIND OUT.npy         u8 [14, 31, 2, height, width, 3]: each change of
 *                                                  the policy at each magnitude, without and with
 *                                                  its sign
 *
 *     data_main set FOLDER PART CLASSES            a line an image: number, label, class name
 *
 *     data_main decoded FOLDER PART NUMBER OUT.npy
 *                                                  that image as it is stored, u8
 *
 *     data_main batches FOLDER PART BATCH LIMIT THREADS MEAN STD OUT.npy LABELS.npy
 *                                                  all images as the folder's usual preprocessing
 *                                                  has them, one mean and std for all channels; - -
 *                                                  for ImageNet's
 *
 *     data_main metrics LOGITS.npy LABELS.npy      top-1, top-5, loss
 *
 * PART is test or train, CLASSES a file or -. See tests/interop/test_data.py. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/reader.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/loader.h"
#include "data/metrics.h"
#include "data/npy.h"
#include "data/policy.h"
#include "data/prepare.h"
#include "data/region.h"

static lac_status copy_array(char **args, lac_error *err) {
  laci_npy array;
  lac_status st = laci_npy_read(args[0], &array, err);
  if (!st) st = laci_npy_write(args[1], &array.type, array.bytes, true, err);
  laci_npy_clear(&array);
  return st;
}

static lac_status cut_to_bf16(char **args, lac_error *err) {
  laci_npy array;
  lac_status st = laci_npy_read(args[0], &array, err);
  if (st) return st;
  array.type.dtype = LAC_DTYPE_BF16;
  for (size_t at = 0; at < array.size_bytes / 4; at++) {
    memcpy(array.bytes + at * 2, array.bytes + at * 4 + 2, 2);
  }
  st = laci_npy_write(args[1], &array.type, array.bytes, true, err);
  laci_npy_clear(&array);
  return st;
}

static lac_status decode(char **args, lac_error *err) {
  laci_image image = {0};
  lac_status st = laci_image_read(args[0], &image, err);
  laci_type type = {LAC_DTYPE_U8, {3, {image.height, image.width, 3}}};
  if (!st) st = laci_npy_write(args[1], &type, image.rgb, true, err);
  laci_image_clear(&image);
  return st;
}

static lac_status prepare(char **args, lac_error *err) {
  laci_image image = {0};
  laci_preparer *preparer = NULL;
  laci_preprocessing preprocessing = laci_preprocessing_default();
  preprocessing.resize = atoi(args[1]);
  preprocessing.height = atoi(args[2]);
  preprocessing.width = atoi(args[3]);
  laci_type type = {LAC_DTYPE_F32, {3, {3, preprocessing.height, preprocessing.width}}};
  lac_status st = laci_image_read(args[0], &image, err);
  if (!st) st = laci_preparer_create(&preprocessing, &preparer, err);
  if (!st) {
    float *out = laci_alloc((size_t)laci_shape_count(&type.shape), sizeof *out);
    st = out ? laci_prepare_image(preparer, args[0], &image, out, err)
             : laci_fail_memory(err, "out");
    if (!st) st = laci_npy_write(args[4], &type, out, true, err);
    laci_free(out);
  }
  laci_preparer_destroy(preparer);
  laci_image_clear(&image);
  return st;
}

static lac_status draw_regions(char **args, lac_error *err) {
  uint64_t seed = strtoull(args[0], NULL, 10);
  int width = atoi(args[1]), height = atoi(args[2]), n = atoi(args[3]);
  int32_t *rows = laci_alloc((size_t)n * 4, sizeof *rows);
  if (!rows) return laci_fail_memory(err, "draws");
  for (int k = 0; k < n; k++) {
    laci_region r = laci_draw_region(seed, (uint64_t)k, width, height);
    memcpy(rows + (size_t)k * 4, (int32_t[]){r.left, r.top, r.width, r.height}, 16);
  }
  laci_type type = {LAC_DTYPE_I32, {2, {n, 4}}};
  lac_status st = laci_npy_write(args[4], &type, rows, true, err);
  laci_free(rows);
  return st;
}

static lac_status change_all(laci_policy_kind kind, const char *name, const laci_image *from,
                             uint8_t *to, lac_error *err) {
  const size_t n_bytes = (size_t)from->width * (size_t)from->height * 3;
  laci_image images[2] = {{0}};
  lac_status st = LAC_OK;
  for (int at = 0; at < LACI_PIXELS_CHANGES * LACI_POLICY_BINS * 2 && !st; at++) {
    const laci_pixel_change change = (laci_pixel_change)(at / 2 / LACI_POLICY_BINS);
    const double magnitude =
        laci_policy_magnitude(kind, change, at / 2 % LACI_POLICY_BINS, from->width, from->height);
    const bool is_negative = at % 2 && laci_policy_has_sign(change);
    st = laci_image_set_size(&images[0], name, from->width, from->height, err);
    if (!st) memcpy(images[0].rgb, from->rgb, n_bytes);
    if (!st) {
      st = laci_pixels_change(change, is_negative ? -magnitude : magnitude, name, &images[0],
                              &images[1], err);
    }
    if (!st) memcpy(to + (size_t)at * n_bytes, images[0].rgb, n_bytes);
  }
  for (int k = 0; k < 2; k++) laci_image_clear(&images[k]);
  return st;
}

static lac_status policy(char **args, lac_error *err) {
  laci_image image = {0};
  laci_policy_kind kind = LACI_POLICY_NONE;
  if (!laci_policy_find(args[1], &kind)) return laci_fail(err, LAC_BAD_ARGUMENT, "%s", args[1]);
  lac_status st = laci_image_read(args[0], &image, err);
  if (st) return st;
  laci_type type = {LAC_DTYPE_U8,
                    {6, {LACI_PIXELS_CHANGES, LACI_POLICY_BINS, 2, image.height, image.width, 3}}};
  uint8_t *bytes = laci_alloc((size_t)laci_shape_count(&type.shape), 1);
  st = bytes ? change_all(kind, args[0], &image, bytes, err) : laci_fail_memory(err, "bytes");
  if (!st) st = laci_npy_write(args[2], &type, bytes, true, err);
  laci_free(bytes);
  laci_image_clear(&image);
  return st;
}

static laci_region drawn(const void *context, int width, int height) {
  char *const *args = context;
  laci_region r =
      laci_draw_region(strtoull(args[1], NULL, 10), strtoull(args[2], NULL, 10), width, height);
  (void)printf("%d %d %d %d\n", r.left, r.top, r.width, r.height);
  return r;
}

static lac_status read_drawn(char **args, laci_image *image, lac_error *err) {
  int side = atoi(args[3]);
  laci_image_part part = {drawn, args, side, side};
  laci_file_bytes file;
  lac_status st = laci_file_bytes_read(args[0], &file, err);
  if (!st) st = laci_image_decode_part(args[0], file.bytes, file.size_bytes, &part, image, err);
  laci_file_bytes_clear(&file);
  return st;
}

static lac_status prepare_part(char **args, lac_error *err) {
  int side = atoi(args[3]);
  laci_image image = {0};
  laci_preparer *preparer = NULL;
  laci_preprocessing grey = {.height = side, .width = side, .std = {1, 1, 1}};
  laci_type type = {LAC_DTYPE_F32, {3, {3, side, side}}};
  float *out = laci_alloc((size_t)laci_shape_count(&type.shape), sizeof *out);
  lac_status st = out ? read_drawn(args, &image, err) : laci_fail_memory(err, "out");
  if (!st) st = laci_preparer_create(&grey, &preparer, err);
  if (!st) st = laci_prepare_image_part(preparer, args[0], &image, false, out, err);
  if (!st) st = laci_npy_write(args[4], &type, out, true, err);
  laci_preparer_destroy(preparer);
  laci_image_clear(&image);
  laci_free(out);
  return st;
}

static lac_status open_set(const char *folder, const char *part, const char *classes,
                           laci_dataset **set, lac_error *err) {
  laci_dataset_options options = {0};
  if (strcmp(part, "train") == 0) options.part = LACI_PART_TRAIN;
  if (strcmp(classes, "-") != 0) options.classes_path = classes;
  return laci_dataset_open(folder, &options, set, err);
}

static lac_status list_set(char **args, lac_error *err) {
  laci_dataset *set = NULL;
  lac_status st = open_set(args[0], args[1], args[2], &set, err);
  if (st) return st;
  (void)printf("%" PRId64 " images, %d classes\n", laci_dataset_count(set),
               laci_dataset_count_classes(set));
  for (int64_t at = 0; at < laci_dataset_count(set); at++) {
    int label = laci_dataset_label(set, at);
    const char *name = laci_dataset_class_name(set, label);
    (void)printf("%" PRId64 "\t%d\t%s\n", at, label, name ? name : "-");
  }
  laci_dataset_close(set);
  return LAC_OK;
}

static lac_status decode_of_set(char **args, lac_error *err) {
  laci_dataset *set = NULL;
  laci_image image = {0};
  lac_status st = open_set(args[0], args[1], "-", &set, err);
  if (!st) st = laci_dataset_read_image(set, atoi(args[2]), &image, err);
  laci_type type = {LAC_DTYPE_U8, {3, {image.height, image.width, 3}}};
  if (!st) st = laci_npy_write(args[3], &type, image.rgb, true, err);
  laci_image_clear(&image);
  laci_dataset_close(set);
  return st;
}

/** All images through two buffers of a batch each. */
static lac_status load_all(laci_loader *loader, int batch, size_t sample, float *pixels,
                           int32_t *labels, lac_error *err) {
  float *target[2] = {laci_alloc((size_t)batch * sample, sizeof(float)),
                      laci_alloc((size_t)batch * sample, sizeof(float))};
  int32_t *label_target[2] = {laci_alloc((size_t)batch, 4), laci_alloc((size_t)batch, 4)};
  lac_status st = LAC_OK;
  for (int k = 0; k < 2 && !st; k++)
    st = laci_loader_queue_batch(loader, target[k], label_target[k], err);
  while (!st) {
    laci_batch b;
    st = laci_loader_take_batch(loader, &b, err);
    if (st || b.n == 0) break;
    memcpy(pixels + (size_t)b.first * sample, b.pixels, (size_t)b.n * sample * sizeof *pixels);
    memcpy(labels + b.first, b.labels, (size_t)b.n * sizeof *labels);
    st = laci_loader_queue_batch(loader, b.pixels, b.labels, err);
  }
  laci_loader_destroy(loader);
  for (int k = 0; k < 2; k++) {
    laci_free(target[k]);
    laci_free(label_target[k]);
  }
  return st;
}

static lac_status save_batches(laci_dataset *set, char **args, lac_error *err) {
  laci_loader_options options = laci_loader_options_default(set);
  laci_loader *loader = NULL;
  options.batch = atoi(args[2]);
  options.limit = atoi(args[3]);
  options.threads = atoi(args[4]);
  for (int c = 0; c < 3 && strcmp(args[5], "-") != 0; c++) {
    options.preprocessing.mean[c] = strtof(args[5], NULL);
    options.preprocessing.std[c] = strtof(args[6], NULL);
  }
  lac_status st = laci_loader_create(set, &options, &loader, err);
  if (st) return st;
  int64_t n = laci_loader_count(loader);
  laci_type type = {LAC_DTYPE_F32,
                    {4, {n, 3, options.preprocessing.height, options.preprocessing.width}}};
  laci_type label_type = {LAC_DTYPE_I32, {1, {n}}};
  size_t sample = (size_t)laci_shape_count_range(&type.shape, 1, 4);
  float *pixels = laci_alloc((size_t)n * sample, sizeof *pixels);
  int32_t *labels = laci_alloc((size_t)n, sizeof *labels);
  st = load_all(loader, options.batch, sample, pixels, labels, err);
  if (!st) st = laci_npy_write(args[7], &type, pixels, true, err);
  if (!st) st = laci_npy_write(args[8], &label_type, labels, true, err);
  laci_free(pixels);
  laci_free(labels);
  return st;
}

static lac_status load_batches(char **args, lac_error *err) {
  laci_dataset *set = NULL;
  lac_status st = open_set(args[0], args[1], "-", &set, err);
  if (!st) st = save_batches(set, args, err);
  laci_dataset_close(set);
  return st;
}

static lac_status measure(char **args, lac_error *err) {
  laci_npy logits = {0}, labels = {0};
  laci_metrics metrics = {0};
  lac_status st = laci_npy_read(args[0], &logits, err);
  if (!st) st = laci_npy_read(args[1], &labels, err);
  if (!st && (logits.type.dtype != LAC_DTYPE_F32 || labels.type.dtype != LAC_DTYPE_I32)) {
    st = laci_fail(err, LAC_BAD_ARGUMENT, "wanted f32 and i32");
  }
  if (!st) {
    st = laci_metrics_add(&metrics, (const float *)logits.bytes, logits.type.shape.dims[0],
                          logits.type.shape.dims[1], (const int32_t *)labels.bytes, err);
  }
  if (!st) {
    (void)printf("%.17g %.17g %.17g\n", laci_metrics_top1(&metrics), laci_metrics_top5(&metrics),
                 laci_metrics_loss(&metrics));
  }
  laci_npy_clear(&logits);
  laci_npy_clear(&labels);
  return st;
}

static const struct {
  const char *name;
  int n_args;
  lac_status (*run)(char **args, lac_error *err);
} verbs[] = {{"npy", 2, copy_array},       {"bf16", 2, cut_to_bf16}, {"image", 2, decode},
             {"prepare", 5, prepare},      {"set", 3, list_set},     {"decoded", 4, decode_of_set},
             {"batches", 9, load_batches}, {"metrics", 2, measure},  {"draws", 5, draw_regions},
             {"part", 5, prepare_part},    {"policy", 3, policy}};

int main(int argc, char **argv) {
  lac_error err = {0};
  for (size_t at = 0; at < sizeof verbs / sizeof *verbs; at++) {
    if (argc != verbs[at].n_args + 2 || strcmp(argv[1], verbs[at].name) != 0) continue;
    lac_status st = verbs[at].run(argv + 2, &err);
    if (st) (void)fprintf(stderr, "%s\n", err.text);
    return st ? 1 : 0;
  }
  (void)fprintf(stderr, "usage: see the head of tests/tools/data_main.c\n");
  return 2;
}
