/* SPDX-License-Identifier: Apache-2.0
 * Weights that are not stored but computed from stored tensors alone: products with masks, sums of
 * branches, low-rank updates. In the table of layers they follow those with a stored weight, and
 * each has a reason why it is not pruned directly.
 *
 * Such a weight (the product) can be stored instead of the tensors that it is computed from (its
 * parts). This needs no extra memory if nothing else reads the parts. That is decided for all such
 * weights together, since two may share a mask. */
#include "analyze/analyze.h"
#include "analyze/layers_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "graph/constants.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/buf.h"

/* Does the node change no element, so that trace.c looks through it for any weight? Then the
 * computed weight may be stored before the node. */
static bool is_element_preserving(const laci_graph *graph, const laci_node *node) {
  if (node->n_inputs < 1 || node->inputs[0] < 0 || node->n_outputs != 1) return false;
  if (laci_node_is(node, "Identity") || laci_node_is(node, "Transpose")) return true;
  return laci_node_is(node, "Cast") &&
         laci_dtype_is_float(graph->values[node->inputs[0]].type.dtype) &&
         laci_dtype_is_float(graph->values[node->outputs[0]].type.dtype);
}

/* Returns the input of a node that changes no element, so that a computed weight may be stored
 * before it; -1: the node is not like that. A float that is quantized and dequantized is pruned as
 * a float (trace.c). */
static int find_input_of_element_preserving_node(const laci_graph *graph, const laci_node *node) {
  int quantizer;
  if (is_element_preserving(graph, node)) return node->inputs[0];
  if (!laci_node_is(node, "DequantizeLinear") || node->n_inputs < 1 || node->inputs[0] < 0 ||
      !laci_is_quantize_dequantize(graph, node, &quantizer))
    return -1;
  return graph->nodes[quantizer].inputs[0];
}

int laci_find_computed_value_to_store(const laci_graph *graph, int value, bool whole) {
  int at = value;
  while (!whole && graph->values[at].producer >= 0) {
    const int before =
        find_input_of_element_preserving_node(graph, &graph->nodes[graph->values[at].producer]);
    if (before < 0) return at;
    at = before;
  }
  /* only nodes that change no element follow the stored tensor, so something else prevents
   * pruning */
  return value;
}

/* ---- Nodes that are not needed once computed weights are stored ---- */

typedef struct removal_search {
  const laci_graph *graph;
  const uint8_t *constants; /* [n_values] flags of laci_graph_find_constants */
  bool *stored;             /* [n_values] the value is a computed weight that will be stored */
  bool *is_removed;         /* [n_nodes] nothing reads the node's outputs once the computed weights
                               are stored */
  int *stack;               /* [n_values] values that a walk has still to visit */
  int *seen, round;         /* [n_values] the round in which a value was last visited; the present
                               round */
} removal_search;

static bool is_read_by_kept_node(const removal_search *c, int value) {
  const laci_value *v = &c->graph->values[value];
  bool read = v->is_output || v->tied_by;
  for (int r = 0; r < v->n_readers && !read; r++) read = !c->is_removed[v->readers[r]];
  return read;
}

static void mark_removable_nodes(removal_search *c) {
  for (int n = c->graph->n_nodes - 1; n >= 0; n--) {
    const laci_node *node = &c->graph->nodes[n];
    bool read = false, replaced = false, constant = node->n_outputs > 0;
    for (int at = 0; at < node->n_outputs; at++) {
      int value = node->outputs[at];
      if (value < 0) continue;
      constant = constant && c->constants[value];
      replaced |= c->stored[value];
      read |= is_read_by_kept_node(c, value);
    }
    c->is_removed[n] = constant && (replaced || !read);
  }
}

/* Returns a node that reads the content of a stored tensor even if the products are stored; -1:
 * there is none. */
static int find_other_content_reader(const removal_search *c, int value) {
  const laci_value *v = &c->graph->values[value];
  for (int r = 0; r < v->n_readers; r++) {
    const laci_node *reader = &c->graph->nodes[v->readers[r]];
    if (!c->is_removed[v->readers[r]] && !(reader->op && reader->op->shape_only))
      return v->readers[r];
  }
  return -1;
}

/* Has the part at most one number for each channel? Such a small part may remain stored for other
 * readers. */
static bool has_at_most_one_element_per_channel(const laci_graph *graph, int part, int product) {
  const laci_shape *shape = &graph->values[product].type.shape;
  int64_t most = 1, n = laci_shape_count(&graph->values[part].type.shape);
  for (int a = 0; a < shape->rank; a++) {
    if (shape->dims[a] > most) most = shape->dims[a];
  }
  return n >= 0 && n <= most;
}

/* Returns a part of the product that something else needs, -1: none. *reader: the node that reads
 * it; -1: the part is an output, or named by the file elsewhere. */
static int find_part_used_elsewhere(removal_search *c, int product, int *reader) {
  int n = 0;
  c->stack[n++] = product;
  c->seen[product] = ++c->round;
  while (n > 0) {
    int value = c->stack[--n], producer = c->graph->values[value].producer;
    if (value != product && c->graph->values[value].tied_by) return value;
    if (c->graph->values[value].stored >= 0 &&
        !has_at_most_one_element_per_channel(c->graph, value, product)) {
      *reader = find_other_content_reader(c, value);
      if (*reader >= 0 || c->graph->values[value].is_output) return value;
    }
    for (int at = 0; producer >= 0 && at < c->graph->nodes[producer].n_inputs; at++) {
      int part = c->graph->nodes[producer].inputs[at];
      if (part < 0 || c->seen[part] == c->round) continue;
      c->seen[part] = c->round;
      c->stack[n++] = part;
    }
  }
  return -1;
}

/* ---- Reasons ---- */

static const char *format_producer_name(laci_analysis *a, int value) {
  const laci_node *node = &a->graph->nodes[a->graph->values[value].producer];
  return laci_analysis_format_text(a, "%s (%s)", node->name, node->type);
}

static const char *format_other_use_reason(laci_analysis *a, int product, int part, int reader) {
  const char *name = a->graph->values[product].name, *of = a->graph->values[part].name;
  const char *by = a->graph->values[part].tied_by;
  if (by)
    return laci_analysis_format_text(
        a, "its weight %s is computed from %s, which the file's %s names", name, of, by);
  if (reader < 0)
    return laci_analysis_format_text(
        a, "its weight %s is computed from %s, an output of the network", name, of);
  return laci_analysis_format_text(a, "its weight %s is computed from %s, which %s (%s) reads, too",
                                   name, of, a->graph->nodes[reader].name,
                                   a->graph->nodes[reader].type);
}

/* Returns the reason for a weight whose content cannot be known. */
static const char *format_unknown_content_reason(laci_analysis *a, const laci_layer *layer,
                                                 int unknown) {
  const char *name = a->graph->values[layer->weight].name;
  if (layer->packed)
    return laci_analysis_format_text(a, "its weight %s is stored in packed blocks of integers",
                                     name);
  const laci_node *node = &a->graph->nodes[unknown - 1];
  const bool foreign = node->domain && node->domain[0];
  return laci_analysis_format_text(
      a, "its weight %s is computed, and what %s (%s%s%s) makes of it is not known", name,
      node->name, foreign ? node->domain : "", foreign ? "." : "", node->type);
}

static const char *format_computed_weight_reason(laci_analysis *a, const laci_layer *layer,
                                                 uint8_t bits) {
  const int product = layer->computed;
  const char *name = a->graph->values[product].name, *by = format_producer_name(a, product);
  if (!by) return NULL;
  if (bits & LACI_REPLACEABLE)
    return laci_analysis_format_text(
        a, "its weight %s is computed by %s from tensors that may be replaced by the caller", name,
        by);
  if (bits & LACI_QUANTIZED)
    return laci_analysis_format_text(a, "its weight %s is computed by %s from quantized tensors",
                                     name, by);
  if (bits & LACI_IN_BODY)
    return laci_analysis_format_text(a, "its weight %s is computed by %s in a body", name, by);
  if (layer->channels_in == 1)
    return laci_analysis_format_text(a, "its weight %s is computed by %s, and has 1 input channel",
                                     name, by);
  return laci_analysis_format_text(a, "its weight %s is computed by %s, and not stored", name, by);
}

/* ---- All layers with computed weights ---- */

static bool init_removal_search(removal_search *c, const laci_graph *graph,
                                const uint8_t *constants) {
  size_t n = (size_t)graph->n_values + 1;
  *c = (removal_search){.graph = graph, .constants = constants};
  c->stored = laci_alloc(n, sizeof *c->stored);
  c->is_removed = laci_alloc((size_t)graph->n_nodes + 1, sizeof *c->is_removed);
  c->stack = laci_alloc(n, sizeof *c->stack);
  c->seen = laci_alloc(n, sizeof *c->seen);
  return c->stored && c->is_removed && c->stack && c->seen;
}

static void clear_removal_search(removal_search *c) {
  laci_free(c->stored);
  laci_free(c->is_removed);
  laci_free(c->stack);
  laci_free(c->seen);
}

/* May the computed weight be stored as a tensor? Not with a single input channel, where no pattern
 * applies. */
static bool may_store_computed_weight(const laci_layer *layer, const uint8_t *constants) {
  return layer->computed >= 0 && layer->channels_in > 1 &&
         constants[layer->computed] == LACI_CONSTANT;
}

/* Excludes computed weights from being stored if another node needs a tensor that they are computed
 * from. Repeats until nothing changes. */
static bool exclude_products_with_shared_parts(laci_analysis *a, removal_search *c) {
  for (bool changed = true; changed;) {
    changed = false;
    mark_removable_nodes(c);
    for (int l = 0; l < a->n_rows; l++) {
      laci_layer *layer = &a->layers[l];
      int reader = -1, part;
      if (!may_store_computed_weight(layer, c->constants) || !c->stored[layer->computed]) continue;
      part = find_part_used_elsewhere(c, layer->computed, &reader);
      if (part < 0) continue;
      c->stored[layer->computed] = false;
      changed = true;
      if (layer->stored >= 0) continue;
      layer->reason = format_other_use_reason(a, layer->computed, part, reader);
      if (!layer->reason) return false;
    }
  }
  return true;
}

lac_status laci_classify_computed_weights(laci_analysis *a, const uint8_t *constants,
                                          const int *unknown, lac_error *err) {
  removal_search c;
  bool any = false, ok = true;
  for (int l = 0; l < a->n_rows && ok; l++) {
    laci_layer *layer = &a->layers[l];
    any |= layer->computed >= 0;
    if (layer->stored >= 0) continue;
    layer->reason = layer->computed < 0
                        ? format_unknown_content_reason(a, layer, unknown[layer->weight])
                        : format_computed_weight_reason(a, layer, constants[layer->computed]);
    ok = layer->reason != NULL;
  }
  if (!ok) return laci_fail_memory(err, "the layers");
  if (!any) return LAC_OK;
  ok = init_removal_search(&c, a->graph, constants);
  for (int l = 0; l < a->n_rows && ok; l++) {
    const laci_layer *layer = &a->layers[l];
    bool stores =
        may_store_computed_weight(layer, constants) && !a->graph->values[layer->computed].is_output;
    if (stores) c.stored[layer->computed] = true;
  }
  ok = ok && exclude_products_with_shared_parts(a, &c);
  for (int l = 0; l < a->n_rows && ok; l++) {
    laci_layer *layer = &a->layers[l];
    layer->storable = may_store_computed_weight(layer, constants);
    layer->alone = layer->storable && c.stored[layer->computed];
  }
  clear_removal_search(&c);
  return ok ? LAC_OK : laci_fail_memory(err, "the layers");
}
