/* SPDX-License-Identifier: Apache-2.0
 * CIFAR-10 and CIFAR-100: images of three channels of 32 x 32 bytes, red, green, blue. In the
 * binary layout, a record is one or two label bytes and an image. In Python's layout, a file is a
 * pickle whose images are one array (cifar_pickle.c). The files stay open, and images are read by
 * their numbers. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/reader.h"
#include "data/cifar_in.h"
#include "data/image.h"

enum { SIDE = 32, CHANNEL_BYTES = SIDE * SIDE, IMAGE_BYTES = 3 * CHANNEL_BYTES, MAX_FILES = 64 };
enum { RUN = 64 }; /* number of records that are read at a time to get their labels */

/** A variant of CIFAR: 10 or 100 classes, binary or pickled. */
typedef struct layout {
  int n_labels, n_classes; /* n_labels: number of label bytes in a record, of which the last one is
                              used; 0: a pickle */
  const char *format, *test, *train, *names;
  const char *label_key, *name_key; /* keys of the labels and of the class names in pickles */
} layout;

static const layout layouts[] = {
    {1, 10, "cifar10", "test_batch.bin", "data_batch_%d.bin", "batches.meta.txt", NULL, NULL},
    {2, 100, "cifar100", "test.bin", "train.bin", "fine_label_names.txt", NULL, NULL},
    {0, 10, "cifar10", "test_batch", "data_batch_%d", "batches.meta", "labels", "label_names"},
    {0, 100, "cifar100", "test", "train", "meta", "fine_labels", "fine_label_names"},
};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

typedef struct cifar_file {
  laci_reader *reader;
  const char *path;
  int64_t first; /* index, in the set, of the file's first image */
  laci_cifar_images images;
} cifar_file;

typedef struct cifar {
  const layout *layout;
  int n_files;
  cifar_file files[MAX_FILES];
} cifar;

/* ---- Images ---- */

static const cifar_file *find_file_of_image(const laci_dataset *set, int64_t at) {
  const cifar *c = set->own;
  int k = c->n_files - 1;
  while (c->files[k].first > at) k--;
  return &c->files[k];
}

static void write_image_name(const laci_dataset *set, int64_t at, char *text, size_t size_bytes) {
  const cifar_file *file = find_file_of_image(set, at);
  (void)snprintf(text, size_bytes, "%s: record %lld", file->path, (long long)(at - file->first));
}

static lac_status read_image(const laci_dataset *set, int64_t at, laci_image *image,
                             lac_error *err) {
  const cifar_file *file = find_file_of_image(set, at);
  const size_t place = file->images.offset + (size_t)(at - file->first) * file->images.stride;
  uint8_t channels[IMAGE_BYTES];
  lac_status st = laci_image_set_size(image, file->path, SIDE, SIDE, err);
  if (!st) st = laci_reader_copy_range(file->reader, place, sizeof channels, channels, err);
  if (st) return st;
  for (int x = 0; x < CHANNEL_BYTES; x++) {
    for (int k = 0; k < 3; k++) image->rgb[x * 3 + k] = channels[k * CHANNEL_BYTES + x];
  }
  return LAC_OK;
}

static void close_files(laci_dataset *set) {
  cifar *c = set->own;
  for (int k = 0; c && k < c->n_files; k++) {
    laci_reader_close(c->files[k].reader);
    laci_free(c->files[k].images.labels);
  }
  laci_free(c);
  set->own = NULL;
}

static const laci_dataset_kind kind = {
    .image = read_image, .name = write_image_name, .close = close_files};

/* ---- Opening ---- */

/** Does the folder contain a file of this name? If `pickle`, also checks that its content begins
 * like a pickle, since other data may have such names. A path that is too long counts as
 * missing. */
static bool has_file_of_kind(const char *folder, const char *name, bool pickle) {
  char path[PATH_MAX];
  int n = snprintf(path, sizeof path, "%s/%s", folder, name);
  if (n <= 0 || (size_t)n >= sizeof path) return false;
  return pickle ? laci_is_pickle(path) : access(path, F_OK) == 0;
}

static bool folder_has_layout(const char *folder, const layout *l) {
  char train[64];
  (void)snprintf(train, sizeof train, l->train, 1);
  return has_file_of_kind(folder, l->test, !l->n_labels) ||
         has_file_of_kind(folder, train, !l->n_labels);
}

static const layout *find_layout(const char *folder) {
  for (int k = 0; k < N_LAYOUTS; k++) {
    if (folder_has_layout(folder, &layouts[k])) return &layouts[k];
  }
  return NULL;
}

bool laci_cifar_exists_in(const char *folder) { return find_layout(folder) != NULL; }

static lac_status find_image_records(const char *path, int n_labels, size_t size_bytes,
                                     laci_cifar_images *images, lac_error *err) {
  images->offset = (size_t)n_labels;
  images->stride = (size_t)n_labels + IMAGE_BYTES;
  images->n = (int64_t)(size_bytes / images->stride);
  if (size_bytes > 0 && size_bytes % images->stride == 0) return LAC_OK;
  return laci_fail(err, LAC_BAD_FILE, "%s: %zu bytes, wanted whole records of %zu", path,
                   size_bytes, images->stride);
}

static lac_status open_and_add_file(laci_dataset *set, const char *name, lac_error *err) {
  cifar *c = set->own;
  cifar_file *file = &c->files[c->n_files];
  file->path = laci_path_join(&set->arena, set->folder, name);
  if (!file->path) return laci_fail_memory(err, set->folder);
  lac_status st = laci_reader_open(file->path, &file->reader, err);
  if (st) return st;
  c->n_files++;
  file->first = set->count;
  file->images.stride = IMAGE_BYTES;
  if (c->layout->n_labels) {
    st = find_image_records(file->path, c->layout->n_labels, laci_reader_size(file->reader),
                            &file->images, err);
  } else {
    st = laci_cifar_pickle_find_images(file->path, file->reader, c->layout->label_key,
                                       set->n_classes, &file->images, err);
  }
  if (!st) set->count += file->images.n;
  return st;
}

static lac_status add_files(laci_dataset *set, laci_dataset_part part, lac_error *err) {
  const layout *l = ((cifar *)set->own)->layout;
  if (part == LACI_PART_TEST) return open_and_add_file(set, l->test, err);
  if (!strchr(l->train, '%')) return open_and_add_file(set, l->train, err);
  for (int k = 1; k <= MAX_FILES; k++) {
    char name[64];
    (void)snprintf(name, sizeof name, l->train, k);
    if (k > 1 && !has_file_of_kind(set->folder, name, false)) break;
    lac_status st = open_and_add_file(set, name, err);
    if (st) return st;
  }
  return LAC_OK;
}

/** Reads the labels of n records of the file, from record `first` on. buffer: scratch of n
 * records. */
static lac_status read_record_labels(laci_dataset *set, const cifar_file *file, int64_t first,
                                     int64_t n, uint8_t *buffer, lac_error *err) {
  const size_t stride = file->images.stride, label_at = file->images.offset - 1;
  lac_status st =
      laci_reader_copy_range(file->reader, (size_t)first * stride, (size_t)n * stride, buffer, err);
  for (int64_t at = 0; at < n && !st; at++) {
    int label = buffer[(size_t)at * stride + label_at];
    set->labels[file->first + first + at] = label;
    if (label < set->n_classes) continue;
    st = laci_fail(err, LAC_BAD_FILE, "%s: record %lld has label %d, wanted 0 to %d", file->path,
                   (long long)(first + at), label, set->n_classes - 1);
  }
  return st;
}

static lac_status read_labels(laci_dataset *set, lac_error *err) {
  const cifar *c = set->own;
  uint8_t *buffer = laci_alloc(RUN, (size_t)c->layout->n_labels + IMAGE_BYTES);
  lac_status st = LAC_OK;
  set->labels = laci_alloc((size_t)set->count, sizeof *set->labels);
  if (!set->labels || !buffer) st = laci_fail_memory(err, set->folder);
  for (int k = 0; k < c->n_files && !st; k++) {
    const cifar_file *file = &c->files[k];
    const int64_t n = file->images.n;
    if (file->images.labels) {
      memcpy(set->labels + file->first, file->images.labels, (size_t)n * sizeof *set->labels);
      continue;
    }
    for (int64_t first = 0; first < n && !st; first += RUN) {
      st = read_record_labels(set, file, first, n - first < RUN ? n - first : RUN, buffer, err);
    }
  }
  laci_free(buffer);
  return st;
}

static lac_status read_class_names_from_text(laci_dataset *set, const char *path, lac_error *err) {
  const char **lines;
  int n_lines;
  lac_status st = laci_read_lines(&set->arena, path, &lines, &n_lines, err);
  if (st) return st;
  if (n_lines != set->n_classes) {
    return laci_fail(err, LAC_BAD_FILE, "%s: %d lines, wanted %d class names", path, n_lines,
                     set->n_classes);
  }
  memcpy(set->class_names, lines, (size_t)n_lines * sizeof *lines);
  return LAC_OK;
}

/** Reads the class names if a file has them; a set without names is complete. */
static lac_status read_names(laci_dataset *set, lac_error *err) {
  const layout *l = ((cifar *)set->own)->layout;
  if (!has_file_of_kind(set->folder, l->names, !l->n_labels)) return LAC_OK;
  const char *path = laci_path_join(&set->arena, set->folder, l->names);
  set->class_names = laci_alloc((size_t)l->n_classes, sizeof *set->class_names);
  if (!path || !set->class_names) return laci_fail_memory(err, set->folder);
  if (l->n_labels) return read_class_names_from_text(set, path, err);
  return laci_cifar_pickle_names(&set->arena, path, l->name_key, l->n_classes, set->class_names,
                                 err);
}

lac_status laci_cifar_open(laci_dataset *set, const laci_dataset_options *options, lac_error *err) {
  if (options->classes_path) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: CIFAR's labels are numbers, not names of classes",
                     options->classes_path);
  }
  cifar *c = laci_alloc(1, sizeof *c);
  if (!c) return laci_fail_memory(err, set->folder);
  set->kind = &kind;
  set->own = c;
  c->layout = find_layout(set->folder);
  if (!c->layout) return laci_fail(err, LAC_NOT_FOUND, "%s: CIFAR's files are gone", set->folder);
  set->n_classes = c->layout->n_classes;
  set->format = c->layout->format;
  set->augment = (laci_augment){.pad = 4, .flip = true};
  set->preprocessing = laci_preprocessing_default();
  set->preprocessing.resize = 0;
  set->preprocessing.height = set->preprocessing.width = SIDE;
  lac_status st = add_files(set, options->part, err);
  if (!st) st = read_labels(set, err);
  if (!st) st = read_names(set, err);
  return st;
}
