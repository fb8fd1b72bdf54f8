/* SPDX-License-Identifier: Apache-2.0
 * Changes the batch size of a network for lac_bench.
 *
 * Exporters often fix the batch at 1 and write that into the constants of Reshape. During a bench
 * the inputs have the wanted batch size. A constant that begins with the old batch size gets a 0 in
 * its place, which means "the input's size", if the data of the Reshape begin with the old batch
 * size, too. Other dependences on the batch size (Expand to a fixed batch, a batch folded into
 * another axis) make shape inference fail, and its error names the node. */
#include <string.h>

#include "api/bench/bench_in.h"
#include "base/error.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "tensor/shape.h"

/* ---- Shapes of the inputs ---- */

static const lac_engine_shape *find_given_shape(const lac_bench_options *options,
                                                const char *name) {
  for (int at = 0; at < options->n_shapes; at++) {
    if (strcmp(options->shapes[at].name, name) == 0) return &options->shapes[at];
  }
  return NULL;
}

static lac_status check_shapes(const laci_graph *graph, const lac_bench_options *options,
                               lac_error *err) {
  for (int at = 0; at < options->n_shapes; at++) {
    const lac_engine_shape *shape = &options->shapes[at];
    bool found = false;
    if (!shape->name || shape->rank < 0 || shape->rank > LACI_MAX_RANK) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "shape %d: wanted a name and a rank of 0 to %d", at,
                       LACI_MAX_RANK);
    }
    for (int input = 0; input < graph->n_inputs && !found; input++) {
      found = strcmp(graph->values[graph->inputs[input]].name, shape->name) == 0;
    }
    if (!found) return laci_graph_fail_unknown_input(graph, shape->name, err);
  }
  return LAC_OK;
}

/* Combines the sizes of the file and of the options; unknown sizes stay negative. */
static lac_status combine_input_shape(const laci_value *value, const lac_bench_options *options,
                                      laci_shape *shape, lac_error *err) {
  const lac_engine_shape *given = find_given_shape(options, value->name);
  char have[256], want[256];
  *shape = value->type.shape;
  if (!given) return LAC_OK;
  laci_shape wanted = laci_shape_of(given->rank, given->shape);
  bool fits = shape->rank < 0 || shape->rank == wanted.rank;
  for (int axis = 0; fits && shape->rank >= 0 && axis < wanted.rank; axis++) {
    bool fixed = shape->dims[axis] >= 0 && wanted.dims[axis] >= 0;
    fits = !fixed || shape->dims[axis] == wanted.dims[axis];
    if (wanted.dims[axis] < 0) wanted.dims[axis] = shape->dims[axis];
  }
  if (!fits) {
    return laci_fail(err, LAC_BAD_SHAPE, "input '%s' has shape %s, which cannot be %s", value->name,
                     laci_shape_text(shape, have, sizeof have),
                     laci_shape_text(&wanted, want, sizeof want));
  }
  *shape = wanted;
  return LAC_OK;
}

static lac_status check_all_sizes_known(const laci_value *value, const laci_shape *shape,
                                        lac_error *err) {
  char text[256];
  if (laci_shape_is_known(shape)) return LAC_OK;
  return laci_hint(
      err, LAC_HINT_INPUT_SHAPE,
      laci_fail(err, LAC_BAD_SHAPE, "input '%s' has shape %s, and its open sizes must be given",
                value->name, laci_shape_text(shape, text, sizeof text)));
}

/* Uses a size that is known for one symbol wherever the file uses the same symbol. */
static void share_symbol_sizes(laci_rebatch *batch, int64_t *bound) {
  for (int pass = 0; pass < 2; pass++) { /* pass 0 reads the known sizes, pass 1 writes them */
    for (int at = 0; at < batch->n_shapes; at++) {
      const laci_shape *open = &batch->graph->values[batch->graph->inputs[at]].type.shape;
      laci_shape *shape = &batch->shapes[at].shape;
      for (int axis = 0; axis < open->rank; axis++) {
        int64_t *slot = open->dims[axis] < 0 ? &bound[-open->dims[axis]] : NULL;
        if (!slot) continue;
        if (pass == 0 && *slot < 0 && shape->dims[axis] >= 0) *slot = shape->dims[axis];
        if (pass == 1 && *slot >= 0 && shape->dims[axis] < 0) shape->dims[axis] = *slot;
      }
    }
  }
}

/* Chooses all inputs' sizes: those given, the batch size as the first size, and equal sizes for
 * equal symbols. A first size that is still open becomes 1, and so do the others of its symbol. */
static lac_status choose_input_sizes(laci_rebatch *batch, const lac_bench_options *options,
                                     lac_error *err) {
  const laci_graph *graph = batch->graph;
  int64_t *bound = laci_alloc((size_t)graph->n_symbols + 1, sizeof *bound);
  if (!bound) return laci_fail_memory(err, "the inputs' shapes");
  for (int at = 0; at <= graph->n_symbols; at++) bound[at] = -1;
  lac_status st = LAC_OK;
  for (int at = 0; at < batch->n_shapes && !st; at++) {
    const laci_value *value = &graph->values[graph->inputs[at]];
    laci_shape *shape = &batch->shapes[at].shape;
    batch->shapes[at].name = value->name;
    st = combine_input_shape(value, options, shape, err);
    if (!st && shape->rank > 0 && options->batch) shape->dims[0] = options->batch;
  }
  if (!st) share_symbol_sizes(batch, bound);
  for (int at = 0; at < batch->n_shapes && !st; at++) {
    laci_shape *shape = &batch->shapes[at].shape;
    if (shape->rank > 0 && shape->dims[0] < 0) shape->dims[0] = 1;
  }
  if (!st) share_symbol_sizes(batch, bound);
  for (int at = 0; at < batch->n_shapes && !st; at++) {
    st = check_all_sizes_known(&graph->values[graph->inputs[at]], &batch->shapes[at].shape, err);
  }
  laci_free(bound);
  return st;
}

/* ---- Changing the file's batch size ---- */

/* Returns the batch size that all inputs have in the file; 0 if they have none in common. */
static int64_t find_file_batch_size(const laci_graph *graph) {
  int64_t batch = 0;
  for (int at = 0; at < graph->n_inputs; at++) {
    const laci_shape *shape = &graph->values[graph->inputs[at]].type.shape;
    if (shape->rank < 1 || shape->dims[0] < 1) return 0;
    if (batch && shape->dims[0] != batch) return 0;
    batch = shape->dims[0];
  }
  return batch;
}

static bool has_first_size(const laci_graph *graph, int value, int64_t size) {
  const laci_shape *shape = value >= 0 ? &graph->values[value].type.shape : NULL;
  return shape && shape->rank > 0 && shape->dims[0] == size;
}

/* Is the stored tensor used only as the shape of Reshape nodes whose data's first size is the batch
 * size? */
static bool is_batch_reshape_target(const laci_graph *graph, const laci_stored *stored,
                                    int64_t batch) {
  int64_t first;
  if (stored->value < 0 || stored->dtype != LAC_DTYPE_I64 || stored->shape.rank != 1) return false;
  if (stored->shape.dims[0] < 1 || stored->size_bytes < sizeof first) return false;
  memcpy(&first, stored->bytes, sizeof first);
  const laci_value *value = &graph->values[stored->value];
  if (first != batch || value->is_output || value->n_readers < 1) return false;
  for (int at = 0; at < value->n_readers; at++) {
    const laci_node *node = &graph->nodes[value->readers[at]];
    bool is_shape = strcmp(node->type, "Reshape") == 0 && node->op && node->n_inputs == 2 &&
                    node->inputs[1] == stored->value && !laci_node_int(node, "allowzero", 0);
    if (!is_shape || !has_first_size(graph, node->inputs[0], batch)) return false;
    if (graph->values[node->inputs[0]].stored >= 0) return false;
  }
  return true;
}

static lac_status replace_batch_in_constants(laci_rebatch *batch, lac_error *err) {
  laci_graph *graph = batch->graph;
  for (int at = 0; at < graph->n_stored; at++) {
    laci_stored *stored = &graph->stored[at];
    if (!is_batch_reshape_target(graph, stored, batch->from)) continue;
    uint8_t *bytes = laci_arena_alloc(&batch->arena, stored->size_bytes, 1);
    if (!bytes) return laci_fail_memory(err, "another batch");
    memcpy(bytes, stored->bytes, stored->size_bytes);
    memset(bytes, 0, sizeof(int64_t));
    batch->bytes[at] = stored->bytes;
    stored->bytes = bytes;
  }
  return LAC_OK;
}

static void set_batch(laci_graph *graph, int64_t batch) {
  for (int at = 0; at < graph->n_inputs; at++) {
    graph->values[graph->inputs[at]].type.shape.dims[0] = batch;
  }
}

/* Returns an input whose first size is fixed to another number than wanted; NULL: none. */
static const laci_value *find_input_of_other_batch(const laci_graph *graph, int wanted) {
  for (int at = 0; wanted > 0 && at < graph->n_inputs; at++) {
    const laci_value *value = &graph->values[graph->inputs[at]];
    const laci_shape *shape = &value->type.shape;
    if (shape->rank > 0 && shape->dims[0] >= 0 && shape->dims[0] != wanted) return value;
  }
  return NULL;
}

static lac_status change_batch(laci_rebatch *batch, int to, lac_error *err) {
  const laci_value *fixed = find_input_of_other_batch(batch->graph, to);
  char text[256];
  if (!fixed) return LAC_OK;
  int64_t from = find_file_batch_size(batch->graph);
  if (from < 1) {
    return laci_fail(err, LAC_BAD_SHAPE,
                     "input '%s' has shape %s, and the inputs have no batch in common that could "
                     "become %d",
                     fixed->name, laci_shape_text(&fixed->type.shape, text, sizeof text), to);
  }
  batch->bytes = laci_alloc((size_t)batch->graph->n_stored, sizeof *batch->bytes);
  if (!batch->bytes) return laci_fail_memory(err, "another batch");
  batch->from = from;
  batch->to = to;
  lac_status st = replace_batch_in_constants(batch, err);
  if (!st) set_batch(batch->graph, to);
  return st;
}

/* ---- Beginning, checking and undoing the change ---- */

bool laci_rebatch_is_needed(const laci_graph *graph, const lac_bench_options *options) {
  return find_input_of_other_batch(graph, options->batch) != NULL;
}

lac_status laci_rebatch_begin(laci_graph *graph, const lac_bench_options *options,
                              laci_rebatch *batch, lac_error *err) {
  *batch = (laci_rebatch){.graph = graph, .n_shapes = graph->n_inputs};
  batch->shapes = laci_alloc((size_t)graph->n_inputs, sizeof *batch->shapes);
  if (!batch->shapes) return laci_fail_memory(err, "the inputs' shapes");
  lac_status st = check_shapes(graph, options, err);
  if (!st) st = choose_input_sizes(batch, options, err);
  return st ? st : change_batch(batch, options->batch, err);
}

lac_status laci_rebatch_check_outputs(const laci_rebatch *batch, const laci_engine *engine,
                                      lac_error *err) {
  const laci_engine_port *ports;
  char text[256];
  int n = batch->from ? laci_engine_outputs(engine, &ports) : 0;
  for (int at = 0; at < n; at++) {
    bool had = has_first_size(batch->graph, batch->graph->outputs[at], batch->from);
    const laci_shape *shape = &ports[at].type.shape;
    if (!had || (shape->rank > 0 && shape->dims[0] == batch->to)) continue;
    return laci_fail(err, LAC_BAD_SHAPE, "output '%s' becomes %s in a batch of %lld",
                     ports[at].name, laci_shape_text(shape, text, sizeof text),
                     (long long)batch->to);
  }
  return LAC_OK;
}

void laci_rebatch_undo(laci_rebatch *batch) {
  if (batch->from) set_batch(batch->graph, batch->from);
  for (int at = 0; batch->bytes && at < batch->graph->n_stored; at++) {
    if (batch->bytes[at]) batch->graph->stored[at].bytes = batch->bytes[at];
  }
  laci_free(batch->bytes);
  laci_free(batch->shapes);
  laci_arena_clear(&batch->arena);
  *batch = (laci_rebatch){0};
}
