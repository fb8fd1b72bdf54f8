/* SPDX-License-Identifier: Apache-2.0
 * Runs a network where a plan cannot be sure that all numbers are finite (plan/finite.h): one
 * careful net runs the whole network, from the start if the weights require it, or from the first
 * run that suspects a value. */
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/cpu/microbatch/microbatch_in.h"
#include "graph/infer.h"

static lac_status make_careful_net(laci_microbatches *stages, const laci_engine_options *options,
                                   laci_net **net, lac_error *err) {
  const laci_net_place place = {.pool = stages->pool};
  laci_engine_options careful = *options;
  careful.finite = LACI_FINITE_CAREFUL;
  careful.bf16 = false;
  careful.timings = NULL;
  careful.weights = NULL;
  careful.n_weights = 0;
  return laci_net_create(stages->graph, &careful, (laci_native_use){LACI_NATIVE_USE_NONE, 0},
                         &place, net, err);
}

static const char *find_node_needing_careful_plan(const laci_microbatches *stages) {
  const char *node = NULL;
  for (int at = 0; at < stages->n && !node; at++) {
    node = laci_net_node_needing_careful_plan(stages->stages[at].net);
  }
  return node;
}

static lac_status copy_options(laci_microbatches *stages, const laci_engine_options *options,
                               lac_error *err) {
  stages->fetch = options->fetch;
  stages->fetch_context = options->fetch_context;
  stages->observed = options->observer != NULL;
  if (!options->budget) return LAC_OK;
  stages->budget = laci_alloc(1, sizeof *stages->budget);
  if (!stages->budget) return laci_fail_memory(err, "the engine");
  *stages->budget = *options->budget;
  return LAC_OK;
}

lac_status laci_microbatches_make_careful_stage(laci_microbatches *stages,
                                                const laci_engine_options *options,
                                                const laci_budget *before, lac_error *err) {
  const char *node = find_node_needing_careful_plan(stages);
  if (!node) return copy_options(stages, options, err);
  laci_log(LAC_LOG_WARNING,
           "%s: its weights or constants are not finite, or so large that results may not be: the "
           "network runs carefully, which is slow",
           node);
  while (stages->n > 0) laci_microbatches_destroy_last(stages);
  if (options->budget) *options->budget = *before;
  laci_stage *only = &stages->stages[0];
  lac_status st = make_careful_net(stages, options, &only->net, err);
  if (st) return st;
  *only =
      (laci_stage){.net = only->net, .micro_batches = 1, .n_steps = laci_net_step_count(only->net)};
  stages->n = 1;
  laci_free(stages->text);
  stages->text = NULL;
  return LAC_OK;
}

/** Creates the careful net (a plan that keeps NaN and infinity) if there is none yet, with the
 * input shapes of the existing plan. */
static lac_status ensure_careful_net(laci_microbatches *stages, lac_error *err) {
  const laci_engine_port *ports;
  const int n = laci_microbatches_inputs(stages, &ports);
  laci_input_shape *shapes = laci_alloc((size_t)n + 1, sizeof *shapes);
  if (!shapes) return laci_fail_memory(err, "the engine");
  for (int at = 0; at < n; at++)
    shapes[at] = (laci_input_shape){ports[at].name, ports[at].type.shape};
  const laci_engine_options options = {.shapes = shapes,
                                       .n_shapes = n,
                                       .fetch = stages->fetch,
                                       .fetch_context = stages->fetch_context,
                                       .budget = stages->budget};
  lac_status st = make_careful_net(stages, &options, &stages->careful, err);
  laci_free(shapes);
  if (st) return st;
  const size_t n_steps = laci_net_step_count(stages->careful);
  stages->careful_seconds = laci_alloc(n_steps + 1, sizeof *stages->careful_seconds);
  return stages->careful_seconds ? LAC_OK : laci_fail_memory(err, "the engine");
}

/** Returns the index of the step with that name among the steps of all stages. The search begins at
 * `from`, since several may have it. Returns `from` if there is none, as for a node that is fused
 * to another. */
static size_t find_step_by_name(const laci_microbatches *stages, const char *name, size_t from) {
  const size_t n = laci_microbatches_step_count(stages);
  for (size_t more = 0; name && more < n; more++) {
    const size_t at = (from + more) % n;
    const char *other = laci_microbatches_step_info(stages, at).name;
    if (other && strcmp(other, name) == 0) return at;
  }
  return from;
}

static void spread_seconds_over_steps(const laci_microbatches *stages, double *seconds) {
  const size_t n = laci_microbatches_step_count(stages),
               n_own = laci_net_step_count(stages->careful);
  size_t to = 0;
  for (size_t at = 0; at < n; at++) seconds[at] = 0;
  for (size_t at = 0; at < n_own && n > 0; at++) {
    to = find_step_by_name(stages, laci_net_step_info(stages->careful, at).name, to);
    seconds[to] += stages->careful_seconds[at];
  }
}

lac_status laci_microbatches_run_careful(laci_microbatches *stages, const laci_stage *stage,
                                         const void *const *inputs, void *const *outputs,
                                         const laci_engine_watch *watch, lac_error *err) {
  const char *value = laci_net_suspect_value(stage->net);
  if (stages->observed) {
    return laci_fail(err, LAC_BAD_VALUE,
                     "%s: found a number that is NaN, infinite or above 1e9, wanted smaller ones: "
                     "this plan's kernels may lose what is not finite; the engine 'plain' does not",
                     value);
  }
  if (!stages->careful) {
    laci_log(LAC_LOG_WARNING,
             "%s: a number is NaN, infinite or above 1e9: such runs are done once more, carefully, "
             "which is slow",
             value);
    lac_status st = ensure_careful_net(stages, err);
    if (st) return st;
  }
  const bool timed = watch && watch->seconds;
  const laci_engine_watch own = {.seconds = timed ? stages->careful_seconds : NULL,
                                 .ignores_interrupt = watch && watch->ignores_interrupt};
  lac_status st = laci_net_run(stages->careful, inputs, outputs, &own, err);
  if (!st && timed) spread_seconds_over_steps(stages, watch->seconds);
  return st;
}
