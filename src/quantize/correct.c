/* SPDX-License-Identifier: Apache-2.0
 * Corrects the biases of quantized layers (Nagel and others, "Data-free quantization", 2019, with
 * samples in place of statistics).
 *
 * The float network and the quantized one run side by side, from layer to layer. The mean
 * difference of a layer's outputs, for each output channel, goes into its bias before the next
 * layer is run. So each layer is corrected for the inputs that it really has. A correction is kept
 * if it makes the error of the layer's outputs smaller on samples that are held back. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/min.h"
#include "base/plural.h"
#include "base/to_int.h"
#include "calibrate/sequence.h"
#include "graph/op.h"
#include "quantize/quantize_in.h"

enum { MOST_SAMPLES = 256 }; /* limit of the samples for the means */

/** A layer whose bias can be corrected. */
typedef struct site {
  int layer;           /* index of the layer in q->layers */
  int output, input;   /* output: value of the float network that has the layer's outputs with its
                        bias. input: value of the quantized network that the layer reads */
  int quantized;       /* the value `output` in the quantized network */
  int bias;            /* index among the quantized network's stored tensors of the bias, or of the
                        vector that is added */
  const float *scales; /* [n] scales of the bias; NULL: it is the vector, in floats */
  int axis;            /* axis of the output that has the channels */
  int64_t n;           /* number of channels */
} site;

/** Sums over the differences between a layer's float outputs and its quantized ones. */
typedef struct channel_sums {
  double *fitted;         /* [n] sums of the differences over the samples for the means */
  double *held;           /* [n] the same over samples held back */
  double count, n_held;   /* number of summed differences of each channel: fitted and held back */
  double squares, energy; /* sum of the squared differences, and of the squared float outputs, over
                             the samples held back */
} channel_sums;

typedef struct correcting {
  laci_quantizing *q;
  const laci_graph *graph; /* the quantized network's graph */
  site *sites;
  int n_sites;
  int64_t
      *firsts; /* [n_batches] first sample of each batch; the first n_fitted are for the means */
  int64_t batch, n_batches, n_fitted;
  laci_sequence *floats, *integers;
  uint8_t **changed; /* [n_sites] bytes of the corrected tensors, which the sequence reads */
} correcting;

/* ---- Which layers can be corrected ---- */

bool laci_quantize_may_add_bias(const laci_quantizing *q, const laci_quantize_layer *layer) {
  const laci_node *node = &q->graph->nodes[layer->node];
  if (node->n_inputs > 2 && node->inputs[2] >= 0) return false;
  if (laci_node_is(node, "Gemm"))
    return layer->port == 1 && laci_node_float(node, "alpha", 1) == 1 &&
           laci_node_float(node, "beta", 1) == 1;
  return laci_node_is(node, "Conv") || laci_node_is(node, "ConvTranspose");
}

/* Returns the node of the quantized network that outputs the value; NULL: there is none. */
static const laci_node *find_producer(const correcting *c, int value) {
  const int producer = value < 0 ? -1 : c->graph->values[value].producer;
  return producer < 0 ? NULL : &c->graph->nodes[producer];
}

static int find_stored_input(const correcting *c, const laci_node *node, int port) {
  const int value = node && port < node->n_inputs ? node->inputs[port] : -1;
  return value < 0 ? -1 : c->graph->values[value].stored;
}

/* Finds the stored bias of the layer's node in the quantized network, and its scales. */
static bool find_bias(const correcting *c, const laci_node *node, const laci_node *add, site *to) {
  const laci_quantize_layer *layer = &c->q->layers[to->layer];
  if (add) {
    to->bias = find_stored_input(c, add, layer->add_port);
    to->n = to->bias < 0 ? 0 : laci_shape_count(&c->graph->stored[to->bias].shape);
    return to->bias >= 0;
  }
  const laci_node *up = node->n_inputs > 2 ? find_producer(c, node->inputs[2]) : NULL;
  const int scales = find_stored_input(c, up, 1);
  to->bias = find_stored_input(c, up, 0);
  if (to->bias < 0 || scales < 0 || c->graph->stored[to->bias].dtype != LAC_DTYPE_I32) return false;
  to->scales = (const float *)(const void *)c->graph->stored[scales].bytes;
  to->n = laci_shape_count(&c->graph->stored[to->bias].shape);
  return true;
}

static bool find_site(const correcting *c, int l, site *to) {
  const laci_graph *graph = c->q->graph;
  const laci_quantize_layer *layer = &c->q->layers[l];
  if (layer->reason) return false;
  const laci_node *last = &graph->nodes[layer->add >= 0    ? layer->add
                                        : layer->norm >= 0 ? layer->norm
                                                           : layer->node];
  *to = (site){.layer = l, .output = last->outputs[0]};
  to->quantized = laci_graph_find_value(c->graph, graph->values[to->output].name);
  const laci_node *node = find_producer(c, to->quantized), *add = NULL;
  if (node && layer->add >= 0) {
    add = node;
    node = find_producer(c, node->inputs[1 - layer->add_port]);
  }
  if (!node || !laci_node_is(node, graph->nodes[layer->node].type)) return false;
  to->input = node->inputs[layer->other];
  const int rank = graph->values[to->output].type.shape.rank;
  const bool is_window = laci_node_is(node, "Conv") || laci_node_is(node, "ConvTranspose");
  to->axis = is_window ? 1 : rank - 1;
  return to->axis >= 0 && find_bias(c, node, add, to);
}

static lac_status find_sites(correcting *c, lac_error *err) {
  c->sites = laci_alloc((size_t)c->q->n_layers + 1, sizeof *c->sites);
  c->changed = laci_alloc((size_t)c->q->n_layers + 1, sizeof *c->changed);
  if (!c->sites || !c->changed) return laci_fail_memory(err, "the corrections of layers");
  for (int l = 0; l < c->q->n_layers; l++) c->n_sites += find_site(c, l, &c->sites[c->n_sites]);
  return LAC_OK;
}

/* ---- Samples ---- */

/* Lists batches for the means, spread evenly over the samples, and then those held back. */
static lac_status choose_batches(correcting *c, const laci_calibration_cut *cut, lac_error *err) {
  const int64_t most = laci_min(MOST_SAMPLES, cut->n_batches * cut->batch) / cut->batch;
  const int64_t held = laci_min(cut->n_batches - cut->n_fitted, most < 2 ? 1 : most / 2);
  c->batch = cut->batch;
  c->n_fitted = laci_min(cut->n_fitted, most < 1 ? 1 : most);
  c->n_batches = c->n_fitted + held;
  c->firsts = laci_alloc((size_t)c->n_batches + 1, sizeof *c->firsts);
  if (!c->firsts) return laci_fail_memory(err, "the corrections of layers");
  for (int64_t k = 0; k < c->n_fitted; k++)
    c->firsts[k] = k * cut->n_fitted / c->n_fitted * cut->batch;
  for (int64_t k = 0; k < held; k++) c->firsts[c->n_fitted + k] = (cut->n_fitted + k) * cut->batch;
  return LAC_OK;
}

static lac_status open_sequence(const correcting *c, const laci_weighted_graph *from,
                                bool is_quantized, laci_sequence **sequence, lac_error *err) {
  int *stops = laci_alloc((size_t)c->n_sites + 1, sizeof *stops);
  if (!stops) return laci_fail_memory(err, "the corrections of layers");
  for (int k = 0; k < c->n_sites; k++)
    stops[k] = is_quantized ? c->sites[k].input : c->sites[k].output;
  const laci_sequence_options how = {.stops = stops,
                                     .n_stops = c->n_sites,
                                     .samples = c->q->how->samples,
                                     .firsts = c->firsts,
                                     .batch = c->batch,
                                     .n_batches = c->n_batches,
                                     .pool = c->q->how->pool,
                                     .budget = c->q->how->budget};
  lac_status st = laci_sequence_open(from, &how, sequence, err);
  laci_free(stops);
  return st;
}

/* ---- A layer ---- */

/** A layer whose differences are summed. */
typedef struct summing {
  const correcting *c;
  const site *at;
  channel_sums sums;
  float *buffer;    /* float outputs of a batch */
  int64_t capacity; /* number of elements that the buffer holds */
} summing;

static lac_status grow_buffer(summing *s, int64_t count, lac_error *err) {
  if (count <= s->capacity) return LAC_OK;
  laci_free(s->buffer);
  s->capacity = 0;
  s->buffer = laci_alloc((size_t)count, sizeof *s->buffer);
  if (!s->buffer) return laci_fail_memory(err, "the corrections of layers");
  s->capacity = count;
  return LAC_OK;
}

static lac_status add_batch(void *context, const laci_sequence_value *seen, lac_error *err) {
  summing *s = context;
  const int64_t count = laci_shape_count(seen->shape), n = s->at->n;
  const int64_t inner = laci_shape_count_range(seen->shape, s->at->axis + 1, seen->shape->rank);
  const bool held = seen->batch >= s->c->n_fitted;
  double *to = held ? s->sums.held : s->sums.fitted;
  const float *y = NULL;
  if (seen->shape->dims[s->at->axis] != n)
    return laci_fail(err, LAC_UNSUPPORTED, "its outputs have another number of channels");
  lac_status st = grow_buffer(s, count, err);
  if (!st) st = laci_sequence_read_stop(s->c->floats, seen->batch, s->buffer, &y, err);
  if (st) return st;
  for (int64_t row = 0; row < count / inner; row++) {
    double sum = 0, squares = 0, energy = 0;
    for (int64_t i = row * inner; i < (row + 1) * inner; i++) {
      const double x = (double)y[i], d = x - (double)seen->elements[i];
      sum += d;
      squares += d * d;
      energy += x * x;
    }
    to[row % n] += sum;
    if (!held) continue;
    s->sums.squares += squares;
    s->sums.energy += energy;
  }
  *(held ? &s->sums.n_held : &s->sums.count) += (double)(count / n);
  return LAC_OK;
}

/* Sets the corrected tensor's bytes, and shift[n]: by how much each channel moves. */
static void shift_bias(const correcting *c, const site *at, const channel_sums *sums, double *shift,
                       uint8_t *bytes) {
  const uint8_t *from = c->graph->stored[at->bias].bytes;
  for (int64_t k = 0; k < at->n; k++) {
    const double wanted = sums->fitted[k] / sums->count;
    if (at->scales) {
      int32_t old;
      memcpy(&old, from + (size_t)k * sizeof old, sizeof old);
      const double scale = (double)at->scales[k];
      const int32_t now =
          (int32_t)laci_clamp_to_range(rint(old + wanted / scale), -(1 << 30), 1 << 30);
      shift[k] = ((double)now - old) * scale;
      memcpy(bytes + (size_t)k * sizeof now, &now, sizeof now);
    } else {
      float old;
      memcpy(&old, from + (size_t)k * sizeof old, sizeof old);
      const float now = (float)((double)old + wanted);
      shift[k] = (double)now - (double)old;
      memcpy(bytes + (size_t)k * sizeof now, &now, sizeof now);
    }
  }
}

/* Corrects a layer by its sums, if that makes its error on samples held back smaller. */
static lac_status correct_layer(correcting *c, int k, const channel_sums *sums, lac_error *err) {
  const site *at = &c->sites[k];
  laci_quantize_correction *to = &c->q->trial->find->layers[at->layer];
  const laci_stored *stored = &c->graph->stored[at->bias];
  double *shift = laci_alloc((size_t)at->n, sizeof *shift);
  uint8_t *bytes = laci_alloc(stored->size_bytes, 1), *copy = laci_alloc(stored->size_bytes, 1);
  c->changed[k] = bytes;
  if (!shift || !bytes || !copy) {
    laci_free(shift);
    laci_free(copy);
    return laci_fail_memory(err, "the corrections of layers");
  }
  shift_bias(c, at, sums, shift, bytes);
  double squares = sums->squares;
  for (int64_t n = 0; n < at->n; n++)
    squares += shift[n] * (sums->n_held * shift[n] - 2 * sums->held[n]);
  laci_free(shift);
  const double energy = sums->energy > 0 ? sums->energy : 1;
  to->error_before = to->error_after = sums->squares / energy;
  if (!(squares < sums->squares)) {
    laci_free(copy);
    return LAC_OK;
  }
  memcpy(copy, bytes, stored->size_bytes);
  to->n = at->n;
  to->error_after = fmax(squares, 0) / energy;
  if (at->scales) to->bias = (int32_t *)(void *)copy;
  else to->added = (float *)(void *)copy;
  laci_sequence_set_weight(c->integers, at->bias, bytes);
  return LAC_OK;
}

static lac_status run_and_correct_layer(correcting *c, int k, lac_error *err) {
  const site *at = &c->sites[k];
  summing s = {.c = c, .at = at};
  s.sums.fitted = laci_alloc((size_t)at->n, sizeof(double));
  s.sums.held = laci_alloc((size_t)at->n, sizeof(double));
  lac_status st =
      s.sums.fitted && s.sums.held ? LAC_OK : laci_fail_memory(err, "the corrections of layers");
  if (!st) st = laci_sequence_advance(c->floats, k, NULL, NULL, err);
  if (!st) st = laci_sequence_advance(c->integers, k, NULL, NULL, err);
  if (!st) st = laci_sequence_look_ahead(c->integers, at->quantized, add_batch, &s, err);
  if (!st && s.sums.count > 0) st = correct_layer(c, k, &s.sums, err);
  laci_free(s.sums.fitted);
  laci_free(s.sums.held);
  laci_free(s.buffer);
  return st;
}

static lac_status correct_layers(correcting *c, const laci_weighted_graph *from,
                                 const laci_calibration_cut *cut, lac_error *err) {
  const uint8_t **weights = laci_quantize_match_weights(from, c->graph);
  const laci_weighted_graph quantized = {c->graph, weights};
  lac_status st = weights ? find_sites(c, err) : laci_fail_memory(err, "the corrections of layers");
  if (!st) st = choose_batches(c, cut, err);
  if (!st && c->n_sites > 0) st = open_sequence(c, from, false, &c->floats, err);
  if (!st && c->n_sites > 0) st = open_sequence(c, &quantized, true, &c->integers, err);
  for (int k = 0; k < c->n_sites && !st; k++) {
    st = run_and_correct_layer(c, k, err);
    laci_progress("correcting biases", k + 1, c->n_sites);
  }
  laci_sequence_close(c->floats);
  laci_sequence_close(c->integers);
  for (int k = 0; c->changed && k < c->n_sites; k++) laci_free(c->changed[k]);
  laci_free(c->changed);
  laci_free(c->sites);
  laci_free(c->firsts);
  laci_free(weights);
  return st;
}

lac_status laci_quantize_find_corrections(laci_quantizing *q, const laci_weighted_graph *from,
                                          const laci_calibration_cut *cut, lac_error *err) {
  laci_quantize_corrections *to = q->trial->find;
  correcting c = {.q = q, .graph = q->out->graph};
  lac_error why = {0};
  to->layers = laci_alloc((size_t)q->n_layers + 1, sizeof *to->layers);
  if (!to->layers) return laci_fail_memory(err, "the corrections of layers");
  to->n_layers = q->n_layers;
  if (cut->n_fitted == cut->n_batches) return LAC_OK; /* nothing would judge the corrections */
  lac_status st = correct_layers(&c, from, cut, &why);
  if (st == LAC_UNSUPPORTED || st == LAC_BAD_SHAPE || st == LAC_MEMORY_LIMIT) {
    laci_log(LAC_LOG_INFO, "no biases are corrected: %s", why.text);
    laci_quantize_corrections_clear(to);
    return LAC_OK;
  }
  if (st && err) *err = why;
  return st;
}

void laci_quantize_corrections_clear(laci_quantize_corrections *corrections) {
  for (int l = 0; l < corrections->n_layers; l++) {
    laci_free(corrections->layers[l].bias);
    laci_free(corrections->layers[l].added);
  }
  laci_free(corrections->layers);
  *corrections = (laci_quantize_corrections){0};
}

/* ---- The network ---- */

/* Counts the corrected layers. */
static int count_corrected(const laci_quantize_corrections *corrections) {
  int n = 0;
  for (int l = 0; l < corrections->n_layers; l++)
    n += corrections->layers[l].bias || corrections->layers[l].added;
  return n;
}

/* Did the corrections make the network's outputs worse on samples held back? */
static bool is_worse(const laci_quantization *corrected, const laci_output_difference *plain,
                     const char *plain_reason) {
  if (corrected->outputs_reason || plain_reason || plain->n_samples == 0) return false;
  return laci_worst_part_shift(&corrected->outputs) > laci_worst_part_shift(plain);
}

lac_status laci_quantize_corrected(const laci_weighted_graph *from, laci_onnx *file,
                                   const laci_quantize_options *options,
                                   const laci_quantize_trial *trial,
                                   laci_quantization **quantization, lac_error *err) {
  if (options->form == LACI_QUANTIZE_DYNAMIC)
    return laci_quantize_once(from, file, options, trial, quantization, err);
  laci_affine *scales = laci_alloc((size_t)from->graph->n_values + 1, sizeof *scales);
  laci_quantize_corrections corrections = {0};
  laci_quantize_trial one = *trial;
  one.found = scales;
  one.find = &corrections;
  *quantization = NULL;
  if (!scales) return laci_fail_memory(err, "the scales of values");
  lac_status st = laci_quantize_once(from, file, options, &one, quantization, err);
  one.quantizers = scales;
  one.found = trial->found;
  one.find = NULL;
  one.use = corrections.layers ? &corrections : NULL;
  const int n = count_corrected(&corrections);
  if (!st) {
    const laci_output_difference plain = (*quantization)->outputs;
    const bool compared = !(*quantization)->outputs_reason;
    laci_quantization_destroy(*quantization);
    *quantization = NULL;
    st = laci_quantize_once(from, file, options, &one, quantization, err);
    if (!st && n > 0 && is_worse(*quantization, &plain, compared ? NULL : "")) {
      laci_quantization_destroy(*quantization);
      one.use = NULL;
      st = laci_quantize_once(from, file, options, &one, quantization, err);
    }
  }
  if (!st && one.use) (*quantization)->n_corrected = n;
  if (!st && n > 0)
    laci_log(LAC_LOG_DEBUG, "the biases of %d layer%s %s corrected", n, laci_plural(n),
             one.use ? "are" : "would make the outputs worse, and are not");
  laci_quantize_corrections_clear(&corrections);
  laci_free(scales);
  return st;
}
