/* SPDX-License-Identifier: Apache-2.0
 * Inputs whose elements are one given number in all samples, so that they need no array. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "data/sample_layout.h"
#include "data/samples_in.h"
#include "tensor/buf.h"

static const laci_sample_constant *find_constant(const laci_samples *s, const char *input) {
  for (int k = 0; k < s->options.n_constants; k++)
    if (strcmp(s->options.constants[k].name, input) == 0) return &s->options.constants[k];
  return NULL;
}

lac_status laci_samples_check_constants(const laci_samples *s, lac_error *err) {
  const laci_samples_options *o = &s->options;
  for (int k = 0; k < o->n_constants; k++) {
    const char *name = o->constants[k].name;
    bool known = false;
    for (int i = 0; i < o->n_inputs; i++) known = known || strcmp(o->inputs[i].name, name) == 0;
    if (!known)
      return laci_fail(err, LAC_BAD_ARGUMENT, "constant %s: no input of the network has this name",
                       name);
    if (find_constant(s, name) != &o->constants[k])
      return laci_fail(err, LAC_BAD_ARGUMENT, "constant %s is given twice", name);
  }
  return LAC_OK;
}

/* Finds the shape of one sample of an input. Only the size of its axis of samples may be open. */
static lac_status find_shape(const laci_samples *s, int input, int axis, laci_shape *shape,
                             lac_error *err) {
  const laci_sample_input *in = &s->options.inputs[input];
  char text[256];
  *shape = in->type.shape;
  if (axis >= 0 && shape->rank > 0 && shape->dims[axis] < 0) shape->dims[axis] = 1;
  if (laci_shape_is_known(shape)) return LAC_OK;
  return laci_fail(err, LAC_BAD_SHAPE,
                   "constant %s: the input is %s, with an open size: wanted an array for it",
                   in->name, laci_shape_text(&in->type.shape, text, sizeof text));
}

lac_status laci_samples_make_constant(laci_samples *s, int input, bool *found, lac_error *err) {
  const laci_samples_options *o = &s->options;
  const laci_sample_input *in = &o->inputs[input];
  const laci_sample_constant *c = find_constant(s, in->name);
  laci_shape shape;
  *found = c != NULL;
  if (!c) return LAC_OK;
  int axis = laci_sample_find_batch_axis(o->inputs, o->n_inputs, input);
  if (axis >= 0 && in->type.shape.rank > 0 && in->type.shape.dims[axis] >= 0) axis = -1;
  lac_status st = find_shape(s, input, axis, &shape, err);
  if (st) return st;
  const bool floats = laci_dtype_is_float(in->type.dtype);
  const bool fits =
      isfinite(c->value) &&
      (floats || (c->value == floor(c->value) && fabs(c->value) <= 9007199254740992.0));
  if (!fits)
    return laci_fail(err, LAC_BAD_VALUE, "constant %s: %g, wanted %s", in->name, c->value,
                     floats ? "a finite number" : "an integer");
  const int64_t count = laci_shape_count(&shape);
  void *to = laci_alloc((size_t)count + 1, floats ? sizeof(float) : sizeof(int64_t));
  if (!to) return laci_fail_memory(err, in->name);
  for (int64_t k = 0; k < count; k++) {
    if (floats) ((float *)to)[k] = (float)c->value;
    else ((int64_t *)to)[k] = (int64_t)c->value;
  }
  s->types[input] = (laci_type){floats ? LAC_DTYPE_F32 : LAC_DTYPE_I64, shape};
  s->axes[input] = axis;
  s->constants[input] = to;
  return LAC_OK;
}

void laci_samples_copy_constant(const laci_samples *s, int input, int64_t n, void *batch) {
  const size_t element = s->types[input].dtype == LAC_DTYPE_F32 ? sizeof(float) : sizeof(int64_t);
  const laci_sample_layout layout = {LACI_LAYOUT_SAME, -1, s->axes[input], s->types[input].shape};
  const int64_t times = s->axes[input] < 0 ? 1 : n;
  for (int64_t k = 0; k < times; k++)
    laci_sample_layout_copy_to_batch(&layout, element, k, n, s->constants[input], batch);
}
