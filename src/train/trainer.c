/* SPDX-License-Identifier: Apache-2.0
 * Connects the inputs and outputs of the training graph's plan to flat buffers: the plan reads and
 * writes parameters and gradients in place. Only statistics are copied, since a step both reads and
 * writes them. */
#include "train/trainer.h"

#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "tensor/buf.h"
#include "train/average.h"

struct laci_trainer {
  laci_training_graph *graph;
  laci_engine *engine;
  laci_pool *pool;
  laci_optimizer *optimizer;
  laci_parameter *parameters; /* [n_params] position of each parameter in the flat buffers */
  int64_t *statistic_at;      /* [n_stats] offset of each running statistic in its buffer */
  int64_t size, n_statistics;
  float *weights, *gradients;  /* [size] flat buffers of all parameters, and of their gradients */
  float *sums;                 /* [size] sums of the gradients of the present step's earlier
                                  batches; NULL: no step had several batches so far */
  float *statistics, *updates; /* [n_statistics] running statistics before and after a batch */
  double clip_norm;            /* if the norm of a step's gradients is larger than this, they are
                                  scaled down to it; 0: there is no limit */
  double ema;                  /* decay of the moving averages; 0: they are not kept, and the next
                                  two fields are NULL */
  float *average, *average_statistics; /* [size], [n_statistics] moving averages of the weights and
                                          of the statistics */
  float *logits;                       /* [batch][classes] logits, if the caller gives no array for
                                          them */
  double *seconds;                     /* array of laci_trainer_record_step_times, for the durations
                                          of the plan's steps; NULL: they are not recorded */
  int n_batches;                       /* number of batches since the last update */
  int images_port, labels_port, loss_port, logits_port; /* indices of the plan's inputs and outputs.
                                                           labels_port is -1 unless the loss is
                                                           LACI_LOSS_CLASSES */
  const void **inputs;
  void **outputs;
};

enum { ALIGN = 16 }; /* every tensor begins at a multiple of this many floats, a cache line */

static int find_port_of_value(const int *values, int n, int value) {
  for (int at = 0; at < n; at++) {
    if (values[at] == value) return at;
  }
  return -1;
}

/* ---- Creating ---- */

static lac_status assign_buffer_offsets(laci_trainer *t, lac_error *err) {
  const laci_training_graph *g = t->graph;
  t->parameters = laci_alloc((size_t)g->n_params, sizeof *t->parameters);
  t->statistic_at = laci_alloc((size_t)g->n_stats, sizeof *t->statistic_at);
  if (!t->parameters || !t->statistic_at) return laci_fail_memory(err, "the parameters");
  for (int p = 0; p < g->n_params; p++) {
    t->parameters[p] = (laci_parameter){.name = g->params[p].name,
                                        .offset = t->size,
                                        .count = g->params[p].count,
                                        .is_vector = g->params[p].kind != LACI_PARAM_WEIGHT};
    t->size += (g->params[p].count + ALIGN - 1) / ALIGN * ALIGN;
  }
  for (int s = 0; s < g->n_stats; s++) {
    t->statistic_at[s] = t->n_statistics;
    t->n_statistics += g->stats[s].count;
  }
  return LAC_OK;
}

static lac_status allocate_buffers(laci_trainer *t, lac_error *err) {
  const laci_graph *graph = t->graph->graph;
  size_t n = (size_t)t->size, n_statistics = (size_t)t->n_statistics;
  t->weights = laci_alloc(n, sizeof *t->weights);
  t->gradients = laci_alloc(n, sizeof *t->gradients);
  t->statistics = laci_alloc(n_statistics, sizeof *t->statistics);
  t->updates = laci_alloc(n_statistics, sizeof *t->updates);
  t->logits = laci_alloc((size_t)(t->graph->batch * t->graph->n_classes), sizeof *t->logits);
  t->inputs = laci_alloc((size_t)graph->n_inputs, sizeof *t->inputs);
  t->outputs = laci_alloc((size_t)graph->n_outputs, sizeof *t->outputs);
  bool made = t->weights && t->gradients && t->statistics && t->updates && t->logits && t->inputs &&
              t->outputs;
  if (t->ema > 0) {
    t->average = laci_alloc(n, sizeof *t->average);
    t->average_statistics = laci_alloc(n_statistics, sizeof *t->average_statistics);
    made = made && t->average && t->average_statistics;
  }
  return made ? LAC_OK : laci_fail_memory(err, "weights and gradients");
}

static void bind_ports_to_buffers(laci_trainer *t) {
  const laci_training_graph *g = t->graph;
  const laci_graph *graph = g->graph;
  for (int p = 0; p < g->n_params; p++) {
    int64_t at = t->parameters[p].offset;
    t->inputs[find_port_of_value(graph->inputs, graph->n_inputs, g->params[p].input)] =
        t->weights + at;
    t->outputs[find_port_of_value(graph->outputs, graph->n_outputs, g->params[p].gradient)] =
        t->gradients + at;
  }
  for (int s = 0; s < g->n_stats; s++) {
    int64_t at = t->statistic_at[s];
    t->inputs[find_port_of_value(graph->inputs, graph->n_inputs, g->stats[s].input)] =
        t->statistics + at;
    t->outputs[find_port_of_value(graph->outputs, graph->n_outputs, g->stats[s].update)] =
        t->updates + at;
  }
  t->images_port = find_port_of_value(graph->inputs, graph->n_inputs, g->images);
  t->labels_port = find_port_of_value(graph->inputs, graph->n_inputs, g->labels);
  t->loss_port = find_port_of_value(graph->outputs, graph->n_outputs, g->loss);
  t->logits_port = find_port_of_value(graph->outputs, graph->n_outputs, g->logits);
}

/** Reads `count` elements of a stored tensor as floats. */
static void read_stored_as_floats(const laci_graph *model, int stored, float *to, int64_t count) {
  const laci_stored *s = &model->stored[stored];
  laci_read_f32(s->dtype, s->bytes, 0, count, to);
}

static void read_weights_of_model(laci_trainer *t, const laci_graph *model) {
  const laci_training_graph *g = t->graph;
  for (int p = 0; p < g->n_params; p++) {
    read_stored_as_floats(model, g->params[p].stored, t->weights + t->parameters[p].offset,
                          g->params[p].count);
  }
  for (int s = 0; s < g->n_stats; s++) {
    read_stored_as_floats(model, g->stats[s].stored, t->statistics + t->statistic_at[s],
                          g->stats[s].count);
  }
}

/** The caller gives facts about the model's weights, which are inputs of the plan here. Makes these
 * facts about the plan's inputs. */
static lac_status convert_weight_facts(const laci_trainer *t, const laci_graph *model,
                                       const laci_trainer_options *options,
                                       laci_engine_weight **weights, int *n_weights,
                                       lac_error *err) {
  const laci_training_graph *g = t->graph;
  *n_weights = 0;
  *weights = laci_alloc((size_t)options->n_weights, sizeof **weights);
  if (!*weights) return laci_fail_memory(err, "the weights' patterns");
  for (int at = 0; at < options->n_weights; at++) {
    for (int p = 0; p < g->n_params; p++) {
      if (model->stored[g->params[p].stored].value != options->weights[at].value) continue;
      (*weights)[*n_weights] = options->weights[at];
      (*weights)[*n_weights].value = g->params[p].input;
      (*weights)[(*n_weights)++].gradient = &g->params[p].gradient;
    }
  }
  return LAC_OK;
}

/** Plans the training graph, before any buffer is allocated. Weights, gradients and statistics are
 * inputs and outputs of the plan. */
static lac_status plan_engine(laci_trainer *t, const laci_graph *model,
                              const laci_trainer_options *options, lac_error *err) {
  laci_engine_weight *weights;
  int n_weights;
  lac_status st = convert_weight_facts(t, model, options, &weights, &n_weights, err);
  laci_engine_options o = options->run;
  if (o.finite == LACI_FINITE_SURE) o.finite = LACI_FINITE_ASSUMED;
  o.early_outputs = true;
  o.recompute = options->remat ? t->graph->n_forward : 0;
  o.weights = weights;
  o.n_weights = n_weights;
  o.budget = options->budget;
  if (options->budget) {
    int n_slots = laci_optimizer_count_slots_for_options(&options->optimizer);
    laci_budget_add(options->budget,
                    laci_count_bytes_saturated(t->size, (size_t)n_slots * sizeof(float)),
                    "the optimizer's state");
    int64_t n_averaged = t->ema > 0 ? t->size + t->n_statistics : 0;
    laci_budget_add(options->budget, laci_count_bytes_saturated(n_averaged, sizeof(float)),
                    "averages of weights");
    laci_budget_add(options->budget,
                    laci_count_bytes_saturated(options->shared ? t->size : 0, sizeof(float)),
                    "gradients of other processes");
  }
  if (!st) st = laci_engine_create(t->graph->graph, &o, &t->engine, err);
  laci_free(weights);
  return st;
}

lac_status laci_trainer_create(const laci_graph *model, const laci_trainer_options *options,
                               laci_trainer **trainer, lac_error *err) {
  laci_trainer *t = laci_alloc(1, sizeof *t);
  *trainer = NULL;
  if (!t) return laci_fail_memory(err, "the trainer");
  t->ema = options->ema;
  t->clip_norm = options->clip_norm;
  lac_status st = laci_training_graph_create(model, &options->graph, &t->graph, err);
  if (!st) st = assign_buffer_offsets(t, err);
  if (!st) st = plan_engine(t, model, options, err);
  if (!st) st = allocate_buffers(t, err);
  if (!st) {
    bind_ports_to_buffers(t);
    read_weights_of_model(t, model);
    laci_trainer_reset_average(t);
  }
  if (!st) st = laci_pool_create(options->run.threads, &t->pool, err);
  if (!st) {
    st = laci_optimizer_create(&options->optimizer, t->parameters, t->graph->n_params, t->pool,
                               &t->optimizer, err);
  }
  if (st) laci_trainer_destroy(t);
  else *trainer = t;
  return st;
}

void laci_trainer_destroy(laci_trainer *t) {
  if (!t) return;
  laci_optimizer_destroy(t->optimizer);
  laci_pool_destroy(t->pool);
  laci_engine_destroy(t->engine);
  laci_training_graph_destroy(t->graph);
  laci_free(t->parameters);
  laci_free(t->statistic_at);
  laci_free(t->weights);
  laci_free(t->gradients);
  laci_free(t->sums);
  laci_free(t->statistics);
  laci_free(t->updates);
  laci_free(t->average);
  laci_free(t->average_statistics);
  laci_free(t->logits);
  laci_free(t->inputs);
  laci_free(t->outputs);
  laci_free(t);
}

/* ---- Queries ---- */

const laci_training_graph *laci_trainer_graph(const laci_trainer *t) { return t->graph; }
const laci_parameter *laci_trainer_parameters(const laci_trainer *t) { return t->parameters; }
laci_optimizer *laci_trainer_optimizer(laci_trainer *t) { return t->optimizer; }
float *laci_trainer_weights(laci_trainer *t) { return t->weights; }
float *laci_trainer_gradients(laci_trainer *t) { return t->gradients; }
void laci_trainer_set_n_batches(laci_trainer *t, int n_batches) { t->n_batches = n_batches; }

float *laci_trainer_statistics(laci_trainer *t, int64_t *n) {
  *n = t->n_statistics;
  return t->statistics;
}

const char *laci_trainer_plan_text(const laci_trainer *t) {
  return laci_engine_plan_text(t->engine);
}
const laci_engine *laci_trainer_engine(const laci_trainer *t) { return t->engine; }
void laci_trainer_record_step_times(laci_trainer *t, double *seconds) { t->seconds = seconds; }

int laci_trainer_threads(const laci_trainer *t) { return laci_pool_threads(t->pool); }

size_t laci_trainer_count_memory_bytes(const laci_trainer *t) {
  int slots = laci_optimizer_count_slots(t->optimizer);
  size_t flat = (size_t)t->size * (size_t)(2 + slots + (t->sums != NULL)) * sizeof(float);
  if (t->average) flat += (size_t)(t->size + t->n_statistics) * sizeof(float);
  const laci_engine_memory planned = laci_engine_planned_memory(t->engine);
  return planned.arena_bytes + planned.weight_bytes + flat;
}

/* ---- A step ---- */

enum { ADD_GRAIN = 1 << 14 };

/** A task for several threads: adding the gradients of earlier batches. */
typedef struct addition {
  float *to;
  const float *from;
} addition;

static void add_floats_in_range(int64_t begin, int64_t end, void *context) {
  const addition *a = context;
  for (int64_t at = begin; at < end; at++) a->to[at] += a->from[at];
}

static void add_earlier_gradients(laci_trainer *t, int64_t offset, int64_t count) {
  addition a = {.to = t->gradients + offset, .from = t->sums + offset};
  if (t->n_batches > 0) laci_pool_for(t->pool, count, ADD_GRAIN, add_floats_in_range, &a);
}

/** Moves the gradients so far to t->sums, since the next batch overwrites them. */
static lac_status move_gradients_to_sums(laci_trainer *t, lac_error *err) {
  if (!t->sums) t->sums = laci_alloc((size_t)t->size, sizeof *t->sums);
  if (!t->sums) return laci_fail_memory(err, "gradients of several batches");
  memcpy(t->sums, t->gradients, (size_t)t->size * sizeof *t->sums);
  return LAC_OK;
}

/** Runs a batch. watch: what the engine reports meanwhile. The caller must add the gradients of
 * earlier batches. */
static lac_status run_batch(laci_trainer *t, const float *images, const float *labels, float *loss,
                            const laci_engine_watch *watch, lac_error *err) {
  lac_status st = t->n_batches > 0 ? move_gradients_to_sums(t, err) : LAC_OK;
  if (st) return st;
  t->inputs[t->images_port] = images;
  if (t->labels_port >= 0) t->inputs[t->labels_port] = labels;
  t->outputs[t->loss_port] = loss;
  return laci_engine_run_watched(t->engine, t->inputs, t->outputs, watch, err);
}

static void finish_batch(laci_trainer *t) {
  memcpy(t->statistics, t->updates, (size_t)t->n_statistics * sizeof *t->statistics);
  t->n_batches++;
}

lac_status laci_trainer_run_batch(laci_trainer *t, const float *images, const float *labels,
                                  float *loss, float *logits, lac_error *err) {
  const laci_engine_watch watch = {.seconds = t->seconds};
  t->outputs[t->logits_port] = logits ? logits : t->logits;
  lac_status st = run_batch(t, images, labels, loss, &watch, err);
  if (st) return st;
  add_earlier_gradients(t, 0, t->size);
  finish_batch(t);
  return LAC_OK;
}

lac_status laci_trainer_run_match_batch(laci_trainer *t, const float *images,
                                        const float *const *targets, float *loss, lac_error *err) {
  const laci_training_graph *g = t->graph;
  for (int k = 0; k < g->n_targets; k++)
    t->inputs[find_port_of_value(g->graph->inputs, g->graph->n_inputs, g->targets[k])] = targets[k];
  return laci_trainer_run_batch(t, images, NULL, loss, NULL, err);
}

/** The state of a batch that a caller watches: which bucket (range of the gradients) becomes final
 * next. */
typedef struct watching {
  laci_trainer *trainer;
  const laci_batch_watch *watch;
  int next;
} watching;

static lac_status report_final_bucket(watching *w, lac_error *err) {
  const laci_bucket *bucket = &w->watch->buckets[w->next];
  add_earlier_gradients(w->trainer, bucket->offset, bucket->count);
  return w->watch->ready(w->watch->context, w->next++, err);
}

static lac_status report_final_buckets_after_step(void *context, size_t step, lac_error *err) {
  watching *w = context;
  const laci_batch_watch *watch = w->watch;
  lac_status st = LAC_OK;
  while (!st && w->next < watch->n_buckets && watch->buckets[w->next].step <= step) {
    st = report_final_bucket(w, err);
  }
  if (!st && watch->after_step) watch->after_step(watch->context);
  return st;
}

lac_status laci_trainer_run_batch_watched(laci_trainer *t, const float *images, const float *labels,
                                          float *loss, const laci_batch_watch *watch,
                                          lac_error *err) {
  watching w = {.trainer = t, .watch = watch};
  const laci_engine_watch steps = {.begins = watch->begins,
                                   .seconds = watch->seconds,
                                   .after_step = report_final_buckets_after_step,
                                   .context = &w,
                                   .ignores_interrupt = watch->ignores_interrupt};
  t->outputs[t->logits_port] = t->logits;
  lac_status st = run_batch(t, images, labels, loss, &steps, err);
  while (!st && w.next < watch->n_buckets) st = report_final_bucket(&w, err);
  if (st) return st;
  if (watch->n_buckets == 0) add_earlier_gradients(t, 0, t->size);
  finish_batch(t);
  return LAC_OK;
}

const float *laci_trainer_last_logits(const laci_trainer *t) { return t->logits; }

/* ---- Buckets ---- */

enum {
  LEAST_TAPER = 1 << 14
}; /* minimum number of floats in the last buckets, which are smaller
                                   than the others */

/** Returns the index of the plan's step after which the gradient of parameter p is final. */
static size_t find_final_step_of_gradient(const laci_trainer *t, int p) {
  const laci_graph *graph = t->graph->graph;
  int port = find_port_of_value(graph->outputs, graph->n_outputs, t->graph->params[p].gradient);
  return laci_engine_output_step(t->engine, port);
}

static int compare_steps(const void *a, const void *b) {
  const laci_bucket *x = a, *y = b;
  if (x->step != y->step) return x->step < y->step ? -1 : 1;
  return x->offset > y->offset ? -1 : x->offset < y->offset;
}

/** Returns the maximum number of floats in a bucket that ends at offset `end`. wanted: the usual
 * limit. The last bucket is final only after the last step, so a step has to wait for its sum.
 * Therefore each bucket leaves as many floats to later ones as it has itself, down to a size at
 * which the time of messages dominates. */
static int64_t max_bucket_size_before(int64_t end, int64_t wanted) {
  const int64_t half = end / 2, most = half < LEAST_TAPER ? LEAST_TAPER : half;
  return wanted < most ? wanted : most;
}

lac_status laci_trainer_make_buckets(const laci_trainer *t, size_t bytes, laci_bucket **buckets,
                                     int *n, lac_error *err) {
  const int n_params = t->graph->n_params;
  const int64_t wanted = (int64_t)(bytes / sizeof(float));
  laci_bucket *list = laci_alloc((size_t)n_params, sizeof *list);
  *buckets = list;
  *n = 0;
  if (!list) return laci_fail_memory(err, "buckets of gradients");
  for (int p = n_params - 1; p >= 0; p--) { /* goes backward, since the gradients of the last
                                               parameters are final first */
    const laci_parameter *parameter = &t->parameters[p];
    const int64_t begin = parameter->offset;
    laci_bucket *last = *n > 0 ? &list[*n - 1] : NULL;
    const int64_t end = last ? last->offset + last->count : 0;
    if (last && end - begin <= max_bucket_size_before(end, wanted)) { /* the gap between parameters
                                                                         counts, too */
      last->count = end - begin;
      last->offset = begin;
    } else {
      last = &list[(*n)++];
      *last = (laci_bucket){.offset = begin, .count = parameter->count};
    }
    size_t step = find_final_step_of_gradient(t, p);
    if (step > last->step) last->step = step;
  }
  qsort(list, (size_t)*n, sizeof *list, compare_steps);
  return LAC_OK;
}

static void update_moving_average(laci_trainer *t, int64_t n_before) {
  if (!t->average) return;
  double d = laci_average_decay(t->ema, n_before);
  laci_average_update(t->pool, d, t->weights, t->average, t->size);
  laci_average_update(t->pool, d, t->statistics, t->average_statistics, t->n_statistics);
}

/** Returns the factor for the gradients: one over the number of batches in their sum. It is less if
 * the norm of their mean is above the limit, as in PyTorch's clip_grad_norm_. */
static float compute_gradient_scale(const laci_trainer *t) {
  static const double tiny = 1e-6; /* the constant that PyTorch adds to the norm */
  const float scale = 1.0f / (float)t->n_batches;
  if (!(t->clip_norm > 0)) return scale;
  const double norm = laci_optimizer_gradient_norm(t->optimizer, t->gradients) * (double)scale;
  const double part = t->clip_norm / (norm + tiny);
  return part < 1 ? (float)((double)scale * part) : scale;
}

/* Takes one step of the optimizer: on the engine if it can do that, else by laci_optimizer_step. */
static lac_status run_optimizer_step(laci_trainer *t, float rate, lac_error *err) {
  const float scale = compute_gradient_scale(t);
  const int64_t n_before = laci_optimizer_steps(t->optimizer);
  lac_error why = {0};
  const lac_engine_update *update =
      laci_optimizer_describe_step(t->optimizer, rate, scale, t->weights, t->gradients);
  lac_status st = laci_engine_update_weights(t->engine, update, &why);
  if (st == LAC_UNSUPPORTED) {
    laci_optimizer_step(t->optimizer, rate, scale, t->weights, t->gradients);
    return LAC_OK;
  }
  laci_optimizer_set_steps(t->optimizer, n_before + 1);
  return st ? laci_fail(err, st, "%s", why.text) : LAC_OK;
}

lac_status laci_trainer_update(laci_trainer *t, double rate, lac_error *err) {
  if (t->n_batches == 0) return LAC_OK;
  const int64_t n_before = laci_optimizer_steps(t->optimizer);
  lac_status st = run_optimizer_step(t, (float)rate, err);
  if (st) return st;
  update_moving_average(t, n_before);
  t->n_batches = 0;
  return LAC_OK;
}

/* ---- Averages ---- */

float *laci_trainer_average_weights(laci_trainer *t) { return t->average; }
float *laci_trainer_average_statistics(laci_trainer *t) { return t->average_statistics; }

void laci_trainer_reset_average(laci_trainer *t) {
  if (!t->average) return;
  memcpy(t->average, t->weights, (size_t)t->size * sizeof *t->average);
  memcpy(t->average_statistics, t->statistics,
         (size_t)t->n_statistics * sizeof *t->average_statistics);
}

void laci_trainer_swap_average(laci_trainer *t) {
  if (!t->average) return;
  laci_average_swap(t->pool, t->weights, t->average, t->size);
  laci_average_swap(t->pool, t->statistics, t->average_statistics, t->n_statistics);
}

/* ---- Storing the weights in the model ---- */

static lac_status write_floats_to_stored(laci_graph *model, int stored, const float *from,
                                         int64_t count, lac_error *err) {
  laci_stored *s = &model->stored[stored];
  uint8_t *bytes = laci_stored_writable_bytes(s);
  if (!bytes) return laci_fail_memory(err, s->name);
  laci_write_f32(s->dtype, from, count, bytes);
  return LAC_OK;
}

lac_status laci_trainer_store_in_model(const laci_trainer *t, laci_graph *model, lac_error *err) {
  const laci_training_graph *g = t->graph;
  lac_status st = LAC_OK;
  for (int p = 0; p < g->n_params && !st; p++) {
    st = write_floats_to_stored(model, g->params[p].stored, t->weights + t->parameters[p].offset,
                                g->params[p].count, err);
  }
  for (int s = 0; s < g->n_stats && !st; s++) {
    st = write_floats_to_stored(model, g->stats[s].stored, t->statistics + t->statistic_at[s],
                                g->stats[s].count, err);
  }
  return st;
}
