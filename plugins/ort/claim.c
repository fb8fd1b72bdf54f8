/* SPDX-License-Identifier: Apache-2.0
 * Chooses the nodes to take. The graph is cut into parts, and Lacuna is asked how it would run each
 * part. A node that cannot be planned, or would run slowly, is refused, that is, left to ONNX
 * Runtime. Then the graph is cut anew without it. The rounds end when no more nodes are refused, so
 * that all parts can be planned. Next: part.h, lacuna/plan.h. */
#include "claim.h"

#include "attribute.h"
#include "lacuna/plan.h"
#include "model.h"
#include "part.h"

#include <string.h>

enum {
  HANDS_OVER = 28, /* first release (1.28) that passes to a part the values that only bodies read */
  MOST_ROUNDS = 64,
  LEAST_SHARE = 4, /* a part is taken if sparse kernels run at least 1 of every LEAST_SHARE of its
                      layers */
  LEAST_NODES = 2, /* minimum number of nodes of a part that is taken */
};

/** What is known so far of each node and part. */
typedef struct search {
  laci_ort_graph *graph;
  const laci_ort_options *options;
  const ort_logger *logger;
  laci_ort_edges edges;
  bool *may;
  bool *packed;     /* [n_nodes] the node holds a packed model, and is a part by itself */
  const char **why; /* [n_nodes] why a node is not taken; NULL: it may be */
  int *part;
  bool *accepted; /* [n_parts] the part can be planned, and is worth taking */
  int *nodes;     /* [n_nodes] numbers of the nodes of one part */
} search;

/* ---- Kinds of nodes ---- */

/** Can a part read and write values of this type? It cannot for texts, nor for types of which ONNX
 * Runtime stores several elements in a byte. */
static bool is_tensor_type_supported(int dtype) {
  switch (dtype) {
    case LAC_DTYPE_U4:
    case LAC_DTYPE_I4:
    case LAC_DTYPE_U2:
    case LAC_DTYPE_I2:
    case LAC_DTYPE_F4E2M1: return false;
    default: return dtype > 0 && dtype < LAC_DTYPE_COUNT && lac_dtype_size((lac_dtype)dtype) > 0;
  }
}

static lac_status check_value_types(search *s, const int *values, int n, const char **why,
                                    lac_error *err) {
  for (int k = 0; k < n; k++) {
    laci_ort_type type;
    if (values[k] < 0 || s->graph->values[values[k]].constant) continue;
    lac_status st = laci_ort_read_type(s->graph, s->graph->values[values[k]].info, &type, err);
    if (st) return st;
    if (!is_tensor_type_supported(type.dtype)) *why = "a value has a type that cannot be passed";
    if (type.rank > 8) *why = "a value has more than 8 dimensions";
  }
  return LAC_OK;
}

/** Do bodies of the node read values of the graph that are no constants? */
static bool has_bodies_reading_outside(const laci_ort_graph *graph, const laci_ort_node *node) {
  for (int k = node->n_inputs; k < node->n_inputs + node->n_implicit; k++)
    if (node->inputs[k] >= 0 && !graph->values[node->inputs[k]].constant) return true;
  return false;
}

static lac_status find_takeable_nodes(search *s, lac_error *err) {
  lac_status st = LAC_OK;
  for (int k = 0; !st && k < s->graph->n_nodes; k++) {
    const laci_ort_node *node = &s->graph->nodes[k];
    const char *why = NULL;
    st = laci_ort_is_packed_node(s->graph, node, &s->packed[k], err);
    if (st) return st;
    if (s->packed[k]) why = "a packed model";
    if (!why && *node->provider && strcmp(node->provider, LAC_ORT_PROVIDER) != 0)
      why = "another provider has it";
    if (!why && !s->options->all && node->n_bodies) why = "it has bodies";
    if (!why && s->graph->ort->release < HANDS_OVER && has_bodies_reading_outside(s->graph, node))
      why = "this release of ONNX Runtime does not hand over what its bodies read";
    if (!why) st = check_value_types(s, node->inputs, node->n_inputs + node->n_implicit, &why, err);
    if (!st && !why) st = check_value_types(s, node->outputs, node->n_outputs, &why, err);
    s->why[k] = why;
    s->may[k] = !why;
  }
  return st;
}

static lac_status list_edges(search *s, lac_error *err) {
  laci_ort_graph *graph = s->graph;
  size_t n = 0;
  for (int k = 0; k < graph->n_nodes; k++)
    n += (size_t)(graph->nodes[k].n_inputs + graph->nodes[k].n_implicit);
  int *begin = laci_ort_allocate(&graph->arena, (size_t)graph->n_nodes + 1, sizeof *begin);
  int *from = laci_ort_allocate(&graph->arena, n, sizeof *from);
  if (!begin || !from) return laci_ort_fail_memory(err);
  int n_edges = 0;
  for (int k = 0; k < graph->n_nodes; k++) {
    const laci_ort_node *node = &graph->nodes[k];
    for (int in = 0; in < node->n_inputs + node->n_implicit; in++) {
      int producer = node->inputs[in] < 0 ? -1 : graph->values[node->inputs[in]].producer;
      if (producer >= k)
        return laci_ort_fail(err, LAC_BAD_FILE, "%s: it is before a node that it reads",
                             node->name);
      if (producer >= 0) from[n_edges++] = producer;
    }
    begin[k + 1] = n_edges;
  }
  s->edges = (laci_ort_edges){.n_nodes = graph->n_nodes, .begin = begin, .from = from};
  return LAC_OK;
}

/* ---- Questions about parts ---- */

static void refuse_node(search *s, int node, const char *why) {
  size_t n = why ? strlen(why) + 1 : 0;
  char *copy = n ? laci_ort_allocate(&s->graph->arena, n, 1) : NULL;
  if (copy) memcpy(copy, why, n);
  s->may[node] = false;
  s->why[node] = copy ? copy : "it cannot be planned";
}

/** Has the node's operator a weight that could be sparse? */
static bool has_prunable_weight(const laci_ort_graph *graph, const laci_ort_node *node) {
  static const char *const ops[] = {"Conv",        "ConvTranspose", "Gemm",        "MatMul",
                                    "FusedConv",   "FusedGemm",     "FusedMatMul", "Attention",
                                    "QLinearConv", "QLinearMatMul", "LSTM",        "GRU",
                                    "RNN"};
  bool stored = false;
  for (int k = 0; k < node->n_inputs; k++)
    stored = stored || (node->inputs[k] >= 0 && graph->values[node->inputs[k]].constant);
  for (size_t k = 0; stored && k < sizeof ops / sizeof ops[0]; k++)
    if (strcmp(node->op, ops[k]) == 0) return true;
  return false;
}

/** Reads from the answer what would run each node of a part. *refused: a node was refused.
 * *n_sparse: number of nodes that a sparse kernel would run. */
static void apply_plan_answer(search *s, const laci_ort_part *part, const lac_plan_answer *answer,
                              bool *refused, int *n_sparse) {
  *n_sparse = 0;
  for (int k = 0; k < part->n_nodes; k++) {
    const laci_ort_node *node = &s->graph->nodes[part->nodes[k]];
    lac_plan_node found = LAC_SIZED(lac_plan_node);
    int first = node->n_outputs ? node->outputs[0] : -1;
    if (first < 0 || lac_plan_find(answer, s->graph->values[first].name, &found, NULL)) continue;
    bool slow = found.runner == LAC_RUNNER_EXACT || found.runner == LAC_RUNNER_OPERATOR;
    if (found.runner == LAC_RUNNER_NONE || (slow && !s->options->all)) {
      refuse_node(s, part->nodes[k], found.reason);
      *refused = true;
    }
    if (found.sparse) ++*n_sparse;
  }
}

static bool is_worth_taking(const search *s, const laci_ort_part *part, int n_sparse) {
  int n_layers = 0;
  if (s->options->all) return true;
  for (int k = 0; k < part->n_nodes; k++)
    n_layers += has_prunable_weight(s->graph, &s->graph->nodes[part->nodes[k]]);
  return part->n_nodes >= LEAST_NODES && n_sparse > 0 && LEAST_SHARE * n_sparse >= n_layers;
}

static void refuse_part(search *s, const laci_ort_part *part, const char *why) {
  for (int k = 0; k < part->n_nodes; k++) refuse_node(s, part->nodes[k], why);
}

/** Asks about one part. *accepted: it can be planned, and is worth taking. *refused: nodes of it
 * were refused. Fails only if memory is short or ONNX Runtime fails. */
static lac_status ask_about_part(search *s, const laci_ort_part *part, bool *accepted,
                                 bool *refused, lac_error *err) {
  laci_ort_model *model = NULL;
  lac_plan_answer *answer = NULL;
  lac_plan_facts facts = LAC_SIZED(lac_plan_facts);
  lac_engine_options options = lac_engine_options_default();
  lac_error why = {0};
  int n_sparse = 0;
  *accepted = *refused = false;
  options.run.dtype = s->options->dtype;
  options.run.max_memory = s->options->memory;
  options.run.threads = s->options->threads;
  options.run.context = s->graph->context;
  lac_status st = laci_ort_model_make(s->graph, part, false, &model, &why);
  if (!st) st = lac_plan_ask(laci_ort_get_loaded_model(model), &options, &answer, &why);
  if (!st) st = lac_plan_about(answer, &facts, &why);
  if (!st) {
    apply_plan_answer(s, part, answer, refused, &n_sparse);
    if (!*refused && facts.refusal) {
      refuse_part(s, part, facts.reason);
      *refused = true;
    }
    *accepted = !*refused && is_worth_taking(s, part, n_sparse);
  } else if (st != LAC_NO_MEMORY) {
    refuse_part(s, part, why.text);
    *refused = true;
    st = LAC_OK;
  }
  if (st && err) *err = why;
  lac_plan_answer_destroy(answer);
  laci_ort_model_destroy(model);
  return st;
}

/* ---- Rounds ---- */

static int list_part_nodes(search *s, int number) {
  int n = 0;
  for (int k = 0; k < s->graph->n_nodes; k++)
    if (s->part[k] == number) s->nodes[n++] = k;
  return n;
}

/** Cuts the graph and asks about each part. *again: nodes were refused. */
static lac_status ask_about_all_parts(search *s, int *n_parts, bool *again, lac_error *err) {
  *again = false;
  if (!laci_ort_cut_graph(&s->edges, s->may, s->part, n_parts)) return laci_ort_fail_memory(err);
  for (int number = 0; number < *n_parts; number++) {
    laci_ort_part part;
    bool refused = false;
    int n = list_part_nodes(s, number);
    lac_status st = laci_ort_find_part_values(s->graph, s->nodes, n, &part, err);
    if (!st) st = ask_about_part(s, &part, &s->accepted[number], &refused, err);
    if (st) return st;
    *again = *again || refused;
  }
  return LAC_OK;
}

static void log_claimed_nodes(const search *s) {
  for (int k = 0; s->options->verbose && k < s->graph->n_nodes; k++) {
    const laci_ort_node *node = &s->graph->nodes[k];
    const char *why = s->part[k] >= 0 ? "" : s->why[k] ? s->why[k] : "its part would not be faster";
    laci_ort_log(s->graph->ort, s->logger, LAC_ORT_WARNING, "%s (%s): %s%s%s", node->name, node->op,
                 s->part[k] >= 0 ? "taken" : "left to ONNX Runtime", *why ? ": " : "", why);
  }
}

static lac_status find_parts(search *s, laci_ort_claim *claim, lac_error *err) {
  int n_parts = 0, n_taken = 0;
  bool again = true;
  lac_status st = find_takeable_nodes(s, err);
  if (!st) st = list_edges(s, err);
  for (int round = 0; !st && again && round < MOST_ROUNDS; round++)
    st = ask_about_all_parts(s, &n_parts, &again, err);
  if (st) return st;
  if (again) n_parts = 0; /* the last round still refused nodes: no part is known to run */
  int *number = laci_ort_allocate(&s->graph->arena, (size_t)n_parts + 1, sizeof *number);
  if (!number) return laci_ort_fail_memory(err);
  for (int k = 0; k < n_parts; k++) number[k] = s->accepted[k] ? n_taken++ : -1;
  for (int k = 0; k < s->graph->n_nodes; k++) {
    s->part[k] = s->part[k] >= 0 && s->part[k] < n_parts ? number[s->part[k]] : -1;
    if (s->packed[k]) s->part[k] = n_taken++;
  }
  claim->part = s->part;
  claim->n_parts = n_taken;
  log_claimed_nodes(s);
  return LAC_OK;
}

lac_status laci_ort_find_claim(laci_ort_graph *graph, const laci_ort_options *options,
                               const ort_logger *logger, laci_ort_claim *claim, lac_error *err) {
  const ort_node *parent = NULL;
  size_t n = (size_t)graph->n_nodes + 1;
  search s = {.graph = graph, .options = options, .logger = logger};
  *claim = (laci_ort_claim){0};
  lac_status st = laci_ort_take_failure(graph->ort, graph->ort->parent(graph->graph, &parent),
                                        "the graph", err);
  if (st || parent || !graph->n_nodes) return st;
  s.may = laci_ort_allocate(&graph->arena, n, sizeof *s.may);
  s.packed = laci_ort_allocate(&graph->arena, n, sizeof *s.packed);
  s.why = laci_ort_allocate(&graph->arena, n, sizeof *s.why);
  s.part = laci_ort_allocate(&graph->arena, n, sizeof *s.part);
  s.accepted = laci_ort_allocate(&graph->arena, n, sizeof *s.accepted);
  s.nodes = laci_ort_allocate(&graph->arena, n, sizeof *s.nodes);
  if (!s.may || !s.packed || !s.why || !s.part || !s.accepted || !s.nodes)
    return laci_ort_fail_memory(err);
  return find_parts(&s, claim, err);
}
