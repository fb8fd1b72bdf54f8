/* SPDX-License-Identifier: Apache-2.0
 * Compares the outputs of two networks on the same samples, batch by batch; an engine of one thread
 * runs each batch. */
#include <math.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "calibrate/output_cache_in.h"
#include "calibrate/workers_in.h"
#include "calibrate/output_parts_in.h"
#include "calibrate/samples.h"
#include "cpu/pool.h"
#include "graph/op.h"
#include "graph/ops.h"
#include "tensor/buf.h"

enum { NETWORKS = 2, MOST_WORKERS = 16 };

/* Results of the comparison, summed over one batch. */
typedef struct sums {
  laci_error_sums errors;
  int64_t n_answers, n_agree, n_labelled, n_right[NETWORKS], n_lost, n_won;
  laci_error_sums parts[LACI_MOST_PARTS];
  double shifts[LACI_MOST_PARTS];
} sums;

/* Records whether the first network's inputs and outputs vary. If all samples or all outputs are
 * the same, two networks agree for any weights. */
typedef struct variety {
  void **first_in, **first_out; /* inputs and outputs of the first sample */
  bool inputs_vary;             /* some input differs between samples */
  bool inside_varies;           /* the elements of some sample are not all equal */
  bool outputs_vary;
} variety;

/* The results of the comparison, summed over all samples. */
typedef struct totals {
  sums sums;
  int n_shape_sets; /* number of shape sets that occur among the samples */
  bool inputs_vary, inside_varies, outputs_vary;
  int n_parts;
  laci_output_part parts[LACI_MOST_PARTS]; /* the fields `sums` and `shift` of these are not used */
} totals;

typedef struct comparison {
  const laci_calibration_samples *samples;
  const laci_compare_options *how;
  laci_network *networks[NETWORKS];
  laci_part parts[NETWORKS];
  laci_part_engines workers[NETWORKS];
  int n_workers, n_inputs, n_outputs;
  int *axes;       /* [n_outputs] the axis along which each output has the samples; -1: none */
  int64_t n_units; /* number of independent units of a batch that are compared: its samples if every
                      output has an axis of samples, else 1. Positions of a sequence are no units:
                      those of one sample depend on each other */
  void **in;       /* [n_workers, n_inputs] inputs of the first network */
  void **out;      /* [n_workers, NETWORKS, n_outputs] outputs of both networks */
  int shape_set;   /* index of the shape set of the samples that are compared */
  int64_t *firsts; /* [n_batches] the first sample of each batch of this shape set */
  int64_t n_batches;
  const int64_t *at;     /* [n_workers] the first sample of each worker's batch: points into
                            `firsts` */
  const uint8_t **known; /* [n_workers] outputs of the first network from an earlier comparison;
                            NULL: they must be computed */
  variety seen;
  laci_output_parts *output_parts; /* [n_outputs] how each output is divided into parts; decided by
                                      the first batch */
  sums *sums;                      /* [n_workers] results for each worker's batch */
  lac_status *status;
  lac_error *errors;
} comparison;

/* ---- Setting up ---- */

static lac_status find_part_of_outputs(laci_network *n, laci_part *part, lac_error *err) {
  const laci_graph *graph = &n->graph;
  bool *there = laci_alloc((size_t)graph->n_values + 1, sizeof *there);
  lac_status st = there ? LAC_OK : laci_fail_memory(err, "outputs to be compared");
  for (int v = 0; !st && v < graph->n_values; v++) there[v] = graph->values[v].is_input;
  for (int i = 0; i < graph->n_outputs && !st; i++) {
    int v = graph->outputs[i];
    bool number = laci_network_value_bytes(n, v) > 0 && !n->constant[v] && !there[v];
    if (n->refusal[v]) st = laci_fail(err, LAC_UNSUPPORTED, "%s", n->refusal[v]);
    else if (!number)
      st = laci_fail(err, LAC_UNSUPPORTED,
                     "output '%s' is not computed from inputs, or its size "
                     "depends on data",
                     graph->values[v].name);
  }
  if (!st) st = laci_part_find_nodes(n, there, graph->n_outputs, graph->outputs, part, err);
  laci_free(there);
  return st;
}

static lac_status check_same_inputs_and_outputs(const comparison *c, lac_error *err) {
  const laci_graph *a = &c->networks[0]->graph, *b = &c->networks[1]->graph;
  bool alike = a->n_inputs == b->n_inputs && a->n_outputs == b->n_outputs;
  for (int i = 0; alike && i < a->n_inputs; i++)
    alike = laci_network_value_bytes(c->networks[0], a->inputs[i]) ==
            laci_network_value_bytes(c->networks[1], b->inputs[i]);
  for (int i = 0; alike && i < a->n_outputs; i++)
    alike = laci_shape_equal(&a->values[a->outputs[i]].type.shape,
                             &b->values[b->outputs[i]].type.shape);
  return alike ? LAC_OK
               : laci_fail(err, LAC_BAD_SHAPE,
                           "two networks to be compared have other inputs or outputs");
}

static lac_status create_networks(comparison *c, const laci_weighted_graph *const from[NETWORKS],
                                  lac_error *err) {
  lac_status st = LAC_OK;
  for (int i = 0; i < NETWORKS && !st; i++) {
    st =
        laci_network_create(from[i], c->samples, c->shape_set, c->how->batch, &c->networks[i], err);
    if (!st) st = find_part_of_outputs(c->networks[i], &c->parts[i], err);
  }
  return st ? st : check_same_inputs_and_outputs(c, err);
}

static const laci_type *type_of_output(const laci_network *n, int output) {
  return &n->graph.values[n->graph.outputs[output]].type;
}

/* Returns the first axis of that size from `begin` on; -1: there is none. The last of several axes
 * is left out: rows along it are compared as a whole. */
static int find_axis_of_size(const laci_shape *shape, int64_t size, int begin) {
  const int end = shape->rank > 1 ? shape->rank - 1 : shape->rank;
  for (int axis = begin; axis < end; axis++) {
    if (shape->dims[axis] == size) return axis;
  }
  return -1;
}

static bool is_axis_ambiguous(const comparison *c, int output) {
  const laci_shape *shape = &type_of_output(c->networks[0], output)->shape;
  const int axis = c->axes[output];
  return axis >= 0 && find_axis_of_size(shape, c->how->batch, axis + 1) >= 0;
}

/* Finds the axis of samples among several that are as long as the batch: the one that grows with
 * it. more: the network for a batch of one sample more. */
static int find_growing_axis(const comparison *c, int output, const laci_network *more) {
  const laci_shape *shape = &type_of_output(c->networks[0], output)->shape;
  const laci_shape *larger = &type_of_output(more, output)->shape;
  int axis = c->axes[output];
  while (axis >= 0 && larger->rank == shape->rank && larger->dims[axis] != c->how->batch + 1)
    axis = find_axis_of_size(shape, c->how->batch, axis + 1);
  return axis;
}

/* Finds the axis of samples of each output, and the number of units. */
static lac_status find_sample_axes(comparison *c, const laci_weighted_graph *from, lac_error *err) {
  const laci_network *n = c->networks[0];
  laci_network *more = NULL;
  bool ambiguous = false;
  c->n_units = c->how->batch;
  c->axes = laci_alloc((size_t)c->n_outputs + 1, sizeof *c->axes);
  if (!c->axes) return laci_fail_memory(err, "outputs to be compared");
  for (int i = 0; i < c->n_outputs; i++) {
    c->axes[i] = find_axis_of_size(&type_of_output(n, i)->shape, c->how->batch, 0);
    ambiguous = ambiguous || is_axis_ambiguous(c, i);
  }
  if (ambiguous && c->how->batch > 1) {
    lac_status st =
        laci_network_create(from, c->samples, c->shape_set, c->how->batch + 1, &more, NULL);
    if (st == LAC_NO_MEMORY) return laci_fail_memory(err, "outputs to be compared");
  }
  for (int i = 0; i < c->n_outputs; i++) {
    if (more && is_axis_ambiguous(c, i)) c->axes[i] = find_growing_axis(c, i, more);
    if (laci_dtype_is_float(type_of_output(n, i)->dtype) && c->axes[i] < 0) c->n_units = 1;
  }
  laci_network_destroy(more);
  return LAC_OK;
}

/* Returns the number of workers (engines that run at the same time): limited by threads, batches
 * and memory. */
static int count_workers(const comparison *c, laci_budget *budget) {
  uint64_t worker = 0;
  for (int i = 0; i < NETWORKS; i++) worker += laci_part_memory_bytes(c->networks[i], &c->parts[i]);
  int n = laci_pool_threads(c->how->pool);
  if (n > MOST_WORKERS) n = MOST_WORKERS;
  if (n > c->n_batches) n = (int)c->n_batches;
  while (n > 1 && !laci_budget_allows(budget, worker * (uint64_t)n)) n /= 2;
  return n > 0 ? n : 1;
}

static lac_status alloc_comparison_buffers(comparison *c, lac_error *err) {
  const laci_network *a = c->networks[0];
  size_t workers = (size_t)c->n_workers;
  size_t n_in = workers * (size_t)c->n_inputs, n_out = workers * (size_t)(NETWORKS * c->n_outputs);
  c->in = laci_alloc(n_in + 1, sizeof *c->in);
  c->out = laci_alloc(n_out + 1, sizeof *c->out);
  c->sums = laci_alloc(workers, sizeof *c->sums);
  c->status = laci_alloc(workers, sizeof *c->status);
  c->errors = laci_alloc(workers, sizeof *c->errors);
  c->known = laci_alloc(workers, sizeof *c->known);
  c->output_parts = laci_alloc((size_t)c->n_outputs + 1, sizeof *c->output_parts);
  c->seen.first_in = laci_alloc((size_t)c->n_inputs + 1, sizeof *c->seen.first_in);
  c->seen.first_out = laci_alloc((size_t)c->n_outputs + 1, sizeof *c->seen.first_out);
  bool ok = c->seen.first_in && c->seen.first_out && c->in && c->out && c->sums && c->status &&
            c->errors && c->known && c->output_parts;
  for (size_t i = 0; ok && i < n_in; i++) {
    int value = a->graph.inputs[i % (size_t)c->n_inputs];
    ok = (c->in[i] = laci_alloc((size_t)laci_network_value_bytes(a, value), 1)) != NULL;
  }
  for (size_t i = 0; ok && i < n_out; i++) {
    int value = a->graph.outputs[i % (size_t)c->n_outputs];
    ok = (c->out[i] = laci_alloc((size_t)laci_network_value_bytes(a, value), 1)) != NULL;
  }
  return ok ? LAC_OK : laci_fail_memory(err, "outputs to be compared");
}

/* Are the outputs of the first network known from an earlier comparison, for all batches? Then it
 * need not be run. */
static bool are_all_outputs_cached(const comparison *c) {
  bool all = c->how->cache != NULL;
  for (int64_t k = 0; all && k < c->n_batches; k++)
    all = laci_output_cache_find(c->how->cache, c->firsts[k], c->how->batch) != NULL;
  return all;
}

static lac_status comparison_init(comparison *c, const laci_weighted_graph *const from[NETWORKS],
                                  lac_error *err) {
  lac_status st = create_networks(c, from, err);
  if (st) return st;
  laci_budget budget = c->how->budget ? *c->how->budget : laci_budget_with_limit(UINT64_MAX);
  c->n_inputs = c->networks[0]->graph.n_inputs;
  c->n_outputs = c->networks[0]->graph.n_outputs;
  st = find_sample_axes(c, from[0], err);
  if (st) return st;
  c->n_workers = count_workers(c, &budget);
  st = alloc_comparison_buffers(c, err);
  for (int i = 0; i < NETWORKS && !st; i++) {
    if (i == 0 && are_all_outputs_cached(c)) continue;
    c->workers[i] =
        (laci_part_engines){.n = c->n_workers, .budget = &budget, .engine = c->samples->engine};
    st = laci_part_engines_create(c->networks[i], &c->parts[i], c->networks[i]->weights,
                                  &c->workers[i], err);
  }
  return st;
}

static void comparison_clear(comparison *c) {
  size_t workers = (size_t)c->n_workers;
  for (int i = 0; i < NETWORKS; i++) {
    laci_part_engines_clear(&c->workers[i]);
    laci_network_destroy(c->networks[i]);
  }
  for (size_t i = 0; c->in && i < workers * (size_t)c->n_inputs; i++) laci_free(c->in[i]);
  for (size_t i = 0; c->out && i < workers * (size_t)(NETWORKS * c->n_outputs); i++)
    laci_free(c->out[i]);
  for (int i = 0; c->seen.first_in && i < c->n_inputs; i++) laci_free(c->seen.first_in[i]);
  for (int i = 0; c->seen.first_out && i < c->n_outputs; i++) laci_free(c->seen.first_out[i]);
  for (int i = 0; c->output_parts && i < c->n_outputs; i++)
    laci_output_parts_clear(&c->output_parts[i]);
  laci_free(c->output_parts);
  laci_free(c->axes);
  laci_free(c->seen.first_in);
  laci_free(c->seen.first_out);
  laci_free(c->in);
  laci_free(c->out);
  laci_free(c->sums);
  laci_free(c->status);
  laci_free(c->errors);
  laci_free((void *)c->known);
  laci_free(c->firsts);
}

/* ---- Do the samples and outputs vary? ---- */

/* The samples of a batch: sample k is `outer` runs of `inner` bytes; run o of it begins at byte
 * (o * n + k) * inner. */
typedef struct sample_runs {
  size_t outer, n, inner;
} sample_runs;

/* Returns where the samples of a value are along this axis; -1: along the first axis as long as the
 * batch. A value without such an axis is one sample. */
static sample_runs find_sample_runs(const comparison *c, int value, int axis) {
  const laci_network *n = c->networks[0];
  const laci_shape *shape = &n->graph.values[value].type.shape;
  const size_t bytes = (size_t)laci_network_value_bytes(n, value);
  for (int a = 0; axis < 0 && a < shape->rank; a++)
    if (shape->dims[a] == c->how->batch) axis = a;
  if (axis < 0 || axis >= shape->rank || shape->dims[axis] != c->how->batch || bytes == 0)
    return (sample_runs){1, 1, bytes};
  const size_t outer = (size_t)laci_shape_count_range(shape, 0, axis),
               batch = (size_t)c->how->batch;
  return (sample_runs){outer, batch, bytes / outer / batch};
}

/* Does any sample of the batch differ from *first, the first one of all samples? If *first is NULL,
 * it is set to a copy of the batch's first sample. */
static bool compare_with_first(void **first, const uint8_t *batch, const sample_runs *runs,
                               bool *ok) {
  const size_t inner = runs->inner;
  if (!*first) {
    uint8_t *copy = laci_alloc(runs->outer * inner + 1, 1);
    *first = copy;
    if (!copy) {
      *ok = false;
      return false;
    }
    for (size_t o = 0; o < runs->outer; o++)
      memcpy(copy + o * inner, batch + o * runs->n * inner, inner);
  }
  for (size_t at = 0; at < runs->outer * runs->n; at++) {
    const uint8_t *before = (const uint8_t *)*first + at / runs->n * inner;
    if (memcmp(before, batch + at * inner, inner) != 0) return true;
  }
  return false;
}

/* Are the elements of the sample not all equal? */
static bool varies_inside(const uint8_t *sample, size_t bytes, size_t element) {
  if (bytes <= element) return true;
  return memcmp(sample, sample + element, bytes - element) != 0;
}

static bool update_input_variety(comparison *c, int64_t worker) {
  const laci_network *n = c->networks[0];
  bool ok = true;
  for (int i = 0; i < c->n_inputs && ok; i++) {
    int value = n->graph.inputs[i];
    const laci_type *type = &n->graph.values[value].type;
    const sample_runs runs =
        find_sample_runs(c, value, laci_calibration_sample_axis(c->samples, i));
    const uint8_t *batch = c->in[worker * c->n_inputs + i];
    const size_t element = laci_dtype_is_float(type->dtype) ? sizeof(float) : sizeof(int64_t);
    const size_t sample = runs.outer == 1 ? runs.inner : runs.outer * runs.n * runs.inner,
                 bytes = runs.outer * runs.n * runs.inner;
    c->seen.inputs_vary =
        c->seen.inputs_vary || compare_with_first(&c->seen.first_in[i], batch, &runs, &ok);
    for (size_t at = 0; at + sample <= bytes && sample > 0 && !c->seen.inside_varies; at += sample)
      c->seen.inside_varies = varies_inside(batch + at, sample, element);
  }
  return ok;
}

static bool update_output_variety(comparison *c, int64_t worker) {
  const laci_network *n = c->networks[0];
  bool ok = true;
  for (int i = 0; i < c->n_outputs && ok && !c->seen.outputs_vary; i++) {
    int value = n->graph.outputs[i];
    const sample_runs runs = find_sample_runs(c, value, c->axes[i]);
    c->seen.outputs_vary = compare_with_first(
        &c->seen.first_out[i], c->out[worker * NETWORKS * c->n_outputs + i], &runs, &ok);
  }
  return ok;
}

static lac_status update_variety(comparison *c, int64_t n_workers, lac_error *err) {
  bool ok = true;
  for (int64_t worker = 0; worker < n_workers && ok; worker++)
    ok = update_input_variety(c, worker) && update_output_variety(c, worker);
  return ok ? LAC_OK : laci_fail_memory(err, "outputs to be compared");
}

static const char *find_reason_for_doubt(const laci_compare_options *how, const totals *t) {
  const bool several = how->n > 1;
  const sums *all = &t->sums;
  if (!isfinite(all->errors.e) || !isfinite(all->errors.s)) return "outputs are not finite";
  if (several && !t->inputs_vary) return "the samples are all the same";
  if (!t->inside_varies) return "each sample holds one number over and over";
  if (several && !t->outputs_vary) return "the dense outputs are the same for all samples";
  if (!(all->errors.s > 0) && all->errors.e > 0) return "the dense outputs are all 0";
  return NULL;
}

/* ---- A batch ---- */

/* Runs one network on the batch of a worker. A part's inputs are those inputs of the network that
 * the part reads. */
static lac_status run_network_in_worker(const comparison *c, int which, int worker,
                                        lac_error *err) {
  const laci_part *part = &c->parts[which];
  const laci_graph *graph = &c->networks[which]->graph;
  const void **in = laci_alloc((size_t)part->n_inputs + 1, sizeof *in);
  if (!in) return laci_fail_memory(err, "outputs to be compared");
  for (int i = 0; i < part->n_inputs; i++) {
    for (int port = 0; port < c->n_inputs; port++)
      if (graph->inputs[port] == part->inputs[i]) in[i] = c->in[worker * c->n_inputs + port];
  }
  void **out = c->out + (worker * NETWORKS + which) * c->n_outputs;
  lac_status st = laci_part_engines_run(&c->workers[which], worker, in, out, err);
  laci_free(in);
  return st;
}

static size_t count_bytes_of_output(const comparison *c, int output) {
  const laci_network *n = c->networks[0];
  return (size_t)laci_network_value_bytes(n, n->graph.outputs[output]);
}

/* Copies the first network's outputs, known from an earlier comparison, into the worker's
 * buffers. */
static void copy_cached_outputs(const comparison *c, int worker) {
  const uint8_t *from = c->known[worker];
  for (int i = 0; i < c->n_outputs; i++) {
    memcpy(c->out[worker * NETWORKS * c->n_outputs + i], from, count_bytes_of_output(c, i));
    from += count_bytes_of_output(c, i);
  }
}

static void cache_outputs(const comparison *c, int worker) {
  const int64_t batch = c->how->batch;
  uint64_t bytes = 0;
  if (c->known[worker]) return;
  for (int i = 0; i < c->n_outputs; i++) bytes += count_bytes_of_output(c, i);
  uint8_t *to = laci_output_cache_add(c->how->cache, c->at[worker], batch, bytes);
  for (int i = 0; to && i < c->n_outputs; i++) {
    memcpy(to, c->out[worker * NETWORKS * c->n_outputs + i], count_bytes_of_output(c, i));
    to += count_bytes_of_output(c, i);
  }
}

static void compare_answers(const comparison *c, int worker, const float *const y[NETWORKS],
                            const laci_shape *shape, sums *s) {
  int64_t n = shape->rank > 1 ? shape->dims[shape->rank - 1] : 0;
  if (n < 2 || c->output_parts[0].unit_rows) return;
  int64_t count = laci_shape_count(shape) / n;
  const int64_t *labels = count == c->how->batch ? c->samples->labels : NULL;
  int64_t first = c->at[worker];
  s->n_answers = count;
  s->n_labelled = labels ? count : 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t a = laci_index_of_largest(y[0] + i * n, n), b = laci_index_of_largest(y[1] + i * n, n);
    s->n_agree += a == b;
    if (!labels) continue;
    bool right_a = a == labels[first + i], right_b = b == labels[first + i];
    s->n_right[0] += right_a;
    s->n_right[1] += right_b;
    s->n_lost += right_a && !right_b;
    s->n_won += right_b && !right_a;
  }
}

/* Adds the squares of n elements of an output: *error += sum (a - b)^2, *energy += sum a^2. */
static void add_squared_differences(const float *a, const float *b, int64_t n, double *error,
                                    double *energy) {
  for (int64_t j = 0; j < n; j++) {
    double of_a = (double)a[j], difference = of_a - (double)b[j];
    *error += difference * difference;
    *energy += of_a * of_a;
  }
}

static laci_error_sums make_sums_of_unit(double e, double s) {
  return (laci_error_sums){1, e, s, e * e, e * s, s * s};
}

/* Returns where the units of an output are, with `inner` in elements instead of bytes. */
static sample_runs find_unit_runs(const comparison *c, int output) {
  const int value = c->networks[0]->graph.outputs[output];
  const size_t bytes = (size_t)laci_network_value_bytes(c->networks[0], value);
  sample_runs runs =
      c->n_units == 1 ? (sample_runs){1, 1, bytes} : find_sample_runs(c, value, c->axes[output]);
  runs.inner /= sizeof(float);
  return runs;
}

static void add_part_errors(const comparison *c, int output, const float *const y[NETWORKS],
                            const sample_runs *runs, int64_t unit, sums *to) {
  const laci_output_parts *parts = &c->output_parts[output];
  double e[2] = {0}, s[2] = {0};
  if (parts->n_parts == 0) return;
  const int64_t inner = (int64_t)runs->inner;
  for (size_t o = 0; o < runs->outer; o++) {
    const int64_t begin = ((int64_t)(o * runs->n) + unit) * inner;
    laci_output_parts_add_errors(parts, y, begin, inner, e, s);
    to->shifts[parts->first] += laci_output_parts_sum_shifts(parts, y, begin, inner);
  }
  for (int p = 0; p < parts->n_parts; p++) {
    const laci_error_sums one = make_sums_of_unit(e[p], s[p]);
    laci_error_sums_add(&to->parts[parts->first + p], &one);
  }
}

static void add_unit_errors(const comparison *c, int worker, int64_t unit, sums *all) {
  const laci_network *n = c->networks[0];
  double e = 0, s = 0;
  for (int i = 0; i < c->n_outputs; i++) {
    if (!laci_dtype_is_float(type_of_output(n, i)->dtype)) continue;
    const sample_runs runs = find_unit_runs(c, i);
    const float *a = c->out[worker * NETWORKS * c->n_outputs + i];
    const float *b = c->out[(worker * NETWORKS + 1) * c->n_outputs + i];
    for (size_t o = 0; o < runs.outer; o++) {
      const size_t at = (o * runs.n + (size_t)unit) * runs.inner;
      add_squared_differences(a + at, b + at, (int64_t)runs.inner, &e, &s);
    }
    add_part_errors(c, i, (const float *const[NETWORKS]){a, b}, &runs, unit, all);
  }
  const laci_error_sums one = make_sums_of_unit(e, s);
  laci_error_sums_add(&all->errors, &one);
}

static void add_batch_errors(const comparison *c, int worker, sums *s) {
  const laci_network *n = c->networks[0];
  for (int64_t unit = 0; unit < c->n_units; unit++) add_unit_errors(c, worker, unit, s);
  if (c->n_outputs < 1) return;
  const laci_type *type = &n->graph.values[n->graph.outputs[0]].type;
  const float *y[NETWORKS] = {c->out[worker * NETWORKS * c->n_outputs],
                              c->out[(worker * NETWORKS + 1) * c->n_outputs]};
  if (laci_dtype_is_float(type->dtype)) compare_answers(c, worker, y, &type->shape, s);
}

static void run_and_compare_workers(int64_t begin, int64_t end, void *context) {
  const comparison *c = context;
  for (int64_t worker = begin; worker < end; worker++) {
    lac_status st = LAC_OK;
    if (c->known[worker]) copy_cached_outputs(c, (int)worker);
    for (int i = c->known[worker] ? 1 : 0; i < NETWORKS && !st; i++)
      st = run_network_in_worker(c, i, (int)worker, &c->errors[worker]);
    c->sums[worker] = (sums){0};
    if (!st) add_batch_errors(c, (int)worker, &c->sums[worker]);
    c->status[worker] = st;
  }
}

static void add_sums(sums *to, const sums *from) {
  laci_error_sums_add(&to->errors, &from->errors);
  to->n_answers += from->n_answers;
  to->n_agree += from->n_agree;
  to->n_labelled += from->n_labelled;
  for (int i = 0; i < NETWORKS; i++) to->n_right[i] += from->n_right[i];
  to->n_lost += from->n_lost;
  to->n_won += from->n_won;
  for (int p = 0; p < LACI_MOST_PARTS; p++) {
    laci_error_sums_add(&to->parts[p], &from->parts[p]);
    to->shifts[p] += from->shifts[p];
  }
}

/* Is the value, along its last axis, a product with a stored weight? Constants may be added to it,
 * and axes before the last one may change. */
static bool is_product_with_weight(const laci_graph *graph, int value) {
  static const laci_op *const others[] = {&laci_op_add,     &laci_op_identity,  &laci_op_reshape,
                                          &laci_op_squeeze, &laci_op_transpose, &laci_op_unsqueeze};
  enum { N_OTHERS = sizeof others / sizeof *others };
  const laci_shape *shape = &graph->values[value].type.shape;
  const int64_t row = shape->rank > 0 ? shape->dims[shape->rank - 1] : 0;
  for (int n = graph->values[value].producer; n >= 0; n = graph->values[value].producer) {
    const laci_node *node = &graph->nodes[n];
    shape = &graph->values[value].type.shape;
    if (shape->rank < 1 || shape->dims[shape->rank - 1] != row) return false;
    if (node->op == &laci_op_mat_mul || node->op == &laci_op_gemm)
      return node->n_inputs > 1 && graph->values[node->inputs[1]].stored >= 0;
    int at = 0;
    while (at < N_OTHERS && node->op != others[at]) at++;
    if (at == N_OTHERS) return false;
    const bool first_is_stored = graph->values[node->inputs[0]].stored >= 0;
    value = node->inputs[node->op == &laci_op_add && first_is_stored];
  }
  return false;
}

/* Decides how outputs are cut into parts, from the first network's outputs for the batch of worker
 * 0. */
static lac_status decide_output_parts(comparison *c, totals *t, lac_error *err) {
  const laci_graph *graph = &c->networks[0]->graph;
  if (c->known[0]) copy_cached_outputs(c, 0);
  lac_status st = c->known[0] ? LAC_OK : run_network_in_worker(c, 0, 0, err);
  int n = 0;
  for (int i = 0; i < c->n_outputs && !st && n + 2 <= LACI_MOST_PARTS; i++) {
    const laci_type *type = &graph->values[graph->outputs[i]].type;
    laci_output_parts *parts = &c->output_parts[i];
    if (!laci_dtype_is_float(type->dtype)) continue;
    laci_output_parts_decide(&type->shape, c->out[i],
                             is_product_with_weight(graph, graph->outputs[i]), parts);
    parts->first = n;
    for (int p = 0; p < parts->n_parts; p++, n++)
      t->parts[n] = (laci_output_part){.output = i,
                                       .kind = parts->answers ? LACI_OUTPUT_PART_ANSWERS
                                               : p > 0        ? LACI_OUTPUT_PART_SMALL
                                                              : LACI_OUTPUT_PART_NUMBERS};
  }
  if (n > t->n_parts) t->n_parts = n;
  return st;
}

static lac_status compare_all_batches(comparison *c, totals *t, lac_error *err) {
  const int64_t batch = c->how->batch;
  for (int64_t done = 0; done < c->n_batches; done += c->n_workers) {
    if (laci_interrupted()) return laci_fail(err, LAC_INTERRUPTED, "interrupted in a comparison");
    int64_t n = c->n_batches - done;
    if (n > c->n_workers) n = c->n_workers;
    c->at = c->firsts + done;
    lac_status st = LAC_OK;
    for (int64_t worker = 0; worker < n && !st; worker++)
      st = c->samples->fetch(c->samples->context, c->at[worker], batch,
                             c->in + worker * c->n_inputs, err);
    if (st) return st;
    for (int64_t worker = 0; worker < n; worker++)
      c->known[worker] = laci_output_cache_find(c->how->cache, c->at[worker], batch);
    memset(c->errors, 0, (size_t)n * sizeof *c->errors);
    if (done == 0) st = decide_output_parts(c, t, err);
    if (st) return st;
    laci_pool_for(c->how->pool, n, 1, run_and_compare_workers, c);
    for (int64_t worker = 0; worker < n; worker++) {
      if (c->status[worker] && err) *err = c->errors[worker];
      if (c->status[worker]) return c->status[worker];
      add_sums(&t->sums, &c->sums[worker]);
      cache_outputs(c, (int)worker);
    }
    st = update_variety(c, n, err);
    if (st) return st;
  }
  return LAC_OK;
}

static lac_status list_batches_of_shape_set(comparison *c, lac_error *err) {
  const int64_t batch = c->how->batch, end = c->how->first + c->how->n;
  c->firsts = laci_alloc((size_t)(c->how->n / batch) + 1, sizeof *c->firsts);
  if (!c->firsts) return laci_fail_memory(err, "outputs to be compared");
  for (int64_t at = c->how->first; at + batch <= end; at += batch)
    if (laci_calibration_shape_set_of(c->samples, at) == c->shape_set)
      c->firsts[c->n_batches++] = at;
  return LAC_OK;
}

/* Compares the networks on the samples of one shape set. */
static lac_status compare_shape_set(comparison *c, const laci_weighted_graph *const from[NETWORKS],
                                    totals *to, lac_error *err) {
  lac_status st = list_batches_of_shape_set(c, err);
  if (!st && (c->n_batches > 0 || laci_calibration_count_shape_sets(c->samples) == 1)) {
    st = comparison_init(c, from, err);
    if (!st) st = compare_all_batches(c, to, err);
    to->n_shape_sets++;
    to->inputs_vary = to->inputs_vary || c->seen.inputs_vary || to->n_shape_sets > 1;
    to->outputs_vary = to->outputs_vary || c->seen.outputs_vary || to->n_shape_sets > 1;
    to->inside_varies = to->inside_varies || c->seen.inside_varies || c->n_inputs == 0;
  }
  comparison_clear(c);
  return st;
}

lac_status laci_compare_outputs(const laci_weighted_graph *a, const laci_weighted_graph *b,
                                const laci_calibration_samples *samples,
                                const laci_compare_options *options,
                                laci_output_difference *difference, lac_error *err) {
  const laci_weighted_graph *const from[NETWORKS] = {a, b};
  totals t = {.n_shape_sets = 0};
  *difference = (laci_output_difference){0};
  lac_status st = LAC_OK;
  for (int shape_set = 0; shape_set < laci_calibration_count_shape_sets(samples) && !st;
       shape_set++) {
    comparison c = {.samples = samples, .how = options, .shape_set = shape_set};
    st = compare_shape_set(&c, from, &t, err);
  }
  if (st) return st;
  const char *doubt = find_reason_for_doubt(options, &t);
  sums all = t.sums;
  if (!isfinite(all.errors.e) || !isfinite(all.errors.s)) {
    all.errors.e = INFINITY; /* a difference that is not finite counts as infinite, so that no
                                network is worse */
    all.errors.s = 1;
  }
  *difference =
      (laci_output_difference){.n_samples = options->n / options->batch * options->batch,
                               .relative = all.errors.s > 0 ? all.errors.e / all.errors.s : 0,
                               .sums = all.errors,
                               .n_lost = all.n_lost,
                               .n_won = all.n_won,
                               .n_answers = all.n_answers,
                               .n_agree = all.n_agree,
                               .n_labelled = all.n_labelled,
                               .n_right_a = all.n_right[0],
                               .n_right_b = all.n_right[1],
                               .n_parts = t.n_parts,
                               .doubt = doubt};
  for (int part = 0; part < t.n_parts; part++) {
    difference->parts[part] = t.parts[part];
    difference->parts[part].sums = all.parts[part];
    difference->parts[part].shift = all.shifts[part];
  }
  return LAC_OK;
}
