/* SPDX-License-Identifier: Apache-2.0
 * Samples whose inputs are drawn by a rule: token ids, their positions, sounds, normal numbers, and
 * inputs that are the same for all samples. */
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "data/sample_layout.h"
#include "data/samples_in.h"
#include "synthetic/ids.h"
#include "synthetic/random.h"
#include "synthetic/sounds.h"

static const uint64_t stream_numbers = (uint64_t)0x4E554D42 << 32; /* the number of the sample and
                                                                      input is added */

typedef struct drawn_samples {
  laci_drawn_input *inputs; /* [n_inputs] the rule for each input */
  int64_t most_elements;    /* number of elements of the largest sample of an input */
  void *sample;             /* [most_elements] one sample of an input, floats or int64 */
} drawn_samples;

static bool differs_by_sample(const laci_drawn_input *input) {
  return input->kind != LACI_DRAWN_SAME && input->kind != LACI_DRAWN_POSITIONS;
}

static void draw_numbers(const laci_drawn_input *input, uint64_t seed, uint64_t number, int64_t n,
                         float *to) {
  const int64_t width = input->shape.dims[input->shape.rank - 1];
  laci_random random = {.seed = seed, .stream = stream_numbers + number};
  for (int64_t k = 0; k < n; k++) {
    const double z = laci_random_normal(&random, 1);
    to[k] = input->mean ? input->mean[k % width] + input->deviation[k % width] * (float)z
                        : (float)(input->spread * z);
  }
}

/* Draws one sample of an input. Each has a random stream of its own, so that it does not depend on
 * the batch. */
static void draw_sample(const laci_samples *s, int input, int64_t number, void *to) {
  const drawn_samples *own = s->own;
  const laci_drawn_input *how = &own->inputs[input];
  const int64_t n = laci_shape_count(&how->shape);
  const uint64_t at = (uint64_t)number * (uint64_t)s->options.n_inputs + (uint64_t)input;
  if (how->kind == LACI_DRAWN_IDS)
    laci_ids_draw(s->options.seed, at, number % 2 != 0, how->below, n, to);
  else if (how->kind == LACI_DRAWN_SOUND) laci_sound_draw(s->options.seed, at, how->rate, n, to);
  else draw_numbers(how, s->options.seed, at, n, to);
}

static lac_status read_batch(laci_samples *s, int64_t first, int64_t n, void *const *to,
                             lac_error *err) {
  const drawn_samples *own = s->own;
  for (int input = 0; input < s->options.n_inputs; input++) {
    if (s->constants[input]) {
      laci_samples_copy_constant(s, input, n, to[input]);
      continue;
    }
    const laci_sample_layout layout = {LACI_LAYOUT_ROWS, 0, s->axes[input], s->types[input].shape};
    const size_t element = own->inputs[input].floats ? sizeof(float) : sizeof(int64_t);
    for (int64_t k = 0; k < n && !laci_interrupted(); k++) {
      draw_sample(s, input, laci_samples_data_index(s, first + k), own->sample);
      laci_sample_layout_copy_to_batch(&layout, element, k, n, own->sample, to[input]);
    }
  }
  return laci_interrupted() ? laci_fail(err, LAC_INTERRUPTED, "interrupted") : LAC_OK;
}

static void close_drawn(laci_samples *s) {
  drawn_samples *own = s->own;
  if (!own) return;
  laci_free(own->inputs);
  laci_free(own->sample);
  laci_free(own);
}

/* Fills an input that is the same for all samples. */
static lac_status fill_shared_input(laci_samples *s, int input, const laci_drawn_input *from,
                                    lac_error *err) {
  const laci_shape *shape = &from->shape;
  const int64_t n = laci_shape_count(shape),
                length = shape->rank ? shape->dims[shape->rank - 1] : 1;
  void *to = laci_alloc((size_t)n + 1, from->floats ? sizeof(float) : sizeof(int64_t));
  if (!to) return laci_fail_memory(err, s->path);
  for (int64_t k = 0; k < n; k++) {
    const int64_t value = from->kind == LACI_DRAWN_POSITIONS ? k % length : from->value;
    if (from->floats) ((float *)to)[k] = (float)value;
    else ((int64_t *)to)[k] = value;
  }
  s->constants[input] = to;
  return LAC_OK;
}

/* Copies the means and deviations of an input of numbers into the samples' arena. */
static lac_status copy_scale(laci_samples *s, laci_drawn_input *input, lac_error *err) {
  if (!input->mean) return LAC_OK;
  const size_t n = (size_t)input->shape.dims[input->shape.rank - 1];
  float *own = laci_arena_alloc(&s->arena, 2 * n, sizeof *own);
  if (!own) return laci_fail_memory(err, s->path);
  memcpy(own, input->mean, n * sizeof *own);
  memcpy(own + n, input->deviation, n * sizeof *own);
  input->mean = own;
  input->deviation = own + n;
  return LAC_OK;
}

static lac_status open_input(laci_samples *s, int input, lac_error *err) {
  drawn_samples *own = s->own;
  laci_drawn_input *how = &own->inputs[input];
  bool given;
  *how = s->options.drawn[input];
  lac_status st = laci_samples_make_constant(s, input, &given, err);
  if (st || given) return st;
  s->types[input] = (laci_type){how->floats ? LAC_DTYPE_F32 : LAC_DTYPE_I64, how->shape};
  s->axes[input] = how->batch_axis;
  if (how->batch_axis < 0 && differs_by_sample(how)) s->is_single = true;
  const int64_t n = laci_shape_count(&how->shape);
  if (n > own->most_elements) own->most_elements = n;
  return differs_by_sample(how) ? copy_scale(s, how, err) : fill_shared_input(s, input, how, err);
}

static lac_status open_drawn(laci_samples *s, lac_error *err) {
  const laci_samples_options *o = &s->options;
  if (o->copies > 0 || o->resize > 0 || o->crop > 0 || o->mean || o->std) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: copies, resize, crop, mean and std are for images, but these are %s",
                     s->path, o->drawn_noun);
  }
  drawn_samples *own = laci_alloc(1, sizeof *own);
  if (!own) return laci_fail_memory(err, s->path);
  s->own = own;
  own->inputs = laci_alloc((size_t)o->n_inputs + 1, sizeof *own->inputs);
  if (!own->inputs) return laci_fail_memory(err, s->path);
  lac_status st = LAC_OK;
  for (int k = 0; k < o->n_inputs && !st; k++) st = open_input(s, k, err);
  if (!st) own->sample = laci_alloc((size_t)own->most_elements + 1, sizeof(int64_t));
  if (!st && !own->sample) st = laci_fail_memory(err, s->path);
  s->available = o->n + o->judging_most;
  return st;
}

const laci_samples_kind laci_samples_of_drawn = {
    .open = open_drawn, .label = NULL, .read = read_batch, .close = close_drawn, .noun = NULL};
