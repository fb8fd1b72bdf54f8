/* SPDX-License-Identifier: Apache-2.0
 * Building a graph: values by name, inputs, outputs, stored tensors.
 *
 * A value exists from the first time its name is used. Each definition is checked when it is added,
 * so that no value has two; when building ends, sort.c checks that every value has one. Next:
 * nodes.c, sort.c, then infer.c. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/acquire.h"
#include "base/memory.h"
#include "base/spill.h"
#include "graph/graph_in.h"
#include "tensor/buf.h"

lac_status laci_graph_create(laci_graph **graph, lac_error *err) {
  *graph = NULL;
  laci_graph *made = laci_alloc(1, sizeof *made);
  struct laci_graph_own *own = made ? laci_alloc(1, sizeof *own) : NULL;
  if (!own) {
    laci_free(made);
    return laci_fail_memory(err, "a graph");
  }
  made->own = own;
  made->arena = &own->arena;
  *graph = made;
  return LAC_OK;
}

void laci_graph_destroy(laci_graph *graph) {
  if (!graph) return;
  for (int at = 0; at < graph->n_values; at++) laci_buf_destroy(graph->values[at].known);
  for (int at = 0; at < graph->n_stored; at++)
    laci_stored_replace_bytes(&graph->stored[at], NULL, false);
  laci_spill_destroy(graph->spills);
  for (size_t at = 0; at < graph->n_bufs; at++) laci_buf_destroy(graph->bufs[at]);
  laci_free(graph->bufs);
  laci_free(graph->nodes);
  laci_free(graph->values);
  laci_free(graph->stored);
  laci_free(graph->inputs);
  laci_free(graph->outputs);
  laci_free(graph->bodies);
  laci_name_table_clear(&graph->own->values);
  laci_name_table_clear(&graph->own->nodes);
  laci_arena_clear(graph->arena);
  laci_free(graph->own);
  laci_free(graph);
}

/* ---- Values ---- */

int laci_graph_find_value(const laci_graph *graph, const char *name) {
  return laci_name_find(&graph->own->values, name);
}

lac_status laci_graph_fail_unknown_input(const laci_graph *graph, const char *name,
                                         lac_error *err) {
  enum { MOST = 8 };
  char list[768] = "", shape[128];
  size_t used = 0;
  for (int at = 0; at < graph->n_inputs && at < MOST && used < sizeof list; at++) {
    const laci_value *value = &graph->values[graph->inputs[at]];
    used += (size_t)snprintf(list + used, sizeof list - used, "%s'%s' %s", at ? ", " : "",
                             value->name, laci_shape_text(&value->type.shape, shape, sizeof shape));
  }
  if (graph->n_inputs > MOST && used < sizeof list)
    (void)snprintf(list + used, sizeof list - used, " and %d more", graph->n_inputs - MOST);
  return laci_fail(err, LAC_NOT_FOUND, "the network has no input '%s'; it has %s", name,
                   list[0] ? list : "none");
}

int laci_graph_intern_value(laci_graph *graph, const char *name) {
  int found = laci_graph_find_value(graph, name);
  if (found >= 0) return found;
  void *array = graph->values;
  char *copy = laci_arena_text(graph->arena, name);
  if (!copy ||
      !laci_grow(&array, (size_t)graph->n_values, &graph->value_capacity, sizeof *graph->values)) {
    return -1;
  }
  graph->values = array;
  if (!laci_name_add(&graph->own->values, copy, graph->n_values)) return -1;
  graph->values[graph->n_values] =
      (laci_value){.name = copy, .type.shape = laci_shape_unknown(), .producer = -1, .stored = -1};
  return graph->n_values++;
}

int64_t laci_graph_add_symbol(laci_graph *graph) { return -(int64_t)++graph->n_symbols; }

lac_status laci_graph_check_value_undefined(const laci_graph *graph, int value, lac_error *err) {
  const laci_value *v = &graph->values[value];
  const char *what = v->is_input        ? "a graph input"
                     : v->stored >= 0   ? "an initializer"
                     : v->producer >= 0 ? graph->nodes[v->producer].name
                                        : NULL;
  if (!what) return LAC_OK;
  return laci_fail(err, LAC_BAD_FILE, "value '%s' is defined twice, first by %s", v->name, what);
}

static bool append_id(int **list, int *n, size_t *capacity, int id) {
  void *array = *list;
  if (!laci_grow(&array, (size_t)*n, capacity, sizeof **list)) return false;
  *list = array;
  (*list)[(*n)++] = id;
  return true;
}

lac_status laci_graph_add_input(laci_graph *graph, const char *name, const laci_type *type,
                                lac_error *err) {
  int value = laci_graph_intern_value(graph, name);
  if (value < 0) return laci_fail_memory(err, "a graph input");
  lac_status st = laci_graph_check_value_undefined(graph, value, err);
  if (st) return st;
  if (!append_id(&graph->inputs, &graph->n_inputs, &graph->input_capacity, value)) {
    return laci_fail_memory(err, "a graph input");
  }
  graph->values[value].is_input = true;
  if (!type) return LAC_OK;
  graph->values[value].type = *type;
  /* symbols of sizes in the given type must not be used again for other sizes */
  for (int axis = 0; axis < type->shape.rank; axis++) {
    int64_t symbol = -type->shape.dims[axis];
    if (symbol > graph->n_symbols && symbol <= INT32_MAX) graph->n_symbols = (int)symbol;
  }
  return LAC_OK;
}

lac_status laci_graph_add_output(laci_graph *graph, const char *name, lac_error *err) {
  int value = laci_graph_intern_value(graph, name);
  if (value < 0) return laci_fail_memory(err, "a graph output");
  if (graph->values[value].is_output) {
    return laci_fail(err, LAC_BAD_FILE, "graph output '%s' is listed twice", name);
  }
  if (!append_id(&graph->outputs, &graph->n_outputs, &graph->output_capacity, value)) {
    return laci_fail_memory(err, "a graph output");
  }
  graph->values[value].is_output = true;
  return LAC_OK;
}

void laci_graph_set_current_body(laci_graph *graph, int body) { graph->own->body = body; }

int laci_graph_add_body(laci_graph *graph, const laci_body *body) {
  void *array = graph->bodies;
  if (!laci_grow(&array, (size_t)graph->n_bodies, &graph->body_capacity, sizeof *graph->bodies)) {
    return -1;
  }
  graph->bodies = array;
  graph->bodies[graph->n_bodies] = *body;
  return ++graph->n_bodies;
}

lac_status laci_graph_add_stored(laci_graph *graph, const laci_stored *stored, int *id,
                                 lac_error *err) {
  int value = laci_graph_intern_value(graph, stored->name);
  if (value < 0) return laci_fail_memory(err, "a stored tensor");
  lac_status st = laci_graph_check_value_undefined(graph, value, err);
  if (st) return st;
  void *array = graph->stored;
  if (!laci_grow(&array, (size_t)graph->n_stored, &graph->stored_capacity, sizeof *graph->stored)) {
    return laci_fail_memory(err, "a stored tensor");
  }
  graph->stored = array;
  laci_value *v = &graph->values[value];
  laci_stored *added = &graph->stored[graph->n_stored];
  *added = *stored;
  added->name = v->name;
  added->value = value;
  v->stored = graph->n_stored;
  v->type = (laci_type){.dtype = stored->dtype, .shape = stored->shape};
  *id = graph->n_stored++;
  return LAC_OK;
}

lac_status laci_stored_acquire(const laci_graph *graph, const laci_stored *stored,
                               laci_acquired_bytes *held, lac_error *err) {
  return laci_bytes_acquire(graph->bytes_from, stored->bytes, stored->size_bytes, stored->name,
                            held, err);
}

void laci_stored_replace_bytes(laci_stored *stored, uint8_t *take, bool spilled) {
  if (!stored->spilled) laci_free(stored->owned);
  stored->owned = take;
  stored->spilled = spilled;
  if (take) stored->bytes = take;
}

uint8_t *laci_stored_writable_bytes(laci_stored *stored) {
  if (!stored->owned || stored->spilled) {
    uint8_t *copy = laci_alloc(stored->size_bytes, 1);
    if (!copy) return NULL;
    if (stored->size_bytes) memcpy(copy, stored->bytes, stored->size_bytes);
    laci_stored_replace_bytes(stored, copy, false);
  }
  return stored->owned;
}
