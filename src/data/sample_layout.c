/* SPDX-License-Identifier: Apache-2.0
 * Finds along which axis of an array its samples are. If the array has the input's axes, it is one
 * of these. If it has one more axis, it is that one. If both are possible, a size that the network
 * fixes decides. */
#include "data/sample_layout.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "data/samples.h"
#include "tensor/buf.h"

int laci_sample_find_batch_axis(const laci_sample_input *inputs, int n, int at) {
  const laci_shape *shape = &inputs[at].type.shape;
  int64_t batch = 0;
  int n_open = 0, open = 0;
  for (int k = 0; k < n && batch == 0; k++) {
    const laci_shape *other = &inputs[k].type.shape;
    if (other->rank > 0 && other->dims[0] < 0) batch = other->dims[0];
  }
  if (shape->rank == 0) return -1;
  for (int axis = 0; axis < shape->rank && batch < 0; axis++)
    if (shape->dims[axis] == batch) return axis;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    if (shape->dims[axis] >= 0) continue;
    n_open++;
    open = axis;
  }
  return shape->rank > 0 && shape->dims[0] >= 0 && n_open == 1 ? open : 0;
}

/* ---- Does an array fit? ---- */

static lac_status fail_mismatch(const laci_sample_input *input, const laci_sample_array *array,
                                const char *why, lac_error *err) {
  char here[256], there[256];
  return laci_fail(err, LAC_BAD_SHAPE, "%s: found %s %s, but input '%s' is %s %s: %s", array->name,
                   lac_dtype_name(array->type->dtype),
                   laci_shape_text(&array->type->shape, here, sizeof here), input->name,
                   lac_dtype_name(input->type.dtype),
                   laci_shape_text(&input->type.shape, there, sizeof there), why);
}

/* Returns the first axis of the input, other than axis `except`, whose size differs from the
 * array's. The first `skipped` axes of the array are not compared. -1: all sizes fit. */
static int find_differing_axis(const laci_sample_input *input, const laci_sample_array *array,
                               int skipped, int except) {
  const laci_shape *wanted = &input->type.shape, *found = &array->type->shape;
  for (int axis = 0; axis < wanted->rank; axis++) {
    if (axis == except || wanted->dims[axis] < 0) continue;
    if (wanted->dims[axis] != found->dims[axis + skipped]) return axis;
  }
  return -1;
}

static lac_status fail_axis_mismatch(const laci_sample_input *input, const laci_sample_array *array,
                                     int skipped, int axis, lac_error *err) {
  char why[160];
  (void)snprintf(why, sizeof why, "found %lld along axis %d, wanted %lld",
                 (long long)array->type->shape.dims[axis + skipped], axis + skipped,
                 (long long)input->type.shape.dims[axis]);
  return fail_mismatch(input, array, why, err);
}

static lac_status fail_rank_mismatch(const laci_sample_input *input, const laci_sample_array *array,
                                     lac_error *err) {
  char why[160];
  (void)snprintf(why, sizeof why, "found %d axes, wanted %d", array->type->shape.rank,
                 input->type.shape.rank);
  return fail_mismatch(input, array, why, err);
}

static lac_status check_number_kind(const laci_sample_input *input, const laci_sample_array *array,
                                    lac_error *err) {
  const bool floats = laci_dtype_is_float(array->type->dtype);
  if (input->type.dtype == LAC_DTYPE_NONE || laci_dtype_is_float(input->type.dtype) == floats)
    return LAC_OK;
  return fail_mismatch(input, array, floats ? "wanted integers" : "wanted floats", err);
}

/* ---- The layout of one array ---- */

/* Returns the shape of one sample: the array's without its first `skipped` axes, and with size 1
 * along `axis` (-1: none). */
static laci_shape shape_of_one_sample(const laci_shape *found, int skipped, int axis) {
  laci_shape one = {.rank = found->rank - skipped};
  for (int k = 0; k < one.rank; k++) one.dims[k] = found->dims[k + skipped];
  if (axis >= 0) one.dims[axis] = 1;
  return one;
}

static lac_status find_layout(const laci_sample_input *inputs, const laci_sample_array *array,
                              int n, int at, laci_sample_layout *to, lac_error *err) {
  const laci_sample_input *input = &inputs[at];
  const laci_shape *wanted = &input->type.shape, *found = &array->type->shape;
  const int batch_axis = laci_sample_find_batch_axis(inputs, n, at);
  lac_status st = check_number_kind(input, array, err);
  if (st) return st;
  if (found->rank < 1 && wanted->rank != 0)
    return fail_mismatch(input, array, "wanted samples along the first axis", err);
  if (wanted->rank >= 0 && found->rank == wanted->rank + 1) {
    const int axis = find_differing_axis(input, array, 1, -1);
    if (axis >= 0) return fail_axis_mismatch(input, array, 1, axis, err);
    const bool joins = batch_axis >= 0 && found->dims[batch_axis + 1] == 1;
    *to = (laci_sample_layout){LACI_LAYOUT_STACK, 0, joins ? batch_axis : -1,
                               shape_of_one_sample(found, 1, -1)};
    return LAC_OK;
  }
  if (wanted->rank >= 0 && found->rank != wanted->rank)
    return fail_rank_mismatch(input, array, err);
  if (wanted->rank == 0) {
    *to = (laci_sample_layout){LACI_LAYOUT_SAME, -1, -1, *found};
    return LAC_OK;
  }
  int axis = batch_axis;
  const int differs = find_differing_axis(input, array, 0, axis);
  if (differs >= 0) { /* samples may be along this axis, but only if the sizes of all others fit */
    if (find_differing_axis(input, array, 0, differs) >= 0 || wanted->dims[differs] != 1)
      return fail_axis_mismatch(input, array, 0, differs, err);
    axis = differs;
  }
  *to = (laci_sample_layout){LACI_LAYOUT_ROWS, axis, axis, shape_of_one_sample(found, 0, axis)};
  return LAC_OK;
}

/* ---- All arrays ---- */

static int64_t count_samples_in_array(const laci_sample_array *array,
                                      const laci_sample_layout *layout) {
  if (layout->kind == LACI_LAYOUT_SAME) return 1;
  return array->type->shape.dims[layout->kind == LACI_LAYOUT_STACK ? 0 : layout->axis];
}

/* Has the array exactly the shape that the network declares for its input? It may then be one
 * sample or several. */
static bool has_shape_of_whole_input(const laci_sample_input *input,
                                     const laci_sample_array *array) {
  const laci_shape *shape = &input->type.shape;
  return shape->rank == array->type->shape.rank && laci_shape_is_known(shape) &&
         find_differing_axis(input, array, 0, -1) < 0;
}

/* Sets a layout in which the whole array is the input of every sample. */
static void share_array_by_samples(const laci_sample_input *input, const laci_sample_array *array,
                                   laci_sample_layout *layout) {
  const laci_shape *declared = &input->type.shape, *found = &array->type->shape;
  const int axis = layout->batch_axis;
  const bool stacked = layout->kind == LACI_LAYOUT_STACK;
  const bool joins = !stacked && axis >= 0 && found->dims[axis] == 1 &&
                     (declared->rank < 0 || declared->dims[axis] < 0);
  *layout = (laci_sample_layout){LACI_LAYOUT_SAME, -1, joins ? axis : -1,
                                 shape_of_one_sample(found, stacked ? 1 : 0, -1)};
}

/* Returns the number of samples: the largest number in any array that must contain several samples;
 * if there is no such array, the largest number in any array. */
static int64_t count_samples(const laci_sample_input *inputs, const laci_sample_array *arrays,
                             int n, const laci_sample_layout *layouts) {
  int64_t sure = -1, any = -1;
  for (int k = 0; k < n; k++) {
    if (layouts[k].kind == LACI_LAYOUT_NONE || layouts[k].kind == LACI_LAYOUT_SAME) continue;
    const int64_t count = count_samples_in_array(&arrays[k], &layouts[k]);
    if (any < 0) any = count;
    if (!has_shape_of_whole_input(&inputs[k], &arrays[k]) && count > sure) sure = count;
  }
  return sure >= 0 ? sure : any >= 0 ? any : 1;
}

lac_status laci_sample_layouts_find(const laci_sample_input *inputs,
                                    const laci_sample_array *arrays, int n,
                                    laci_sample_layout *layouts, int64_t *n_samples,
                                    lac_error *err) {
  for (int k = 0; k < n; k++) {
    layouts[k] = (laci_sample_layout){.kind = LACI_LAYOUT_NONE};
    if (!arrays[k].type) continue;
    lac_status st = find_layout(inputs, &arrays[k], n, k, &layouts[k], err);
    if (st) return st;
  }
  *n_samples = count_samples(inputs, arrays, n, layouts);
  for (int k = 0; k < n; k++) {
    if (layouts[k].kind == LACI_LAYOUT_NONE) continue;
    const int64_t count = count_samples_in_array(&arrays[k], &layouts[k]);
    if (count == *n_samples) continue;
    if (count != 1 && !has_shape_of_whole_input(&inputs[k], &arrays[k])) {
      return laci_fail(err, LAC_BAD_SHAPE, "%s: %lld samples, but another input has %lld",
                       arrays[k].name, (long long)count, (long long)*n_samples);
    }
    share_array_by_samples(&inputs[k], &arrays[k], &layouts[k]);
  }
  return LAC_OK;
}

lac_status laci_sample_layout_find_single(const laci_sample_input *inputs, int n, int at,
                                          const laci_sample_array *array,
                                          laci_sample_layout *layout, lac_error *err) {
  const laci_sample_input *input = &inputs[at];
  const laci_shape *wanted = &input->type.shape, *found = &array->type->shape;
  const int axis = laci_sample_find_batch_axis(inputs, n, at);
  lac_status st = check_number_kind(input, array, err);
  if (st) return st;
  laci_type type = *array->type;
  if (wanted->rank > 0 && found->rank == wanted->rank - 1) {
    for (int k = found->rank; k > axis; k--) type.shape.dims[k] = type.shape.dims[k - 1];
    type.shape.dims[axis] = 1;
    type.shape.rank++;
  }
  if (wanted->rank >= 0 && type.shape.rank != wanted->rank)
    return fail_rank_mismatch(input, array, err);
  const laci_sample_array whole = {array->name, &type};
  const int differs = find_differing_axis(input, &whole, 0, -1);
  if (differs >= 0) return fail_axis_mismatch(input, &whole, 0, differs, err);
  const bool joins = axis >= 0 && type.shape.dims[axis] == 1;
  *layout = (laci_sample_layout){LACI_LAYOUT_STACK, 0, joins ? axis : -1, type.shape};
  return LAC_OK;
}

void laci_sample_layout_copy_to_batch(const laci_sample_layout *layout, size_t element, int64_t at,
                                      int64_t n, const void *sample, void *batch) {
  const laci_shape *one = &layout->one;
  const int axis = layout->batch_axis < 0 ? 0 : layout->batch_axis;
  const size_t outer = (size_t)laci_shape_count_range(one, 0, axis);
  const size_t inner = (size_t)laci_shape_count_range(one, axis, one->rank) * element;
  if (layout->batch_axis < 0) at = 0, n = 1; /* the input is the same for any number of samples */
  for (size_t k = 0; k < outer; k++)
    memcpy((char *)batch + (k * (size_t)n + (size_t)at) * inner, (const char *)sample + k * inner,
           inner);
}
