/* SPDX-License-Identifier: Apache-2.0
 * Scores that do not depend on the weights: uniform random numbers, or arrays of an .npz file, one
 * per weight. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analyze.h"
#include "api/model/arrays.h"
#include "api/prune/job_in.h"
#include "api/prune/rule_in.h"
#include "base/ending.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/rng.h"
#include "cpu/pool.h"
#include "data/npz.h"
#include "graph/graph.h"
#include "lacuna/prune.h"
#include "tensor/buf.h"

enum { DRAWN_AT_ONCE = 1 << 16 };

bool laci_score_is_file_name(const char *name) { return laci_ends_with(name, ".npz"); }

/* ---- Drawing ---- */

typedef struct drawing {
  float *out;
  int64_t count;
  uint64_t seed, stream;
} drawing;

static void draw_random_parts(int64_t begin, int64_t end, void *context) {
  const drawing *d = context;
  for (int64_t part = begin; part < end; part++) {
    int64_t last = (part + 1) * DRAWN_AT_ONCE;
    if (last > d->count) last = d->count;
    for (int64_t e = part * DRAWN_AT_ONCE; e < last; e++)
      d->out[e] = (float)laci_rng_unit_interval(d->seed, d->stream, (uint64_t)e);
  }
}

/* Fills random numbers from seed and the tensor's name, so that they do not depend on which other
 * weights are pruned. */
static void draw_random_scores(const laci_stored *stored, uint64_t seed, laci_pool *pool,
                               float *out) {
  drawing d = {.out = out,
               .count = laci_shape_count(&stored->shape),
               .seed = seed,
               .stream = laci_hash64(stored->name, strlen(stored->name), 0)};
  laci_pool_for(pool, (d.count + DRAWN_AT_ONCE - 1) / DRAWN_AT_ONCE, 1, draw_random_parts, &d);
}

/* ---- Reading ---- */

static int find_array(const laci_npz *npz, const char *name) {
  for (int at = 0; at < laci_npz_count(npz); at++) {
    if (strcmp(laci_npz_name(npz, at), name) == 0) return at;
  }
  return -1;
}

static void shape_text(const laci_shape *shape, char *text, size_t size) {
  size_t n = 0;
  text[0] = 0;
  for (int axis = 0; axis < shape->rank && n < size; axis++)
    n += (size_t)snprintf(text + n, size - n, "%s%lld", axis ? " x " : "",
                          (long long)shape->dims[axis]);
}

static bool same_shape(const laci_shape *a, const laci_shape *b) {
  bool same = a->rank == b->rank;
  for (int axis = 0; same && axis < a->rank; axis++) same = a->dims[axis] == b->dims[axis];
  return same;
}

static lac_status check_scores(const char *name, const float *values, int64_t count,
                               lac_error *err) {
  for (int64_t e = 0; e < count; e++) {
    if (values[e] >= 0 && isfinite(values[e])) continue;
    return laci_fail(err, LAC_BAD_VALUE,
                     "%s[%lld]: a score of %g, wanted a finite number of 0 or more", name,
                     (long long)e, (double)values[e]);
  }
  return LAC_OK;
}

static lac_status read_score_rows(const laci_rows *rows, const laci_stored *stored, float *out,
                                  lac_error *err) {
  const laci_type *type = laci_rows_type(rows);
  const int64_t width = laci_rows_elements_per_row(rows), n = stored->shape.dims[0];
  char found[128], wanted[128];
  if (!same_shape(&type->shape, &stored->shape)) {
    shape_text(&type->shape, found, sizeof found);
    shape_text(&stored->shape, wanted, sizeof wanted);
    return laci_fail(err, LAC_BAD_SHAPE, "%s: scores of shape %s, wanted the weight's, %s",
                     laci_rows_name(rows), found[0] ? found : "()", wanted);
  }
  int64_t *integers = NULL;
  lac_status st = LAC_OK;
  if (!laci_dtype_is_float(type->dtype)) {
    integers = laci_alloc((size_t)width, sizeof *integers);
    if (!integers) return laci_fail_memory(err, laci_rows_name(rows));
  }
  for (int64_t row = 0; row < n && !st; row++) {
    float *to = out + row * width;
    st = integers ? laci_rows_read_i64(rows, row, integers, err)
                  : laci_rows_read_f32(rows, row, to, err);
    for (int64_t e = 0; integers && !st && e < width; e++) to[e] = (float)integers[e];
  }
  laci_free(integers);
  return st ? st : check_scores(laci_rows_name(rows), out, n * width, err);
}

static lac_status read_scores_from_npz(laci_npz *npz, const char *path, const laci_stored *stored,
                                       laci_job *job, float *out, lac_error *err) {
  const int at = find_array(npz, stored->name);
  laci_rows *rows = NULL;
  if (at < 0) {
    return laci_fail(err, LAC_NOT_FOUND,
                     "%s: it has no scores for the weight %s: wanted an array of that name", path,
                     stored->name);
  }
  laci_budget budget = job->budget;
  lac_status st = laci_npz_open_rows(npz, at, &budget, &rows, err);
  if (!st) st = read_score_rows(rows, stored, out, err);
  laci_rows_close(rows);
  return st;
}

/* Where scores are read from: a file, or arrays in memory. */
typedef struct score_source {
  laci_npz *npz;                  /* open file of scores; NULL: there is none */
  const laci_rows_memory *arrays; /* [n_arrays] scores in memory; NULL: there are none */
  int n_arrays;
} score_source;

static lac_status read_scores_from_memory(const score_source *source, const laci_stored *stored,
                                          float *out, lac_error *err) {
  laci_rows *rows = NULL;
  int at = 0;
  while (at < source->n_arrays && strcmp(source->arrays[at].name, stored->name) != 0) at++;
  if (at == source->n_arrays) {
    return laci_fail(err, LAC_NOT_FOUND,
                     "no scores for the weight %s: wanted an array of that name", stored->name);
  }
  lac_status st = laci_rows_open_memory(&source->arrays[at], &rows, err);
  if (!st) st = read_score_rows(rows, stored, out, err);
  laci_rows_close(rows);
  return st;
}

/* ---- Scores of all tensors ---- */

static lac_status read_scores_of_all_tensors(const lac_options *options, laci_job *job,
                                             const score_source *source, laci_score_arrays *scores,
                                             lac_error *err) {
  const laci_analysis *a = job->analysis;
  const laci_graph *graph = a->graph;
  scores->n = graph->n_stored;
  scores->arrays = laci_alloc((size_t)graph->n_stored, sizeof *scores->arrays);
  if (!scores->arrays) return laci_fail_memory(err, "the scores");
  lac_status st = LAC_OK;
  for (int l = 0; l < a->n_layers && !st; l++) {
    const laci_stored *stored = &graph->stored[a->layers[l].stored];
    float **array = &scores->arrays[a->layers[l].stored];
    const int64_t count = laci_shape_count(&stored->shape);
    if (!a->layers[l].eligible || *array) continue;
    laci_budget_add(&job->budget, laci_count_bytes_saturated(count, sizeof **array),
                    "%.200s (its scores)", stored->name);
    st = laci_budget_check(&job->budget, "the scores", err);
    if (!st && !(*array = laci_alloc((size_t)count, sizeof **array)))
      st = laci_fail_memory(err, stored->name);
    if (st) break;
    if (source->npz)
      st = read_scores_from_npz(source->npz, options->score, stored, job, *array, err);
    else if (source->arrays) st = read_scores_from_memory(source, stored, *array, err);
    else draw_random_scores(stored, options->seed, job->pool, *array);
  }
  return st;
}

lac_status laci_score_arrays_open(const lac_options *options, laci_job *job,
                                  laci_score_arrays *scores, lac_error *err) {
  const char *name = options->score; /* NULL: the magnitude |w| */
  const bool is_file = name && laci_score_is_file_name(name);
  const bool is_random = name && strcmp(name, "random") == 0;
  laci_npz *npz = NULL;
  laci_rows_memory *arrays = NULL;
  lac_status st = LAC_OK;
  *scores = (laci_score_arrays){0};
  if (options->calibration || !(is_file || is_random || options->scores)) return LAC_OK;
  if (is_file) st = laci_npz_open(name, &npz, err);
  if (options->scores) {
    st = laci_arrays_as_rows(options->scores, options->n_scores, NULL, NULL, &arrays, err);
  }
  const score_source source = {.npz = npz, .arrays = arrays, .n_arrays = options->n_scores};
  if (!st) st = read_scores_of_all_tensors(options, job, &source, scores, err);
  laci_npz_close(npz);
  laci_free(arrays);
  if (st) laci_score_arrays_close(scores);
  return st;
}

void laci_score_arrays_close(laci_score_arrays *scores) {
  for (int s = 0; scores->arrays && s < scores->n; s++) laci_free(scores->arrays[s]);
  laci_free(scores->arrays);
  *scores = (laci_score_arrays){0};
}
