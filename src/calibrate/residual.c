/* SPDX-License-Identifier: Apache-2.0
 * Finds the sum that a layer's output goes to, and adds up the products of what is missing there
 * with the layer's inputs. */
#include "calibrate/residual_in.h"

#include <math.h>
#include <string.h>

#include "base/budget.h"
#include "base/divide.h"
#include "base/error.h"
#include "base/min.h"
#include "calibrate/walk_in.h"
#include "cpu/pool.h"
#include "graph/op.h"
#include "kernel/gram/dots.h"
#include "tensor/buf.h"

enum { BLOCK = 2048, DISTANCE = BLOCK + LACI_DOTS_LANES, TILE = 64, MOST_LINKS = 8 };
/* Channels with a scale below this part of the largest one hardly reach the sum: what is missing
 * there cannot be made up for by them. */
static const double least_scale = 1e-3;

/* ---- Finding the sum ---- */

/* Returns the stored floats that are an input of the node, if n->weights has them; else NULL. */
static const laci_stored *find_weight_floats(const laci_network *n, const laci_node *node,
                                             int port) {
  const laci_stored *stored = laci_node_find_stored_floats(&n->graph, node, port);
  return stored && n->weights[stored - n->graph.stored] ? stored : NULL;
}

/* Is the node a batch normalization of the value, by stored statistics? */
static bool is_stored_norm(const laci_network *n, const laci_node *node, int value) {
  const laci_stored *scale = find_weight_floats(n, node, 1),
                    *variance = find_weight_floats(n, node, 4);
  return laci_node_is(node, "BatchNormalization") && node->inputs[0] == value && scale &&
         variance && scale->shape.rank == 1 && variance->shape.rank == 1 &&
         scale->shape.dims[0] == variance->shape.dims[0] &&
         laci_node_int(node, "training_mode", 0) == 0;
}

static bool has_same_shape(const laci_network *n, int a, int b) {
  const laci_type *x = &n->graph.values[a].type, *y = &n->graph.values[b].type;
  return laci_dtype_is_float(y->dtype) && laci_shape_is_known(&x->shape) &&
         laci_shape_equal(&x->shape, &y->shape);
}

/* Follows the layer's output through normalizations and biases to a sum. Returns the sum's other
 * term, and -1 where there is none. *norm: index of the normalization that was passed; -1: none. */
static int find_other_term(const laci_network *n, int value, int *norm) {
  *norm = -1;
  for (int link = 0; link < MOST_LINKS; link++) {
    const laci_value *v = &n->graph.values[value];
    if (v->n_readers != 1 || v->is_output) return -1;
    const int reader = v->readers[0];
    const laci_node *node = &n->graph.nodes[reader];
    if (*norm < 0 && is_stored_norm(n, node, value)) {
      *norm = reader;
    } else if (laci_node_is(node, "Add") && node->n_inputs == 2) {
      const int other = node->inputs[node->inputs[0] == value];
      if (other < 0 || other == value) return -1;
      if (!n->constant[other]) return has_same_shape(n, value, other) ? other : -1;
    } else {
      return -1;
    }
    if (node->outputs[0] < 0 || !has_same_shape(n, value, node->outputs[0])) return -1;
    value = node->outputs[0];
  }
  return -1;
}

/* Are the layer's positions in the order of its output's elements? */
static bool are_positions_in_output_order(const laci_network *n, const laci_matrix_layer *l) {
  const laci_node *node = &n->graph.nodes[l->node];
  int64_t positions = 1;
  for (int i = 0; i < LACI_UNFOLD_AXES; i++) positions *= l->unfold.axis[i].out;
  return laci_node_is(node, "Conv") ||
         (!l->is_recurrent && positions == 1 &&
          (laci_node_is(node, "Gemm") || laci_node_is(node, "MatMul")));
}

static int find_residual(const laci_walk_state *w, const laci_matrix_layer *layer, int *norm) {
  const laci_network *n = w->network;
  const int output = n->graph.nodes[layer->node].outputs[0];
  if (w->n_shape_sets > 1 || w->options->symmetric || !w->plan.differs[layer->value] ||
      output < 0 || !are_positions_in_output_order(n, layer))
    return -1;
  const int other = find_other_term(n, output, norm);
  return other >= 0 && w->plan.differs[other] ? other : -1;
}

static bool is_stored_for_all_batches(const laci_walk_state *w, int value) {
  for (int stream = 0; stream < LACI_STREAMS; stream++) {
    const laci_stored_batches *kept = w->kept[stream][value];
    if (!kept || kept->first != 0 || kept->n != w->cut.n_batches) return false;
  }
  return true;
}

/* ---- Setting up ---- */

static lac_status compute_factors(laci_residual *r, const laci_network *n, int norm,
                                  lac_error *err) {
  const int64_t channels = r->outputs.groups * r->outputs.channels;
  r->factor = laci_alloc((size_t)channels, sizeof *r->factor);
  if (!r->factor) return laci_fail_memory(err, "sums over a layer's inputs");
  for (int64_t c = 0; c < channels; c++) r->factor[c] = 1;
  if (norm < 0) return LAC_OK;
  const laci_node *node = &n->graph.nodes[norm];
  const laci_stored *scale = find_weight_floats(n, node, 1),
                    *variance = find_weight_floats(n, node, 4);
  const double epsilon = (double)laci_node_float(node, "epsilon", 1e-5F);
  double largest = 0;
  if (scale->shape.dims[0] != channels) {
    r->value = -1;
    return LAC_OK;
  }
  for (int64_t c = 0; c < channels; c++) {
    double s, v;
    laci_read_f64(scale->dtype, n->weights[scale - n->graph.stored], c, 1, &s);
    laci_read_f64(variance->dtype, n->weights[variance - n->graph.stored], c, 1, &v);
    r->factor[c] = v + epsilon > 0 ? s / sqrt(v + epsilon) : 0;
    largest = fmax(largest, fabs(r->factor[c]));
  }
  for (int64_t c = 0; c < channels; c++)
    r->factor[c] = fabs(r->factor[c]) > least_scale * largest ? 1 / r->factor[c] : 0;
  return LAC_OK;
}

static laci_unfold describe_outputs(const laci_matrix_layer *l) {
  laci_unfold to = {.images = l->unfold.images, .groups = l->unfold.groups, .channels = l->rows};
  for (int i = 0; i < LACI_UNFOLD_AXES; i++) {
    const int64_t size = l->unfold.axis[i].out;
    to.axis[i] = (laci_unfold_axis){
        .in = size, .out = size, .kernel = 1, .stride = 1, .dilation = 1, .pad = 0};
  }
  return to;
}

lac_status laci_residual_init(laci_residual *r, const laci_walk_state *w,
                              const laci_matrix_layer *layer, const laci_grams *grams,
                              lac_error *err) {
  int norm;
  *r = (laci_residual){
      .value = find_residual(w, layer, &norm), .layer = layer, .outputs = describe_outputs(layer)};
  if (r->value >= 0 && (grams->most_waiting > 1 || !is_stored_for_all_batches(w, r->value)))
    r->value = -1;
  if (r->value < 0) return LAC_OK;
  const int64_t groups = r->outputs.groups;
  const uint64_t bytes = laci_network_value_bytes(w->network, r->value);
  r->sums = laci_alloc((size_t)(groups * layer->rows * layer->columns), sizeof *r->sums);
  r->correction = laci_alloc((size_t)bytes, 1);
  r->lines = laci_alloc((size_t)((layer->columns + layer->rows) * DISTANCE), sizeof *r->lines);
  if (!r->sums || !r->correction || !r->lines)
    return laci_fail_memory(err, "sums over a layer's inputs");
  return compute_factors(r, w->network, norm, err);
}

void laci_residual_clear(laci_residual *r) {
  laci_free(r->factor);
  laci_free(r->sums);
  laci_free(r->correction);
  laci_free(r->lines);
  *r = (laci_residual){.value = -1};
}

uint64_t laci_residual_memory_bytes(const laci_walk_state *w, const laci_matrix_layer *layer) {
  int norm;
  const int value = find_residual(w, layer, &norm);
  if (value < 0) return 0;
  return laci_count_bytes_saturated(layer->unfold.groups * layer->rows * layer->columns,
                                    sizeof(double)) +
         laci_count_bytes_saturated((layer->columns + layer->rows) * DISTANCE, sizeof(float)) +
         (uint64_t)(2 + w->n_workers) * laci_network_value_bytes(w->network, value);
}

/* ---- A batch ---- */

/* The other term in a batch. */
typedef struct term {
  const float *at;
  float *buffer; /* memory that the caller frees; NULL: the term is stored in memory */
} term;

static lac_status load_term(const laci_walk_state *w, int stream, int value, int64_t batch,
                            term *to, lac_error *err) {
  const laci_stored_batches *kept = w->kept[stream][value];
  to->at = laci_stored_batches_address(kept, batch);
  if (to->at) return LAC_OK;
  to->at = to->buffer = laci_alloc(kept->batch_bytes, 1);
  if (!to->buffer) return laci_fail_memory(err, "a layer's outputs");
  return laci_stored_batches_read(kept, batch, to->buffer, err);
}

lac_status laci_residual_compute(const laci_residual *r, const laci_walk_state *w, int64_t batch,
                                 float *correction, lac_error *err) {
  const int64_t channels = r->outputs.groups * r->outputs.channels;
  const int64_t inner = laci_unfold_n_positions(&r->outputs) / r->outputs.images;
  term terms[LACI_STREAMS] = {{NULL, NULL}, {NULL, NULL}};
  lac_status st = LAC_OK;
  for (int stream = 0; stream < LACI_STREAMS && !st; stream++)
    st = load_term(w, stream, r->value, batch, &terms[stream], err);
  for (int64_t line = 0; line < r->outputs.images * channels && !st; line++) {
    const double factor = r->factor[line % channels];
    const float *dense = terms[LACI_STREAM_DENSE].at + line * inner;
    const float *pruned = terms[LACI_STREAM_PRUNED].at + line * inner;
    for (int64_t p = 0; p < inner; p++)
      correction[line * inner + p] = (float)(factor * ((double)dense[p] - (double)pruned[p]));
  }
  for (int stream = 0; stream < LACI_STREAMS; stream++) laci_free(terms[stream].buffer);
  return st;
}

/* A block of positions of one group. */
typedef struct block {
  laci_residual *r;
  laci_unfold_lines inputs, corrections;
  laci_dots_kernel *kernel;
} block;

static void fill_line_range(int64_t begin, int64_t end, void *context) {
  const block *b = context;
  const int64_t columns = b->r->layer->columns;
  if (begin < columns) laci_unfold_fill_lines(&b->inputs, begin, laci_min(end, columns));
  if (end > columns)
    laci_unfold_fill_lines(&b->corrections, begin > columns ? begin - columns : 0, end - columns);
}

static void multiply_tiles(int64_t begin, int64_t end, void *context) {
  const block *b = context;
  const laci_matrix_layer *l = b->r->layer;
  for (int64_t tile = begin; tile < end; tile++) {
    const int64_t first = tile * TILE;
    const laci_dots dots = {.m = (int)l->rows,
                            .n = (int)laci_min(TILE, l->columns - first),
                            .a = b->corrections.lines,
                            .b = b->inputs.lines + first * DISTANCE,
                            .lda = DISTANCE,
                            .ldb = DISTANCE,
                            .ldo = l->columns,
                            .n_runs = 1,
                            .length = laci_ceil_div(b->inputs.n, LACI_DOTS_LANES) * LACI_DOTS_LANES,
                            .out = b->r->sums + b->inputs.group * l->rows * l->columns + first};
    b->kernel(&dots);
  }
}

static void add_block(block *b, laci_pool *pool) {
  const laci_matrix_layer *l = b->r->layer;
  laci_pool_for(pool, l->columns + l->rows, 8, fill_line_range, b);
  laci_pool_for(pool, laci_ceil_div(l->columns, TILE), 1, multiply_tiles, b);
}

lac_status laci_residual_add(laci_residual *r, const laci_walk_state *w, const laci_grams *grams,
                             const float *pruned, int64_t batch, lac_error *err) {
  if (r->value < 0) return LAC_OK;
  lac_status st = laci_residual_compute(r, w, batch, r->correction, err);
  if (st) return st;
  const int64_t all = laci_unfold_n_positions(&grams->unfold);
  const int64_t n = grams->positions ? laci_min(grams->most, all) : all;
  const laci_unfold_lines inputs = {.unfold = &r->layer->unfold,
                                    .value = pruned,
                                    .positions = grams->positions,
                                    .lines = r->lines,
                                    .distance = DISTANCE};
  laci_unfold_lines corrections = inputs;
  corrections.unfold = &r->outputs;
  corrections.value = r->correction;
  corrections.lines = r->lines + r->layer->columns * DISTANCE;
  block b = {r, inputs, corrections, laci_dots_variant()};
  for (int64_t group = 0; group < r->outputs.groups; group++) {
    for (int64_t first = 0; first < n; first += BLOCK) {
      b.inputs.group = b.corrections.group = group;
      b.inputs.first = b.corrections.first = first;
      b.inputs.n = b.corrections.n = laci_min(BLOCK, n - first);
      add_block(&b, w->options->pool);
    }
  }
  return LAC_OK;
}
