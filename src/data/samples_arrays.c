/* SPDX-License-Identifier: Apache-2.0
 * Samples in arrays, one array for each input of the network. Next: array_list.h,
 * sample_layout.h. */
#include <stdio.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "data/array_list.h"
#include "data/npz.h"
#include "data/sample_layout.h"
#include "data/samples_in.h"
#include "tensor/buf.h"

typedef struct array_input {
  laci_rows *rows; /* the input's array; NULL: the input is a constant */
  laci_sample_layout layout;
  void *whole; /* all elements of the array; NULL: rows are read one by one */
} array_input;

typedef struct array_samples {
  laci_npz *npz;       /* the archive of the arrays; NULL: they are in separate files */
  array_input *inputs; /* [n_inputs] the array of each input */
  laci_rows *labels;   /* the array of the classes; NULL: there is none */
  size_t sample_bytes;
  void *sample; /* scratch for one sample of one input */
} array_samples;

/* ---- Finding the array of each input ---- */

static lac_status fail_unknown_array(const laci_samples *s, const char *name, lac_error *err) {
  char known[300] = "";
  size_t n = 0;
  for (int k = 0; k < s->options.n_inputs && n < sizeof known; k++) {
    n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", k ? ", " : "",
                          s->options.inputs[k].name);
  }
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: array %s is no input of the network: wanted %s",
                   s->path, name, known);
}

/* Returns where to store the rows of the array called `name`. NULL: the name is neither an input
 * nor "labels". */
static laci_rows **find_rows_of_array(const laci_samples *s, const char *name) {
  array_samples *own = s->own;
  for (int k = 0; k < s->options.n_inputs; k++) {
    if (strcmp(s->options.inputs[k].name, name) == 0) return &own->inputs[k].rows;
  }
  return strcmp(name, laci_labels_name) == 0 ? &own->labels : NULL;
}

/* Moves each array of the list to the input that has its name. */
static lac_status take_arrays_of_list(laci_samples *s, laci_array_list *list, lac_error *err) {
  array_samples *own = s->own;
  for (int k = 0; k < list->n; k++) {
    const bool single = list->names[k][0] == '\0' && !s->options.arrays && list->n == 1;
    laci_rows **place = single ? &own->inputs[0].rows : find_rows_of_array(s, list->names[k]);
    if (!place) return fail_unknown_array(s, list->names[k], err);
    *place = list->rows[k];
    list->rows[k] = NULL;
  }
  return LAC_OK;
}

static lac_status open_arrays_of_inputs(laci_samples *s, lac_error *err) {
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
  if (!st) st = take_arrays_of_list(s, &list, err);
  own->npz = laci_array_list_close_but_npz(&list);
  return st;
}

/* ---- Layouts ---- */

static size_t bytes_of_element(const laci_samples *s, int input) {
  return s->types[input].dtype == LAC_DTYPE_F32 ? sizeof(float) : sizeof(int64_t);
}

/** Reads the row with index `at` of an input's array as floats or as int64. */
static lac_status read_row(const laci_rows *rows, int64_t at, bool floats, void *to,
                           lac_error *err) {
  if (!floats) return laci_rows_read_i64(rows, at, to, err);
  lac_status st = laci_rows_read_f32(rows, at, to, err);
  return st ? st : laci_rows_check_finite(rows, at, to, laci_rows_elements_per_row(rows), err);
}

/* Reads a whole array into memory: one that is the same for all samples, or whose samples are not
 * along the first axis while a caller's function delivers rows. */
static lac_status read_whole_array(laci_samples *s, int input, lac_error *err) {
  array_samples *own = s->own;
  const laci_rows *rows = own->inputs[input].rows;
  const laci_shape *shape = &laci_rows_type(rows)->shape;
  const int64_t n = shape->rank > 0 ? shape->dims[0] : 1, width = laci_rows_elements_per_row(rows);
  const size_t element = bytes_of_element(s, input);
  laci_budget *budget = s->options.budget;
  if (budget) {
    laci_budget_add(budget, laci_count_bytes_saturated(n * width, element), "%.200s",
                    laci_rows_name(rows));
    lac_status st = laci_budget_check(budget, "reading the samples", err);
    if (st) return st;
  }
  own->inputs[input].whole = laci_alloc((size_t)(n * width) + 1, element);
  if (!own->inputs[input].whole) return laci_fail_memory(err, laci_rows_name(rows));
  const bool floats = s->types[input].dtype == LAC_DTYPE_F32;
  lac_status st = LAC_OK;
  for (int64_t k = 0; k < n && !st; k++) {
    char *to = (char *)own->inputs[input].whole + (size_t)(k * width) * element;
    st = read_row(rows, k, floats, to, err);
  }
  return st;
}

/* Sets the type, the axis of samples and the buffers of an input's batches. If the content is the
 * same for all batches, it becomes a constant. */
static lac_status set_batch_axis_and_type(laci_samples *s, int input, lac_error *err) {
  array_samples *own = s->own;
  array_input *in = &own->inputs[input];
  const bool floats = laci_dtype_is_float(laci_rows_type(in->rows)->dtype);
  s->types[input] = (laci_type){floats ? LAC_DTYPE_F32 : LAC_DTYPE_I64, in->layout.one};
  s->axes[input] = in->layout.batch_axis;
  if (in->layout.kind == LACI_LAYOUT_STACK && in->layout.batch_axis < 0) s->is_single = true;
  const size_t bytes = (size_t)laci_shape_count(&in->layout.one) * bytes_of_element(s, input);
  if (bytes > own->sample_bytes) own->sample_bytes = bytes;
  const bool by_row = in->layout.kind == LACI_LAYOUT_STACK ||
                      (in->layout.kind == LACI_LAYOUT_ROWS &&
                       (in->layout.axis == 0 || laci_rows_have_parts(in->rows)));
  lac_status st = by_row ? LAC_OK : read_whole_array(s, input, err);
  if (st || in->layout.kind != LACI_LAYOUT_SAME || in->layout.batch_axis >= 0) return st;
  s->constants[input] = in->whole;
  in->whole = NULL;
  return LAC_OK;
}

static lac_status find_layouts(laci_samples *s, lac_error *err) {
  array_samples *own = s->own;
  const int n = s->options.n_inputs;
  laci_sample_array *arrays = laci_alloc((size_t)n + 1, sizeof *arrays);
  laci_sample_layout *layouts = laci_alloc((size_t)n + 1, sizeof *layouts);
  lac_status st = arrays && layouts ? LAC_OK : laci_fail_memory(err, s->path);
  for (int k = 0; k < n && !st; k++) {
    const laci_rows *rows = own->inputs[k].rows;
    bool found = false;
    st = laci_samples_make_constant(s, k, &found, err);
    if (st) break;
    if (rows) arrays[k] = (laci_sample_array){laci_rows_name(rows), laci_rows_type(rows)};
    if (rows && found) {
      st =
          laci_fail(err, LAC_BAD_ARGUMENT, "%s: input '%s' has a constant, too: wanted one of them",
                    laci_rows_name(rows), s->options.inputs[k].name);
    } else if (!rows && !found) {
      st = laci_fail(err, LAC_NOT_FOUND, "%s: no array for the input '%s'", s->path,
                     s->options.inputs[k].name);
    }
  }
  if (!st) {
    st = laci_sample_layouts_find(s->options.inputs, arrays, n, layouts, &s->available, err);
  }
  for (int k = 0; k < n && !st; k++) {
    own->inputs[k].layout = layouts[k];
    if (own->inputs[k].rows) st = set_batch_axis_and_type(s, k, err);
  }
  own->sample = st ? NULL : laci_alloc(own->sample_bytes + 1, 1);
  if (!st && !own->sample) st = laci_fail_memory(err, s->path);
  laci_free(arrays);
  laci_free(layouts);
  return st;
}

/* ---- Batches ---- */

/* Copies the sample with index `at` from a whole array in memory. If all samples share the array,
 * copies all of it. */
static void copy_sample_from_whole(const laci_samples *s, int input, int64_t at, char *to) {
  const array_samples *own = s->own;
  const array_input *in = &own->inputs[input];
  const size_t element = bytes_of_element(s, input);
  const laci_shape *one = &in->layout.one;
  if (in->layout.kind == LACI_LAYOUT_SAME) {
    memcpy(to, in->whole, (size_t)laci_shape_count(one) * element);
    return;
  }
  const int axis = in->layout.axis;
  const int64_t n = laci_rows_type(in->rows)->shape.dims[axis];
  const size_t inner = (size_t)laci_shape_count_range(one, axis, one->rank) * element;
  const int64_t outer = laci_shape_count_range(one, 0, axis);
  for (int64_t k = 0; k < outer; k++)
    memcpy(to + (size_t)k * inner, (const char *)in->whole + (size_t)(k * n + at) * inner, inner);
}

/* Reads the sample with index `at` of an array whose samples are along another axis than the first:
 * one part for each index of the axes before it. */
static lac_status read_sample_in_parts(laci_samples *s, int input, int64_t at, lac_error *err) {
  array_samples *own = s->own;
  const array_input *in = &own->inputs[input];
  const size_t element = bytes_of_element(s, input);
  const laci_shape *one = &in->layout.one;
  const int axis = in->layout.axis;
  const int64_t n = laci_rows_type(in->rows)->shape.dims[axis],
                inner = laci_shape_count_range(one, axis, one->rank),
                outer = laci_shape_count_range(one, 0, axis);
  lac_status st = LAC_OK;
  for (int64_t k = 0; k < outer && !st; k++)
    st = laci_rows_read_part(in->rows, (k * n + at) * inner, inner,
                             (char *)own->sample + (size_t)(k * inner) * element, err);
  if (st || s->types[input].dtype != LAC_DTYPE_F32) return st;
  return laci_rows_check_finite(in->rows, at, own->sample, laci_shape_count(one), err);
}

static lac_status read_sample_of_input(laci_samples *s, int input, int64_t at, lac_error *err) {
  array_samples *own = s->own;
  const array_input *in = &own->inputs[input];
  if (!in->whole && in->layout.kind == LACI_LAYOUT_ROWS && in->layout.axis > 0)
    return read_sample_in_parts(s, input, at, err);
  if (!in->whole)
    return read_row(in->rows, at, s->types[input].dtype == LAC_DTYPE_F32, own->sample, err);
  copy_sample_from_whole(s, input, at, own->sample);
  return LAC_OK;
}

static lac_status read_batch_of_input(laci_samples *s, int input, int64_t first, int64_t n,
                                      void *to, lac_error *err) {
  const array_samples *own = s->own;
  const laci_sample_layout *layout = &own->inputs[input].layout;
  lac_status st = LAC_OK;
  for (int64_t k = 0; k < n && !st; k++) {
    int copy;
    st = read_sample_of_input(s, input, laci_samples_data_index_and_copy(s, first + k, &copy), err);
    if (!st)
      laci_sample_layout_copy_to_batch(layout, bytes_of_element(s, input), k, n, own->sample, to);
  }
  return st;
}

static lac_status read_batch(laci_samples *s, int64_t first, int64_t n, void *const *to,
                             lac_error *err) {
  lac_status st = LAC_OK;
  for (int input = 0; input < s->options.n_inputs && !st; input++) {
    if (!s->constants[input]) st = read_batch_of_input(s, input, first, n, to[input], err);
    else laci_samples_copy_constant(s, input, n, to[input]);
  }
  if (!st && laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  return st;
}

static void close_arrays(laci_samples *s) {
  array_samples *own = s->own;
  if (!own) return;
  for (int k = 0; own->inputs && k < s->options.n_inputs; k++) {
    laci_rows_close(own->inputs[k].rows);
    laci_free(own->inputs[k].whole);
  }
  laci_free(own->sample);
  laci_rows_close(own->labels);
  laci_npz_close(own->npz);
  laci_free(own->inputs);
  laci_free(own);
}

/* ---- Opening ---- */

static lac_status check_no_image_options(const laci_samples *s, lac_error *err) {
  const laci_samples_options *o = &s->options;
  const char *what = o->copies > 0                  ? "changed copies"
                     : o->resize > 0 || o->crop > 0 ? "resizing and cropping"
                     : o->mean || o->std            ? "mean and std"
                                                    : NULL;
  if (!what) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: %s %s for images, but these are arrays", s->path,
                   what, "are");
}

static lac_status open_array_samples(laci_samples *s, lac_error *err) {
  lac_status st = check_no_image_options(s, err);
  if (st) return st;
  array_samples *own = laci_alloc(1, sizeof *own);
  if (!own) return laci_fail_memory(err, s->path);
  s->own = own;
  own->inputs = laci_alloc((size_t)s->options.n_inputs + 1, sizeof *own->inputs);
  if (!own->inputs) return laci_fail_memory(err, s->path);
  st = open_arrays_of_inputs(s, err);
  if (!st) st = find_layouts(s, err);
  return st || !own->labels ? st : laci_check_labels(own->labels, s->available, err);
}

static lac_status read_array_labels(laci_samples *s, lac_error *err) {
  const array_samples *own = s->own;
  if (!own->labels) return LAC_OK;
  s->labels = laci_alloc((size_t)(s->count + s->judging), sizeof *s->labels);
  if (!s->labels) return laci_fail_memory(err, s->path);
  for (int64_t place = 0; place < s->count + s->judging; place++) {
    int copy;
    int64_t at = laci_samples_data_index_and_copy(s, place, &copy);
    lac_status st = laci_rows_read_i64(own->labels, at, &s->labels[place], err);
    if (!st && s->labels[place] < 0) {
      st = laci_fail(err, LAC_BAD_VALUE, "%s: label %lld of sample %lld, wanted 0 or more",
                     laci_rows_name(own->labels), (long long)s->labels[place], (long long)at);
    }
    if (st) return st;
  }
  return LAC_OK;
}

const laci_samples_kind laci_samples_of_arrays = {.open = open_array_samples,
                                                  .label = read_array_labels,
                                                  .read = read_batch,
                                                  .close = close_arrays,
                                                  .noun = "samples of"};
