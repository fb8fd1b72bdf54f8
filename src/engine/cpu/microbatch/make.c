/* SPDX-License-Identifier: Apache-2.0
 * Creates stages: parts are cut off from the beginning of the graph as long as that saves time. */
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/timings.h"
#include "cpu/pool.h"
#include "engine/cpu/microbatch/part.h"
#include "engine/cpu/microbatch/microbatch_in.h"
#include "graph/float_form.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/tune.h"
#include "engine/row.h"
#include "graph/infer.h"

/** The part of the network that is not in a stage yet, and the options for its stages. */
typedef struct builder {
  const laci_graph *graph;
  laci_engine_options options;
  laci_native_use use;
  laci_net_place place;
  const laci_stage_rule *rule;
  bool has_first_part; /* a part that can be cut off was found */
} builder;

/** Creates the next stage (a net, run for one micro-batch after the other) from the graph of m. */
static lac_status append_stage(laci_microbatches *stages, const builder *m, lac_error *err) {
  laci_stage *to = &stages->stages[stages->n];
  lac_status st = LAC_OK;
  if (m->options.timings) st = laci_cpu_tune(m->graph, &m->options, err);
  if (!st) st = laci_net_create(m->graph, &m->options, m->use, &m->place, &to->net, err);
  if (st) return st;
  to->micro_batches = 1;
  to->n_steps = laci_net_step_count(to->net);
  if (stages->n > 0) to->first_step = to[-1].first_step + to[-1].n_steps;
  stages->n++;
  return LAC_OK;
}

void laci_microbatches_destroy_last(laci_microbatches *stages) {
  laci_stage *last = &stages->stages[--stages->n];
  laci_net_destroy(last->net);
  laci_free(last->written);
  *last = (laci_stage){0};
}

/* ---- The first part ---- */

/** A cut of the network: the first layers, which run in micro-batches, and the rest. */
typedef struct first_part {
  laci_type input, output; /* types of the part's input and output, for the whole batch */
  laci_stage_cut cut;
  laci_graph *part, *rest; /* graphs of the first layers and of the rest; NULL: the network is not
                              cut */
} first_part;

static lac_status extract_both_parts(laci_microbatches *stages, const laci_graph *graph,
                                     first_part *f, lac_error *err) {
  laci_stage_ports small = {.input = graph->inputs[0],
                            .type = f->input,
                            .outputs = &f->cut.value,
                            .n_outputs = 1,
                            .shaped = -1};
  const laci_stage_ports others = {.input = f->cut.value,
                                   .type = f->output,
                                   .outputs = graph->outputs,
                                   .n_outputs = graph->n_outputs,
                                   .shaped = graph->inputs[0],
                                   .shaped_type = f->input};
  small.type.shape.dims[0] = f->cut.micro_batch;
  lac_status st = laci_stage_extract_part(&stages->memory, graph, &small, &f->part, err);
  return !st && f->part ? laci_stage_extract_part(&stages->memory, graph, &others, &f->rest, err)
                        : st;
}

static laci_cpu_plan init_plan(const builder *m, lac_error *why) {
  const laci_engine_options *o = &m->options;
  return (laci_cpu_plan){.graph = m->graph,
                         .fetch = o->fetch,
                         .fetch_context = o->fetch_context,
                         .bf16 = o->bf16,
                         .budget = o->budget,
                         .err = why};
}

static bool is_same_constant(const laci_constant *a, const laci_constant *b) {
  if (!a || !b || a->count != b->count) return !a && !b;
  if (a->f && b->f) return memcmp(a->f, b->f, (size_t)a->count * sizeof *a->f) == 0;
  return a->i && b->i && memcmp(a->i, b->i, (size_t)a->count * sizeof *a->i) == 0;
}

/** Sets *same to whether the part's nodes read the same constants as in the whole network. A
 * constant that is computed from the batch's size differs for a micro-batch. */
static lac_status compare_constants(const laci_cpu_plan *whole, const builder *m, bool *same,
                                    lac_error *err) {
  lac_error why = {0};
  laci_cpu_plan part = init_plan(m, &why);
  const laci_graph *graph = m->graph;
  lac_status st = laci_plan_infer_types(&part, NULL, 0, &why);
  *same = !st;
  for (int n = 0; n < graph->n_nodes && *same; n++) {
    const laci_node *node = &graph->nodes[n];
    if (node->n_outputs > 0 && node->outputs[0] >= 0 &&
        laci_plan_is_constant(&part, node->outputs[0])) {
      continue;
    }
    for (int at = 0; at < node->n_inputs; at++) {
      const int value = node->inputs[at];
      if (value < 0 || graph->values[value].producer < 0) continue;
      *same = *same && is_same_constant(whole->values[value].constant, part.values[value].constant);
    }
  }
  laci_plan_clear(&part);
  return st == LAC_NO_MEMORY ? laci_fail_memory(err, "the plan") : LAC_OK;
}

/** Finds where the rule (cut.h) cuts the graph. A graph that cannot be planned is not cut: planning
 * the whole network will fail, too. */
static lac_status find_part_before_cut(laci_microbatches *stages, const builder *m, first_part *f,
                                       lac_error *err) {
  lac_error why = {0};
  laci_cpu_plan plan = init_plan(m, &why);
  *f = (first_part){0};
  lac_status st = laci_plan_infer_types(&plan, m->options.shapes, m->options.n_shapes, &why);
  const bool found = !st && laci_stage_find_cut(&plan, m->rule, &f->cut);
  if (!st) st = plan.status;
  st = st == LAC_NO_MEMORY ? laci_fail_memory(err, "the plan") : LAC_OK;
  if (found && !st) {
    builder part = *m;
    bool same = false;
    f->input = plan.values[m->graph->inputs[0]].type;
    f->output = plan.values[f->cut.value].type;
    st = extract_both_parts(stages, m->graph, f, err);
    part.graph = f->part;
    if (!st && f->rest) st = compare_constants(&plan, &part, &same, err);
    if (!same) f->rest = NULL;
  }
  laci_plan_clear(&plan);
  return st;
}

/** Allocates the value at the cut, and counts memory in the budget, which has the stage's inputs
 * and outputs for one micro-batch only. So the input is counted here for the whole batch, unless
 * the next stage also has it as an input; the value at the cut is counted as an input of the next
 * stage. */
static lac_status allocate_cut_value(laci_stage *s, const first_part *f, laci_budget *budget,
                                     lac_error *err) {
  const laci_engine_port *in, *out;
  (void)laci_net_inputs(s->net, &in);
  (void)laci_net_outputs(s->net, &out);
  s->micro_batches = f->output.shape.dims[0] / f->cut.micro_batch;
  s->bytes_read = in->size_bytes;
  s->bytes_written = out->size_bytes;
  const uint64_t read = (uint64_t)s->bytes_read * (uint64_t)s->micro_batches;
  const uint64_t written = (uint64_t)s->bytes_written * (uint64_t)s->micro_batches;
  laci_budget_subtract(budget, s->bytes_read + s->bytes_written);
  if (f->rest->n_inputs == 1) laci_budget_add(budget, read, "%s", in->name);
  laci_budget with = *budget;
  laci_budget_add(&with, written, "%s", out->name);
  lac_status st = laci_budget_check(&with, "the run", err);
  if (st) return st;
  s->written = laci_alloc((size_t)written, 1);
  return s->written ? LAC_OK : laci_fail_memory(err, out->name);
}

/** Does the stage's output have the size of a micro-batch? It does not if the graph computes
 * constants from the batch's size. */
static bool has_output_of_micro_batch_size(const laci_stage *s, const first_part *f) {
  const laci_engine_port *out;
  laci_shape wanted = f->output.shape;
  wanted.dims[0] = f->cut.micro_batch;
  (void)laci_net_outputs(s->net, &out);
  return laci_shape_equal(&out->type.shape, &wanted);
}

/** Makes the part before the best cut a stage, and m the rest. *cut: whether there was one. If not,
 * nothing has changed: one stage is faster, or the part cannot be a separate network. */
static lac_status append_stage_before_best_cut(laci_microbatches *stages, builder *m, bool *cut,
                                               lac_error *err) {
  first_part f;
  builder first = *m;
  lac_error why = {0};
  laci_budget budget = m->options.budget ? *m->options.budget : laci_budget_with_limit(UINT64_MAX);
  const int n = stages->n;
  *cut = false;
  lac_status st = find_part_before_cut(stages, m, &f, err);
  if (st || !f.rest) return st;
  m->has_first_part = true;
  first.graph = f.part;
  first.options.shapes = NULL;
  first.options.n_shapes = 0;
  first.options.budget = &budget;
  first.place.writes_blocks = true;
  st = append_stage(stages, &first, &why);
  if (st == LAC_BAD_SHAPE || st == LAC_UNSUPPORTED) return LAC_OK;
  if (st) return laci_fail(err, st, "%s", why.text);
  if (!has_output_of_micro_batch_size(&stages->stages[n], &f)) {
    laci_microbatches_destroy_last(stages);
    return LAC_OK;
  }
  st = allocate_cut_value(&stages->stages[n], &f, &budget, err);
  if (!st && n == 0) {
    st = laci_engine_port_init(m->graph, m->graph->inputs[0], &f.input, &stages->input, err);
  }
  if (st) return st;
  if (m->options.budget) *m->options.budget = budget;
  m->graph = f.rest;
  m->options.shapes = NULL;
  m->options.n_shapes = 0;
  m->place.reads_blocks = true;
  *cut = true;
  return LAC_OK;
}

/* ---- All stages ---- */

/* Maximum number of threads for which a network is cut. More threads have enough cache for the
 * whole batch, and would wait for each other in every micro-batch. */
enum { MOST_THREADS = 8 };

/** May the network be cut? It must have one input, a batch of several images, no observer and no
 * recomputation. */
static bool may_cut_network(const laci_microbatches *stages, const builder *m) {
  const laci_engine_options *o = &m->options;
  if (laci_pool_threads(stages->pool) > MOST_THREADS) return false;
  if (o->observer || o->recompute > 0 || o->early_outputs || m->graph->n_inputs != 1) return false;
  const laci_value *input = &m->graph->values[m->graph->inputs[0]];
  const laci_shape *shape = &input->type.shape;
  for (int at = 0; at < o->n_shapes; at++) {
    if (strcmp(o->shapes[at].name, input->name) == 0) shape = &o->shapes[at].shape;
  }
  return shape->rank == 4 && shape->dims[0] > 1;
}

static lac_status alloc_times_and_write_text(laci_microbatches *stages, lac_error *err) {
  size_t most = 0;
  for (int at = 0; at < stages->n; at++) {
    if (stages->stages[at].n_steps > most) most = stages->stages[at].n_steps;
  }
  stages->seconds = laci_alloc(most, sizeof *stages->seconds);
  if (!stages->seconds) return laci_fail_memory(err, "the times of a plan's steps");
  return laci_microbatches_write_text(stages, err);
}

/** Creates all stages. cut: true if the network may be cut; else there is one stage. */
static lac_status make_stages(laci_microbatches *stages, builder *m, bool cut, lac_error *err) {
  lac_status st = LAC_OK;
  while (!st && cut && stages->n < LACI_MOST_STAGES - 1 && may_cut_network(stages, m)) {
    st = append_stage_before_best_cut(stages, m, &cut, err);
  }
  if (!st) st = append_stage(stages, m, err);
  return !st && stages->n > 1 ? alloc_times_and_write_text(stages, err) : st;
}

/** Creates the stages; or only one stage, if several need more memory than is allowed, since their
 * arenas exist at the same time. */
static lac_status make_stages_within_budget(laci_microbatches *stages, const builder *m,
                                            lac_error *err) {
  builder cut = *m, whole = *m;
  const laci_budget budget = m->options.budget ? *m->options.budget : (laci_budget){0};
  lac_status st = make_stages(stages, &cut, true, err);
  if (st != LAC_MEMORY_LIMIT || !cut.has_first_part) return st;
  while (stages->n > 0) laci_microbatches_destroy_last(stages);
  if (m->options.budget) *m->options.budget = budget;
  return make_stages(stages, &whole, false, err);
}

lac_status laci_microbatches_create(const laci_graph *graph, const laci_engine_options *options,
                                    const laci_stage_rule *rule, laci_microbatches **stages,
                                    lac_error *err) {
  builder m = {.graph = graph, .options = *options, .rule = rule};
  laci_timings *timings = NULL;
  laci_microbatches *made = laci_alloc(1, sizeof *made);
  *stages = NULL;
  if (!made) return laci_fail_memory(err, "the engine");
  lac_status st = laci_graph_make_float_form(&made->memory, graph, &m.graph, err);
  made->graph = m.graph;
  if (!st) st = laci_native_read_use_options(options, &m.use, err);
  if (options->tuning == LACI_TUNING_OFF || m.use.which != LACI_NATIVE_USE_FASTER) {
    m.options.timings = NULL;
  } else if (!st && !m.options.timings) {
    st = laci_timings_open(NULL, "", &timings, err);
    m.options.timings = timings;
  }
  if (!st) st = laci_pool_create_on(options->parallel, options->threads, &made->pool, err);
  m.place.pool = made->pool;
  const laci_budget before = options->budget ? *options->budget : (laci_budget){0};
  if (!st) st = make_stages_within_budget(made, &m, err);
  if (!st) st = laci_microbatches_make_careful_stage(made, options, &before, err);
  laci_timings_close(timings);
  if (st) laci_microbatches_destroy(made);
  else *stages = made;
  return st;
}

void laci_microbatches_destroy(laci_microbatches *stages) {
  if (!stages) return;
  while (stages->n > 0) laci_microbatches_destroy_last(stages);
  laci_net_destroy(stages->careful);
  laci_pool_destroy(stages->pool);
  laci_free(stages->budget);
  laci_free(stages->seconds);
  laci_free(stages->careful_seconds);
  laci_free(stages->text);
  laci_arena_clear(&stages->memory);
  laci_free(stages);
}
