/* SPDX-License-Identifier: Apache-2.0
 * The provider of one session: it names the nodes that it takes, and makes a computation of each
 * part that ONNX Runtime cut out for it. */
#include "ep.h"

#include "attribute.h"
#include "claim.h"
#include "compute.h"
#include "lacuna/context.h"

#include <stdlib.h>

typedef struct ep {
  ort_ep face; /* first member: ONNX Runtime passes its address */
  laci_ort_shared shared;
  bool has_parts; /* the provider has taken nodes */
} ep;

/* Before this release, parts that are taken in a later call get names that other parts already
 * have. */
enum { NAMES_ARE_UNIQUE = 24 };

static const char *get_name(const ort_ep *self) {
  (void)self;
  return LAC_ORT_PROVIDER;
}

/* ---- Nodes that are taken ---- */

static lac_status claim_part_nodes(laci_ort_graph *graph, const laci_ort_claim *claim, int number,
                                   ort_support *support, lac_error *err) {
  const ort_fusion how = {.version = LAC_ORT_API, .drop_constants = true};
  const ort_node **nodes = laci_ort_allocate(&graph->arena, (size_t)graph->n_nodes, sizeof(void *));
  size_t n = 0;
  if (!nodes) return laci_ort_fail_memory(err);
  for (int k = 0; k < graph->n_nodes; k++)
    if (claim->part[k] == number) nodes[n++] = graph->nodes[k].node;
  return laci_ort_take_failure(graph->ort, graph->ort->fuse_nodes(support, nodes, n, &how), "nodes",
                               err);
}

static ort_status *get_capability(ort_ep *self, const ort_graph *of, ort_support *support) {
  ep *e = (ep *)self;
  laci_ort_graph graph = {0};
  laci_ort_claim claim = {0};
  lac_error err = {0};
  if (!of || !support) return laci_ort_fail_missing(e->shared.ort, "GetCapability");
  lac_status st = laci_ort_read_graph(&graph, e->shared.ort, of, &err);
  graph.context = e->shared.context;
  if (!st) st = laci_ort_find_claim(&graph, &e->shared.options, e->shared.logger, &claim, &err);
  if (e->has_parts && e->shared.ort->release < NAMES_ARE_UNIQUE) claim.n_parts = 0;
  for (int k = 0; !st && k < claim.n_parts; k++)
    st = claim_part_nodes(&graph, &claim, k, support, &err);
  e->has_parts = e->has_parts || claim.n_parts;
  laci_ort_graph_clear(&graph);
  return laci_ort_make_status(e->shared.ort, st, &err);
}

/* ---- Computations ---- */

/** Finds a list of values in the graph by their names. *numbers: [n] number of each value in the
 * graph. */
static lac_status find_value_numbers(laci_ort_graph *graph, const ort_value_info **infos, size_t n,
                                     int **numbers, lac_error *err) {
  lac_status st = LAC_OK;
  *numbers = laci_ort_allocate(&graph->arena, n, sizeof **numbers);
  if (!*numbers) return laci_ort_fail_memory(err);
  for (size_t k = 0; !st && k < n; k++) {
    const char *name = NULL;
    if (infos[k])
      st = laci_ort_take_failure(graph->ort, graph->ort->value_name(infos[k], &name), "a value",
                                 err);
    if (st) break;
    (*numbers)[k] = name ? laci_ort_find_value(graph, name) : -1;
    if ((*numbers)[k] < 0)
      st = laci_ort_fail(err, LAC_BAD_FILE, "the part's graph has no value %s", name ? name : "");
  }
  return st;
}

/** Fills the part with all nodes of the graph, and the operands of the fused node. */
static lac_status fill_whole_part(laci_ort_graph *graph, const ort_node *fused, laci_ort_part *part,
                                  lac_error *err) {
  const laci_ort *ort = graph->ort;
  size_t n_in = 0, n_out = 0;
  lac_status st = laci_ort_take_failure(ort, ort->n_node_inputs(fused, &n_in), "a part", err);
  if (!st) st = laci_ort_take_failure(ort, ort->n_node_outputs(fused, &n_out), "a part", err);
  if (st) return st;
  const ort_value_info **in = laci_ort_allocate(&graph->arena, n_in, sizeof(void *));
  const ort_value_info **out = laci_ort_allocate(&graph->arena, n_out, sizeof(void *));
  int *nodes = laci_ort_allocate(&graph->arena, (size_t)graph->n_nodes, sizeof *nodes);
  int *inputs = NULL, *outputs = NULL;
  if (!in || !out || !nodes) return laci_ort_fail_memory(err);
  if (n_in) st = laci_ort_take_failure(ort, ort->node_inputs(fused, in, n_in), "a part", err);
  if (!st && n_out)
    st = laci_ort_take_failure(ort, ort->node_outputs(fused, out, n_out), "a part", err);
  if (!st) st = find_value_numbers(graph, in, n_in, &inputs, err);
  if (!st) st = find_value_numbers(graph, out, n_out, &outputs, err);
  if (st) return st;
  for (int k = 0; k < graph->n_nodes; k++) nodes[k] = k;
  *part = (laci_ort_part){.nodes = nodes,
                          .n_nodes = graph->n_nodes,
                          .inputs = inputs,
                          .n_inputs = (int)n_in,
                          .outputs = outputs,
                          .n_outputs = (int)n_out};
  return LAC_OK;
}

/** Loads the packed model that is an attribute of the node. */
static lac_status load_packed_model(laci_ort_graph *graph, const laci_ort_node *node,
                                    laci_ort_model **model, lac_error *err) {
  char *bytes = NULL;
  size_t n = 0;
  lac_status st = laci_ort_read_text_attribute(graph, node, "ep_cache_context", &bytes, &n, err);
  if (!st && !bytes)
    st = laci_ort_fail(err, LAC_BAD_FILE, "%s: the node holds no pack", node->name);
  if (!st) st = laci_ort_model_unpack(bytes, n, model, err);
  free(bytes);
  return st;
}

static lac_status compile_part(ep *e, const ort_graph *of, const ort_node *fused,
                               ort_compute **made, lac_error *err) {
  laci_ort_graph graph = {0};
  laci_ort_part part = {0};
  laci_ort_model *model = NULL;
  *made = NULL;
  bool packed = false;
  if (!of || !fused) return laci_ort_fail(err, LAC_BAD_ARGUMENT, "a part has no graph or no node");
  lac_status st = laci_ort_read_graph(&graph, e->shared.ort, of, err);
  graph.context = e->shared.context;
  if (!st) st = fill_whole_part(&graph, fused, &part, err);
  if (!st && part.n_nodes == 1) st = laci_ort_is_packed_node(&graph, &graph.nodes[0], &packed, err);
  if (!st && packed) st = load_packed_model(&graph, &graph.nodes[0], &model, err);
  if (!st && !packed) st = laci_ort_model_make(&graph, &part, true, &model, err);
  if (!st) st = laci_ort_compute_create(&e->shared, &graph, &part, model, made, err);
  if (st) laci_ort_model_destroy(model);
  laci_ort_graph_clear(&graph);
  return st;
}

static void release_computes(ort_ep *self, ort_compute **computes, size_t n) {
  (void)self;
  for (size_t k = 0; computes && k < n; k++) {
    laci_ort_compute_destroy(computes[k]);
    computes[k] = NULL;
  }
}

static ort_status *compile(ort_ep *self, const ort_graph **graphs, const ort_node **fused, size_t n,
                           ort_compute **computes, ort_node **context_nodes) {
  ep *e = (ep *)self;
  lac_error err = {0};
  lac_status st = LAC_OK;
  (void)context_nodes; /* used for compiled models, which `lacuna pack` writes instead */
  if (n && (!graphs || !fused || !computes)) return laci_ort_fail_missing(e->shared.ort, "Compile");
  for (size_t k = 0; k < n; k++) computes[k] = NULL;
  for (size_t k = 0; !st && k < n; k++)
    st = compile_part(e, graphs[k], fused[k], &computes[k], &err);
  if (st) release_computes(self, computes, n);
  return laci_ort_make_status(e->shared.ort, st, &err);
}

/* ---- Creation ---- */

static ort_status *create_profiler(ort_ep *self, ort_profiler **made) {
  ep *e = (ep *)self;
  lac_error err = {0};
  if (!made) return laci_ort_fail_missing(e->shared.ort, "CreateProfiler");
  return laci_ort_make_status(
      e->shared.ort, laci_ort_profiles_add_profiler(&e->shared.profiles, made, &err), &err);
}

static void log_line(lac_log_level level, const char *line, void *context) {
  const laci_ort_shared *shared = context;
  laci_ort_log(shared->ort, shared->logger,
               level <= LAC_LOG_WARNING ? LAC_ORT_WARNING : LAC_ORT_INFO, "%s", line);
}

lac_status laci_ort_ep_create(const laci_ort *ort, const ort_session_options *options,
                              const ort_logger *logger, ort_ep **made, lac_error *err) {
  ep *e = calloc(1, sizeof *e);
  *made = NULL;
  if (!e) return laci_ort_fail_memory(err);
  bool profiles = ort->release >= LAC_ORT_PROFILES;
  e->face = (ort_ep){.version = profiles ? LAC_ORT_PROFILES : LAC_ORT_API,
                     .get_name = get_name,
                     .get_capability = get_capability,
                     .compile = compile,
                     .release_computes = release_computes,
                     .create_profiler = profiles ? create_profiler : NULL};
  e->shared.ort = ort;
  e->shared.logger = logger;
  lac_status st = LAC_OK;
  if (!laci_ort_profiles_init(&e->shared.profiles, ort)) {
    free(e);
    return laci_ort_fail_memory(err);
  }
  if (pthread_mutex_init(&e->shared.lock, NULL) != 0) {
    laci_ort_profiles_clear(&e->shared.profiles);
    free(e);
    return laci_ort_fail_memory(err);
  }
  st = laci_ort_options_read(&e->shared.options, ort, options, err);
  if (!st) st = lac_context_create(&e->shared.context, err);
  if (st) {
    laci_ort_ep_destroy(&e->face);
    return st;
  }
  lac_context_set_log(e->shared.context, e->shared.options.verbose ? LAC_LOG_INFO : LAC_LOG_WARNING,
                      log_line, &e->shared);
  *made = &e->face;
  return LAC_OK;
}

void laci_ort_ep_destroy(ort_ep *self) {
  ep *e = (ep *)self;
  if (!e) return;
  lac_context_destroy(e->shared.context);
  (void)pthread_mutex_destroy(&e->shared.lock);
  laci_ort_profiles_clear(&e->shared.profiles);
  free(e);
}
