/* SPDX-License-Identifier: Apache-2.0
 * Removes attributes of nodes, and sets the version of ai.onnx that the file imports. A network
 * that is written for a later version needs this. */
#include <string.h>

#include "base/error.h"
#include "onnx/edit_in.h"

static lac_status remove_attribute_of_node(laci_edit_applier *a, const laci_edit_attribute *change,
                                           lac_error *err) {
  Onnx__NodeProto *node = a->graph->node[laci_edit_find_producer(a->edit, change->node)];
  size_t n = 0;
  Onnx__AttributeProto **list =
      laci_edit_alloc_block(a->edit, (node->n_attribute + 1) * sizeof *list);
  bool ok = list != NULL;
  for (size_t at = 0; at < node->n_attribute && ok; at++) {
    Onnx__AttributeProto *attribute = node->attribute[at];
    const bool goes = attribute->name && strcmp(attribute->name, change->name) == 0;
    if (!goes) list[n++] = attribute;
    else ok = laci_edit_register_block(a->edit, NULL, &attribute->base, false);
  }
  if (!ok) return laci_fail_memory(err, "the attributes of a node");
  return laci_edit_replace_array(a->edit, &node->attribute, &node->n_attribute, list, n, err);
}

static Onnx__OperatorSetIdProto *create_opset_entry(laci_onnx_edit *edit) {
  Onnx__OperatorSetIdProto *set = laci_onnx_block_alloc(sizeof *set);
  if (!set) return NULL;
  *set = (Onnx__OperatorSetIdProto)ONNX__OPERATOR_SET_ID_PROTO__INIT;
  if (!laci_edit_register_block(edit, NULL, &set->base, true)) {
    laci_onnx_block_free(set);
    return NULL;
  }
  set->has_version = true;
  set->version = edit->opset;
  return set;
}

static lac_status set_opset_of_model(laci_edit_applier *a, lac_error *err) {
  Onnx__ModelProto *model = a->edit->file->model;
  const size_t n = model->n_opset_import;
  Onnx__OperatorSetIdProto **list = laci_edit_alloc_block(a->edit, (n + 1) * sizeof *list);
  bool ok = list != NULL;
  for (size_t at = 0; at < n && ok; at++) {
    list[at] = model->opset_import[at];
    if (laci_onnx_canonical_domain(list[at]->domain)[0]) continue;
    ok = laci_edit_register_block(a->edit, NULL, &list[at]->base, false);
    list[at] = ok ? create_opset_entry(a->edit) : NULL;
    ok = list[at] != NULL;
  }
  if (!ok) return laci_fail_memory(err, "the opsets of the file");
  return laci_edit_replace_array(a->edit, &model->opset_import, &model->n_opset_import, list, n,
                                 err);
}

lac_status laci_edit_apply_attribute_and_opset_changes(laci_edit_applier *a, lac_error *err) {
  lac_status st = LAC_OK;
  for (size_t at = 0; at < a->edit->n_attributes && !st; at++)
    st = remove_attribute_of_node(a, &a->edit->attributes[at], err);
  return st || a->edit->opset == 0 ? st : set_opset_of_model(a, err);
}
