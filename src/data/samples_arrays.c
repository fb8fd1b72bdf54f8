/* SPDX-License-Identifier: Apache-2.0
 * Samples that are rows of arrays, one array for each input of the network. Next: array_list.h. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "data/array_list.h"
#include "data/npz.h"
#include "data/samples_in.h"
#include "tensor/buf.h"

typedef struct array_samples {
  laci_npz *npz;      /* NULL: the arrays are in separate files */
  laci_rows **inputs; /* [n_inputs] */
  laci_rows *labels;  /* NULL: there are none */
} array_samples;

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
  return strcmp(name, laci_labels_name) == 0 ? &own->labels : NULL;
}

/* Takes each array of the list to its place. */
static lac_status take_arrays(laci_samples *s, laci_array_list *list, lac_error *err) {
  array_samples *own = s->own;
  for (int k = 0; k < list->n; k++) {
    const bool single = list->names[k][0] == '\0' && !s->options.arrays && list->n == 1;
    laci_rows **place = single ? &own->inputs[0] : rows_of_array(s, list->names[k]);
    if (!place) return fail_unknown(s, list->names[k], err);
    *place = list->rows[k];
    list->rows[k] = NULL;
  }
  return LAC_OK;
}

static lac_status open_all(laci_samples *s, lac_error *err) {
  array_samples *own = s->own;
  const laci_samples_options *o = &s->options;
  laci_array_list list;
  lac_status st = o->arrays
                      ? laci_array_list_open_memory(s->path, o->arrays, o->n_arrays, &list, err)
                      : laci_array_list_open(s->path, o->budget, &list, err);
  if (st) return st;
  if (!o->arrays && list.n == 1 && list.names[0][0] == '\0' && o->n_inputs != 1) {
    st = laci_fail(
        err, LAC_BAD_ARGUMENT,
        "%s: one array, but the network has %d inputs: wanted a .npz or a folder with an array for "
        "each",
        s->path, o->n_inputs);
  }
  if (!st) st = take_arrays(s, &list, err);
  own->npz = laci_array_list_close_but_npz(&list);
  return st;
}

/* ---- Checking that the arrays fit the network ---- */

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

/* ---- Batches ---- */

/** Reads row `at` of an input as floats or as int64. */
static lac_status read_row(const laci_rows *rows, int64_t at, bool floats, void *to,
                           lac_error *err) {
  if (!floats) return laci_rows_read_i64(rows, at, to, err);
  lac_status st = laci_rows_read_f32(rows, at, to, err);
  return st ? st : laci_rows_check_finite(rows, at, to, err);
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
  st = open_all(s, err);
  for (int k = 0; k < s->options.n_inputs && !st; k++) st = check_input(s, k, err);
  if (st) return st;
  s->available = s->options.n_inputs ? laci_rows_type(own->inputs[0])->shape.dims[0] : 0;
  for (int k = 1; k < s->options.n_inputs && !st; k++) st = check_count(s, own->inputs[k], err);
  return st || !own->labels ? st : laci_check_labels(own->labels, s->available, err);
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
