/* SPDX-License-Identifier: Apache-2.0
 * Opens the samples of a calibration: those of a path, or arrays in memory. */
#include "api/model/given_samples.h"
#include "api/prune/calibration_in.h"
#include "api/prune/job_in.h"
#include "api/prune/synthetic_in.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/samples.h"
#include "graph/graph.h"
#include "lacuna/calibration.h"
#include "lacuna/prune.h"

enum { HELD_BACK_PART = 8 };

lac_status laci_calibration_fetch_samples(void *context, int64_t first, int64_t n, void *const *to,
                                          lac_error *err) {
  return laci_samples_read_batch(context, first, n, to, err);
}

bool laci_has_class_outputs(const laci_graph *graph) {
  if (graph->n_outputs < 1) return false;
  const laci_shape *shape = &graph->values[graph->outputs[0]].type.shape;
  return shape->rank < 0 || (shape->rank == 2 && shape->dims[1] != 1 && shape->dims[1] != 0);
}

static lac_status make_synthetic(const laci_graph *graph, const laci_synthetic_options *wanted,
                                 int64_t n, laci_synthetic_input *images, laci_synthetic_made *made,
                                 lac_error *err) {
  lac_status st = laci_synthetic_choose(graph, wanted, n, images, &made->chosen, err);
  return st ? st : laci_synthetic_fit(graph, wanted, n, images, made, err);
}

/* Finds out which synthetic images the network takes. Makes as many as are asked for; where the
 * number is open, fitted ones, or else as many as are enough. *made is to be cleared. */
static lac_status describe_synthetic(const laci_graph *graph, const laci_job *job,
                                     laci_samples_options *how, laci_synthetic_input *images,
                                     laci_synthetic_made *made, lac_error *err) {
  const laci_synthetic_options wanted = {.crop = how->crop,
                                         .mean = how->mean,
                                         .std = how->std,
                                         .seed = how->seed,
                                         .pool = job->pool,
                                         .budget = &job->budget,
                                         .engine = job->engine};
  how->synthetic = images;
  how->resize = how->crop = 0;
  how->mean = how->std = NULL;
  lac_status st = laci_synthetic_open(graph, &wanted, images, err);
  if (st) return st;
  const bool open = how->n == 0;
  if (how->copies > 0) { /* refused later */
    if (open) how->n = laci_synthetic_enough(graph);
    return LAC_OK;
  }
  if (open) how->n = laci_synthetic_fits(graph, images);
  if (how->n > 0) st = make_synthetic(graph, &wanted, how->n, images, made, err);
  if (st || !open || images->fitted) return st;
  laci_synthetic_made_clear(made);
  images->chosen = NULL;
  how->n = laci_synthetic_enough(graph);
  return laci_synthetic_choose(graph, &wanted, how->n, images, &made->chosen, err);
}

/* Finds out which token ids the network takes. *drawn is to be freed. */
static lac_status describe_ids(const laci_graph *graph, laci_samples_options *how,
                               laci_drawn_input **drawn, lac_error *err) {
  *drawn = laci_alloc((size_t)graph->n_inputs, sizeof **drawn);
  if (!*drawn) return laci_fail_memory(err, "token ids");
  if (how->n == 0) how->n = laci_synthetic_enough_ids(graph);
  how->drawn = *drawn;
  return laci_synthetic_find_ids(graph, *drawn, err);
}

/* Opens the samples. If mean and std are the defaults, they count as not set, since grey images
 * have a fixed scale. */
lac_status laci_calibration_samples_open(const laci_calibration_data *from, int copies,
                                         laci_samples **samples, lac_error *err) {
  const laci_graph *graph = from->graph;
  const lac_options *options = from->options;
  const laci_job *job = from->job;
  const lac_calibration *c = options->calibration;
  const bool scaled = laci_synthetic_is_scaled(c->mean, c->std);
  laci_budget budget = job->budget;
  laci_sample_input *inputs = laci_alloc((size_t)graph->n_inputs, sizeof *inputs);
  if (!inputs) return laci_fail_memory(err, c->data);
  for (int k = 0; k < graph->n_inputs; k++) {
    const laci_value *value = &graph->values[graph->inputs[k]];
    inputs[k] = (laci_sample_input){value->name, value->type};
  }
  const bool limited = c->max_drop >= 0, answers = laci_has_class_outputs(graph);
  laci_samples_options how = {
      .n = c->samples,
      .seed = options->seed,
      .judging_least = limited ? laci_drop_least_samples(c->max_drop, answers) : 0,
      .judging_most = limited ? laci_drop_enough_samples(c->max_drop, answers) : 0,
      .copies = copies,
      .held_back_part = HELD_BACK_PART,
      .known = graph->class_names,
      .resize = c->resize,
      .crop = c->crop,
      .mean = scaled ? c->mean : NULL,
      .std = scaled ? c->std : NULL,
      .inputs = inputs,
      .n_inputs = graph->n_inputs,
      .pool = job->pool,
      .budget = &budget};
  laci_synthetic_input images;
  laci_arena arena = {0};
  laci_sample_constant *constants = NULL;
  lac_status st = laci_calibration_parse_constants(c, &constants, &arena, err);
  how.constants = constants;
  how.n_constants = c->n_constants;
  laci_synthetic_made made = {.chosen = NULL};
  laci_drawn_input *drawn = NULL;
  if (!st && c->synthetic && laci_synthetic_takes_ids(graph))
    st = describe_ids(graph, &how, &drawn, err);
  else if (!st && c->synthetic) st = describe_synthetic(graph, job, &how, &images, &made, err);
  else how.arrays = laci_given_samples_rows(from->given, &how.n_arrays);
  if (!st) st = laci_samples_open(c->data, &how, samples, err);
  laci_synthetic_made_clear(&made);
  laci_free(drawn);
  laci_free(inputs);
  laci_arena_clear(&arena);
  return st;
}
