/* SPDX-License-Identifier: Apache-2.0
 * An engine for tests of the seam (lacuna/engine_plugin.h): it has the library compute every node,
 * and uses all that an engine may use. With LAC_TEST_DEVICE it has memory of its own: addresses
 * there end the process if the host reads them. LAC_TEST_LIE in the environment names what it does
 * wrong, LAC_TEST_NAME its name. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lacuna/plugin.h"

#ifdef LAC_TEST_DEVICE
enum { HAS_DEVICE = 1 };
#else
enum { HAS_DEVICE = 0 };
#endif

static bool lies(const char *how) {
  const char *lie = getenv("LAC_TEST_LIE");
  return lie && strcmp(lie, how) == 0;
}

static lac_status fail(lac_error *err, lac_status status, const char *why) {
  (void)snprintf(err->text, sizeof err->text, "%s", why);
  return status;
}

/* ---- The device: memory whose addresses are of no use to others ---- */

static const uintptr_t away = (uintptr_t)1 << 62;

/* Returns the address that this engine can read; on the host: the same. */
static void *here(const void *address) {
  return (void *)(HAS_DEVICE && address ? (uintptr_t)address ^ away : (uintptr_t)address);
}
static void *there(void *address) { return here(address); }

static void *allocate(void *context, size_t n) {
  (void)context;
  return lies("no device memory") ? NULL : there(calloc(1, n));
}

static void release(void *context, void *memory) {
  (void)context;
  free(here(memory));
}

static lac_status to_device(void *context, void *to, const void *from, size_t n, lac_error *err) {
  (void)context;
  if (lies("no copies")) return fail(err, LAC_IO, "the bus is down");
  memcpy(here(to), from, n);
  return LAC_OK;
}

static lac_status to_host(void *context, void *to, const void *from, size_t n, lac_error *err) {
  (void)context;
  (void)err;
  memcpy(to, here(from), n);
  return LAC_OK;
}

static const lac_engine_device device = {.size = sizeof device,
                                         .name = "test:0",
                                         .allocate = allocate,
                                         .release = release,
                                         .to_device = to_device,
                                         .to_host = to_host};

/* ---- A plan ---- */

static int ours; /* its address is the context */

static lac_engine_answer refuse(lac_error *why, const char *text) {
  (void)fail(why, LAC_UNSUPPORTED, text);
  return LAC_ENGINE_REFUSES;
}

typedef struct plan {
  const lac_graph_view *graph;
  lac_engine_request request;
  void **values; /* [n_values] */
  char *owned;   /* [n_values] */
  void *in[64], *out[64];
  const lac_engine_call *call; /* between start and wait */
} plan;

static lac_engine_answer supports(void *context, const lac_graph_view *graph, int node,
                                  lac_error *why) {
  const lac_graph_node *n = graph->nodes[node];
  if (context != &ours) return refuse(why, "the context is lost");
  if (lies("no answer")) return (lac_engine_answer)7;
  if (strcmp(n->type, "Softmax") == 0) return refuse(why, "too soft");
  if (strcmp(n->type, "Relu") == 0) return LAC_ENGINE_COMPUTES;
  (void)fail(why, LAC_OK, "it is lazy");
  return LAC_ENGINE_EVALUATES;
}

static void destroy(void *self) {
  plan *p = self;
  for (int v = 0; p->values && p->owned && v < p->graph->n_values; v++) {
    if (p->owned[v]) free(p->values[v]);
  }
  free((void *)p->values);
  free(p->owned);
  free(p);
}

static lac_status create(void *context, const lac_graph_view *graph,
                         const lac_engine_request *request, void **self, lac_error *err) {
  lac_status st = LAC_OK;
  if (context != &ours) return fail(err, LAC_BAD_ARGUMENT, "the context is lost");
  if (lies("no object")) return LAC_OK;
  if (lies("no reason")) return LAC_NO_MEMORY;
  if (lies("no status")) return (lac_status)77;
  plan *p = calloc(1, sizeof *p);
  if (!p) return LAC_NO_MEMORY;
  p->graph = graph;
  p->request = *request;
  p->values = calloc((size_t)graph->n_values + 1, sizeof *p->values);
  p->owned = calloc((size_t)graph->n_values + 1, 1);
  if (!p->values || !p->owned) st = fail(err, LAC_NO_MEMORY, "no memory");
  for (int v = 0; v < graph->n_values && !st; v++) {
    const lac_graph_value *value = graph->values[v];
    if (value->producer < 0 || value->count < 0) continue;
    const uint64_t bytes = (uint64_t)value->count * 8 + 1;
    st = request->host->count_memory(request->host->self, bytes, value->name, err);
    p->values[v] = st ? NULL : calloc(1, bytes);
    p->owned[v] = 1;
    if (!st && !p->values[v]) st = fail(err, LAC_NO_MEMORY, "no memory");
  }
  if (st) destroy(p);
  else *self = p;
  return st;
}

/* ---- A run ---- */

/* One thread computes every node's Relu: part k of two. */
typedef struct halves {
  const float *x;
  float *y;
  int64_t n;
} halves;

static void compute_half(void *arg, int k) {
  const halves *h = arg;
  int64_t begin = k ? h->n / 2 : 0, end = k ? h->n : h->n / 2;
  for (int64_t at = begin; at < end; at++) h->y[at] = h->x[at] < 0 ? 0 : h->x[at];
}

static bool is_observed(const plan *p, int value) {
  for (int at = 0; at < p->request.n_observed; at++) {
    if (p->request.observed[at] == value) return true;
  }
  return false;
}

static lac_status show_outputs(plan *p, const lac_graph_node *node, lac_error *err) {
  lac_status st = LAC_OK;
  for (int k = 0; k < node->n_outputs && !st; k++) {
    int v = node->outputs[k];
    if (v < 0 || !is_observed(p, v) || lies("hides")) continue;
    st = p->call->see(p->call->self, v, there(p->values[v]), err);
  }
  return st;
}

static lac_status run_node(plan *p, int n, lac_error *err) {
  const lac_graph_node *node = p->graph->nodes[n];
  const lac_engine_host *host = p->request.host;
  for (int k = 0; k < node->n_inputs; k++) {
    p->in[k] = node->inputs[k] < 0 ? NULL : p->values[node->inputs[k]];
  }
  for (int k = 0; k < node->n_outputs; k++) {
    p->out[k] = node->outputs[k] < 0 ? NULL : p->values[node->outputs[k]];
  }
  lac_status st = LAC_OK;
  if (strcmp(node->type, "Relu") == 0) {
    halves h = {p->in[0], p->out[0], p->graph->values[node->outputs[0]]->count};
    host->parallel(host->self, compute_half, &h, 2);
  } else {
    st = host->evaluate(host->self, lies("no node") ? 1000 : n, (const void *const *)p->in, p->out,
                        err);
  }
  return st ? st : show_outputs(p, node, err);
}

static lac_status run_nodes(plan *p, lac_error *err) {
  const lac_graph_view *g = p->graph;
  const lac_engine_call *call = p->call;
  lac_status st = LAC_OK;
  for (int k = 0; k < g->n_inputs; k++) p->values[g->inputs[k]] = here(call->inputs[k]);
  if (lies("shows others")) st = call->see(call->self, g->n_values, there(p->values[0]), err);
  if (lies("ignores failures")) st = LAC_OK;
  for (int n = 0; n < g->n_nodes && !st; n++) {
    if (call->is_interrupted(call->self)) return fail(err, LAC_INTERRUPTED, "interrupted");
    st = run_node(p, n, err);
    int step = lies("steps twice") ? 0 : n;
    if (!st && !lies("no steps done")) st = call->step_done(call->self, step, -1, err);
  }
  for (int k = 0; k < g->n_outputs && !st; k++) {
    const lac_graph_value *value = g->values[g->outputs[k]];
    const bool wide = value->dtype == LAC_DTYPE_I64; /* tests have no other integers */
    memcpy(here(call->outputs[k]), p->values[g->outputs[k]], (size_t)value->count * (wide ? 8 : 4));
  }
  return st;
}

static lac_status run(void *self, const lac_engine_call *call, lac_error *err) {
  plan *p = self;
  p->call = call;
  return run_nodes(p, err);
}

static lac_status start(void *self, const lac_engine_call *call, lac_error *err) {
  plan *p = self;
  p->call = call;
  return lies("no start") ? fail(err, LAC_IO, "the queue is full") : LAC_OK;
}

static lac_status wait_for_run(void *self, lac_error *err) { return run_nodes(self, err); }

static int step_count(const void *self) {
  const plan *p = self;
  return lies("less than no steps") ? -3 : p->graph->n_nodes;
}

static void step_info(const void *self, int step, lac_engine_step *info) {
  const plan *p = self;
  info->node = lies("a step of no node") ? p->graph->n_nodes : step;
  info->what = lies("a step of nothing") ? NULL : p->graph->nodes[step]->type;
  info->kernel = "test";
}

/* ---- The optimizer: sgd without momentum's variants ---- */

static void update_parameter(const lac_engine_update *u, const lac_engine_parameter *p) {
  float *w = here(p->weights), *g = here(p->gradients), *v = here(p->state[0]);
  for (int64_t at = 0; at < p->count; at++) {
    if (p->mask && !p->mask[at]) g[at] = 0;
    v[at] = u->momentum * v[at] + (u->scale * g[at] + p->decay * w[at]);
    w[at] -= u->rate * v[at];
  }
}

static lac_status update_weights(void *self, const lac_engine_update *u, lac_error *err) {
  (void)self;
  if (lies("no update")) return fail(err, LAC_IO, "the weights are locked");
  if (strcmp(u->rule, "sgd") != 0 || u->nesterov || u->rate_inside) {
    return fail(err, LAC_UNSUPPORTED, "plain momentum alone");
  }
  for (int k = 0; k < u->n_parameters; k++) update_parameter(u, u->parameters[k]);
  return LAC_OK;
}

/* ---- The plug-in ---- */

static lac_engine_plugin make_engine(void) {
  static const lac_dtype types[] = {LAC_DTYPE_F32}, none[] = {(lac_dtype)999};
  const char *name = getenv("LAC_TEST_NAME");
  lac_engine_plugin e = {.size = lies("a size of 8") ? 8 : sizeof e,
                         .name = name         ? name
                                 : HAS_DEVICE ? "test-device"
                                              : "test-host",
                         .dtypes = lies("a type that is none") ? none : types,
                         .n_dtypes = lies("less than no types") ? -1 : 1,
                         .device = HAS_DEVICE ? &device : NULL,
                         .context = &ours,
                         .supports = supports,
                         .create = lies("no create") ? NULL : create,
                         .destroy = destroy,
                         .run = HAS_DEVICE || lies("no run") ? NULL : run,
                         .start = HAS_DEVICE ? start : NULL,
                         .wait = HAS_DEVICE ? wait_for_run : NULL,
                         .step_count = step_count,
                         .step_info = lies("no step_info") ? NULL : step_info,
                         .update = update_weights,
                         .observes = HAS_DEVICE};
  return e;
}

static const lac_engine_plugin *open_engine(const char **why) {
  /* as a later version's struct: more bytes than this library knows */
  static struct {
    lac_engine_plugin engine;
    char later[64];
  } given;
  memset(&given, 0, sizeof given);
  given.engine = make_engine();
  if (lies("later fields of 0") || lies("a later field")) given.engine.size = sizeof given;
  if (lies("a later field")) given.later[63] = 1;
  if (lies("no engine")) *why = "there is no such device";
  return lies("no engine") || lies("no engine and no reason") ? NULL : &given.engine;
}

__attribute__((visibility("default"))) const lac_plugin *lac_plugin_open(void);

const lac_plugin *lac_plugin_open(void) {
  static lac_plugin plugin;
  plugin = (lac_plugin){.version = lies("version 1") ? 1 : LAC_PLUGIN_VERSION,
                        .size = sizeof plugin,
                        .open_engine = lies("no open_engine") ? NULL : open_engine};
  return lies("no plug-in") ? NULL : &plugin;
}
