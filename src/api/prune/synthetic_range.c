/* SPDX-License-Identifier: Apache-2.0
 * Finds the range of pixel values that a network was trained on. The first batch normalization
 * stores mean and variance of the values that it normalizes. Of the usual ranges, the one whose
 * images give the nearest statistics is taken. */
#include <math.h>
#include <string.h>

#include "api/prune/synthetic_in.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/prepare.h"
#include "engine/engine.h"
#include "engine/stepper.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "tensor/buf.h"

typedef struct usual_range {
  const char *name;
  float mean[3], std[3]; /* mean and standard deviation of each channel, in grey levels */
} usual_range;

static const usual_range in_colour[] = {
    {"ImageNet's mean and std", {123.675F, 116.28F, 103.53F}, {58.395F, 57.12F, 57.375F}},
    {"0 to 1", {0, 0, 0}, {255, 255, 255}},
    {"-1 to 1", {127.5F, 127.5F, 127.5F}, {127.5F, 127.5F, 127.5F}},
    {"0 to 255", {0, 0, 0}, {1, 1, 1}},
    {"0 to 255 less ImageNet's mean", {123.675F, 116.28F, 103.53F}, {1, 1, 1}},
};
static const usual_range in_grey[] = {
    {"0 to 1", {0}, {255}},
    {"MNIST's mean and std", {33.32F}, {78.57F}},
    {"-1 to 1", {127.5F}, {127.5F}},
    {"0 to 255", {0}, {1}},
};

enum {
  N_IN_COLOUR = sizeof in_colour / sizeof *in_colour,
  N_IN_GREY = sizeof in_grey / sizeof *in_grey,
  MOST_PIXELS = 1 << 19, /* maximum number of pixels of all images with which a range is tried */
  MOST_IMAGES = 64,
  LEAST_IMAGES = 2,
};

/* ---- The first normalization ---- */

/* The first batch normalization, and the nodes that its input depends on. */
typedef struct first_norm {
  const laci_node *node;
  bool *needed; /* [n_nodes] the input of the normalization depends on the node */
} first_norm;

/* Finds the first batch normalization with stored statistics whose input depends on the network's
 * input. NULL: there is none. depends: [n_values], all false before the call. */
static const laci_node *find_first_norm(const laci_graph *graph, bool *depends) {
  depends[graph->inputs[0]] = true;
  for (int id = 0; id < graph->n_nodes; id++) {
    const laci_node *node = &graph->nodes[id];
    bool from_input = false;
    if (node->body) continue;
    for (int k = 0; k < node->n_inputs; k++)
      from_input = from_input || (node->inputs[k] >= 0 && depends[node->inputs[k]]);
    if (from_input && !node->domain[0] && strcmp(node->type, "BatchNormalization") == 0 &&
        node->n_inputs >= 5 && depends[node->inputs[0]] && laci_node_find_stored(graph, node, 3) &&
        laci_node_find_stored(graph, node, 4))
      return node;
    for (int k = 0; k < node->n_outputs; k++)
      if (node->outputs[k] >= 0) depends[node->outputs[k]] = from_input;
  }
  return NULL;
}

/* Marks the nodes that are needed to compute the input of norm->node; the graph's nodes are sorted.
 * wanted: [n_values], all false. */
static void mark_nodes_before_norm(const laci_graph *graph, first_norm *norm, bool *wanted) {
  wanted[norm->node->inputs[0]] = true;
  for (int id = (int)(norm->node - graph->nodes) - 1; id >= 0; id--) {
    const laci_node *node = &graph->nodes[id];
    for (int k = 0; k < node->n_outputs; k++)
      norm->needed[id] = norm->needed[id] || (node->outputs[k] >= 0 && wanted[node->outputs[k]]);
    for (int k = 0; norm->needed[id] && k < node->n_inputs; k++)
      if (node->inputs[k] >= 0) wanted[node->inputs[k]] = true;
  }
}

/* Returns how far the statistics of x [N, channels, ..] are from the stored ones: the mean over the
 * channels of the Kullback-Leibler divergence between normal distributions. */
static double compute_distance_of_statistics(const laci_buf *x, const laci_buf *mean,
                                             const laci_buf *variance) {
  const int64_t channels = mean->count, n = x->shape.dims[0];
  const int64_t inner = x->count / n / channels;
  const double least = 1e-12;
  double sum = 0;
  for (int64_t c = 0; c < channels; c++) {
    double total = 0, squares = 0;
    for (int64_t k = 0; k < n; k++) {
      const double *from = x->f + (k * channels + c) * inner;
      for (int64_t p = 0; p < inner; p++) {
        total += from[p];
        squares += from[p] * from[p];
      }
    }
    const double count = (double)(n * inner), m = total / count;
    const double v = fmax(squares / count - m * m, least), kept = fmax(variance->f[c], least);
    const double apart = m - mean->f[c];
    sum += 0.5 * (log(v / kept) + (kept + apart * apart) / v - 1);
  }
  return sum / (double)channels;
}

/* Computes the input of the normalization for a batch, and frees the batch. *far: the distance of
 * its statistics from the stored ones. */
static lac_status measure_norm_input(const laci_graph *graph, const first_norm *norm,
                                     laci_buf *batch, laci_pool *pool, double *far,
                                     lac_error *err) {
  laci_stepper *walk = NULL;
  laci_buf *mean = NULL, *variance = NULL;
  const laci_stored *stored[2] = {laci_node_find_stored(graph, norm->node, 3),
                                  laci_node_find_stored(graph, norm->node, 4)};
  const laci_stepper_options options = {.engine = LACI_ENGINE_EXACT, .pool = pool};
  lac_status st = laci_stepper_create(graph, &options, &walk, err);
  if (st) {
    laci_buf_destroy(batch);
    return st;
  }
  laci_stepper_set_value(walk, graph->inputs[0], batch);
  for (int id = 0; id < graph->n_nodes && !st; id++)
    if (norm->needed[id]) st = laci_stepper_step(walk, id, err);
  const laci_buf *x = st ? NULL : laci_stepper_value(walk, norm->node->inputs[0]);
  const laci_type types[2] = {{stored[0]->dtype, stored[0]->shape},
                              {stored[1]->dtype, stored[1]->shape}};
  if (!st) st = laci_buf_from_bytes(&types[0], stored[0]->bytes, stored[0]->size_bytes, &mean, err);
  if (!st)
    st = laci_buf_from_bytes(&types[1], stored[1]->bytes, stored[1]->size_bytes, &variance, err);
  const bool fits = !st && x && x->f && x->count > 0 && mean->f && variance->f && mean->count > 0 &&
                    x->shape.rank >= 2 && x->shape.dims[1] == mean->count &&
                    variance->count == mean->count;
  *far = fits ? compute_distance_of_statistics(x, mean, variance) : INFINITY;
  laci_buf_destroy(mean);
  laci_buf_destroy(variance);
  laci_stepper_destroy(walk);
  return st;
}

/* Makes a batch of images of this range, in the layout that the stepper takes. */
static lac_status make_batch(const laci_graph *graph, const laci_synthetic_input *input,
                             const laci_synthetic_options *options, laci_buf **batch,
                             lac_error *err) {
  const laci_value *value = &graph->values[graph->inputs[0]];
  int64_t n = MOST_PIXELS / ((int64_t)input->height * input->width);
  n = n < LEAST_IMAGES ? LEAST_IMAGES : n > MOST_IMAGES ? MOST_IMAGES : n;
  if (value->type.shape.dims[0] > 0) n = value->type.shape.dims[0];
  laci_samples *samples = NULL;
  void *values = NULL;
  *batch = NULL;
  lac_status st = laci_synthetic_samples_open(graph, options, n, input, &samples, err);
  if (!st) {
    laci_shape shape = laci_samples_type(samples, 0)->shape;
    shape.dims[0] = n;
    st = laci_buf_create(value->type.dtype, &shape, batch, err);
  }
  if (!st) {
    values = laci_alloc((size_t)(*batch)->count, input->integers ? sizeof(int64_t) : sizeof(float));
    st = values ? laci_samples_read_batch(samples, 0, n, &values, err)
                : laci_fail_memory(err, "synthetic images");
  }
  for (int64_t k = 0; !st && k < (*batch)->count; k++) {
    if (input->integers) (*batch)->i[k] = ((int64_t *)values)[k];
    else (*batch)->f[k] = (double)((float *)values)[k];
  }
  laci_free(values);
  laci_samples_close(samples);
  if (st) {
    laci_buf_destroy(*batch);
    *batch = NULL;
  }
  return st;
}

static void set_range(laci_synthetic_input *input, const usual_range *range) {
  memcpy(input->mean, range->mean, sizeof range->mean);
  memcpy(input->std, range->std, sizeof range->std);
  input->range = range->name;
}

/* Finds the first normalization, and marks the nodes before it. norm->node is NULL if there is
 * none. */
static lac_status prepare_first_norm(const laci_graph *graph, first_norm *norm, lac_error *err) {
  bool *depends = laci_alloc((size_t)graph->n_values, sizeof *depends);
  bool *wanted = laci_alloc((size_t)graph->n_values, sizeof *wanted);
  norm->needed = laci_alloc((size_t)graph->n_nodes, sizeof *norm->needed);
  const bool made = depends && wanted && norm->needed;
  if (made) norm->node = find_first_norm(graph, depends);
  if (made && norm->node) mark_nodes_before_norm(graph, norm, wanted);
  laci_free(depends);
  laci_free(wanted);
  return made ? LAC_OK : laci_fail_memory(err, "synthetic images");
}

/* Measures a range. *far is infinite if the network cannot be computed up to the normalization. */
static lac_status measure_range(const laci_graph *graph, const first_norm *norm,
                                const laci_synthetic_input *input,
                                const laci_synthetic_options *options, double *far,
                                lac_error *err) {
  laci_buf *batch = NULL;
  lac_error why = {0};
  *far = INFINITY;
  lac_status st = make_batch(graph, input, options, &batch, err);
  if (st) return st;
  st = measure_norm_input(graph, norm, batch, options->pool, far, &why);
  if (st != LAC_NO_MEMORY && st != LAC_INTERRUPTED) return LAC_OK;
  if (err) *err = why;
  return st;
}

/* Chooses the range by the first normalization. *reason stays NULL if there is none, or if the
 * network cannot be computed up to there. */
static lac_status choose_range_by_norm(const laci_graph *graph,
                                       const laci_synthetic_options *options,
                                       laci_synthetic_input *input, const char **reason,
                                       lac_error *err) {
  const bool grey = input->channels == 1;
  const usual_range *ranges = grey ? in_grey : in_colour;
  const int n = grey ? N_IN_GREY : N_IN_COLOUR;
  first_norm norm = {.node = NULL};
  double nearest = INFINITY, far = INFINITY;
  lac_status st = prepare_first_norm(graph, &norm, err);
  for (int k = 0; k < n && !st && norm.node; k++) {
    laci_synthetic_input tried = *input;
    set_range(&tried, &ranges[k]);
    st = measure_range(graph, &norm, &tried, options, &far, err);
    if (st || !(far < nearest)) continue;
    nearest = far;
    *input = tried;
    *reason = "nearest to the first batch normalization's statistics";
  }
  laci_free(norm.needed);
  return st;
}

/* ---- Without a normalization ---- */

/* Returns the largest magnitude in the stored tensors that the node reads; 0: it reads none. */
static double largest_stored_operand(const laci_graph *graph, const laci_node *node) {
  double most = 0;
  for (int k = 0; k < node->n_inputs; k++) {
    const laci_stored *stored = laci_node_find_stored_floats(graph, node, k);
    if (!stored || !stored->bytes) continue;
    const int64_t n = (int64_t)(stored->size_bytes / lac_dtype_size(stored->dtype));
    for (int64_t at = 0; at < n; at++) {
      double value;
      laci_read_f64(stored->dtype, stored->bytes, at, 1, &value);
      most = fmax(most, fabs(value));
    }
  }
  return most;
}

/* Does the network itself scale grey levels of 0..255? *scales: it subtracts or divides its input
 * by stored numbers. */
static bool scales_grey_levels(const laci_graph *graph, bool *scales) {
  const laci_value *input = &graph->values[graph->inputs[0]];
  *scales = false;
  for (int k = 0; k < input->n_readers; k++) {
    const laci_node *node = &graph->nodes[input->readers[k]];
    const double operand = largest_stored_operand(graph, node);
    const bool taken_off = strcmp(node->type, "Sub") == 0 || strcmp(node->type, "Add") == 0;
    const bool divided = strcmp(node->type, "Div") == 0,
               multiplied = strcmp(node->type, "Mul") == 0;
    if (node->domain[0] || operand <= 0 || !(taken_off || divided || multiplied)) continue;
    *scales = true;
    return taken_off ? operand > 2 : divided ? operand > 20 : operand < 0.05;
  }
  return false;
}

bool laci_synthetic_has_own_scale(const float *mean, const float *std) {
  const laci_preprocessing usual = laci_preprocessing_default();
  return memcmp(mean, usual.mean, sizeof usual.mean) != 0 ||
         memcmp(std, usual.std, sizeof usual.std) != 0;
}

lac_status laci_synthetic_choose_range(const laci_graph *graph,
                                       const laci_synthetic_options *options,
                                       laci_synthetic_input *input, const char **reason,
                                       lac_error *err) {
  const usual_range levels = {"0 to 255", {0}, {1, 1, 1}}, unit = {"0 to 1", {0}, {255, 255, 255}};
  bool scales = false;
  *reason = NULL;
  if (options->mean) {
    memcpy(input->mean, options->mean, sizeof input->mean);
    memcpy(input->std, options->std, sizeof input->std);
    input->range = "of the given mean and std";
    *reason = "as given";
    return LAC_OK;
  }
  if (input->integers) {
    set_range(input, &levels);
    *reason = "the input has integers";
    return LAC_OK;
  }
  lac_status st = choose_range_by_norm(graph, options, input, reason, err);
  if (st || *reason) return st;
  const bool grey_levels = scales_grey_levels(graph, &scales);
  const usual_range *assumed = input->channels == 1 ? &in_grey[0] : &in_colour[0];
  set_range(input, !scales ? assumed : grey_levels ? &levels : &unit);
  *reason = scales ? "by the network's first step" : "assumed";
  return LAC_OK;
}

lac_status laci_synthetic_find_input(const laci_graph *graph, const laci_synthetic_options *options,
                                     laci_synthetic_input *input, lac_error *err) {
  const char *reason = NULL;
  lac_status st = laci_synthetic_find_layout(graph, options->crop, input, err);
  if (!st && options->height > 0) input->height = options->height;
  if (!st && options->width > 0) input->width = options->width;
  if (!st) st = laci_synthetic_choose_range(graph, options, input, &reason, err);
  if (st) return st;
  laci_log(LAC_LOG_INFO, "synthetic images: %d x %d pixels, values %s: %s", input->height,
           input->width, input->range, reason);
  return LAC_OK;
}

lac_status laci_synthetic_samples_open(const laci_graph *graph,
                                       const laci_synthetic_options *options, int64_t n,
                                       const laci_synthetic_input *input, laci_samples **samples,
                                       lac_error *err) {
  const laci_value *value = &graph->values[graph->inputs[0]];
  const laci_sample_input wanted = {value->name, value->type};
  const laci_samples_options how = {.n = n,
                                    .seed = options->seed,
                                    .inputs = &wanted,
                                    .n_inputs = 1,
                                    .synthetic = input,
                                    .pool = options->pool};
  return laci_samples_open("synthetic", &how, samples, err);
}
