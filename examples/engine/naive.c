/* SPDX-License-Identifier: Apache-2.0
 * An engine outside of Lacuna: plain loops for a few operators, and the library's own definition
 * for all others. It is built with Lacuna's headers alone and links nothing of it:
 *
 *   make && lacuna bench net.onnx --engine ./naive.so
 *
 * Every value has a buffer of its own. A run goes over the nodes in their order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lacuna/plugin.h>

/* ---- Reading nodes ---- */

static const lac_graph_attribute *find_attribute(const lac_graph_node *node, const char *name) {
  for (int at = 0; at < node->n_attributes; at++) {
    if (strcmp(node->attributes[at]->name, name) == 0) return node->attributes[at];
  }
  return NULL;
}

static int64_t get_int(const lac_graph_node *node, const char *name, int64_t otherwise) {
  const lac_graph_attribute *a = find_attribute(node, name);
  return a && a->kind == LAC_ATTRIBUTE_INT ? a->i : otherwise;
}

static float get_float(const lac_graph_node *node, const char *name, float otherwise) {
  const lac_graph_attribute *a = find_attribute(node, name);
  return a && a->kind == LAC_ATTRIBUTE_FLOAT ? a->f : otherwise;
}

static int64_t get_entry(const lac_graph_node *node, const char *name, int at, int64_t otherwise) {
  const lac_graph_attribute *a = find_attribute(node, name);
  return a && a->kind == LAC_ATTRIBUTE_INTS && at < a->n ? a->ints[at] : otherwise;
}

static const lac_graph_value *value_of(const lac_graph_view *g, const int *list, int n, int at) {
  return at < n && list[at] >= 0 ? g->values[list[at]] : NULL;
}

static const lac_graph_value *input(const lac_graph_view *g, const lac_graph_node *node, int at) {
  return value_of(g, node->inputs, node->n_inputs, at);
}

static const lac_graph_value *output(const lac_graph_view *g, const lac_graph_node *node, int at) {
  return value_of(g, node->outputs, node->n_outputs, at);
}

/* ---- Operators ---- */

/* What an operator reads and writes: buffers in the order of the node's inputs. */
typedef struct job {
  const lac_graph_view *graph;
  const lac_graph_node *node;
  const float *x, *w, *b;
  float *y;
} job;

static void compute_relu(const job *j) {
  int64_t n = output(j->graph, j->node, 0)->count;
  for (int64_t i = 0; i < n; i++) j->y[i] = j->x[i] < 0 ? 0 : j->x[i]; /* NaN stays */
}

static void compute_add(const job *j) {
  int64_t n = output(j->graph, j->node, 0)->count;
  for (int64_t i = 0; i < n; i++) j->y[i] = j->x[i] + j->w[i];
}

static void compute_matmul(const job *j) {
  const lac_graph_value *w = input(j->graph, j->node, 1);
  int64_t depth = w->shape[0], columns = w->shape[1];
  int64_t rows = columns ? output(j->graph, j->node, 0)->count / columns : 0;
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t c = 0; c < columns; c++) {
      float sum = 0;
      for (int64_t k = 0; k < depth; k++) sum += j->x[r * depth + k] * j->w[k * columns + c];
      j->y[r * columns + c] = sum;
    }
  }
}

static void compute_gemm(const job *j) {
  const lac_graph_value *x = input(j->graph, j->node, 0), *y = output(j->graph, j->node, 0);
  int64_t rows = y->shape[0], columns = y->shape[1], ta = get_int(j->node, "transA", 0),
          tb = get_int(j->node, "transB", 0), depth = x->shape[ta ? 0 : 1];
  float alpha = get_float(j->node, "alpha", 1), beta = get_float(j->node, "beta", 1);
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t c = 0; c < columns; c++) {
      float sum = 0;
      for (int64_t k = 0; k < depth; k++) {
        sum += j->x[ta ? k * rows + r : r * depth + k] * j->w[tb ? c * depth + k : k * columns + c];
      }
      j->y[r * columns + c] = alpha * sum + (j->b ? beta * j->b[c] : 0);
    }
  }
}

/* A window of two axes over one channel's plane. */
typedef struct window {
  int64_t size[2], stride[2], dilation[2], pad[2], in[2], out[2];
} window;

static window read_window(const job *j, const int64_t *size) {
  const lac_graph_value *x = input(j->graph, j->node, 0), *y = output(j->graph, j->node, 0);
  window v;
  for (int axis = 0; axis < 2; axis++) {
    v.size[axis] = size ? size[axis] : get_entry(j->node, "kernel_shape", axis, 1);
    v.stride[axis] = get_entry(j->node, "strides", axis, 1);
    v.dilation[axis] = get_entry(j->node, "dilations", axis, 1);
    v.pad[axis] = get_entry(j->node, "pads", axis, 0);
    v.in[axis] = x->shape[2 + axis];
    v.out[axis] = y->shape[2 + axis];
  }
  return v;
}

/* Returns the place in the plane that element (a, b) of a window reads; -1: padding. */
static int64_t place_of(const window *v, int64_t oy, int64_t ox, int64_t a, int64_t b) {
  int64_t iy = oy * v->stride[0] - v->pad[0] + a * v->dilation[0];
  int64_t ix = ox * v->stride[1] - v->pad[1] + b * v->dilation[1];
  return iy < 0 || iy >= v->in[0] || ix < 0 || ix >= v->in[1] ? -1 : iy * v->in[1] + ix;
}

static float convolve(const window *v, const float *x, const float *w, int64_t channels, int64_t oy,
                      int64_t ox) {
  float sum = 0;
  for (int64_t c = 0; c < channels; c++) {
    for (int64_t a = 0; a < v->size[0]; a++) {
      for (int64_t b = 0; b < v->size[1]; b++) {
        int64_t at = place_of(v, oy, ox, a, b);
        if (at >= 0)
          sum += x[c * v->in[0] * v->in[1] + at] * w[(c * v->size[0] + a) * v->size[1] + b];
      }
    }
  }
  return sum;
}

static void compute_conv(const job *j) {
  const lac_graph_value *x = input(j->graph, j->node, 0), *w = input(j->graph, j->node, 1);
  window v = read_window(j, w->shape + 2);
  int64_t groups = get_int(j->node, "group", 1), channels = w->shape[1], filters = w->shape[0];
  int64_t filter = channels * v.size[0] * v.size[1], plane = v.in[0] * v.in[1];
  float *y = j->y;
  for (int64_t image = 0; image < x->shape[0]; image++) {
    for (int64_t k = 0; k < filters; k++) {
      const float *from = j->x + (image * x->shape[1] + k / (filters / groups) * channels) * plane;
      for (int64_t oy = 0; oy < v.out[0]; oy++) {
        for (int64_t ox = 0; ox < v.out[1]; ox++) {
          *y++ = convolve(&v, from, j->w + k * filter, channels, oy, ox) + (j->b ? j->b[k] : 0);
        }
      }
    }
  }
}

static float pool(const window *v, const float *x, int64_t oy, int64_t ox, int mean, int pads) {
  float sum = 0, most = 0;
  int64_t n = 0, n_read = 0;
  for (int64_t a = 0; a < v->size[0]; a++) {
    for (int64_t b = 0; b < v->size[1]; b++) {
      int64_t at = place_of(v, oy, ox, a, b);
      n++;
      if (at < 0) continue;
      sum += x[at];
      if (n_read++ == 0 || !(x[at] <= most)) most = x[at]; /* NaN wins */
    }
  }
  return mean ? sum / (float)(pads ? n : n_read) : most;
}

static void compute_pool(const job *j) {
  const lac_graph_value *x = input(j->graph, j->node, 0);
  window v = read_window(j, NULL);
  int mean = strcmp(j->node->type, "MaxPool") != 0;
  int pads = get_int(j->node, "count_include_pad", 0) != 0;
  if (strcmp(j->node->type, "GlobalAveragePool") == 0) memcpy(v.size, v.in, sizeof v.size);
  float *y = j->y;
  for (int64_t plane = 0; plane < x->shape[0] * x->shape[1]; plane++) {
    for (int64_t oy = 0; oy < v.out[0]; oy++) {
      for (int64_t ox = 0; ox < v.out[1]; ox++) {
        *y++ = pool(&v, j->x + plane * v.in[0] * v.in[1], oy, ox, mean, pads);
      }
    }
  }
}

/* ---- What it can compute ---- */

static int is_same_shape(const lac_graph_value *a, const lac_graph_value *b) {
  if (a->rank != b->rank) return 0;
  for (int axis = 0; axis < a->rank; axis++) {
    if (a->shape[axis] != b->shape[axis]) return 0;
  }
  return 1;
}

static const char *refuse_window(const lac_graph_view *g, const lac_graph_node *node) {
  const lac_graph_attribute *pad = find_attribute(node, "auto_pad");
  if (input(g, node, 0)->rank != 4) return "windows of two axes alone";
  if (pad && strcmp(pad->text, "NOTSET") != 0) return "no auto_pad";
  if (get_int(node, "ceil_mode", 0) || node->n_outputs > 1) return "neither ceil_mode nor indices";
  return NULL;
}

static const char *refuse_add(const lac_graph_view *g, const lac_graph_node *node) {
  return is_same_shape(input(g, node, 0), input(g, node, 1)) ? NULL : "no broadcasting";
}

static const char *refuse_matmul(const lac_graph_view *g, const lac_graph_node *node) {
  return input(g, node, 0)->rank >= 2 && input(g, node, 1)->rank == 2 ? NULL : "no batched weights";
}

static const char *refuse_gemm(const lac_graph_view *g, const lac_graph_node *node) {
  const lac_graph_value *b = input(g, node, 2), *y = output(g, node, 0);
  return !b || (b->rank == 1 && y->rank == 2 && b->shape[0] == y->shape[1]) ? NULL
                                                                            : "bias vectors alone";
}

typedef struct kernel {
  const char *type;
  void (*compute)(const job *j);
  const char *(*refuse)(const lac_graph_view *g, const lac_graph_node *node); /* NULL: never */
  int n_inputs;                                                               /* at least */
} kernel;

static const kernel kernels[] = {
    {"Conv", compute_conv, refuse_window, 2},
    {"Gemm", compute_gemm, refuse_gemm, 2},
    {"MatMul", compute_matmul, refuse_matmul, 2},
    {"Relu", compute_relu, NULL, 1},
    {"Add", compute_add, refuse_add, 2},
    {"MaxPool", compute_pool, refuse_window, 1},
    {"AveragePool", compute_pool, refuse_window, 1},
    {"GlobalAveragePool", compute_pool, refuse_window, 1},
};

/* Returns the node's kernel; NULL: none, and *why. Sizes may be open, ranks unknown. */
static const kernel *find_kernel(const lac_graph_view *g, const lac_graph_node *node,
                                 const char **why) {
  *why = "it has no loops for it";
  for (size_t at = 0; at < sizeof kernels / sizeof *kernels; at++) {
    const kernel *k = &kernels[at];
    if (node->domain[0] || strcmp(node->type, k->type) != 0) continue;
    for (int in = 0; in < k->n_inputs; in++) {
      const lac_graph_value *x = input(g, node, in);
      *why = "floats of 32 bits and a known rank alone";
      if (!x || x->dtype != LAC_DTYPE_F32 || x->rank < 0) return NULL;
    }
    *why = k->refuse ? k->refuse(g, node) : NULL;
    return *why ? NULL : k;
  }
  return NULL;
}

static lac_engine_answer supports(void *context, const lac_graph_view *graph, int node,
                                  lac_error *why) {
  const char *text;
  (void)context;
  if (find_kernel(graph, graph->nodes[node], &text)) return LAC_ENGINE_COMPUTES;
  snprintf(why->text, sizeof why->text, "%s", text);
  return LAC_ENGINE_EVALUATES;
}

/* ---- A plan ---- */

typedef struct plan {
  const lac_graph_view *graph;
  const lac_engine_host *host;
  const kernel **kernels; /* [n_nodes] NULL: the library computes the node */
  void **buffers;         /* [n_values] owned, but for inputs and outputs */
  char *owned;            /* [n_values] */
  void **in, **out;       /* a node's operands */
} plan;

static lac_status fail_memory(lac_error *err) {
  snprintf(err->text, sizeof err->text, "not enough memory");
  return LAC_NO_MEMORY;
}

static void destroy(void *self) {
  plan *p = self;
  for (int v = 0; p->buffers && p->owned && v < p->graph->n_values; v++) {
    if (p->owned[v]) free(p->buffers[v]);
  }
  free(p->kernels);
  free(p->buffers);
  free(p->owned);
  free(p->in);
  free(p->out);
  free(p);
}

/* Allocates a value; a stored one gets its content. An element takes 4 or 8 bytes. */
static lac_status make_buffer(plan *p, int v, lac_error *err) {
  const lac_graph_value *value = p->graph->values[v];
  uint64_t bytes = (uint64_t)value->count * 8;
  lac_status st = p->host->count_memory(p->host->self, bytes, value->name, err);
  if (st) return st;
  p->buffers[v] = calloc(1, bytes ? bytes : 1);
  p->owned[v] = 1;
  if (!p->buffers[v]) return fail_memory(err);
  return value->is_stored ? p->host->read_stored(p->host->self, v, p->buffers[v], err) : LAC_OK;
}

/* Finds a kernel for each node, and allocates the values that nodes read and write. */
static lac_status plan_nodes(plan *p, lac_error *err) {
  lac_status st = LAC_OK;
  for (int v = 0; v < p->graph->n_inputs; v++) p->owned[p->graph->inputs[v]] = 2;
  for (int v = 0; v < p->graph->n_outputs; v++) p->owned[p->graph->outputs[v]] = 2;
  for (int n = 0; n < p->graph->n_nodes && !st; n++) {
    const lac_graph_node *node = p->graph->nodes[n];
    const char *why;
    p->kernels[n] = find_kernel(p->graph, node, &why);
    for (int k = 0; k < node->n_inputs + node->n_outputs && !st; k++) {
      int v = k < node->n_inputs ? node->inputs[k] : node->outputs[k - node->n_inputs];
      if (v >= 0 && !p->owned[v]) st = make_buffer(p, v, err);
    }
  }
  for (int v = 0; v < p->graph->n_values; v++) p->owned[v] = p->owned[v] == 1;
  return st;
}

static lac_status create(void *context, const lac_graph_view *graph,
                         const lac_engine_request *request, void **self, lac_error *err) {
  (void)context;
  size_t most = 1;
  for (int n = 0; n < graph->n_nodes; n++) {
    size_t ports = (size_t)graph->nodes[n]->n_inputs + (size_t)graph->nodes[n]->n_outputs;
    if (ports > most) most = ports;
  }
  plan *p = calloc(1, sizeof *p);
  if (!p) return fail_memory(err);
  size_t n_values = (size_t)graph->n_values + 1, n_nodes = (size_t)graph->n_nodes + 1;
  p->graph = graph;
  p->host = request->host;
  p->kernels = calloc(n_nodes, sizeof *p->kernels);
  p->buffers = calloc(n_values, sizeof *p->buffers);
  p->owned = calloc(n_values, 1);
  p->in = calloc(most, sizeof *p->in);
  p->out = calloc(most, sizeof *p->out);
  lac_status st = LAC_OK;
  if (!p->kernels || !p->buffers || !p->owned || !p->in || !p->out) st = fail_memory(err);
  if (!st) st = plan_nodes(p, err);
  if (st) destroy(p);
  else *self = p;
  return st;
}

/* ---- A run ---- */

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static lac_status run_node(plan *p, int n, lac_error *err) {
  const lac_graph_node *node = p->graph->nodes[n];
  for (int k = 0; k < node->n_inputs; k++) {
    p->in[k] = node->inputs[k] < 0 ? NULL : p->buffers[node->inputs[k]];
  }
  for (int k = 0; k < node->n_outputs; k++) {
    p->out[k] = node->outputs[k] < 0 ? NULL : p->buffers[node->outputs[k]];
  }
  if (!p->kernels[n]) {
    return p->host->evaluate(p->host->self, n, (const void *const *)p->in, p->out, err);
  }
  const job j = {.graph = p->graph,
                 .node = node,
                 .x = p->in[0],
                 .w = node->n_inputs > 1 ? p->in[1] : NULL,
                 .b = node->n_inputs > 2 ? p->in[2] : NULL,
                 .y = p->out[0]};
  p->kernels[n]->compute(&j);
  return LAC_OK;
}

static lac_status run(void *self, const lac_engine_call *call, lac_error *err) {
  plan *p = self;
  lac_status st = LAC_OK;
  /* operators only read their inputs */
  for (int k = 0; k < p->graph->n_inputs; k++) {
    memcpy(&p->buffers[p->graph->inputs[k]], &call->inputs[k], sizeof(void *));
  }
  for (int k = 0; k < p->graph->n_outputs; k++) {
    p->buffers[p->graph->outputs[k]] = call->outputs[k];
  }
  for (int n = 0; n < p->graph->n_nodes && !st; n++) {
    if (call->is_interrupted(call->self)) {
      snprintf(err->text, sizeof err->text, "interrupted");
      return LAC_INTERRUPTED;
    }
    double begin = seconds_now();
    st = run_node(p, n, err);
    if (!st) st = call->step_done(call->self, n, seconds_now() - begin, err);
  }
  return st;
}

static int step_count(const void *self) {
  const plan *p = self;
  return p->graph->n_nodes;
}

static void step_info(const void *self, int step, lac_engine_step *info) {
  const plan *p = self;
  info->node = step;
  info->what = p->graph->nodes[step]->type;
  info->kernel = p->kernels[step] ? "loops" : "lacuna";
}

/* ---- The plug-in ---- */

static const lac_engine_plugin *open_engine(const char **why) {
  static const lac_dtype types[] = {LAC_DTYPE_F32};
  static const lac_engine_plugin engine = {.size = sizeof engine,
                                           .name = "naive",
                                           .dtypes = types,
                                           .n_dtypes = 1,
                                           .supports = supports,
                                           .create = create,
                                           .destroy = destroy,
                                           .run = run,
                                           .step_count = step_count,
                                           .step_info = step_info};
  (void)why;
  return &engine;
}

__attribute__((visibility("default"))) const lac_plugin *lac_plugin_open(void);

const lac_plugin *lac_plugin_open(void) {
  static const lac_plugin plugin = {
      .version = LAC_PLUGIN_VERSION, .size = sizeof plugin, .open_engine = open_engine};
  return &plugin;
}
