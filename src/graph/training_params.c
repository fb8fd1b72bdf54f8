/* SPDX-License-Identifier: Apache-2.0
 * Decides which stored tensors of a network are trained, and what kind of parameter each is.
 *
 * Files do not tell. A tensor at a port that the operator defines as its parameter (weight, bias,
 * scale) is trained. Any other float tensor is trained too (position embeddings, class tokens,
 * scales of a decomposed normalization), with three exceptions: it has one element, it comes from a
 * Constant node, or it is applied to the image before any weight is (preprocessing: mean,
 * deviation).
 */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/op.h"
#include "graph/training_in.h"

/** Ports that are parameters by the operator's own definition, in addition to op->weights. */
typedef struct named_port {
  const char *type;
  int port;
  laci_training_role role;
} named_port;

static const named_port named_ports[] = {
    {"Conv", 2, LACI_TRAINING_BIAS},
    {"ConvTranspose", 2, LACI_TRAINING_BIAS},
    {"Gemm", 2, LACI_TRAINING_BIAS},
    {"PRelu", 1, LACI_TRAINING_BIAS},
    {"Gather", 0, LACI_TRAINING_WEIGHT},
    {"BatchNormalization", 1, LACI_TRAINING_NORM},
    {"BatchNormalization", 2, LACI_TRAINING_NORM},
    {"LayerNormalization", 1, LACI_TRAINING_NORM},
    {"LayerNormalization", 2, LACI_TRAINING_NORM},
    {"InstanceNormalization", 1, LACI_TRAINING_NORM},
    {"InstanceNormalization", 2, LACI_TRAINING_NORM},
    {"GroupNormalization", 1, LACI_TRAINING_NORM},
    {"GroupNormalization", 2, LACI_TRAINING_NORM},
};

/** Ports that hold settings: they are never trained, whatever their size. */
static const named_port settings[] = {
    {"BatchNormalization", 3, LACI_TRAINING_CONSTANT},
    {"BatchNormalization", 4, LACI_TRAINING_CONSTANT},
    {"Clip", 1, LACI_TRAINING_CONSTANT},
    {"Clip", 2, LACI_TRAINING_CONSTANT},
    {"Pad", 2, LACI_TRAINING_CONSTANT},
    {"Resize", 1, LACI_TRAINING_CONSTANT},
    {"Resize", 2, LACI_TRAINING_CONSTANT},
    {"Upsample", 1, LACI_TRAINING_CONSTANT},
    {"Dropout", 1, LACI_TRAINING_CONSTANT},
};

static bool find_port_role(const named_port *ports, size_t n, const laci_node *node, int port,
                           laci_training_role *role) {
  for (size_t at = 0; at < n; at++) {
    if (ports[at].port != port || strcmp(ports[at].type, node->type) != 0) continue;
    *role = ports[at].role;
    return true;
  }
  return false;
}

static bool is_identity(const laci_node *node) {
  return strcmp(node->type, "Identity") == 0 && !node->domain[0] && node->n_inputs == 1;
}

int laci_training_find_stored(const laci_graph *model, int value) {
  while (value >= 0 && model->values[value].producer >= 0 &&
         is_identity(&model->nodes[model->values[value].producer]))
    value = model->nodes[model->values[value].producer].inputs[0];
  return value >= 0 ? model->values[value].stored : -1;
}

static bool is_per_channel_batch_norm(const laci_graph *model, const laci_node *node) {
  if (strcmp(node->type, "BatchNormalization") != 0) return false;
  if (node->domain[0] || node->n_inputs < 5) return false;
  if (node->version < 9 && laci_node_int(node, "spatial", 1) == 0) return false;
  for (int port = 1; port < 5; port++)
    if (node->inputs[port] < 0) return false;
  const laci_shape *x = &model->values[node->inputs[0]].type.shape;
  return (x->rank < 0 || x->rank >= 2) && laci_training_find_stored(model, node->inputs[3]) >= 0 &&
         laci_training_find_stored(model, node->inputs[4]) >= 0;
}

bool laci_training_is_norm_with_batch_statistics(const laci_graph *model, const laci_node *node,
                                                 const laci_training_options *options) {
  return !options->keep_statistics && is_per_channel_batch_norm(model, node);
}

bool laci_training_is_norm_with_fixed_statistics(const laci_graph *model, const laci_node *node,
                                                 const laci_training_options *options) {
  return options->keep_statistics && options->loss <= LACI_LOSS_MATCH &&
         laci_node_int(node, "training_mode", 0) == 0 && is_per_channel_batch_norm(model, node);
}

typedef struct role_walk {
  const laci_graph *model;
  const laci_training_options *options;
  laci_training_role *roles;
  int clash; /* a tensor that one node reads as a statistic and another as a parameter; -1: none */
  bool *from_image, *weighted; /* [values] from_image: the value is computed from the image;
                                  weighted: it is computed from a trained tensor */
} role_walk;

/** Does the operator define input `port` as a parameter? Then *role is its role. */
static bool is_declared_parameter(const role_walk *w, const laci_node *node, int port,
                                  laci_training_role *role) {
  laci_weight_axes axes[2];
  int n = node->op->weights ? node->op->weights(w->model, node, axes) : 0;
  for (int at = 0; at < n; at++) {
    *role = LACI_TRAINING_WEIGHT;
    if (axes[at].port == port) return true;
  }
  size_t n_named = sizeof named_ports / sizeof *named_ports;
  return !node->domain[0] && find_port_role(named_ports, n_named, node, port, role);
}

/** Does the image reach the node before any trained tensor has acted on it? */
static bool is_image_preprocessing(const role_walk *w, const laci_node *node) {
  bool image = false;
  for (int at = 0; at < node->n_inputs; at++) {
    int value = node->inputs[at];
    if (value < 0) continue;
    if (w->weighted[value]) return false;
    image |= w->from_image[value];
  }
  return image;
}

/** Returns the role that the stored tensor gets from being read at that port. */
static laci_training_role find_role_of_tensor(const role_walk *w, const laci_node *node, int port,
                                              const laci_stored *stored) {
  laci_training_role role;
  bool is_float = stored->dtype == LAC_DTYPE_F32 || stored->dtype == LAC_DTYPE_F64;
  if (laci_training_is_norm_with_batch_statistics(w->model, node, w->options) && port >= 3)
    return LACI_TRAINING_STATISTIC;
  if (!is_float || stored->shape.rank < 0) return LACI_TRAINING_CONSTANT;
  if (is_declared_parameter(w, node, port, &role)) return role;
  if (find_port_role(settings, sizeof settings / sizeof *settings, node, port, &role)) return role;
  bool number = laci_shape_count(&stored->shape) <= 1 || stored->in_constant_node;
  if (number || is_image_preprocessing(w, node)) return LACI_TRAINING_CONSTANT;
  /* the node passes a stored tensor on unchanged: a Transpose, Cast, Reshape or similar */
  bool carried = node->n_inputs > 0 && laci_training_find_stored(w->model, node->inputs[0]) >= 0 &&
                 (node->n_inputs == 1 || node->op->moves_data);
  return carried && stored->shape.rank == 2 ? LACI_TRAINING_WEIGHT : LACI_TRAINING_BIAS;
}

static void set_roles_of_inputs(role_walk *w, const laci_node *node) {
  bool image = false, weighted = false;
  for (int port = 0; port < node->n_inputs; port++) {
    int value = node->inputs[port];
    if (value < 0) continue;
    int stored = laci_training_find_stored(w->model, value);
    if (stored >= 0 && !is_identity(node)) { /* the reader decides its role */
      laci_training_role role = find_role_of_tensor(w, node, port, &w->model->stored[stored]);
      laci_training_role before = w->roles[stored];
      if ((role == LACI_TRAINING_STATISTIC && before < role) ||
          (before == LACI_TRAINING_STATISTIC && role < before))
        w->clash = stored;
      if (role < before) w->roles[stored] = role; /* a weight for one reader is a weight for all */
      weighted |= role <= LACI_TRAINING_NORM;
    }
    image |= w->from_image[value];
    weighted |= w->weighted[value];
  }
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] < 0) continue;
    w->from_image[node->outputs[at]] = image;
    w->weighted[node->outputs[at]] = weighted;
  }
}

lac_status laci_training_find_roles(const laci_graph *model, const bool *needed,
                                    const laci_training_options *options, laci_training_role *roles,
                                    lac_error *err) {
  size_t n_values = (size_t)model->n_values;
  role_walk w = {.model = model,
                 .options = options,
                 .roles = roles,
                 .clash = -1,
                 .from_image = laci_alloc(n_values + 1, sizeof *w.from_image),
                 .weighted = laci_alloc(n_values + 1, sizeof *w.weighted)};
  lac_status st = LAC_OK;
  if (!w.from_image || !w.weighted) st = laci_fail_memory(err, "the training graph");
  for (int at = 0; at < model->n_stored; at++) roles[at] = LACI_TRAINING_UNUSED;
  for (int at = 0; at < model->n_inputs && !st; at++) w.from_image[model->inputs[at]] = true;
  for (int n = 0; n < model->n_nodes && !st; n++)
    if (needed[n]) set_roles_of_inputs(&w, &model->nodes[n]);
  if (!st && w.clash >= 0)
    st =
        laci_fail(err, LAC_UNSUPPORTED,
                  "'%s' is a running statistic of one layer and a parameter of another, so that it "
                  "cannot be trained",
                  model->stored[w.clash].name);
  laci_free(w.from_image);
  laci_free(w.weighted);
  return st;
}
