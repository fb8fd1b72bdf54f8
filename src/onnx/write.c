/* SPDX-License-Identifier: Apache-2.0
 * Writes a new model from a graph. It builds the message in an arena, with texts and bytes that
 * point into the graph, and packs it like any other message. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/writer.h"
#include "graph/graph.h"
#include "lacuna/version.h"
#include "onnx/metadata_in.h"
#include "onnx/onnx_in.h"

/** The state of building the message of a model. */
typedef struct builder {
  const laci_graph *graph;
  laci_arena arena;
  const char *path;
  lac_error *err;
} builder;

static lac_status fail_memory(const builder *m) { return laci_fail_memory(m->err, m->path); }

/** Casts away const: protobuf-c does not write to texts that it packs. */
static char *cast_text(const char *text) { return (char *)(uintptr_t)text; }

/** Allocates n messages, and an array of pointers to them. The caller initializes each message. */
static void *allocate_message_list(builder *m, size_t n, size_t size, void *list) {
  void **pointers = laci_arena_alloc(&m->arena, n, sizeof *pointers);
  uint8_t *items = laci_arena_alloc(&m->arena, n, size);
  if (!pointers || !items) return NULL;
  for (size_t at = 0; at < n; at++) pointers[at] = items + at * size;
  memcpy(list, &pointers, sizeof pointers);
  return items;
}

/* ---- Types ---- */

static lac_status make_dimension(builder *m, int64_t size,
                                 Onnx__TensorShapeProto__Dimension *dimension) {
  onnx__tensor_shape_proto__dimension__init(dimension);
  if (size >= 0) {
    dimension->has_dim_value = true;
    dimension->dim_value = size;
    return LAC_OK;
  }
  char name[32];
  (void)snprintf(name, sizeof name, size == -1 ? "N" : "N%" PRId64, -size);
  dimension->dim_param = laci_arena_text(&m->arena, name);
  return dimension->dim_param ? LAC_OK : fail_memory(m);
}

static lac_status make_value_info(builder *m, int id, Onnx__ValueInfoProto *to) {
  const laci_value *value = &m->graph->values[id];
  const laci_shape *shape = &value->type.shape;
  Onnx__TypeProto *type = laci_arena_alloc(&m->arena, 1, sizeof *type);
  Onnx__TypeProto__Tensor *tensor = laci_arena_alloc(&m->arena, 1, sizeof *tensor);
  Onnx__TensorShapeProto *dims = laci_arena_alloc(&m->arena, 1, sizeof *dims);
  if (!type || !tensor || !dims) return fail_memory(m);
  if (value->type.dtype == LAC_DTYPE_NONE) {
    return laci_fail(m->err, LAC_UNSUPPORTED, "%s: '%s' is of unknown type", m->path, value->name);
  }
  onnx__value_info_proto__init(to);
  onnx__type_proto__init(type);
  onnx__type_proto__tensor__init(tensor);
  onnx__tensor_shape_proto__init(dims);
  to->name = cast_text(value->name);
  to->type = type;
  type->tensor_type = tensor;
  tensor->has_elem_type = true;
  tensor->elem_type = (int32_t)value->type.dtype;
  if (shape->rank < 0) return LAC_OK; /* the shape is unknown */
  tensor->shape = dims;
  dims->n_dim = (size_t)shape->rank;
  Onnx__TensorShapeProto__Dimension *items =
      allocate_message_list(m, dims->n_dim, sizeof *items, &dims->dim);
  if (!items) return fail_memory(m);
  lac_status st = LAC_OK;
  for (int axis = 0; axis < shape->rank && !st; axis++) {
    st = make_dimension(m, shape->dims[axis], &items[axis]);
  }
  return st;
}

static lac_status make_value_infos(builder *m, const int *ids, int n,
                                   Onnx__ValueInfoProto ***list) {
  Onnx__ValueInfoProto *items = allocate_message_list(m, (size_t)n, sizeof *items, list);
  lac_status st = items ? LAC_OK : fail_memory(m);
  for (int at = 0; at < n && !st; at++) st = make_value_info(m, ids[at], &items[at]);
  return st;
}

/* ---- Tensors ---- */

static lac_status make_tensor(builder *m, const laci_stored *stored, Onnx__TensorProto *to) {
  onnx__tensor_proto__init(to);
  if (stored->shape.rank < 0) {
    return laci_fail(m->err, LAC_UNSUPPORTED, "%s: tensor '%s' has more than %d axes", m->path,
                     stored->name, LACI_MAX_RANK);
  }
  to->name = cast_text(stored->name);
  to->has_data_type = true;
  to->data_type = (int32_t)stored->dtype;
  to->n_dims = (size_t)stored->shape.rank;
  to->dims = (int64_t *)(uintptr_t)stored->shape.dims;
  to->has_raw_data = true;
  to->raw_data.len = stored->size_bytes;
  to->raw_data.data = (uint8_t *)(uintptr_t)stored->bytes;
  if (laci_onnx_elements_per_byte(stored->dtype) == 1) return LAC_OK;
  const uint64_t count = stored->size_bytes;
  uint64_t n;
  to->raw_data.data = laci_onnx_pack_elements(&m->arena, stored->dtype, stored->bytes, count);
  (void)laci_onnx_count_packed_bytes(stored->dtype, (int64_t)count, &n);
  to->raw_data.len = n;
  return to->raw_data.data ? LAC_OK : fail_memory(m);
}

/* ---- Nodes ---- */

static void set_bytes_to_text(const char *text, ProtobufCBinaryData *to) {
  to->data = (uint8_t *)(uintptr_t)text;
  to->len = strlen(text);
}

static lac_status make_text_list(builder *m, const laci_attr *attr, Onnx__AttributeProto *to) {
  to->n_strings = attr->n;
  to->strings = laci_arena_alloc(&m->arena, attr->n, sizeof *to->strings);
  if (!to->strings) return fail_memory(m);
  for (size_t at = 0; at < attr->n; at++) set_bytes_to_text(attr->texts[at], &to->strings[at]);
  return LAC_OK;
}

static lac_status make_attribute(builder *m, const laci_node *node, const laci_attr *attr,
                                 Onnx__AttributeProto *to) {
  onnx__attribute_proto__init(to);
  to->name = cast_text(attr->name);
  to->has_type = true;
  switch (attr->kind) {
    case LACI_ATTR_INT:
      to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
      to->has_i = true;
      to->i = attr->i;
      return LAC_OK;
    case LACI_ATTR_FLOAT:
      to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
      to->has_f = true;
      to->f = attr->f;
      return LAC_OK;
    case LACI_ATTR_TEXT:
      to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
      to->has_s = true;
      set_bytes_to_text(attr->text, &to->s);
      return LAC_OK;
    case LACI_ATTR_INTS:
      to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
      to->n_ints = attr->n;
      to->ints = (int64_t *)(uintptr_t)attr->ints;
      return LAC_OK;
    case LACI_ATTR_FLOATS:
      to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
      to->n_floats = attr->n;
      to->floats = (float *)(uintptr_t)attr->floats;
      return LAC_OK;
    case LACI_ATTR_TEXTS:
      to->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
      return make_text_list(m, attr, to);
    default:
      return laci_fail(m->err, LAC_UNSUPPORTED, "%s: %s: attribute '%s' cannot be written", m->path,
                       node->name, attr->name);
  }
}

/** Returns the names of n values; the name of an absent value (id -1) is empty. */
static char **list_value_names(builder *m, const int *ids, int n) {
  char **names = laci_arena_alloc(&m->arena, (size_t)n, sizeof *names);
  for (int at = 0; names && at < n; at++) {
    names[at] = cast_text(ids[at] < 0 ? "" : m->graph->values[ids[at]].name);
  }
  return names;
}

static lac_status make_node(builder *m, const laci_node *node, Onnx__NodeProto *to) {
  onnx__node_proto__init(to);
  if (node->n_captures > 0 || node->body || node->frames || node->version < 1) {
    return laci_fail(m->err, LAC_UNSUPPORTED, "%s: %s (%s) cannot be written: %s", m->path,
                     node->name, node->type,
                     node->version < 1 ? "its version is not known" : "it has bodies");
  }
  to->name = cast_text(node->name);
  to->op_type = cast_text(node->type);
  to->domain = node->domain[0] ? cast_text(node->domain) : NULL;
  to->n_input = (size_t)node->n_inputs;
  to->input = list_value_names(m, node->inputs, node->n_inputs);
  to->n_output = (size_t)node->n_outputs;
  to->output = list_value_names(m, node->outputs, node->n_outputs);
  to->n_attribute = (size_t)node->n_attrs;
  Onnx__AttributeProto *attrs =
      allocate_message_list(m, to->n_attribute, sizeof *attrs, &to->attribute);
  if (!to->input || !to->output || !attrs) return fail_memory(m);
  lac_status st = LAC_OK;
  for (int at = 0; at < node->n_attrs && !st; at++) {
    st = make_attribute(m, node, &node->attrs[at], &attrs[at]);
  }
  return st;
}

/* ---- The model ---- */

/** Sets the versions of the operator sets, one for each domain. All nodes of a domain have the same
 * version. */
static lac_status make_opsets(builder *m, Onnx__ModelProto *model) {
  const laci_graph *g = m->graph;
  Onnx__OperatorSetIdProto *sets =
      allocate_message_list(m, (size_t)g->n_nodes + 1, sizeof *sets, &model->opset_import);
  if (!sets) return fail_memory(m);
  for (int at = 0; at < g->n_nodes; at++) {
    const laci_node *node = &g->nodes[at];
    size_t k = 0;
    while (k < model->n_opset_import && strcmp(sets[k].domain, node->domain) != 0) k++;
    if (k == model->n_opset_import) {
      onnx__operator_set_id_proto__init(&sets[k]);
      sets[k].domain = cast_text(node->domain);
      sets[k].has_version = true;
      sets[k].version = node->version;
      model->n_opset_import++;
    } else if (sets[k].version != node->version) {
      return laci_fail(m->err, LAC_UNSUPPORTED,
                       "%s: %s is of version %d, but nodes before it of version %" PRId64, m->path,
                       node->name, node->version, sets[k].version);
    }
  }
  return LAC_OK;
}

static lac_status make_graph(builder *m, Onnx__GraphProto *to) {
  const laci_graph *g = m->graph;
  onnx__graph_proto__init(to);
  to->name = cast_text("lacuna");
  to->n_node = (size_t)g->n_nodes;
  to->n_initializer = (size_t)g->n_stored;
  to->n_input = (size_t)g->n_inputs;
  to->n_output = (size_t)g->n_outputs;
  Onnx__NodeProto *nodes = allocate_message_list(m, to->n_node, sizeof *nodes, &to->node);
  Onnx__TensorProto *tensors =
      allocate_message_list(m, to->n_initializer, sizeof *tensors, &to->initializer);
  if (!nodes || !tensors) return fail_memory(m);
  lac_status st = make_value_infos(m, g->inputs, g->n_inputs, &to->input);
  if (!st) st = make_value_infos(m, g->outputs, g->n_outputs, &to->output);
  for (int at = 0; at < g->n_stored && !st; at++) st = make_tensor(m, &g->stored[at], &tensors[at]);
  for (int at = 0; at < g->n_nodes && !st; at++) st = make_node(m, &g->nodes[at], &nodes[at]);
  return st;
}

/** Builds the messages of a model and its graph; what they point to is in m->arena. */
static lac_status make_model(builder *m, Onnx__ModelProto *model, Onnx__GraphProto *body) {
  onnx__model_proto__init(model);
  lac_status st = make_graph(m, body);
  if (!st) st = make_opsets(m, model);
  model->has_ir_version = true;
  model->ir_version = m->graph->ir_version > 0 ? m->graph->ir_version : 8;
  model->producer_name = cast_text("lacuna");
  model->producer_version = cast_text(lac_version());
  model->graph = body;
  if (!st && m->graph->class_names)
    st = laci_metadata_build_with_class_names(&m->arena, model, m->graph, &model->metadata_props,
                                              &model->n_metadata_props, m->err);
  return st;
}

lac_status laci_onnx_write(const laci_graph *graph, const char *path, bool force, lac_error *err) {
  builder m = {.graph = graph, .path = path, .err = err};
  Onnx__ModelProto model;
  Onnx__GraphProto body;
  laci_writer *writer = NULL;
  lac_status st = make_model(&m, &model, &body);
  if (!st) st = laci_writer_open(path, &(laci_write_options){.force = force}, &writer, err);
  if (!st)
    st = laci_onnx_serialize_to_writer(&(laci_onnx_message){.base = &model.base, .path = path},
                                       writer, err);
  if (!st) st = laci_writer_commit(writer, err);
  laci_writer_destroy(writer);
  laci_arena_clear(&m.arena);
  return st;
}

lac_status laci_onnx_write_stream(const laci_graph *graph, lac_write_bytes *put, void *context,
                                  lac_error *err) {
  builder m = {.graph = graph, .path = "the model", .err = err};
  Onnx__ModelProto model;
  Onnx__GraphProto body;
  lac_status st = make_model(&m, &model, &body);
  if (!st)
    st = laci_onnx_serialize(&(laci_onnx_message){.base = &model.base, .path = m.path}, put,
                             context, err);
  laci_arena_clear(&m.arena);
  return st;
}
