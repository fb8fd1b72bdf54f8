/* SPDX-License-Identifier: Apache-2.0
 * Copies the part of a classifier's graph that its logits need into a training graph: trained
 * tensors become inputs, batch normalization uses statistics of the batch. Then it adds a loss,
 * gradients and outputs.
 *
 * training_params.c decides which tensors are trained. Next: gradient.c. */
#include "graph/training_graph.h"
#include "tensor/buf.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/plural.h"
#include "graph/gradient.h"
#include "graph/infer.h"
#include "graph/op.h"
#include "graph/ops/shared/op_in.h"
#include "graph/training_in.h"

typedef struct job {
  const laci_graph *model;
  const laci_training_options *options;
  laci_training_graph *to;
  laci_training_role *roles; /* [number of the model's stored tensors] the role of each of them */
  bool *needed;              /* [number of the model's nodes] do outputs of the training graph
                                depend on the node? */
  bool *from_image;          /* [number of the model's values] is the value computed from the
                                image? */
  /* [model's values] index of the value in the new graph; -1: not there */
  int *value_of;
  /* [model's stored] value of the running statistic after the nodes added so far; -1: none */
  int *stat_now;
  int model_logits; /* the value of the model that holds its logits */
  lac_error *err;
} job;

/* ---- Finding the nodes that the outputs need ---- */

static int skip_producer_of_type(const laci_graph *model, int value, const char *type) {
  int producer = model->values[value].producer;
  const laci_node *node = producer >= 0 ? &model->nodes[producer] : NULL;
  bool is_it = node && node->op && node->op->domain == NULL && strcmp(node->type, type) == 0;
  return is_it && node->n_inputs > 0 && node->inputs[0] >= 0 ? node->inputs[0] : value;
}

/** Returns the input of the Softmax or LogSoftmax that computes the output, where only nodes that
 * rename or reshape come after it. Without one, returns the value before all Identity nodes. */
static int find_value_before_softmax(const laci_graph *model, int output) {
  static const char *const shaping[] = {"Identity", "Reshape", "Flatten", "Squeeze"};
  int logits = output;
  for (int value = output, next = output;; value = next) {
    int inner = skip_producer_of_type(model, value, "Softmax");
    if (inner == value) inner = skip_producer_of_type(model, value, "LogSoftmax");
    if (inner != value) return inner;
    for (size_t k = 0; k < sizeof shaping / sizeof *shaping && next == value; k++)
      next = skip_producer_of_type(model, value, shaping[k]);
    if (next == value) return logits;
    if (logits == value && skip_producer_of_type(model, value, "Identity") == next) logits = next;
  }
}

int laci_training_find_logits(const laci_graph *model) {
  return find_value_before_softmax(model, model->outputs[0]);
}

/** Finds the logits: the first output, before a last softmax, for the loss includes a softmax. */
static lac_status find_logits(job *j) {
  const laci_graph *model = j->model;
  if (model->n_inputs != 1 || model->n_outputs < 1) {
    return laci_fail(j->err, LAC_UNSUPPORTED,
                     "the network has %d input%s and %d output%s; one image input and logits are "
                     "wanted for training",
                     model->n_inputs, laci_plural(model->n_inputs), model->n_outputs,
                     laci_plural(model->n_outputs));
  }
  j->model_logits = laci_training_find_logits(model);
  return LAC_OK;
}

static bool has_trained_loss(const job *j) { return j->options->loss <= LACI_LOSS_MATCH; }

static lac_status check_trainable(const job *j, const laci_node *node) {
  const char *why = !node->op || laci_node_control_flow_role(node) ? "cannot be trained"
                    : has_trained_loss(j) && strcmp(node->type, "QuantizeLinear") == 0
                        ? "lets no gradient through: quantized networks cannot be trained"
                        : NULL;
  if (!why) return LAC_OK;
  return laci_fail(j->err, LAC_UNSUPPORTED, "%s: operator %s%s%s %s", node->name, node->domain,
                   node->domain[0] ? "." : "", node->type, why);
}

static void mark_values_from_image(job *j) {
  const laci_graph *model = j->model;
  j->from_image[model->inputs[0]] = true;
  for (int n = 0; n < model->n_nodes; n++) {
    const laci_node *node = &model->nodes[n];
    bool image = false;
    for (int at = 0; at < node->n_inputs; at++)
      image |= node->inputs[at] >= 0 && j->from_image[node->inputs[at]];
    for (int at = 0; at < node->n_outputs; at++)
      if (node->outputs[at] >= 0) j->from_image[node->outputs[at]] = image;
  }
}

static lac_status find_needed_nodes(job *j) {
  const laci_graph *model = j->model;
  bool *read = laci_alloc((size_t)model->n_values, sizeof *read);
  lac_status st = read ? LAC_OK : laci_fail_memory(j->err, "the training graph");
  if (read) read[j->model_logits] = true;
  for (int at = 0; read && at < j->options->n_blocks; at++) read[j->options->blocks[at]] = true;
  for (int n = model->n_nodes - 1; n >= 0 && !st; n--) {
    const laci_node *node = &model->nodes[n];
    for (int at = 0; at < node->n_outputs; at++)
      j->needed[n] |= node->outputs[at] >= 0 && read[node->outputs[at]];
    if (!j->needed[n]) continue;
    st = check_trainable(j, node);
    for (int at = 0; at < node->n_inputs; at++)
      if (node->inputs[at] >= 0) read[node->inputs[at]] = true;
    for (int at = 0; at < node->n_captures; at++) read[node->captures[at]] = true;
  }
  laci_free(read);
  return st;
}

/* ---- Values ---- */

/** Returns a name that is free in the new graph and in the model, whose values may be copied
 * later. */
static const char *make_free_name(const job *j, const char *wanted, char *text, size_t size) {
  (void)snprintf(text, size, "%s", wanted);
  for (int suffix = 1;
       laci_graph_find_value(j->to->graph, text) >= 0 || laci_graph_find_value(j->model, text) >= 0;
       suffix++)
    (void)snprintf(text, size, "%.400s_%d", wanted, suffix);
  return text;
}

/** Adds a graph input of that type, and returns its value, or -1. */
static int add_graph_input(job *j, const char *name, const laci_type *type, lac_status *st) {
  laci_graph *graph = j->to->graph;
  *st = laci_graph_add_input(graph, name, type, j->err);
  return *st ? -1 : laci_graph_find_value(graph, name);
}

static lac_status add_image_input(job *j) {
  int input = j->model->inputs[0];
  const laci_value *value = &j->model->values[input];
  const laci_shape *given = &j->options->image;
  char text[128];
  laci_type type = value->type;
  lac_status st;
  if (type.shape.rank < 0 && given->rank) type.shape.rank = given->rank + 1;
  for (int axis = 1; axis < type.shape.rank && given->rank == type.shape.rank - 1; axis++) {
    bool open = value->type.shape.rank < 0 || type.shape.dims[axis] < 0;
    if (open) type.shape.dims[axis] = given->dims[axis - 1];
  }
  if (type.shape.rank > 0) type.shape.dims[0] = j->options->batch;
  if (type.shape.rank < 2 || !laci_shape_is_known(&type.shape) ||
      !laci_dtype_is_float(type.dtype)) {
    return laci_fail(j->err, LAC_BAD_SHAPE,
                     "the input '%s' is %s %s, wanted images of a known size", value->name,
                     lac_dtype_name(type.dtype),
                     laci_shape_text(&value->type.shape, text, sizeof text));
  }
  j->to->images = j->value_of[input] = add_graph_input(j, value->name, &type, &st);
  return st;
}

static lac_status add_parameter_input(job *j, int stored, laci_param_kind kind) {
  const laci_stored *from = &j->model->stored[stored];
  laci_type type = {.dtype = from->dtype, .shape = from->shape};
  lac_status st;
  int input = add_graph_input(j, from->name, &type, &st);
  j->value_of[from->value] = input;
  j->to->params[j->to->n_params++] =
      (laci_training_param){.name = j->to->graph->values[input < 0 ? 0 : input].name,
                            .stored = stored,
                            .input = input,
                            .gradient = -1,
                            .shape = from->shape,
                            .count = laci_shape_count(&from->shape),
                            .kind = kind};
  return st;
}

static lac_status add_statistic_input(job *j, int stored) {
  const laci_stored *from = &j->model->stored[stored];
  laci_type type = {.dtype = from->dtype, .shape = from->shape};
  lac_status st;
  int input = add_graph_input(j, from->name, &type, &st);
  j->value_of[from->value] = j->stat_now[stored] = input;
  j->to->stats[j->to->n_stats++] =
      (laci_training_stat){.name = j->to->graph->values[input < 0 ? 0 : input].name,
                           .stored = stored,
                           .input = input,
                           .update = -1,
                           .count = laci_shape_count(&from->shape)};
  return st;
}

static lac_status add_stored_constant(job *j, int stored) {
  laci_stored copy = j->model->stored[stored];
  int id;
  copy.spilled = false;
  copy.owned = NULL; /* the bytes are the model's, which must outlive the training graph */
  lac_status st = laci_graph_add_stored(j->to->graph, &copy, &id, j->err);
  if (!st) j->value_of[j->model->stored[stored].value] = j->to->graph->stored[id].value;
  return st;
}

static lac_status add_stored_tensors(job *j) {
  lac_status st = LAC_OK;
  for (int at = 0; at < j->model->n_stored && !st; at++) {
    const laci_training_role role = j->roles[at];
    j->stat_now[at] = -1;
    if (role == LACI_TRAINING_UNUSED) continue;
    if (role == LACI_TRAINING_STATISTIC) st = add_statistic_input(j, at);
    else if (role == LACI_TRAINING_CONSTANT || !has_trained_loss(j))
      st = add_stored_constant(j, at);
    else st = add_parameter_input(j, at, (laci_param_kind)role);
  }
  return st;
}

/* ---- Nodes ---- */

/** Finds the new graph's values of a node's inputs, and adds those of its outputs. */
static bool map_values_of_node(job *j, const laci_node *node, int *inputs, int *outputs) {
  for (int at = 0; at < node->n_inputs; at++)
    inputs[at] = node->inputs[at] < 0 ? -1 : j->value_of[node->inputs[at]];
  for (int at = 0; at < node->n_outputs; at++) {
    outputs[at] = -1;
    if (node->outputs[at] < 0) continue;
    outputs[at] = laci_graph_intern_value(j->to->graph, j->model->values[node->outputs[at]].name);
    if (outputs[at] < 0) return false;
    j->value_of[node->outputs[at]] = outputs[at];
  }
  return true;
}

/** Adds the outputs after Y, so that there are n: statistics of the batch, then the new running
 * statistics. */
static lac_status add_statistic_outputs(job *j, const laci_node *node, int *outputs, int n) {
  static const char *const names[] = {"", "batch_mean", "batch_var", "running_mean", "running_var"};
  for (int at = 1; at < n; at++) {
    char wanted[500], text[520];
    (void)snprintf(wanted, sizeof wanted, "%.400s/%s", node->name, names[at]);
    outputs[at] =
        laci_graph_intern_value(j->to->graph, make_free_name(j, wanted, text, sizeof text));
    if (outputs[at] < 0) return laci_fail_memory(j->err, "the training graph");
  }
  return LAC_OK;
}

/** Adds a BatchNormTrain node with the attributes attrs and n_outputs outputs. */
static lac_status add_norm_node(job *j, const laci_node *node, const int *inputs,
                                const int *outputs, int n_outputs, const laci_attr attrs[2]) {
  int id;
  return laci_graph_add_node(j->to->graph,
                             &(laci_node){.name = node->name,
                                          .type = "BatchNormTrain",
                                          .domain = "lacuna",
                                          .version = 1,
                                          .n_inputs = 5,
                                          .n_outputs = n_outputs,
                                          .inputs = inputs,
                                          .outputs = outputs,
                                          .n_attrs = 2,
                                          .attrs = attrs},
                             &id, j->err);
}

static lac_status add_batch_norm(job *j, const laci_node *node, const int *inputs, int y) {
  int outputs[5] = {y}, from[5];
  const int stored[] = {laci_training_find_stored(j->model, node->inputs[3]),
                        laci_training_find_stored(j->model, node->inputs[4])};
  const float momentum = j->options->batch_statistics ? 0 : laci_node_float(node, "momentum", 0.9f);
  const laci_attr attrs[] = {laci_attr_float("epsilon", laci_node_float(node, "epsilon", 1e-5f)),
                             laci_attr_float("momentum", momentum)};
  lac_status st = add_statistic_outputs(j, node, outputs, 5);
  if (st) return st;
  for (int at = 0; at < 3; at++) from[at] = inputs[at];
  /* two layers may share statistics: then the second layer updates the result of the first */
  for (int at = 0; at < 2; at++) {
    from[3 + at] = j->stat_now[stored[at]];
    j->stat_now[stored[at]] = outputs[3 + at];
  }
  return add_norm_node(j, node, from, outputs, 5, attrs);
}

/** Adds a BatchNormTrain node whose statistics are constants. */
static lac_status add_norm_with_fixed_statistics(job *j, const laci_node *node, const int *inputs,
                                                 int y) {
  int outputs[3] = {y};
  const laci_attr attrs[] = {laci_attr_float("epsilon", laci_node_float(node, "epsilon", 1e-5f)),
                             laci_attr_int("fixed", 1)};
  lac_status st = add_statistic_outputs(j, node, outputs, 3);
  return st ? st : add_norm_node(j, node, inputs, outputs, 3, attrs);
}

/** Replaces the batch size in a Reshape's wanted shape. Exporters write the batch that they traced
 * into it: [1, -1]. Applies where the Reshape's data comes from the image and its first size is
 * that batch. */
static lac_status replace_reshape_batch(job *j, const laci_node *node, int *inputs) {
  const laci_graph *model = j->model;
  if (node->domain[0] || strcmp(node->type, "Reshape") != 0 || !laci_has_input(node, 1))
    return LAC_OK;
  const laci_shape *image = &model->values[model->inputs[0]].type.shape;
  const laci_shape *x = &model->values[node->inputs[0]].type.shape;
  const laci_buf *shape = laci_known_content(model, node, 1);
  bool traced = image->rank > 0 && image->dims[0] >= 1 && image->dims[0] != j->to->batch &&
                x->rank > 0 && x->dims[0] == image->dims[0] && j->from_image[node->inputs[0]] &&
                shape && shape->i && shape->count >= 1 && shape->count <= LACI_MAX_RANK &&
                shape->i[0] == image->dims[0];
  if (!traced) return LAC_OK;
  char wanted[500], name[520];
  (void)snprintf(wanted, sizeof wanted, "%.400s/shape", node->name);
  laci_stored stored = {.name = make_free_name(j, wanted, name, sizeof name),
                        .dtype = LAC_DTYPE_I64,
                        .shape = shape->shape,
                        .size_bytes = (size_t)shape->count * sizeof *shape->i};
  int64_t *sizes = laci_arena_alloc(j->to->graph->arena, (size_t)shape->count, sizeof *sizes);
  if (!sizes) return laci_fail_memory(j->err, "the training graph");
  memcpy(sizes, shape->i, stored.size_bytes);
  sizes[0] = j->to->batch;
  stored.bytes = (const uint8_t *)sizes;
  int id;
  lac_status st = laci_graph_add_stored(j->to->graph, &stored, &id, j->err);
  if (!st) inputs[1] = j->to->graph->stored[id].value;
  return st;
}

/** Copies a node without changes. */
static lac_status copy_node(job *j, const laci_node *node, const int *inputs, const int *outputs) {
  laci_node copy = *node;
  int id;
  copy.inputs = inputs;
  copy.outputs = outputs;
  copy.n_captures = 0;
  return laci_graph_add_node_copy(j->to->graph, &copy, &id, j->err);
}

static lac_status add_trained_or_copied_node(job *j, const laci_node *node) {
  size_t n_in = (size_t)node->n_inputs, n_out = (size_t)node->n_outputs;
  int *inputs = laci_alloc(n_in + n_out + 1, sizeof *inputs);
  lac_status st = LAC_OK;
  if (!inputs || !map_values_of_node(j, node, inputs, inputs + n_in)) {
    st = laci_fail_memory(j->err, "the training graph");
  } else if (laci_training_is_norm_with_batch_statistics(j->model, node, j->options)) {
    st = add_batch_norm(j, node, inputs, inputs[n_in]);
  } else if (laci_training_is_norm_with_fixed_statistics(j->model, node, j->options)) {
    st = add_norm_with_fixed_statistics(j, node, inputs, inputs[n_in]);
  } else {
    st = replace_reshape_batch(j, node, inputs);
    if (!st) st = copy_node(j, node, inputs, inputs + n_in);
  }
  laci_free(inputs);
  return st;
}

/* ---- Adding loss, gradients and outputs ---- */

/** Appends a copy of the node description `like`, which has one output; returns that output, or
 * -1. */
static int append_node(job *j, const laci_node *like, const char *name, lac_status *st) {
  char text[520];
  int output = laci_graph_intern_value(j->to->graph, make_free_name(j, name, text, sizeof text)),
      id;
  laci_node node = *like;
  node.name = text;
  node.n_outputs = 1;
  node.outputs = &output;
  node.version = node.domain ? 1 : 22;
  *st = output < 0 ? laci_fail_memory(j->err, "the training graph")
                   : laci_graph_add_node(j->to->graph, &node, &id, j->err);
  return *st ? -1 : output;
}

/** Makes the logits [batch, classes], by removing axes of size 1 after the classes. */
static lac_status reshape_logits_to_classes(job *j) {
  laci_training_graph *to = j->to;
  laci_shape shape = to->graph->values[j->value_of[j->model_logits]].type.shape;
  char text[128];
  lac_status st = LAC_OK;
  bool fits = shape.rank >= 2 && laci_shape_is_known(&shape) && shape.dims[0] == to->batch;
  for (int axis = 2; axis < shape.rank && fits; axis++) fits = shape.dims[axis] == 1;
  if (!fits) {
    return laci_fail(
        j->err, LAC_BAD_SHAPE, "the output '%s' is %s for a batch of %lld, wanted [%lld, classes]",
        j->model->values[j->model->outputs[0]].name, laci_shape_text(&shape, text, sizeof text),
        (long long)to->batch, (long long)to->batch);
  }
  to->n_classes = shape.dims[1];
  to->logits = j->value_of[j->model_logits];
  if (shape.rank > 2)
    to->logits = append_node(
        j, &(laci_node){.type = "Flatten", .n_inputs = 1, .inputs = &to->logits}, "logits", &st);
  return st;
}

/** Adds to the loss the squared error between a value of the model and its target, which becomes a
 * new graph input. */
static lac_status add_squared_error(job *j, int model_value, float factor, bool relative) {
  laci_training_graph *to = j->to;
  const char *name = j->model->values[model_value].name;
  const int x = j->value_of[model_value];
  const laci_type type = to->graph->values[x].type;
  char wanted[500], text[520];
  lac_status st;
  if (!laci_shape_is_known(&type.shape) || !laci_dtype_is_float(type.dtype)) {
    return laci_fail(j->err, LAC_UNSUPPORTED,
                     "%s: a value of %s %s, wanted floats of a known size to match", name,
                     lac_dtype_name(type.dtype), laci_shape_text(&type.shape, text, sizeof text));
  }
  (void)snprintf(wanted, sizeof wanted, "%.400s/target", name);
  int target = add_graph_input(j, make_free_name(j, wanted, text, sizeof text), &type, &st);
  if (st) return st;
  to->targets[to->n_targets++] = target;
  const int inputs[] = {x, target};
  const laci_attr attrs[] = {laci_attr_float("factor", factor),
                             laci_attr_int("relative", relative)};
  (void)snprintf(wanted, sizeof wanted, "%.400s/error", name);
  const laci_node error = {.type = "SquaredError",
                           .domain = "lacuna",
                           .n_inputs = 2,
                           .inputs = inputs,
                           .n_attrs = 2,
                           .attrs = attrs};
  int sum[] = {to->loss, append_node(j, &error, wanted, &st)};
  if (!st && sum[0] >= 0)
    sum[1] = append_node(j, &(laci_node){.type = "Add", .n_inputs = 2, .inputs = sum}, "loss", &st);
  to->loss = sum[1];
  return st;
}

/** Adds the loss of LACI_LOSS_MATCH: the distance of logits and blocks from their targets. */
static lac_status add_match_loss(job *j) {
  laci_training_graph *to = j->to;
  const laci_training_options *o = j->options;
  const laci_shape *shape = &to->graph->values[j->value_of[j->model_logits]].type.shape;
  char text[128];
  if (shape->rank < 1 || !laci_shape_is_known(shape) || shape->dims[0] != to->batch) {
    return laci_fail(
        j->err, LAC_BAD_SHAPE, "the output '%s' is %s for a batch of %lld, wanted [%lld, ...]",
        j->model->values[j->model->outputs[0]].name, laci_shape_text(shape, text, sizeof text),
        (long long)to->batch, (long long)to->batch);
  }
  to->targets = laci_alloc((size_t)o->n_blocks + 1, sizeof *to->targets);
  if (!to->targets) return laci_fail_memory(j->err, "the training graph");
  to->logits = j->value_of[j->model_logits];
  to->n_classes = laci_shape_count(shape) / to->batch;
  lac_status st = add_squared_error(j, j->model_logits, 1.0f / (float)to->batch, false);
  for (int at = 0; at < o->n_blocks && !st; at++)
    st = add_squared_error(j, o->blocks[at], 1.0f / (float)o->n_blocks, true);
  return st;
}

static lac_status add_loss(job *j) {
  laci_training_graph *to = j->to;
  char text[520];
  if (j->options->loss == LACI_LOSS_MATCH) return add_match_loss(j);
  lac_status st = reshape_logits_to_classes(j);
  if (st) return st;
  laci_type labels = {.dtype = to->graph->values[j->value_of[j->model_logits]].type.dtype,
                      .shape = {.rank = 2, .dims = {to->batch, to->n_classes}}};
  to->labels = add_graph_input(j, make_free_name(j, "labels", text, sizeof text), &labels, &st);
  if (st) return st;
  const int inputs[] = {to->logits, to->labels};
  to->loss = append_node(
      j,
      &(laci_node){
          .type = "SoftmaxCrossEntropy", .domain = "lacuna", .n_inputs = 2, .inputs = inputs},
      "loss", &st);
  return st;
}

static lac_status add_gradients(job *j) {
  laci_training_graph *to = j->to;
  size_t n = (size_t)to->n_params;
  int *params = laci_alloc(2 * n + 1, sizeof *params), *grads = params + n;
  if (!params) return laci_fail_memory(j->err, "the training graph");
  for (size_t at = 0; at < n; at++) params[at] = to->params[at].input;
  lac_status st = laci_gradient_build(to->graph, to->loss, to->n_params, params, grads, j->err);
  for (size_t at = 0; at < n && !st; at++) to->params[at].gradient = grads[at];
  laci_free(params);
  return st;
}

/** Makes *value a graph output. A value that is an output already, or is stored, gets a copy that
 * becomes the output. */
static lac_status add_or_copy_output(job *j, int *value, const char *name) {
  laci_graph *graph = j->to->graph;
  lac_status st = LAC_OK;
  char wanted[500];
  if (graph->values[*value].is_output || graph->values[*value].producer < 0) {
    (void)snprintf(wanted, sizeof wanted, "%.400s/copy", name);
    int from = *value;
    *value = append_node(j, &(laci_node){.type = "Identity", .n_inputs = 1, .inputs = &from},
                         wanted, &st);
  }
  return st ? st : laci_graph_add_output(graph, graph->values[*value].name, j->err);
}

/** Makes outputs of the values that are targets for another training graph (LACI_LOSS_TARGETS). */
static lac_status add_target_outputs(job *j) {
  const laci_training_options *o = j->options;
  laci_training_graph *to = j->to;
  lac_status st = LAC_OK;
  to->targets = laci_alloc((size_t)o->n_blocks + 1, sizeof *to->targets);
  if (!to->targets) return laci_fail_memory(j->err, "the training graph");
  for (int at = 0; at <= o->n_blocks && !st; at++) {
    const int value = at == 0 ? j->model_logits : o->blocks[at - 1];
    int *target = &to->targets[to->n_targets++];
    *target = j->value_of[value];
    st = add_or_copy_output(j, target, j->model->values[value].name);
  }
  return st;
}

static lac_status add_graph_outputs(job *j) {
  laci_training_graph *to = j->to;
  lac_status st = LAC_OK;
  if (j->options->loss == LACI_LOSS_TARGETS) st = add_target_outputs(j);
  if (has_trained_loss(j)) st = add_or_copy_output(j, &to->loss, "loss");
  if (has_trained_loss(j) && !st) st = add_or_copy_output(j, &to->logits, "logits");
  for (int at = 0; at < to->n_params && !st; at++)
    st = add_or_copy_output(j, &to->params[at].gradient, to->params[at].name);
  for (int at = 0; at < to->n_stats && !st; at++) {
    to->stats[at].update = j->stat_now[to->stats[at].stored];
    st = add_or_copy_output(j, &to->stats[at].update, to->stats[at].name);
  }
  return st;
}

static lac_status finish_and_infer_graph(job *j) {
  lac_status st = laci_graph_finish(j->to->graph, j->err);
  return st ? st : laci_graph_infer(j->to->graph, NULL, 0, j->err);
}

static lac_status build_training_graph(job *j) {
  const laci_graph *model = j->model;
  lac_status st = find_logits(j);
  if (st) return st;
  mark_values_from_image(j);
  st = find_needed_nodes(j);
  if (!st) st = laci_training_find_roles(model, j->needed, j->options, j->roles, j->err);
  if (!st) st = add_image_input(j);
  if (!st) st = add_stored_tensors(j);
  if (!st && j->to->n_params == 0 && has_trained_loss(j))
    st = laci_fail(j->err, LAC_UNSUPPORTED,
                   "the network has nothing to train: no weight is stored in f32 or f64");
  for (int n = 0; n < model->n_nodes && !st; n++)
    if (j->needed[n]) st = add_trained_or_copied_node(j, &model->nodes[n]);
  if (!st) st = finish_and_infer_graph(j); /* infers sizes, which labels and rules need */
  if (!st && has_trained_loss(j)) st = add_loss(j);
  if (!st && has_trained_loss(j)) st = finish_and_infer_graph(j);
  j->to->n_forward = j->to->graph->n_nodes;
  if (!st && has_trained_loss(j)) st = add_gradients(j);
  if (!st) st = add_graph_outputs(j);
  return st ? st : finish_and_infer_graph(j);
}

static bool is_model_valid_for_batch(const job *j, int64_t batch) {
  laci_training_options how = *j->options;
  laci_training_graph *made;
  how.batch = batch;
  if (laci_training_graph_create(j->model, &how, &made, NULL)) return false;
  laci_training_graph_destroy(made);
  return true;
}

/** Explains an error of shapes: where the model works with the batch that the file fixes, but not
 * with the wanted batch, the error names that cause. */
static lac_status explain_batch_error(const job *j, lac_status st) {
  const laci_value *images = &j->model->values[j->model->inputs[0]];
  int64_t fixed = images->type.shape.rank > 0 ? images->type.shape.dims[0] : -1;
  if (st != LAC_BAD_SHAPE || fixed < 1 || fixed == j->to->batch || !j->err) return st;
  if (!is_model_valid_for_batch(j, fixed)) return st;
  char text[sizeof j->err->text];
  (void)snprintf(text, sizeof text, "%s", j->err->text);
  return laci_fail(j->err, st,
                   "input '%s' fixes a batch of %lld, and the network works in no batch of %lld "
                   "(%s): wanted that batch size, or a file that leaves the batch open",
                   images->name, (long long)fixed, (long long)j->to->batch, text);
}

lac_status laci_training_graph_create(const laci_graph *model, const laci_training_options *options,
                                      laci_training_graph **made, lac_error *err) {
  size_t n_stored = (size_t)model->n_stored, n_values = (size_t)model->n_values;
  job j = {.model = model, .options = options, .err = err};
  lac_status st = LAC_NO_MEMORY;
  *made = NULL;
  if (options->batch < 1 || options->batch > INT32_MAX)
    return laci_fail(err, LAC_BAD_SHAPE, "a batch of %lld", (long long)options->batch);
  j.to = laci_alloc(1, sizeof *j.to);
  j.roles = laci_alloc(n_stored + 1, sizeof *j.roles);
  j.from_image = laci_alloc(n_values + 1, sizeof *j.from_image);
  j.needed = laci_alloc((size_t)model->n_nodes + 1, sizeof *j.needed);
  j.value_of = laci_alloc(n_values + 1, sizeof *j.value_of);
  j.stat_now = laci_alloc(n_stored + 1, sizeof *j.stat_now);
  if (j.to) {
    j.to->batch = options->batch;
    j.to->labels = j.to->loss = j.to->logits = -1;
    j.to->params = laci_alloc(n_stored + 1, sizeof *j.to->params);
    j.to->stats = laci_alloc(n_stored + 1, sizeof *j.to->stats);
  }
  bool allocated = j.to && j.roles && j.from_image && j.needed && j.value_of && j.stat_now &&
                   j.to->params && j.to->stats;
  if (allocated) st = laci_graph_create(&j.to->graph, err);
  else (void)laci_fail_memory(err, "the training graph");
  for (size_t v = 0; v < n_values && !st; v++) j.value_of[v] = -1;
  if (!st) st = build_training_graph(&j);
  if (st && allocated && model->n_inputs == 1) st = explain_batch_error(&j, st);
  laci_free(j.roles);
  laci_free(j.needed);
  laci_free(j.from_image);
  laci_free(j.value_of);
  laci_free(j.stat_now);
  if (st) laci_training_graph_destroy(j.to);
  else *made = j.to;
  return st;
}

void laci_training_graph_destroy(laci_training_graph *made) {
  if (!made) return;
  laci_graph_destroy(made->graph);
  laci_free(made->targets);
  laci_free(made->params);
  laci_free(made->stats);
  laci_free(made);
}
