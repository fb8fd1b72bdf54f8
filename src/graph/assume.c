/* SPDX-License-Identifier: Apache-2.0
 * Operators declared by the user. */
#include "graph/assume.h"

#include <string.h>

#include "base/error.h"
#include "graph/coupling.h"
#include "graph/op.h"

/* The shape inference of an operator that the user declares to treat all channels alike: every
 * output gets the type of the first input. */
static lac_status infer_outputs_like_input(laci_infer *infer) {
  for (int i = 0; i < infer->n_out && infer->n_in > 0 && infer->in[0]; i++)
    infer->out[i] = *infer->in[0];
  return LAC_OK;
}

static const laci_op op_assumed = {.name = "assumed same",
                                   .role = LACI_ROLE_PASS_THROUGH,
                                   .infer = infer_outputs_like_input,
                                   .couple = laci_couple_all_inputs_broadcast};

static bool has_type_and_domain(const laci_node *node, const char *name, size_t n) {
  const char *domain = node->domain, *type = node->type;
  if (strlen(type) == n && memcmp(type, name, n) == 0) return true;
  size_t n_domain = strlen(domain);
  return n_domain + 1 + strlen(type) == n && memcmp(domain, name, n_domain) == 0 &&
         name[n_domain] == '.' && memcmp(type, name + n_domain + 1, strlen(type)) == 0;
}

lac_status laci_graph_assume_same_channels(laci_graph *graph, const char *text, lac_error *err) {
  const char *equals = strrchr(text, '=');
  if (!equals || equals == text || strcmp(equals, "=same") != 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "assume \"%s\": wanted OP=same", text);
  }
  size_t n = (size_t)(equals - text);
  bool found = false;
  for (int i = 0; i < graph->n_nodes; i++) {
    laci_node *node = &graph->nodes[i];
    if (!has_type_and_domain(node, text, n)) continue;
    if (node->op && node->op != &op_assumed) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "assume \"%s\": %s is an operator that Lacuna knows",
                       text, node->type);
    }
    node->op = &op_assumed;
    node->assume = "same";
    found = true;
  }
  return found ? LAC_OK
               : laci_fail(err, LAC_NOT_FOUND, "assume \"%s\": the network has no such node", text);
}
