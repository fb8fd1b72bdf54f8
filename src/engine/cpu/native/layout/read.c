/* SPDX-License-Identifier: Apache-2.0
 * What sparse layers read.
 *
 * As in values.c, the same content in another layout is another tensor, made by a step the first
 * time somebody wants it. */
#include <assert.h>
#include <math.h>

#include "engine/cpu/native/layout/tensors.h"
#include "kernel/sparse/image_norm.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/onednn/onednn.h"
#include "kernel/sparse/reorder.h"

int laci_sparse_source(laci_net *net, int value, bool rows, laci_sparse_layout *layout) {
  int tensor = laci_pictures_floats(net, laci_net_tensor_of(net, value));
  if (tensor < 0) return -1;
  if (laci_pictures_layout(net, tensor, rows, layout)) return tensor;
  const laci_shape shape = net->tensors[tensor].shape;
  laci_layout *md = net->plan.bf16 ? laci_pictures_wanted(net, &shape, rows)
                                   : laci_net_dense(net, &shape, LACI_ELEMENT_F32);
  tensor = laci_net_as(net, laci_net_read(net, value), md, laci_net_dt(net));
  laci_layout_destroy(md);
  if (tensor >= 0 && laci_pictures_layout(net, tensor, rows, layout)) return tensor;
  laci_net_decline(net, "a value that no reorder of ours reads");
  return -1;
}

/** A reordered copy of `from`, whose layout is `have`. */
static int copy_of(laci_net *net, int from, const laci_sparse_layout *have,
                   const laci_pictures *pictures, const laci_sparse_window *thinned) {
  if (from < 0) return -1;
  laci_shape shape = net->tensors[from].shape;
  if (thinned && shape.rank == 4) shape.dims[2] = thinned->out_h;
  if (thinned) shape.dims[shape.rank - 1] = thinned->out_w;
  const int to = laci_pictures_new(net, &shape, pictures, -1);
  const laci_sparse_reorder r = {.from = *have,
                                 .to = pictures->layout,
                                 .size = laci_pictures_size_of(net, &shape, pictures),
                                 .stride_h = thinned ? thinned->stride_h : 1,
                                 .stride_w = thinned ? thinned->stride_w : 1};
  (void)laci_pictures_reorder(net, from, to, &r);
  return to;
}

/** The value as floats, or pairs; or as quads, which are there where quads are wanted. */
static int source_of(laci_net *net, int value, const laci_pictures *pictures,
                     laci_sparse_layout *layout) {
  if (!pictures->bytes) return laci_sparse_source(net, value, pictures->rows, layout);
  const int tensor = laci_net_tensor_of(net, value);
  if (tensor < 0) return -1;
  assert(net->tensors[tensor].pictures && net->tensors[tensor].pictures->bytes);
  *layout = net->tensors[tensor].pictures->layout;
  return tensor;
}

int laci_sparse_read(laci_net *net, int value, const laci_pictures *pictures) {
  laci_sparse_layout have;
  const int tensor = laci_net_tensor_of(net, value);
  if (tensor < 0) return -1;
  const int content = net->tensors[tensor].content;
  const int found = laci_pictures_find(net, content, pictures);
  if (found >= 0) return laci_net_found(net, found, tensor);
  const int from = source_of(net, value, pictures, &have);
  const int to = copy_of(net, from, &have, pictures, NULL);
  if (to >= 0) laci_net_same_content(net, to, content);
  return to;
}

int laci_sparse_read_thinned(laci_net *net, const laci_sparse_layer *layer,
                             const laci_pictures *pictures) {
  laci_sparse_layout have;
  const int from = source_of(net, layer->input, pictures, &have);
  return copy_of(net, from, &have, pictures, &layer->window);
}

/** The layer's input as it is, if it is row-major; else so. */
static int read_plainly(laci_net *net, const laci_sparse_layer *layer) {
  const laci_sparse_layout wanted = laci_sparse_layer_in(net, layer);
  laci_sparse_layout have;
  const int tensor = laci_sparse_source(net, layer->input, false, &have);
  if (tensor < 0 || laci_sparse_layout_equal(&have, &wanted)) return tensor;
  return laci_net_as_dense(net, laci_net_read(net, layer->input), LACI_ELEMENT_F32);
}

static int read_input(laci_net *net, const laci_sparse_layer *layer) {
  if (layer->reading == LACI_SPARSE_PLAINLY) return read_plainly(net, layer);
  const laci_pictures in = {.layout = laci_sparse_layer_in(net, layer),
                            .rows = layer->rows,
                            .bytes = layer->bytes ? layer->bytes->x : NULL};
  if (layer->reading == LACI_SPARSE_THINNED) return laci_sparse_read_thinned(net, layer, &in);
  return laci_sparse_read(net, layer->input, &in);
}

laci_sparse_tensors laci_sparse_take_tensors(laci_net *net, const laci_sparse_layer *layer) {
  const laci_sparse_bytes *bytes = layer->bytes;
  laci_pictures out = laci_sparse_pictures_at(net, layer->output, bytes ? bytes->y : NULL);
  laci_sparse_tensors t = {.x = read_input(net, layer), .bias = -1, .residual = -1};
  if (!bytes) t.bias = laci_sparse_bias(net, layer);
  if (layer->residual >= 0) {
    const laci_pictures added =
        laci_sparse_pictures_at(net, layer->output, bytes ? bytes->residual : NULL);
    t.residual = laci_sparse_read(net, layer->residual, &added);
  }
  t.y = laci_pictures_new(net, laci_plan_shape(&net->plan, layer->output), &out,
                          layer->residual_last ? -1 : t.residual);
  return t;
}

laci_sparse_operands laci_sparse_operands_of(const laci_net *net, const laci_sparse_layer *layer,
                                             const laci_sparse_tensors *t) {
  return (laci_sparse_operands){
      .bias = t->bias >= 0 ? laci_net_data(net, t->bias) : NULL,
      .x = laci_net_data(net, t->x),
      .residual = t->residual >= 0 ? laci_net_data(net, t->residual) : NULL,
      .y = laci_net_data(net, t->y),
      .low = layer->has_low ? layer->low : -INFINITY,
      .high = layer->has_high ? layer->high : INFINITY,
      .functions = layer->functions,
      .n_functions = layer->n_functions,
      .residual_last = layer->residual_last,
      .quantized = layer->bytes ? &layer->bytes->quantized : NULL};
}

/* ---- Images between layers whose weights change ---- */

bool laci_sparse_may_be_images(const laci_net *net, int value) {
  const laci_shape *shape = laci_plan_shape(&net->plan, value);
  const int each = laci_sparse_each(laci_pictures_values(net));
  return net->sparse && net->sparse->trained && net->sparse->places && shape->rank == 4 &&
         shape->dims[0] % LACI_SPARSE_LANES == 0 && shape->dims[1] % each == 0;
}

const laci_image_norm *laci_sparse_images_kernel(const laci_net *net) {
  return net->plan.bf16 ? laci_image_norm_pairs_now() : laci_image_norm_now();
}

static bool are_images(const laci_net_tensor *t) {
  return t->pictures && t->pictures->layout.lanes == LACI_SPARSE_IMAGES && !t->pictures->rows;
}

bool laci_sparse_in_images(const laci_net *net, int value) {
  const int tensor = net->plan.values[value].tensor;
  return tensor >= 0 && are_images(&net->tensors[tensor]);
}

laci_pictures laci_sparse_images(const laci_net *net, int value) {
  static const laci_sparse_border none = {.stride_h = 1, .stride_w = 1};
  const laci_shape *shape = laci_plan_shape(&net->plan, value);
  const laci_sparse_size size = laci_pictures_size(net, shape, false);
  if (laci_sparse_has_place(net, value)) {
    return (laci_pictures){.layout = *laci_sparse_layout_at(net, value)};
  }
  return (laci_pictures){
      .layout = laci_sparse_layout_of(LACI_SPARSE_IMAGES, size.channels, size.h, size.w, none)};
}

int laci_sparse_read_images(laci_net *net, int value) {
  const int tensor = laci_net_tensor_of(net, value);
  if (tensor < 0 || are_images(&net->tensors[tensor])) return tensor;
  const int content = net->tensors[tensor].content;
  for (int at = content; at >= 0; at = net->tensors[at].next) {
    const laci_net_tensor *t = &net->tensors[at];
    if (t->content == content && are_images(t)) return laci_net_found(net, at, tensor);
  }
  const laci_pictures images = laci_sparse_images(net, value);
  return laci_sparse_read(net, value, &images);
}
