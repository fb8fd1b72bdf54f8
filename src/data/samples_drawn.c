/* SPDX-License-Identifier: Apache-2.0
 * Samples whose inputs are made by a rule: random token ids, their positions, and constants. */
#include <math.h>

#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"
#include "data/samples_in.h"
#include "synthetic/random.h"

/* Parameters of random token ids that are like a text: the limit of the length of a run of ids; the
 * probability that an earlier run is repeated (AGAIN); and how far back that run may be. */
enum { LONGEST_RUN = 8, FARTHEST = 256 };
static const double AGAIN = 0.6;
static const uint64_t ALPHABET = (uint64_t)1
                                 << 62; /* added to the number of a text's random stream, which
                                           gives the stream that draws the text's set of ids */

typedef struct drawn_samples {
  laci_drawn_input *inputs; /* [n_inputs] the rule for each input */
} drawn_samples;

static int64_t draw_number_below(laci_random *random, int64_t n) {
  return (int64_t)laci_rng_integer_below(random->seed, random->stream, random->next++, (uint64_t)n);
}

/* Draws uniform ids, so that every row of the embedding table is looked up about equally often. */
static void draw_uniform_ids(laci_random *random, int64_t below, int64_t n, int64_t *to) {
  for (int64_t k = 0; k < n; k++) to[k] = draw_number_below(random, below);
}

/* Draws ids as in texts: few different ones, some of them often, in runs that are repeated. */
static void draw_ids_like_text(laci_random *random, int64_t below, int64_t n, int64_t *to) {
  const double different = exp(laci_random_between(random, log(4), log((double)below)));
  const uint64_t alphabet = random->stream + ALPHABET;
  for (int64_t k = 0; k < n;) {
    const int64_t end = k + 1 + draw_number_below(random, LONGEST_RUN);
    const int64_t back = k > 0 && laci_random_chance(random, AGAIN)
                             ? 1 + draw_number_below(random, k < FARTHEST ? k : FARTHEST)
                             : 0;
    for (; k < end && k < n; k++) {
      const double rank = laci_random_between(random, 0, 1);
      to[k] = back > 0 ? to[k - back]
                       : (int64_t)laci_rng_integer_below(random->seed, alphabet,
                                                         (uint64_t)(rank * rank * different),
                                                         (uint64_t)below);
    }
  }
}

/* Draws the ids of one input of one sample. Each has a random stream of its own, so that ids do not
 * depend on the batch. */
static void draw_ids_of_sample(const laci_samples *s, int input, int64_t number, int64_t *to) {
  const drawn_samples *own = s->own;
  const int64_t below = own->inputs[input].below, n = laci_shape_count(&s->types[input].shape);
  laci_random random = {
      .seed = s->options.seed,
      .stream = (uint64_t)number * (uint64_t)s->options.n_inputs + (uint64_t)input};
  if (number % 2 == 0) draw_uniform_ids(&random, below, n, to);
  else draw_ids_like_text(&random, below, n, to);
}

static lac_status read_batch(laci_samples *s, int64_t first, int64_t n, void *const *to,
                             lac_error *err) {
  for (int input = 0; input < s->options.n_inputs; input++) {
    if (s->constants[input]) {
      laci_samples_copy_constant(s, input, n, to[input]);
      continue;
    }
    const int64_t size = laci_shape_count(&s->types[input].shape);
    for (int64_t k = 0; k < n; k++) {
      draw_ids_of_sample(s, input, laci_samples_data_index(s, first + k),
                         (int64_t *)to[input] + k * size);
    }
  }
  return laci_interrupted() ? laci_fail(err, LAC_INTERRUPTED, "interrupted") : LAC_OK;
}

static void close_drawn(laci_samples *s) {
  drawn_samples *own = s->own;
  if (!own) return;
  laci_free(own->inputs);
  laci_free(own);
}

/* Fills an input that is the same for all samples. Random ids are not drawn here, but when they are
 * read. */
static lac_status fill_shared_input(laci_samples *s, int input, const laci_drawn_input *from,
                                    lac_error *err) {
  if (from->kind == LACI_DRAWN_IDS) return LAC_OK;
  const laci_shape *shape = &from->shape;
  const int64_t n = laci_shape_count(shape), length = shape->dims[shape->rank - 1];
  int64_t *to = laci_alloc((size_t)n + 1, sizeof *to);
  if (!to) return laci_fail_memory(err, s->path);
  for (int64_t k = 0; k < n; k++)
    to[k] = from->kind == LACI_DRAWN_POSITIONS ? k % length : from->value;
  s->constants[input] = to;
  return LAC_OK;
}

static lac_status open_drawn(laci_samples *s, lac_error *err) {
  const laci_samples_options *o = &s->options;
  if (o->copies > 0 || o->resize > 0 || o->crop > 0 || o->mean || o->std) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s: copies, resize, crop, mean and std are for images, but these are token "
                     "ids",
                     s->path);
  }
  drawn_samples *own = laci_alloc(1, sizeof *own);
  if (!own) return laci_fail_memory(err, s->path);
  s->own = own;
  own->inputs = laci_alloc((size_t)o->n_inputs + 1, sizeof *own->inputs);
  if (!own->inputs) return laci_fail_memory(err, s->path);
  lac_status st = LAC_OK;
  for (int k = 0; k < o->n_inputs && !st; k++) {
    own->inputs[k] = o->drawn[k];
    s->types[k] = (laci_type){LAC_DTYPE_I64, o->drawn[k].shape};
    s->axes[k] = 0;
    st = fill_shared_input(s, k, &o->drawn[k], err);
  }
  s->available = o->n + o->judging_most;
  return st;
}

const laci_samples_kind laci_samples_of_drawn = {
    .open = open_drawn, .label = NULL, .read = read_batch, .close = close_drawn, .noun = NULL};
