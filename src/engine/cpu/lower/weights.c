/* SPDX-License-Identifier: Apache-2.0
 * Makes weights of constants: they are reordered while planning, and kept in the layout that a
 * kernel reads.
 *
 * A weight can be most of the network, so that there must be no second copy of it in memory. It is
 * read from the file in slices along its slowest axis; each is scaled and reordered into its part
 * of the result. Weights that no step reads are freed in the end. Next: plan/constants.c,
 * convolution.c. */
#include <string.h>

#include "base/memory.h"
#include "engine/cpu/net_in.h"
#include "sparse/pack.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"
#include "tensor/buf.h"

enum {
  SLICE = 1 << 20,  /* number of elements in a slice */
  SCALED = 1 << 16, /* number of elements that a thread scales at a time */
  STEP = 64,        /* slices begin at multiples of this: no layout has longer blocks */
  SAMPLES = 16,     /* number of samples of a weight in which zeros are counted */
  SAMPLE = 2048,    /* number of elements of each such sample */
};

/* ---- Buffers ---- */

/* Adds a buffer for a weight and returns its index. value: the value that the weight holds; -1:
 * none. */
static int add_weight_buffer(laci_net *net, size_t bytes, int value) {
  if (!laci_plan_check_budget(&net->plan, bytes, value)) return -1;
  int buffer = laci_net_buffer_new(net, LACI_PLACE_WEIGHT, bytes);
  if (buffer < 0) return -1;
  net->buffers[buffer].data = laci_alloc(bytes, 1);
  net->buffers[buffer].owned = net->buffers[buffer].unreferenced = true;
  net->plan.weight_bytes += bytes;
  if (net->buffers[buffer].data) return buffer;
  laci_plan_fail_no_memory(&net->plan);
  return -1;
}

int laci_net_weight_new(laci_net *net, size_t bytes, int value) {
  enum { ELEMENT = sizeof(int64_t) }; /* bytes of an element of tensors without a oneDNN layout */
  const laci_shape shape = laci_shape_of(1, (int64_t[]){(int64_t)(bytes / ELEMENT)});
  const int buffer = add_weight_buffer(net, bytes, value);
  if (buffer >= 0) laci_pages_use_huge(net->buffers[buffer].data, bytes);
  return laci_net_tensor_new(net, &shape, LACI_ELEMENT_NONE, NULL, buffer);
}

void laci_net_free_unused_weights(laci_net *net) {
  if (net->plan.status) return;
  for (size_t at = 0; at < net->n_buffers; at++) {
    laci_buffer *buffer = &net->buffers[at];
    if (!buffer->unreferenced || buffer->first >= 0) continue;
    laci_free(buffer->data);
    net->plan.weight_bytes -= buffer->bytes;
    buffer->data = NULL;
    buffer->owned = buffer->unreferenced = false;
  }
}

/* ---- Reorders ---- */

int laci_net_weight_from_tensor(laci_net *net, const laci_net_tensor *from, const void *data,
                                const laci_layout *wanted, laci_element dt) {
  laci_layout *md = NULL;
  int buffer = add_weight_buffer(net, laci_layout_bytes(wanted), -1);
  if (buffer < 0) return -1;
  (void)laci_net_check_status(
      net, laci_layout_convert_data(net->onednn, from->md, data, wanted, net->buffers[buffer].data),
      "reorder of weights");
  if (!net->plan.status && !laci_layout_create_copy(&md, wanted))
    laci_plan_fail_no_memory(&net->plan);
  return laci_net_tensor_new(net, &from->shape, dt, md, buffer);
}

/* ---- Slices ---- */

/** The state of reading a weight in slices. A slice has `step` indices of axis `slow`, each with
 * `each` elements. */
typedef struct slices {
  laci_net *net;
  const laci_net_weight *weight;
  const laci_layout *wanted;
  uint8_t *out;
  int slow;
  int64_t each, step;
} slices;

static void choose_slice_axis(slices *s) {
  const laci_net_weight *w = s->weight;
  for (int axis = 1; axis < w->shape.rank; axis++) {
    if (w->strides[axis] > w->strides[s->slow]) s->slow = axis;
  }
  int64_t n = w->shape.dims[s->slow];
  s->each = laci_shape_count(&w->shape) / n;
  s->step = (SLICE / s->each + STEP) / STEP * STEP;
  if (s->step > n) s->step = n;
}

static void multiply_by_number(float factor, float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

/** Multiplies each of n elements by `factor` and by its own channel's factor. */
static void scale_by_channels(float factor, const float *channels, float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) x[i] = x[i] * factor * channels[i];
}

static void scale_channel(float factor, float channel, float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) x[i] = x[i] * factor * channel;
}

/** Scales the weight's elements [first, first + n), which are in x. */
static void scale_elements(const laci_net_weight *w, int64_t first, int64_t n, float *x) {
  if (!w->scale && w->factor != 1) multiply_by_number(w->factor, x, n);
  if (!w->scale) return;
  /* `some`: number of elements that share a factor, or that are one row of factors */
  for (int64_t at = 0, some; at < n; at += some) {
    const int64_t whole = first + at, channel = whole / w->run % w->n_scale;
    some = w->run > 1 ? w->run - whole % w->run : w->n_scale - channel;
    if (some > n - at) some = n - at;
    if (w->run > 1) scale_channel(w->factor, w->scale[channel], x + at, some);
    else scale_by_channels(w->factor, w->scale + channel, x + at, some);
  }
}

typedef struct scaling {
  const laci_net_weight *weight;
  int64_t first;
  float *x;
} scaling;

static void scale_element_range(int64_t begin, int64_t end, void *context) {
  const scaling *s = context;
  scale_elements(s->weight, s->first + begin, end - begin, s->x + begin);
}

/** Reads the weight's elements [first, first + n) and scales them; false: a failure, which is
 * recorded in the plan. */
static bool read_scaled_elements(laci_net *net, const laci_net_weight *w, int64_t first, int64_t n,
                                 float *to) {
  scaling s = {w, first, to};
  lac_error why = {0};
  lac_status st = laci_plan_read_floats(&net->plan, w->value, first, n, to, &why);
  if (st)
    laci_plan_fail(&net->plan, st, "%s: %s", net->plan.graph->values[w->value].name, why.text);
  else laci_pool_for(net->pool, n, SCALED, scale_element_range, &s);
  return st == LAC_OK;
}

/** Reorders a slice into its part of the weight; false: the layout cannot be filled in parts. */
static bool reorder_weight_slice(void *context, int64_t first_element, int64_t n_elements,
                                 const float *x) {
  const slices *s = context;
  laci_net *net = s->net;
  const int64_t first = first_element / s->each, n = n_elements / s->each;
  const laci_net_weight *w = s->weight;
  laci_shape shape = w->shape;
  int64_t offsets[LACI_MAX_RANK] = {0};
  laci_layout *from = NULL, *to = NULL;
  bool all = n == shape.dims[s->slow];
  shape.dims[s->slow] = n;
  offsets[s->slow] = first;
  bool good =
      laci_layout_create_strided(&from, shape.rank, shape.dims, LACI_ELEMENT_F32, w->strides) &&
      (all || laci_layout_create_part(&to, s->wanted, shape.rank, shape.dims, offsets));
  if (good) {
    lac_status st = laci_layout_convert_data(net->onednn, from, x, all ? s->wanted : to, s->out);
    good = st == LAC_OK;
    if (all || st == LAC_NO_MEMORY) (void)laci_net_check_status(net, st, "reorder of weights");
  }
  laci_layout_destroy(from);
  laci_layout_destroy(to);
  return good;
}

/** Reads a weight, `step` elements at a time, and calls `visit` for them; false if `visit` returned
 * false. */
static bool visit_slices_of_length(laci_net *net, const laci_net_weight *w, int64_t step,
                                   laci_net_slice *visit, void *context) {
  const int64_t n = laci_shape_count(&w->shape);
  bool good = true;
  float *buffer = laci_alloc((size_t)(step < n ? step : n), sizeof *buffer);
  if (!buffer) laci_plan_fail_no_memory(&net->plan);
  for (int64_t first = 0; first < n && good && !net->plan.status; first += step) {
    int64_t some = n - first < step ? n - first : step;
    if (!read_scaled_elements(net, w, first, some, buffer)) break;
    good = visit(context, first, some, buffer);
  }
  laci_free(buffer);
  return good;
}

void laci_net_visit_weight_slices(laci_net *net, const laci_net_weight *weight,
                                  laci_net_slice *visit, void *context) {
  slices s = {.weight = weight};
  if (net->plan.status) return;
  choose_slice_axis(&s);
  (void)visit_slices_of_length(net, weight, s.step * s.each, visit, context);
}

bool laci_net_read_weight_floats(laci_net *net, const laci_net_weight *weight, float *to) {
  return !net->plan.status &&
         read_scaled_elements(net, weight, 0, laci_shape_count(&weight->shape), to);
}

static bool fill_reordered_weight(laci_net *net, slices *s) {
  return visit_slices_of_length(net, s->weight, s->step * s->each, reorder_weight_slice, s);
}

int laci_net_weight_in_layout(laci_net *net, const laci_net_weight *weight,
                              const laci_layout *wanted) {
  slices s = {.net = net, .weight = weight, .wanted = wanted};
  laci_layout *md = NULL;
  if (net->plan.status) return -1;
  int buffer = add_weight_buffer(net, laci_layout_bytes(wanted), weight->value);
  if (buffer < 0) return -1;
  s.out = net->buffers[buffer].data;
  choose_slice_axis(&s);
  if (!fill_reordered_weight(net, &s) && !net->plan.status) {
    s.step = weight->shape.dims[s.slow];
    if (!fill_reordered_weight(net, &s))
      laci_plan_fail(&net->plan, LAC_UNSUPPORTED, "oneDNN has no such weights");
  }
  if (!net->plan.status && !laci_layout_create_copy(&md, wanted))
    laci_plan_fail_no_memory(&net->plan);
  return laci_net_tensor_new(net, &weight->shape, LACI_ELEMENT_F32, md, buffer);
}

/* ---- Zeros ---- */

const laci_engine_weight *laci_net_find_weight_facts(const laci_net *net, int value) {
  for (int at = 0; at < net->n_weights; at++) {
    if (net->weights[at].value == value) return &net->weights[at];
  }
  return NULL;
}

static double sampled_nonzero_share(const laci_net *net, int value) {
  float sample[SAMPLE];
  const int64_t n = laci_shape_count(laci_plan_shape(&net->plan, value));
  const int64_t length = n < SAMPLE ? n : SAMPLE;
  const int64_t apart = n > length * SAMPLES ? (n - length) / (SAMPLES - 1) : length;
  int64_t read = 0, kept = 0;
  lac_error ignored;
  for (int64_t first = 0; first + length <= n; first += apart) {
    if (laci_plan_read_floats(&net->plan, value, first, length, sample, &ignored)) return 1;
    for (int64_t at = 0; at < length; at++) kept += sample[at] != 0;
    read += length;
  }
  return (double)kept / (double)read;
}

double laci_net_nonzero_share(const laci_net *net, int value) {
  const laci_engine_weight *known = laci_net_find_weight_facts(net, value);
  laci_constant *c = net->plan.values[value].constant;
  if (known && known->packing && known->rows) {
    return (double)known->packing->row_values / (double)known->packing->columns;
  }
  if (c->kept == 0) c->kept = sampled_nonzero_share(net, value);
  return c->kept;
}

/* ---- Constants that are neither scaled nor reordered ---- */

int laci_net_weight_from_floats(laci_net *net, const float *floats, int64_t n) {
  laci_shape shape = laci_shape_of(1, &n);
  laci_layout *md = laci_net_dense_layout(net, &shape, LACI_ELEMENT_F32);
  int buffer = add_weight_buffer(net, (size_t)n * sizeof *floats, -1);
  if (buffer >= 0) memcpy(net->buffers[buffer].data, floats, (size_t)n * sizeof *floats);
  return laci_net_tensor_new(net, &shape, LACI_ELEMENT_F32, md, buffer);
}

/** Returns a weight tensor of a constant of floats; it reuses the memory of the constant's floats
 * if there are any. */
static int make_floats_tensor(laci_net *net, int value) {
  const laci_shape *shape = laci_plan_shape(&net->plan, value);
  laci_constant *c = net->plan.values[value].constant;
  size_t bytes = (size_t)c->count * sizeof(float);
  if (!laci_plan_constant_floats(&net->plan, value)) return -1;
  laci_layout *md = laci_net_dense_layout(net, shape, LACI_ELEMENT_F32);
  int buffer = laci_net_buffer_new(net, LACI_PLACE_WEIGHT, bytes);
  if (buffer >= 0) {
    net->buffers[buffer].data = c->owned;
    net->buffers[buffer].owned = net->buffers[buffer].unreferenced = true;
    net->plan.weight_bytes += bytes;
    if (c->owned) net->plan.constant_bytes -= bytes;
    c->owned = NULL; /* c->f remains valid as long as the weight exists */
  }
  return laci_net_tensor_new(net, shape, LACI_ELEMENT_F32, md, buffer);
}

static int make_integers_tensor(laci_net *net, int value) {
  laci_buf *buf = laci_plan_copy_constant(&net->plan, value);
  size_t bytes = buf ? (size_t)buf->count * sizeof *buf->i : 0;
  int buffer = buf ? add_weight_buffer(net, bytes, value) : -1;
  if (buffer >= 0) memcpy(net->buffers[buffer].data, buf->i, bytes);
  laci_buf_destroy(buf);
  return laci_net_tensor_new(net, laci_plan_shape(&net->plan, value), LACI_ELEMENT_NONE, NULL,
                             buffer);
}

int laci_net_constant_tensor(laci_net *net, int value) {
  return laci_plan_is_float(&net->plan, value) ? make_floats_tensor(net, value)
                                               : make_integers_tensor(net, value);
}
