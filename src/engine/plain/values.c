/* SPDX-License-Identifier: Apache-2.0
 * The values in memory of the plain engine: loaded when they are read, counted, and freed after
 * their last reader. Next: plain.c. */
#include "base/budget.h"
#include "base/error.h"
#include "engine/plain/plain_in.h"
#include "graph/sizes.h"
#include "tensor/buf.h"

static lac_status load_from_memory(const laci_graph *graph, int stored, laci_buf **buf,
                                   lac_error *err) {
  const laci_stored *from = &graph->stored[stored];
  laci_type type = {.dtype = from->dtype, .shape = from->shape};
  return laci_buf_from_bytes(&type, from->bytes, from->size_bytes, buf, err);
}

/* ---- Values in memory ---- */

static uint64_t buffer_bytes(const laci_buf *buf) {
  return buf && (buf->f || buf->i) ? laci_count_bytes_saturated(buf->count, sizeof *buf->f) : 0;
}

/* Returns UINT64_MAX for a shape that is known but has too many elements to be counted. */
uint64_t laci_plain_bytes_of_type(const laci_type *type) {
  int64_t count = laci_shape_count(&type->shape);
  if (count < 0 && laci_shape_is_known(&type->shape)) return UINT64_MAX;
  return laci_count_bytes_saturated(count, sizeof(double));
}

/** Adds a value of that type to the budget. */
void laci_plain_add_to_budget(laci_budget *budget, const laci_graph *graph, int value,
                              const laci_type *type) {
  char text[256] = "";
  uint64_t bytes = laci_plain_bytes_of_type(type);
  laci_type here = *type; /* as this engine holds it */
  here.dtype = laci_dtype_is_integer(type->dtype) ? LAC_DTYPE_I64 : LAC_DTYPE_F64;
  if (bytes > budget->largest) laci_value_describe(graph, value, &here, text, sizeof text);
  laci_budget_add(budget, bytes, "%s", text);
}

void laci_plain_replace_value(laci_plain *run, int value, laci_buf *take) {
  if (run->budget) {
    laci_budget_subtract(run->budget, buffer_bytes(run->values[value]));
    laci_budget_add_unnamed(run->budget, buffer_bytes(take));
  }
  laci_buf_destroy(run->values[value]);
  run->values[value] = take;
}

/** Checks that the budget allows a value of that type. Fails LAC_MEMORY_LIMIT. */
lac_status laci_plain_check_budget(laci_plain *run, int value, const laci_type *type,
                                   lac_error *err) {
  if (laci_budget_allows(run->budget, laci_plain_bytes_of_type(type))) return LAC_OK;
  laci_budget then = *run->budget;
  laci_plain_add_to_budget(&then, run->graph, value, type);
  return laci_budget_check(&then, "the run", err);
}

/** Loads a stored tensor unless its content is in memory already. */
lac_status laci_plain_load_value(laci_plain *run, int value, lac_error *err) {
  const laci_value *v = &run->graph->values[value];
  laci_buf *buf = NULL;
  if (run->values[value]) return LAC_OK;
  lac_status st = run->load ? run->load(run->context, v->stored, &buf, err)
                            : load_from_memory(run->graph, v->stored, &buf, err);
  if (st) return laci_fail_with_prefix(err, st, "%s", v->name);
  laci_plain_replace_value(run, value, buf);
  return LAC_OK;
}

/** Frees a value whose readers have all run. A large stored tensor is freed after each reader, and
 * loaded again. */
void laci_plain_release_value(laci_plain *run, int value) {
  const laci_value *v = &run->graph->values[value];
  bool last = run->readers_left[value] <= 0;
  bool stored = v->stored >= 0 && !run->replaced[value] && run->values[value];
  bool reload = stored && run->values[value]->count > run->keep_elements;
  if (!v->is_output && (last || reload)) laci_plain_replace_value(run, value, NULL);
}

/** Does the node also read that value at an earlier place? A node that reads a value twice is one
 * reader. */
static bool is_read_before(const laci_node *node, int at, int value) {
  for (int before = 0; before < at; before++) {
    int other =
        before < node->n_inputs ? node->inputs[before] : node->captures[before - node->n_inputs];
    if (other == value) return true;
  }
  return false;
}

int laci_plain_nth_read(const laci_node *node, int at) {
  int value = at < node->n_inputs ? node->inputs[at] : node->captures[at - node->n_inputs];
  return value >= 0 && !is_read_before(node, at, value) ? value : -1;
}

void laci_plain_release_last_step(laci_plain *run) {
  if (run->last < 0) return;
  const laci_node *node = &run->graph->nodes[run->last];
  for (int at = 0; at < node->n_inputs + node->n_captures; at++) {
    int value = laci_plain_nth_read(node, at);
    if (value < 0) continue;
    run->readers_left[value]--;
    laci_plain_release_value(run, value);
  }
  for (int at = 0; at < node->n_outputs; at++) {
    if (node->outputs[at] >= 0) laci_plain_release_value(run, node->outputs[at]);
  }
  run->last = -1;
}

lac_status laci_plain_require_value(laci_plain *run, const laci_node *node, int value,
                                    lac_error *err) {
  const laci_value *v = &run->graph->values[value];
  if (v->stored >= 0) return laci_plain_load_value(run, value, err);
  if (run->values[value]) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "%s (%s): its input '%s' was not computed", node->name,
                   node->type, v->name);
}
