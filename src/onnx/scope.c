/* SPDX-License-Identifier: Apache-2.0
 * Resolves names, attributes and versions in a scope: the main graph, one call of a local function,
 * or a body (subgraph of a node) in either. Also makes up names for the values of a scope. Next:
 * node.c, function.c, open.c. */
#include "onnx/import_in.h"

#include "base/error.h"
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

static bool is_same_text(const char *a, const char *b) {
  return strcmp(laci_onnx_text_or_empty(a), laci_onnx_text_or_empty(b)) == 0;
}

lac_status laci_import_spend_budget(laci_importer *im, size_t size_bytes, lac_error *err) {
  im->budget -= size_bytes < INT32_MAX ? (int64_t)size_bytes : INT32_MAX;
  if (im->budget >= 0) return LAC_OK;
  im->budget = 0;
  return laci_fail(err, LAC_UNSUPPORTED, "its local functions and bodies expand to an absurd size");
}

enum { SUFFIX_ROOM = 16 };

/** Concatenates first and second, and leaves space for a suffix. */
static lac_status concatenate_with_space(laci_importer *im, const char *first, const char *second,
                                         char **joined, lac_error *err) {
  size_t n_first = strlen(first), n_second = strlen(second);
  *joined = NULL;
  /* memory of the name, and about that of the node or value which gets it */
  lac_status st = laci_import_spend_budget(im, n_first + n_second + sizeof(laci_node), err);
  if (st) return st;
  char *text = laci_arena_alloc(&im->scratch, n_first + n_second + SUFFIX_ROOM, 1);
  if (!text) return laci_fail_memory(err, "a name");
  if (n_first) memcpy(text, first, n_first);
  if (n_second) memcpy(text + n_first, second, n_second);
  *joined = text;
  return LAC_OK;
}

lac_status laci_import_join_names(laci_importer *im, const char *first, const char *second,
                                  const char **joined, lac_error *err) {
  char *text;
  lac_status st = concatenate_with_space(im, first, second, &text, err);
  *joined = text;
  return st;
}

lac_status laci_import_unique_value_name(laci_importer *im, const char *first, const char *second,
                                         const char **name, lac_error *err) {
  char *text;
  lac_status st = concatenate_with_space(im, first, second, &text, err);
  *name = text;
  if (st) return st;
  char *suffix = text + strlen(text);
  const int holder = laci_graph_find_value(im->graph, text);
  if (holder >= 0) im->graph->values[holder].is_contested = true;
  while (laci_graph_find_value(im->graph, text) >= 0) {
    (void)snprintf(suffix, SUFFIX_ROOM, "_%d", ++im->n_fresh);
  }
  return LAC_OK;
}

/* ---- Names, versions and attributes in a scope ---- */

static Onnx__AttributeProto *find_attribute_by_name(Onnx__AttributeProto *const *attrs, size_t n,
                                                    const char *name) {
  for (size_t at = 0; at < n; at++) {
    if (is_same_text(attrs[at]->name, name)) return attrs[at];
  }
  return NULL;
}

lac_status laci_import_resolve_attribute(const laci_scope *scope, Onnx__AttributeProto *attr,
                                         Onnx__AttributeProto **resolved, lac_error *err) {
  *resolved = attr;
  for (; attr && attr->ref_attr_name && attr->ref_attr_name[0]; scope = scope->caller) {
    const char *name = attr->ref_attr_name;
    if (!scope->function) {
      return laci_fail(err, LAC_BAD_FILE, "attribute '%s' refers to '%s', but is in no function",
                       laci_onnx_text_or_empty(attr->name), name);
    }
    const Onnx__FunctionProto *proto = scope->function->proto;
    attr = find_attribute_by_name(scope->call->attribute, scope->call->n_attribute, name);
    *resolved =
        attr ? attr
             : find_attribute_by_name(proto->attribute_proto, proto->n_attribute_proto, name);
  }
  return LAC_OK;
}

bool laci_import_find_value(const laci_importer *im, const laci_scope *scope, const char *name,
                            int *value) {
  *value = -1;
  if (!name[0]) return false;
  for (; scope->outer || scope->function; scope = scope->outer) {
    int found = laci_name_find(&scope->values, name);
    *value = found - 1;
    if (found >= 0) return true;
    if (!scope->outer) return false;
  }
  *value = laci_graph_find_value(im->graph, name);
  return *value >= 0;
}

lac_status laci_import_define_value(laci_scope *scope, const char *name, int value,
                                    lac_error *err) {
  const char *function =
      scope->function ? laci_onnx_text_or_empty(scope->function->proto->name) : NULL;
  const char *where = scope->outer ? "body" : "function";
  if (laci_name_find(&scope->values, name) >= 0) {
    return laci_fail(err, LAC_BAD_FILE, "%s '%s': '%s' is defined twice", where,
                     scope->outer ? scope->prefix : function, name);
  }
  if (laci_name_add(&scope->values, name, value + 1)) return LAC_OK;
  return laci_fail_memory(err, name);
}

lac_status laci_import_find_value_or_fail(laci_importer *im, const laci_scope *scope,
                                          const char *name, int *value, lac_error *err) {
  if (laci_import_find_value(im, scope, name, value)) return LAC_OK;
  *value = -1;
  if (!name[0]) return LAC_OK;
  if (scope->function) {
    return laci_fail(err, LAC_BAD_FILE, "function '%s': reads '%s', which nothing defines",
                     laci_onnx_text_or_empty(scope->function->proto->name), name);
  }
  *value = laci_graph_intern_value(im->graph, name); /* creates the value already now, since the
                                                        main graph may define the name later */
  return *value < 0 ? laci_fail_memory(err, name) : LAC_OK;
}

/* Returns the version of a domain's operators in a scope. If a function does not import the domain,
 * that is the model's version. */
int laci_import_find_domain_version(const laci_importer *im, const laci_scope *scope,
                                    const char *domain) {
  const Onnx__ModelProto *model = im->file->model;
  const Onnx__FunctionProto *function = scope->function ? scope->function->proto : NULL;
  int64_t version = 0;
  for (int round = function ? 0 : 1; round < 2 && !version; round++) {
    Onnx__OperatorSetIdProto *const *sets = round ? model->opset_import : function->opset_import;
    size_t n = round ? model->n_opset_import : function->n_opset_import;
    for (size_t at = 0; at < n; at++) {
      if (strcmp(laci_onnx_canonical_domain(sets[at]->domain), domain) != 0) continue;
      if (sets[at]->version > version) version = sets[at]->version;
    }
  }
  return version > INT32_MAX ? INT32_MAX : (int)version;
}
