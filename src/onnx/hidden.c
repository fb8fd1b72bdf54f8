/* SPDX-License-Identifier: Apache-2.0
 * Finds hidden functions: local functions that are called from graphs which are not imported, which
 * are bodies (subgraphs) that stay closed, and training graphs. Their stored tensors must not
 * change. Next: function.c. */
#include "onnx/import_in.h"

#include "base/error.h"
#include "graph/graph.h"

#include <string.h>

static bool is_same_text(const char *a, const char *b) {
  return strcmp(laci_onnx_text_or_empty(a), laci_onnx_text_or_empty(b)) == 0;
}

laci_onnx_function *laci_import_find_called_function(const laci_importer *im,
                                                     const Onnx__NodeProto *node) {
  int id = im->n_functions
               ? laci_name_find(&im->function_ids, laci_onnx_text_or_empty(node->op_type))
               : -1;
  for (; id >= 0; id = im->functions[id].next_of_name) {
    const Onnx__FunctionProto *f = im->functions[id].proto;
    if (is_same_text(f->overload, node->overload) &&
        strcmp(laci_onnx_canonical_domain(f->domain), laci_onnx_canonical_domain(node->domain)) ==
            0) {
      return &im->functions[id];
    }
  }
  return NULL;
}

/** A list of hidden functions. The functions that they call have still to be found. */
typedef struct hidden_list {
  laci_importer *im;
  laci_onnx_function **items; /* [n_functions] functions; each is added once */
  size_t n;
} hidden_list;

static void hide_function_called_by_node(hidden_list *list, const Onnx__NodeProto *node) {
  laci_onnx_function *function = laci_import_find_called_function(list->im, node);
  if (!function || function->is_hidden) return;
  function->is_hidden = true;
  list->items[list->n++] = function;
}

static void hide_functions_called_in_graph(hidden_list *list, const Onnx__GraphProto *graph);

static void hide_functions_called_in_bodies(hidden_list *list, const Onnx__NodeProto *node) {
  for (size_t at = 0; at < node->n_attribute; at++) {
    const Onnx__AttributeProto *attr = node->attribute[at];
    if (attr->g) hide_functions_called_in_graph(list, attr->g);
    for (size_t body = 0; body < attr->n_graphs; body++)
      hide_functions_called_in_graph(list, attr->graphs[body]);
  }
}

static void hide_functions_called_in_graph(hidden_list *list, const Onnx__GraphProto *graph) {
  for (size_t at = 0; at < graph->n_node; at++) {
    hide_function_called_by_node(list, graph->node[at]);
    hide_functions_called_in_bodies(list, graph->node[at]);
  }
}

/** Marks all functions that hidden functions call as hidden, too. Stored tensors that they have
 * already are frozen. */
static void hide_functions_called_by_hidden(hidden_list *list) {
  bool any = list->n > 0;
  while (list->n > 0) {
    const Onnx__FunctionProto *f = list->items[--list->n]->proto;
    for (size_t n = 0; n < f->n_node; n++) {
      hide_function_called_by_node(list, f->node[n]);
      hide_functions_called_in_bodies(list, f->node[n]);
    }
  }
  laci_graph *graph = list->im->graph;
  for (int at = 0; any && at < graph->n_stored; at++)
    graph->stored[at].overridable |= graph->stored[at].in_function;
}

/** Allocates a list that can hold all functions of the file. */
static lac_status hidden_list_init(hidden_list *list, laci_importer *im, lac_error *err) {
  *list = (hidden_list){.im = im, .items = laci_alloc(im->n_functions, sizeof *list->items)};
  return list->items ? LAC_OK : laci_fail_memory(err, "local functions");
}

lac_status laci_import_hide_training_functions(laci_importer *im, lac_error *err) {
  const Onnx__ModelProto *model = im->file->model;
  hidden_list list;
  lac_status st = hidden_list_init(&list, im, err);
  for (size_t at = 0; at < model->n_training_info && !st; at++) {
    const Onnx__TrainingInfoProto *info = model->training_info[at];
    if (info->initialization) hide_functions_called_in_graph(&list, info->initialization);
    if (info->algorithm) hide_functions_called_in_graph(&list, info->algorithm);
  }
  if (!st) hide_functions_called_by_hidden(&list);
  laci_free(list.items);
  return st;
}

lac_status laci_import_hide_functions_in_bodies(laci_importer *im, const Onnx__NodeProto *node,
                                                lac_error *err) {
  hidden_list list;
  if (im->n_functions == 0) return LAC_OK;
  lac_status st = hidden_list_init(&list, im, err);
  if (!st) hide_functions_called_in_bodies(&list, node);
  if (!st) hide_functions_called_by_hidden(&list);
  laci_free(list.items);
  return st;
}
