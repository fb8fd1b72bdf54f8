/* SPDX-License-Identifier: Apache-2.0
 * Reorders between native layouts and oneDNN's: row-major, in blocks of 16 channels, or with
 * channels last. One step is enough for each of these, in both directions. */
#include "engine/cpu/native/layout/tensors.h"

#include "base/divide.h"
#include "kernel/sparse/bytes.h"
#include "cpu/pool.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/onednn/onednn.h"
#include "kernel/sparse/reorder.h"

laci_sparse_size laci_native_value_size(const laci_net *net, const laci_shape *shape, bool rows) {
  const int64_t last = shape->dims[shape->rank - 1];
  if (rows) {
    return (laci_sparse_size){
        .n_images = 1,
        .channels = laci_sparse_layout_channels(last, laci_native_value_type(net)),
        .h = 1,
        .w = laci_shape_count(shape) / last};
  }
  return (laci_sparse_size){
      .n_images = shape->dims[0],
      .channels = laci_sparse_layout_channels(shape->dims[1], laci_native_value_type(net)),
      .h = shape->rank == 4 ? shape->dims[2] : 1,
      .w = last};
}

laci_sparse_size laci_native_size_in_layout(const laci_net *net, const laci_shape *shape,
                                            const laci_native_layout *native) {
  laci_sparse_size size = laci_native_value_size(net, shape, native->rows);
  if (native->bytes) size.channels = laci_sparse_layout_channels(size.channels, LACI_SPARSE_S8);
  return size;
}

/* Minimum percentage of SIMD lanes that must hold an image, if lanes are images. */
enum { LEAST_FULL = 85 };

bool laci_native_has_image_lanes(int64_t n_images) {
  const int64_t lanes = laci_ceil_div(n_images, LACI_SPARSE_LANES) * LACI_SPARSE_LANES;
  return n_images * 100 >= lanes * LEAST_FULL;
}

int64_t laci_native_image_blocks(const laci_sparse_layout *layout, int64_t n_images) {
  return layout->format == LACI_FORMAT_HWC16N ? laci_ceil_div(n_images, LACI_SPARSE_LANES)
                                              : n_images;
}

/* ---- Steps ---- */

int64_t laci_native_items_per_task(int64_t n_items, int64_t n_floats) {
  enum { FLOATS = 1 << 14 };
  return n_floats > 0 ? laci_ceil_div(n_items * FLOATS, n_floats) : 1;
}

typedef struct reorder_step {
  laci_sparse_reorder r;
  int from, to;
  uint32_t around; /* 32-bit word to be stored around the target's pixels; 0: the reorder itself
                      writes zeros */
} reorder_step;

typedef struct reorder_work {
  const laci_sparse_reorder *r;
  const float *from;
  float *to;
} reorder_work;

static void reorder_item_range(int64_t begin, int64_t end, void *context) {
  const reorder_work *w = context;
  laci_sparse_reorder_variant()(w->r, w->from, w->to, begin, end);
}

static lac_status run_reorder(laci_net *net, laci_net_step *step, lac_error *err) {
  const reorder_step *s = step->context;
  reorder_work w = {&s->r, laci_net_tensor_data(net, s->from), laci_net_tensor_data(net, s->to)};
  (void)err;
  const laci_sparse_size *size = &s->r.size;
  const int64_t n_items = laci_sparse_reorder_n_items(&s->r);
  const int64_t n_floats = size->n_images * size->channels * size->h * size->w;
  laci_pool_for(net->pool, n_items, laci_native_items_per_task(n_items, n_floats),
                reorder_item_range, &w);
  if (s->around) laci_native_fill_border(net, &s->r.to, &s->r.size, s->around, w.to);
  return LAC_OK;
}

static const laci_node reorder_node = {.name = "", .type = "reorder"};

laci_net_step *laci_native_add_reorder_step(laci_net *net, int from, int to,
                                            const laci_sparse_reorder *r) {
  reorder_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s || from < 0 || to < 0) return NULL;
  const laci_native_layout *native = net->tensors[to].native;
  *s = (reorder_step){.r = *r, .from = from, .to = to};
  if (native) s->around = laci_native_border_value(native);
  laci_net_step *step =
      laci_net_step_add_code(net, &reorder_node, run_reorder, 2, (int[]){from, to});
  if (!step) return NULL;
  step->kernel = "native reorder";
  step->context = s;
  step->shown = to;
  return step;
}

bool laci_native_is_reorder(const laci_net_step *step) { return step->node == &reorder_node; }

/* ---- Tensors ---- */

static size_t layout_bytes(const laci_sparse_layout *layout, int64_t n_images) {
  return (size_t)(laci_native_image_blocks(layout, n_images) * layout->n_floats) * sizeof(float);
}

int laci_native_tensor_new(laci_net *net, const laci_shape *shape, const laci_native_layout *native,
                           int over) {
  const laci_sparse_size size = laci_native_size_in_layout(net, shape, native);
  int tensor;
  if (over >= 0 && laci_net_is_last_read(net, over)) {
    tensor = laci_net_new_result_like(net, over, true);
  } else {
    const int buffer =
        laci_net_buffer_new(net, LACI_PLACE_ARENA, layout_bytes(&native->layout, size.n_images));
    tensor = laci_net_tensor_new(net, shape, laci_net_float_element(net), NULL, buffer);
  }
  laci_native_layout *copy = laci_plan_alloc(&net->plan, 1, sizeof *copy);
  if (tensor < 0 || !copy) return -1;
  *copy = *native;
  net->tensors[tensor].native = copy;
  return tensor;
}

int laci_native_find_tensor(const laci_net *net, int content, const laci_native_layout *native) {
  for (int at = content; at >= 0; at = net->tensors[at].next) {
    const laci_net_tensor *t = &net->tensors[at];
    if (t->content != content || !t->native) continue;
    if (t->native->rows == native->rows && !t->native->bytes == !native->bytes &&
        laci_sparse_layout_equal(&t->native->layout, &native->layout)) {
      return at;
    }
  }
  return -1;
}

/** Does the tensor have this layout? Destroys the layout, which may be NULL. */
static bool compare_and_destroy_layout(laci_layout *layout, const laci_net_tensor *t) {
  const bool same = layout && laci_layout_equal(layout, t->md);
  laci_layout_destroy(layout);
  return same;
}

bool laci_native_find_layout(laci_net *net, int tensor, bool rows, laci_sparse_layout *layout) {
  const laci_net_tensor t = net->tensors[tensor];
  const laci_sparse_size size = laci_native_value_size(net, &t.shape, rows);
  if (t.native) {
    *layout = t.native->layout;
    return t.native->rows == rows;
  }
  if (t.dt != laci_net_float_element(net)) return false;
  const bool floats = !rows && !net->plan.bf16;
  laci_memory_format format = LACI_FORMAT_HWC;
  if (floats && laci_net_is_in_blocks(net, tensor)) {
    format = LACI_FORMAT_CHW16C;
  } else if (floats && compare_and_destroy_layout(laci_net_dense_layout(net, &t.shape, t.dt), &t)) {
    format = LACI_FORMAT_CHW;
  } else {
    laci_layout *last = rows ? laci_net_dense_layout(net, &t.shape, t.dt)
                             : laci_net_channels_last_layout(net, &t.shape, t.dt);
    if (!compare_and_destroy_layout(last, &t)) return false;
  }
  *layout = laci_sparse_layout_contiguous(format, size.channels, size.h, size.w);
  return true;
}

/* ---- Filling the padding of a layout ---- */

typedef struct filling {
  const laci_sparse_layout *layout;
  const laci_sparse_size *size;
  uint32_t with;
  float *values;
} filling;

static void fill_border_range(int64_t begin, int64_t end, void *context) {
  const filling *f = context;
  laci_sparse_fill_border(f->layout, f->size, f->with, f->values, begin, end);
}

void laci_native_fill_border(const laci_net *net, const laci_sparse_layout *layout,
                             const laci_sparse_size *size, uint32_t with, float *values) {
  enum {
    GRAIN = 1 << 14
  }; /* number of floats of a tensor whose padding one thread fills in less time than threads need
        to begin and end a loop. If there are more, each thread fills the padding of channels that
        it writes and reads itself, so that they stay in its cache */
  filling f = {layout, size, with, values};
  const int64_t n_items = laci_sparse_border_n_items(layout, size);
  const int64_t n_floats = laci_native_image_blocks(layout, size->n_images) * layout->n_floats;
  laci_pool_for(net->pool, n_items, laci_ceil_div(n_items * GRAIN, n_floats), fill_border_range,
                &f);
}

uint32_t laci_native_border_value(const laci_native_layout *native) {
  const uint32_t each = 0x01010101; /* copies a byte to all four channels of an int8x4 */
  return native->bytes ? (uint32_t)laci_bytes_zero_point(native->bytes) * each : 0;
}
