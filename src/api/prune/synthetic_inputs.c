/* SPDX-License-Identifier: Apache-2.0
 * Describes samples for networks whose inputs are drawn by a rule: token ids, sounds or rows of
 * numbers. Other inputs next to them are masks, segments, positions, states and given numbers. */
#include <string.h>

#include "api/prune/synthetic_flow_in.h"
#include "api/prune/synthetic_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/to_int.h"
#include "data/sample_layout.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "graph/sizes.h"
#include "tensor/buf.h"

/* MOST_SEGMENTS: a table with at most this many rows is taken for one of segments. USUAL_LENGTH:
 * the length of texts if the network leaves it open. UNKNOWN_COST: the number of samples if the
 * multiplications are not known. */
enum { MOST_SEGMENTS = 4, USUAL_LENGTH = 128, UNKNOWN_COST = 64 };
static const double spread_of_states = 0.3; /* standard deviation of recurrent states */
static const double usual_rate = 16000;     /* samples of a sound per second */
/* Lengths of sounds, in the order in which they are tried if the network leaves the length open. */
static const int64_t sound_lengths[] = {16000, 8000, 4096, 2048, 1024, 576, 512, 256};
static const char ids[] = "token ids", sounds[] = "sounds", numbers[] = "rows of numbers";

/* ---- What the network takes ---- */

static bool is_ids(const laci_graph *graph, int value) {
  return laci_dtype_is_integer(graph->values[value].type.dtype) &&
         laci_synthetic_count_token_ids(graph, value) > MOST_SEGMENTS;
}

const char *laci_synthetic_find_noun(const laci_graph *graph) {
  static const struct {
    bool (*takes)(const laci_graph *graph, int value);
    const char *noun;
  } recipes[] = {{is_ids, ids},
                 {laci_synthetic_is_sound, sounds},
                 {laci_synthetic_is_row_of_numbers, numbers}};
  for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++)
    for (int k = 0; k < graph->n_inputs; k++)
      if (recipes[r].takes(graph, graph->inputs[k])) return recipes[r].noun;
  return NULL;
}

/* ---- The rule for each input ---- */

typedef struct description {
  const laci_graph *graph;
  const laci_sample_input *names; /* [n_inputs] name and type of each input */
  const laci_samples_options *how;
  const char *noun;
  laci_drawn_input *inputs;
  laci_arena *arena;
} description;

static lac_status fail_input(const description *d, const laci_value *input, lac_error *err) {
  char text[256];
  return laci_hint(
      err, LAC_HINT_CALIBRATION,
      laci_fail(
          err, LAC_BAD_SHAPE,
          "synthetic %s: input '%s' is %s %s, for which no rule is known (a number for all of "
          "it can be given)",
          d->noun, input->name, lac_dtype_name(input->type.dtype),
          laci_shape_text(&input->type.shape, text, sizeof text)));
}

static const laci_sample_constant *find_given(const description *d, const char *name) {
  for (int k = 0; k < d->how->n_constants; k++)
    if (strcmp(d->how->constants[k].name, name) == 0) return &d->how->constants[k];
  return NULL;
}

/* A single integer next to sounds is what the network compares it with, or a rate by its name. It
 * is the same for the whole batch. */
static bool describe_single_integer(const description *d, int value, laci_drawn_input *to) {
  const char *name = d->graph->values[value].name;
  const bool is_rate = strcmp(name, "sr") == 0 || strstr(name, "rate");
  const int64_t compared = laci_synthetic_find_compared_number(d->graph, value);
  to->value = compared > 0 ? compared : is_rate ? (int64_t)usual_rate : 0;
  to->batch_axis = -1;
  return to->value > 0;
}

/* Integers are token ids or positions. Others are the same for all samples: ones (masks), or zeros
 * where they look up a small table (segments). */
static bool describe_integers(const description *d, int value, laci_drawn_input *to) {
  const laci_value *v = &d->graph->values[value];
  const int64_t n = laci_synthetic_count_token_ids(d->graph, value);
  if (d->noun == sounds)
    return laci_shape_is_known(&v->type.shape) && laci_shape_count(&v->type.shape) == 1 &&
           describe_single_integer(d, value, to);
  to->value = n == 0;
  if (n > MOST_SEGMENTS) {
    to->kind = strstr(v->name, "position") ? LACI_DRAWN_POSITIONS : LACI_DRAWN_IDS;
    to->below = n;
  }
  return v->type.shape.rank > 0;
}

/* Rows of numbers have the scale that the network's first steps undo. Numbers of a wrong scale do
 * harm: a network that is fitted to them may lose more than by magnitude. */
static lac_status describe_numbers(const description *d, int value, laci_drawn_input *to,
                                   lac_error *err) {
  const int64_t n = to->shape.dims[1];
  float *mean = laci_arena_alloc(d->arena, 2 * (size_t)n, sizeof *mean);
  if (!mean) return laci_fail_memory(err, "synthetic numbers");
  to->kind = LACI_DRAWN_NUMBERS;
  to->mean = mean;
  to->deviation = mean + n;
  if (laci_synthetic_find_row_scale(d->graph, value, mean, mean + n)) return LAC_OK;
  return laci_hint(err, LAC_HINT_CALIBRATION,
                   laci_fail(err, LAC_BAD_VALUE,
                             "synthetic numbers: the network does not scale input '%s', whose mean "
                             "and deviation are not known",
                             d->graph->values[value].name));
}

/* Finds the axis along which samples form a batch. A network with fixed sizes says nothing about
 * it: then it is the first axis of size 1. */
static int find_batch_axis(const description *d, int input) {
  const laci_shape *shape = &d->names[input].type.shape;
  const int axis = laci_sample_find_batch_axis(d->names, d->graph->n_inputs, input);
  if (axis < 0 || shape->dims[axis] < 0 || shape->dims[axis] == 1) return axis;
  for (int other = 0; other < shape->rank; other++)
    if (shape->dims[other] == 1) return other;
  return axis == 0 && d->noun != sounds ? 0 : -1;
}

static lac_status describe_input(const description *d, int k, lac_error *err) {
  const int value = d->graph->inputs[k];
  const laci_value *v = &d->graph->values[value];
  laci_drawn_input *to = &d->inputs[k];
  *to = (laci_drawn_input){.kind = LACI_DRAWN_SAME,
                           .shape = v->type.shape,
                           .floats = laci_dtype_is_float(v->type.dtype)};
  const laci_sample_constant *given = find_given(d, v->name);
  if (v->type.shape.rank < 0) return given ? LAC_OK : fail_input(d, v, err);
  to->batch_axis = find_batch_axis(d, k);
  if (to->batch_axis >= 0) to->shape.dims[to->batch_axis] = 1;
  if (given) { /* the samples have its content; the rate of sounds is read here */
    to->value = laci_clamp_to_int64(given->value);
    return LAC_OK;
  }
  if (to->floats) {
    if (laci_synthetic_is_row_of_numbers(d->graph, value))
      return describe_numbers(d, value, to, err);
    if (d->noun != sounds) return fail_input(d, v, err);
    to->kind = laci_synthetic_is_sound(d->graph, value) ? LACI_DRAWN_SOUND : LACI_DRAWN_NUMBERS;
    to->spread = spread_of_states;
  } else if (!laci_dtype_is_integer(v->type.dtype) || !describe_integers(d, value, to)) {
    return fail_input(d, v, err);
  }
  return LAC_OK;
}

/* ---- Open sizes and rates ---- */

/* Can the network's sizes be inferred for samples of the inputs' shapes? */
static lac_status check_sizes(const description *d, lac_error *err) {
  const int n = d->graph->n_inputs;
  laci_input_shape *shapes = laci_alloc((size_t)n, sizeof *shapes);
  laci_type *types = NULL;
  if (!shapes) return laci_fail_memory(err, "the sizes of values");
  for (int k = 0; k < n; k++) shapes[k] = (laci_input_shape){d->names[k].name, d->inputs[k].shape};
  const lac_status st = laci_graph_infer_types(d->graph, shapes, n, &types, err);
  laci_free(types);
  laci_free(shapes);
  return st;
}

static void set_open_sizes(laci_shape *shape, int64_t size) {
  for (int axis = 0; axis < shape->rank; axis++)
    if (shape->dims[axis] < 0) shape->dims[axis] = size;
}

/* Sets the open length of a sound to the first of the usual ones that the network takes. */
static lac_status choose_sound_length(const description *d, laci_drawn_input *sound,
                                      lac_error *err) {
  const laci_shape open = sound->shape;
  const size_t n = sizeof sound_lengths / sizeof *sound_lengths;
  lac_error why = {0};
  lac_status st = LAC_OK;
  if (laci_shape_is_known(&open)) return LAC_OK;
  for (size_t k = 0; k < n; k++) {
    sound->shape = open;
    set_open_sizes(&sound->shape, sound_lengths[k]);
    st = check_sizes(d, &why);
    if (!st || st == LAC_NO_MEMORY) break;
  }
  if (st && err) *err = why;
  return st;
}

static lac_status choose_sizes(const description *d, lac_error *err) {
  lac_status st = LAC_OK;
  double rate = usual_rate;
  for (int k = 0; k < d->graph->n_inputs; k++) {
    laci_drawn_input *input = &d->inputs[k];
    if (input->kind != LACI_DRAWN_SOUND) set_open_sizes(&input->shape, USUAL_LENGTH);
    if (!input->floats && input->kind == LACI_DRAWN_SAME && input->value > 1)
      rate = (double)input->value;
  }
  for (int k = 0; k < d->graph->n_inputs && !st; k++) {
    d->inputs[k].rate = rate;
    if (d->inputs[k].kind == LACI_DRAWN_SOUND) st = choose_sound_length(d, &d->inputs[k], err);
  }
  return st;
}

laci_sample_input *laci_list_sample_inputs(const laci_graph *graph) {
  laci_sample_input *inputs = laci_alloc((size_t)graph->n_inputs, sizeof *inputs);
  for (int k = 0; k < graph->n_inputs && inputs; k++) {
    const laci_value *value = &graph->values[graph->inputs[k]];
    inputs[k] = (laci_sample_input){value->name, value->type};
  }
  return inputs;
}

lac_status laci_synthetic_describe_inputs(const laci_graph *graph, const laci_samples_options *how,
                                          laci_drawn_input *inputs, laci_arena *arena,
                                          lac_error *err) {
  laci_sample_input *names = laci_list_sample_inputs(graph);
  if (!names) return laci_fail_memory(err, "synthetic samples");
  const description d = {.graph = graph,
                         .names = names,
                         .how = how,
                         .noun = laci_synthetic_find_noun(graph),
                         .inputs = inputs,
                         .arena = arena};
  lac_status st = LAC_OK;
  for (int k = 0; k < graph->n_inputs && !st; k++) st = describe_input(&d, k, err);
  if (!st) st = choose_sizes(&d, err);
  laci_free(names);
  return st;
}

int64_t laci_synthetic_choose_drawn_count(const laci_graph *graph) {
  return laci_synthetic_multiplications(graph) > 0 ? laci_synthetic_choose_image_count(graph)
                                                   : UNKNOWN_COST;
}

lac_status laci_synthetic_check_network(const laci_graph *graph, int crop, lac_error *err) {
  laci_synthetic_input image;
  const laci_samples_options how = {.n_constants = 0};
  laci_arena arena = {0};
  if (!laci_synthetic_find_noun(graph)) return laci_synthetic_find_layout(graph, crop, &image, err);
  laci_drawn_input *inputs = laci_alloc((size_t)graph->n_inputs, sizeof *inputs);
  lac_status st = inputs ? laci_synthetic_describe_inputs(graph, &how, inputs, &arena, err)
                         : laci_fail_memory(err, "synthetic samples");
  laci_free(inputs);
  laci_arena_clear(&arena);
  return st;
}
