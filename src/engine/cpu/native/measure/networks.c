/* SPDX-License-Identifier: Apache-2.0
 * Defines the networks whose layers are timed. They are parts of well-known pruned networks, so
 * that a layer's neighbours leave the caches in a realistic state. */
#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "engine/cpu/native/measure/measure.h"
#include "graph/graph.h"
#include "graph/infer.h"

enum { MOST_LAYERS = 16, NAME = 32, OPSET = 17, OF = 4, POOL = -1, PRODUCT = 0 };

/** A layer of a network that is timed: a convolution and its Relu; kernel POOL: a MaxPool of 3x3;
 * kernel PRODUCT: a MatMul. */
typedef struct layer {
  int out, kernel, stride, groups;
  bool dense; /* all weights are kept */
} layer;

/** A network that is timed. tokens: the input is a matrix of `size` rows. alternates: dense and
 * native layers alternate, so that reorders are timed. */
typedef struct network {
  const char *what;
  int channels, size;
  bool tokens, alternates;
  layer layers[MOST_LAYERS];
} network;

#define PRUNED(out, kernel, stride, groups) \
  { out, kernel, stride, groups, false }
#define WHOLE(out, kernel, stride, groups) \
  { out, kernel, stride, groups, true }

/* clang-format off */
static const network networks[] = {
    {"a classifier's first layers", 3, 224, false, false,
     {WHOLE(64, 7, 2, 1), WHOLE(0, POOL, 2, 1), PRUNED(64, 1, 1, 1), PRUNED(256, 1, 1, 1)}},
    {"56 px", 64, 56, false, false,
     {PRUNED(64, 3, 1, 1), PRUNED(256, 1, 1, 1), PRUNED(64, 1, 1, 1), WHOLE(64, 3, 1, 1),
      PRUNED(64, 3, 1, 1)}},
    {"28 px", 512, 28, false, false,
     {PRUNED(128, 1, 1, 1), PRUNED(128, 3, 1, 1), PRUNED(512, 1, 1, 1), PRUNED(128, 1, 1, 1),
      WHOLE(128, 3, 1, 1)}},
    {"14 px", 1024, 14, false, false,
     {PRUNED(256, 1, 1, 1), PRUNED(256, 3, 1, 1), PRUNED(1024, 1, 1, 1), PRUNED(256, 1, 1, 1),
      WHOLE(256, 3, 1, 1)}},
    {"7 px", 2048, 7, false, false,
     {PRUNED(512, 1, 1, 1), PRUNED(512, 3, 1, 1), PRUNED(2048, 1, 1, 1), PRUNED(512, 1, 1, 1)}},
    {"windows that stride", 64, 56, false, false,
     {PRUNED(128, 3, 2, 1), PRUNED(256, 1, 2, 1), PRUNED(256, 3, 1, 1), PRUNED(512, 3, 2, 1)}},
    {"CIFAR's", 16, 32, false, false,
     {PRUNED(16, 3, 1, 1), WHOLE(16, 3, 1, 1), PRUNED(32, 3, 2, 1), PRUNED(32, 3, 1, 1),
      WHOLE(32, 3, 1, 1), PRUNED(64, 3, 2, 1), PRUNED(64, 3, 1, 1), PRUNED(64, 3, 1, 1)}},
    {"inverted residuals, large", 16, 112, false, false,
     {PRUNED(96, 1, 1, 1), WHOLE(96, 3, 2, 96), PRUNED(24, 1, 1, 1), PRUNED(144, 1, 1, 1),
      WHOLE(144, 3, 1, 144), PRUNED(24, 1, 1, 1)}},
    {"inverted residuals", 32, 28, false, false,
     {PRUNED(192, 1, 1, 1), WHOLE(192, 3, 2, 192), PRUNED(64, 1, 1, 1), PRUNED(384, 1, 1, 1),
      WHOLE(384, 3, 1, 384), PRUNED(96, 1, 1, 1), PRUNED(576, 1, 1, 1), WHOLE(576, 5, 2, 576),
      PRUNED(160, 1, 1, 1), PRUNED(960, 1, 1, 1), WHOLE(960, 3, 1, 960), PRUNED(320, 1, 1, 1)}},
    {"groups", 256, 28, false, false,
     {PRUNED(128, 1, 1, 1), PRUNED(128, 3, 1, 32), PRUNED(256, 1, 1, 1), PRUNED(256, 3, 2, 32),
      PRUNED(512, 1, 1, 1), PRUNED(512, 3, 2, 32), PRUNED(512, 1, 1, 1)}},
    {"between dense layers, 56 px", 64, 56, false, true,
     {WHOLE(64, 1, 1, 1), PRUNED(64, 1, 1, 1), WHOLE(64, 1, 1, 1), PRUNED(64, 1, 1, 1),
      WHOLE(64, 1, 1, 1)}},
    {"between dense layers, 14 px", 256, 14, false, true,
     {WHOLE(256, 1, 1, 1), PRUNED(256, 1, 1, 1), WHOLE(256, 1, 1, 1), PRUNED(256, 1, 1, 1),
      WHOLE(256, 1, 1, 1)}},
    {"tokens", 768, 197, true, false,
     {PRUNED(3072, PRODUCT, 1, 1), PRUNED(768, PRODUCT, 1, 1), PRUNED(768, PRODUCT, 1, 1)}},
};
/* clang-format on */

bool laci_measured_has_reorders(int at) { return networks[at].alternates; }

int laci_measured_n_networks(void) { return (int)(sizeof networks / sizeof *networks); }

/* ---- Building ---- */

typedef struct building {
  laci_graph *graph;
  int64_t channels; /* number of channels of the current value */
  int value, n;     /* index of the current value, and number of nodes so far */
  lac_error *err;
} building;

/** Sets two of every four elements along an axis to zero. dims: number of elements before that
 * axis, along it, and after it. */
static void prune_2_of_4(uint64_t stream, float *weight, const int64_t dims[3]) {
  static const uint8_t two[] = {3, 5, 9, 6, 10, 12};
  for (int64_t at = 0; at < dims[0] * dims[1] * dims[2]; at++) {
    const int64_t inner = at % dims[2], axis = at / dims[2] % dims[1],
                  outer = at / dims[2] / dims[1];
    const uint64_t block = (uint64_t)((outer * dims[1] + axis / OF) * dims[2] + inner);
    const uint8_t kept = two[laci_rng_integer_below(1, stream, block, sizeof two)];
    if (!(kept >> axis % OF & 1)) weight[at] = 0;
  }
}

/** Adds a weight, pruned along `axis` unless it is dense; returns the index of its value; -1: no
 * memory. */
static int append_weight(building *b, laci_shape shape, int axis, bool dense) {
  char name[NAME];
  int id;
  (void)snprintf(name, sizeof name, "w%d", b->n);
  laci_stored stored = {.name = name, .dtype = LAC_DTYPE_F32, .shape = shape};
  const int64_t n = laci_shape_count(&shape);
  float *weight = laci_alloc((size_t)n, sizeof *weight);
  if (!weight) {
    (void)laci_fail_memory(b->err, "a weight to be timed");
    return -1;
  }
  for (int64_t at = 0; at < n; at++) {
    weight[at] = (float)(laci_rng_unit_interval(2, (uint64_t)b->n, (uint64_t)at) - 0.5);
  }
  int64_t dims[3] = {1, shape.dims[axis], 1};
  for (int at = 0; at < shape.rank; at++) {
    if (at != axis) dims[at < axis ? 0 : 2] *= shape.dims[at];
  }
  if (!dense) prune_2_of_4((uint64_t)b->n, weight, dims);
  stored.size_bytes = (size_t)n * sizeof *weight;
  stored.owned = (uint8_t *)weight;
  stored.bytes = stored.owned;
  if (laci_graph_add_stored(b->graph, &stored, &id, b->err)) {
    laci_free(weight);
    return -1;
  }
  return b->graph->stored[id].value;
}

/** Adds a node with one result, which becomes the current value. weight: index of the value that is
 * its weight; -1: it has none. */
static lac_status append_node(building *b, const char *type, int weight, const laci_attr *attrs,
                              int n_attrs) {
  char name[NAME];
  int id;
  (void)snprintf(name, sizeof name, "v%d", b->n++);
  const int inputs[] = {b->value, weight}, output = laci_graph_intern_value(b->graph, name);
  const laci_node node = {.name = name,
                          .type = type,
                          .domain = "",
                          .version = OPSET,
                          .n_inputs = weight < 0 ? 1 : 2,
                          .inputs = inputs,
                          .n_outputs = 1,
                          .outputs = &output,
                          .n_attrs = n_attrs,
                          .attrs = attrs};
  if (output < 0) return laci_fail_memory(b->err, "a network to be timed");
  b->value = output;
  return laci_graph_add_node(b->graph, &node, &id, b->err);
}

static lac_status append_product(building *b, const layer *l) {
  const int weight =
      append_weight(b, laci_shape_of(2, (int64_t[]){b->channels, l->out}), 0, l->dense);
  return weight < 0 ? LAC_NO_MEMORY : append_node(b, "MatMul", weight, NULL, 0);
}

static lac_status append_window_layer(building *b, const layer *l) {
  enum { POOL_SIDE = 3, N_ATTRS = 4 };
  const bool pool = l->kernel == POOL;
  const int64_t side = pool ? POOL_SIDE : l->kernel, pad = side / 2;
  const int64_t window[] = {side, side}, strides[] = {l->stride, l->stride};
  const int64_t pads[] = {pad, pad, pad, pad};
  const laci_attr attrs[N_ATTRS] = {
      laci_attr_ints("kernel_shape", 2, window), laci_attr_ints("strides", 2, strides),
      laci_attr_ints("pads", 4, pads), laci_attr_int("group", l->groups)};
  if (pool) return append_node(b, "MaxPool", -1, attrs, N_ATTRS - 1);
  const laci_shape shape =
      laci_shape_of(4, (int64_t[]){l->out, b->channels / l->groups, side, side});
  const int weight = append_weight(b, shape, 1, l->dense);
  return weight < 0 ? LAC_NO_MEMORY : append_node(b, "Conv", weight, attrs, N_ATTRS);
}

static lac_status append_layer(building *b, const layer *l) {
  lac_status st = l->kernel == PRODUCT ? append_product(b, l) : append_window_layer(b, l);
  if (l->kernel != POOL) b->channels = l->out;
  return st || l->kernel == POOL ? st : append_node(b, "Relu", -1, NULL, 0);
}

static lac_status build_network(const network *from, int64_t batch, building *b) {
  const int64_t n = from->channels, size = from->size;
  const laci_type type = {.dtype = LAC_DTYPE_F32,
                          .shape = from->tokens
                                       ? laci_shape_of(2, (int64_t[]){batch * size, n})
                                       : laci_shape_of(4, (int64_t[]){batch, n, size, size})};
  lac_status st = laci_graph_add_input(b->graph, "x", &type, b->err);
  b->value = laci_graph_find_value(b->graph, "x");
  b->channels = n;
  for (const layer *l = from->layers; !st && l < from->layers + MOST_LAYERS && l->stride; l++) {
    st = append_layer(b, l);
  }
  if (!st) st = laci_graph_add_output(b->graph, b->graph->values[b->value].name, b->err);
  if (!st) st = laci_graph_finish(b->graph, b->err);
  return st ? st : laci_graph_infer(b->graph, NULL, 0, b->err);
}

lac_status laci_measured_build_network(int at, int64_t batch, laci_graph **graph, lac_error *err) {
  building b = {.err = err};
  lac_status st = laci_graph_create(graph, err);
  if (st) return st;
  b.graph = *graph;
  st = build_network(&networks[at], batch, &b);
  if (st) {
    laci_graph_destroy(*graph);
    *graph = NULL;
  }
  return st;
}
