/* SPDX-License-Identifier: Apache-2.0
 * Converts floats to int8x4 and back, as steps. */
#include "engine/cpu/native/layout/tensors.h"
#include "kernel/sparse/bytes.h"
#include "kernel/sparse/image_bytes.h"
#include "cpu/pool.h"
#include "engine/cpu/native/layout/layout.h"

typedef struct bytes_step {
  laci_bytes_form form;
  int from, to;
  bool packs;
} bytes_step;

typedef struct bytes_work {
  const bytes_step *s;
  const float *from;
  float *to;
} bytes_work;

static void convert_int8x4_range(int64_t begin, int64_t end, void *context) {
  const bytes_work *w = context;
  const laci_bytes_kernel *kernel = laci_bytes_variant();
  if (w->s->packs) kernel->pack(&w->s->form, w->from, w->to, begin, end);
  else kernel->unpack(&w->s->form, w->from, w->to, begin, end);
}

static lac_status run_int8x4_conversion(laci_net *net, laci_net_step *step, lac_error *err) {
  const bytes_step *s = step->context;
  bytes_work w = {s, laci_net_tensor_data(net, s->from), laci_net_tensor_data(net, s->to)};
  (void)err;
  const int64_t n_items = laci_bytes_n_items(&s->form);
  const int64_t n_floats = s->form.n_image_blocks * s->form.floats.n_floats;
  laci_pool_for(net->pool, n_items, laci_native_items_per_task(n_items, n_floats),
                convert_int8x4_range, &w);
  return LAC_OK;
}

static const laci_node packing = {.name = "", .type = "QuantizeLinear"};
static const laci_node unpacking = {.name = "", .type = "DequantizeLinear"};

/** Adds a step that converts floats to int8x4 or back. int8x4: the layout of the int8x4 tensor,
 * which is the source or the target. */
static int add_conversion_step(laci_net *net, int from, const laci_native_layout *to,
                               const laci_native_layout *int8x4) {
  const laci_shape shape = net->tensors[from].shape;
  const int tensor = laci_native_tensor_new(net, &shape, to, -1);
  const laci_sparse_size size = laci_native_value_size(net, &shape, int8x4->rows);
  const bool packs = to->bytes != NULL;
  bytes_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  laci_net_step *step = laci_net_step_add_code(net, packs ? &packing : &unpacking,
                                               run_int8x4_conversion, 2, (int[]){from, tensor});
  if (!s || !step || tensor < 0) return -1;
  *s = (bytes_step){{.floats = int8x4->as_floats,
                     .int8x4 = int8x4->layout,
                     .channels = size.channels,
                     .n_image_blocks = laci_native_image_blocks(&int8x4->layout, size.n_images),
                     .q = int8x4->bytes},
                    from,
                    tensor,
                    packs};
  step->what = packs ? "floats to bytes" : "bytes to floats";
  step->kernel = "native reorder";
  step->context = s;
  step->shown = tensor;
  return tensor;
}

int laci_native_add_quantize_step(laci_net *net, int tensor, const laci_native_layout *to) {
  return tensor < 0 ? -1 : add_conversion_step(net, tensor, to, to);
}

/* ---- Images of floats ---- */

typedef struct image_step {
  laci_image_bytes form;
  laci_sparse_size size; /* size of the int8x4 */
  int from, to;
  uint32_t around; /* 32-bit word that is stored where there is no pixel */
} image_step;

typedef struct image_work {
  const image_step *s;
  const float *from;
  float *to;
} image_work;

static void pack_image_range(int64_t begin, int64_t end, void *context) {
  const image_work *w = context;
  laci_image_bytes_variant()(&w->s->form, w->from, w->to, begin, end);
}

static lac_status run_image_step(laci_net *net, laci_net_step *step, lac_error *err) {
  enum { ROWS = 8 }; /* number of rows of pixels that a thread quantizes at a time */
  const image_step *s = step->context;
  image_work w = {s, laci_net_tensor_data(net, s->from), laci_net_tensor_data(net, s->to)};
  (void)err;
  laci_native_fill_border(net, &s->form.int8x4, &s->size, s->around, w.to);
  laci_pool_for(net->pool, laci_image_bytes_n_items(&s->form), ROWS, pack_image_range, &w);
  return LAC_OK;
}

int laci_native_add_image_step(laci_net *net, int tensor, const laci_sparse_layout *floats,
                               const laci_native_layout *to) {
  const laci_shape shape = net->tensors[tensor].shape;
  const int image = laci_native_tensor_new(net, &shape, to, -1);
  image_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  laci_net_step *step =
      laci_net_step_add_code(net, &packing, run_image_step, 2, (int[]){tensor, image});
  if (!s || !step || image < 0) return -1;
  *s = (image_step){.form = {.floats = *floats,
                             .int8x4 = to->layout,
                             .size = laci_native_value_size(net, &shape, false),
                             .q = to->bytes},
                    .size = laci_native_size_in_layout(net, &shape, to),
                    .from = tensor,
                    .to = image,
                    .around = laci_native_border_value(to)};
  step->what = "floats to bytes";
  step->kernel = "native reorder";
  step->context = s;
  step->shown = image;
  return image;
}

int laci_native_copy_as_floats(laci_net *net, int tensor) {
  if (tensor < 0 || !net->tensors[tensor].native) return tensor;
  const laci_native_layout int8x4 = *net->tensors[tensor].native;
  if (!int8x4.bytes) return tensor;
  const laci_native_layout floats = {.layout = int8x4.as_floats, .rows = int8x4.rows};
  const int content = net->tensors[tensor].content;
  const int found = laci_native_find_tensor(net, content, &floats);
  if (found >= 0) return laci_net_reuse_tensor(net, found, tensor);
  const int to = add_conversion_step(net, tensor, &floats, &int8x4);
  if (to >= 0) laci_net_set_content(net, to, content);
  return to;
}
