/* SPDX-License-Identifier: Apache-2.0
 * Runs an If by the engine of the branch that its condition chooses: choice.h. */
#include "engine/auto/choice.h"

#include <string.h>

#include "base/error.h"
#include "engine/auto/run_in.h"
#include "engine/stepper.h"
#include "graph/graph.h"
#include "tensor/buf.h"

/* Finds which branch the condition chooses: 0 then, 1 else. */
static lac_status read_condition(const laci_auto *a, const laci_node *node, int *branch,
                                 lac_error *err) {
  const laci_buf *buf = laci_stepper_value(a->stepper, node->inputs[0]);
  const char *name = a->graph->values[node->inputs[0]].name;
  if (!buf) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s (If): its condition '%s' was not computed",
                     node->name, name);
  }
  if (!buf->i || buf->count != 1)
    return laci_fail(err, LAC_BAD_SHAPE, "%s (If): '%s' is not one number", node->name, name);
  *branch = buf->i[0] ? 0 : 1;
  return LAC_OK;
}

/* Sets the times of all steps to 0, since those of one branch do not run. */
static void clear_times(const laci_auto_part *part, const laci_engine_watch *watch) {
  if (!watch || !part->n_steps) return;
  const size_t bytes = part->n_steps * sizeof(double);
  if (watch->begins) memset(watch->begins + part->first_step, 0, bytes);
  if (watch->seconds) memset(watch->seconds + part->first_step, 0, bytes);
}

/* ---- A branch without an engine ---- */

/* Steps the nodes of the branch, and the If. The nodes of a branch with an engine count as
 * stepped. */
static lac_status step_branch(laci_auto *a, const laci_auto_part *part, size_t first_step,
                              const laci_engine_watch *watch, lac_error *err) {
  lac_status st = LAC_OK;
  size_t step = first_step;
  for (size_t at = 0; at < part->n_nodes && !st; at++) {
    const int node = part->nodes[at];
    if (a->delegated[node]) laci_stepper_skip(a->stepper, node);
    else st = laci_auto_run_exact_step(a, node, step++, watch, err);
  }
  return st;
}

/* Copies outputs of the If from the stepper to their buffers. */
static lac_status copy_outputs_to_buffers(laci_auto *a, const laci_auto_choice *choice,
                                          lac_error *err) {
  const laci_node *node = &a->graph->nodes[choice->node];
  lac_status st = LAC_OK;
  for (int at = 0; at < node->n_outputs && !st; at++) {
    const int value = node->outputs[at];
    if (value < 0 || !a->buffered[value]) continue;
    st = laci_auto_copy_from_stepper(a, value, &choice->ports[at], a->at[value], err);
  }
  return st;
}

/* ---- A branch with an engine ---- */

/* Returns the address of the result at an output port of the branch's engine; NULL: the result has
 * an open size, so the engine holds it. */
static const void *result_address(const laci_auto *a, const laci_auto_branch *branch, int port) {
  const int value = branch->buffers[port];
  return value >= 0 ? a->at[value] : branch->own[port];
}

static lac_status set_stepper_output(laci_auto *a, const laci_auto_branch *branch, int port,
                                     int value, lac_error *err) {
  const laci_buf *open = laci_engine_result(branch->part.engine, port);
  laci_buf *buf = NULL;
  lac_status st;
  if (branch->part.output_ports[port].open) {
    if (!open) return laci_fail(err, LAC_UNSUPPORTED, "a result of a branch was not computed");
    st = laci_buf_copy(open, &buf, err);
  } else {
    st = laci_engine_port_load(&branch->part.output_ports[port], a->cut.types[value].dtype,
                               result_address(a, branch, port), &buf, err);
  }
  if (!st) laci_stepper_set_value(a->stepper, value, buf);
  return st;
}

/* Sets output `at` of the If: in its buffer, and in the stepper if exact nodes or the caller read
 * it there. */
static lac_status set_output(laci_auto *a, const laci_auto_choice *choice, int which, int at,
                             lac_error *err) {
  const laci_auto_branch *branch = &choice->branches[which];
  const int value = a->graph->nodes[choice->node].outputs[at];
  const int port = choice->result_ports[which][at];
  const laci_engine_port *from = &branch->part.output_ports[port], *to = &choice->ports[at];
  const bool buffered = a->buffered[value];
  const bool fits = buffered && !from->open && from->type.dtype == to->type.dtype &&
                    laci_shape_equal(&from->type.shape, &to->type.shape);
  lac_status st = LAC_OK;
  if (fits && branch->buffers[port] != value)
    memcpy(a->at[value], result_address(a, branch, port), to->size_bytes);
  if (!fits || a->in_stepper[value]) st = set_stepper_output(a, branch, port, value, err);
  if (!st && buffered && !fits) st = laci_auto_copy_from_stepper(a, value, to, a->at[value], err);
  return st;
}

static lac_status run_branch(laci_auto *a, const laci_auto_part *part, int which,
                             const laci_engine_watch *watch, lac_error *err) {
  const laci_auto_choice *choice = part->choice;
  const laci_auto_branch *branch = &choice->branches[which];
  const laci_node *node = &a->graph->nodes[choice->node];
  for (int at = 0; at < branch->part.n_outputs; at++)
    branch->part.out[at] = (void *)(uintptr_t)result_address(a, branch, at);
  lac_status st = laci_auto_run_engine(a, &branch->part, watch, err);
  for (size_t at = 0; at < part->n_nodes && !st; at++)
    laci_stepper_skip(a->stepper, part->nodes[at]);
  for (int at = 0; at < node->n_outputs && !st; at++) {
    if (node->outputs[at] >= 0) st = set_output(a, choice, which, at, err);
  }
  return st;
}

lac_status laci_auto_run_choice(laci_auto *a, const laci_auto_part *part,
                                const laci_engine_watch *watch, lac_error *err) {
  const laci_auto_choice *choice = part->choice;
  int which = 0;
  clear_times(part, watch);
  lac_status st = read_condition(a, &a->graph->nodes[choice->node], &which, err);
  if (st) return st;
  if (choice->branches[which].part.engine) return run_branch(a, part, which, watch, err);
  size_t first_step = part->first_step;
  for (int b = 0; b < 2; b++) first_step += choice->branches[b].part.n_steps;
  st = step_branch(a, part, first_step, watch, err);
  return st ? st : copy_outputs_to_buffers(a, choice, err);
}
