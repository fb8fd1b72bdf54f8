/* SPDX-License-Identifier: Apache-2.0
 * Samples that are rows of arrays, one array for each input of the network: from a .npz, from a
 * folder of .npy files, or from a single .npy. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "data/dataset_in.h"
#include "data/listing_in.h"
#include "data/npz.h"
#include "data/rows.h"
#include "data/samples_in.h"
#include "tensor/buf.h"

static const char labels_name[] = "labels";

typedef struct array_samples {
  laci_npz *npz;      /* NULL: the arrays are in separate files */
  laci_rows **inputs; /* [n_inputs] */
  laci_rows *labels;  /* NULL: there are none */
} array_samples;

static bool ends_in(const char *name, const char *ending) {
  size_t n = strlen(name), n_ending = strlen(ending);
  return n > n_ending && strcmp(name + n - n_ending, ending) == 0;
}

/* Lists the names of the .npy files in a folder, without the ending, in no particular order. */
static lac_status list_npy(const char *folder, laci_arena *arena, laci_name_list *list,
                           lac_error *err) {
  DIR *files = opendir(folder);
  lac_status st = LAC_OK;
  if (!files) return laci_fail_errno(err, folder, "listing");
  for (struct dirent *file; !st && (file = readdir(files));) {
    if (file->d_name[0] == '.' || !ends_in(file->d_name, ".npy")) continue;
    const char *name = laci_arena_text_n(arena, file->d_name, strlen(file->d_name) - 4);
    if (!laci_name_list_add(list, name)) st = laci_fail_memory(err, folder);
  }
  (void)closedir(files);
  return st;
}

bool laci_samples_are_arrays(const char *path) {
  bool found = ends_in(path, ".npy") || ends_in(path, ".npz");
  if (!laci_is_folder(path)) return found;
  DIR *files = opendir(path);
  found = false;
  for (struct dirent *file; files && !found && (file = readdir(files));)
    found = file->d_name[0] != '.' && ends_in(file->d_name, ".npy");
  if (files) (void)closedir(files);
  return found;
}

/* ---- Finding the array of each input ---- */

static lac_status fail_unknown(const laci_samples *s, const char *name, lac_error *err) {
  char known[300] = "";
  size_t n = 0;
  for (int k = 0; k < s->options.n_inputs && n < sizeof known; k++) {
    n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", k ? ", " : "",
                          s->options.inputs[k].name);
  }
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: array %s is no input of the network: wanted %s",
                   s->path, name, known);
}

/* Returns where to store the rows of the array called `name`; NULL: the name is neither an input
 * nor "labels". */
static laci_rows **rows_of_array(const laci_samples *s, const char *name) {
  array_samples *own = s->own;
  for (int k = 0; k < s->options.n_inputs; k++) {
    if (strcmp(s->options.inputs[k].name, name) == 0) return &own->inputs[k];
  }
  return strcmp(name, labels_name) == 0 ? &own->labels : NULL;
}

static lac_status open_npz(laci_samples *s, lac_error *err) {
  array_samples *own = s->own;
  lac_status st = laci_npz_open(s->path, &own->npz, err);
  for (int k = 0; !st && k < laci_npz_count(own->npz); k++) {
    laci_rows **place = rows_of_array(s, laci_npz_name(own->npz, k));
    st = place ? laci_npz_open_rows(own->npz, k, s->options.budget, place, err)
               : fail_unknown(s, laci_npz_name(own->npz, k), err);
  }
  return st;
}

static lac_status open_folder(laci_samples *s, lac_error *err) {
  laci_name_list list = {0};
  char file[4200];
  lac_status st = list_npy(s->path, &s->arena, &list, err);
  for (size_t k = 0; k < list.n && !st; k++) {
    laci_rows **place = rows_of_array(s, list.at[k]);
    (void)snprintf(file, sizeof file, "%.300s.npy", list.at[k]);
    const char *path = laci_path_in(&s->arena, s->path, file);
    if (!path) st = laci_fail_memory(err, s->path);
    else
      st = place ? laci_rows_open(path, s->options.budget, place, err)
                 : fail_unknown(s, list.at[k], err);
  }
  laci_free(list.at);
  return st;
}

static lac_status open_single(laci_samples *s, lac_error *err) {
  array_samples *own = s->own;
  if (s->options.n_inputs == 1)
    return laci_rows_open(s->path, s->options.budget, &own->inputs[0], err);
  return laci_fail(
      err, LAC_BAD_ARGUMENT,
      "%s: one array, but the network has %d inputs: wanted a .npz or a folder with an "
      "array for each",
      s->path, s->options.n_inputs);
}

/* ---- Checking that the arrays fit the network ---- */

static lac_status open_memory(laci_samples *s, lac_error *err) {
  lac_status st = LAC_OK;
  for (int k = 0; k < s->options.n_arrays && !st; k++) {
    const laci_rows_memory *array = &s->options.arrays[k];
    laci_rows **place = rows_of_array(s, array->name);
    if (!place) return fail_unknown(s, array->name, err);
    if (*place) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "%s: array %s is given twice", s->path, array->name);
    }
    st = laci_rows_open_memory(array, place, err);
  }
  return st;
}

static lac_status fail_mismatch(const laci_samples *s, int input, const char *why, lac_error *err) {
  const array_samples *own = s->own;
  const laci_sample_input *wanted = &s->options.inputs[input];
  const laci_type *found = laci_rows_type(own->inputs[input]);
  char here[256], there[256];
  return laci_fail(err, LAC_BAD_SHAPE, "%s: found %s %s, but input '%s' is %s %s: %s",
                   laci_rows_name(own->inputs[input]), lac_dtype_name(found->dtype),
                   laci_shape_text(&found->shape, here, sizeof here), wanted->name,
                   lac_dtype_name(wanted->type.dtype),
                   laci_shape_text(&wanted->type.shape, there, sizeof there), why);
}

static lac_status check_input(laci_samples *s, int input, lac_error *err) {
  const array_samples *own = s->own;
  const laci_type *wanted = &s->options.inputs[input].type;
  if (!own->inputs[input]) {
    return laci_fail(err, LAC_NOT_FOUND, "%s: no array for the input '%s'", s->path,
                     s->options.inputs[input].name);
  }
  const laci_type *found = laci_rows_type(own->inputs[input]);
  bool floats = laci_dtype_is_float(found->dtype);
  char why[160];
  if (wanted->dtype != LAC_DTYPE_NONE && laci_dtype_is_float(wanted->dtype) != floats)
    return fail_mismatch(s, input, floats ? "wanted integers" : "wanted floats", err);
  if (found->shape.rank < 1)
    return fail_mismatch(s, input, "wanted samples along the first axis", err);
  if (wanted->shape.rank >= 0 && wanted->shape.rank != found->shape.rank) {
    (void)snprintf(why, sizeof why, "found %d axes, wanted %d", found->shape.rank,
                   wanted->shape.rank);
    return fail_mismatch(s, input, why, err);
  }
  for (int axis = 1; axis < found->shape.rank && wanted->shape.rank >= 0; axis++) {
    int64_t size = wanted->shape.dims[axis];
    if (size < 0 || size == found->shape.dims[axis]) continue;
    (void)snprintf(why, sizeof why, "found %lld along axis %d, wanted %lld",
                   (long long)found->shape.dims[axis], axis, (long long)size);
    return fail_mismatch(s, input, why, err);
  }
  s->types[input] = (laci_type){floats ? LAC_DTYPE_F32 : LAC_DTYPE_I64, found->shape};
  s->types[input].shape.dims[0] = 1;
  return LAC_OK;
}

/* Fails unless the array has as many samples as that of the first input. */
static lac_status check_count(const laci_samples *s, const laci_rows *rows, lac_error *err) {
  const laci_shape *shape = &laci_rows_type(rows)->shape;
  int64_t n = shape->rank > 0 ? shape->dims[0] : 1;
  if (n == s->available) return LAC_OK;
  return laci_fail(err, LAC_BAD_SHAPE, "%s: %lld samples, but the first input has %lld",
                   laci_rows_name(rows), (long long)n, (long long)s->available);
}

static lac_status check_labels(const laci_samples *s, lac_error *err) {
  const array_samples *own = s->own;
  if (!own->labels) return LAC_OK;
  const laci_type *type = laci_rows_type(own->labels);
  char text[256];
  if (laci_dtype_is_integer(type->dtype) && type->shape.rank >= 1 &&
      laci_rows_width(own->labels) == 1)
    return check_count(s, own->labels, err);
  return laci_fail(err, LAC_BAD_SHAPE, "%s: found %s %s, wanted one integer for each sample",
                   laci_rows_name(own->labels), lac_dtype_name(type->dtype),
                   laci_shape_text(&type->shape, text, sizeof text));
}

/* ---- Batches ---- */

/** Are all numbers of the row finite? x * 0 is NaN if x is NaN or infinite, else 0. */
static bool is_finite_row(const float *row, int64_t width) {
  float sum = 0;
  for (int64_t e = 0; e < width; e++) sum += row[e] * 0.0f;
  return sum == 0;
}

/** Fails LAC_BAD_VALUE if a number of the sample is not finite, since it would make sums over all
 * samples useless. */
static lac_status check_finite(const laci_rows *rows, int64_t at, const float *row,
                               lac_error *err) {
  const int64_t width = laci_rows_width(rows);
  int64_t e = 0;
  if (is_finite_row(row, width)) return LAC_OK;
  while (isfinite(row[e])) e++;
  return laci_fail(
      err, LAC_BAD_VALUE, "%s: element %lld of sample %lld is %s; wanted finite numbers",
      laci_rows_name(rows), (long long)e, (long long)at, isnan(row[e]) ? "NaN" : "infinite");
}

/** Reads row `at` of an input as floats or as int64. */
static lac_status read_row(const laci_rows *rows, int64_t at, bool floats, void *to,
                           lac_error *err) {
  if (!floats) return laci_rows_read_i64(rows, at, to, err);
  lac_status st = laci_rows_read_f32(rows, at, to, err);
  return st ? st : check_finite(rows, at, to, err);
}

static lac_status read_batch(laci_samples *s, int64_t first, int64_t n, void *const *to,
                             lac_error *err) {
  const array_samples *own = s->own;
  lac_status st = LAC_OK;
  for (int input = 0; input < s->options.n_inputs; input++) {
    const laci_rows *rows = own->inputs[input];
    int64_t width = laci_rows_width(rows);
    bool floats = s->types[input].dtype == LAC_DTYPE_F32;
    const size_t element = floats ? sizeof(float) : sizeof(int64_t);
    for (int64_t k = 0; k < n && !st; k++) {
      int copy;
      int64_t at = laci_samples_index_at(s, first + k, &copy);
      st = read_row(rows, at, floats, (char *)to[input] + (size_t)(k * width) * element, err);
    }
  }
  if (!st && laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  return st;
}

static void close_arrays(laci_samples *s) {
  array_samples *own = s->own;
  if (!own) return;
  for (int k = 0; own->inputs && k < s->options.n_inputs; k++) laci_rows_close(own->inputs[k]);
  laci_rows_close(own->labels);
  laci_npz_close(own->npz);
  laci_free(own->inputs);
  laci_free(own);
}

/* ---- Opening ---- */

static lac_status check_image_options(const laci_samples *s, lac_error *err) {
  const laci_samples_options *o = &s->options;
  const char *what = o->copies > 0                  ? "changed copies"
                     : o->resize > 0 || o->crop > 0 ? "resizing and cropping"
                     : o->mean || o->std            ? "mean and std"
                                                    : NULL;
  if (!what) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: %s %s for images, but these are arrays", s->path,
                   what, "are");
}

static lac_status open_arrays(laci_samples *s, lac_error *err) {
  lac_status st = check_image_options(s, err);
  if (st) return st;
  array_samples *own = laci_alloc(1, sizeof *own);
  if (!own) return laci_fail_memory(err, s->path);
  s->own = own;
  own->inputs = laci_alloc((size_t)s->options.n_inputs, sizeof(laci_rows *));
  if (!own->inputs) return laci_fail_memory(err, s->path);
  if (s->options.arrays) st = open_memory(s, err);
  else if (ends_in(s->path, ".npz")) st = open_npz(s, err);
  else if (laci_is_folder(s->path)) st = open_folder(s, err);
  else st = open_single(s, err);
  for (int k = 0; k < s->options.n_inputs && !st; k++) st = check_input(s, k, err);
  if (st) return st;
  s->available = s->options.n_inputs ? laci_rows_type(own->inputs[0])->shape.dims[0] : 0;
  for (int k = 1; k < s->options.n_inputs && !st; k++) st = check_count(s, own->inputs[k], err);
  return st ? st : check_labels(s, err);
}

static lac_status label_arrays(laci_samples *s, lac_error *err) {
  const array_samples *own = s->own;
  if (!own->labels) return LAC_OK;
  s->labels = laci_alloc((size_t)(s->count + s->judging), sizeof *s->labels);
  if (!s->labels) return laci_fail_memory(err, s->path);
  for (int64_t place = 0; place < s->count + s->judging; place++) {
    int copy;
    int64_t at = laci_samples_index_at(s, place, &copy);
    lac_status st = laci_rows_read_i64(own->labels, at, &s->labels[place], err);
    if (!st && s->labels[place] < 0) {
      st = laci_fail(err, LAC_BAD_VALUE, "%s: label %lld of sample %lld, wanted 0 or more",
                     laci_rows_name(own->labels), (long long)s->labels[place], (long long)at);
    }
    if (st) return st;
  }
  return LAC_OK;
}

const laci_samples_kind laci_samples_of_arrays = {.open = open_arrays,
                                                  .label = label_arrays,
                                                  .read = read_batch,
                                                  .close = close_arrays,
                                                  .noun = "samples of"};
