/* SPDX-License-Identifier: Apache-2.0
 * The common part of all kinds of samples: chooses how many samples are used, and writes the text
 * that describes this. */
#include "data/samples.h"

#include <stdio.h>

#include "base/error.h"
#include "base/min.h"
#include "data/array_list.h"
#include "data/samples_in.h"
#include "data/shuffle.h"

enum { MOST_COPIES = 1000 };

static lac_status choose_sample_counts(laci_samples *s, lac_error *err) {
  const laci_samples_options *o = &s->options;
  if (s->available < 1) return laci_fail(err, LAC_BAD_ARGUMENT, "%s: no samples in it", s->path);
  s->taken = laci_min(o->n, s->available);
  if (o->judging_most > 0) {
    const int64_t half = s->available / 2, spared = s->available - o->judging_least;
    const int64_t unused = s->available - o->judging_most;
    const int64_t least = half < LACI_LEAST_FITTED ? half : LACI_LEAST_FITTED;
    /* half, so that the judgment has as many, or what it has no use for */
    const int64_t most = laci_min(spared, unused > half ? unused : half);
    s->taken = laci_min(s->taken, most > least ? most : least > 0 ? least : 1);
    s->judging = laci_min(s->available - s->taken, o->judging_most);
  }
  if (o->held_back_part > 0) {
    s->held_back = s->taken / o->held_back_part;
    if (s->held_back == 0 && s->taken >= 2) s->held_back = 1;
  }
  s->count = (s->taken - s->held_back) * (1 + o->copies) + s->held_back;
  return LAC_OK;
}

static lac_status check_options(const char *path, const laci_samples_options *o, lac_error *err) {
  if (o->n < 1)
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: %lld samples, wanted 1 or more", path,
                     (long long)o->n);
  if (o->copies >= 0 && o->copies <= MOST_COPIES) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: %d changed copies of each sample, wanted 0 to %d",
                   path, o->copies, MOST_COPIES);
}

static lac_status write_description(laci_samples *s, lac_error *err) {
  char text[600], copies[64] = "";
  if (s->options.copies > 0) {
    (void)snprintf(copies, sizeof copies, ", each of %lld changed %d time%s",
                   (long long)(s->taken - s->held_back), s->options.copies,
                   s->options.copies == 1 ? "" : "s");
  }
  if (s->kind->noun) {
    (void)snprintf(text, sizeof text, "%lld of %lld %s %.400s%s, %lld held back",
                   (long long)s->taken, (long long)s->available, s->kind->noun, s->path, copies,
                   (long long)s->held_back);
  } else if (s->options.drawn) {
    (void)snprintf(text, sizeof text, "%lld synthetic samples of %s, %lld held back",
                   (long long)s->taken, s->options.drawn_noun, (long long)s->held_back);
  } else {
    (void)snprintf(text, sizeof text, "%lld synthetic images, values %.100s, %lld held back",
                   (long long)s->taken, s->options.synthetic->range, (long long)s->held_back);
  }
  s->text = laci_arena_text(&s->arena, text);
  return s->text ? LAC_OK : laci_fail_memory(err, s->path);
}

static const laci_samples_kind *find_samples_kind(const char *path,
                                                  const laci_samples_options *options) {
  if (options->synthetic) return &laci_samples_synthetic;
  if (options->drawn) return &laci_samples_of_drawn;
  if (!options->arrays && laci_folder_has_archives(path)) return &laci_samples_of_files;
  const bool arrays = options->arrays || laci_path_has_arrays(path);
  return arrays ? &laci_samples_of_arrays : &laci_samples_of_images;
}

lac_status laci_samples_open(const char *path, const laci_samples_options *options,
                             laci_samples **samples, lac_error *err) {
  *samples = NULL;
  lac_status st = check_options(path, options, err);
  if (st) return st;
  laci_samples *s = laci_alloc(1, sizeof *s);
  if (!s) return laci_fail_memory(err, path);
  s->options = *options;
  s->kind = find_samples_kind(path, options);
  s->path = laci_arena_text(&s->arena, path);
  s->n_shape_sets = 1;
  s->types = laci_alloc((size_t)options->n_inputs + 1, sizeof *s->types);
  s->axes = laci_alloc((size_t)options->n_inputs + 1, sizeof *s->axes);
  s->constants = laci_alloc((size_t)options->n_inputs + 1, sizeof *s->constants);
  if (!s->path || !s->types || !s->axes || !s->constants) st = laci_fail_memory(err, path);
  if (!st) st = laci_samples_check_constants(s, err);
  if (!st) st = s->kind->open(s, err);
  if (!st) st = choose_sample_counts(s, err);
  if (!st && s->kind->label) st = s->kind->label(s, err);
  if (!st) st = write_description(s, err);
  s->options.budget = NULL; /* these options are used only while the samples are opened, and the
                               caller may free them afterwards */
  s->options.inputs = NULL;
  s->options.arrays = NULL;
  s->options.synthetic = NULL;
  s->options.drawn = NULL;
  s->options.known = NULL;
  s->options.constants = NULL;
  if (st) laci_samples_close(s);
  else *samples = s;
  return st;
}

void laci_samples_close(laci_samples *s) {
  if (!s) return;
  s->kind->close(s);
  for (int k = 0; s->constants && k < s->options.n_inputs; k++) laci_free(s->constants[k]);
  laci_free(s->constants);
  laci_free(s->axes);
  laci_free(s->shape_sets);
  laci_free(s->shape_set_of);
  laci_free(s->types);
  laci_free(s->labels);
  laci_arena_clear(&s->arena);
  laci_free(s);
}

int64_t laci_samples_count(const laci_samples *s) { return s->count; }
int64_t laci_samples_count_held_back(const laci_samples *s) { return s->held_back; }
int64_t laci_samples_count_judging(const laci_samples *s) { return s->judging; }
int64_t laci_samples_count_available(const laci_samples *s) { return s->available; }
const laci_type *laci_samples_type(const laci_samples *s, int input) { return &s->types[input]; }
int laci_samples_batch_axis(const laci_samples *s, int input) { return s->axes[input]; }
const void *laci_samples_constant(const laci_samples *s, int input) {
  return s->axes[input] < 0 ? s->constants[input] : NULL;
}
bool laci_samples_need_batch_of_one(const laci_samples *s) {
  return s->is_single || s->n_shape_sets > 1;
}
int laci_samples_count_shape_sets(const laci_samples *s) { return s->n_shape_sets; }
const int64_t *laci_samples_labels(const laci_samples *s) { return s->labels; }
const char *laci_samples_description(const laci_samples *s) { return s->text; }

const laci_dataset *laci_samples_dataset(const laci_samples *s, laci_preprocessing *preprocessing) {
  return laci_samples_image_set(s, preprocessing);
}

lac_status laci_samples_read_batch(laci_samples *s, int64_t first, int64_t n, void *const *to,
                                   lac_error *err) {
  return s->kind->read(s, first, n, to, err);
}

/* Samples have places in this order. First come k distinct samples to work with, and then their
 * copies: place p is sample p mod k of the permutation, in copy p / k. Then come the samples that
 * are held back, and last the samples for judging. */
int64_t laci_samples_data_index_and_copy(const laci_samples *s, int64_t place, int *copy) {
  int64_t worked_on = s->count - s->held_back, distinct = s->taken - s->held_back;
  bool held = place >= worked_on;
  *copy = held ? 0 : (int)(place / distinct);
  int64_t at = held ? distinct + (place - worked_on) : place % distinct;
  return laci_shuffled_index(s->options.seed, 0, s->available, at);
}

int64_t laci_samples_data_index(const laci_samples *s, int64_t place) {
  int copy;
  return laci_samples_data_index_and_copy(s, place, &copy);
}

int laci_samples_shape_set(const laci_samples *s, int64_t place) {
  return s->shape_set_of ? s->shape_set_of[laci_samples_data_index(s, place)] : 0;
}

const laci_shape *laci_samples_shapes_of_set(const laci_samples *s, int shape_set) {
  return s->shape_sets ? s->shape_sets + (size_t)shape_set * (size_t)s->options.n_inputs : NULL;
}
