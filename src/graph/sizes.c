/* SPDX-License-Identifier: Apache-2.0
 * Infers sizes on a copy of the graph with an array of values of its own. */
#include "graph/sizes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "lacuna/dtype.h"
#include "tensor/buf.h"
#include "tensor/shape.h"

lac_status laci_graph_infer_types(const laci_graph *graph, const laci_input_shape *inputs,
                                  int n_inputs, laci_type **types, lac_error *err) {
  laci_graph copy = *graph;
  size_t n = (size_t)graph->n_values;
  laci_type *made = laci_alloc(n, sizeof *made);
  copy.values = laci_alloc(n, sizeof *copy.values);
  lac_status st = made && copy.values ? LAC_OK : laci_fail_memory(err, "the sizes of values");
  for (size_t v = 0; v < n && !st; v++) {
    copy.values[v] = graph->values[v];
    copy.values[v].known = NULL; /* the graph keeps its contents */
  }
  if (!st) st = laci_graph_infer(&copy, inputs, n_inputs, err);
  for (size_t v = 0; v < n && copy.values; v++) {
    if (made) made[v] = copy.values[v].type;
    laci_buf_destroy(copy.values[v].known);
  }
  laci_free(copy.values);
  *types = st ? NULL : made;
  if (st) laci_free(made);
  return st;
}

void laci_value_describe(const laci_graph *graph, int value, const laci_type *type, char *text,
                         size_t size) {
  const laci_value *v = &graph->values[value];
  const laci_node *from = v->producer >= 0 ? &graph->nodes[v->producer] : NULL;
  char shape[8 * 24] = "", who[128] = "";
  size_t used = 0;
  for (int axis = 0; axis < type->shape.rank && used < sizeof shape; axis++) {
    used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%" PRId64, axis ? "x" : "",
                             type->shape.dims[axis]);
  }
  if (from) (void)snprintf(who, sizeof who, " (output of %.30s '%.80s')", from->type, from->name);
  (void)snprintf(text, size, "%.80s%s: %s%s%s", v->name, who, shape, shape[0] ? " " : "",
                 lac_dtype_name(type->dtype));
}
