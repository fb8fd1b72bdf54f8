/* SPDX-License-Identifier: Apache-2.0
 * Samples that are the .npz files of a folder, in the order of their names. Each file has an array
 * for every input. Sizes may differ from file to file; samples of equal sizes have the same shape
 * set. A file is opened when its sample is read. */
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "data/array_list.h"
#include "data/dataset_in.h"
#include "data/sample_layout.h"
#include "data/samples_in.h"
#include "tensor/buf.h"

typedef struct file_samples {
  const char **files;          /* [available] path of each sample's file */
  laci_sample_input *inputs;   /* [n_inputs] copies of the options' inputs */
  int64_t *labels;             /* [available] class of each sample; NULL: there are no labels */
  bool has_labels, are_noted;  /* has_labels: the files have labels; are_noted: the sizes and labels
                                  of all files are known */
  laci_sample_layout *layouts; /* [n_inputs] layout of each input's array in the file that is read
                                  now */
} file_samples;

/* ---- One file ---- */

static int find_array(const laci_array_list *list, const char *name) {
  for (int k = 0; k < list->n; k++)
    if (strcmp(list->names[k], name) == 0) return k;
  return -1;
}

static const laci_sample_input *inputs_of_samples(const laci_samples *s) {
  return ((const file_samples *)s->own)->inputs;
}

static bool is_input_or_labels(const laci_samples *s, const char *name) {
  for (int k = 0; k < s->options.n_inputs; k++)
    if (strcmp(inputs_of_samples(s)[k].name, name) == 0) return true;
  return strcmp(name, laci_labels_name) == 0;
}

static lac_status check_names(const laci_samples *s, const char *file, const laci_array_list *list,
                              lac_error *err) {
  const file_samples *own = s->own;
  for (int k = 0; k < list->n; k++) {
    if (is_input_or_labels(s, list->names[k])) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: array %s is no input of the network", file,
                     list->names[k]);
  }
  for (int k = 0; k < s->options.n_inputs; k++) {
    const char *name = inputs_of_samples(s)[k].name;
    const bool given = find_array(list, name) >= 0;
    if (given && s->constants[k] && !own->are_noted)
      return laci_fail(err, LAC_BAD_ARGUMENT,
                       "%s: input '%s' has a constant, too: wanted one of them", file, name);
    if (!given && !s->constants[k])
      return laci_fail(err, LAC_NOT_FOUND, "%s: no array for the input '%s'", file, name);
  }
  return LAC_OK;
}

/* Finds the layouts of the arrays of one sample's file. */
static lac_status find_layouts(const laci_samples *s, const laci_array_list *list, lac_error *err) {
  const file_samples *own = s->own;
  const laci_samples_options *o = &s->options;
  lac_status st = LAC_OK;
  for (int k = 0; k < o->n_inputs && !st; k++) {
    const int at = find_array(list, own->inputs[k].name);
    own->layouts[k] = (laci_sample_layout){LACI_LAYOUT_SAME, -1, s->axes[k], s->types[k].shape};
    if (at < 0) continue;
    const laci_sample_array array = {laci_rows_name(list->rows[at]),
                                     laci_rows_type(list->rows[at])};
    st = laci_sample_layout_find_single(own->inputs, o->n_inputs, k, &array, &own->layouts[k], err);
  }
  return st;
}

static lac_status read_label(const laci_array_list *list, int64_t *label, lac_error *err) {
  const laci_rows *rows = list->rows[find_array(list, laci_labels_name)];
  const laci_type *type = laci_rows_type(rows);
  if (!laci_dtype_is_integer(type->dtype) || laci_shape_count(&type->shape) != 1)
    return laci_fail(err, LAC_BAD_SHAPE, "%s: wanted one integer, the sample's class",
                     laci_rows_name(rows));
  lac_status st = laci_rows_read_i64(rows, 0, label, err);
  if (st || *label >= 0) return st;
  return laci_fail(err, LAC_BAD_VALUE, "%s: label %lld, wanted 0 or more", laci_rows_name(rows),
                   (long long)*label);
}

/* ---- All files ---- */

static int find_or_add_shape_set(laci_samples *s, const laci_sample_layout *layouts) {
  const int n = s->options.n_inputs;
  for (int shape_set = 0; shape_set < s->n_shape_sets; shape_set++) {
    const laci_shape *shapes = s->shape_sets + (size_t)(shape_set * n);
    bool same = true;
    for (int k = 0; k < n && same; k++) same = laci_shape_equal(&shapes[k], &layouts[k].one);
    if (same) return shape_set;
  }
  for (int k = 0; k < n; k++) s->shape_sets[(size_t)(s->n_shape_sets * n + k)] = layouts[k].one;
  return s->n_shape_sets++;
}

/* Reads the names and sizes of the arrays, and the label, of one sample's file. */
static lac_status read_shapes_and_label(laci_samples *s, int64_t at, lac_error *err) {
  file_samples *own = s->own;
  laci_budget budget = s->options.budget ? *s->options.budget : laci_budget_with_limit(UINT64_MAX);
  laci_array_list list;
  lac_status st = laci_array_list_open(own->files[at], &budget, &list, err);
  if (st) return st;
  st = check_names(s, own->files[at], &list, err);
  if (!st) st = find_layouts(s, &list, err);
  const bool labelled = !st && find_array(&list, laci_labels_name) >= 0;
  if (at == 0) own->has_labels = labelled;
  if (!st && labelled != own->has_labels)
    st = laci_fail(err, LAC_NOT_FOUND, "%s: %s labels, unlike %s", own->files[at],
                   labelled ? "it has" : "no", own->files[0]);
  if (!st && labelled) st = read_label(&list, &own->labels[at], err);
  for (int k = 0; k < s->options.n_inputs && !st; k++) {
    if (s->constants[k]) continue;
    const bool floats = laci_dtype_is_float(
        laci_rows_type(list.rows[find_array(&list, inputs_of_samples(s)[k].name)])->dtype);
    s->types[k].dtype = floats ? LAC_DTYPE_F32 : LAC_DTYPE_I64;
    s->axes[k] =
        at == 0 || s->axes[k] == own->layouts[k].batch_axis ? own->layouts[k].batch_axis : -1;
  }
  if (!st) s->shape_set_of[at] = find_or_add_shape_set(s, own->layouts);
  laci_array_list_close(&list);
  return st;
}

static lac_status list_files(laci_samples *s, lac_error *err) {
  file_samples *own = s->own;
  size_t n = 0;
  const char **names = NULL;
  lac_status st = laci_list_archives(s->path, &s->arena, &names, &n, err);
  for (size_t k = 0; k < n && !st; k++) {
    names[k] = laci_path_join(&s->arena, s->path, names[k]);
    if (!names[k]) st = laci_fail_memory(err, s->path);
  }
  own->files = names;
  s->available = (int64_t)n;
  return st;
}

static lac_status read_array(laci_samples *s, int input, const laci_array_list *list, void *to,
                             lac_error *err) {
  const laci_rows *rows = list->rows[find_array(list, inputs_of_samples(s)[input].name)];
  const laci_shape *shape = &laci_rows_type(rows)->shape;
  const int64_t n = shape->rank > 0 ? shape->dims[0] : 1, width = laci_rows_elements_per_row(rows);
  lac_status st = LAC_OK;
  for (int64_t k = 0; k < n && !st; k++) {
    if (s->types[input].dtype == LAC_DTYPE_I64) {
      st = laci_rows_read_i64(rows, k, (int64_t *)to + k * width, err);
      continue;
    }
    float *row = (float *)to + k * width;
    st = laci_rows_read_f32(rows, k, row, err);
    if (!st) st = laci_rows_check_finite(rows, k, row, width, err);
  }
  return st;
}

static lac_status read_inputs_of_file(laci_samples *s, int64_t at, int input, void *const *to,
                                      lac_error *err) {
  const file_samples *own = s->own;
  laci_array_list list;
  lac_status st = laci_array_list_open(own->files[at], NULL, &list, err);
  if (st) return st;
  st = check_names(s, own->files[at], &list, err);
  if (!st) st = find_layouts(s, &list, err);
  for (int k = 0; k < s->options.n_inputs && !st; k++) {
    const laci_shape *expected = laci_samples_shapes_of_set(s, s->shape_set_of[at]);
    if (s->constants[k] || (input >= 0 && k != input)) continue;
    if (!laci_shape_equal(&expected[k], &own->layouts[k].one))
      st = laci_fail(err, LAC_BAD_SHAPE, "%s: %s changed while it was read", own->files[at],
                     inputs_of_samples(s)[k].name);
    if (!st) st = read_array(s, k, &list, to[k], err);
  }
  laci_array_list_close(&list);
  return st;
}

/* Makes those inputs constants that are a single number, the same in all files. */
static lac_status find_shared_inputs(laci_samples *s, lac_error *err) {
  const int n = s->options.n_inputs;
  void **to = laci_alloc((size_t)n + 1, sizeof *to);
  lac_status st = to ? LAC_OK : laci_fail_memory(err, s->path);
  for (int k = 0; k < n && !st; k++) {
    if (s->constants[k] || inputs_of_samples(s)[k].type.shape.rank != 0) continue;
    int64_t first = 0, other = 0;
    bool same = true;
    to[k] = &first;
    st = read_inputs_of_file(s, 0, k, to, err);
    to[k] = &other;
    for (int64_t at = 1; at < s->available && same && !st; at++) {
      st = read_inputs_of_file(s, at, k, to, err);
      same = other == first;
      other = 0;
    }
    if (st || !same) continue;
    int64_t *content = laci_alloc(1, sizeof *content);
    if (!content) st = laci_fail_memory(err, s->path);
    else *content = first;
    s->constants[k] = content;
  }
  laci_free(to);
  return st;
}

static lac_status check_no_image_options(const laci_samples *s, lac_error *err) {
  const laci_samples_options *o = &s->options;
  if (o->copies == 0 && o->resize == 0 && o->crop == 0 && !o->mean && !o->std) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT,
                   "%s: copies, resize, crop, mean and std are for images, but these are arrays",
                   s->path);
}

static lac_status open_file_samples(laci_samples *s, lac_error *err) {
  const size_t n_inputs = (size_t)s->options.n_inputs;
  file_samples *own = laci_alloc(1, sizeof *own);
  if (!own) return laci_fail_memory(err, s->path);
  s->own = own;
  lac_status st = check_no_image_options(s, err);
  if (!st) st = list_files(s, err);
  if (st) return st;
  const size_t n = (size_t)s->available;
  own->inputs = laci_arena_alloc(&s->arena, n_inputs + 1, sizeof *own->inputs);
  for (size_t k = 0; own->inputs && k < n_inputs; k++) {
    own->inputs[k] = s->options.inputs[k];
    own->inputs[k].name = laci_arena_text(&s->arena, s->options.inputs[k].name);
    if (!own->inputs[k].name) return laci_fail_memory(err, s->path);
  }
  own->layouts = laci_alloc(n_inputs + 1, sizeof *own->layouts);
  own->labels = laci_alloc(n + 1, sizeof *own->labels);
  s->shape_set_of = laci_alloc(n + 1, sizeof *s->shape_set_of);
  s->shape_sets = laci_alloc(n * n_inputs + 1, sizeof *s->shape_sets);
  if (!own->inputs || !own->layouts || !own->labels || !s->shape_set_of || !s->shape_sets)
    return laci_fail_memory(err, s->path);
  s->n_shape_sets = 0;
  for (size_t k = 0; k < n_inputs && !st; k++) {
    bool found;
    st = laci_samples_make_constant(s, (int)k, &found, err);
  }
  for (int64_t at = 0; at < s->available && !st; at++) st = read_shapes_and_label(s, at, err);
  for (size_t k = 0; k < n_inputs && !st; k++) {
    s->types[k].shape = s->shape_sets[k];
    if (s->axes[k] < 0 && s->shape_sets[k].rank > 0 && !s->constants[k]) s->is_single = true;
  }
  own->are_noted = true;
  return st ? st : find_shared_inputs(s, err);
}

static lac_status read_file_labels(laci_samples *s, lac_error *err) {
  const file_samples *own = s->own;
  if (!own->has_labels) return LAC_OK;
  s->labels = laci_alloc((size_t)(s->count + s->judging), sizeof *s->labels);
  if (!s->labels) return laci_fail_memory(err, s->path);
  for (int64_t place = 0; place < s->count + s->judging; place++)
    s->labels[place] = own->labels[laci_samples_data_index(s, place)];
  return LAC_OK;
}

/* ---- Batches ---- */

/* Copies the inputs of one sample, which has this shape set, to place `at` of a
 * batch of n samples. */
static void copy_sample_into_batch(const laci_samples *s, int shape_set, int64_t at, int64_t n,
                                   void *const *sample, void *const *to) {
  const laci_shape *shapes = laci_samples_shapes_of_set(s, shape_set);
  for (int k = 0; k < s->options.n_inputs; k++) {
    if (s->constants[k]) {
      laci_samples_copy_constant(s, k, n, to[k]);
      continue;
    }
    const laci_sample_layout layout = {LACI_LAYOUT_STACK, 0, s->axes[k], shapes[k]};
    const size_t element = s->types[k].dtype == LAC_DTYPE_F32 ? sizeof(float) : sizeof(int64_t);
    laci_sample_layout_copy_to_batch(&layout, element, at, n, sample[k], to[k]);
  }
}

static lac_status read_batch(laci_samples *s, int64_t first, int64_t n, void *const *to,
                             lac_error *err) {
  const int n_inputs = s->options.n_inputs;
  void **sample = laci_alloc((size_t)n_inputs + 1, sizeof *sample);
  lac_status st = sample ? LAC_OK : laci_fail_memory(err, s->path);
  const int shape_set = laci_samples_shape_set(s, first);
  const laci_shape *shapes = laci_samples_shapes_of_set(s, shape_set);
  for (int k = 0; k < n_inputs && !st; k++) {
    sample[k] = laci_alloc((size_t)laci_shape_count(&shapes[k]) + 1, sizeof(int64_t));
    if (!sample[k]) st = laci_fail_memory(err, s->path);
  }
  for (int64_t k = 0; k < n && !st; k++) {
    st = read_inputs_of_file(s, laci_samples_data_index(s, first + k), -1, sample, err);
    if (!st) copy_sample_into_batch(s, shape_set, k, n, sample, to);
  }
  for (int k = 0; sample && k < n_inputs; k++) laci_free(sample[k]);
  laci_free(sample);
  if (!st && laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  return st;
}

static void close_files(laci_samples *s) {
  file_samples *own = s->own;
  if (!own) return;
  laci_free(own->layouts);
  laci_free(own->labels);
  laci_free(own);
}

const laci_samples_kind laci_samples_of_files = {.open = open_file_samples,
                                                 .label = read_file_labels,
                                                 .read = read_batch,
                                                 .close = close_files,
                                                 .noun = "files of"};
