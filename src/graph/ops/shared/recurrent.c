/* SPDX-License-Identifier: Apache-2.0
 * The common code of LSTM, GRU and RNN (recurrent_in.h). One index of the parallel loop is one
 * sequence in one direction; its products with w are computed step by step. */
#include "graph/coupling.h"
#include "graph/ops/shared/integer_in.h"
#include "graph/ops/shared/recurrent_in.h"
#include "tensor/buf.h"

#include <math.h>
#include <strings.h>

#include "base/error.h"
#include "base/memory.h"

enum { X, W, R, BIAS, LENGTHS, INITIAL_H, INITIAL_C, PEEPHOLE };

/* ---- Activations ---- */

static double relu(double x, double a, double b) { return (void)a, (void)b, x > 0 ? x : 0; }
static double tanh_of(double x, double a, double b) { return (void)a, (void)b, tanh(x); }
static double logistic(double x, double a, double b) { return (void)a, (void)b, 1 / (1 + exp(-x)); }
static double affine_function(double x, double a, double b) { return a * x + b; }
static double leaky_relu(double x, double a, double b) { return (void)b, x < 0 ? a * x : x; }
static double thresholded_relu(double x, double a, double b) { return (void)b, x > a ? x : 0; }
static double scaled_tanh(double x, double a, double b) { return a * tanh(b * x); }
static double hard_sigmoid(double x, double a, double b) { return fmin(fmax(a * x + b, 0), 1); }
static double elu(double x, double a, double b) { return (void)b, x < 0 ? a * expm1(x) : x; }
static double softsign(double x, double a, double b) { return (void)a, (void)b, x / (1 + fabs(x)); }
static double softplus(double x, double a, double b) {
  return (void)a, (void)b, fmax(x, 0) + log1p(exp(-fabs(x)));
}

/** An activation, and which of alpha and beta it has; a function takes its values from the lists in
 * order. */
typedef struct known_activation {
  const char *name;
  double (*f)(double x, double alpha, double beta);
  bool has_alpha, has_beta;
  double alpha, beta; /* defaults, used where the lists have no more numbers */
} known_activation;

static const known_activation known_activations[] = {
    {"Relu", relu, false, false, 0, 0},
    {"Tanh", tanh_of, false, false, 0, 0},
    {"Sigmoid", logistic, false, false, 0, 0},
    {"Affine", affine_function, true, true, 1, 0},
    {"LeakyRelu", leaky_relu, true, false, 0.01, 0},
    {"ThresholdedRelu", thresholded_relu, true, false, 1, 0},
    {"ScaledTanh", scaled_tanh, true, true, 1, 1},
    {"HardSigmoid", hard_sigmoid, true, true, 0.2, 0.5},
    {"Elu", elu, true, false, 1, 0},
    {"Softsign", softsign, false, false, 0, 0},
    {"Softplus", softplus, false, false, 0, 0},
};

static const known_activation *find_activation(const char *name) {
  for (size_t at = 0; at < sizeof known_activations / sizeof *known_activations; at++) {
    if (strcasecmp(name, known_activations[at].name) == 0) return &known_activations[at];
  }
  return NULL;
}

/** Returns number `at` of a list of floats, or `otherwise` where the list is shorter. */
static double list_entry_or_default(const laci_attr *list, size_t at, double otherwise) {
  return list && list->kind == LACI_ATTR_FLOATS && at < list->n ? list->floats[at] : otherwise;
}

/** Reads the activations of all directions, one direction after the other. */
static lac_status read_activations(const laci_node *node, const laci_recurrent *op, int n,
                                   laci_activation *act, lac_error *err) {
  const laci_attr *names = laci_node_attr(node, "activations");
  const laci_attr *alphas = laci_node_attr(node, "activation_alpha");
  const laci_attr *betas = laci_node_attr(node, "activation_beta");
  size_t n_alphas = 0, n_betas = 0;
  bool given = names && names->kind == LACI_ATTR_TEXTS && names->n > 0;
  if (given && names->n != (size_t)n) {
    return laci_node_fail(node, err, LAC_BAD_FILE, "%zu activations, wanted %d", names->n, n);
  }
  for (int at = 0; at < n; at++) {
    const char *name = given ? names->texts[at] : op->activations[at % op->n_activations];
    const known_activation *known = find_activation(name);
    if (!known) return laci_node_fail(node, err, LAC_UNSUPPORTED, "activation '%s'", name);
    act[at] = (laci_activation){.f = known->f, .alpha = known->alpha, .beta = known->beta};
    if (known->has_alpha) act[at].alpha = list_entry_or_default(alphas, n_alphas++, known->alpha);
    if (known->has_beta) act[at].beta = list_entry_or_default(betas, n_betas++, known->beta);
  }
  return LAC_OK;
}

double laci_cell_clip_and_activate(const laci_cell *cell, int activation, double x) {
  const laci_activation *act = &cell->act[activation];
  double held = x > cell->clip ? cell->clip : x < -cell->clip ? -cell->clip : x;
  return act->f(held, act->alpha, act->beta);
}

void laci_cell_multiply_recurrence(const laci_cell *cell, int64_t first, const double *v,
                                   double *out) {
  for (int64_t row = first; row < first + cell->hidden; row++) {
    double sum = cell->bias ? cell->bias[row] : 0;
    for (int64_t k = 0; k < cell->hidden; k++) sum += cell->r[row * cell->hidden + k] * v[k];
    out[row - first] = sum;
  }
}

/* ---- Shapes ---- */

static bool is_batch_first(const laci_node *node) { return laci_node_int(node, "layout", 0) != 0; }

static int count_directions(const laci_node *node) {
  return strcmp(laci_node_text(node, "direction", "forward"), "bidirectional") == 0 ? 2 : 1;
}

/** Returns the size of an axis of an input, or -1. */
static int64_t size_of_input_axis(const laci_infer *infer, int port, int axis) {
  const laci_shape *shape = laci_in_shape(infer, port);
  return shape && shape->rank == 3 ? shape->dims[axis] : -1;
}

static lac_status check_weights(laci_infer *infer, const laci_recurrent *op, int64_t hidden) {
  int64_t rows = hidden < 0 ? -1 : hidden * op->n_gates, n = count_directions(infer->node);
  const struct {
    int port, axis;
    int64_t size;
  } wanted[] = {{W, 0, n},    {R, 0, n},      {W, 1, rows},
                {R, 1, rows}, {R, 2, hidden}, {W, 2, size_of_input_axis(infer, X, 2)}};
  for (size_t at = 0; at < sizeof wanted / sizeof *wanted; at++) {
    int64_t found = size_of_input_axis(infer, wanted[at].port, wanted[at].axis);
    if (found < 0 || wanted[at].size < 0 || found == wanted[at].size) continue;
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "axis %d of input %d has size %lld, wanted %lld", wanted[at].axis,
                          wanted[at].port, (long long)found, (long long)wanted[at].size);
  }
  for (int port = X; port <= R; port++) {
    const laci_shape *shape = laci_in_shape(infer, port);
    if (!shape || shape->rank == 3) continue;
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "input %d has %d axes, wanted 3",
                          port, shape->rank);
  }
  return LAC_OK;
}

lac_status laci_recurrent_infer(laci_infer *infer, const laci_recurrent *op) {
  lac_status st = laci_check_n_inputs(infer, 3, op->has_cell ? PEEPHOLE + 1 : INITIAL_H + 1);
  if (st) return st;
  int64_t hidden = size_of_input_axis(infer, R, 2),
          given = laci_node_int(infer->node, "hidden_size", -1);
  st = check_weights(infer, op, hidden);
  if (st) return st;
  bool batch_first = is_batch_first(infer->node);
  int64_t time = size_of_input_axis(infer, X, batch_first ? 1 : 0),
          batch = size_of_input_axis(infer, X, !batch_first);
  const laci_shape *x = laci_in_shape(infer, X);
  if (!x) time = infer->new_symbol(infer), batch = infer->new_symbol(infer);
  if (hidden < 0) hidden = given > 0 ? given : infer->new_symbol(infer);
  int64_t n = count_directions(infer->node);
  for (int out = 0; out < infer->n_out; out++) {
    infer->out[out].dtype = infer->in[X]->dtype;
    laci_shape states = {.rank = 3, .dims = {n, batch, hidden}};
    laci_shape all = {.rank = 4, .dims = {time, n, batch, hidden}};
    if (batch_first) {
      states.dims[0] = batch, states.dims[1] = n;
      all.dims[0] = batch, all.dims[1] = time, all.dims[2] = n;
    }
    infer->out[out].shape = out == 0 ? all : states;
  }
  return LAC_OK;
}

/* ---- Values ---- */

typedef struct job {
  const laci_eval *eval;
  const laci_recurrent *op;
  int64_t n_directions, time, batch, inputs, hidden;
  bool batch_first, backward; /* backward: the first direction runs backward */
  double *work;               /* [n_directions * batch, work_size] scratch memory of each
                                 sequence */
  int64_t work_size;
  laci_activation act[2 * LACI_MAX_ACTIVATIONS];
} job;

/** Returns the offset of the state of a sequence in one direction. */
static int64_t offset_of_state(const job *j, int64_t direction, int64_t sequence) {
  return (j->batch_first ? sequence * j->n_directions + direction
                         : direction * j->batch + sequence) *
         j->hidden;
}

static const double *parameters_of_direction(const job *j, int port, int64_t direction,
                                             int64_t size) {
  const laci_buf *buf = laci_operand(j->eval, port);
  return buf ? buf->f + direction * size : NULL;
}

static void load_initial_state(const job *j, int port, int64_t at, double *state) {
  const laci_buf *initial = laci_operand(j->eval, port);
  for (int64_t k = 0; k < j->hidden; k++) state[k] = initial ? initial->f[at + k] : 0;
}

static void write_state(laci_buf *to, int64_t at, const double *state, int64_t n) {
  if (to) memcpy(to->f + at, state, (size_t)n * sizeof *state);
}

/** Computes out = w x + bias for all gates. */
static void compute_input_products(const job *j, int64_t direction, const double *x, double *out) {
  int64_t rows = j->op->n_gates * j->hidden;
  const double *w = parameters_of_direction(j, W, direction, rows * j->inputs);
  const double *bias = parameters_of_direction(j, BIAS, direction, 2 * rows);
  for (int64_t row = 0; row < rows; row++) {
    double sum = bias ? bias[row] : 0;
    for (int64_t k = 0; k < j->inputs; k++) sum += w[row * j->inputs + k] * x[k];
    out[row] = sum;
  }
}

static double *work_of_sequence(const job *j, int64_t direction, int64_t sequence) {
  return j->work + (direction * j->batch + sequence) * j->work_size;
}

static int64_t length_of_sequence(const job *j, int64_t sequence) {
  const laci_buf *lengths = laci_operand(j->eval, LENGTHS);
  const int64_t length = lengths ? laci_buf_get_i(lengths, sequence) : j->time;
  return length < j->time ? length : j->time;
}

static laci_cell cell_of_sequence(const job *j, int64_t direction, int64_t sequence) {
  const int64_t rows = j->op->n_gates * j->hidden;
  double *work = work_of_sequence(j, direction, sequence);
  const double *bias = parameters_of_direction(j, BIAS, direction, 2 * rows);
  laci_cell cell = {.hidden = j->hidden,
                    .x = work,
                    .gates = work + rows,
                    .h = work + 2 * rows,
                    .h_read = work + 2 * rows,
                    .c = work + 2 * rows + j->hidden,
                    .r = parameters_of_direction(j, R, direction, rows * j->hidden),
                    .bias = bias ? bias + rows : NULL,
                    .clip = laci_node_float(j->eval->node, "clip", INFINITY),
                    .flag = j->op->flag && laci_node_int(j->eval->node, j->op->flag, 0)};
  if (j->op->has_cell)
    cell.peephole = parameters_of_direction(j, PEEPHOLE, direction, 3 * j->hidden);
  memcpy(cell.act, j->act + direction * j->op->n_activations,
         (size_t)j->op->n_activations * sizeof *cell.act);
  return cell;
}

static void begin_sequence(const job *j, int64_t direction, int64_t sequence) {
  const laci_cell cell = cell_of_sequence(j, direction, sequence);
  const int64_t state = offset_of_state(j, direction, sequence);
  load_initial_state(j, INITIAL_H, state, cell.h);
  if (j->op->has_cell) load_initial_state(j, INITIAL_C, state, cell.c);
}

/** h_read: the hidden state as products read it; NULL: as it is. */
static void run_step(const job *j, int64_t direction, int64_t sequence, int64_t step,
                     const double *h_read) {
  laci_cell cell = cell_of_sequence(j, direction, sequence);
  const bool backward = direction == 1 || j->backward;
  const int64_t t = backward ? length_of_sequence(j, sequence) - 1 - step : step;
  const int64_t x = j->batch_first ? sequence * j->time + t : t * j->batch + sequence;
  if (h_read) cell.h_read = h_read;
  compute_input_products(j, direction, j->eval->in[X]->f + x * j->inputs,
                         work_of_sequence(j, direction, sequence));
  j->op->step(&cell);
  const int64_t y = j->batch_first
                        ? (x * j->n_directions + direction) * j->hidden
                        : ((t * j->n_directions + direction) * j->batch + sequence) * j->hidden;
  write_state(laci_result(j->eval, 0), y, cell.h, j->hidden);
}

static void end_sequence(const job *j, int64_t direction, int64_t sequence) {
  const laci_cell cell = cell_of_sequence(j, direction, sequence);
  const int64_t state = offset_of_state(j, direction, sequence);
  write_state(laci_result(j->eval, 1), state, cell.h, j->hidden);
  if (j->op->has_cell) write_state(laci_result(j->eval, 2), state, cell.c, j->hidden);
}

static void run_sequences(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  for (int64_t at = begin; at < end; at++) {
    const int64_t direction = at / j->batch, sequence = at % j->batch;
    begin_sequence(j, direction, sequence);
    for (int64_t step = 0; step < length_of_sequence(j, sequence); step++)
      run_step(j, direction, sequence, step, NULL);
    end_sequence(j, direction, sequence);
  }
}

/* ---- Values, where hidden states are quantized: all sequences make each step together ---- */

static laci_dynamic_range find_range_of_states(const job *j, int64_t direction, int64_t step) {
  float low = 0, high = 0;
  for (int64_t sequence = 0; sequence < j->batch; sequence++) {
    if (step >= length_of_sequence(j, sequence)) continue;
    const laci_cell cell = cell_of_sequence(j, direction, sequence);
    for (int64_t k = 0; k < j->hidden; k++) {
      low = fminf(low, (float)cell.h[k]);
      high = fmaxf(high, (float)cell.h[k]);
    }
  }
  return laci_dynamic_range_between(low, high);
}

static void run_quantized_step(const job *j, int64_t direction, int64_t step) {
  const laci_dynamic_range range = find_range_of_states(j, direction, step);
  for (int64_t sequence = 0; sequence < j->batch; sequence++) {
    if (step >= length_of_sequence(j, sequence)) continue;
    const laci_cell cell = cell_of_sequence(j, direction, sequence);
    double *read = cell.c + j->hidden;
    for (int64_t k = 0; k < j->hidden; k++)
      read[k] = laci_dynamic_quantize_to_steps(range, cell.h[k]) * (double)range.scale;
    run_step(j, direction, sequence, step, read);
  }
}

static void run_quantized_directions(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  for (int64_t direction = begin; direction < end; direction++) {
    for (int64_t sequence = 0; sequence < j->batch; sequence++)
      begin_sequence(j, direction, sequence);
    for (int64_t step = 0; step < j->time; step++) run_quantized_step(j, direction, step);
    for (int64_t sequence = 0; sequence < j->batch; sequence++)
      end_sequence(j, direction, sequence);
  }
}

/** Checks that every operand that is present has as many elements as the common code reads. */
static lac_status check_operand_sizes(const job *j) {
  int64_t rows = j->op->n_gates * j->hidden, states = j->n_directions * j->batch * j->hidden;
  const int64_t wanted[] = {[BIAS] = j->n_directions * 2 * rows,
                            [LENGTHS] = j->batch,
                            [INITIAL_H] = states,
                            [INITIAL_C] = states,
                            [PEEPHOLE] = j->n_directions * 3 * j->hidden};
  for (int port = BIAS; port <= PEEPHOLE; port++) {
    const laci_buf *buf = laci_operand(j->eval, port);
    if (!buf || (buf->count == wanted[port] && !buf->f == (port == LENGTHS))) continue;
    return laci_node_fail(j->eval->node, j->eval->err, LAC_BAD_SHAPE,
                          "input %d has %lld elements, wanted %lld", port, (long long)buf->count,
                          (long long)wanted[port]);
  }
  return LAC_OK;
}

lac_status laci_recurrent_eval(const laci_eval *eval, const laci_recurrent *op) {
  const laci_shape *x = &eval->in[X]->shape, *w = &eval->in[W]->shape, *r = &eval->in[R]->shape;
  const char *direction = laci_node_text(eval->node, "direction", "forward");
  bool floats = eval->in[X]->f && eval->in[W]->f && eval->in[R]->f;
  if (x->rank != 3 || w->rank != 3 || r->rank != 3 || !floats) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE, "wanted floats of three axes");
  }
  job j = {.eval = eval,
           .op = op,
           .batch_first = is_batch_first(eval->node),
           .backward = strcmp(direction, "reverse") == 0,
           .n_directions = w->dims[0],
           .inputs = x->dims[2],
           .hidden = r->dims[2]};
  j.time = x->dims[j.batch_first ? 1 : 0];
  j.batch = x->dims[j.batch_first ? 0 : 1];
  j.work_size = (2 * op->n_gates + 3) * j.hidden;
  lac_status st = check_operand_sizes(&j);
  int n = (int)j.n_directions * op->n_activations;
  if (!st) st = read_activations(eval->node, op, n, j.act, eval->err);
  if (st) return st;
  j.work = laci_alloc((size_t)(j.n_directions * j.batch * j.work_size), sizeof *j.work);
  if (!j.work) return laci_fail_memory(eval->err, eval->node->name);
  if (op->dynamic) laci_eval_parallel(eval, j.n_directions, run_quantized_directions, &j);
  else laci_eval_parallel(eval, j.n_directions * j.batch, run_sequences, &j);
  laci_free(j.work);
  return LAC_OK;
}

/* ---- Weights ---- */

int laci_recurrent_find_weight_axes(const laci_graph *graph, const laci_node *node,
                                    laci_weight_axes axes[2]) {
  (void)graph;
  if (!laci_has_input(node, W) || !laci_has_input(node, R)) return 0;
  axes[0] = (laci_weight_axes){.port = W, .k_axis = 1, .c_axis = 2, .groups = 1};
  axes[1] = (laci_weight_axes){.port = R, .k_axis = 1, .c_axis = 2, .groups = 1};
  return 2;
}

/* ---- Coupling ---- */

/** Maps hidden channel h of the output's last axis to position part * H + h of the input's axis,
 * for every part. */
static void map_hidden_channels_to_gates(laci_coupling *c, int out, int port, int axis,
                                         int64_t n_parts, int64_t hidden) {
  const laci_shape *from = laci_port_shape(c, port), *to = laci_port_shape(c, out);
  if (!from || !to) return;
  if (axis < 0) axis += from->rank;
  if (axis < 0 || axis >= from->rank || from->dims[axis] != n_parts * hidden) return;
  for (int64_t part = 0; part < n_parts; part++) {
    laci_axis_map *map = laci_coupling_add_map(c, out, to->rank - 1, port, axis, hidden);
    for (int64_t h = 0; map && h < hidden; h++) map->from[h] = (int32_t)(part * hidden + h);
  }
}

static void couple_output(const laci_node *node, laci_coupling *c, const laci_recurrent *op,
                          int out, int batch, int64_t hidden) {
  const laci_shape *y = laci_port_shape(c, LACI_OUT(out));
  if (out >= node->n_outputs || !y) return;
  int place = is_batch_first(node) ? 0 : y->rank - 2;
  laci_coupling_set_label(c, LACI_OUT(out), place, batch);
  map_hidden_channels_to_gates(c, LACI_OUT(out), W, 1, op->n_gates, hidden);
  map_hidden_channels_to_gates(c, LACI_OUT(out), R, 1, op->n_gates, hidden);
  map_hidden_channels_to_gates(c, LACI_OUT(out), R, 2, 1, hidden);
  map_hidden_channels_to_gates(c, LACI_OUT(out), BIAS, 1, 2 * (int64_t)op->n_gates, hidden);
  map_hidden_channels_to_gates(c, LACI_OUT(out), INITIAL_H, -1, 1, hidden);
  if (!op->has_cell) return;
  map_hidden_channels_to_gates(c, LACI_OUT(out), INITIAL_C, -1, 1, hidden);
  map_hidden_channels_to_gates(c, LACI_OUT(out), PEEPHOLE, 1, 3, hidden);
}

/** Do all operands that are present have a known shape? If not, a port might be missed. */
static bool has_known_shapes(const laci_node *node, const laci_coupling *c) {
  for (int port = 0; port < node->n_inputs; port++) {
    const laci_shape *shape = laci_port_shape(c, port);
    if (laci_has_input(node, port) && (!shape || (port <= R && shape->rank != 3))) return false;
  }
  return node->n_inputs > R;
}

lac_status laci_recurrent_couple_orders(const laci_node *node, laci_coupling *c,
                                        const laci_recurrent *op) {
  c->why = "time and directions have an order";
  if (!has_known_shapes(node, c) || !laci_is_axis_mappable(c, W, 1) ||
      !laci_is_axis_mappable(c, R, 2))
    return laci_coupling_status(c);
  bool batch_first = is_batch_first(node);
  int batch = laci_coupling_new_label(c), inputs = laci_coupling_new_label(c);
  for (int port = 0; port < node->n_inputs; port++) laci_coupling_mark_described(c, port);
  laci_coupling_set_label(c, X, batch_first ? 0 : 1, batch);
  laci_coupling_set_label(c, X, 2, inputs);
  laci_coupling_set_label(c, W, 2, inputs);
  laci_coupling_set_label(c, LENGTHS, 0, batch);
  for (int port = INITIAL_H; port <= (op->has_cell ? INITIAL_C : INITIAL_H); port++) {
    laci_coupling_set_label(c, port, batch_first ? 0 : 1, batch);
  }
  int64_t hidden = laci_port_shape(c, R)->dims[2];
  for (int out = 0; out < node->n_outputs; out++) couple_output(node, c, op, out, batch, hidden);
  return laci_coupling_status(c);
}
