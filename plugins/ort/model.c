/* SPDX-License-Identifier: Apache-2.0
 * Writes nodes of ONNX Runtime's graph as an ONNX model in memory, and loads that. Small constants
 * are part of its bytes. Others are external data, which a function of this file reads. Next:
 * weights.h, wire.h. */
#include "model.h"

#include "attribute.h"
#include "weights.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Field numbers of ONNX's protobuf messages. */
enum { MODEL_IR = 1, MODEL_OPSET = 8, MODEL_GRAPH = 7 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_TENSOR = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum {
  NODE_INPUT = 1,
  NODE_OUTPUT = 2,
  NODE_NAME = 3,
  NODE_OP = 4,
  NODE_ATTR = 5,
  NODE_DOMAIN = 7
};
enum {
  ATTR_NAME = 1,
  ATTR_FLOAT = 2,
  ATTR_INT = 3,
  ATTR_TEXT = 4,
  ATTR_TENSOR = 5,
  ATTR_GRAPH = 6,
  ATTR_FLOATS = 7,
  ATTR_INTS = 8,
  ATTR_TEXTS = 9,
  ATTR_TYPE = 20
};
/* Values of the field `type` of an attribute (ATTR_TYPE). */
enum { OF_FLOAT = 1, OF_INT, OF_TEXT, OF_TENSOR, OF_GRAPH, OF_FLOATS, OF_INTS, OF_TEXTS };
enum {
  TENSOR_SIZE = 1,
  TENSOR_TYPE = 2,
  TENSOR_NAME = 8,
  TENSOR_RAW = 9,
  TENSOR_EXTERNAL = 13,
  TENSOR_WHERE = 14
};
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2, IS_EXTERNAL = 1 };
enum { INFO_NAME = 1, INFO_TYPE = 2, TYPE_TENSOR = 1, OF_ELEMENTS = 1, OF_SHAPE = 2 };
enum { SHAPE_SIZE = 1, SIZE_VALUE = 1, SIZE_SYMBOL = 2 };

enum {
  INLINE_BYTES = 4096, /* constants up to this size are in the model's bytes */
  DEEPEST_BODY = 16,
};

struct laci_ort_model {
  laci_wire wire;
  laci_ort_weights weights;
  lac_model *model;
  bool packed;
};

/** The state of writing a model. */
typedef struct writer {
  laci_wire *wire;
  laci_ort_weights *weights;
  bool keep;
  int depth; /* how deep the current body is nested */
} writer;

static lac_status write_graph_body(writer *w, const laci_ort *ort, const ort_graph *body,
                                   lac_error *err);

/* ---- Parts ---- */

lac_status laci_ort_find_part_values(laci_ort_graph *graph, const int *nodes, int n_nodes,
                                     laci_ort_part *part, lac_error *err) {
  size_t n_values = (size_t)graph->n_values;
  bool *inside = laci_ort_allocate(&graph->arena, (size_t)graph->n_nodes + 1, 1);
  bool *seen = laci_ort_allocate(&graph->arena, n_values + 1, 1);
  bool *read_outside = laci_ort_allocate(&graph->arena, n_values + 1, 1);
  int *inputs = laci_ort_allocate(&graph->arena, n_values + 1, sizeof *inputs);
  int *outputs = laci_ort_allocate(&graph->arena, n_values + 1, sizeof *outputs);
  *part = (laci_ort_part){.nodes = nodes, .n_nodes = n_nodes, .inputs = inputs, .outputs = outputs};
  if (!inside || !seen || !read_outside || !inputs || !outputs) return laci_ort_fail_memory(err);
  for (int k = 0; k < n_nodes; k++) inside[nodes[k]] = true;
  for (int at = 0; at < graph->n_nodes; at++) {
    const laci_ort_node *node = &graph->nodes[at];
    for (int k = 0; k < node->n_inputs + node->n_implicit; k++) {
      int value = node->inputs[k];
      if (value < 0) continue;
      int producer = graph->values[value].producer;
      if (!inside[at]) {
        read_outside[value] = true;
      } else if (!graph->values[value].constant && (producer < 0 || !inside[producer]) &&
                 !seen[value]) {
        seen[value] = true;
        inputs[part->n_inputs++] = value;
      }
    }
  }
  for (int k = 0; k < n_nodes; k++) {
    const laci_ort_node *node = &graph->nodes[nodes[k]];
    for (int out = 0; out < node->n_outputs; out++) {
      int value = node->outputs[out];
      if (value >= 0 && (graph->values[value].output || read_outside[value]))
        outputs[part->n_outputs++] = value;
    }
  }
  return LAC_OK;
}

/* ---- Values and tensors ---- */

/** named: also writes the symbols of open sizes. A model that is only asked about has them. One
 * that runs has none, since ONNX Runtime allows different sizes for the same symbol. */
static void write_shape(laci_wire *wire, const laci_ort_type *type, bool named) {
  size_t shape = laci_wire_begin_message(wire, OF_SHAPE);
  for (int k = 0; k < type->rank; k++) {
    size_t size = laci_wire_begin_message(wire, SHAPE_SIZE);
    if (type->sizes[k] >= 0) {
      laci_wire_write_int(wire, SIZE_VALUE, type->sizes[k]);
    } else if (named && type->symbols[k] && *type->symbols[k]) {
      laci_wire_write_text(wire, SIZE_SYMBOL, type->symbols[k]);
    }
    laci_wire_end_message(wire, size);
  }
  laci_wire_end_message(wire, shape);
}

/** Writes an input or output of a graph. Shapes of outputs are left to Lacuna to infer. */
static lac_status write_value(writer *w, laci_ort_graph *graph, const ort_value_info *info,
                              const char *name, int field, lac_error *err) {
  laci_ort_type type;
  lac_status st = laci_ort_read_type(graph, info, &type, err);
  if (st) return st;
  size_t value = laci_wire_begin_message(w->wire, field);
  laci_wire_write_text(w->wire, INFO_NAME, name);
  if (type.dtype) {
    size_t of = laci_wire_begin_message(w->wire, INFO_TYPE);
    size_t tensor = laci_wire_begin_message(w->wire, TYPE_TENSOR);
    laci_wire_write_int(w->wire, OF_ELEMENTS, type.dtype);
    if (field == GRAPH_INPUT && type.rank >= 0) write_shape(w->wire, &type, !w->keep);
    laci_wire_end_message(w->wire, tensor);
    laci_wire_end_message(w->wire, of);
  }
  laci_wire_end_message(w->wire, value);
  return LAC_OK;
}

static void write_external_data_entry(laci_wire *wire, const char *key, const char *value) {
  size_t entry = laci_wire_begin_message(wire, TENSOR_EXTERNAL);
  laci_wire_write_text(wire, ENTRY_KEY, key);
  laci_wire_write_text(wire, ENTRY_VALUE, value);
  laci_wire_end_message(wire, entry);
}

/** Writes the weight that was added last as a tensor: with its elements if it is small, else with
 * the name of its external data. */
static lac_status write_tensor(writer *w, int field, const char *name, lac_error *err) {
  laci_wire *wire = w->wire;
  laci_ort_weight *weight = &w->weights->all[w->weights->n - 1];
  uint8_t small[INLINE_BYTES];
  char text[32], file[LAC_ORT_NAME_BYTES];
  laci_ort_write_weight_name(w->weights->n - 1, file);
  size_t tensor = laci_wire_begin_message(wire, field);
  for (int k = 0; k < weight->rank; k++) laci_wire_write_int(wire, TENSOR_SIZE, weight->sizes[k]);
  laci_wire_write_int(wire, TENSOR_TYPE, weight->dtype);
  if (name) laci_wire_write_text(wire, TENSOR_NAME, name);
  if (weight->size <= sizeof small || !name) {
    size_t at = 0;
    const void *bytes = weight->bytes ? weight->bytes : small;
    while (!weight->bytes && at < weight->size) {
      size_t n = (size_t)weight->size - at;
      lac_status st = laci_ort_weights_read_bytes(w->weights, file, at, small + at, &n, err);
      if (st) return st;
      at += n;
    }
    laci_wire_write_bytes(wire, TENSOR_RAW, bytes, (size_t)weight->size);
  } else {
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)weight->size);
    write_external_data_entry(wire, "location", file);
    write_external_data_entry(wire, "offset", "0");
    write_external_data_entry(wire, "length", text);
    laci_wire_write_int(wire, TENSOR_WHERE, IS_EXTERNAL);
  }
  laci_wire_end_message(wire, tensor);
  return LAC_OK;
}

static lac_status write_constant(writer *w, laci_ort_graph *graph, const laci_ort_value *value,
                                 lac_error *err) {
  laci_ort_weight *weight = NULL;
  lac_status st = laci_ort_weights_add_value(w->weights, graph, value, w->keep, &weight, err);
  return st ? st : write_tensor(w, GRAPH_TENSOR, value->name, err);
}

/* ---- Attributes ---- */

static void write_number_attribute(laci_wire *wire, int type, const char *bytes, size_t n_bytes) {
  bool floats = type == LAC_ORT_FLOAT || type == LAC_ORT_FLOATS;
  bool one = type == LAC_ORT_FLOAT || type == LAC_ORT_INT;
  size_t size = floats ? sizeof(float) : sizeof(int64_t);
  for (size_t at = 0; at + size <= n_bytes; at += size) {
    float f = 0;
    int64_t i = 0;
    memcpy(floats ? (void *)&f : (void *)&i, bytes + at, size);
    if (floats) {
      laci_wire_write_float(wire, one ? ATTR_FLOAT : ATTR_FLOATS, f);
    } else {
      laci_wire_write_int(wire, one ? ATTR_INT : ATTR_INTS, i);
    }
  }
}

/** Writes texts that follow each other, each ended by a zero byte. */
static void write_text_attribute(laci_wire *wire, const char *bytes, size_t n_bytes) {
  for (size_t at = 0; at < n_bytes;) {
    size_t n = strnlen(bytes + at, n_bytes - at);
    laci_wire_write_bytes(wire, ATTR_TEXTS, bytes + at, n);
    at += n + 1;
  }
}

static lac_status write_attribute_tensor(writer *w, const laci_ort *ort,
                                         const ort_attribute *attribute, lac_error *err) {
  ort_value *tensor = NULL;
  laci_ort_weight *weight = NULL;
  lac_status st =
      laci_ort_take_failure(ort, ort->attribute_tensor(attribute, &tensor), "a tensor", err);
  if (st) return st;
  if (!tensor) return laci_ort_fail(err, LAC_UNSUPPORTED, "ONNX Runtime has no tensor of it");
  st = laci_ort_weights_add_tensor(w->weights, ort, tensor, false, &weight, err);
  if (!st) st = write_tensor(w, ATTR_TENSOR, NULL, err);
  if (weight) weight->bytes = NULL; /* the tensor is released, and the elements were copied */
  ort->release_value(tensor);
  return st;
}

static int onnx_attribute_type(int type) {
  static const int kinds[] = {
      [LAC_ORT_INT] = OF_INT,     [LAC_ORT_INTS] = OF_INTS,
      [LAC_ORT_FLOAT] = OF_FLOAT, [LAC_ORT_FLOATS] = OF_FLOATS,
      [LAC_ORT_STRING] = OF_TEXT, [LAC_ORT_STRINGS] = OF_TEXTS,
      [LAC_ORT_GRAPH] = OF_GRAPH, [LAC_ORT_ATTRIBUTE_TENSOR] = OF_TENSOR,
  };
  return type > 0 && type < (int)(sizeof kinds / sizeof kinds[0]) ? kinds[type] : 0;
}

static lac_status write_attribute(writer *w, const laci_ort *ort, const ort_attribute *attribute,
                                  lac_error *err) {
  const char *name = NULL;
  int type = 0;
  void *elements = NULL;
  size_t n = 0;
  lac_status st =
      laci_ort_take_failure(ort, ort->attribute_name(attribute, &name), "an attribute", err);
  if (!st)
    st = laci_ort_take_failure(ort, ort->attribute_type(attribute, &type), "an attribute", err);
  if (st || !name || type == LAC_ORT_GRAPH) return st; /* write_bodies writes bodies */
  if (!onnx_attribute_type(type))
    return laci_ort_fail(err, LAC_UNSUPPORTED, "the attribute %s has a type that is unknown here",
                         name);
  size_t begin = laci_wire_begin_message(w->wire, NODE_ATTR);
  laci_wire_write_text(w->wire, ATTR_NAME, name);
  laci_wire_write_int(w->wire, ATTR_TYPE, onnx_attribute_type(type));
  if (type == LAC_ORT_ATTRIBUTE_TENSOR) {
    st = write_attribute_tensor(w, ort, attribute, err);
  } else {
    st = laci_ort_attribute_read(ort, attribute, type, &elements, &n, err);
    if (st) return st;
    if (type == LAC_ORT_STRING) {
      laci_wire_write_bytes(w->wire, ATTR_TEXT, elements, n);
    } else if (type == LAC_ORT_STRINGS) {
      write_text_attribute(w->wire, elements, n);
    } else {
      write_number_attribute(w->wire, type, elements, n);
    }
    free(elements);
  }
  laci_wire_end_message(w->wire, begin);
  return st;
}

static lac_status write_bodies(writer *w, laci_ort_graph *graph, const laci_ort_node *node,
                               lac_error *err) {
  size_t n = (size_t)node->n_bodies;
  const ort_graph **bodies = laci_ort_allocate(&graph->arena, n, sizeof(void *));
  const char **names = laci_ort_allocate(&graph->arena, n, sizeof(char *));
  if (!bodies || !names) return laci_ort_fail_memory(err);
  lac_status st = laci_ort_take_failure(
      graph->ort, graph->ort->bodies(node->node, bodies, n, names), node->name, err);
  for (size_t k = 0; !st && k < n; k++) {
    size_t attribute = laci_wire_begin_message(w->wire, NODE_ATTR);
    laci_wire_write_text(w->wire, ATTR_NAME, names[k] ? names[k] : "");
    laci_wire_write_int(w->wire, ATTR_TYPE, OF_GRAPH);
    size_t body = laci_wire_begin_message(w->wire, ATTR_GRAPH);
    st = write_graph_body(w, graph->ort, bodies[k], err);
    laci_wire_end_message(w->wire, body);
    laci_wire_end_message(w->wire, attribute);
  }
  return st;
}

/* ---- Nodes and graphs ---- */

static lac_status write_node(writer *w, laci_ort_graph *graph, const laci_ort_node *node,
                             lac_error *err) {
  const laci_ort *ort = graph->ort;
  size_t n = 0, begin = laci_wire_begin_message(w->wire, GRAPH_NODE);
  for (int k = 0; k < node->n_inputs; k++)
    laci_wire_write_text(w->wire, NODE_INPUT,
                         node->inputs[k] >= 0 ? graph->values[node->inputs[k]].name : "");
  for (int k = 0; k < node->n_outputs; k++)
    laci_wire_write_text(w->wire, NODE_OUTPUT,
                         node->outputs[k] >= 0 ? graph->values[node->outputs[k]].name : "");
  laci_wire_write_text(w->wire, NODE_NAME, node->name);
  laci_wire_write_text(w->wire, NODE_OP, node->op);
  if (*node->domain) laci_wire_write_text(w->wire, NODE_DOMAIN, node->domain);
  lac_status st = laci_ort_take_failure(ort, ort->n_attributes(node->node, &n), node->name, err);
  if (st) return st;
  const ort_attribute **attributes = laci_ort_allocate(&graph->arena, n, sizeof(void *));
  if (!attributes) return laci_ort_fail_memory(err);
  if (n)
    st = laci_ort_take_failure(ort, ort->attributes(node->node, attributes, n), node->name, err);
  for (size_t k = 0; !st && k < n; k++) st = write_attribute(w, ort, attributes[k], err);
  if (!st && node->n_bodies) st = write_bodies(w, graph, node, err);
  laci_wire_end_message(w->wire, begin);
  return st;
}

/** Writes the constants that nodes of the part read, each once. */
static lac_status write_constants(writer *w, laci_ort_graph *graph, const laci_ort_part *part,
                                  lac_error *err) {
  bool *written = laci_ort_allocate(&graph->arena, (size_t)graph->n_values + 1, 1);
  if (!written) return laci_ort_fail_memory(err);
  for (int k = 0; k < part->n_nodes; k++) {
    const laci_ort_node *node = &graph->nodes[part->nodes[k]];
    for (int in = 0; in < node->n_inputs + node->n_implicit; in++) {
      int value = node->inputs[in];
      if (value < 0 || written[value] || !graph->values[value].constant) continue;
      written[value] = true;
      lac_status st = write_constant(w, graph, &graph->values[value], err);
      if (st) return st;
    }
  }
  return LAC_OK;
}

static lac_status write_part(writer *w, laci_ort_graph *graph, const laci_ort_part *part,
                             lac_error *err) {
  lac_status st = LAC_OK;
  for (int k = 0; !st && k < part->n_nodes; k++)
    st = write_node(w, graph, &graph->nodes[part->nodes[k]], err);
  laci_wire_write_text(w->wire, GRAPH_NAME, "part");
  if (!st) st = write_constants(w, graph, part, err);
  for (int k = 0; !st && k < part->n_inputs; k++) {
    const laci_ort_value *value = &graph->values[part->inputs[k]];
    st = write_value(w, graph, value->info, value->name, GRAPH_INPUT, err);
  }
  for (int k = 0; !st && k < part->n_outputs; k++) {
    const laci_ort_value *value = &graph->values[part->outputs[k]];
    st = write_value(w, graph, value->info, value->name, GRAPH_OUTPUT, err);
  }
  return st;
}

/** Writes values of a body: its inputs, its outputs, or its own constants. */
static lac_status write_body_values(writer *w, laci_ort_graph *body, int field, lac_error *err) {
  const laci_ort *ort = body->ort;
  size_t n = 0;
  ort_status *failed = field == GRAPH_INPUT    ? ort->n_inputs(body->graph, &n)
                       : field == GRAPH_OUTPUT ? ort->n_outputs(body->graph, &n)
                                               : ort->n_initializers(body->graph, &n);
  lac_status st = laci_ort_take_failure(ort, failed, "a body", err);
  if (st || !n) return st;
  const ort_value_info **infos = laci_ort_allocate(&body->arena, n, sizeof(void *));
  if (!infos) return laci_ort_fail_memory(err);
  failed = field == GRAPH_INPUT    ? ort->inputs(body->graph, infos, n)
           : field == GRAPH_OUTPUT ? ort->outputs(body->graph, infos, n)
                                   : ort->initializers(body->graph, infos, n);
  st = laci_ort_take_failure(ort, failed, "a body", err);
  for (size_t k = 0; !st && k < n; k++) {
    laci_ort_value value = {.info = infos[k]};
    if (!infos[k]) continue;
    st = laci_ort_take_failure(ort, ort->value_name(infos[k], &value.name), "a body", err);
    if (st || !value.name) continue;
    st = field == GRAPH_TENSOR ? write_constant(w, body, &value, err)
                               : write_value(w, body, infos[k], value.name, field, err);
  }
  return st;
}

static lac_status write_graph_body(writer *w, const laci_ort *ort, const ort_graph *body,
                                   lac_error *err) {
  laci_ort_graph read = {0};
  if (w->depth == DEEPEST_BODY)
    return laci_ort_fail(err, LAC_UNSUPPORTED, "bodies are more than %d deep", DEEPEST_BODY);
  w->depth++;
  lac_status st = laci_ort_read_graph(&read, ort, body, err);
  for (int k = 0; !st && k < read.n_nodes; k++) st = write_node(w, &read, &read.nodes[k], err);
  laci_wire_write_text(w->wire, GRAPH_NAME, "body");
  if (!st) st = write_body_values(w, &read, GRAPH_TENSOR, err);
  if (!st) st = write_body_values(w, &read, GRAPH_INPUT, err);
  if (!st) st = write_body_values(w, &read, GRAPH_OUTPUT, err);
  laci_ort_graph_clear(&read);
  w->depth--;
  return st;
}

static lac_status write_model(laci_ort_model *made, laci_ort_graph *graph,
                              const laci_ort_part *part, bool keep, lac_error *err) {
  writer w = {.wire = &made->wire, .weights = &made->weights, .keep = keep};
  laci_wire_write_int(w.wire, MODEL_IR, graph->ir_version);
  for (size_t k = 0; k < graph->n_opsets; k++) {
    size_t set = laci_wire_begin_message(w.wire, MODEL_OPSET);
    laci_wire_write_text(w.wire, OPSET_DOMAIN, graph->domains[k] ? graph->domains[k] : "");
    laci_wire_write_int(w.wire, OPSET_VERSION, graph->versions[k]);
    laci_wire_end_message(w.wire, set);
  }
  size_t begin = laci_wire_begin_message(w.wire, MODEL_GRAPH);
  lac_status st = write_part(&w, graph, part, err);
  laci_wire_end_message(w.wire, begin);
  if (!st && made->wire.failed) st = laci_ort_fail_memory(err);
  return st;
}

/* ---- Loading ---- */

static lac_status read_weight_bytes(void *context, const char *name, uint64_t offset, void *to,
                                    size_t *n, lac_error *err) {
  const laci_ort_model *made = context;
  if (*name) return laci_ort_weights_read_bytes(&made->weights, name, offset, to, n, err);
  size_t left = offset < made->wire.n ? made->wire.n - (size_t)offset : 0;
  if (*n > left) *n = left;
  if (*n) memcpy(to, made->wire.bytes + offset, *n);
  return LAC_OK;
}

static lac_status find_weight_size(void *context, const char *name, uint64_t *size,
                                   lac_error *err) {
  const laci_ort_model *made = context;
  const laci_ort_weight *weight = laci_ort_weights_find(&made->weights, name);
  if (!weight) return laci_ort_fail(err, LAC_NOT_FOUND, "no data of the name %s", name);
  *size = weight->size;
  return LAC_OK;
}

lac_status laci_ort_model_make(laci_ort_graph *graph, const laci_ort_part *part, bool keep,
                               laci_ort_model **made, lac_error *err) {
  laci_ort_model *model = calloc(1, sizeof *model);
  lac_load_options options = lac_load_options_default();
  *made = NULL;
  if (!model) return laci_ort_fail_memory(err);
  lac_status st = write_model(model, graph, part, keep, err);
  options.lenient = true;
  options.read = read_weight_bytes;
  options.find_size = find_weight_size;
  options.read_context = model;
  options.context = graph->context;
  options.size_bytes = model->wire.n;
  if (!st) st = lac_model_load(NULL, &options, &model->model, err);
  if (st) {
    laci_ort_model_destroy(model);
    return st;
  }
  *made = model;
  return LAC_OK;
}

lac_status laci_ort_model_unpack(const void *bytes, size_t n, laci_ort_model **made,
                                 lac_error *err) {
  laci_ort_model *model = calloc(1, sizeof *model);
  lac_load_options options = lac_load_options_default();
  *made = NULL;
  if (!model) return laci_ort_fail_memory(err);
  model->packed = true;
  options.bytes = bytes;
  options.size_bytes = n;
  lac_status st = lac_model_load(NULL, &options, &model->model, err);
  if (st) {
    laci_ort_model_destroy(model);
    return st;
  }
  *made = model;
  return LAC_OK;
}

const lac_model *laci_ort_get_loaded_model(const laci_ort_model *made) { return made->model; }

bool laci_ort_model_is_packed(const laci_ort_model *made) { return made->packed; }

uint64_t laci_ort_model_copied_bytes(const laci_ort_model *made) { return made->weights.copied; }

void laci_ort_model_destroy(laci_ort_model *made) {
  if (!made) return;
  lac_model_destroy(made->model);
  laci_ort_weights_clear(&made->weights);
  laci_wire_clear(&made->wire);
  free(made);
}
