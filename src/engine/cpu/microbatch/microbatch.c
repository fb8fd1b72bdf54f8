/* SPDX-License-Identifier: Apache-2.0
 * Describes stages, for reports. */
#include "engine/cpu/microbatch/microbatch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/plural.h"
#include "engine/cpu/microbatch/microbatch_in.h"

int laci_microbatches_inputs(const laci_microbatches *stages, const laci_engine_port **ports) {
  if (stages->n == 1) return laci_net_inputs(stages->stages[0].net, ports);
  *ports = &stages->input;
  return 1;
}

int laci_microbatches_outputs(const laci_microbatches *stages, const laci_engine_port **ports) {
  return laci_net_outputs(laci_microbatches_last_stage(stages)->net, ports);
}

/* Adds up the memory of all stages. The arena's bytes include the values at cuts, which live
 * between the steps of two stages. */
laci_engine_memory laci_microbatches_planned_memory(const laci_microbatches *stages) {
  laci_engine_memory sum = {0};
  for (int at = 0; at < stages->n; at++) {
    const laci_stage *s = &stages->stages[at];
    const laci_engine_memory own = laci_net_planned_memory(s->net);
    sum.arena_bytes += own.arena_bytes + s->bytes_written * (size_t)s->micro_batches;
    sum.weight_bytes += own.weight_bytes;
    sum.n_recomputed += own.n_recomputed;
  }
  return sum;
}

int laci_microbatches_threads(const laci_microbatches *stages) {
  return laci_net_threads(laci_microbatches_last_stage(stages)->net);
}

/* ---- Steps ---- */

size_t laci_microbatches_step_count(const laci_microbatches *stages) {
  return laci_microbatches_last_stage(stages)->first_step +
         laci_microbatches_last_stage(stages)->n_steps;
}

laci_engine_step laci_microbatches_step_info(const laci_microbatches *stages, size_t at) {
  const laci_stage *s = stages->stages;
  while (at >= s->first_step + s->n_steps) s++;
  laci_engine_step step = laci_net_step_info(s->net, at - s->first_step);
  step.micro_batches = s->micro_batches;
  step.flops *= s->micro_batches;
  step.bytes_read *= s->micro_batches;
  step.bytes_written *= s->micro_batches;
  step.predicted_seconds *= (double)s->micro_batches;
  return step;
}

size_t laci_microbatches_output_step(const laci_microbatches *stages, int port) {
  const laci_stage *last = laci_microbatches_last_stage(stages);
  return last->first_step + laci_net_output_step(last->net, port);
}

void laci_microbatches_list_nodes(const laci_microbatches *stages, const laci_graph *graph,
                                  laci_engine_node *nodes) {
  for (int at = 0; at < stages->n; at++) laci_net_list_nodes(stages->stages[at].net, graph, nodes);
}

/* ---- Text ---- */

/** Writes a stage's title: "stage 1 of 2: 8 micro-batches of 2 images, up to relu_3". Returns its
 * length. */
static int write_stage_title(const laci_microbatches *stages, int at, char *to, size_t size) {
  const laci_stage *s = &stages->stages[at];
  const laci_engine_port *in, *out;
  (void)laci_net_inputs(s->net, &in);
  (void)laci_net_outputs(s->net, &out);
  const int64_t images = in->type.shape.dims[0];
  if (!s->written) return snprintf(to, size, "stage %d of %d\n", at + 1, stages->n);
  return snprintf(to, size,
                  "stage %d of %d: %" PRId64 " micro-batches of %" PRId64 " image%s, up to %s\n",
                  at + 1, stages->n, s->micro_batches, images, laci_plural(images), out->name);
}

lac_status laci_microbatches_write_text(laci_microbatches *stages, lac_error *err) {
  size_t size = 1;
  for (int at = 0; at < stages->n; at++) {
    size += (size_t)write_stage_title(stages, at, NULL, 0) +
            strlen(laci_net_plan_text(stages->stages[at].net));
  }
  char *to = stages->text = laci_alloc(size, 1);
  if (!to) return laci_fail_memory(err, "the plan's text");
  for (int at = 0; at < stages->n; at++) {
    to += write_stage_title(stages, at, to, size - (size_t)(to - stages->text));
    const size_t n = strlen(laci_net_plan_text(stages->stages[at].net));
    memcpy(to, laci_net_plan_text(stages->stages[at].net), n);
    to += n;
  }
  return LAC_OK;
}

const char *laci_microbatches_plan_text(const laci_microbatches *stages) {
  return stages->text ? stages->text : laci_net_plan_text(stages->stages[0].net);
}
