/* SPDX-License-Identifier: Apache-2.0
 * lac_eval: the loader fills batches ahead of time, the engine runs them, the metrics add up.
 *
 * One plan is used for all batches: the last one is filled up with zeros, since rows of a batch do
 * not affect each other. Several processes evaluate whole batches each, and exchange the scores of
 * all images; summed in the order of images, these give the same result as one process. Next:
 * data/loader.h, data/metrics.h, lacuna/engine.h. */
#include "lacuna/eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/model/model_in.h"
#include "api/run/eval_in.h"
#include "api/run/infer.h"
#include "base/budget.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/writer.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/metrics.h"
#include "data/npy.h"
#include "data/parts.h"
#include "graph/graph.h"
#include "lacuna/engine.h"
#include "lacuna/model.h"

enum { DEPTH = 2, RANK_LOGITS = 2 };

/* The state of one evaluation; evaluation_clear frees it. */
typedef struct evaluation {
  lac_model *view; /* view of the network (laci_model_view_create) */
  laci_dataset *set;
  laci_loader *loader;
  lac_engine *engine;
  laci_writer *predictions; /* writer of the file of predictions; NULL: not wanted */
  laci_preprocessing preprocessing;
  int batch;
  int64_t images, classes;
  int64_t begin, end; /* range of images that this process evaluates */
  size_t sample;      /* number of floats of an image */
  float *pixels[DEPTH];
  int32_t *labels[DEPTH];
  void **outputs; /* a buffer for each output of the network; the first are the logits */
  int n_outputs;
  bool is_open;    /* the number of classes is known only after a run */
  lac_dtype dtype; /* type of the computation */
  laci_metrics metrics;
  const laci_given_samples *memory; /* the samples in memory; NULL: the data are in a folder */
  const char *trained_on; /* folder of the training part next to the evaluated one; NULL: none */
  bool quiet;             /* log neither the plan nor the data */
  double seconds;         /* seconds that all batches took */
} evaluation;

/* ---- Checking that network and data fit ---- */

static lac_status open_images(evaluation *e, const lac_model *model, const char *folder,
                              const lac_eval_options *options, lac_error *err) {
  laci_dataset_options o = {
      .part = LACI_PART_TEST,
      .classes_path = options->classes,
      .known = model->graph->class_names,
      .trained_on = e->trained_on,
      .outputs = e->trained_on ? laci_model_n_classes(model, options->run.max_memory) : 0,
      .input = laci_only_input_name(model->graph),
      .quiet = e->quiet};
  laci_dataset_options_set_memory(e->memory, &o);
  lac_status st = laci_dataset_open(folder, &o, &e->set, err);
  if (st) return st;
  e->images = laci_dataset_count(e->set);
  if (options->limit > 0 && options->limit < e->images) e->images = options->limit;
  e->preprocessing = laci_dataset_preprocessing(e->set);
  const laci_image_choice choice = {options->resize, options->crop, options->mean, options->std};
  return laci_choose_preprocessing(&e->preprocessing, folder, &choice, err);
}

static lac_status check_logits(const evaluation *e, const lac_engine_port *logits, lac_error *err) {
  if (logits->dtype != LAC_DTYPE_F32 || logits->rank != RANK_LOGITS ||
      logits->shape[0] != e->batch) {
    char text[256];
    laci_shape shape = laci_shape_of(logits->rank, logits->shape);
    return laci_fail(err, LAC_BAD_SHAPE, "output '%s' is %s %s, wanted floats [N, classes], N = %d",
                     logits->name, lac_dtype_name(logits->dtype),
                     laci_shape_text(&shape, text, sizeof text), e->batch);
  }
  return LAC_OK;
}

/* Runs a batch of zeros to get the shape of logits that depends on data. */
static lac_status find_logits_shape(evaluation *e, lac_engine_port *logits, lac_error *err) {
  const lac_engine_port *in, *out;
  const void *values;
  (void)lac_engine_inputs(e->engine, &in);
  (void)lac_engine_outputs(e->engine, &out);
  void *pixels = laci_alloc(in[0].size_bytes, 1);
  void **outputs = laci_alloc((size_t)e->n_outputs, sizeof *outputs);
  bool whole = pixels && outputs;
  for (int at = 0; at < e->n_outputs && whole; at++) {
    whole = (outputs[at] = laci_alloc(out[at].size_bytes, 1)) != NULL;
  }
  lac_status st = whole ? LAC_OK : laci_fail_memory(err, "a batch of images");
  if (!st) st = lac_engine_run(e->engine, (const void *[]){pixels}, outputs, err);
  if (!st) st = lac_engine_result(e->engine, 0, logits, &values, err);
  for (int at = 0; at < e->n_outputs && outputs; at++) laci_free(outputs[at]);
  laci_free((void *)outputs);
  laci_free(pixels);
  return st;
}

static lac_status check_output(evaluation *e, lac_error *err) {
  const lac_engine_port *ports;
  e->n_outputs = lac_engine_outputs(e->engine, &ports);
  if (e->n_outputs < 1) return laci_fail(err, LAC_BAD_SHAPE, "the network has no output");
  lac_engine_port logits = ports[0];
  e->is_open = logits.open;
  lac_status st = e->is_open ? find_logits_shape(e, &logits, err) : LAC_OK;
  if (!st) st = check_logits(e, &logits, err);
  if (st) return st;
  e->classes = logits.shape[1];
  return laci_dataset_check_outputs(e->set, logits.name, e->classes, err);
}

static lac_status plan_network(evaluation *e, const lac_eval_options *options, lac_error *err) {
  const laci_graph *graph = e->view->graph;
  laci_image_input input = {.batch = e->images < options->batch ? (int)e->images : options->batch};
  lac_status st = laci_fit_images_to_network(graph, e->set, &e->preprocessing, &input, err);
  if (!st) st = laci_check_class_count(graph, e->set, err);
  if (st) return st;
  e->batch = input.batch;
  const laci_shape a_sample = laci_preprocessing_sample_shape(&e->preprocessing);
  lac_engine_shape shape = {.name = input.name, .rank = a_sample.rank + 1, .shape = {e->batch}};
  for (int axis = 0; axis < a_sample.rank; axis++) shape.shape[axis + 1] = a_sample.dims[axis];
  lac_engine_options o = lac_engine_options_default();
  o.run = options->run;
  o.run.dtype = e->dtype;
  o.shapes = &shape;
  o.n_shapes = 1;
  size_t sample = laci_preprocessing_sample_size(&e->preprocessing) * sizeof(float);
  laci_budget budget = laci_budget_with_limit(options->run.max_memory);
  laci_budget_add(&budget,
                  laci_count_bytes_saturated(DEPTH * (int64_t)e->batch, sample + sizeof(int32_t)),
                  "batches of %d images", e->batch);
  st = laci_model_create_engine(e->view, &o, NULL, &budget, &e->engine, err);
  if (st) return st;
  if (!e->quiet) laci_log_plan(e->engine);
  if (!e->quiet) laci_log_exact_part(e->engine);
  return check_output(e, err);
}

/* ---- Buffers, loader, predictions ---- */

static lac_status alloc_buffers(evaluation *e, lac_error *err) {
  const lac_engine_port *ports;
  bool whole = true;
  e->sample = laci_preprocessing_sample_size(&e->preprocessing);
  e->outputs = laci_alloc((size_t)e->n_outputs, sizeof *e->outputs);
  (void)lac_engine_outputs(e->engine, &ports);
  for (int at = 0; e->outputs && at < e->n_outputs; at++) {
    e->outputs[at] = laci_alloc(ports[at].size_bytes, 1);
    whole = whole && e->outputs[at];
  }
  for (int k = 0; k < DEPTH; k++) {
    e->pixels[k] = laci_alloc((size_t)e->batch * e->sample, sizeof *e->pixels[k]);
    e->labels[k] = laci_alloc((size_t)e->batch, sizeof *e->labels[k]);
    whole = whole && e->pixels[k] && e->labels[k];
  }
  return whole && e->outputs ? LAC_OK : laci_fail_memory(err, "batches of images");
}

static lac_status start_loader(evaluation *e, int threads, lac_error *err) {
  laci_loader_options o = laci_loader_options_default(e->set);
  o.preprocessing = e->preprocessing;
  o.batch = e->batch;
  o.threads = threads;
  o.depth = DEPTH;
  o.first_batch = e->begin / e->batch;
  o.limit = e->end;
  lac_status st = laci_loader_create(e->set, &o, &e->loader, err);
  for (int k = 0; k < DEPTH && !st; k++) {
    st = laci_loader_queue_batch(e->loader, e->pixels[k], e->labels[k], err);
  }
  return st;
}

static lac_status open_predictions(evaluation *e, const lac_model *model,
                                   const lac_eval_options *options, lac_error *err) {
  const char *path = options->predictions;
  if (!path) return LAC_OK;
  if (lac_model_reads(model, path)) {
    return laci_fail(err, LAC_EXISTS, "%s: it is an input, which is never replaced", path);
  }
  laci_write_options o = {.force = options->force};
  laci_type type = {LAC_DTYPE_F32, {RANK_LOGITS, {e->images, e->classes}}};
  lac_status st = laci_writer_open(path, &o, &e->predictions, err);
  return st ? st : laci_npy_append_header(e->predictions, &type, err);
}

/* ---- Running the images ---- */

/* Returns the logits of the last run if their shape depends on data; fails if it differs from the
 * first run's shape. */
static lac_status read_logits(evaluation *e, const void **logits, lac_error *err) {
  lac_engine_port port;
  lac_status st = lac_engine_result(e->engine, 0, &port, logits, err);
  if (!st) st = check_logits(e, &port, err);
  if (st || port.shape[1] == e->classes) return st;
  return laci_fail(err, LAC_BAD_SHAPE, "output '%s': %lld classes for some images, %lld for others",
                   port.name, (long long)e->classes, (long long)port.shape[1]);
}

static lac_status run_batch(evaluation *e, const laci_batch *batch, lac_error *err) {
  size_t n = (size_t)batch->n, left = (size_t)e->batch - n;
  memset(batch->pixels + n * e->sample, 0, left * e->sample * sizeof *batch->pixels);
  const void *logits = e->outputs[0];
  lac_status st = lac_engine_run(e->engine, (const void *[]){batch->pixels}, e->outputs, err);
  if (!st && e->is_open) st = read_logits(e, &logits, err);
  if (!st) st = laci_metrics_add(&e->metrics, logits, batch->n, e->classes, batch->labels, err);
  if (!st && e->predictions) {
    st = laci_writer_append(e->predictions, logits, n * (size_t)e->classes * sizeof(float), err);
  }
  return st;
}

static lac_status run_all(evaluation *e, lac_error *err) {
  for (int64_t done = 0, n = e->end - e->begin; done < n;) {
    laci_batch batch;
    if (laci_interrupted()) return laci_fail(err, LAC_INTERRUPTED, "interrupted");
    lac_status st = laci_loader_take_batch(e->loader, &batch, err);
    if (!st) st = run_batch(e, &batch, err);
    if (!st) st = laci_loader_queue_batch(e->loader, batch.pixels, batch.labels, err);
    if (st) return st;
    done += batch.n;
    laci_progress("evaluate", done, n);
  }
  return laci_metrics_check_all_finite(&e->metrics, err);
}

/* Logs the memory of the loader's batches and of the outputs. */
static void log_memory(const evaluation *e) {
  const lac_engine_port *ports;
  size_t held = DEPTH * (size_t)e->batch * (e->sample * sizeof(float) + sizeof(int32_t));
  (void)lac_engine_outputs(e->engine, &ports);
  for (int at = 0; at < e->n_outputs; at++) held += ports[at].size_bytes;
  laci_log_memory(e->engine, held);
}

static void evaluation_clear(evaluation *e) {
  laci_loader_destroy(
      e->loader); /* the loader is destroyed first, since its threads write to the buffers */
  laci_writer_destroy(e->predictions);
  for (int at = 0; e->outputs && at < e->n_outputs; at++) laci_free(e->outputs[at]);
  laci_free(e->outputs);
  for (int k = 0; k < DEPTH; k++) {
    laci_free(e->pixels[k]);
    laci_free(e->labels[k]);
  }
  lac_engine_destroy(e->engine);
  laci_model_view_destroy(e->view);
  laci_dataset_close(e->set);
}

/* Prepares everything before images are read: data, plan, buffers. */
static lac_status prepare_evaluation(evaluation *e, const lac_model *model, const char *data,
                                     const lac_eval_options *options, lac_error *err) {
  lac_status st = laci_eval_options_check(options, err);
  if (!st)
    e->dtype = laci_dtype_find_supported_or_warn(laci_engine_name_or_default(options->run.engine),
                                                 options->run.dtype);
  if (!st) st = open_images(e, model, data, options, err);
  if (!st) st = laci_model_view_create(model, &e->view, err);
  if (!st) st = plan_network(e, options, err);
  if (!st) e->metrics.of_probabilities = laci_ends_in_softmax(e->view->graph);
  e->metrics.counts_bad = true;
  if (!st) st = alloc_buffers(e, err);
  return st ? st : open_predictions(e, model, options, err);
}

/* Evaluates the images [begin, end). */
static lac_status run_image_range(evaluation *e, int threads, lac_error *err) {
  if (e->begin == e->end) return LAC_OK;
  double begin = laci_clock_seconds();
  lac_status st = start_loader(e, threads, err);
  if (!st) st = run_all(e, err);
  e->seconds = laci_clock_seconds() - begin;
  if (!st && !e->quiet) log_memory(e);
  return st;
}

static void set_metrics_result(const laci_metrics *metrics, int n_sparse, double seconds,
                               lac_eval_result *result) {
  *result = (lac_eval_result){.size = sizeof(lac_eval_result),
                              .images = metrics->images,
                              .top1 = laci_metrics_top1(metrics),
                              .top5 = laci_metrics_top5(metrics),
                              .loss = laci_metrics_loss(metrics),
                              .n_sparse = n_sparse};
  if (seconds > 0) result->images_per_second = (double)result->images / seconds;
}

static void set_engine_facts(const lac_engine *engine, lac_eval_result *result) {
  const lac_engine_facts about = laci_model_engine_facts(engine);
  result->dtype = about.dtype;
  result->n_nodes = about.n_nodes;
  result->n_exact = about.n_exact;
  if (about.exact_reason) {
    (void)snprintf(result->exact_reason, sizeof result->exact_reason, "%s", about.exact_reason);
  }
}

/* Runs an evaluation, and frees e. */
static lac_status evaluate_and_clear(evaluation *e, const lac_model *model, const char *data,
                                     const lac_eval_options *options, lac_eval_result *result,
                                     lac_error *err) {
  *result = (lac_eval_result)LAC_SIZED(lac_eval_result);
  lac_status st = prepare_evaluation(e, model, data, options, err);
  e->end = e->images;
  if (!st) st = run_image_range(e, options->run.threads, err);
  if (!st && e->predictions) {
    st = laci_writer_finish(e->predictions, err);
    if (!st) st = laci_writer_commit(e->predictions, err);
  }
  if (!st)
    set_metrics_result(&e->metrics, laci_model_engine_n_sparse(e->engine), e->seconds, result);
  if (!st) set_engine_facts(e->engine, result);
  evaluation_clear(e);
  return st;
}

lac_status laci_evaluate_test_part(const lac_model *model, const laci_parts *parts,
                                   const laci_given_samples *memory,
                                   const lac_eval_options *options, lac_eval_result *result,
                                   lac_error *err) {
  const bool has_training_part = strcmp(parts->train, parts->test) != 0 && parts->train[0];
  evaluation e = {.memory = memory, .trained_on = has_training_part ? parts->train : NULL};
  return evaluate_and_clear(&e, model, parts->test, options, result, err);
}

/* ---- Evaluating a part of the images ---- */

int64_t laci_eval_part_begin(const laci_eval_scores *scores, int part, int n_parts) {
  const int64_t n_batches = scores->images / scores->batch + (scores->images % scores->batch != 0);
  const int64_t begin = n_batches * part / n_parts * scores->batch;
  return begin < scores->images ? begin : scores->images;
}

static lac_status check_part_options(const lac_eval_options *options, const laci_eval_part *part,
                                     lac_error *err) {
  if (part->n_parts < 1 || part->part < 0 || part->part >= part->n_parts) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "part %d of %d of an evaluation", part->part,
                     part->n_parts);
  }
  if (!options->predictions) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: predictions of a part of an evaluation",
                   options->predictions);
}

lac_status laci_model_evaluate_part(const lac_model *model, const char *data,
                                    const lac_eval_options *options, const laci_eval_part *part,
                                    laci_eval_scores *scores, lac_error *err) {
  evaluation e = {.memory = part->memory, .quiet = part->quiet};
  *scores = (laci_eval_scores){.images = 0};
  lac_status st = check_part_options(options, part, err);
  if (!st) st = prepare_evaluation(&e, model, data, options, err);
  if (st) goto out;
  *scores = (laci_eval_scores){.images = e.images, .batch = e.batch};
  e.metrics.scores = scores->scores = laci_alloc((size_t)e.images, sizeof *scores->scores);
  if (!scores->scores) st = laci_fail_memory(err, "what the images score");
  e.begin = laci_eval_part_begin(scores, part->part, part->n_parts);
  e.end = laci_eval_part_begin(scores, part->part + 1, part->n_parts);
  e.metrics.first = e.begin;
  if (!st) st = run_image_range(&e, options->run.threads, err);
  scores->n_sparse = laci_model_engine_n_sparse(e.engine);
  scores->seconds = e.seconds;
out:
  evaluation_clear(&e);
  if (!st) return LAC_OK;
  laci_free(scores->scores);
  *scores = (laci_eval_scores){.images = 0};
  return st;
}

void laci_eval_result_from_scores(const laci_eval_scores *scores, lac_eval_result *result) {
  laci_metrics metrics = {.first = 0};
  for (int64_t at = 0; at < scores->images; at++) {
    laci_metrics_add_score(&metrics, &scores->scores[at]);
  }
  set_metrics_result(&metrics, scores->n_sparse, scores->seconds, result);
}
