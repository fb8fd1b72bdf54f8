/* SPDX-License-Identifier: Apache-2.0
 * The fast engine as a row of the list of engines. */
#include "engine/row.h"

#include "base/error.h"
#include "base/timings.h"
#include "engine/cpu/net.h"
#include "engine/cpu/tune.h"

/* What has no fast form is run by the operator's own evaluation. */
static bool supports(const laci_graph *graph, const laci_node *node, lac_error *why) {
  (void)graph;
  return !laci_engine_node_check(node, why);
}

static lac_status create(const laci_graph *graph, const laci_engine_options *options, void **self,
                         lac_error *err) {
  const laci_sparse_use use = laci_net_sparse_use(options);
  laci_engine_options own = *options;
  laci_timings *timings = NULL;
  laci_net *net = NULL;
  lac_status st = LAC_OK;
  if (options->tuning == LACI_TUNING_OFF || use != LACI_SPARSE_USE_FASTER) own.timings = NULL;
  else if (!own.timings) st = laci_timings_open(NULL, "", &timings, err);
  if (timings) own.timings = timings;
  if (!st && own.timings) st = laci_cpu_tune(graph, &own, err);
  if (!st) st = laci_net_create(graph, &own, use, &net, err);
  laci_timings_close(timings);
  *self = net;
  return st;
}

static void destroy(void *self) { laci_net_destroy(self); }

static int inputs(const void *self, const laci_engine_port **ports) {
  return laci_net_inputs(self, ports);
}

static int outputs(const void *self, const laci_engine_port **ports) {
  return laci_net_outputs(self, ports);
}

static lac_status run(void *self, const void *const *in, void *const *out,
                      const laci_engine_watch *watch, lac_error *err) {
  return laci_net_run(self, in, out, watch, err);
}

static int threads(const void *self) { return laci_net_threads(self); }
static laci_engine_memory planned(const void *self) { return laci_net_planned(self); }
static const char *text(const void *self) { return laci_net_text(self); }
static size_t step_count(const void *self) { return laci_net_step_count(self); }

static laci_engine_step step_look(const void *self, size_t step) {
  return laci_net_step_look(self, step);
}

static size_t output_step(const void *self, int port) { return laci_net_output_step(self, port); }

const laci_engine_row laci_engine_cpu = {.name = "cpu",
                                         .supports = supports,
                                         .create = create,
                                         .destroy = destroy,
                                         .inputs = inputs,
                                         .outputs = outputs,
                                         .run = run,
                                         .threads = threads,
                                         .planned = planned,
                                         .text = text,
                                         .step_count = step_count,
                                         .step_look = step_look,
                                         .output_step = output_step};
