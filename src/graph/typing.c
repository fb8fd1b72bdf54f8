/* SPDX-License-Identifier: Apache-2.0
 * The check of attributes and weights against the operators' tables (op.h). */
#include "graph/typing.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "graph/op.h"

static const char *name_of_attribute_kind(laci_attr_kind kind) {
  switch (kind) {
    case LACI_ATTR_INT: return "an integer";
    case LACI_ATTR_FLOAT: return "a float";
    case LACI_ATTR_TEXT: return "a text";
    case LACI_ATTR_INTS: return "a list of integers";
    case LACI_ATTR_FLOATS: return "a list of floats";
    case LACI_ATTR_TEXTS: return "a list of texts";
    case LACI_ATTR_TENSOR: return "a tensor";
    case LACI_ATTR_OTHER: break;
  }
  return "of another type";
}

static const laci_attr_type *find_attribute_type(const laci_op *op, const char *name) {
  for (const laci_attr_type *type = op->attributes; type && type->name; type++) {
    if (strcmp(type->name, name) == 0) return type;
  }
  return NULL;
}

/* Has the attribute the wanted kind? A tensor of texts, which only the importer keeps, counts as a
 * tensor. */
static bool has_kind(const laci_attr *attr, laci_attr_kind wanted) {
  return attr->kind == wanted || (wanted == LACI_ATTR_TENSOR && attr->kind == LACI_ATTR_OTHER);
}

/* Finds an attribute of a wrong kind and describes the error in text. Returns false if there is
 * none. */
static bool find_attribute_of_wrong_kind(const laci_node *node, char *text, size_t size) {
  for (int at = 0; at < node->n_attrs; at++) {
    const laci_attr *attr = &node->attrs[at];
    const laci_attr_type *type = find_attribute_type(node->op, attr->name);
    if (!type) {
      laci_log(LAC_LOG_DEBUG, "%s (%s): attribute '%s' is not known", node->name, node->type,
               attr->name);
    } else if (!has_kind(attr, type->kind)) {
      (void)snprintf(text, size, "attribute '%s' is %s, wanted %s", attr->name,
                     name_of_attribute_kind(attr->kind), name_of_attribute_kind(type->kind));
      return true;
    }
  }
  return false;
}

/* Finds an attribute that the node has twice, and describes the error in text. Returns false if
 * there is none. */
static bool find_repeated_attribute(const laci_node *node, char *text, size_t size) {
  for (const laci_attr_type *type = node->op->attributes; type && type->name; type++) {
    int n = 0;
    for (int at = 0; at < node->n_attrs; at++) n += strcmp(node->attrs[at].name, type->name) == 0;
    if (n < 2) continue;
    (void)snprintf(text, size, "attribute '%s' is given %d times", type->name, n);
    return true;
  }
  return false;
}

static bool is_weight_dtype_accepted(const laci_op *op, lac_dtype dtype) {
  if (op->byte_weights) return dtype == LAC_DTYPE_I8 || dtype == LAC_DTYPE_U8;
  switch (dtype) {
    case LAC_DTYPE_F16:
    case LAC_DTYPE_BF16:
    case LAC_DTYPE_F32:
    case LAC_DTYPE_F64: return true;
    case LAC_DTYPE_I32:
    case LAC_DTYPE_I64:
    case LAC_DTYPE_U32:
    case LAC_DTYPE_U64: return op->integer_weights;
    default: return false;
  }
}

/* Finds a stored weight of a wrong element type, and describes the error in text. Returns false if
 * there is none. */
static bool find_wrong_weight(const laci_graph *graph, const laci_node *node, char *text,
                              size_t size) {
  laci_weight_axes axes[2];
  int n = node->op->weights ? node->op->weights(graph, node, axes) : 0;
  for (int at = 0; at < n; at++) {
    int value = node->inputs[axes[at].port];
    if (value < 0 || graph->values[value].stored < 0) continue;
    const laci_stored *stored = &graph->stored[graph->values[value].stored];
    if (is_weight_dtype_accepted(node->op, stored->dtype)) continue;
    bool known = stored->dtype > LAC_DTYPE_NONE && stored->dtype < LAC_DTYPE_COUNT;
    (void)snprintf(text, size, "its weight '%s' is of %s%s, wanted %s%s", stored->name,
                   known ? "type " : "an unknown type", known ? lac_dtype_name(stored->dtype) : "",
                   node->op->byte_weights ? "i8" : "f16, bf16, f32",
                   node->op->byte_weights      ? " or u8"
                   : node->op->integer_weights ? ", f64 or 32- and 64-bit integers"
                                               : " or f64");
    return true;
  }
  return false;
}

lac_status laci_graph_check_attr_and_weight_types(laci_graph *graph, bool lenient, lac_error *err) {
  for (int id = 0; id < graph->n_nodes; id++) {
    laci_node *node = &graph->nodes[id];
    char text[512];
    if (!node->op) continue;
    if (!find_attribute_of_wrong_kind(node, text, sizeof text) &&
        !find_repeated_attribute(node, text, sizeof text) &&
        !find_wrong_weight(graph, node, text, sizeof text))
      continue;
    if (!lenient) {
      return laci_hint(err, LAC_HINT_LENIENT,
                       laci_fail(err, LAC_BAD_FILE, "%s (%s): %s", node->name, node->type, text));
    }
    node->fault = laci_arena_text(graph->arena, text);
    if (!node->fault) return laci_fail_memory(err, "the nodes");
    node->op = NULL;
    laci_log(LAC_LOG_WARNING, "%s (%s): %s: frozen, with all that reaches it", node->name,
             node->type, text);
  }
  return LAC_OK;
}
