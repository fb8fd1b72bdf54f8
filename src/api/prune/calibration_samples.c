/* SPDX-License-Identifier: Apache-2.0
 * Opens the samples of a calibration: those of a path, arrays in memory, drawn ones, or both of
 * these kinds together. */
#include "api/model/given_samples.h"
#include "api/prune/calibration_in.h"
#include "api/prune/job_in.h"
#include "api/prune/options_in.h"
#include "api/prune/synthetic_in.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/prepare.h"
#include "data/samples.h"
#include "graph/graph.h"

/* One of so many samples of the data is held back. HELD_BACK_PART_OF_FEW is used if drawn samples
 * are added: fewer samples of the data suffice for the fit then, and those held back judge whether
 * the drawn ones help. */
enum { HELD_BACK_PART = 8, HELD_BACK_PART_OF_FEW = 4 };

lac_status laci_calibration_fetch_samples(void *context, int64_t first, int64_t n, void *const *to,
                                          lac_error *err) {
  return laci_samples_read_batch(context, first, n, to, err);
}

bool laci_is_classifier(const laci_graph *graph) {
  if (graph->n_outputs < 1) return false;
  const laci_shape *shape = &graph->values[graph->outputs[0]].type.shape;
  return shape->rank < 0 || (shape->rank == 2 && shape->dims[1] != 1 && shape->dims[1] != 0);
}

static lac_status choose_and_fit_images(const laci_graph *graph,
                                        const laci_synthetic_options *wanted, int64_t n,
                                        laci_synthetic_input *images, laci_synthetic_images *made,
                                        lac_error *err) {
  lac_status st = laci_synthetic_choose_images(graph, wanted, n, images, &made->chosen, err);
  return st ? st : laci_synthetic_fit_images(graph, wanted, n, images, made, err);
}

/* Makes synthetic images as large as images of the data (`like`, NULL: there are none), and scales
 * them in the same manner. */
static void copy_size_and_scale(const laci_samples *like, laci_preprocessing *scale,
                                laci_synthetic_options *wanted) {
  const laci_shape *shape = like ? &laci_samples_type(like, 0)->shape : NULL;
  if (!like || shape->rank != 4) return;
  const bool last = shape->dims[1] != 1 && shape->dims[1] != 3;
  wanted->height = (int)shape->dims[last ? 1 : 2];
  wanted->width = (int)shape->dims[last ? 2 : 3];
  if (!laci_samples_dataset(like, scale) || scale->is_ready) return;
  wanted->mean = scale->mean;
  wanted->std = scale->std;
}

/* Finds out which synthetic images the network takes. Draws how->n images. If how->n is 0, draws
 * fitted ones (images fitted to the network's statistics) or, if these are not possible,
 * laci_synthetic_choose_image_count. The caller clears *made. */
static lac_status describe_synthetic_images(const laci_calibration_data *from,
                                            const laci_samples *like, laci_samples_options *how,
                                            laci_synthetic_input *images,
                                            laci_synthetic_images *made, lac_error *err) {
  const laci_graph *graph = from->graph;
  laci_preprocessing scale;
  laci_synthetic_options wanted = {.crop = how->crop,
                                   .mean = how->mean,
                                   .std = how->std,
                                   .seed = how->seed,
                                   .fits_small = 2 * from->options->n < from->options->m,
                                   .pool = from->job->pool,
                                   .budget = &from->job->budget,
                                   .engine = from->job->engine};
  copy_size_and_scale(like, &scale, &wanted);
  how->synthetic = images;
  how->resize = how->crop = 0;
  how->mean = how->std = NULL;
  lac_status st = laci_synthetic_find_input(graph, &wanted, images, err);
  if (st) return st;
  const bool open = how->n == 0;
  if (how->copies > 0) { /* a later check refuses copies of synthetic images */
    if (open) how->n = laci_synthetic_choose_image_count(graph);
    return LAC_OK;
  }
  const bool small = laci_synthetic_is_small(images);
  if (open)
    how->n = small ? laci_synthetic_choose_image_count(graph)
                   : laci_synthetic_count_fitted(graph, &wanted, images);
  if (how->n > 0) st = choose_and_fit_images(graph, &wanted, how->n, images, made, err);
  if (st || !open || small || images->fitted) return st;
  laci_synthetic_images_clear(made);
  images->chosen = NULL;
  how->n = laci_synthetic_choose_image_count(graph);
  return laci_synthetic_choose_images(graph, &wanted, how->n, images, &made->chosen, err);
}

/* Finds out which inputs of other kinds than images are drawn for the network. The caller frees
 * *drawn. */
static lac_status describe_drawn_inputs(const laci_graph *graph, laci_samples_options *how,
                                        laci_drawn_input **drawn, laci_arena *arena,
                                        lac_error *err) {
  *drawn = laci_alloc((size_t)graph->n_inputs, sizeof **drawn);
  if (!*drawn) return laci_fail_memory(err, "synthetic samples");
  if (how->n == 0) how->n = laci_synthetic_choose_drawn_count(graph);
  how->drawn = *drawn;
  how->drawn_noun = laci_synthetic_find_noun(graph);
  return laci_synthetic_describe_inputs(graph, how, *drawn, arena, err);
}

/* Sets the options that samples of the data and drawn samples have in common. If mean and std are
 * the defaults, they count as not set, since grey images have a fixed scale. */
static lac_status make_common_options(const laci_calibration_data *from, laci_samples_options *how,
                                      laci_sample_input **inputs, lac_error *err) {
  const laci_graph *graph = from->graph;
  const lac_calibration *c = from->options->calibration;
  const bool scaled = laci_synthetic_has_own_scale(c->mean, c->std);
  *inputs = laci_list_sample_inputs(graph);
  if (!*inputs) return laci_fail_memory(err, c->data);
  *how = (laci_samples_options){.n = c->samples,
                                .seed = from->options->seed,
                                .resize = c->resize,
                                .crop = c->crop,
                                .mean = scaled ? c->mean : NULL,
                                .std = scaled ? c->std : NULL,
                                .inputs = *inputs,
                                .n_inputs = graph->n_inputs,
                                .pool = from->job->pool};
  return LAC_OK;
}

/* Sets how many samples are held back, how many measure the loss (max_drop), and how many augmented
 * copies are made. */
static void set_sample_counts(const laci_calibration_data *from, int copies,
                              laci_samples_options *how) {
  const lac_calibration *c = from->options->calibration;
  const bool limited = c->max_drop >= 0, answers = laci_is_classifier(from->graph);
  how->judging_least = limited ? laci_drop_least_samples(c->max_drop, answers) : 0;
  how->judging_most = limited ? laci_drop_enough_samples(c->max_drop, answers) : 0;
  how->copies = copies;
  how->held_back_part =
      !c->synthetic || laci_calibration_is_drawn(c) ? HELD_BACK_PART : HELD_BACK_PART_OF_FEW;
}

/* Opens drawn samples by the options; like: samples of data that have the wanted sizes; NULL: there
 * are none. */
static lac_status open_drawn(const laci_calibration_data *from, const laci_samples *like,
                             laci_samples_options *how, laci_samples **samples, lac_error *err) {
  laci_synthetic_input images;
  laci_synthetic_images made = {.chosen = NULL};
  laci_drawn_input *drawn = NULL;
  laci_arena arena = {0};
  lac_status st = laci_synthetic_find_noun(from->graph)
                      ? describe_drawn_inputs(from->graph, how, &drawn, &arena, err)
                      : describe_synthetic_images(from, like, how, &images, &made, err);
  for (int k = 0; drawn && like && !st && k < how->n_inputs; k++)
    drawn[k].shape = laci_samples_type(like, k)->shape;
  if (!st) st = laci_samples_open(laci_drawn_name, how, samples, err);
  laci_synthetic_images_clear(&made);
  laci_free(drawn);
  laci_arena_clear(&arena);
  return st;
}

lac_status laci_calibration_samples_open(const laci_calibration_data *from, int copies,
                                         laci_samples **samples, lac_error *err) {
  const lac_calibration *c = from->options->calibration;
  laci_budget budget = from->job->budget;
  laci_samples_options how;
  laci_sample_input *inputs = NULL;
  laci_arena arena = {0};
  laci_sample_constant *constants = NULL;
  lac_status st = make_common_options(from, &how, &inputs, err);
  if (!st) st = laci_calibration_parse_constants(c, &constants, &arena, err);
  if (!st) {
    set_sample_counts(from, copies, &how);
    how.known = from->graph->class_names;
    how.budget = &budget;
    how.constants = constants;
    how.n_constants = c->n_constants;
    if (laci_calibration_is_drawn(c)) {
      st = open_drawn(from, NULL, &how, samples, err);
    } else {
      how.arrays = laci_given_samples_rows(from->given, &how.n_arrays);
      st = laci_samples_open(c->data, &how, samples, err);
    }
  }
  laci_free(inputs);
  laci_arena_clear(&arena);
  return st;
}

bool laci_calibration_is_drawn(const lac_calibration *calibration) {
  return calibration->data == laci_drawn_name;
}

lac_status laci_calibration_mix(const laci_calibration_data *from, laci_samples **samples,
                                lac_error *err) {
  laci_samples_options how;
  laci_sample_input *inputs = NULL;
  laci_samples *drawn = NULL;
  lac_status st = make_common_options(from, &how, &inputs, err);
  how.n = 0; /* 0: the default number of samples */
  if (!st) st = open_drawn(from, *samples, &how, &drawn, err);
  if (!st) st = laci_samples_join_drawn(samples, &drawn, err);
  laci_samples_close(drawn);
  laci_free(inputs);
  return st;
}
