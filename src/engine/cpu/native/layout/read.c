/* SPDX-License-Identifier: Apache-2.0
 * Prepares the inputs of native layers.
 *
 * As in values.c, the same content in another layout is another tensor. A step makes it when it is
 * first needed. */
#include <math.h>

#include "engine/cpu/native/layout/tensors.h"
#include "kernel/sparse/image_norm.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/onednn/onednn.h"
#include "kernel/sparse/reorder.h"

int laci_native_read_for_reorder(laci_net *net, int value, bool rows, laci_sparse_layout *layout) {
  int tensor = laci_native_copy_as_floats(net, laci_net_find_value_tensor(net, value));
  if (tensor < 0) return -1;
  if (laci_native_find_layout(net, tensor, rows, layout)) return tensor;
  const laci_shape shape = net->tensors[tensor].shape;
  laci_layout *md = net->plan.bf16 ? laci_native_dense_layout(net, &shape, rows)
                                   : laci_net_dense_layout(net, &shape, LACI_ELEMENT_F32);
  tensor = laci_net_convert_tensor(net, laci_net_read_value(net, value), md,
                                   laci_net_float_element(net));
  laci_layout_destroy(md);
  if (tensor >= 0 && laci_native_find_layout(net, tensor, rows, layout)) return tensor;
  laci_net_decline_node(net, "a value that no reorder of ours reads");
  return -1;
}

/** Returns a copy of the tensor `from` (whose layout is `have`), reordered to the layout `native`.
 * subsampled: the strided 1x1 window whose pixels alone are copied; NULL: all pixels. */
static int make_reordered_copy(laci_net *net, int from, const laci_sparse_layout *have,
                               const laci_native_layout *native,
                               const laci_sparse_window *subsampled) {
  if (from < 0) return -1;
  laci_shape shape = net->tensors[from].shape;
  if (subsampled && shape.rank == 4) shape.dims[2] = subsampled->out_h;
  if (subsampled) shape.dims[shape.rank - 1] = subsampled->out_w;
  const int to = laci_native_tensor_new(net, &shape, native, -1);
  const laci_sparse_reorder r = {.from = *have,
                                 .to = native->layout,
                                 .size = laci_native_size_in_layout(net, &shape, native),
                                 .stride_h = subsampled ? subsampled->stride_h : 1,
                                 .stride_w = subsampled ? subsampled->stride_w : 1};
  (void)laci_native_add_reorder_step(net, from, to, &r);
  return to;
}

/** Returns an int8x4 tensor of a quantized value whose own tensor holds floats: an existing one, or
 * a new one in the layout that is assigned to the value, made by a step. */
static int quantize_floats(laci_net *net, int value, const laci_fake_quantized *bytes) {
  const laci_native_layout to = laci_native_layout_of_value(net, value, bytes);
  const laci_native_layout floats = {.layout = to.as_floats, .rows = to.rows};
  const int tensor = laci_net_find_value_tensor(net, value);
  if (tensor < 0) return -1;
  const int content = net->tensors[tensor].content;
  const int found = laci_native_find_tensor(net, content, &to);
  if (found >= 0) return laci_net_reuse_tensor(net, found, tensor);
  const int made =
      laci_native_add_quantize_step(net, laci_native_read_in_layout(net, value, &floats), &to);
  if (made >= 0) laci_net_set_content(net, made, content);
  return made;
}

/** Returns the value's tensor in f32 or bf16, or in int8x4, and sets *layout to its layout. */
static int find_source_tensor(laci_net *net, int value, const laci_native_layout *native,
                              laci_sparse_layout *layout) {
  if (!native->bytes) return laci_native_read_for_reorder(net, value, native->rows, layout);
  int tensor = laci_net_find_value_tensor(net, value);
  if (tensor < 0) return -1;
  const laci_native_layout *have = net->tensors[tensor].native;
  if (!have || !have->bytes || have->rows != native->rows)
    tensor = quantize_floats(net, value, native->bytes);
  if (tensor >= 0) *layout = net->tensors[tensor].native->layout;
  return tensor;
}

int laci_native_read_in_layout(laci_net *net, int value, const laci_native_layout *native) {
  laci_sparse_layout have;
  const int tensor = laci_net_find_value_tensor(net, value);
  if (tensor < 0) return -1;
  const int content = net->tensors[tensor].content;
  const int found = laci_native_find_tensor(net, content, native);
  if (found >= 0) return laci_net_reuse_tensor(net, found, tensor);
  const int from = find_source_tensor(net, value, native, &have);
  if (from >= 0 && native->bytes && laci_sparse_layout_equal(&have, &native->layout)) return from;
  const int to = make_reordered_copy(net, from, &have, native, NULL);
  if (to >= 0) laci_net_set_content(net, to, content);
  return to;
}

int laci_native_read_subsampled(laci_net *net, const laci_native_layer *layer,
                                const laci_native_layout *native) {
  laci_sparse_layout have;
  const int from = find_source_tensor(net, layer->input, native, &have);
  return make_reordered_copy(net, from, &have, native, &layer->window);
}

/** Returns the layer's input in row-major order: its own tensor, or a copy. */
static int read_row_major(laci_net *net, const laci_native_layer *layer) {
  const laci_sparse_layout wanted = laci_native_input_layout(net, layer);
  laci_sparse_layout have;
  const int tensor = laci_native_read_for_reorder(net, layer->input, false, &have);
  if (tensor < 0 || laci_sparse_layout_equal(&have, &wanted)) return tensor;
  return laci_net_convert_to_dense(net, laci_net_read_value(net, layer->input), LACI_ELEMENT_F32);
}

static int read_layer_input(laci_net *net, const laci_native_layer *layer) {
  if (layer->reading == LACI_NATIVE_ROW_MAJOR) return read_row_major(net, layer);
  const laci_native_layout in = {.layout = laci_native_input_layout(net, layer),
                                 .rows = layer->rows,
                                 .bytes = layer->int8 ? layer->int8->x : NULL};
  if (layer->reading == LACI_NATIVE_SUBSAMPLED) return laci_native_read_subsampled(net, layer, &in);
  return laci_native_read_in_layout(net, layer->input, &in);
}

/** Is the residual also the input of a product? Then results must not overwrite it, as each of them
 * is computed from many values of the input. */
static bool reads_residual_in_windows(const laci_net *net, const laci_native_layer *layer,
                                      const laci_native_tensors *t) {
  if (layer->kind != LACI_NATIVE_PRODUCT || t->residual < 0 || t->x < 0) return false;
  return net->tensors[t->x].buffer == net->tensors[t->residual].buffer;
}

/** Returns the tensors of a move's sources, the first of which is x; NULL: no memory. */
static const int *read_sources(laci_net *net, const laci_native_layer *layer, int x) {
  const laci_native_move *move = layer->move;
  int *tensors = laci_plan_alloc(&net->plan, (size_t)move->n_sources, sizeof *tensors);
  for (int at = 0; at < move->n_sources && tensors; at++) {
    const laci_native_layout in =
        laci_native_layout_of_value(net, move->values[at], move->quantized[at]);
    tensors[at] = at == 0 ? x : laci_native_read_in_layout(net, move->values[at], &in);
  }
  return tensors;
}

laci_native_tensors laci_native_make_layer_tensors(laci_net *net, const laci_native_layer *layer) {
  const laci_native_int8_data *int8 = layer->int8;
  laci_native_layout out = laci_native_layout_of_value(net, layer->output, int8 ? int8->y : NULL);
  laci_native_tensors t = {.x = read_layer_input(net, layer), .bias = -1, .residual = -1};
  if (!int8) t.bias = laci_native_store_bias(net, layer);
  if (layer->residual >= 0) {
    const laci_native_layout added =
        laci_native_layout_of_value(net, layer->output, int8 ? int8->residual : NULL);
    t.residual = laci_native_read_in_layout(net, layer->residual, &added);
  }
  if (layer->kind == LACI_NATIVE_GATE) {
    const laci_native_layout gates = laci_native_layout_of_value(net, int8->gate_value, int8->gate);
    t.residual = laci_native_read_in_layout(net, int8->gate_value, &gates);
  }
  if (layer->move) t.sources = read_sources(net, layer, t.x);
  int over = layer->residual_last || reads_residual_in_windows(net, layer, &t) ? -1 : t.residual;
  if (laci_native_is_elementwise(layer) && layer->kind != LACI_NATIVE_SUM) over = t.x;
  t.y = laci_native_tensor_new(net, laci_plan_shape(&net->plan, layer->output), &out, over);
  return t;
}

laci_sparse_operands laci_native_kernel_operands(const laci_net *net,
                                                 const laci_native_layer *layer,
                                                 const laci_native_tensors *t) {
  return (laci_sparse_operands){
      .bias = t->bias >= 0 ? laci_net_tensor_data(net, t->bias) : NULL,
      .x = laci_net_tensor_data(net, t->x),
      .residual = t->residual >= 0 ? laci_net_tensor_data(net, t->residual) : NULL,
      .y = laci_net_tensor_data(net, t->y),
      .low = layer->has_low ? layer->low : -INFINITY,
      .high = layer->has_high ? layer->high : INFINITY,
      .functions = layer->functions,
      .n_functions = layer->n_functions,
      .residual_last = layer->residual_last,
      .quantized = layer->int8 ? &layer->int8->quantized : NULL};
}

/* ---- HWC16N between layers under training ---- */

bool laci_native_may_be_hwc16n(const laci_net *net, int value) {
  const laci_shape *shape = laci_plan_shape(&net->plan, value);
  const int each = laci_sparse_values_per_word(laci_native_value_type(net));
  return net->native && net->native->trained && net->native->layouts && shape->rank == 4 &&
         shape->dims[0] % LACI_SPARSE_LANES == 0 && shape->dims[1] % each == 0;
}

const laci_image_norm *laci_native_hwc16n_kernels(const laci_net *net) {
  return net->plan.bf16 ? laci_image_norm_bf16_variant() : laci_image_norm_variant();
}

static bool is_tensor_in_hwc16n(const laci_net_tensor *t) {
  return t->native && t->native->layout.format == LACI_FORMAT_HWC16N && !t->native->rows;
}

bool laci_native_is_hwc16n(const laci_net *net, int value) {
  const int tensor = net->plan.values[value].tensor;
  return tensor >= 0 && is_tensor_in_hwc16n(&net->tensors[tensor]);
}

laci_native_layout laci_native_hwc16n_layout(const laci_net *net, int value) {
  static const laci_sparse_border none = {.stride_h = 1, .stride_w = 1};
  const laci_shape *shape = laci_plan_shape(&net->plan, value);
  const laci_sparse_size size = laci_native_value_size(net, shape, false);
  if (laci_native_has_assigned_layout(net, value)) {
    return (laci_native_layout){.layout = *laci_native_assigned_layout(net, value)};
  }
  return (laci_native_layout){
      .layout = laci_sparse_padded_layout(LACI_FORMAT_HWC16N, size.channels, size.h, size.w, none)};
}

int laci_native_read_as_hwc16n(laci_net *net, int value) {
  const int tensor = laci_net_find_value_tensor(net, value);
  if (tensor < 0 || is_tensor_in_hwc16n(&net->tensors[tensor])) return tensor;
  const int content = net->tensors[tensor].content;
  for (int at = content; at >= 0; at = net->tensors[at].next) {
    const laci_net_tensor *t = &net->tensors[at];
    if (t->content == content && is_tensor_in_hwc16n(t))
      return laci_net_reuse_tensor(net, at, tensor);
  }
  const laci_native_layout images = laci_native_hwc16n_layout(net, value);
  return laci_native_read_in_layout(net, value, &images);
}
