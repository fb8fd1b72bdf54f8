/* SPDX-License-Identifier: Apache-2.0
 * Finds which content the nodes that read a value accept (its domain): indices of an axis, a shape,
 * a number of elements.
 *
 * A domain is found at the operator that requires it. It is carried back to the input, through
 * operators that copy elements and through arithmetic with constants: if Gather reads row x - 3 of
 * a table of 10 rows, x is 3 to 12. With content outside of its domain a node would fail, which
 * says nothing about the reordering. */
#include "verify/verify_in.h"

#include <math.h>
#include <string.h>

#include "base/acquire.h"
#include "graph/graph.h"
#include "tensor/buf.h"
#include "tensor/shape.h"

enum { MAX_WALK = 24, MAX_VISITS = 4096, SMALL = 64, ANY = -1 };

typedef struct domain_walk {
  const laci_graph *graph;
  const int64_t *sizes; /* size of each symbol; NULL: sizes are not known */
  int *visits;          /* number of visits that are left. Without this limit, branches that join
                           again would be visited exponentially often */
} domain_walk;

static const laci_domain free_domain = {.kind = LACI_DOMAIN_FREE};

static laci_domain integer_domain(double low, double high) {
  if (high <= low) high = low + 1;
  return (laci_domain){.kind = LACI_DOMAIN_INTEGERS, .low = low, .high = high};
}

static bool is_type_in_list(const laci_node *node, const char *const *types, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (strcmp(node->type, types[i]) == 0) return true;
  }
  return false;
}

static const laci_shape *shape_of_input(const domain_walk *w, const laci_node *node, int port) {
  bool there = port < node->n_inputs && node->inputs[port] >= 0;
  return there ? &w->graph->values[node->inputs[port]].type.shape : NULL;
}

/* Returns the size of an axis of an operand, at least 1; 1 if it is not known. */
static int64_t size_of_input_axis(const domain_walk *w, const laci_node *node, int port,
                                  int64_t axis) {
  const laci_shape *shape = shape_of_input(w, node, port);
  if (!shape || shape->rank < 0) return 1;
  if (axis < 0) axis += shape->rank;
  if (axis < 0 || axis >= shape->rank) return 1;
  int64_t size = shape->dims[axis];
  if (size < 0 && w->sizes && -size <= w->graph->n_symbols) size = w->sizes[-size];
  return size > 0 ? size : 1;
}

static int64_t smallest_size_of_input(const domain_walk *w, const laci_node *node, int port) {
  const laci_shape *shape = shape_of_input(w, node, port);
  int64_t least = 0;
  for (int axis = 0; shape && axis < shape->rank; axis++) {
    int64_t size = size_of_input_axis(w, node, port, axis);
    if (least == 0 || size < least) least = size;
  }
  return least > 0 ? least : 1;
}

/* ---- Constants ---- */

static bool find_stored_value_range(const laci_graph *graph, const laci_stored *stored, double *low,
                                    double *high) {
  laci_acquired_bytes held;
  laci_buf *buf = NULL;
  laci_type type = {.dtype = stored->dtype, .shape = stored->shape};
  int64_t count = laci_shape_count(&stored->shape);
  if (count < 1 || count > SMALL || laci_stored_acquire(graph, stored, &held, NULL)) return false;
  bool ok = laci_buf_from_bytes(&type, held.bytes, stored->size_bytes, &buf, NULL) == LAC_OK;
  for (int64_t e = 0; ok && e < count; e++) {
    double x = laci_buf_get_f(buf, e);
    *low = e == 0 ? x : fmin(*low, x);
    *high = e == 0 ? x : fmax(*high, x);
    ok = isfinite(x);
  }
  laci_buf_destroy(buf);
  laci_bytes_release(&held);
  return ok;
}

/* Finds the least and the largest element of a small constant. Nodes that only copy or cast it may
   be in between. */
static bool find_constant_value_range(const laci_graph *graph, int value, double *low,
                                      double *high) {
  static const char *const same[] = {"Cast",      "CastLike", "Identity", "Reshape",
                                     "Unsqueeze", "Squeeze",  "Expand"};
  for (int depth = 0; value >= 0 && depth < MAX_WALK; depth++) {
    const laci_value *v = &graph->values[value];
    if (v->stored >= 0) return find_stored_value_range(graph, &graph->stored[v->stored], low, high);
    const laci_node *node = v->producer >= 0 ? &graph->nodes[v->producer] : NULL;
    if (!node || node->n_inputs < 1 || !is_type_in_list(node, same, sizeof same / sizeof *same))
      return false;
    value = node->inputs[0];
  }
  return false;
}

/* ---- Domains that operators require ---- */

/* Operators that use the elements of an operand (number `port`) as indices along an axis of another
 * operand (number `data`): 0 <= x < size. */
static const struct {
  const char *type;
  int port, data, axis;
  const char *attribute; /* name of the attribute that gives the axis; NULL: it is the field
                            `axis` */
} lookups[] = {
    {"Gather", 1, 0, 0, "axis"},
    {"GatherElements", 1, 0, 0, "axis"},
    {"Scatter", 1, 0, 0, "axis"},
    {"ScatterElements", 1, 0, 0, "axis"},
    {"RoiAlign", 2, 0, 0, NULL},
    {"NegativeLogLikelihoodLoss", 1, 0, 1, NULL},
    {"SoftmaxCrossEntropyLoss", 1, 0, 1, NULL},
    {"EmbedLayerNormalization", 0, 2, 0, NULL},
    {"EmbedLayerNormalization", 1, 4, 0, NULL},
    {"EmbedLayerNormalization", 8, 3, 0, NULL},
};

/* Operators that read a number of elements or of repetitions from an operand: low <= x < high. */
static const struct {
  const char *type;
  int port;
  double low, high;
} counts[] = {
    {"Tile", 1, 1, 2},
    {"Expand", 1, 1, 2},
    {"ConstantOfShape", 0, 1, 3},
    {"OneHot", 1, 2, 9},
    {"NonMaxSuppression", 2, 4, 9},
    {"Split", 1, 1, 2},
    {"Slice", 1, 0, 1},
    {"Slice", 2, 1 << 30, 1 << 30},
    {"Slice", 4, 1, 2},
    {"Pad", 1, 0, 2},
    {"Range", 0, 0, 1},
    {"Range", 1, 4, 9},
    {"Range", 2, 1, 2},
    {"Loop", 0, 1, 4},
    {"LoopBegin", 0, 1, 4},
    {"EyeLike", 0, 0, 2},
    {"Resize", 2, 1, 2},
    {"Upsample", 1, 1, 2},
    {"HannWindow", 0, 4, 9},
    {"HammingWindow", 0, 4, 9},
    {"BlackmanWindow", 0, 4, 9},
};

static const char *const sequences[] = {"LSTM", "GRU", "RNN"};

static bool is_axes_port(const laci_node *node, int port) {
  static const char *const of_second[] = {"Squeeze", "Unsqueeze"};
  if (port == 3) return strcmp(node->type, "Slice") == 0 || strcmp(node->type, "Pad") == 0;
  if (port != 1) return false;
  return strncmp(node->type, "Reduce", 6) == 0 || strcmp(node->type, "CumSum") == 0 ||
         is_type_in_list(node, of_second, sizeof of_second / sizeof *of_second);
}

static laci_domain index_domain(const domain_walk *w, const laci_node *node, int port) {
  for (size_t i = 0; i < sizeof lookups / sizeof *lookups; i++) {
    if (lookups[i].port != port || strcmp(node->type, lookups[i].type) != 0) continue;
    int64_t axis = lookups[i].axis;
    if (lookups[i].attribute) axis = laci_node_int(node, lookups[i].attribute, axis);
    return integer_domain(0, (double)size_of_input_axis(w, node, lookups[i].data, axis));
  }
  bool of_all = strcmp(node->type, "GatherND") == 0 || strcmp(node->type, "ScatterND") == 0;
  if (of_all && port == 1) return integer_domain(0, (double)smallest_size_of_input(w, node, 0));
  return free_domain;
}

static laci_domain class_label_domain(const domain_walk *w, const laci_node *node) {
  double low, high;
  bool known =
      node->n_inputs > 1 && find_constant_value_range(w->graph, node->inputs[1], &low, &high);
  return integer_domain(0, known ? high : 2);
}

/* Returns the domain of boxes in an image. Random boxes that end before they begin, or are outside
 * of the image, would give only zeros. */
static laci_domain box_domain(const domain_walk *w, const laci_node *node) {
  double scale = laci_node_float(node, "spatial_scale", 1), by = scale > 0 ? scale : 1;
  double size =
      fmin((double)size_of_input_axis(w, node, 0, -1), (double)size_of_input_axis(w, node, 0, -2));
  return (laci_domain){.kind = LACI_DOMAIN_BOXES, .high = size / by};
}

/* Returns the domain that the node itself requires of its operand number `port`. */
static laci_domain required_domain(const domain_walk *w, const laci_node *node, int port) {
  laci_domain found = index_domain(w, node, port);
  if (found.kind) return found;
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    if (counts[i].port == port && strcmp(node->type, counts[i].type) == 0)
      return integer_domain(counts[i].low, counts[i].high);
  }
  if (is_axes_port(node, port)) return (laci_domain){.kind = LACI_DOMAIN_AXES};
  if (strcmp(node->type, "Reshape") == 0 && port == 1)
    return (laci_domain){.kind = LACI_DOMAIN_SHAPE, .reader = node};
  if (port == 1 && is_type_in_list(node, (const char *const[]){"RoiAlign", "MaxRoiPool"}, 2))
    return box_domain(w, node);
  if (strcmp(node->type, "OneHot") == 0 && port == 0) return class_label_domain(w, node);
  if (strcmp(node->type, "TopK") == 0 && port == 1)
    return integer_domain(
        1, (double)size_of_input_axis(w, node, 0, laci_node_int(node, "axis", -1)) + 1);
  if (strcmp(node->type, "ReverseSequence") == 0 && port == 1)
    return integer_domain(
        1, (double)size_of_input_axis(w, node, 0, laci_node_int(node, "time_axis", 0)) + 1);
  if (is_type_in_list(node, sequences, sizeof sequences / sizeof *sequences) && port == 4)
    return integer_domain(
        1, (double)size_of_input_axis(w, node, 0, laci_node_int(node, "layout", 0) ? 1 : 0) + 1);
  if (strcmp(node->type, "RotaryEmbedding") == 0) {
    bool ours = node->domain[0] != 0; /* in com.microsoft, positions are the second input */
    if (port == (ours ? 1 : 3))
      return integer_domain(0, (double)size_of_input_axis(w, node, ours ? 2 : 1, 0));
  }
  return free_domain;
}

/* ---- From a node's output back to its inputs ---- */

/* Operators whose outputs have the elements of operand number `port`; ANY: of all operands. */
static const struct {
  const char *type;
  int port;
} passes[] = {
    {"Cast", 0},         {"CastLike", 0},  {"Reshape", 0},        {"Unsqueeze", 0},
    {"Squeeze", 0},      {"Identity", 0},  {"Flatten", 0},        {"Expand", 0},
    {"Slice", 0},        {"Split", 0},     {"Transpose", 0},      {"Tile", 0},
    {"Clip", 0},         {"Gather", 0},    {"GatherElements", 0}, {"GatherND", 0},
    {"Pad", 0},          {"Floor", 0},     {"Ceil", 0},           {"Round", 0},
    {"Abs", 0},          {"Concat", ANY},  {"Min", ANY},          {"Max", ANY},
    {"Where", 1},        {"Where", 2},     {"Compress", 0},       {"ScatterElements", 0},
    {"ScatterND", 0},    {"Dropout", 0},   {"Relu", 0},           {"DepthToSpace", 0},
    {"SpaceToDepth", 0}, {"ReduceMax", 0}, {"ReduceMin", 0},      {"Mod", 0},
};

static bool is_copying_elements_of_port(const laci_node *node, int port) {
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
    bool here = passes[i].port == port || passes[i].port == ANY;
    if (here && strcmp(node->type, passes[i].type) == 0) return true;
  }
  return false;
}

/* The node computes x + c, x - c, c - x, x * c or x / c, with constants c in [low, high]. Returns
 * the domain of x with which its result is in `out` for all c. */
static laci_domain domain_before_constant(const laci_node *node, int port, const laci_domain *out,
                                          double low, double high) {
  const char *type = node->type;
  if (strcmp(type, "Add") == 0) return integer_domain(ceil(out->low - low), ceil(out->high - high));
  if (strcmp(type, "Sub") == 0 && port == 0)
    return integer_domain(ceil(out->low + high), ceil(out->high + low));
  if (strcmp(type, "Sub") == 0)
    return integer_domain(floor(high - out->high) + 1, floor(low - out->low) + 1);
  if (strcmp(type, "Mul") == 0 && low > 0)
    return integer_domain(ceil(out->low / low), floor((out->high - 1) / high) + 1);
  if (strcmp(type, "Div") == 0 && port == 0 && low > 0)
    return integer_domain(ceil(out->low * high), floor(out->high * low));
  return free_domain;
}

/* The node adds or multiplies two operands. Returns the domain of each with which the result is in
 * `out`. */
static laci_domain domain_of_each_operand(const laci_node *node, const laci_domain *out) {
  if (out->low > 0) return *out;
  if (strcmp(node->type, "Add") == 0) return integer_domain(0, floor((out->high + 1) / 2));
  if (strcmp(node->type, "Mul") == 0) return integer_domain(0, floor(sqrt(out->high - 1)) + 1);
  return free_domain;
}

static laci_domain domain_before_arithmetic(const domain_walk *w, const laci_node *node, int port,
                                            const laci_domain *out) {
  double low = 0, high = 0;
  if (out->kind != LACI_DOMAIN_INTEGERS) return free_domain;
  if (strcmp(node->type, "Neg") == 0) return integer_domain(1 - out->high, 1 - out->low);
  if (node->n_inputs != 2) return free_domain;
  if (find_constant_value_range(w->graph, node->inputs[1 - port], &low, &high))
    return domain_before_constant(node, port, out, low, high);
  return domain_of_each_operand(node, out);
}

/* The node passes on the elements of its operands. Returns their domain. Parts of a concatenated
 * shape are sizes. */
static laci_domain domain_before_copying_operator(const laci_node *node, const laci_domain *out) {
  bool joins = strcmp(node->type, "Concat") == 0 && out->kind != LACI_DOMAIN_INTEGERS;
  return joins ? integer_domain(1, 2) : *out;
}

/* Intersects *to with `by`. If no content is in both, *to stays unchanged. */
static void intersect_domain(laci_domain *to, const laci_domain *by) {
  if (by->kind == LACI_DOMAIN_FREE) return;
  if (to->kind != LACI_DOMAIN_INTEGERS || by->kind != LACI_DOMAIN_INTEGERS) {
    if (to->kind == LACI_DOMAIN_FREE) *to = *by;
    return;
  }
  double low = fmax(to->low, by->low), high = fmin(to->high, by->high);
  if (low < high) *to = integer_domain(low, high);
}

static laci_domain find_domain_by_readers(const domain_walk *w, int value, int depth);

static laci_domain find_domain_of_input(const domain_walk *w, const laci_node *node, int port,
                                        int depth) {
  laci_domain found = required_domain(w, node, port);
  static const char *const arithmetic[] = {"Add", "Sub", "Mul", "Div", "Neg"};
  bool passed = is_copying_elements_of_port(node, port);
  bool reckons = is_type_in_list(node, arithmetic, sizeof arithmetic / sizeof *arithmetic);
  for (int o = 0; depth < MAX_WALK && (passed || reckons) && o < node->n_outputs; o++) {
    if (node->outputs[o] < 0) continue;
    laci_domain out = find_domain_by_readers(w, node->outputs[o], depth + 1);
    if (out.kind == LACI_DOMAIN_FREE) continue;
    out = passed ? domain_before_copying_operator(node, &out)
                 : domain_before_arithmetic(w, node, port, &out);
    intersect_domain(&found, &out);
  }
  return found;
}

static laci_domain find_domain_by_readers(const domain_walk *w, int value, int depth) {
  const laci_value *v = &w->graph->values[value];
  laci_domain found = free_domain;
  for (int i = 0; i<v->n_readers && * w->visits> 0; i++) {
    const laci_node *reader = &w->graph->nodes[v->readers[i]];
    --*w->visits;
    for (int port = 0; port < reader->n_inputs; port++) {
      if (reader->inputs[port] != value) continue;
      laci_domain asks = find_domain_of_input(w, reader, port, depth);
      intersect_domain(&found, &asks);
    }
  }
  return found;
}

laci_domain laci_domain_of_value(const laci_graph *graph, int value,
                                 const int64_t *size_of_symbol) {
  int visits = MAX_VISITS;
  const domain_walk w = {.graph = graph, .sizes = size_of_symbol, .visits = &visits};
  return find_domain_by_readers(&w, value, 0);
}

/* ---- Shapes ---- */

/* Returns the number of columns that `value` must have for a product with a stored weight; 0: no
 * such product reads it. */
static int64_t columns_required_by_weight(const domain_walk *w, int value) {
  const laci_value *v = &w->graph->values[value];
  for (int i = 0; i < v->n_readers; i++) {
    const laci_node *reader = &w->graph->nodes[v->readers[i]];
    bool gemm = strcmp(reader->type, "Gemm") == 0;
    if ((!gemm && strcmp(reader->type, "MatMul") != 0) || reader->inputs[0] != value) continue;
    const laci_shape *weight = shape_of_input(w, reader, 1);
    if (!weight || weight->rank < 2) continue;
    bool transposed = gemm && laci_node_int(reader, "transB", 0);
    return size_of_input_axis(w, reader, 1, transposed ? -1 : -2);
  }
  return 0;
}

static int64_t known_size_of_axis(const domain_walk *w, const laci_shape *shape, int64_t axis,
                                  int64_t n) {
  if (shape->rank != n || axis >= n) return 0;
  int64_t size = shape->dims[axis];
  if (size < 0 && w->sizes && -size <= w->graph->n_symbols) size = w->sizes[-size];
  return size > 0 ? size : 0;
}

/* Fills buf with the shape for a Reshape. Known sizes are used. Of the sizes that are not known,
 * one gets the remaining elements (-1), those before it are copied from the operand (0), and those
 * after it are 1. */
void laci_draw_shape_content(const laci_graph *graph, const laci_domain *domain,
                             const laci_draw *draw, laci_buf *buf) {
  const domain_walk w = {.graph = graph, .sizes = draw->size_of_symbol};
  const laci_node *node = domain->reader;
  const laci_shape *out = &graph->values[node->outputs[0]].type.shape;
  const laci_shape *in = shape_of_input(&w, node, 0);
  const int64_t rank = in && in->rank > 0 ? in->rank : 1, n = buf->count;
  const bool first = draw->kind % 2 == 1; /* in every other kind of draw, the first axis gets the
                                             remaining elements */
  int64_t columns = first ? 0 : columns_required_by_weight(&w, node->outputs[0]);
  int64_t rest = first || columns > 0 ? 0 : n <= rank ? n - 1 : rank - 1;
  while (rest > 0 && known_size_of_axis(&w, out, rest, n)) rest--;
  for (int64_t e = 0; e < n; e++) {
    int64_t size = known_size_of_axis(&w, out, e, n);
    if (!size && e == n - 1 && columns > 0 && n > 1) size = columns;
    if (!size) size = e == rest ? -1 : e < rest && !laci_node_int(node, "allowzero", 0) ? 0 : 1;
    if (buf->f) buf->f[e] = (double)size;
    else buf->i[e] = size;
  }
}
