/* SPDX-License-Identifier: Apache-2.0
 * Builds one layer at a time: stored tensors, then the node that reads them. A node has its layer's
 * name, and its result is called NODE.out. */
#include "arch/build_in.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "lacuna/dtype.h"
#include "tensor/shape.h"

/* ---- Parts ---- */

/** Adds a stored tensor and returns its memory, which belongs to the graph; NULL after a failure.
 */
static void *add_stored_tensor(laci_arch_builder *b, const char *layer, const char *part,
                               lac_dtype dtype, laci_shape shape, int *value) {
  char name[LACI_ARCH_NAME];
  int id;
  *value = -1;
  if (b->status) return NULL;
  (void)snprintf(name, sizeof name, "%s.%s", layer, part);
  laci_stored stored = {.name = name, .dtype = dtype, .shape = shape};
  stored.size_bytes = (size_t)laci_shape_count(&shape) * (dtype == LAC_DTYPE_I64 ? 8 : 4);
  stored.owned = laci_alloc(stored.size_bytes, 1);
  stored.bytes = stored.owned;
  b->status = stored.owned ? laci_graph_add_stored(b->graph, &stored, &id, b->err)
                           : laci_fail_memory(b->err, name);
  if (b->status) {
    laci_free(stored.owned);
    return NULL;
  }
  *value = b->graph->stored[id].value;
  return stored.owned;
}

static int add_filled_vector(laci_arch_builder *b, const char *layer, const char *part, int n,
                             float fill) {
  int value;
  float *to =
      add_stored_tensor(b, layer, part, LAC_DTYPE_F32, laci_shape_of(1, (int64_t[]){n}), &value);
  for (int k = 0; to && k < n; k++) to[k] = fill;
  return value;
}

static int add_integer_vector(laci_arch_builder *b, const char *layer, const char *part,
                              const int64_t *from, int n) {
  int value;
  int64_t *to =
      add_stored_tensor(b, layer, part, LAC_DTYPE_I64, laci_shape_of(1, (int64_t[]){n}), &value);
  if (to) memcpy(to, from, (size_t)n * sizeof *from);
  return value;
}

/** Adds a node with one result. Does nothing if an input is -1 because of an earlier failure. */
static int add_node(laci_arch_builder *b, laci_node node, const char *output) {
  char name[2 * LACI_ARCH_NAME];
  int value, id;
  if (b->status) return -1;
  (void)snprintf(name, sizeof name, "%s.out", node.name);
  value = laci_graph_intern_value(b->graph, output ? output : name);
  if (value < 0) {
    b->status = laci_fail_memory(b->err, node.name);
    return -1;
  }
  node.version = LACI_ARCH_OPSET;
  node.domain = "";
  node.n_outputs = 1;
  node.outputs = &value;
  b->status = laci_graph_add_node(b->graph, &node, &id, b->err);
  return b->status ? -1 : value;
}

static laci_attr ints_attr(const char *name, const int64_t *values, size_t n) {
  return (laci_attr){.name = name, .kind = LACI_ATTR_INTS, .n = n, .ints = values};
}

/* ---- Layers ---- */

int laci_arch_add_conv(laci_arch_builder *b, const char *name, int value, laci_arch_conv_spec s) {
  const int64_t dims[4] = {s.out, s.in / s.groups, s.kernel, s.kernel};
  int weight;
  laci_shape shape = laci_shape_of(4, dims);
  float *to = add_stored_tensor(b, name, "weight", LAC_DTYPE_F32, shape, &weight);
  if (to) {
    int64_t fan = (b->fan_in ? s.in / s.groups : s.out) * (int64_t)s.kernel * s.kernel;
    laci_arch_fill_normal(b->seed, b->stream++, sqrt(2 / (double)fan), to,
                          (size_t)laci_shape_count(&shape));
  }
  const int64_t pad = s.kernel / 2, kernel[2] = {s.kernel, s.kernel}, one[2] = {1, 1};
  const int64_t strides[2] = {s.stride, s.stride}, pads[4] = {pad, pad, pad, pad};
  const laci_attr attrs[] = {
      ints_attr("dilations", one, 2),       {.name = "group", .kind = LACI_ATTR_INT, .i = s.groups},
      ints_attr("kernel_shape", kernel, 2), ints_attr("pads", pads, 4),
      ints_attr("strides", strides, 2),
  };
  const int inputs[2] = {value, weight};
  return add_node(b,
                  (laci_node){.name = name,
                              .type = "Conv",
                              .n_inputs = 2,
                              .inputs = inputs,
                              .n_attrs = 5,
                              .attrs = attrs},
                  NULL);
}

int laci_arch_add_norm(laci_arch_builder *b, const char *name, int value, int channels,
                       float gamma) {
  const int inputs[5] = {value, add_filled_vector(b, name, "weight", channels, gamma),
                         add_filled_vector(b, name, "bias", channels, 0),
                         add_filled_vector(b, name, "running_mean", channels, 0),
                         add_filled_vector(b, name, "running_var", channels, 1)};
  const laci_attr attrs[] = {{.name = "epsilon", .kind = LACI_ATTR_FLOAT, .f = 1e-5F},
                             {.name = "momentum", .kind = LACI_ATTR_FLOAT, .f = 0.9F}};
  return add_node(b,
                  (laci_node){.name = name,
                              .type = "BatchNormalization",
                              .n_inputs = 5,
                              .inputs = inputs,
                              .n_attrs = 2,
                              .attrs = attrs},
                  NULL);
}

int laci_arch_add_linear(laci_arch_builder *b, const char *name, int value, int in, int out,
                         const char *output) {
  const laci_shape shape = laci_shape_of(2, (int64_t[]){out, in});
  double bound = 1 / sqrt((double)in);
  int weight, bias;
  float *to = add_stored_tensor(b, name, "weight", LAC_DTYPE_F32, shape, &weight);
  if (to) laci_arch_fill_uniform(b->seed, b->stream++, bound, to, (size_t)in * (size_t)out);
  to = add_stored_tensor(b, name, "bias", LAC_DTYPE_F32, laci_shape_of(1, (int64_t[]){out}), &bias);
  if (to) laci_arch_fill_uniform(b->seed, b->stream++, bound, to, (size_t)out);
  const int inputs[3] = {value, weight, bias};
  const laci_attr transposed = {.name = "transB", .kind = LACI_ATTR_INT, .i = 1};
  return add_node(b,
                  (laci_node){.name = name,
                              .type = "Gemm",
                              .n_inputs = 3,
                              .inputs = inputs,
                              .n_attrs = 1,
                              .attrs = &transposed},
                  output);
}

int laci_arch_add_relu(laci_arch_builder *b, const char *name, int value) {
  return add_node(b, (laci_node){.name = name, .type = "Relu", .n_inputs = 1, .inputs = &value},
                  NULL);
}

int laci_arch_add_sum(laci_arch_builder *b, const char *name, int first, int second) {
  const int inputs[2] = {first, second};
  return add_node(b, (laci_node){.name = name, .type = "Add", .n_inputs = 2, .inputs = inputs},
                  NULL);
}

int laci_arch_add_max_pool(laci_arch_builder *b, const char *name, int value) {
  const int64_t kernel[2] = {3, 3}, strides[2] = {2, 2}, pads[4] = {1, 1, 1, 1};
  const laci_attr attrs[] = {ints_attr("kernel_shape", kernel, 2), ints_attr("pads", pads, 4),
                             ints_attr("strides", strides, 2)};
  return add_node(b,
                  (laci_node){.name = name,
                              .type = "MaxPool",
                              .n_inputs = 1,
                              .inputs = &value,
                              .n_attrs = 3,
                              .attrs = attrs},
                  NULL);
}

int laci_arch_add_global_pool(laci_arch_builder *b, const char *name, int value) {
  const laci_attr axis = {.name = "axis", .kind = LACI_ATTR_INT, .i = 1};
  int mean = add_node(
      b, (laci_node){.name = name, .type = "GlobalAveragePool", .n_inputs = 1, .inputs = &value},
      NULL);
  return add_node(b,
                  (laci_node){.name = "flatten",
                              .type = "Flatten",
                              .n_inputs = 1,
                              .inputs = &mean,
                              .n_attrs = 1,
                              .attrs = &axis},
                  NULL);
}

int laci_arch_add_pad_shortcut(laci_arch_builder *b, const char *name, int value, int zeros) {
  static const int64_t starts[2] = {0, 0}, ends[2] = {INT64_MAX, INT64_MAX}, axes[2] = {2, 3},
                       steps[2] = {2, 2};
  const int64_t pads[8] = {0, zeros, 0, 0, 0, zeros, 0, 0};
  char layer[LACI_ARCH_NAME];
  (void)snprintf(layer, sizeof layer, "%s.slice", name);
  const int slice[5] = {value, add_integer_vector(b, layer, "starts", starts, 2),
                        add_integer_vector(b, layer, "ends", ends, 2),
                        add_integer_vector(b, layer, "axes", axes, 2),
                        add_integer_vector(b, layer, "steps", steps, 2)};
  int half = add_node(
      b, (laci_node){.name = layer, .type = "Slice", .n_inputs = 5, .inputs = slice}, NULL);
  (void)snprintf(layer, sizeof layer, "%s.pad", name);
  const int pad[2] = {half, add_integer_vector(b, layer, "pads", pads, 8)};
  return add_node(b, (laci_node){.name = layer, .type = "Pad", .n_inputs = 2, .inputs = pad}, NULL);
}
