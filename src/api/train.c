/* SPDX-License-Identifier: Apache-2.0
 * lac_train: the loop of src/train with a model around it. An evaluation stores the weights in the
 * model and lets lac_eval run it, as anybody would: the network that is measured is the one that is
 * written. Next: train_plan.c, train_record.c, train/loop.h. */
#include "lacuna/train.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "api/eval_in.h"
#include "api/model_in.h"
#include "api/train_in.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/run_folder.h"
#include "graph/training_left.h"
#include "report/json.h"
#include "train/events.h"

/* Everything that one training holds; cleared by training_clear. */
typedef struct training {
  lac_model *model;
  const lac_train_options *options;
  laci_train_plan plan;
  laci_trainer *trainer;
  laci_train_record *record; /* NULL: not wanted */
  uint8_t *masks;            /* [size of the optimiser's buffers], or NULL */
  int lock;                  /* of the folder; -1: none */
  bool evaluated;            /* once: the plan has been logged */
} training;

/* ---- The trainer ---- */

static lac_status infer(const lac_model *model, uint64_t max_memory, lac_error *err) {
  lac_options options = lac_options_default();
  laci_job job;
  options.max_memory = max_memory;
  if (laci_model_is_inferred(model)) return LAC_OK;
  lac_status st = laci_job_open(model, &options, &job, err);
  if (!st) laci_job_close(&job);
  return st;
}

/** Whether the images can be the network's input: its batch may be another, sizes may be open. */
static lac_status check_images(const training *t, lac_error *err) {
  const laci_graph *graph = t->model->graph;
  const laci_preprocessing *p = &t->plan.prepare;
  const int64_t wanted[] = {-1, laci_preprocessing_channels(p), p->height, p->width};
  if (graph->n_inputs != 1) return LAC_OK; /* the training graph says so */
  const laci_value *images = &graph->values[graph->inputs[0]];
  const laci_shape *shape = &images->type.shape;
  bool fits = shape->rank < 0 || shape->rank == 4;
  for (int axis = 1; axis < shape->rank && fits; axis++) {
    fits = shape->dims[axis] < 0 || shape->dims[axis] == wanted[axis];
    if (!fits && axis > 1) return laci_fail_crop(images, t->plan.set, p, err);
  }
  if (fits) return LAC_OK;
  char text[256];
  return laci_fail(err, LAC_BAD_SHAPE,
                   "input '%s' is %s, but images are prepared to %d channel%s, %d x %d",
                   images->name, laci_shape_text(shape, text, sizeof text), (int)wanted[1],
                   wanted[1] == 1 ? "" : "s", p->height, p->width);
}

static laci_training_options graph_options(const training *t) {
  const laci_preprocessing *p = &t->plan.prepare;
  return (laci_training_options){
      .batch = t->plan.batch, .image = {3, {laci_preprocessing_channels(p), p->height, p->width}}};
}

static lac_status check_fit(const training *t, const laci_training_graph *g, lac_error *err) {
  lac_status st = laci_dataset_check_outputs(
      t->plan.set, t->model->graph->values[t->model->graph->outputs[0]].name, g->n_classes, err);
  if (st) return st;
  for (int k = 0; k < g->n_params; k++) {
    lac_dtype dtype = g->graph->values[g->params[k].input].type.dtype;
    if (dtype == LAC_DTYPE_F32) continue;
    return laci_fail(err, LAC_UNSUPPORTED, "%s: training in %s; wanted f32 weights",
                     g->params[k].name, lac_dtype_name(dtype));
  }
  return LAC_OK;
}

/** The folder's test part, where it is going to be looked at: that it is there and has the classes
 * of the training part must not come out after an epoch. */
static lac_status check_test_part(const training *t, lac_error *err) {
  const lac_train_options *o = t->options;
  const laci_dataset *train = t->plan.set;
  laci_dataset *test = NULL;
  if (!o->evaluate || o->eval_only) return LAC_OK; /* all that is open then is that part */
  laci_dataset_options how = {.part = LACI_PART_TEST, .classes_path = o->classes, .quiet = true};
  lac_status st = laci_dataset_open(t->plan.parts.test, &how, &test, err);
  if (st) return st;
  int wanted = laci_dataset_classes(train), found = laci_dataset_classes(test);
  if (wanted != found) {
    st = laci_fail(err, LAC_BAD_SHAPE, "%s: %d classes for evaluation, but %d for training",
                   t->plan.parts.test, found, wanted);
  }
  for (int k = 0; k < wanted && !st; k++) {
    const char *a = laci_dataset_class_name(train, k), *b = laci_dataset_class_name(test, k);
    if (!a || !b || strcmp(a, b) == 0) continue;
    st = laci_fail(err, LAC_BAD_SHAPE, "%s: class %d is '%s' for evaluation, but '%s' for training",
                   t->plan.parts.test, k, b, a);
  }
  laci_dataset_close(test);
  return st;
}

/** The parameter of that name; -1: none is trained. */
static int find_parameter(const training *t, const char *name) {
  const laci_parameter *parameters = laci_trainer_parameters(t->trainer);
  for (int p = 0; p < laci_trainer_graph(t->trainer)->n_params; p++) {
    if (strcmp(parameters[p].name, name) == 0) return p;
  }
  return -1;
}

/** Does the model store a tensor of that name which training leaves as it is? Those of an output
 * that is not the first keep their zeros by themselves. */
static bool stays(const training *t, const char *name) {
  const laci_graph *graph = t->model->graph;
  const laci_training_graph *g = laci_trainer_graph(t->trainer);
  for (int s = 0; s < g->n_stats; s++) {
    if (strcmp(g->stats[s].name, name) == 0) return false;
  }
  int value = laci_graph_find_value(graph, name);
  return value >= 0 && graph->values[value].stored >= 0;
}

/** The masks by name as one buffer beside the weights. */
static lac_status set_masks(training *t, const lac_mask *mask, lac_error *err) {
  const laci_parameter *parameters = laci_trainer_parameters(t->trainer);
  laci_optimizer *optimizer = laci_trainer_optimizer(t->trainer);
  if (!mask || lac_mask_count(mask) == 0) return LAC_OK;
  size_t size = (size_t)laci_optimizer_size(optimizer);
  t->masks = laci_alloc(size, 1);
  if (!t->masks) return laci_fail_memory(err, "masks");
  memset(t->masks, 1, size);
  for (int k = 0; k < lac_mask_count(mask); k++) {
    const char *name = lac_mask_name(mask, k);
    const uint8_t *bytes;
    size_t count;
    lac_status st = lac_mask_bytes(mask, name, &bytes, &count, err);
    if (st) return st;
    int p = find_parameter(t, name);
    if (p < 0 && stays(t, name)) continue;
    if (p < 0) {
      return laci_fail(err, LAC_NOT_FOUND, "%s: it has a mask, but no such weight is trained",
                       name);
    }
    if (count != (size_t)parameters[p].count) {
      return laci_fail(err, LAC_BAD_SHAPE, "%s: %lld elements, but its mask has %zu",
                       parameters[p].name, (long long)parameters[p].count, count);
    }
    uint8_t *place = t->masks + parameters[p].offset;
    memcpy(place, bytes, count);
    laci_optimizer_set_mask(optimizer, p, place, laci_trainer_weights(t->trainer));
  }
  return LAC_OK;
}

static void log_plan(const laci_trainer *trainer, bool remat) {
  const laci_training_graph *g = laci_trainer_graph(trainer);
  const char *at = laci_trainer_plan_text(trainer);
  while (at && *at && laci_log_wanted(LAC_LOG_TRACE)) {
    size_t n = strcspn(at, "\n");
    laci_log(LAC_LOG_TRACE, "%.*s", (int)n, at);
    at += n + (at[n] == '\n');
  }
  laci_log(LAC_LOG_DEBUG, "memory of training as planned: %.1f MB",
           (double)laci_trainer_memory(trainer) / 1e6);
  if (remat) {
    int n = laci_engine_planned(laci_trainer_engine(trainer)).n_recomputed;
    laci_log(LAC_LOG_DEBUG, "computed again for gradients: %d of %d nodes%s", n, g->graph->n_nodes,
             n > 0 ? "" : ", since none would save memory");
  }
}

static void warn_of_left(const laci_training_left *left, const char *why) {
  if (left->n == 0) return;
  laci_log(LAC_LOG_WARNING, "%s%s: %s", left->first, left->n > 1 ? " and others" : "", why);
}

/** A word about weights that might be believed to be trained. */
static lac_status log_left(const training *t, lac_error *err) {
  const laci_graph *model = t->model->graph;
  const laci_training_graph *g = laci_trainer_graph(t->trainer);
  laci_training_left left;
  if (t->options->eval_only) return LAC_OK;
  for (int at = 1; at < model->n_outputs; at++) {
    lac_status st = laci_training_left_of_output(model, g, at, &left, err);
    if (st) return st;
    if (left.n == 0) continue;
    laci_log(
        LAC_LOG_WARNING,
        "output '%s' is not trained: only the first one is, and %d weight%s of this one stay%s "
        "as %s, the first is %s",
        model->values[model->outputs[at]].name, left.n, left.n == 1 ? "" : "s",
        left.n == 1 ? "s" : "", left.n == 1 ? "it is" : "they are", left.first);
  }
  left = laci_training_left_of_products(model, g);
  warn_of_left(&left,
               "not trained: taken for constants, since they meet the images before any "
               "weight does, lie in a Constant node, or are no f32");
  left = laci_training_left_without_gradient(g);
  warn_of_left(&left, "no gradient reaches them, only the decay of weights does");
  return LAC_OK;
}

/** What is held beside the trainer: the model as it was read and as it is written back, masks, and
 * batches of images ahead of time. */
static void add_around(const training *t, laci_budget *budget) {
  const laci_preprocessing *p = &t->plan.prepare;
  int64_t images = 2 * (int64_t)t->plan.batch; /* train/feed.c */
  laci_model_add_to(t->model, budget);
  laci_model_add_to(t->model, budget);
  laci_budget_add(budget, laci_bytes_of(images, laci_preprocessing_sample(p) * sizeof(float)),
                  "batches of %d images", t->plan.batch);
}

/* The masks as the engine may know them. A run that goes on takes those of its checkpoint, which is
 * not read yet: then nothing is said. */
static lac_status known_masks(const training *t, const lac_mask *mask, laci_engine_weight **weights,
                              int *n_weights, lac_error *err) {
  int n = t->options->recover ? 0 : lac_mask_count(mask);
  *n_weights = 0;
  *weights = laci_alloc((size_t)n, sizeof **weights);
  if (!*weights) return laci_fail_memory(err, "masks");
  for (int k = 0; k < n; k++) {
    const char *name = lac_mask_name(mask, k);
    int value = laci_graph_find_value(t->model->graph, name);
    int stored = value >= 0 ? t->model->graph->values[value].stored : -1;
    const uint8_t *bytes;
    size_t count;
    if (stored < 0) continue; /* set_masks says what is wrong */
    lac_status st = lac_mask_bytes(mask, name, &bytes, &count, err);
    if (st) return st;
    if (count != (size_t)laci_shape_count(&t->model->graph->stored[stored].shape)) continue;
    (*weights)[(*n_weights)++] = (laci_engine_weight){.value = value, .mask = bytes};
  }
  return LAC_OK;
}

static lac_status make_trainer(training *t, const lac_mask *mask, lac_error *err) {
  laci_engine_weight *weights = NULL;
  int n_weights = 0;
  lac_status st = known_masks(t, mask, &weights, &n_weights, err);
  laci_budget budget = laci_budget_of(t->options->max_memory);
  laci_trainer_options o = {.graph = graph_options(t),
                            .optimizer = t->plan.recipe.optimizer,
                            .engine = t->options->engine,
                            .threads = t->options->threads,
                            .bf16 = t->options->dtype == LAC_DTYPE_BF16,
                            .remat = t->options->remat,
                            .weights = weights,
                            .n_weights = n_weights,
                            .budget = &budget};
  add_around(t, &budget);
  if (!st) st = laci_trainer_create(t->model->graph, &o, &t->trainer, err);
  laci_free(weights);
  if (!st) st = check_fit(t, laci_trainer_graph(t->trainer), err);
  if (!st) st = set_masks(t, mask, err);
  if (!st) st = log_left(t, err);
  if (!st) log_plan(t->trainer, t->options->remat);
  return st;
}

/* ---- The loop's hooks ---- */

static lac_status evaluate(void *context, laci_loop_score *score, lac_error *err) {
  training *t = context;
  const lac_train_options *o = t->options;
  lac_eval_result result;
  lac_eval_options how = lac_eval_options_default();
  how.threads = o->threads;
  how.dtype = o->dtype;
  how.engine = o->engine;
  how.batch = t->plan.batch;
  how.max_memory = o->max_memory;
  how.resize = o->resize;
  how.crop = o->crop;
  how.classes = o->classes;
  memcpy(how.mean, o->mean, sizeof how.mean);
  memcpy(how.std, o->std, sizeof how.std);
  lac_status st = laci_trainer_store(t->trainer, t->model->graph, err);
  if (!st) st = laci_model_evaluate(t->model, t->plan.parts.test, &how, t->evaluated, &result, err);
  t->evaluated = true;
  if (st) return st;
  *score = (laci_loop_score){.top1 = result.top1, .top5 = result.top5, .loss = result.loss};
  return LAC_OK;
}

static void copy_event(const laci_loop_event *from, lac_train_event *to) {
  to->step = from->step;
  to->steps = from->steps;
  to->epoch = from->epoch;
  if (from->kind == LACI_LOOP_STEP) {
    to->kind = LAC_TRAIN_STEP;
    to->loss = from->loss;
    to->rate = from->rate;
    to->images_per_second = from->images_per_second;
    to->seconds_left = from->seconds_left;
  } else if (from->kind == LACI_LOOP_SCORE) {
    to->kind = LAC_TRAIN_EVALUATED;
    to->loss = from->score.loss;
    to->top1 = from->score.top1;
    to->top5 = from->score.top5;
    to->is_best = from->is_best;
  } else {
    to->kind = from->kind == LACI_LOOP_BEGIN ? LAC_TRAIN_BEGIN : LAC_TRAIN_SAVED;
  }
}

static lac_status on_event(void *context, const laci_loop_event *from, lac_error *err) {
  training *t = context;
  const lac_train_options *o = t->options;
  lac_train_event event = {0};
  lac_status st = LAC_OK;
  copy_event(from, &event);
  event.is_display = event.kind == LAC_TRAIN_STEP && event.step % o->display_steps == 0;
  if (event.kind == LAC_TRAIN_BEGIN) event.memory_bytes = laci_trainer_memory(t->trainer);
  if (event.kind == LAC_TRAIN_BEGIN && o->model_dir && !o->eval_only) {
    laci_train_about about = {.network = t->model->path,
                              .format = laci_train_format(t->plan.set),
                              .images = laci_dataset_count(t->plan.set),
                              .steps_per_epoch = t->plan.steps_per_epoch,
                              .dense_top1 = o->dense_top1};
    st = laci_train_record_open(o->model_dir, event.step, &about, &t->record, err);
  }
  if (!st && t->record) st = laci_train_record_add(t->record, &event, err);
  if (!st && o->listener) o->listener(&event, o->context);
  return st;
}

/* ---- The whole ---- */

/** From now on the folder is a run's. One that goes on keeps what it began with. */
static lac_status mark_folder(const training *t, lac_error *err) {
  const lac_train_options *o = t->options;
  if (o->recover && laci_folder_has(o->model_dir, LACI_RUN_MARK)) return LAC_OK;
  return laci_train_mark(o->model_dir, t->model->path, o->seed, t->plan.steps, err);
}

/** Two runs in one folder would take each other's checkpoints for their own. */
static lac_status prepare_folder(training *t, lac_error *err) {
  const lac_train_options *o = t->options;
  const char *folder = o->model_dir;
  if (!folder || o->eval_only) return LAC_OK;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
    return laci_fail(err, LAC_IO, "%s: %s", folder, strerror(errno));
  }
  lac_status st = laci_folder_lock(folder, &t->lock, err);
  if (!st) st = laci_run_folder_check(folder, err);
  if (st) return st;
  if (o->recover || !laci_loop_has_checkpoints(folder)) return mark_folder(t, err);
  if (o->force) {
    st = laci_loop_clear(folder, err);
    if (!st) st = laci_events_clear(folder, err);
    return st ? st : mark_folder(t, err);
  }
  return laci_fail(err, LAC_EXISTS,
                   "%s: it has checkpoints of another run; recovering goes on with it, forcing "
                   "begins anew",
                   folder);
}

/** What the run makes of its recipe, a line each. */
static void log_changes(const training *t) {
  if (t->options->eval_only) return;
  for (const char *at = t->plan.changed; *at;) {
    size_t n = strcspn(at, "\n");
    laci_log(LAC_LOG_INFO, "%.*s", (int)n, at);
    at += n + (at[n] == '\n');
  }
}

static lac_status run_loop(training *t, lac_train_result *result, lac_error *err) {
  const lac_train_options *o = t->options;
  const laci_train_plan *p = &t->plan;
  laci_loop_options loop = {.feed = {.preprocessing = p->prepare,
                                     .batch = p->batch,
                                     .n_classes = laci_trainer_graph(t->trainer)->n_classes,
                                     .seed = o->seed,
                                     .shuffle = o->shuffle,
                                     .augmented = p->recipe.augment,
                                     .augment = laci_dataset_augment(p->set),
                                     .smoothing = p->recipe.smoothing,
                                     .mixup = p->recipe.mixup},
                            .accumulate = p->accumulate,
                            .schedule = p->schedule,
                            .steps = p->steps,
                            .steps_per_epoch = p->steps_per_epoch,
                            .eval_every = p->eval_every,
                            .checkpoint_every = p->checkpoint_every,
                            .steps_per_loop = o->steps_per_loop,
                            .stop_threshold = o->stop_threshold,
                            .keep_best = o->keep_best,
                            .eval_first = o->eval_first,
                            .eval_only = o->eval_only,
                            .folder = o->model_dir,
                            .keep = o->keep_checkpoints,
                            .recover = o->recover,
                            .about = p->about,
                            .masks = t->masks};
  laci_loop_hooks hooks = {.evaluate = o->evaluate || o->eval_only ? evaluate : NULL,
                           .on_event = on_event,
                           .context = t};
  laci_loop_result r;
  lac_status st = laci_loop_run(t->trainer, p->set, &loop, &hooks, &r, err);
  const int64_t n_steps = r.step - r.first_step, a_step = (int64_t)p->batch * p->accumulate;
  *result = (lac_train_result){
      .recipe = p->recipe.name,
      .threads = laci_trainer_threads(t->trainer),
      .batch = p->batch,
      .accumulate = p->accumulate,
      .images = laci_dataset_count(p->set),
      .planned_steps = o->eval_only ? r.step : p->steps,
      .first_step = r.first_step,
      .steps = r.step,
      .epochs = (double)r.step / (double)p->steps_per_epoch,
      .loss = r.loss,
      .evaluated = r.evaluated,
      .top1 = r.score.top1,
      .top5 = r.score.top5,
      .eval_loss = r.score.loss,
      .eval_step = r.evaluated_step,
      .best_top1 = r.best_top1,
      .best_top5 = r.best_top5,
      .best_step = r.best_step,
      .reached = r.reached,
      .interrupted = st == LAC_INTERRUPTED,
      .images_per_second = r.images_per_second,
      .average_images_per_second = n_steps ? (double)(n_steps * a_step) / r.step_seconds : NAN,
      .memory_bytes = laci_trainer_memory(t->trainer)};
  memcpy(result->changed, p->changed, sizeof result->changed);
  return st;
}

/** All that can be known without planning a step. */
static lac_status prepare(training *t, const char *data, lac_error *err) {
  lac_status st = laci_train_open(data, t->options, &t->plan, err);
  if (!st) st = laci_train_resolve(t->options, &t->plan, err);
  if (!st) st = check_test_part(t, err);
  if (!st) st = infer(t->model, t->options->max_memory, err);
  if (!st) st = check_images(t, err);
  return st ? st : laci_check_classes(t->model->graph, t->plan.set, err);
}

static void training_clear(training *t) {
  laci_trainer_destroy(t->trainer);
  laci_train_plan_clear(&t->plan);
  laci_free(t->masks);
  laci_folder_unlock(t->lock);
}

lac_status lac_train(lac_model *model, const char *data, const lac_mask *mask,
                     const lac_train_options *options, lac_train_result *result, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"data", data}, {"options", options},
                                   {"result", result});
  if (st) return st;
  training t = {.model = model, .options = options, .lock = -1};
  const double begin = laci_clock_seconds();
  *result = (lac_train_result){.best_top1 = -1};
  st = prepare(&t, data, err);
  if (!st) st = make_trainer(&t, mask, err);
  if (!st) st = prepare_folder(&t, err);
  if (!st) log_changes(&t);
  if (!st) st = run_loop(&t, result, err);
  if (!st) st = laci_trainer_store(t.trainer, model->graph, err);
  lac_status closed = laci_train_record_close(t.record, st ? NULL : err);
  result->seconds = laci_clock_seconds() - begin;
  training_clear(&t);
  return st ? st : closed;
}

/** What only the graph of a step shows: operators without gradients, classes, types of weights. It
 * is made for this and thrown away, which costs little beside what a caller does in between. */
static lac_status check_graph(const training *t, lac_error *err) {
  laci_training_options o = graph_options(t);
  laci_training_graph *graph = NULL;
  lac_status st = laci_training_graph_create(t->model->graph, &o, &graph, err);
  if (!st) st = check_fit(t, graph, err);
  laci_training_graph_destroy(graph);
  return st;
}

lac_status lac_train_check(lac_model *model, const char *data, const lac_train_options *options,
                           lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"model", model}, {"data", data}, {"options", options});
  if (st) return st;
  training t = {.model = model, .options = options, .plan = {.quiet = true}, .lock = -1};
  st = prepare(&t, data, err);
  if (!st && !options->eval_only) st = check_graph(&t, err);
  if (!st && options->model_dir && !options->eval_only) {
    st = laci_folder_lock(options->model_dir, &t.lock, err); /* to know that it is free */
    if (!st) st = laci_run_folder_check(options->model_dir, err);
  }
  training_clear(&t);
  return st;
}

lac_status lac_train_json(const lac_train_about *about, const lac_train_result *result, char **text,
                          lac_error *err) {
  if (text) *text = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"about", about}, {"result", result}, {"text", text},
                                   {"options", about ? about->options : NULL});
  return st ? st : laci_train_json(about, result, text, err);
}
