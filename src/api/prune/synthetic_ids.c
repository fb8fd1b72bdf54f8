/* SPDX-License-Identifier: Apache-2.0
 * Finds out whether a network takes token ids, and how many different ids there are. Ids are an
 * integer input that looks up rows of a stored table, or that is compared with 0, 1 .. n - 1
 * (one-hot). Other integer inputs of such a network are masks, segments or positions. */
#include <string.h>

#include "api/prune/synthetic_in.h"
#include "base/error.h"
#include "graph/graph.h"
#include "tensor/buf.h"

/* MOST_SEGMENTS: a table with at most this many rows is taken for one of segments. USUAL_LENGTH:
 * the length of samples if the network leaves it open. */
enum { MOST_SEGMENTS = 4, USUAL_LENGTH = 128, MOST_DEPTH = 8, UNKNOWN_COST = 64 };

static const char *const moves[] = {"Cast",    "Expand",  "Flatten",   "Identity",
                                    "Reshape", "Squeeze", "Transpose", "Unsqueeze"};

static bool is_move_or_cast_node(const laci_node *node) {
  if (node->domain[0]) return false;
  for (size_t k = 0; k < sizeof moves / sizeof *moves; k++)
    if (strcmp(node->type, moves[k]) == 0) return true;
  return false;
}

static const laci_stored *find_stored_input(const laci_graph *graph, const laci_node *node,
                                            int port) {
  if (port >= node->n_inputs || node->inputs[port] < 0) return NULL;
  const int stored = graph->values[node->inputs[port]].stored;
  return stored < 0 ? NULL : &graph->stored[stored];
}

/* Returns the number of rows of a table [rows, width] that the node looks up by its input `port`;
 * 0: it looks nothing up. */
static int64_t rows_of_lookup_table(const laci_graph *graph, const laci_node *node, int port) {
  /* com.microsoft's ids and segments come before their tables: word, position, segment */
  const bool embeds = strcmp(node->type, "EmbedLayerNormalization") == 0 && port < 2;
  const bool gathers = strcmp(node->type, "Gather") == 0 && port == 1;
  if (!embeds && !gathers) return 0;
  const laci_stored *table = find_stored_input(graph, node, gathers ? 0 : port == 0 ? 2 : 4);
  const laci_attr *axis = laci_node_attr(node, "axis");
  if (!table || table->shape.rank < 2 || (gathers && axis && axis->i != 0)) return 0;
  return table->shape.dims[0];
}

/* Returns n if the node compares its input `port` with the stored numbers 0, 1 .. n - 1, as in a
 * one-hot code; 0: it does not. */
static int64_t count_one_hot_values(const laci_graph *graph, const laci_node *node, int port) {
  if (strcmp(node->type, "Equal") != 0) return 0;
  const laci_stored *with = find_stored_input(graph, node, 1 - port);
  if (!with || (with->dtype != LAC_DTYPE_I32 && with->dtype != LAC_DTYPE_I64)) return 0;
  const int64_t n = laci_shape_count(&with->shape);
  const size_t size = lac_dtype_size(with->dtype);
  for (int64_t k = 0; k < n; k++) {
    int64_t wide = 0;
    int32_t narrow = 0;
    memcpy(size == sizeof wide ? (void *)&wide : (void *)&narrow, with->bytes + (size_t)k * size,
           size);
    if (wide + narrow != k) return 0;
  }
  return n;
}

/* Returns how many ids the readers of a value know: the smallest table that one of them looks up,
 * or the smallest one-hot code; 0: none looks up the value. */
static int64_t count_token_ids(const laci_graph *graph, int value, int depth) {
  const laci_value *v = &graph->values[value];
  int64_t least = 0;
  for (int r = 0; r < v->n_readers; r++) {
    const laci_node *node = &graph->nodes[v->readers[r]];
    for (int port = 0; port < node->n_inputs; port++) {
      if (node->inputs[port] != value) continue;
      int64_t n = rows_of_lookup_table(graph, node, port);
      if (n == 0) n = count_one_hot_values(graph, node, port);
      if (n == 0 && port == 0 && is_move_or_cast_node(node) && depth < MOST_DEPTH &&
          node->outputs[0] >= 0)
        n = count_token_ids(graph, node->outputs[0], depth + 1);
      if (n > 0 && (least == 0 || n < least)) least = n;
    }
  }
  return least;
}

static lac_status fail_input(const laci_value *input, lac_error *err) {
  char text[256];
  return laci_hint(err, LAC_HINT_CALIBRATION,
                   laci_fail(err, LAC_BAD_SHAPE,
                             "synthetic token ids: input '%s' is %s %s, wanted integers i32 or i64 "
                             "[N, length]",
                             input->name, lac_dtype_name(input->type.dtype),
                             laci_shape_text(&input->type.shape, text, sizeof text)));
}

static lac_status describe_input(const laci_graph *graph, int value, laci_drawn_input *to,
                                 lac_error *err) {
  const laci_value *v = &graph->values[value];
  const int64_t n = count_token_ids(graph, value, 0);
  const lac_dtype dtype = v->type.dtype;
  if ((dtype != LAC_DTYPE_I32 && dtype != LAC_DTYPE_I64) || v->type.shape.rank < 1)
    return fail_input(v, err);
  *to = (laci_drawn_input){.kind = LACI_DRAWN_SAME, .value = n == 0, .shape = v->type.shape};
  for (int axis = 0; axis < to->shape.rank; axis++) {
    int64_t *size = &to->shape.dims[axis];
    if (axis == 0) *size = 1;
    else if (*size < 0) *size = USUAL_LENGTH;
  }
  if (n <= MOST_SEGMENTS)
    return LAC_OK; /* it stays as it is: ones for a mask, zeros for segments */
  const bool positions = strstr(v->name, "position") != NULL;
  to->kind = positions ? LACI_DRAWN_POSITIONS : LACI_DRAWN_IDS;
  to->below = n;
  return LAC_OK;
}

bool laci_synthetic_network_reads_ids(const laci_graph *graph) {
  for (int k = 0; k < graph->n_inputs; k++) {
    const laci_value *v = &graph->values[graph->inputs[k]];
    if (laci_dtype_is_integer(v->type.dtype) &&
        count_token_ids(graph, graph->inputs[k], 0) > MOST_SEGMENTS)
      return true;
  }
  return false;
}

lac_status laci_synthetic_describe_id_inputs(const laci_graph *graph, laci_drawn_input *inputs,
                                             lac_error *err) {
  for (int k = 0; k < graph->n_inputs; k++) {
    const lac_status st = describe_input(graph, graph->inputs[k], &inputs[k], err);
    if (st) return st;
  }
  return LAC_OK;
}

lac_status laci_synthetic_check_network(const laci_graph *graph, int crop, lac_error *err) {
  laci_synthetic_input image;
  if (!laci_synthetic_network_reads_ids(graph))
    return laci_synthetic_find_layout(graph, crop, &image, err);
  lac_status st = LAC_OK;
  for (int k = 0; k < graph->n_inputs && !st; k++) {
    laci_drawn_input ignored;
    st = describe_input(graph, graph->inputs[k], &ignored, err);
  }
  return st;
}

int64_t laci_synthetic_enough_ids(const laci_graph *graph) {
  return laci_synthetic_multiplications(graph) > 0 ? laci_synthetic_choose_image_count(graph)
                                                   : UNKNOWN_COST;
}
