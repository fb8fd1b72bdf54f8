/* SPDX-License-Identifier: Apache-2.0
 * Helpers by which rules add nodes and constants. Types of new nodes are inferred at once.
 * Constants are found again by name, so each scalar or list of axes is stored once.
 *
 * Every function returns a value, or -1 after the first failure, which the builder keeps. Next:
 * gradient.c, and ops/add.c for the smallest rule. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/gradient_in.h"
#include "tensor/buf.h"

static int fail_memory(laci_gradient_builder *b) {
  if (!b->status) b->status = laci_fail_memory(b->err, "gradients");
  return -1;
}

/* ---- Values ---- */

laci_shape laci_gradient_shape_of_value(const laci_gradient_builder *b, int value) {
  return value >= 0 ? b->graph->values[value].type.shape : (laci_shape){0};
}

lac_dtype laci_gradient_dtype_of_value(const laci_gradient_builder *b, int value) {
  return value >= 0 ? b->graph->values[value].type.dtype : LAC_DTYPE_NONE;
}

/* ---- Nodes ---- */

/** Adds a value, named after the current node, the type, and the number of nodes that its rule
 * added so far. */
static int add_named_value(laci_gradient_builder *b, const char *type) {
  char text[600];
  for (int suffix = 0;; suffix++) {
    int n = snprintf(text, sizeof text, "%.400s/grad%d_%.60s", b->current, b->n_made, type);
    if (suffix) (void)snprintf(text + n, sizeof text - (size_t)n, "_%d", suffix);
    if (laci_graph_find_value(b->graph, text) >= 0) continue;
    int value = laci_graph_intern_value(b->graph, text);
    return value < 0 ? fail_memory(b) : value;
  }
}

static bool add_output_values(laci_gradient_builder *b, const laci_gradient_node *node,
                              int n_outputs, int *outputs) {
  for (int at = 0; at < n_outputs; at++) {
    outputs[at] = add_named_value(b, node->type);
    if (outputs[at] < 0) return false;
    b->n_made++;
  }
  return true;
}

static bool has_all_inputs(const laci_gradient_node *node) {
  for (int at = 0; at < node->n_inputs; at++) {
    if (node->inputs[at] < 0 && node->inputs[at] != LACI_ABSENT) return false;
  }
  return true;
}

int laci_gradient_add_node(laci_gradient_builder *b, const laci_gradient_node *node, int *outputs) {
  int made[LACI_GRADIENT_OUTPUTS];
  int n_outputs = node->n_outputs ? node->n_outputs : 1;
  for (int at = 0; outputs && at < n_outputs; at++) outputs[at] = -1;
  if (b->status || !has_all_inputs(node) || !add_output_values(b, node, n_outputs, made)) return -1;
  int *inputs = laci_alloc((size_t)node->n_inputs + 1, sizeof *inputs);
  if (!inputs) return fail_memory(b);
  for (int at = 0; at < node->n_inputs; at++)
    inputs[at] = node->inputs[at] == LACI_ABSENT ? -1 : node->inputs[at];
  b->status = b->add_node(b, &(laci_node){.name = b->graph->values[made[0]].name,
                                          .type = node->type,
                                          .domain = node->domain ? node->domain : "",
                                          .version = node->domain ? 1 : 22,
                                          .n_inputs = node->n_inputs,
                                          .n_outputs = n_outputs,
                                          .inputs = inputs,
                                          .outputs = made,
                                          .n_attrs = node->n_attrs,
                                          .attrs = node->attrs});
  laci_free(inputs);
  if (b->status) return -1;
  for (int at = 0; outputs && at < n_outputs; at++) outputs[at] = made[at];
  return made[0];
}

int laci_gradient_add_unary(laci_gradient_builder *b, const char *type, int x) {
  return laci_gradient_add_node(b, &(laci_gradient_node){.type = type, .n_inputs = 1, .inputs = &x},
                                NULL);
}

int laci_gradient_add_binary(laci_gradient_builder *b, const char *type, int x, int y) {
  const int inputs[] = {x, y};
  return laci_gradient_add_node(
      b, &(laci_gradient_node){.type = type, .n_inputs = 2, .inputs = inputs}, NULL);
}

int laci_gradient_add_scale(laci_gradient_builder *b, int x, double factor) {
  if (factor == 1) return x;
  return laci_gradient_add_binary(b, "Mul", x, laci_gradient_store_scalar(b, x, factor));
}

int laci_gradient_add_where(laci_gradient_builder *b, int condition, int x, int y) {
  const int inputs[] = {condition, x, y};
  return laci_gradient_add_node(
      b, &(laci_gradient_node){.type = "Where", .n_inputs = 3, .inputs = inputs}, NULL);
}

int laci_gradient_add_transpose(laci_gradient_builder *b, int x, int rank, const int64_t *order) {
  laci_attr attr = laci_attr_ints("perm", rank, order);
  return laci_gradient_add_node(
      b,
      &(laci_gradient_node){
          .type = "Transpose", .n_inputs = 1, .inputs = &x, .n_attrs = 1, .attrs = &attr},
      NULL);
}

int laci_gradient_add_reshape(laci_gradient_builder *b, int x, const laci_shape *shape) {
  laci_shape have = laci_gradient_shape_of_value(b, x);
  if (x < 0 || laci_shape_equal(&have, shape)) return x;
  /* with allowzero, a size of 0 is an empty axis and does not mean "copy the input's size" */
  laci_attr attr = laci_attr_int("allowzero", 1);
  const int inputs[] = {x, laci_gradient_store_ints(b, shape->rank, shape->dims)};
  return laci_gradient_add_node(
      b,
      &(laci_gradient_node){
          .type = "Reshape", .n_inputs = 2, .inputs = inputs, .n_attrs = 1, .attrs = &attr},
      NULL);
}

int laci_gradient_add_expand(laci_gradient_builder *b, int x, const laci_shape *shape) {
  laci_shape have = laci_gradient_shape_of_value(b, x);
  if (x < 0 || laci_shape_equal(&have, shape)) return x;
  return laci_gradient_add_binary(b, "Expand", x,
                                  laci_gradient_store_ints(b, shape->rank, shape->dims));
}

int laci_gradient_add_sum(laci_gradient_builder *b, int x, const bool flags[LACI_MAX_RANK],
                          bool keep) {
  int64_t axes[LACI_MAX_RANK];
  laci_shape shape = laci_gradient_shape_of_value(b, x);
  int n = 0;
  for (int axis = 0; axis < shape.rank; axis++) {
    if (flags[axis]) axes[n++] = axis;
  }
  if (x < 0 || n == 0) return x; /* ReduceSum with an empty list of axes would sum over all axes */
  laci_attr attr = laci_attr_int("keepdims", keep);
  const int inputs[] = {x, laci_gradient_store_ints(b, n, axes)};
  return laci_gradient_add_node(
      b,
      &(laci_gradient_node){
          .type = "ReduceSum", .n_inputs = 2, .inputs = inputs, .n_attrs = 1, .attrs = &attr},
      NULL);
}

int laci_gradient_add_unbroadcast(laci_gradient_builder *b, int x, const laci_shape *shape) {
  laci_shape have = laci_gradient_shape_of_value(b, x);
  bool flags[LACI_MAX_RANK] = {false}, keep = have.rank == shape->rank;
  if (x < 0) return -1;
  for (int axis = 0; axis < have.rank; axis++) {
    int own = axis - (have.rank - shape->rank);
    flags[axis] = own < 0 || (shape->dims[own] == 1 && have.dims[axis] != 1);
  }
  return laci_gradient_add_reshape(b, laci_gradient_add_sum(b, x, flags, keep), shape);
}

/* ---- Constants ---- */

/** Returns the stored tensor with this content, and adds it if there is none yet. name: a text made
 * from the content, by which the tensor is found again. */
static int find_or_add_constant(laci_gradient_builder *b, const char *name, const laci_type *type,
                                const void *bytes) {
  size_t size = (size_t)laci_shape_count(&type->shape) * lac_dtype_size(type->dtype);
  char text[700];
  for (int suffix = 0;; suffix++) { /* a network may use the name for something else */
    (void)snprintf(text, sizeof text, suffix ? "%s_%d" : "%s", name, suffix);
    int value = laci_graph_find_value(b->graph, text);
    if (value < 0) break;
    int stored = b->graph->values[value].stored;
    const laci_stored *same = stored >= 0 ? &b->graph->stored[stored] : NULL;
    if (same && same->dtype == type->dtype && laci_shape_equal(&same->shape, &type->shape) &&
        same->size_bytes == size && memcmp(same->bytes, bytes, size) == 0)
      return value;
  }
  uint8_t *copy = laci_arena_alloc(b->graph->arena, size + 1, 1);
  if (!copy) return fail_memory(b);
  memcpy(copy, bytes, size);
  laci_stored stored = {
      .name = text, .dtype = type->dtype, .shape = type->shape, .bytes = copy, .size_bytes = size};
  int id;
  b->status = laci_graph_add_stored(b->graph, &stored, &id, b->err);
  if (b->status) return -1;
  int value = b->graph->stored[id].value;
  b->status = laci_buf_from_bytes(type, copy, size, &b->graph->values[value].known, b->err);
  return b->status ? -1 : value;
}

int laci_gradient_store_ints(laci_gradient_builder *b, int n, const int64_t *ints) {
  char name[512] = "gradient/ints";
  size_t used = strlen(name);
  if (b->status) return -1;
  for (int at = 0; at < n && used < sizeof name; at++)
    used += (size_t)snprintf(name + used, sizeof name - used, "_%lld", (long long)ints[at]);
  laci_type type = {.dtype = LAC_DTYPE_I64, .shape = {.rank = 1, .dims = {n}}};
  return find_or_add_constant(b, name, &type, ints);
}

int laci_gradient_store_filled(laci_gradient_builder *b, int x, const laci_shape *shape,
                               double number) {
  char name[300], dims[128];
  laci_type type = {.dtype = laci_gradient_dtype_of_value(b, x), .shape = {0}};
  float single = (float)number;
  if (b->status || x < 0) return -1;
  if (type.dtype != LAC_DTYPE_F32 && type.dtype != LAC_DTYPE_F64) {
    b->status =
        laci_fail(b->err, LAC_UNSUPPORTED, "%s: gradients are made in f32 or f64, not in %s",
                  b->current, lac_dtype_name(type.dtype));
    return -1;
  }
  (void)snprintf(name, sizeof name, "gradient/scalar_%s_%a", lac_dtype_name(type.dtype), number);
  bool wide = type.dtype == LAC_DTYPE_F64;
  int scalar =
      find_or_add_constant(b, name, &type, wide ? (const void *)&number : (const void *)&single);
  int64_t count = laci_shape_count(shape);
  if (shape->rank == 0 || scalar < 0) return scalar;
  if (count > 65536) return laci_gradient_add_expand(b, scalar, shape); /* no large constants */
  type.shape = *shape;
  uint8_t *bytes = laci_alloc((size_t)count + 1, sizeof number);
  if (!bytes) return fail_memory(b);
  for (int64_t at = 0; at < count; at++) {
    if (wide) memcpy(bytes + at * 8, &number, 8);
    else memcpy(bytes + at * 4, &single, 4);
  }
  (void)snprintf(name, sizeof name, "gradient/full_%s_%s_%a", lac_dtype_name(type.dtype),
                 laci_shape_text(shape, dims, sizeof dims), number);
  int value = find_or_add_constant(b, name, &type, bytes);
  laci_free(bytes);
  return value;
}

int laci_gradient_store_scalar(laci_gradient_builder *b, int x, double number) {
  return laci_gradient_store_filled(b, x, &(laci_shape){.rank = 0}, number);
}
