/* SPDX-License-Identifier: Apache-2.0
 * Corrects quantized layers on samples: rounds their weights to the inputs (round.c), and their
 * biases to the outputs (Nagel and others, "Data-free quantization", 2019, with samples in place of
 * statistics).
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
#include "graph/op.h"
#include "quantize/correct_in.h"

enum { MOST_SAMPLES = 256 }; /* limit of the samples that are fitted to */

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
static const laci_node *find_producer(const laci_correcting *c, int value) {
  const int producer = value < 0 ? -1 : c->graph->values[value].producer;
  return producer < 0 ? NULL : &c->graph->nodes[producer];
}

static int find_stored_input(const laci_correcting *c, const laci_node *node, int port) {
  const int value = node && port < node->n_inputs ? node->inputs[port] : -1;
  return value < 0 ? -1 : c->graph->values[value].stored;
}

/* Finds the integers of the layer's weight in the quantized network, and their scales. */
static bool find_weight(const laci_correcting *c, const laci_node *node, laci_correct_site *to) {
  const laci_node *up = find_producer(c, node->inputs[c->q->layers[to->layer].port]);
  const int scales = find_stored_input(c, up, 1);
  to->weight = find_stored_input(c, up, 0);
  if (to->weight < 0 || scales < 0) return false;
  to->weight_scales = (const float *)(const void *)c->graph->stored[scales].bytes;
  return true;
}

/* Finds the stored bias of the layer's node in the quantized network, and its scales. */
static void find_bias(const laci_correcting *c, const laci_node *node, const laci_node *add,
                      laci_correct_site *to) {
  const laci_quantize_layer *layer = &c->q->layers[to->layer];
  to->bias = -1;
  if (add) {
    to->bias = find_stored_input(c, add, layer->add_port);
    return;
  }
  const laci_node *up = node->n_inputs > 2 ? find_producer(c, node->inputs[2]) : NULL;
  const int integers = find_stored_input(c, up, 0), scales = find_stored_input(c, up, 1);
  if (integers < 0 || scales < 0 || c->graph->stored[integers].dtype != LAC_DTYPE_I32) return;
  to->bias = integers;
  to->scales = (const float *)(const void *)c->graph->stored[scales].bytes;
}

static bool find_site(const laci_correcting *c, int l, laci_correct_site *to) {
  const laci_graph *graph = c->q->graph;
  const laci_quantize_layer *layer = &c->q->layers[l];
  if (layer->reason) return false;
  const laci_node *last = &graph->nodes[layer->add >= 0    ? layer->add
                                        : layer->norm >= 0 ? layer->norm
                                                           : layer->node];
  *to = (laci_correct_site){.layer = l,
                            .output = last->outputs[0],
                            .float_input = graph->nodes[layer->node].inputs[layer->other]};
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
  to->axis = is_window ? 1 : layer->port == 1 ? rank - 1 : rank - 2;
  to->n = laci_quantize_count_channels(c->q, layer);
  find_bias(c, node, add, to);
  return to->axis >= 0 && find_weight(c, node, to);
}

static lac_status find_sites(laci_correcting *c, lac_error *err) {
  c->sites = laci_alloc((size_t)c->q->n_layers + 1, sizeof *c->sites);
  if (!c->sites) return laci_fail_memory(err, "the corrections of layers");
  for (int l = 0; l < c->q->n_layers; l++) c->n_sites += find_site(c, l, &c->sites[c->n_sites]);
  return LAC_OK;
}

/* ---- Samples ---- */

/* Lists batches for the means, spread evenly over the samples, and then those held back. */
static lac_status choose_batches(laci_correcting *c, const laci_calibration_cut *cut,
                                 lac_error *err) {
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

/* Opens the sequence of the network in floats, which stops at the inputs and outputs of layers, or
 * of the quantized one, which stops at inputs. */
static lac_status open_sequence(const laci_correcting *c, const laci_weighted_graph *from,
                                bool is_quantized, laci_sequence **sequence, lac_error *err) {
  int *stops = laci_alloc(2 * (size_t)c->n_sites + 1, sizeof *stops);
  if (!stops) return laci_fail_memory(err, "the corrections of layers");
  for (int k = 0; k < c->n_sites; k++) {
    if (is_quantized) stops[k] = c->sites[k].input;
    if (is_quantized) continue;
    stops[laci_correct_input_stop(k)] = c->sites[k].float_input;
    stops[laci_correct_output_stop(k)] = c->sites[k].output;
  }
  const laci_sequence_options how = {.stops = stops,
                                     .n_stops = is_quantized ? c->n_sites : 2 * c->n_sites,
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

/* ---- The differences of a layer's outputs ---- */

/** Sums over the differences between a layer's float outputs and its quantized ones. */
typedef struct channel_sums {
  double *fitted;         /* [n] sums of the differences over the samples that are fitted to */
  double *held;           /* [n] the same over samples held back */
  double count, n_held;   /* number of summed differences of each channel: fitted and held back */
  double squares, energy; /* sum of the squared differences, and of the squared float outputs, over
                             the samples held back */
} channel_sums;

/** A layer whose differences are summed. */
typedef struct summing {
  const laci_correcting *c;
  const laci_correct_site *at;
  int stop; /* index of the stop of the float outputs */
  channel_sums *sums;
  laci_shape *shape; /* out: shape of the layer's outputs in a batch */
  float *buffer;     /* float outputs of a batch */
  int64_t capacity;  /* number of elements that the buffer holds */
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
  channel_sums *sums = s->sums;
  const int64_t count = laci_shape_count(seen->shape), n = s->at->n;
  const int64_t inner = laci_shape_count_range(seen->shape, s->at->axis + 1, seen->shape->rank);
  const bool held = seen->batch >= s->c->n_fitted;
  double *to = held ? sums->held : sums->fitted;
  const float *y = NULL;
  if (seen->shape->dims[s->at->axis] != n)
    return laci_fail(err, LAC_UNSUPPORTED, "its outputs have another number of channels");
  lac_status st = grow_buffer(s, count, err);
  if (!st) st = laci_sequence_read_stop(s->c->floats, s->stop, seen->batch, s->buffer, &y, err);
  if (st) return st;
  *s->shape = *seen->shape;
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
    sums->squares += squares;
    sums->energy += energy;
  }
  *(held ? &sums->n_held : &sums->count) += (double)(count / n);
  return LAC_OK;
}

/* ---- A layer ---- */

/** Constants that a layer could have. */
typedef struct candidate {
  channel_sums sums;
  int8_t *weight; /* integers of the weight; NULL: the nearest ones */
  uint8_t *bias;  /* corrected bias; NULL: it is not corrected */
  double error;   /* sum of the squared differences over samples held back, after the correction */
  laci_shape shape; /* shape of the layer's outputs in a batch */
} candidate;

static void candidate_clear(candidate *x) {
  laci_free(x->sums.fitted);
  laci_free(x->sums.held);
  laci_free(x->weight);
  laci_free(x->bias);
}

/* Sets the bytes of the corrected bias, and shift[n]: by how much each channel moves. */
static void shift_bias(const laci_correcting *c, const laci_correct_site *at,
                       const channel_sums *sums, double *shift, uint8_t *bytes) {
  enum { MOST = 1 << 30 };
  const uint8_t *from = c->graph->stored[at->bias].bytes;
  for (int64_t k = 0; k < at->n; k++, from += 4, bytes += 4) {
    const double wanted = sums->fitted[k] / sums->count;
    if (at->scales) {
      int32_t old;
      memcpy(&old, from, sizeof old);
      const double scale = (double)at->scales[k];
      const int32_t now = (int32_t)laci_clamp_to_range(rint(old + wanted / scale), -MOST, MOST);
      shift[k] = ((double)now - old) * scale;
      memcpy(bytes, &now, sizeof now);
    } else {
      float old;
      memcpy(&old, from, sizeof old);
      const float now = (float)((double)old + wanted);
      shift[k] = (double)now - (double)old;
      memcpy(bytes, &now, sizeof now);
    }
  }
}

/* Corrects the candidate's bias by its sums, if its error falls. */
static lac_status correct_bias(const laci_correcting *c, const laci_correct_site *at, candidate *x,
                               lac_error *err) {
  const channel_sums *sums = &x->sums;
  x->error = sums->squares;
  if (at->bias < 0 || !(sums->count > 0)) return LAC_OK;
  double *shift = laci_alloc((size_t)at->n, sizeof *shift), error = sums->squares;
  x->bias = laci_alloc((size_t)at->n, sizeof(int32_t));
  if (!shift || !x->bias) {
    laci_free(shift);
    return laci_fail_memory(err, "the corrections of layers");
  }
  shift_bias(c, at, sums, shift, x->bias);
  for (int64_t n = 0; n < at->n; n++)
    error += shift[n] * (sums->n_held * shift[n] - 2 * sums->held[n]);
  laci_free(shift);
  if (error < sums->squares) {
    x->error = fmax(error, 0);
  } else {
    laci_free(x->bias);
    x->bias = NULL;
  }
  return LAC_OK;
}

/* Measures the differences that the layer's outputs have with the candidate's weight. */
static lac_status measure_candidate(const laci_correcting *c, const laci_correct_site *at,
                                    candidate *x, lac_error *err) {
  summing s = {.c = c,
               .at = at,
               .stop = laci_correct_output_stop((int)(at - c->sites)),
               .sums = &x->sums,
               .shape = &x->shape};
  x->sums.fitted = laci_alloc((size_t)at->n, sizeof(double));
  x->sums.held = laci_alloc((size_t)at->n, sizeof(double));
  if (!x->sums.fitted || !x->sums.held) return laci_fail_memory(err, "the corrections of layers");
  const uint8_t *nearest = c->graph->stored[at->weight].bytes;
  laci_sequence_set_weight(c->integers, at->weight,
                           x->weight ? (const uint8_t *)x->weight : nearest);
  lac_status st = laci_sequence_look_ahead(c->integers, at->quantized, add_batch, &s, err);
  laci_free(s.buffer);
  return st ? st : correct_bias(c, at, x, err);
}

/* Makes the candidate the layer's correction. Takes over its weight and bias. */
static void take_candidate(laci_correcting *c, const laci_correct_site *at, candidate *x,
                           double error_before) {
  laci_quantize_correction *to = &c->q->trial->find->layers[at->layer];
  const double energy = x->sums.energy > 0 ? x->sums.energy : 1;
  to->n = at->n;
  to->error_before = error_before / energy;
  to->error_after = x->error / energy;
  to->weight = x->weight;
  if (at->scales) to->bias = (int32_t *)(void *)x->bias;
  else to->added = (float *)(void *)x->bias;
  laci_sequence_set_weight(
      c->integers, at->weight,
      x->weight ? (const uint8_t *)x->weight : c->graph->stored[at->weight].bytes);
  if (x->bias) laci_sequence_set_weight(c->integers, at->bias, x->bias);
  x->weight = NULL;
  x->bias = NULL;
}

static lac_status run_and_correct_layer(laci_correcting *c, int k, lac_error *err) {
  const laci_correct_site *at = &c->sites[k];
  candidate nearest = {.weight = NULL}, fitted = {.weight = NULL};
  lac_status st = laci_sequence_advance(c->floats, laci_correct_input_stop(k), NULL, NULL, err);
  if (!st) st = laci_sequence_advance(c->floats, laci_correct_output_stop(k), NULL, NULL, err);
  if (!st) st = laci_sequence_advance(c->integers, k, NULL, NULL, err);
  if (!st) st = measure_candidate(c, at, &nearest, err);
  if (!st && !c->q->trial->only_biases)
    st = laci_correct_round_weight(c, k, &nearest.shape, &fitted.weight, err);
  if (!st && fitted.weight) st = measure_candidate(c, at, &fitted, err);
  if (!st) {
    const bool fits = fitted.weight && fitted.error < nearest.error;
    take_candidate(c, at, fits ? &fitted : &nearest, nearest.sums.squares);
  }
  candidate_clear(&nearest);
  candidate_clear(&fitted);
  return st;
}

static lac_status correct_layers(laci_correcting *c, const laci_weighted_graph *from,
                                 const laci_calibration_cut *cut, lac_error *err) {
  const uint8_t **weights = laci_quantize_match_weights(from, c->graph);
  const laci_weighted_graph quantized = {c->graph, weights};
  lac_status st = weights ? find_sites(c, err) : laci_fail_memory(err, "the corrections of layers");
  if (!st) st = choose_batches(c, cut, err);
  if (!st && c->n_sites > 0) st = open_sequence(c, from, false, &c->floats, err);
  if (!st && c->n_sites > 0) st = open_sequence(c, &quantized, true, &c->integers, err);
  for (int k = 0; k < c->n_sites && !st; k++) {
    st = run_and_correct_layer(c, k, err);
    laci_progress("correcting layers", k + 1, c->n_sites);
  }
  laci_sequence_close(c->floats);
  laci_sequence_close(c->integers);
  laci_free(c->sites);
  laci_free(c->firsts);
  laci_free(weights);
  return st;
}

lac_status laci_quantize_find_corrections(laci_quantizing *q, const laci_weighted_graph *from,
                                          const laci_calibration_cut *cut, lac_error *err) {
  laci_quantize_corrections *to = q->trial->find;
  laci_correcting c = {.q = q, .graph = q->out->graph};
  lac_error why = {0};
  to->layers = laci_alloc((size_t)q->n_layers + 1, sizeof *to->layers);
  if (!to->layers) return laci_fail_memory(err, "the corrections of layers");
  to->n_layers = q->n_layers;
  if (cut->n_fitted == cut->n_batches) return LAC_OK; /* nothing would judge the corrections */
  lac_status st = correct_layers(&c, from, cut, &why);
  if (st == LAC_UNSUPPORTED || st == LAC_BAD_SHAPE || st == LAC_MEMORY_LIMIT) {
    laci_log(LAC_LOG_INFO, "no layers are corrected: %s", why.text);
    laci_quantize_corrections_clear(to);
    return LAC_OK;
  }
  if (st && err) *err = why;
  return st;
}

void laci_quantize_corrections_clear(laci_quantize_corrections *corrections) {
  for (int l = 0; l < corrections->n_layers; l++) {
    laci_free(corrections->layers[l].weight);
    laci_free(corrections->layers[l].bias);
    laci_free(corrections->layers[l].added);
  }
  laci_free(corrections->layers);
  *corrections = (laci_quantize_corrections){0};
}

/* ---- The network ---- */

/** The attempts to correct a network. */
typedef struct attempts {
  const laci_weighted_graph *from;
  laci_onnx *file;
  const laci_quantize_options *how;
  const laci_quantize_trial *trial;
  laci_affine *scales; /* [n_values] the scales of the first attempt */
  bool has_scales;
} attempts;

/* Counts the corrected layers. */
static int count_corrected(const laci_quantize_corrections *corrections) {
  int n = 0;
  for (int l = 0; l < corrections->n_layers; l++)
    n += corrections->layers[l].weight || corrections->layers[l].bias ||
         corrections->layers[l].added;
  return n;
}

/* Did the corrections make the network's outputs worse on samples held back? */
static bool is_worse(const laci_quantization *corrected, const laci_output_difference *plain) {
  if (corrected->outputs.n_samples == 0 || plain->n_samples == 0) return false;
  return laci_worst_part_shift(&corrected->outputs) > laci_worst_part_shift(plain);
}

/* Quantizes the network with the corrections `use`; NULL: with none. */
static lac_status quantize_with(attempts *a, const laci_quantize_corrections *use,
                                laci_quantization **made, lac_error *err) {
  laci_quantize_trial trial = *a->trial;
  if (a->has_scales) trial.quantizers = a->scales;
  trial.find = NULL;
  trial.use = use;
  return laci_quantize_once(a->from, a->file, a->how, &trial, made, err);
}

/* Finds the corrections. *plain: difference of the outputs without them. */
static lac_status find_corrections(attempts *a, bool only_biases, laci_quantize_corrections *found,
                                   laci_output_difference *plain, lac_error *err) {
  laci_quantization *made = NULL;
  laci_quantize_trial trial = *a->trial;
  if (a->has_scales) trial.quantizers = a->scales;
  else trial.found = a->scales;
  trial.find = found;
  trial.only_biases = only_biases;
  lac_status st = laci_quantize_once(a->from, a->file, a->how, &trial, &made, err);
  if (st) return st;
  a->has_scales = true;
  *plain = made->outputs;
  laci_quantization_destroy(made);
  return LAC_OK;
}

/* Quantizes the network with corrections; *made is NULL if there are none, or if they make its
 * outputs worse. */
static lac_status try_corrections(attempts *a, bool only_biases, laci_quantization **made,
                                  lac_error *err) {
  laci_quantize_corrections found = {0};
  laci_output_difference plain;
  *made = NULL;
  lac_status st = find_corrections(a, only_biases, &found, &plain, err);
  const int n = count_corrected(&found);
  if (!st && n > 0) st = quantize_with(a, &found, made, err);
  laci_quantize_corrections_clear(&found);
  if (st || n == 0) return st;
  (*made)->n_corrected = n;
  const bool worse = is_worse(*made, &plain);
  laci_log(LAC_LOG_DEBUG, "%s of %d layer%s corrected%s",
           only_biases ? "biases" : "weights and biases", n, laci_plural(n),
           worse ? ", which makes the outputs worse, and is left out" : "");
  if (!worse) return LAC_OK;
  laci_quantization_destroy(*made);
  *made = NULL;
  return LAC_OK;
}

lac_status laci_quantize_corrected(const laci_weighted_graph *from, laci_onnx *file,
                                   const laci_quantize_options *options,
                                   const laci_quantize_trial *trial,
                                   laci_quantization **quantization, lac_error *err) {
  if (options->form == LACI_QUANTIZE_DYNAMIC)
    return laci_quantize_once(from, file, options, trial, quantization, err);
  attempts a = {.from = from, .file = file, .how = options, .trial = trial};
  *quantization = NULL;
  a.scales = laci_alloc((size_t)from->graph->n_values + 1, sizeof *a.scales);
  if (!a.scales) return laci_fail_memory(err, "the scales of values");
  lac_status st = try_corrections(&a, false, quantization, err);
  if (!st && !*quantization) st = try_corrections(&a, true, quantization, err);
  if (!st && !*quantization) st = quantize_with(&a, NULL, quantization, err);
  laci_free(a.scales);
  return st;
}
