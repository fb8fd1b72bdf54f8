/* SPDX-License-Identifier: Apache-2.0
 * Which nodes are computed, and which melt into the layer before them.
 *
 * A convolution or matrix product takes what follows it, as long as nobody else reads what lies
 * between: first scales and shifts of its channels (batch norms, constant factors and sums), which
 * go into its weights; then one sum with another value and any element-wise functions, which
 * oneDNN applies before it writes (posts). The layer is computed where its last node stood, since
 * the summand is there by then. Before that, nodes that are one thing together become one layer:
 * attention, and layer norms in pieces. Next: build.c. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/cpu/net_in.h"
#include "base/error.h"

/* ---- What is computed ---- */

/** Does the node compute what another has computed before? */
static bool repeats(const laci_net *net, const laci_node *node) {
  int at = 0;
  while (at < node->n_outputs && node->outputs[at] < 0) at++;
  return at < node->n_outputs && net->graph->values[node->outputs[at]].repeats >= 0;
}

static void count_uses(laci_net *net, const laci_node *node) {
  bool again = repeats(net, node);
  for (int at = 0; at < node->n_inputs; at++) {
    if (node->inputs[at] < 0) continue;
    net->values[node->inputs[at]].n_uses++;
    if (!again) net->values[laci_net_original(net, node->inputs[at])].n_uses_once++;
  }
}

int laci_net_uses(const laci_net *net, int value) {
  enum { TOO_MANY = 1000000 };
  int n = net->values[value].n_uses;
  return n == net->values[laci_net_original(net, value)].n_uses_once ? n : TOO_MANY;
}

static void find_computed(laci_net *net) {
  const laci_graph *graph = net->graph;
  for (int at = 0; at < graph->n_outputs; at++) {
    net->values[graph->outputs[at]].n_uses++;
    net->values[laci_net_original(net, graph->outputs[at])].n_uses_once++;
  }
  laci_net_observe_uses(net);
  for (int n = graph->n_nodes - 1; n >= 0; n--) {
    const laci_node *node = &graph->nodes[n];
    for (int at = 0; at < node->n_outputs && !net->computed[n]; at++) {
      int value = node->outputs[at];
      net->computed[n] =
          value >= 0 && net->values[value].n_uses > 0 && !net->values[value].constant;
    }
    if (net->computed[n]) count_uses(net, node);
  }
}

/* ---- Element-wise functions of one value ---- */

typedef struct named_eltwise {
  const char *type;
  dnnl_alg_kind_t alg;
  const char *alpha_name; /* attribute; NULL: the number */
  float alpha, beta;
} named_eltwise;

static const named_eltwise eltwises[] = {
    {"Relu", dnnl_eltwise_relu, NULL, 0, 0},
    {"LeakyRelu", dnnl_eltwise_relu, "alpha", 0.01f, 0},
    {"Elu", dnnl_eltwise_elu, "alpha", 1, 0},
    {"Sigmoid", dnnl_eltwise_logistic, NULL, 0, 0},
    {"Tanh", dnnl_eltwise_tanh, NULL, 0, 0},
    {"Exp", dnnl_eltwise_exp, NULL, 0, 0},
    {"Log", dnnl_eltwise_log, NULL, 0, 0},
    {"Sqrt", dnnl_eltwise_sqrt, NULL, 0, 0},
    {"Abs", dnnl_eltwise_abs, NULL, 0, 0},
    {"Neg", dnnl_eltwise_linear, NULL, -1, 0},
    {"Reciprocal", dnnl_eltwise_pow, NULL, 1, -1},
    {"Softplus", dnnl_eltwise_soft_relu, NULL, 1, 0},
    {"Mish", dnnl_eltwise_mish, NULL, 0, 0},
    {"Swish", dnnl_eltwise_swish, "alpha", 1, 0},
    {"HardSwish", dnnl_eltwise_hardswish, NULL, 1.0f / 6, 0.5f},
};

int laci_net_clip(laci_net *net, const laci_node *node, int port, laci_eltwise *out) {
  double low = laci_node_float(node, "min", -FLT_MAX), high = laci_node_float(node, "max", FLT_MAX);
  if (laci_net_has(node, port) && !laci_net_scalar(net, node->inputs[port], &low)) return 0;
  if (laci_net_has(node, port + 1) && !laci_net_scalar(net, node->inputs[port + 1], &high))
    return 0;
  if (low < -(double)FLT_MAX) low = -FLT_MAX;
  if (high > (double)FLT_MAX) high = FLT_MAX;
  if (!(low <= high)) return 0; /* every x becomes `high`: rare enough for the plain road */
  *out = (laci_eltwise){dnnl_eltwise_clip, (float)low, (float)high};
  return 1;
}

int laci_eltwise_named(const laci_node *node, const char *type, laci_eltwise out[2]) {
  for (size_t at = 0; at < sizeof eltwises / sizeof *eltwises; at++) {
    const named_eltwise *e = &eltwises[at];
    if (strcmp(type, e->type) != 0) continue;
    float alpha = e->alpha_name ? laci_node_float(node, e->alpha_name, e->alpha) : e->alpha;
    out[0] = (laci_eltwise){e->alg, alpha, e->beta};
    return 1;
  }
  if (strcmp(type, "Gelu") == 0) {
    bool rough = strcmp(laci_node_text(node, "approximate", "none"), "tanh") == 0;
    out[0] = (laci_eltwise){rough ? dnnl_eltwise_gelu_tanh : dnnl_eltwise_gelu_erf, 0, 0};
    return 1;
  }
  if (strcmp(type, "HardSigmoid") == 0) {
    out[0] = (laci_eltwise){dnnl_eltwise_linear, laci_node_float(node, "alpha", 0.2f),
                            laci_node_float(node, "beta", 0.5f)};
    out[1] = (laci_eltwise){dnnl_eltwise_clip, 0, 1};
    return 2;
  }
  return 0;
}

/** Add, Sub, Mul, Div and Pow with one constant number. */
static int with_number(laci_net *net, const laci_node *node, int *input, laci_eltwise *out) {
  static const char *const types[] = {"Add", "Sub", "Mul", "Div", "Pow"};
  double c = 0;
  int kind = 0;
  while (kind < 5 && !laci_node_is(node, types[kind])) kind++;
  if (kind == 5 || node->n_inputs != 2) return 0;
  bool right = laci_net_scalar(net, node->inputs[1], &c);
  if (!right && !laci_net_scalar(net, node->inputs[0], &c)) return 0;
  *input = right ? 0 : 1;
  /* A "number" of more axes than the other operand makes the result larger. */
  if (laci_net_shape(net, node->inputs[!*input])->rank >
      laci_net_shape(net, node->inputs[*input])->rank) {
    return 0;
  }
  float x = (float)c;
  switch (kind) {
    case 0: *out = (laci_eltwise){dnnl_eltwise_linear, 1, x}; return 1;
    case 1:
      *out = (laci_eltwise){dnnl_eltwise_linear, right ? 1.0f : -1.0f, right ? -x : x};
      return 1;
    case 2: *out = (laci_eltwise){dnnl_eltwise_linear, x, 0}; return 1;
    case 3:
      if (right) *out = (laci_eltwise){dnnl_eltwise_linear, (float)(1 / c), 0};
      else *out = (laci_eltwise){dnnl_eltwise_pow, x, -1};
      return right ? c != 0 : 1;
    default: *out = (laci_eltwise){dnnl_eltwise_pow, 1, x}; return right;
  }
}

int laci_eltwise_of(laci_net *net, const laci_node *node, int *input, laci_eltwise out[2]) {
  *input = 0;
  if (node->n_inputs < 1 || node->n_outputs < 1 || !laci_net_has(node, 0)) return 0;
  if (node->outputs[0] < 0 || !laci_net_is_float(net, node->outputs[0])) return 0;
  for (int at = 0; at < node->n_inputs; at++) {
    if (node->inputs[at] >= 0 && !laci_net_is_float(net, node->inputs[at])) return 0;
  }
  if (laci_node_is(node, "Clip")) return laci_net_clip(net, node, 1, out);
  int n = node->op->domain ? 0 : laci_eltwise_named(node, node->type, out);
  return n ? n : with_number(net, node, input, out);
}

/* ---- Scales and shifts of channels ---- */

typedef struct affine {
  float *scale, *shift; /* [channels] */
} affine;

static bool affine_of_norm(laci_net *net, const laci_node *node, int64_t channels, affine *out) {
  const float *p[5] = {0};
  for (int at = 1; at < 5; at++) {
    if (!laci_net_has(node, at) || laci_net_shape(net, node->inputs[at])->rank != 1) return false;
    if (laci_net_shape(net, node->inputs[at])->dims[0] != channels) return false;
    p[at] = laci_net_floats(net, node->inputs[at]);
    if (!p[at]) return false;
  }
  double epsilon = laci_node_float(node, "epsilon", 1e-5f);
  for (int64_t c = 0; c < channels; c++) {
    double scale = p[1][c] / sqrt((double)p[4][c] + epsilon);
    out->scale[c] = (float)scale;
    out->shift[c] = (float)(p[2][c] - p[3][c] * scale);
  }
  return true;
}

/** Is the constant one number, or one number a channel of axis `axis` of `rank`? */
static bool along_channels(const laci_net *net, int value, int rank, int axis, int64_t channels) {
  const laci_shape *s = laci_net_shape(net, value);
  int64_t count = laci_shape_count(s);
  if (s->rank > rank) return false;
  if (count == 1) return true;
  int at = axis - (rank - s->rank);
  return at >= 0 && count == channels && s->dims[at] == channels;
}

/** y = x op c or c op x, for a constant c along the channels. */
static bool affine_of_constant(laci_net *net, const laci_node *node, const laci_net_layer *layer,
                               int axis, affine *out) {
  static const char *const types[] = {"Add", "Sub", "Mul", "Div"};
  int kind = 0, rank = laci_net_shape(net, layer->output)->rank;
  while (kind < 4 && !laci_node_is(node, types[kind])) kind++;
  if (kind == 4 || node->n_inputs != 2) return false;
  bool left = node->inputs[0] == layer->output; /* x is the left operand */
  int other = node->inputs[left];
  if (kind == 3 && !left) return false;
  if (!laci_net_is_constant(net, other)) return false;
  if (!along_channels(net, other, rank, axis, layer->channels)) return false;
  const float *c = laci_net_floats(net, other);
  if (!c) return false;
  bool single = net->values[other].constant->count == 1;
  for (int64_t at = 0; at < layer->channels; at++) {
    float x = c[single ? 0 : at];
    if (kind == 3 && x == 0) return false;
    out->scale[at] = kind == 2 ? x : kind == 3 ? 1 / x : kind == 1 && !left ? -1 : 1;
    out->shift[at] = kind == 0 ? x : kind == 1 ? (left ? -x : x) : 0;
  }
  return true;
}

static bool is_inference_norm(const laci_node *node) {
  if (!laci_node_is(node, "BatchNormalization") || node->n_inputs < 5) return false;
  if (node->version < 9 && laci_node_int(node, "spatial", 1) == 0) return false;
  if (node->version >= 14 && laci_node_int(node, "training_mode", 0) != 0) return false;
  for (int at = 1; at < node->n_outputs; at++) {
    if (node->outputs[at] >= 0) return false;
  }
  return true;
}

static bool take_affine(laci_net *net, laci_net_layer *layer, const laci_node *next) {
  const laci_node *node = &net->graph->nodes[layer->node];
  int rank = laci_net_shape(net, layer->output)->rank;
  int axis = laci_node_is(node, "Conv") ? 1 : rank - 1;
  size_t n = (size_t)layer->channels;
  affine a = {.scale = laci_alloc(n, sizeof(float)), .shift = laci_alloc(n, sizeof(float))};
  bool fits = a.scale && a.shift && axis >= 0;
  if (fits && is_inference_norm(next)) {
    fits = axis == 1 && next->inputs[0] == layer->output &&
           affine_of_norm(net, next, layer->channels, &a);
  } else if (fits) {
    fits = affine_of_constant(net, next, layer, axis, &a);
  }
  if (fits && !layer->scale) {
    layer->scale = laci_net_new(net, n, sizeof(float));
    layer->shift = laci_net_new(net, n, sizeof(float));
    fits = layer->scale && layer->shift;
    for (size_t at = 0; fits && at < n; at++) layer->scale[at] = 1;
  }
  for (size_t at = 0; fits && at < n; at++) {
    layer->scale[at] *= a.scale[at];
    layer->shift[at] = layer->shift[at] * a.scale[at] + a.shift[at];
  }
  laci_free(a.scale);
  laci_free(a.shift);
  return fits;
}

/* ---- Melting ---- */

/** The computed nodes that read the value: at most two are of interest. */
static int readers_of(const laci_net *net, int value, int readers[2]) {
  const laci_value *v = &net->graph->values[value];
  int n = 0;
  for (int at = 0; at < v->n_readers; at++) {
    if (!net->computed[v->readers[at]]) continue;
    if (n < 2) readers[n] = v->readers[at];
    n++;
  }
  return n;
}

static bool melted(const laci_net *net, int node) { return net->layers[node].output < 0; }

int laci_net_only_reader(const laci_net *net, int value) {
  int readers[2];
  if (laci_net_uses(net, value) != 1 || readers_of(net, value, readers) != 1) return -1;
  return melted(net, readers[0]) ? -1 : readers[0];
}

int laci_net_maker(const laci_net *net, int value) {
  int node = net->graph->values[value].producer;
  if (node < 0 || !net->computed[node] || melted(net, node)) return -1;
  return net->layers[node].build ? -1 : node; /* else it is no longer what it looks like */
}

void laci_net_absorb(laci_net *net, int last, const int *nodes, int n) {
  for (int at = 0; at < n; at++) {
    if (nodes[at] == last) continue;
    net->layers[nodes[at]].output = -1;
    net->layer_at[nodes[at]] = -1;
  }
}

void laci_net_melt(laci_net *net, laci_net_layer *layer, int node) {
  net->layers[node].output = -1;
  net->layer_at[node] = -1;
  net->layer_at[layer->tail] = -1;
  layer->tail = node;
  layer->output = net->graph->nodes[node].outputs[0];
  net->layer_at[node] = layer->node;
}

/** Another post of the same algorithm? oneDNN 2.6 applies the parameters of the first to both. */
static bool has_function(const laci_net_layer *layer, const laci_eltwise *e) {
  for (int at = 0; at < layer->n_posts; at++) {
    const laci_eltwise *have = &layer->posts[at].eltwise;
    if (layer->posts[at].value >= 0 || have->alg != e->alg) continue;
    if (have->alpha != e->alpha || have->beta != e->beta) return true;
  }
  return false;
}

/** Appends functions; two linear ones in a row become one. False, and nothing done, where the layer
 * cannot take all of them. */
static bool add_eltwise(laci_net_layer *layer, int n, const laci_eltwise *functions) {
  laci_net_layer longer = *layer;
  for (int at = 0; at < n; at++) {
    laci_eltwise e = functions[at];
    laci_net_post *last = longer.n_posts > 0 ? &longer.posts[longer.n_posts - 1] : NULL;
    if (last && last->value < 0 && last->eltwise.alg == dnnl_eltwise_linear &&
        e.alg == dnnl_eltwise_linear) {
      e.beta += e.alpha * last->eltwise.beta;
      e.alpha *= last->eltwise.alpha;
      longer.n_posts--;
    }
    if (longer.n_posts == LACI_NET_MAX_POSTS || has_function(&longer, &e)) return false;
    longer.posts[longer.n_posts++] = (laci_net_post){.value = -1, .eltwise = e};
  }
  *layer = longer;
  return true;
}

/** x * sigmoid(x), x * hardsigmoid(x): two readers, one of which reads the other. */
static bool take_gated(laci_net *net, laci_net_layer *layer, const int readers[2]) {
  const laci_node *gate = &net->graph->nodes[readers[0]], *product = &net->graph->nodes[readers[1]];
  int inner[2];
  bool smooth = laci_node_is(gate, "Sigmoid");
  bool hard = laci_node_is(gate, "HardSigmoid") &&
              fabsf(laci_node_float(gate, "alpha", 0.2f) * 6 - 1) < 1e-5f &&
              laci_node_float(gate, "beta", 0.5f) == 0.5f;
  if ((!smooth && !hard) || !laci_node_is(product, "Mul") || product->n_inputs != 2) return false;
  if (melted(net, readers[0]) || melted(net, readers[1])) return false;
  int y = gate->outputs[0], x = layer->output;
  if (laci_net_uses(net, y) != 1 || readers_of(net, y, inner) != 1) return false;
  if (!((product->inputs[0] == x && product->inputs[1] == y) ||
        (product->inputs[0] == y && product->inputs[1] == x))) {
    return false;
  }
  laci_eltwise e = {smooth ? dnnl_eltwise_swish : dnnl_eltwise_hardswish, smooth ? 1 : 1.0f / 6,
                    smooth ? 0 : 0.5f};
  if (!add_eltwise(layer, 1, &e)) return false;
  laci_net_melt(net, layer, readers[0]);
  laci_net_melt(net, layer, readers[1]);
  return true;
}

/** x / sqrt 2 -> Erf -> + 1 -> * x -> / 2, in the orders that exporters write: gelu. */
static bool take_gelu(laci_net *net, laci_net_layer *layer, const int readers[2]) {
  int x = layer->output, at[5], next[2], input;
  laci_eltwise e[2];
  at[0] = readers[0];
  const laci_graph *graph = net->graph;
  if (laci_eltwise_of(net, &graph->nodes[at[0]], &input, e) != 1) return false;
  if (e[0].alg != dnnl_eltwise_linear || fabsf(e[0].alpha - 0.70710678f) > 1e-4f ||
      e[0].beta != 0) {
    return false;
  }
  for (int step = 1; step < 5; step++) { /* each has one reader */
    int y = graph->nodes[at[step - 1]].outputs[0];
    if (laci_net_uses(net, y) != 1 || readers_of(net, y, next) != 1) return false;
    at[step] = next[0];
    if (melted(net, at[step])) return false;
  }
  const laci_node *mul = &graph->nodes[at[3]];
  bool one = laci_eltwise_of(net, &graph->nodes[at[2]], &input, e) == 1 &&
             e[0].alg == dnnl_eltwise_linear && e[0].alpha == 1 && e[0].beta == 1;
  bool half = laci_eltwise_of(net, &graph->nodes[at[4]], &input, e) == 1 &&
              e[0].alg == dnnl_eltwise_linear && e[0].alpha == 0.5f && e[0].beta == 0;
  bool times_x = laci_node_is(mul, "Mul") && (mul->inputs[0] == x || mul->inputs[1] == x) &&
                 mul->inputs[0] != mul->inputs[1];
  if (!laci_node_is(&graph->nodes[at[1]], "Erf") || !one || !half || !times_x ||
      readers[1] != at[3]) {
    return false;
  }
  laci_eltwise gelu = {dnnl_eltwise_gelu_erf, 0, 0};
  if (!add_eltwise(layer, 1, &gelu)) return false;
  for (int step = 0; step < 5; step++) laci_net_melt(net, layer, at[step]);
  return true;
}

/** x + another value of the same shape. */
static bool take_sum(laci_net *net, laci_net_layer *layer, int next) {
  const laci_node *node = &net->graph->nodes[next];
  if ((!laci_node_is(node, "Add") && !laci_node_is(node, "Sum")) || node->n_inputs != 2)
    return false;
  int other = node->inputs[node->inputs[0] == layer->output];
  if (other == layer->output || laci_net_is_constant(net, other)) return false;
  if (!laci_shape_equal(laci_net_shape(net, other), laci_net_shape(net, layer->output)))
    return false;
  for (int at = 0; at < layer->n_posts; at++) {
    if (layer->posts[at].value >= 0) return false;
  }
  if (layer->n_posts == LACI_NET_MAX_POSTS) return false;
  layer->posts[layer->n_posts++] = (laci_net_post){.value = other};
  laci_net_melt(net, layer, next);
  return true;
}

/** One more node; false: the layer ends here. */
static bool take_next(laci_net *net, laci_net_layer *layer, bool heavy) {
  int readers[2], input;
  laci_eltwise e[2];
  int n = readers_of(net, layer->output, readers);
  if (!laci_net_is_float(net, layer->output) || n < 1 || n > 2) return false;
  if (n == 2) {
    return laci_net_uses(net, layer->output) == 2 &&
           (take_gated(net, layer, readers) || take_gelu(net, layer, readers));
  }
  const laci_node *next = &net->graph->nodes[readers[0]], *node = &net->graph->nodes[layer->node];
  if (laci_net_uses(net, layer->output) != 1 || melted(net, readers[0])) return false;
  if (laci_node_is_ours(node, "BatchNormTrain") &&
      !(laci_node_is(next, "Relu") && laci_net_norm_takes_relu(net, node, next))) {
    return false;
  }
  if (layer->channels > 0 && layer->n_posts == 0 && take_affine(net, layer, next)) {
    laci_net_melt(net, layer, readers[0]);
    return true;
  }
  int functions = laci_eltwise_of(net, next, &input, e);
  if (functions && next->inputs[input] == layer->output) {
    if (!laci_shape_equal(laci_net_shape(net, layer->output),
                          laci_net_shape(net, next->outputs[0]))) {
      return false;
    }
    if (!add_eltwise(layer, functions, e)) return false;
    laci_net_melt(net, layer, readers[0]);
    return true;
  }
  return heavy && take_sum(net, layer, readers[0]);
}

/** Channels whose scale can go into the weights; 0: the weights are not constant. */
static int64_t channels_of(const laci_net *net, const laci_node *node) {
  if (!laci_net_is_constant(net, node->inputs[1])) return 0;
  if (laci_node_is(node, "MatMul") && laci_net_shape(net, node->inputs[1])->rank != 2) return 0;
  const laci_shape *y = laci_net_shape(net, node->outputs[0]);
  if (y->rank < 1) return 0;
  return y->dims[laci_node_is(node, "Conv") ? 1 : y->rank - 1];
}

lac_status laci_net_fuse(laci_net *net, lac_error *err) {
  int n_nodes = net->graph->n_nodes;
  net->computed = laci_net_new(net, (size_t)n_nodes, sizeof *net->computed);
  net->layers = laci_net_new(net, (size_t)n_nodes, sizeof *net->layers);
  net->layer_at = laci_net_new(net, (size_t)n_nodes, sizeof *net->layer_at);
  net->workspaces = laci_net_new(net, (size_t)n_nodes, sizeof *net->workspaces);
  if (net->status) return laci_fail_memory(err, "the plan's layers");
  find_computed(net);
  for (int n = 0; n < n_nodes; n++) {
    int output = net->graph->nodes[n].n_outputs > 0 ? net->graph->nodes[n].outputs[0] : -1;
    net->layers[n] = (laci_net_layer){.node = n, .tail = n, .output = output};
    net->layer_at[n] = net->computed[n] ? n : -1;
    net->workspaces[n] = -1;
  }
  for (int n = 0; n < n_nodes; n++) {
    if (net->layer_at[n] != n || !laci_net_has_elements(net, &net->graph->nodes[n])) continue;
    bool found = laci_net_find_attention(net, n) || laci_net_find_layer_norm(net, n);
    if (!found) (void)laci_net_find_relu_sum(net, n);
  }
  for (int n = 0; n < n_nodes; n++) {
    laci_net_layer *layer = &net->layers[n];
    const laci_node *node = &net->graph->nodes[n];
    if (net->layer_at[layer->tail] != n || layer->output < 0 || layer->build) continue;
    if (!laci_net_has_elements(net, node)) continue;
    bool heavy = laci_net_takes_posts(net, node);
    bool light = laci_node_is(node, "Add") || laci_node_is(node, "Mul") ||
                 laci_node_is(node, "Sub") || laci_node_is(node, "Div");
    bool norm = is_inference_norm(node) || laci_node_is_ours(node, "BatchNormTrain");
    if (heavy) layer->channels = channels_of(net, node);
    int input;
    laci_eltwise e[2];
    if (light && laci_eltwise_of(net, node, &input, e)) light = false;
    /* What took others in cannot fall back to the plain operator. */
    if (light) light = laci_net_fits_binary(net, node);
    if (norm && !laci_node_is_ours(node, "BatchNormTrain"))
      norm = laci_net_fits_batch_norm(net, node);
    if (!heavy && !light && !norm) continue;
    while (take_next(net, layer, heavy)) {
      if (norm) break;
    }
  }
  return net->status;
}
