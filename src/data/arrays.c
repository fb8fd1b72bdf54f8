/* SPDX-License-Identifier: Apache-2.0
 * Labelled samples in arrays: one array of samples, and `labels`, one integer for each.
 *
 * Floats are samples that need no preparation: they are neither prepared nor augmented. Bytes are
 * images, in colour or grey, prepared and augmented as those of other formats. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/ending.h"
#include "base/error.h"
#include "data/array_list.h"
#include "data/dataset_in.h"
#include "data/image.h"
#include "data/npz.h"
#include "tensor/buf.h"

enum { MOST_CLASS = 1 << 24, CHANGE_PAD = 4 };

typedef struct array_set {
  laci_npz *npz; /* the archive that holds the arrays; NULL: they are in separate files, or in
                    memory */
  laci_rows *samples;
  int channels;        /* number of channels of images: 1 or 3 */
  bool channels_first; /* images are [channels, height, width], else [height, width, channels] */
  int height, width;   /* size of images in pixels */
} array_set;

/* ---- Reading ---- */

static void write_sample_name(const laci_dataset *set, int64_t at, char *text, size_t size_bytes) {
  const array_set *a = set->own;
  (void)snprintf(text, size_bytes, "%s: sample %lld", laci_rows_name(a->samples), (long long)at);
}

static lac_status read_float_sample(const laci_dataset *set, int64_t at, float *out,
                                    lac_error *err) {
  const array_set *a = set->own;
  lac_status st = laci_rows_read_f32(a->samples, at, out, err);
  return st ? st
            : laci_rows_check_finite(a->samples, at, out, laci_rows_elements_per_row(a->samples),
                                     err);
}

static lac_status read_image(const laci_dataset *set, int64_t at, laci_image *image,
                             lac_error *err) {
  const array_set *a = set->own;
  const size_t pixels = (size_t)a->height * (size_t)a->width, channels = (size_t)a->channels;
  lac_status st = laci_image_set_size(image, set->folder, a->width, a->height, err);
  uint8_t *row = st ? NULL : laci_alloc(pixels, channels);
  if (!st && !row) st = laci_fail_memory(err, set->folder);
  if (!st) st = laci_rows_read_u8(a->samples, at, row, err);
  for (size_t x = 0; x < pixels && !st; x++) {
    for (size_t k = 0; k < 3; k++) {
      const size_t c = channels == 1 ? 0 : k;
      image->rgb[x * 3 + k] = row[a->channels_first ? c * pixels + x : x * channels + c];
    }
  }
  laci_free(row);
  return st;
}

static void close_set(laci_dataset *set) {
  array_set *a = set->own;
  if (!a) return;
  laci_rows_close(a->samples);
  laci_npz_close(a->npz);
  laci_free(a);
  set->own = NULL;
}

static const laci_dataset_kind ready = {
    .ready = read_float_sample, .name = write_sample_name, .close = close_set};
static const laci_dataset_kind images = {
    .image = read_image, .name = write_sample_name, .close = close_set};

/* ---- Opening ---- */

bool laci_arrays_exist_in(const char *path) {
  char labels[4200];
  if (laci_ends_with(path, ".npz") || laci_ends_with(path, ".npy"))
    return laci_path_has_arrays(path);
  (void)snprintf(labels, sizeof labels, "%.4000s/%s.npy", path, laci_labels_name);
  return access(labels, F_OK) == 0;
}

static lac_status fail_element_type(const array_set *a, lac_error *err) {
  const laci_type *type = laci_rows_type(a->samples);
  char text[256];
  return laci_fail(err, LAC_BAD_SHAPE,
                   "%s: found %s %s, wanted floats [N, ...], or bytes (u8) for images, "
                   "[N, C, H, W] or [N, H, W, C], with 1 or 3 channels",
                   laci_rows_name(a->samples), lac_dtype_name(type->dtype),
                   laci_shape_text(&type->shape, text, sizeof text));
}

/* Sets the sizes and the order of axes of images from the array's shape. False: these are no
 * images. If the channels could be first or last, they are taken to be first. */
static bool find_axes(array_set *a, const laci_shape *shape) {
  const int64_t *d = shape->dims;
  if (shape->rank != 4) return false;
  a->channels_first = d[1] == 3 || d[1] == 1;
  const int64_t channels = a->channels_first ? d[1] : d[3];
  const int64_t height = d[a->channels_first ? 2 : 1], width = d[a->channels_first ? 3 : 2];
  a->channels = (int)channels;
  a->height = (int)height;
  a->width = (int)width;
  return (channels == 1 || channels == 3) && height >= 1 && width >= 1 &&
         height <= LACI_PREPROCESSING_MAX && width <= LACI_PREPROCESSING_MAX;
}

/* Sets the usual preprocessing for images in an array: they keep their size unless the caller says
 * otherwise. */
static void set_image_preprocessing(laci_dataset *set) {
  const array_set *a = set->own;
  laci_preprocessing *p = &set->preprocessing;
  set->kind = &images;
  *p = laci_preprocessing_default();
  p->resize = 0;
  p->height = a->height;
  p->width = a->width;
  p->is_grey = a->channels == 1;
  for (int k = 0; k < 3 && p->is_grey; k++) {
    p->mean[k] = 0;
    p->std[k] = 255;
  }
  set->augment = (laci_augment){.pad = CHANGE_PAD, .flip = true};
}

static lac_status find_sample_kind(laci_dataset *set, lac_error *err) {
  array_set *a = set->own;
  const laci_type *type = laci_rows_type(a->samples);
  if (type->shape.rank < 1) return fail_element_type(a, err);
  set->count = type->shape.dims[0];
  if (laci_dtype_is_float(type->dtype)) {
    set->preprocessing.is_ready = true;
    set->preprocessing.ready.rank = type->shape.rank - 1;
    for (int axis = 1; axis < type->shape.rank; axis++)
      set->preprocessing.ready.dims[axis - 1] = type->shape.dims[axis];
  } else if (type->dtype == LAC_DTYPE_U8 && find_axes(a, &type->shape)) {
    set_image_preprocessing(set);
  } else {
    return fail_element_type(a, err);
  }
  if (set->count > 0) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: no samples in it", laci_rows_name(a->samples));
}

static lac_status read_label_array(laci_dataset *set, const laci_rows *labels, lac_error *err) {
  lac_status st = laci_check_labels(labels, set->count, err);
  if (st) return st;
  set->labels = laci_alloc((size_t)set->count, sizeof *set->labels);
  if (!set->labels) return laci_fail_memory(err, set->folder);
  for (int64_t at = 0; at < set->count; at++) {
    int64_t label;
    st = laci_rows_read_i64(labels, at, &label, err);
    if (st) return st;
    if (label < 0 || label >= MOST_CLASS) {
      return laci_fail(err, LAC_BAD_VALUE, "%s: label %lld of sample %lld, wanted 0 to %d",
                       laci_rows_name(labels), (long long)label, (long long)at, MOST_CLASS - 1);
    }
    set->labels[at] = (int32_t)label;
    if (label >= set->n_classes) set->n_classes = (int)label + 1;
  }
  return LAC_OK;
}

/* Takes the array of samples over from the list; *labels still belongs to the list. */
static lac_status take_sample_and_label_arrays(laci_dataset *set,
                                               const laci_dataset_options *options,
                                               laci_array_list *list, const laci_rows **labels,
                                               lac_error *err) {
  array_set *a = set->own;
  for (int k = 0; k < list->n; k++) {
    const char *name = list->names[k];
    if (strcmp(name, laci_labels_name) == 0) {
      *labels = list->rows[k];
      continue;
    }
    const bool fits = !options->input || strcmp(name, options->input) == 0 ||
                      (name[0] == '\0' && !options->arrays); /* the array of a single .npy file has
                                                                no name */
    if (a->samples || !fits) {
      return laci_fail(err, LAC_BAD_ARGUMENT,
                       "%s: array %s, wanted one of samples%s%s, and %s, one integer for each",
                       set->folder, name, options->input ? ", " : "",
                       options->input ? options->input : "", laci_labels_name);
    }
    a->samples = list->rows[k];
    list->rows[k] = NULL;
  }
  if (a->samples && *labels) return LAC_OK;
  return laci_fail(err, LAC_NOT_FOUND, "%s: no array %s", set->folder,
                   *labels ? options->input ? options->input : "of samples" : laci_labels_name);
}

lac_status laci_arrays_open(laci_dataset *set, const laci_dataset_options *options,
                            lac_error *err) {
  laci_array_list list;
  const laci_rows *labels = NULL;
  if (options->classes_path) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: the labels of arrays are numbers, not names of classes",
                     options->classes_path);
  }
  array_set *a = laci_alloc(1, sizeof *a);
  if (!a) return laci_fail_memory(err, set->folder);
  set->kind = &ready;
  set->own = a;
  set->format = "arrays";
  set->may_lack_classes = true;
  lac_status st = options->arrays ? laci_array_list_open_memory(set->folder, options->arrays,
                                                                options->n_arrays, &list, err)
                                  : laci_array_list_open(set->folder, NULL, &list, err);
  if (st) return st;
  st = take_sample_and_label_arrays(set, options, &list, &labels, err);
  if (!st) st = find_sample_kind(set, err);
  if (!st) st = read_label_array(set, labels, err);
  a->npz = laci_array_list_close_but_npz(&list);
  return st;
}
