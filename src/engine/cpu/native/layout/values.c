/* SPDX-License-Identifier: Apache-2.0
 * Gives values in native layouts to code that does not know these layouts. */
#include "engine/cpu/native/values.h"

#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/layout/tensors.h"
#include "kernel/sparse/image_bytes.h"

int laci_native_read_for_onednn(laci_net *net, int tensor) {
  return laci_native_copy_for_onednn(net, tensor);
}

laci_layout *laci_native_onednn_layout(laci_net *net, int tensor) {
  const laci_net_tensor t = net->tensors[tensor];
  return laci_native_dense_layout(net, &t.shape, t.native->rows);
}

laci_layout *laci_native_onednn_layout_of_shape(laci_net *net, const laci_shape *shape) {
  return laci_native_dense_layout(net, shape, false);
}

int laci_native_read_as_floats(laci_net *net, int tensor) {
  return laci_native_copy_as_floats(net, tensor);
}

int laci_native_read_in_layout_of(laci_net *net, int value, int like) {
  return laci_native_read_in_layout(net, value, net->tensors[like].native);
}

/** Returns the only layer that reads the value; NULL: several do, or none, or others do. */
static const laci_native_layer *find_only_reader(const laci_net *net, int value) {
  const laci_native_net *native = net->native;
  const laci_native_layer *only = NULL;
  if (laci_plan_count_uses(&net->plan, value) != 1) return NULL;
  for (int at = 0; native && at < native->n_layers; at++) {
    const laci_native_layer *layer = &native->layers[at];
    if (layer->chosen && layer->input == value) only = layer;
  }
  return only;
}

/** Quantizes an image of floats into the layout in which its only reader reads it. Returns -1 if
 * the image has another form. */
static int read_image_as_int8(laci_net *net, int value, int output,
                              const laci_native_layout *assigned) {
  const laci_native_layer *reader = find_only_reader(net, output);
  const int tensor = laci_net_find_value_tensor(net, value);
  laci_native_layout to = *assigned;
  laci_sparse_layout floats;
  if (tensor < 0 || to.rows || !reader || !reader->int8 || net->tensors[tensor].native) return -1;
  if (reader->reading == LACI_NATIVE_PHASES) to.layout = laci_native_input_layout(net, reader);
  if (!laci_native_find_layout(net, tensor, false, &floats)) return -1;
  if (!laci_image_bytes_can_pack(&floats, &to.layout)) return -1;
  return laci_native_add_image_step(net, tensor, &floats, &to);
}

int laci_native_read_as_int8(laci_net *net, int value, int output,
                             const laci_fake_quantized *bytes) {
  const laci_native_layout to = laci_native_layout_of_value(net, output, bytes);
  const int image = read_image_as_int8(net, value, output, &to);
  if (image >= 0) return image;
  const laci_native_layout floats = {.layout = to.as_floats, .rows = to.rows};
  return laci_native_add_quantize_step(net, laci_native_read_in_layout(net, value, &floats), &to);
}

bool laci_native_is_value_used(const laci_net *net, int value) {
  return laci_native_has_assigned_layout(net, value);
}

bool laci_native_has_int8_reader(const laci_net *net, int value) {
  return laci_native_is_read_as_int8(net, value);
}

bool laci_native_is_int8_tensor(const laci_net *net, int tensor, const laci_fake_quantized *bytes) {
  const laci_native_layout *are = tensor < 0 ? NULL : net->tensors[tensor].native;
  return are && are->bytes == bytes;
}

bool laci_native_is_in_train_layout(const laci_net *net, int value) {
  return laci_native_may_be_hwc16n(net, value) && laci_native_is_hwc16n(net, value);
}

int64_t laci_native_count_floats(const laci_net *net, int tensor) {
  const laci_net_tensor *t = &net->tensors[tensor];
  const laci_sparse_size size = laci_native_value_size(net, &t->shape, t->native->rows);
  return laci_native_image_blocks(&t->native->layout, size.n_images) * t->native->layout.n_floats;
}
