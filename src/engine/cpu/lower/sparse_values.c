/* SPDX-License-Identifier: Apache-2.0
 * What sparse layers read.
 *
 * As in values.c, the same content in another layout is another tensor, made by a step the first
 * time somebody wants it. */
#include "engine/cpu/lower/pictures.h"
#include "engine/cpu/lower/sparse.h"

/** Tensor of the same content that laci_pictures_layout can say. */
static int plain_tensor(laci_net *net, int tensor, laci_sparse_layout *layout) {
  if (net->plan.status || tensor < 0) return -1;
  if (laci_pictures_layout(net, tensor, layout)) return tensor;
  tensor = laci_net_as_dense(net, tensor, LACI_ELEMENT_F32);
  return tensor >= 0 && laci_pictures_layout(net, tensor, layout) ? tensor : -1;
}

static laci_sparse_reorder all_pixels(const laci_sparse_layout *from, const laci_sparse_layout *to,
                                      const laci_shape *shape) {
  return (laci_sparse_reorder){
      .from = *from, .to = *to, .size = laci_pictures_size(shape), .stride_h = 1, .stride_w = 1};
}

static int find_pictures(const laci_net *net, int content, const laci_sparse_layout *layout) {
  for (size_t at = 0; at < net->n_tensors; at++) {
    const laci_net_tensor *t = &net->tensors[at];
    if (content >= 0 && t->content == content && t->pictures &&
        laci_sparse_layout_equal(t->pictures, layout)) {
      return (int)at;
    }
  }
  return -1;
}

int laci_net_pictures(laci_net *net, int value, const laci_sparse_layout *layout) {
  laci_sparse_layout have;
  const int tensor = laci_net_tensor_of(net, value);
  if (tensor < 0) return -1;
  const int found = find_pictures(net, net->tensors[tensor].content, layout);
  if (found >= 0) return laci_net_found(net, found, tensor);
  const int content = net->tensors[tensor].content;
  const int from = plain_tensor(net, tensor, &have);
  if (from < 0) return -1;
  const laci_shape shape = net->tensors[from].shape;
  const int to = laci_pictures_new(net, &shape, layout, -1);
  const laci_sparse_reorder r = all_pixels(&have, layout, &shape);
  laci_pictures_reorder(net, from, to, &r);
  if (to >= 0) net->tensors[to].content = content;
  return to;
}

int laci_net_thinned(laci_net *net, const laci_sparse_layer *layer,
                     const laci_sparse_layout *layout) {
  const laci_sparse_window *g = &layer->window;
  laci_sparse_layout have;
  const int from = plain_tensor(net, laci_net_tensor_of(net, layer->input), &have);
  if (from < 0) return -1;
  laci_shape shape = net->tensors[from].shape;
  if (shape.rank == 4) shape.dims[2] = g->out_h;
  shape.dims[shape.rank - 1] = g->out_w;
  const int to = laci_pictures_new(net, &shape, layout, -1);
  laci_sparse_reorder r = all_pixels(&have, layout, &shape);
  r.stride_h = g->stride_h;
  r.stride_w = g->stride_w;
  laci_pictures_reorder(net, from, to, &r);
  return to;
}
