/* SPDX-License-Identifier: Apache-2.0
 * An inference node by node: for networks whose sizes depend on data, and for elements of type
 * f64. */
#include "api/model/model_in.h"
#include "api/run/infer_in.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "engine/stepper.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "graph/sizes.h"
#include "tensor/buf.h"

/* Adds to the budget the memory of the values for these inputs, as far as sizes are known before
 * the run. */
static lac_status add_values_to_budget(const laci_inference *run, laci_budget *budget,
                                       lac_error *err) {
  int n = run->graph->n_inputs;
  laci_type *types = NULL;
  laci_input_shape *shapes = laci_alloc((size_t)n, sizeof *shapes);
  if (!shapes) return laci_fail_memory(err, "the shapes of the inputs");
  for (int at = 0; at < n; at++) {
    shapes[at] = (laci_input_shape){laci_inference_input(run, at)->name, run->inputs[at]->shape};
  }
  lac_status st = laci_graph_infer_types(run->graph, shapes, n, &types, err);
  if (!st) st = laci_stepper_plan_memory(run->walker, run->graph, types, NULL, budget, err);
  laci_free(types);
  laci_free(shapes);
  return st ? st : laci_budget_check(budget, "the run", err);
}

lac_status laci_inference_run_steps(laci_inference *run, const lac_model *model, lac_error *err) {
  const laci_graph *graph = run->graph;
  laci_pool *pool = NULL;
  run->result->pub.engine = laci_arena_text(&run->result->arena, run->walker);
  run->result->pub.dtype = LAC_DTYPE_F64;
  run->result->pub.n_nodes = graph->n_nodes;
  if (!run->result->pub.engine) return laci_fail_memory(err, "the result");
  laci_budget budget = laci_budget_with_limit(run->budget.limit), planned;
  laci_model_add_stored_to_budget(model, &budget);
  planned = budget;
  lac_status st = laci_budget_check(&budget, "the model", err);
  if (!st) st = laci_model_materialise(model, err); /* shapes depend on small stored tensors */
  if (!st) st = add_values_to_budget(run, &planned, err);
  if (!st) st = laci_pool_create(run->options->run.threads, &pool, err);
  const laci_stepper_options options = {.engine = run->walker, .pool = pool, .budget = &budget};
  if (!st) st = laci_stepper_create(graph, &options, &run->walk, err);
  for (int at = 0; !st && at < graph->n_inputs; at++) {
    laci_stepper_set_value(run->walk, graph->inputs[at], run->inputs[at]);
    run->inputs[at] = NULL; /* the stepper owns the value now */
  }
  double begin = laci_clock_seconds();
  for (int node = 0; !st && node < graph->n_nodes; node++) {
    if (laci_interrupted()) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
    else st = laci_stepper_step(run->walk, node, err);
  }
  run->result->pub.seconds = laci_clock_seconds() - begin;
  laci_pool_destroy(pool);
  return st;
}
