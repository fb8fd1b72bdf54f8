/* SPDX-License-Identifier: Apache-2.0
 * Checks that a model can be trained on images, before a step is planned. Next: trainer.c. */
#include <string.h>

#include "api/model/model_in.h"
#include "api/prune/job_in.h"
#include "api/run/eval_in.h"
#include "api/train/plan_in.h"
#include "api/train/train_in.h"
#include "base/error.h"
#include "data/dataset.h"
#include "graph/graph.h"
#include "graph/training_graph.h"
#include "lacuna/prune.h"

static lac_status infer_model(const lac_model *model, uint64_t max_memory, lac_error *err) {
  lac_options options = lac_options_default();
  laci_job job;
  options.max_memory = max_memory;
  if (!laci_model_has_inferred_shapes(model)) {
    lac_status st = laci_job_open(model, &options, &job, err);
    if (st) return st;
    laci_job_close(&job);
  }
  return laci_model_materialise(model, err); /* a trainer reads weights in place */
}

/** Checks that the images fit the network's input, whose batch size may differ and whose other
 * sizes may be open. */
static lac_status check_images_fit(const laci_training *t, lac_error *err) {
  const laci_graph *graph = t->model->graph;
  const laci_preprocessing *p = &t->plan->prepare;
  const int64_t wanted[] = {-1, laci_preprocessing_channels(p), p->height, p->width};
  if (graph->n_inputs != 1) return LAC_OK; /* making the training graph reports this */
  const laci_value *images = &graph->values[graph->inputs[0]];
  if (p->is_ready) return laci_check_prepared_samples(images, p, err);
  const laci_shape *shape = &images->type.shape;
  bool fits = shape->rank < 0 || shape->rank == 4;
  for (int axis = 1; axis < shape->rank && fits; axis++) {
    fits = shape->dims[axis] < 0 || shape->dims[axis] == wanted[axis];
    if (!fits && axis > 1) return laci_fail_crop_size(images, t->plan->set, p, err);
  }
  if (fits) return LAC_OK;
  char text[256];
  return laci_fail(err, LAC_BAD_SHAPE,
                   "input '%s' is %s, but images are prepared to %d channel%s, %d x %d",
                   images->name, laci_shape_text(shape, text, sizeof text), (int)wanted[1],
                   wanted[1] == 1 ? "" : "s", p->height, p->width);
}

/** If there will be evaluations, checks now that the folder's test part exists and has the classes
 * of the training part; otherwise the run would fail only after an epoch. */
static lac_status check_test_part(const laci_training *t, lac_error *err) {
  const lac_train_options *o = t->options;
  const laci_dataset *train = t->plan->set;
  laci_dataset *test = NULL;
  /* with eval_only the open part is the test part */
  if (!o->evaluate || o->eval_only) return LAC_OK;
  const bool by_network = laci_dataset_numbering(train) == LACI_NUMBERED_BY_NETWORK;
  laci_dataset_options how = {.part = LACI_PART_TEST,
                              .classes_path = o->classes,
                              .known = by_network ? t->plan->known : NULL,
                              .input = t->plan->input,
                              .quiet = true};
  laci_dataset_options_set_memory(laci_train_samples_of_part(t->plan, true), &how);
  lac_status st = laci_dataset_open(t->plan->parts.test, &how, &test, err);
  if (st) return st;
  t->plan->test_images = laci_dataset_count(test);
  int wanted = laci_dataset_count_classes(train), found = laci_dataset_count_classes(test);
  const bool arrays = strcmp(laci_dataset_format(test), "arrays") == 0;
  if (arrays) { /* classes that neither part has are no failure */
    st = laci_check_class_count(t->model->graph, test, err);
  } else if (wanted != found) {
    st = laci_fail(err, LAC_BAD_SHAPE, "%s: %d classes for evaluation, but %d for training",
                   t->plan->parts.test, found, wanted);
  }
  for (int k = 0; k < wanted && !st; k++) {
    const char *a = laci_dataset_class_name(train, k), *b = laci_dataset_class_name(test, k);
    if (!a || !b || strcmp(a, b) == 0) continue;
    st = laci_fail(err, LAC_BAD_SHAPE, "%s: class %d is '%s' for evaluation, but '%s' for training",
                   t->plan->parts.test, k, b, a);
  }
  laci_dataset_close(test);
  return st;
}

lac_status laci_training_check_and_plan(laci_training *t, const char *data, lac_error *err) {
  t->plan->known = t->model->graph->class_names;
  t->plan->input = laci_only_input_name(t->model->graph);
  lac_status st = laci_train_open_data(data, t->options, t->plan, err);
  if (!st) st = laci_train_plan_fill(t->options, t->plan, err);
  if (!st) st = check_test_part(t, err);
  if (!st) st = infer_model(t->model, t->options->run.max_memory, err);
  if (!st) st = check_images_fit(t, err);
  return st ? st : laci_check_class_count(t->model->graph, t->plan->set, err);
}

/* ---- The graph of a training step ---- */

laci_training_options laci_training_graph_options(const laci_training *t) {
  return (laci_training_options){.batch = t->plan->batch,
                                 .image = laci_preprocessing_sample_shape(&t->plan->prepare)};
}

lac_status laci_training_check_classes_and_types(const laci_training *t,
                                                 const laci_training_graph *g, lac_error *err) {
  lac_status st = laci_dataset_check_outputs(
      t->plan->set, t->model->graph->values[t->model->graph->outputs[0]].name, g->n_classes, err);
  if (st) return st;
  for (int k = 0; k < g->n_params; k++) {
    lac_dtype dtype = g->graph->values[g->params[k].input].type.dtype;
    if (dtype == LAC_DTYPE_F32) continue;
    return laci_fail(err, LAC_UNSUPPORTED, "%s: training in %s; wanted f32 weights",
                     g->params[k].name, lac_dtype_name(dtype));
  }
  return LAC_OK;
}

lac_status laci_training_check_graph(const laci_training *t, lac_error *err) {
  laci_training_options o = laci_training_graph_options(t);
  laci_training_graph *graph = NULL;
  lac_status st = laci_training_graph_create(t->model->graph, &o, &graph, err);
  if (!st) st = laci_training_check_classes_and_types(t, graph, err);
  laci_training_graph_destroy(graph);
  return st;
}
