/* SPDX-License-Identifier: Apache-2.0
 * Finds out what an input of a network is by the first nodes that use it: token ids look up rows of
 * a stored table or are compared with 0, 1 .. n - 1 (one-hot), sounds enter a convolution or a
 * Fourier transform of one channel, numbers enter a product with a stored matrix. */
#include <math.h>
#include <string.h>

#include "api/prune/synthetic_flow_in.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/buf.h"

enum { MOST_DEPTH = 8 };

static bool is_one_of(const laci_node *node, const char *const *types, size_t n) {
  for (size_t k = 0; k < n; k++)
    if (laci_node_is(node, types[k])) return true;
  return false;
}

/* A use of a value: the node that reads it by this input port. */
typedef struct value_use {
  const laci_graph *graph;
  const laci_node *node;
  int port;
} value_use;

/* What is looked for. count: returns a number above 0 where the use tells what the value is.
 * passes: does the node's first output hold the same kind of content, so that its readers are
 * looked at, too? */
typedef struct search {
  int64_t (*count)(const value_use *use);
  bool (*passes)(const value_use *use);
} search;

/* Returns the least number above 0 that search->count gives for a use of the value, or of one that
 * is computed from it by nodes that pass; 0: none. */
static int64_t find_least_count(const laci_graph *graph, int value, const search *what, int depth) {
  const laci_value *v = &graph->values[value];
  int64_t least = 0;
  for (int r = 0; r < v->n_readers; r++) {
    const laci_node *node = &graph->nodes[v->readers[r]];
    for (int port = 0; port < node->n_inputs; port++) {
      if (node->inputs[port] != value) continue;
      const value_use use = {graph, node, port};
      int64_t n = what->count(&use);
      if (n == 0 && depth < MOST_DEPTH && what->passes(&use) && node->outputs[0] >= 0)
        n = find_least_count(graph, node->outputs[0], what, depth + 1);
      if (n > 0 && (least == 0 || n < least)) least = n;
    }
  }
  return least;
}

static bool moves_elements(const value_use *use) {
  static const char *const moves[] = {"Cast",    "Expand",  "Flatten",   "Identity",
                                      "Reshape", "Squeeze", "Transpose", "Unsqueeze"};
  return use->port == 0 && is_one_of(use->node, moves, sizeof moves / sizeof *moves);
}

static bool scales_elements(const value_use *use) {
  static const char *const steps[] = {"Add", "Div", "Mul", "Sub"};
  const int other = 1 - use->port;
  return is_one_of(use->node, steps, sizeof steps / sizeof *steps) &&
         laci_node_find_stored(use->graph, use->node, other) != NULL;
}

/* ---- Token ids ---- */

/* Returns the number of rows of a table [rows, width] that the node looks up by this input; 0: it
 * looks nothing up. */
static int64_t rows_of_lookup_table(const value_use *use) {
  /* EmbedLayerNormalization reads ids, segments, and then tables of words, positions, segments */
  enum { OF_WORDS = 2, OF_SEGMENTS = 4 };
  const bool embeds = strcmp(use->node->type, "EmbedLayerNormalization") == 0 && use->port < 2;
  const bool gathers = strcmp(use->node->type, "Gather") == 0 && use->port == 1;
  if (!embeds && !gathers) return 0;
  const int port = gathers ? 0 : use->port == 0 ? OF_WORDS : OF_SEGMENTS;
  const laci_stored *table = laci_node_find_stored(use->graph, use->node, port);
  const laci_attr *axis = laci_node_attr(use->node, "axis");
  if (!table || table->shape.rank < 2 || (gathers && axis && axis->i != 0)) return 0;
  return table->shape.dims[0];
}

/* Returns the stored integers that the node compares this input with; NULL: it does not. */
static const laci_stored *find_compared_integers(const value_use *use) {
  if (strcmp(use->node->type, "Equal") != 0) return NULL;
  const laci_stored *with = laci_node_find_stored(use->graph, use->node, 1 - use->port);
  return with && laci_dtype_is_integer(with->dtype) && with->bytes ? with : NULL;
}

/* Returns n if the node compares this input with the stored numbers 0, 1 .. n - 1, as in a one-hot
 * code; 0: it does not. */
static int64_t count_one_hot_values(const value_use *use) {
  const laci_stored *with = find_compared_integers(use);
  const int64_t n = with ? laci_shape_count(&with->shape) : 0;
  for (int64_t k = 0; k < n; k++) {
    int64_t value;
    laci_read_i64(with->dtype, with->bytes, k, 1, &value);
    if (value != k) return 0;
  }
  return n;
}

static int64_t count_rows_or_values(const value_use *use) {
  const int64_t n = rows_of_lookup_table(use);
  return n > 0 ? n : count_one_hot_values(use);
}

int64_t laci_synthetic_count_token_ids(const laci_graph *graph, int value) {
  static const search ids = {count_rows_or_values, moves_elements};
  return find_least_count(graph, value, &ids, 0);
}

static int64_t read_compared_number(const value_use *use) {
  const laci_stored *with = find_compared_integers(use);
  int64_t value = 0;
  if (with && laci_shape_count(&with->shape) == 1)
    laci_read_i64(with->dtype, with->bytes, 0, 1, &value);
  return value > 0 ? value : 0;
}

static bool passes_number(const value_use *use) {
  return moves_elements(use) || (use->port == 0 && laci_node_is(use->node, "Gather"));
}

int64_t laci_synthetic_find_compared_number(const laci_graph *graph, int value) {
  static const search number = {read_compared_number, passes_number};
  return find_least_count(graph, value, &number, 0);
}

/* ---- Sounds ---- */

/* Is this a convolution of one input channel along one axis, or a Fourier transform? */
static int64_t is_filter_of_one_channel(const value_use *use) {
  static const char *const transforms[] = {"DFT", "STFT"};
  if (use->port != 0) return 0;
  if (is_one_of(use->node, transforms, sizeof transforms / sizeof *transforms)) return 1;
  const laci_stored *weight = laci_node_find_stored(use->graph, use->node, 1);
  if (!laci_node_is(use->node, "Conv") || !weight || weight->shape.rank < 3 ||
      weight->shape.dims[1] != 1)
    return 0;
  int n_wide = 0;
  for (int axis = 2; axis < weight->shape.rank; axis++) n_wide += weight->shape.dims[axis] > 1;
  return n_wide == 1;
}

static bool passes_sound(const value_use *use) {
  static const char *const cuts[] = {"Concat", "Pad", "Slice"};
  return moves_elements(use) || scales_elements(use) ||
         (is_one_of(use->node, cuts, sizeof cuts / sizeof *cuts) &&
          (use->port == 0 || laci_node_is(use->node, "Concat")));
}

bool laci_synthetic_is_sound(const laci_graph *graph, int value) {
  static const search filter = {is_filter_of_one_channel, passes_sound};
  const laci_shape *shape = &graph->values[value].type.shape;
  const bool one_channel =
      shape->rank == 2 || (shape->rank == 3 && (shape->dims[1] == 1 || shape->dims[2] == 1));
  return one_channel && laci_dtype_is_float(graph->values[value].type.dtype) &&
         find_least_count(graph, value, &filter, 0) > 0;
}

/* ---- Numbers ---- */

static int64_t is_product(const value_use *use) {
  static const char *const products[] = {"Gemm", "MatMul"};
  return use->port == 0 && is_one_of(use->node, products, sizeof products / sizeof *products) &&
         laci_node_find_stored(use->graph, use->node, 1) != NULL;
}

static bool is_stored_norm(const value_use *use) {
  return use->port == 0 && laci_node_is(use->node, "BatchNormalization");
}

static bool passes_numbers(const value_use *use) {
  return moves_elements(use) || scales_elements(use) || is_stored_norm(use);
}

bool laci_synthetic_is_row_of_numbers(const laci_graph *graph, int value) {
  static const search product = {is_product, passes_numbers};
  const laci_shape *shape = &graph->values[value].type.shape;
  return shape->rank == 2 && shape->dims[1] > 0 &&
         laci_dtype_is_float(graph->values[value].type.dtype) &&
         find_least_count(graph, value, &product, 0) > 0;
}

/* Reads a stored tensor of `n` floats, or of one for all, into to[n]. */
static bool read_row(const laci_stored *stored, int64_t n, float *to) {
  if (!stored || !stored->bytes || !laci_dtype_is_float(stored->dtype)) return false;
  const int64_t count = laci_shape_count(&stored->shape);
  if (count != n && count != 1) return false;
  laci_read_f32(stored->dtype, stored->bytes, 0, count, to);
  for (int64_t k = count; k < n; k++) to[k] = to[0];
  for (int64_t k = 0; k < n; k++)
    if (!isfinite(to[k])) return false;
  return true;
}

/* Reads mean and variance of a batch normalization, and makes the variance a deviation. */
static bool read_norm(const value_use *use, int64_t n, float *mean, float *deviation) {
  if (!read_row(laci_node_find_stored(use->graph, use->node, 3), n, mean) ||
      !read_row(laci_node_find_stored(use->graph, use->node, 4), n, deviation))
    return false;
  for (int64_t k = 0; k < n; k++) deviation[k] = sqrtf(fmaxf(deviation[k], 0));
  return true;
}

/* Finds the only reader of a value, where the value is its first input. */
static bool find_only_use(const laci_graph *graph, int value, value_use *found) {
  const laci_value *v = &graph->values[value];
  if (v->n_readers != 1) return false;
  *found = (value_use){graph, &graph->nodes[v->readers[0]], 0};
  return found->node->n_inputs > 0 && found->node->inputs[0] == value &&
         found->node->n_outputs > 0 && found->node->outputs[0] >= 0;
}

bool laci_synthetic_find_row_scale(const laci_graph *graph, int value, float *mean,
                                   float *deviation) {
  const int64_t n = graph->values[value].type.shape.dims[1];
  value_use use;
  if (!find_only_use(graph, value, &use)) return false;
  if (is_stored_norm(&use)) return read_norm(&use, n, mean, deviation);
  if (!laci_node_is(use.node, "Sub") ||
      !read_row(laci_node_find_stored(graph, use.node, 1), n, mean) ||
      !find_only_use(graph, use.node->outputs[0], &use))
    return false;
  const bool divides = laci_node_is(use.node, "Div");
  if ((!divides && !laci_node_is(use.node, "Mul")) ||
      !read_row(laci_node_find_stored(graph, use.node, 1), n, deviation))
    return false;
  for (int64_t k = 0; k < n; k++) {
    if (!divides) deviation[k] = 1 / deviation[k];
    deviation[k] = fabsf(deviation[k]);
    if (!isfinite(deviation[k])) return false;
  }
  return true;
}
