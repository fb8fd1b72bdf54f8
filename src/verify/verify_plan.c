/* SPDX-License-Identifier: Apache-2.0
 * Computes the maximum number of bytes that the verification will hold, from sizes alone, before it
 * runs. These are the live values of two runs in double and, if the fast engine computes products,
 * their operands. */
#include "base/budget.h"
#include "base/memory.h"
#include "base/error.h"
#include "engine/stepper.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "graph/sizes.h"
#include "verify/verify.h"
#include "verify/verify_in.h"

lac_status laci_verify_infer_types(const laci_graph *graph, const int64_t *sizes,
                                   laci_type **types) {
  size_t n = (size_t)graph->n_inputs;
  laci_input_shape *inputs = laci_alloc(n, sizeof *inputs);
  lac_status st = inputs ? LAC_OK : LAC_NO_MEMORY;
  *types = NULL;
  for (size_t at = 0; at < n && !st; at++) {
    const laci_value *value = &graph->values[graph->inputs[at]];
    inputs[at].name = value->name;
    if (!laci_shape_replace_symbols(graph, &value->type.shape, sizes, &inputs[at].shape))
      st = LAC_UNSUPPORTED;
  }
  if (!st) st = laci_graph_infer_types(graph, inputs, (int)n, types, NULL);
  laci_free(inputs);
  return st;
}

/* Finds the types of all values for the first sizes that the network accepts, in the order in which
 * the verification tries them. *types is NULL if it accepts none, which the verification will
 * report. */
static lac_status find_accepted_types(const laci_graph *graph, int64_t *symbol_sizes,
                                      laci_type **types, lac_error *err) {
  lac_status st = LAC_BAD_SHAPE;
  *types = NULL;
  for (int attempt = 0;
       st == LAC_BAD_SHAPE && laci_choose_symbol_sizes(graph, attempt, symbol_sizes); attempt++) {
    st = laci_verify_infer_types(graph, symbol_sizes, types);
  }
  if (st == LAC_NO_MEMORY) return laci_fail_memory(err, "the plan of the verification");
  return LAC_OK;
}

lac_status laci_verify_find_input_shapes(const laci_graph *graph, laci_shape *shapes,
                                         lac_error *err) {
  laci_type *types = NULL;
  int64_t *sizes = laci_alloc((size_t)graph->n_symbols + 1, sizeof *sizes);
  lac_status st = sizes ? find_accepted_types(graph, sizes, &types, err)
                        : laci_fail_memory(err, "shapes of inputs");
  if (!st && !types) st = laci_fail(err, LAC_UNSUPPORTED, "no sizes that the network accepts");
  for (int i = 0; i < graph->n_inputs && !st; i++) shapes[i] = types[graph->inputs[i]].shape;
  laci_free(types);
  laci_free(sizes);
  return st;
}

/* Returns the number of bytes for the operands of the largest product as float32: in the
 * verification's buffers, and again in the layouts of the single-node network that computes it. */
static uint64_t find_largest_product_bytes(const laci_graph *graph, const laci_type *types,
                                           const laci_products *products) {
  uint64_t most = 0;
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    if (!laci_products_has_node(products, n)) continue;
    const laci_type *const operands[] = {&types[node->inputs[0]], &types[node->inputs[1]],
                                         &types[node->outputs[0]]};
    uint64_t bytes = 0;
    for (int at = 0; at < 3; at++) {
      int64_t count = laci_shape_count(&operands[at]->shape);
      int stored = graph->values[node->inputs[1]].stored;
      bool slabs = at == 1 && stored >= 0 && laci_products_is_streamed(products, stored);
      if (slabs && count > LACI_SLAB) count = LACI_SLAB;
      bytes += laci_count_bytes_saturated(count, 2 * sizeof(float));
    }
    if (bytes > most) most = bytes;
  }
  return most;
}

static lac_status add_memory_of_runs(const laci_graph *graph, const laci_verify_options *options,
                                     const laci_type *types, const int64_t *sizes,
                                     laci_budget *budget, lac_error *err) {
  laci_products *products = NULL;
  bool *skipped = laci_alloc((size_t)graph->n_stored, sizeof *skipped);
  lac_status st = skipped ? LAC_OK : laci_fail_memory(err, "the plan of the verification");
  laci_products_options how = {
      .graph = graph, .size_of_symbol = sizes, .all = options->engine == LACI_VERIFY_CPU};
  bool fast = laci_verify_uses_fast_engine(graph, options->engine, sizes);
  if (!st && fast) st = laci_products_create(graph, &how, &products, err);
  for (int s = 0; products && s < graph->n_stored; s++) {
    skipped[s] = laci_products_is_streamed(products, s);
  }
  laci_budget one = {.limit = budget->limit};
  if (!st) st = laci_stepper_plan_memory(NULL, graph, types, skipped, &one, err);
  if (!st) {
    laci_budget_add(budget, one.largest, "%s", one.name);
    laci_budget_add_unnamed(budget, one.needed - one.largest);
    laci_budget_add_unnamed(budget, one.needed); /* for the other run */
    if (products)
      laci_budget_add_unnamed(budget, find_largest_product_bytes(graph, types, products));
  }
  laci_products_destroy(products);
  laci_free(skipped);
  return st;
}

lac_status laci_verify_plan_memory(const laci_graph *graph, const laci_verify_options *options,
                                   laci_budget *budget, lac_error *err) {
  laci_type *types = NULL;
  int64_t *sizes = laci_alloc((size_t)graph->n_symbols + 1, sizeof *sizes);
  lac_status st = sizes ? find_accepted_types(graph, sizes, &types, err)
                        : laci_fail_memory(err, "the plan of the verification");
  if (!st && types) st = add_memory_of_runs(graph, options, types, sizes, budget, err);
  laci_free(types);
  laci_free(sizes);
  return st ? st : laci_budget_check(budget, "the verification of the reordering", err);
}
