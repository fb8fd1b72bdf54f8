/* SPDX-License-Identifier: Apache-2.0
 * Writes an ONNX model of one node, EPContext of com.microsoft. The node holds a whole network in a
 * form that one execution provider of ONNX Runtime knows. The model has the inputs and outputs of
 * the network. plugins/ort has the provider that runs it. */
#include "base/error.h"
#include "base/writer.h"
#include "lacuna/version.h"
#include "onnx/onnx_in.h"

#include <stdint.h>
#include <string.h>

enum { N_ATTRIBUTES = 5, IR_VERSION = 8, OPSET = 17 };

/** The parts of the model that is written. */
typedef struct context_model {
  Onnx__ModelProto model;
  Onnx__GraphProto graph;
  Onnx__NodeProto node, *nodes[1];
  Onnx__AttributeProto attributes[N_ATTRIBUTES], *list[N_ATTRIBUTES];
  Onnx__OperatorSetIdProto sets[2], *set_list[2];
} context_model;

/** Casts away const: protobuf-c does not write to what it packs. */
static void *cast_away_const(const void *text) { return (void *)(uintptr_t)text; }

static Onnx__AttributeProto *add_attribute(context_model *m, size_t at, const char *name) {
  Onnx__AttributeProto *attribute = &m->attributes[at];
  onnx__attribute_proto__init(attribute);
  attribute->name = cast_away_const(name);
  attribute->has_type = true;
  m->list[at] = attribute;
  return attribute;
}

static void add_text_attribute(context_model *m, size_t at, const char *name, const void *bytes,
                               size_t n) {
  Onnx__AttributeProto *attribute = add_attribute(m, at, name);
  attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
  attribute->has_s = true;
  attribute->s = (ProtobufCBinaryData){n, cast_away_const(bytes)};
}

static void add_attribute_of_one(context_model *m, size_t at, const char *name) {
  Onnx__AttributeProto *attribute = add_attribute(m, at, name);
  attribute->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  attribute->has_i = true;
  attribute->i = 1;
}

static bool is_initializer(const Onnx__GraphProto *graph, const char *name) {
  for (size_t k = 0; k < graph->n_initializer; k++)
    if (graph->initializer[k]->name && strcmp(graph->initializer[k]->name, name) == 0) return true;
  return false;
}

/** Copies the list of inputs, without initializers, or the list of outputs. The entries still
 * belong to the file. */
static lac_status copy_inputs_or_outputs(laci_arena *arena, const Onnx__GraphProto *from,
                                         bool inputs, context_model *m, lac_error *err) {
  size_t n = inputs ? from->n_input : from->n_output, n_kept = 0;
  Onnx__ValueInfoProto **values = laci_arena_alloc(arena, n, sizeof(void *));
  char **names = laci_arena_alloc(arena, n, sizeof(char *));
  if (!values || !names) return laci_fail_memory(err, "the model's inputs and outputs");
  for (size_t k = 0; k < n; k++) {
    Onnx__ValueInfoProto *value = inputs ? from->input[k] : from->output[k];
    if (!value->name || (inputs && is_initializer(from, value->name))) continue;
    values[n_kept] = value;
    names[n_kept++] = value->name;
  }
  if (inputs) m->graph.input = values, m->graph.n_input = n_kept;
  else m->graph.output = values, m->graph.n_output = n_kept;
  if (inputs) m->node.input = names, m->node.n_input = n_kept;
  else m->node.output = names, m->node.n_output = n_kept;
  return LAC_OK;
}

static void build_context_model(context_model *m, const void *bytes, size_t n) {
  static const char provider[] = LACI_ONNX_CONTEXT_SOURCE;
  onnx__model_proto__init(&m->model);
  onnx__graph_proto__init(&m->graph);
  onnx__node_proto__init(&m->node);
  for (size_t k = 0; k < 2; k++) {
    onnx__operator_set_id_proto__init(&m->sets[k]);
    m->sets[k].domain = cast_away_const(k ? "com.microsoft" : "");
    m->sets[k].has_version = true;
    m->sets[k].version = k ? 1 : OPSET;
    m->set_list[k] = &m->sets[k];
  }
  m->model.has_ir_version = true;
  m->model.ir_version = IR_VERSION;
  m->model.producer_name = cast_away_const("lacuna");
  m->model.producer_version = cast_away_const(lac_version());
  m->model.graph = &m->graph;
  m->model.opset_import = m->set_list;
  m->model.n_opset_import = 2;
  m->graph.name = cast_away_const("packed");
  m->nodes[0] = &m->node;
  m->graph.node = m->nodes;
  m->graph.n_node = 1;
  m->node.name = cast_away_const("packed");
  m->node.op_type = cast_away_const(LACI_ONNX_CONTEXT_OP);
  m->node.domain = cast_away_const("com.microsoft");
  add_attribute_of_one(m, 0, "main_context");
  add_attribute_of_one(m, 1, "embed_mode");
  add_text_attribute(m, 2, "source", provider, sizeof provider - 1);
  add_text_attribute(m, 3, "ep_sdk_version", lac_version(), strlen(lac_version()));
  add_text_attribute(m, 4, "ep_cache_context", bytes, n);
  m->node.attribute = m->list;
  m->node.n_attribute = N_ATTRIBUTES;
}

lac_status laci_onnx_write_ep_context(const laci_onnx *file, const laci_onnx_context *context,
                                      const char *path, const laci_write_options *how,
                                      uint64_t *size_bytes, lac_error *err) {
  laci_arena arena = {0};
  context_model m;
  laci_writer *writer = NULL;
  build_context_model(&m, context->bytes, context->size_bytes);
  lac_status st = copy_inputs_or_outputs(&arena, file->model->graph, true, &m, err);
  if (!st) st = copy_inputs_or_outputs(&arena, file->model->graph, false, &m, err);
  if (!st) st = laci_writer_open(path, how, &writer, err);
  const laci_onnx_message message = {.base = &m.model.base, .path = path};
  if (!st) st = laci_onnx_serialize_to_writer(&message, writer, err);
  if (!st) st = laci_writer_commit(writer, err);
  if (!st) *size_bytes = protobuf_c_message_get_packed_size(&m.model.base);
  laci_writer_destroy(writer);
  laci_arena_clear(&arena);
  return st;
}
