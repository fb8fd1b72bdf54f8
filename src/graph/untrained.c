/* SPDX-License-Identifier: Apache-2.0
 * Compares a model with its training graph to find weights that are not trained. Values have the
 * same names in both. */
#include "graph/untrained.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/op.h"
#include "graph/training_in.h"
#include "tensor/buf.h"

static void add_untrained_tensor(laci_untrained *left, const char *name) {
  if (left->n++ == 0) left->first = name;
}

static bool has_value_of_name(const laci_graph *graph, const char *name) {
  return laci_graph_find_value(graph, name) >= 0;
}

static bool is_float_weight(const laci_stored *stored) {
  return laci_dtype_is_float(stored->dtype) && stored->shape.rank >= 0 &&
         laci_shape_count(&stored->shape) > 1;
}

lac_status laci_untrained_find_before_output(const laci_graph *model,
                                             const laci_training_graph *made, int at,
                                             laci_untrained *left, lac_error *err) {
  bool *read = laci_alloc((size_t)model->n_values, sizeof *read);
  *left = (laci_untrained){0};
  if (!read) return laci_fail_memory(err, "the training graph");
  read[model->outputs[at]] = true;
  for (int n = model->n_nodes - 1; n >= 0; n--) {
    const laci_node *node = &model->nodes[n];
    bool needed = false;
    for (int k = 0; k < node->n_outputs; k++)
      needed |= node->outputs[k] >= 0 && read[node->outputs[k]];
    if (!needed) continue;
    for (int k = 0; k < node->n_inputs; k++)
      if (node->inputs[k] >= 0) read[node->inputs[k]] = true;
    for (int k = 0; k < node->n_captures; k++) read[node->captures[k]] = true;
  }
  for (int k = 0; k < model->n_stored; k++) {
    const laci_stored *stored = &model->stored[k];
    bool only_here =
        stored->value >= 0 && read[stored->value] && !has_value_of_name(made->graph, stored->name);
    if (only_here && is_float_weight(stored)) add_untrained_tensor(left, stored->name);
  }
  laci_free(read);
  return LAC_OK;
}

static bool is_matrix_product(const laci_node *node) {
  static const char *const types[] = {"Conv", "ConvTranspose", "Gemm", "MatMul", "Einsum"};
  for (size_t k = 0; !node->domain[0] && k < sizeof types / sizeof *types; k++) {
    if (strcmp(node->type, types[k]) == 0) return true;
  }
  return false;
}

static bool is_trained(const laci_training_graph *made, int stored) {
  for (int p = 0; p < made->n_params; p++) {
    if (made->params[p].stored == stored) return true;
  }
  return false;
}

laci_untrained laci_untrained_find_in_products(const laci_graph *model,
                                               const laci_training_graph *made) {
  laci_untrained left = {0};
  for (int n = 0; n < model->n_nodes; n++) {
    const laci_node *node = &model->nodes[n];
    bool kept = is_matrix_product(node) && node->outputs[0] >= 0 &&
                has_value_of_name(made->graph, model->values[node->outputs[0]].name);
    for (int at = 0; kept && at < node->n_inputs; at++) {
      int stored = laci_training_find_stored(model, node->inputs[at]);
      if (stored < 0 || !is_float_weight(&model->stored[stored]) || is_trained(made, stored))
        continue;
      add_untrained_tensor(&left, model->stored[stored].name);
    }
  }
  return left;
}

laci_untrained laci_untrained_find_without_gradient(const laci_training_graph *made) {
  const laci_graph *graph = made->graph;
  laci_untrained left = {0};
  for (int p = 0; p < made->n_params; p++) {
    int producer = graph->values[made->params[p].gradient].producer;
    if (producer < 0) continue;
    const laci_node *node = &graph->nodes[producer];
    /* the gradient is constant: an Identity copies a stored tensor of zeros to the output */
    bool is_constant = strcmp(node->type, "Identity") == 0 && node->n_inputs == 1 &&
                       graph->values[node->inputs[0]].stored >= 0;
    if (is_constant) add_untrained_tensor(&left, made->params[p].name);
  }
  return left;
}
