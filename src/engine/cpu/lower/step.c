/* SPDX-License-Identifier: Apache-2.0
 * Adds steps, each a primitive or a function over tensors, and removes those of an implementation
 * that declined. */
#include <stdio.h>

#include "base/memory.h"
#include "engine/cpu/net_in.h"
#include "engine/cpu/plan/quantized.h"
#include "engine/cpu/onednn/onednn.h"

static laci_net_step *new_step(laci_net *net, int n_args) {
  if (net->plan.status) return NULL;
  if (!laci_grow((void **)&net->steps, net->n_steps, &net->step_capacity, sizeof *net->steps)) {
    laci_plan_fail_no_memory(&net->plan);
    return NULL;
  }
  laci_net_step *step = &net->steps[net->n_steps];
  *step = (laci_net_step){.shown = -1, .recomputed = net->recomputing, .n_args = n_args};
  step->codes = laci_plan_alloc(&net->plan, (size_t)n_args, sizeof *step->codes);
  step->tensors = laci_plan_alloc(&net->plan, (size_t)n_args, sizeof *step->tensors);
  if (net->plan.status) return NULL;
  net->n_steps++;
  return step;
}

static void extend_buffer_lifetime(laci_net *net, int tensor, int step) {
  laci_buffer *buffer = &net->buffers[net->tensors[tensor].buffer];
  if (buffer->first < 0) buffer->first = step;
  buffer->last = step;
}

const char *laci_net_describe_fused(laci_net *net, const laci_fused *fused) {
  char text[256];
  size_t used = 0;
  if (!fused) return "reorder";
  if (fused->pattern == LACI_PATTERN_TABLE)
    return ((const laci_table_pattern *)fused->details)->what;
  used += (size_t)snprintf(text, sizeof text, "%s%s", net->plan.graph->nodes[fused->node].type,
                           fused->scale ? " + scale" : "");
  for (int at = 0; at < fused->n_posts && used < sizeof text; at++) {
    used += (size_t)snprintf(text + used, sizeof text - used, "%s",
                             fused->posts[at].value >= 0 ? " + sum" : " + function");
  }
  return laci_plan_copy_text(&net->plan, text);
}

static int add_scratchpad_tensor(laci_net *net, const laci_primitive *pd) {
  const laci_layout *md = laci_primitive_layout(pd, LACI_ARG_SCRATCHPAD);
  size_t bytes = md ? laci_layout_bytes(md) : 0;
  laci_layout *copy = NULL;
  if (bytes == 0) return -1;
  if (!laci_layout_create_copy(&copy, md)) laci_plan_fail_no_memory(&net->plan);
  laci_shape shape = laci_shape_of(1, (int64_t[]){(int64_t)bytes});
  int buffer = laci_net_buffer_new(net, LACI_PLACE_ARENA, bytes);
  return laci_net_tensor_new(net, &shape, LACI_ELEMENT_BYTE, copy, buffer);
}

static bool is_result_argument(int arg) {
  return arg == LACI_ARG_DST || arg == LACI_ARG_DIFF_SRC || arg == LACI_ARG_DIFF_WEIGHTS;
}

void laci_net_step_add(laci_net *net, const laci_fused *fused, laci_primitive *pd, int n_args,
                       const int (*args)[2]) {
  int scratchpad = net->plan.status ? -1 : add_scratchpad_tensor(net, pd);
  laci_net_step *step = new_step(net, n_args + (scratchpad >= 0));
  for (int at = 0; at < n_args && step; at++) {
    if (args[at][1] < 0) laci_plan_fail(&net->plan, LAC_INTERNAL, "a step lacks an operand");
    if (net->plan.status) break;
    step->codes[at] = args[at][0];
    step->tensors[at] = args[at][1];
    extend_buffer_lifetime(net, args[at][1], (int)net->n_steps - 1);
    if (is_result_argument(args[at][0])) step->shown = args[at][1];
  }
  if (step && scratchpad >= 0) {
    step->codes[n_args] = LACI_ARG_SCRATCHPAD;
    step->tensors[n_args] = scratchpad;
    extend_buffer_lifetime(net, scratchpad, (int)net->n_steps - 1);
  }
  if (step) {
    step->kernel = laci_plan_copy_text(&net->plan, laci_primitive_kernel_name(pd));
    step->what = laci_net_describe_fused(net, fused);
    step->node = fused ? &net->plan.graph->nodes[fused->node] : NULL;
    step->primitive = pd;
    return;
  }
  laci_primitive_destroy(pd);
}

laci_net_step *laci_net_step_add_code(laci_net *net, const laci_node *node, laci_net_code *code,
                                      int n_tensors, const int *tensors) {
  laci_net_step *step = new_step(net, n_tensors);
  for (int at = 0; at < n_tensors && step; at++) {
    step->tensors[at] = tensors[at];
    if (tensors[at] >= 0) extend_buffer_lifetime(net, tensors[at], (int)net->n_steps - 1);
  }
  if (!step) return NULL;
  step->node = node;
  step->what = node->type;
  step->code = code;
  step->kernel = "";
  return step;
}

void laci_net_step_mark_scratch(laci_net_step *step, int at) {
  step->codes[at] = LACI_ARG_SCRATCHPAD;
}

laci_net_mark laci_net_mark_position(const laci_net *net) {
  return (laci_net_mark){.n_steps = net->n_steps, .n_tensors = net->n_tensors};
}

void laci_net_remove_steps_after(laci_net *net, laci_net_mark mark) {
  for (size_t at = mark.n_steps; at < net->n_steps; at++) {
    laci_primitive_destroy(net->steps[at].primitive);
  }
  net->n_steps = mark.n_steps;
  for (size_t at = mark.n_tensors; at < net->n_tensors; at++) {
    laci_net_tensor *t = &net->tensors[at];
    if (net->buffers[t->buffer].place == LACI_PLACE_ARENA) t->content = -1;
  }
}
