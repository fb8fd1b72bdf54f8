/* SPDX-License-Identifier: Apache-2.0
 * Runs two plans: the teacher's forward pass, which computes the targets, and the student's
 * training step, which reads them. */
#include "distill/reconstruct.h"

#include <math.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "distill/blocks.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "train/trainer.h"

struct laci_reconstruct {
  laci_trainer *trainer;
  laci_training_graph *teacher;
  laci_engine *engine; /* engine that runs the teacher */
  void **outputs;      /* [number of the teacher's outputs] addresses of the teacher's outputs */
  int64_t batch;
};

/* ---- Creating ---- */

static lac_status create_teacher_engine(laci_reconstruct *r, const laci_graph *model,
                                        const laci_reconstruct_options *o,
                                        laci_training_options graph, laci_budget *budget,
                                        lac_error *err) {
  graph.loss = LACI_LOSS_TARGETS;
  lac_status st = laci_training_graph_create(model, &graph, &r->teacher, err);
  if (st) return st;
  const laci_engine_options how = {.engine = o->engine,
                                   .threads = o->threads,
                                   .bf16 = o->bf16,
                                   .dense_only = o->dense_only,
                                   .finite = LACI_FINITE_ASSUMED,
                                   .early_outputs = true,
                                   .budget = budget};
  r->outputs = laci_alloc((size_t)r->teacher->graph->n_outputs, sizeof *r->outputs);
  if (!r->outputs) return laci_fail_memory(err, "the dense network's outputs");
  return laci_engine_create(r->teacher->graph, &how, &r->engine, err);
}

static lac_status set_trainer_masks(laci_reconstruct *r, const uint8_t *const *masks) {
  const laci_training_graph *g = laci_trainer_graph(r->trainer);
  for (int p = 0; p < g->n_params && masks; p++) {
    const uint8_t *mask = masks[g->params[p].stored];
    if (!mask) continue;
    laci_optimizer_set_mask(laci_trainer_optimizer(r->trainer), p, mask,
                            laci_trainer_weights(r->trainer));
  }
  return LAC_OK;
}

static lac_status check_weights_are_f32(const laci_reconstruct *r, lac_error *err) {
  const laci_training_graph *g = laci_trainer_graph(r->trainer);
  for (int p = 0; p < g->n_params; p++) {
    lac_dtype dtype = g->graph->values[g->params[p].input].type.dtype;
    if (dtype == LAC_DTYPE_F32) continue;
    return laci_fail(err, LAC_UNSUPPORTED, "%s: training in %s; wanted f32 weights",
                     g->params[p].name, lac_dtype_name(dtype));
  }
  return LAC_OK;
}

static lac_status create_student_trainer(laci_reconstruct *r, const laci_graph *model,
                                         const laci_reconstruct_options *o,
                                         laci_training_options graph, laci_budget *budget,
                                         lac_error *err) {
  laci_engine_weight *known = laci_alloc((size_t)model->n_stored + 1, sizeof *known);
  laci_trainer_options how = {.graph = graph,
                              .optimizer = laci_optimizer_options_default(LACI_OPTIMIZER_ADAMW),
                              .run = {.engine = o->engine,
                                      .threads = o->threads,
                                      .bf16 = o->bf16,
                                      .dense_only = o->dense_only},
                              .weights = known,
                              .budget = budget};
  if (!known) return laci_fail_memory(err, "masks");
  how.graph.loss = LACI_LOSS_MATCH;
  how.optimizer.decay = 0;
  for (int s = 0; s < model->n_stored && o->masks; s++) {
    if (!o->masks[s]) continue;
    known[how.n_weights++] =
        (laci_engine_weight){.value = model->stored[s].value, .mask = o->masks[s]};
  }
  lac_status st = laci_trainer_create(model, &how, &r->trainer, err);
  laci_free(known);
  if (!st) st = check_weights_are_f32(r, err);
  return st ? st : set_trainer_masks(r, o->masks);
}

lac_status laci_reconstruct_create(const laci_graph *student, const laci_graph *teacher,
                                   const laci_reconstruct_options *options,
                                   laci_reconstruct **reconstruct, lac_error *err) {
  laci_reconstruct *r = laci_alloc(1, sizeof *r);
  int *blocks = NULL;
  laci_budget budget = options->budget ? *options->budget : (laci_budget){.limit = UINT64_MAX};
  laci_training_options graph = {
      .batch = options->batch, .image = options->image, .keep_statistics = true};
  *reconstruct = NULL;
  if (!r) return laci_fail_memory(err, "a network that is fitted to another");
  r->batch = options->batch;
  lac_status st = laci_block_outputs_find(student, &blocks, &graph.n_blocks, err);
  graph.blocks = blocks;
  if (!st) st = create_student_trainer(r, student, options, graph, &budget, err);
  if (!st) st = create_teacher_engine(r, teacher, options, graph, &budget, err);
  laci_free(blocks);
  if (st) laci_reconstruct_destroy(r);
  else *reconstruct = r;
  return st;
}

void laci_reconstruct_destroy(laci_reconstruct *r) {
  if (!r) return;
  laci_engine_destroy(r->engine);
  laci_training_graph_destroy(r->teacher);
  laci_trainer_destroy(r->trainer);
  laci_free(r->outputs);
  laci_free(r);
}

/* ---- Sizes ---- */

static int64_t count_floats_per_sample(const laci_reconstruct *r, int value) {
  return laci_shape_count(&r->teacher->graph->values[value].type.shape) / r->batch;
}

int laci_reconstruct_count_targets(const laci_reconstruct *r) { return r->teacher->n_targets; }

int64_t laci_reconstruct_floats_of_target(const laci_reconstruct *r, int k) {
  return count_floats_per_sample(r, r->teacher->targets[k]);
}

int64_t laci_reconstruct_floats_of_image(const laci_reconstruct *r) {
  return count_floats_per_sample(r, r->teacher->images);
}

laci_trainer *laci_reconstruct_trainer(laci_reconstruct *r) { return r->trainer; }

/* ---- A step ---- */

lac_status laci_reconstruct_run_teacher(laci_reconstruct *r, const float *images,
                                        float *const *targets, lac_error *err) {
  const laci_graph *graph = r->teacher->graph;
  for (int k = 0; k < r->teacher->n_targets; k++) {
    for (int i = 0; i < graph->n_outputs; i++)
      if (graph->outputs[i] == r->teacher->targets[k]) r->outputs[i] = targets[k];
  }
  return laci_engine_run(r->engine, (const void *const[]){images}, r->outputs, err);
}

lac_status laci_reconstruct_train_step(laci_reconstruct *r, const float *images,
                                       const float *const *targets, double rate, float *loss,
                                       lac_error *err) {
  lac_status st = laci_trainer_run_match_batch(r->trainer, images, targets, loss, err);
  if (st) return st;
  if (!isfinite(*loss)) {
    return laci_fail(err, LAC_BAD_VALUE,
                     "the difference from the dense network is no finite number any more");
  }
  return laci_trainer_update(r->trainer, rate, err);
}

lac_status laci_reconstruct_store_student(const laci_reconstruct *r, laci_graph *model,
                                          lac_error *err) {
  return laci_trainer_store_in_model(r->trainer, model, err);
}
