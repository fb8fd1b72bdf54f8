/* SPDX-License-Identifier: Apache-2.0
 * Runs the step of an LSTM, GRU or RNN (recurrent.h).
 *
 * A sub-batch is some sequences of one direction that advance together. A team is sub-batches that
 * take their time steps in turn with each other. Work is divided by one of two methods:
 *
 *   a team for each thread   the sub-batches are independent and never wait for each other
 *   one team for all         too few sequences: the threads divide the hidden units of a time step,
 *                            and wait for each other at its end
 *
 * Every number is computed in the same order by both. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "cpu/cpu.h"
#include "cpu/crew.h"
#include "cpu/pool.h"
#include "engine/cpu/lower/recurrent.h"
#include "engine/cpu/net_in.h"
#include "engine/row.h"

enum {
  SHARED_STEP = 1 << 16,   /* minimum number of multiplications of a time step that threads divide
                              among them */
  SHARED_INPUTS = 1 << 19, /* minimum number of multiplications of a chunk's inputs that threads
                              divide among them */
};

/** The data of a run that all teams share. */
typedef struct run {
  laci_net *net;
  const laci_recurrent_step *s;
  const float *x, *w, *r;
  float *scratch, *y;
  const int64_t *lengths; /* [batch] number of time steps of each sequence; NULL: all have
                             `length` */
  int64_t n_sub_batches_each,
      length; /* n_sub_batches_each: number of sub-batches in each direction, if each is a team of
                 its own */
  bool alike; /* all sequences have `length` time steps */
  bool one_by_one; /* a shared team runs one direction after the other, not both at a time */
  atomic_bool interrupted;
} run;

typedef struct sub_batch {
  int64_t direction, first, n, length; /* the sequences [first, first + n) of one direction, with
                                          `length` time steps */
} sub_batch;

typedef struct team {
  run *run;
  laci_crew *crew; /* the threads that divide the loops of this team; NULL: one thread */
  sub_batch sub_batches[2];
  int n_sub_batches;
  int64_t step, begin, end; /* step: the current time step; [begin, end): the chunk of steps that it
                               is in */
  int phase;                /* phase of the time step: 0, or 1 for the second one of a GRU */
} team;

/** The hidden units [begin, end) of a row, which are whole blocks, and what a time step needs to
 * compute them. */
typedef struct units {
  int64_t begin, end, gate; /* gate: number of elements from a gate to the next one */
  const float *peephole;    /* [3, gate] weights of the peepholes; NULL: there are none */
  const laci_function_kind *functions;
} units;

/* ---- Gates ---- */

static void apply_activation(const laci_recurrent_step *s, laci_function_kind function, float *x,
                             int64_t n) {
  const float clip = s->node.clip;
  if (clip < (float)INFINITY)
    s->apply(&(laci_pointwise){.kind = LACI_POINTWISE_CLIP, .alpha = -clip, .beta = clip}, x, n);
  s->apply(&(laci_pointwise){.kind = function == LACI_FUNCTION_TANH ? LACI_POINTWISE_TANH
                                                                    : LACI_POINTWISE_LOGISTIC},
           x, n);
}

static void add_elementwise_products(float *sum, const float *a, const float *b, int64_t n) {
  for (int64_t k = 0; k < n; k++) sum[k] += a[k] * b[k];
}

/** Computes a time step of one sequence of an LSTM: from the gates at `x` (input, output, forget,
 * and new content) the cell c and the state h. */
static void advance_lstm_row(const laci_recurrent_step *s, const units *u, float *x, float *c,
                             float *h, float *extra) {
  const int64_t n = u->end - u->begin;
  float *in = x, *out = x + u->gate, *forget = out + u->gate, *fresh = forget + u->gate;
  if (u->peephole) {
    add_elementwise_products(in, u->peephole + u->begin, c, n);
    add_elementwise_products(forget, u->peephole + 2 * u->gate + u->begin, c, n);
  }
  apply_activation(s, u->functions[0], in, n);
  apply_activation(s, u->functions[0], forget, n);
  apply_activation(s, u->functions[1], fresh, n);
  for (int64_t k = 0; s->node.input_forget && k < n; k++) forget[k] = 1 - in[k];
  for (int64_t k = 0; k < n; k++) c[k] = forget[k] * c[k] + in[k] * fresh[k];
  if (u->peephole) add_elementwise_products(out, u->peephole + u->gate + u->begin, c, n);
  apply_activation(s, u->functions[0], out, n);
  memcpy(extra, c, (size_t)n * sizeof *c);
  s->apply(&(laci_pointwise){.kind = u->functions[2] == LACI_FUNCTION_TANH
                                         ? LACI_POINTWISE_TANH
                                         : LACI_POINTWISE_LOGISTIC}, /* its operand is not
                                                                        clipped */
           extra, n);
  for (int64_t k = 0; k < n; k++) h[k] = out[k] * extra[k];
}

/** Computes the gates z (update) and r (reset) of one sequence of a GRU. Then multiplies by r: the
 * state, or with linear_before_reset the state's product. */
static void apply_gru_reset_gate(const laci_recurrent_step *s, const units *u, float *x,
                                 const float *before, float *extra) {
  const int64_t n = u->end - u->begin;
  float *update = x, *reset = x + u->gate, *fresh = reset + u->gate;
  apply_activation(s, u->functions[0], update, n);
  apply_activation(s, u->functions[0], reset, n);
  if (s->node.linear_before) add_elementwise_products(fresh, reset, extra, n);
  for (int64_t k = 0; !s->node.linear_before && k < n; k++) extra[k] = reset[k] * before[k];
}

static void finish_gru_row(const laci_recurrent_step *s, const units *u, float *x,
                           const float *before, float *h) {
  const int64_t n = u->end - u->begin;
  float *update = x, *fresh = x + 2 * u->gate;
  apply_activation(s, u->functions[1], fresh, n);
  for (int64_t k = 0; k < n; k++) h[k] = (1 - update[k]) * fresh[k] + update[k] * before[k];
}

/* ---- A time step ---- */

/** Addresses of a sub-batch's rows (one for each sequence) at time t: gates and states. */
typedef struct rows {
  int64_t t;
  float *gates, *before, *h, *c, *extra; /* address of the first row; from there, rows are n_gates *
                                            width floats apart (gates), or width */
} rows;

static int64_t floats_per_gate_row(const laci_recurrent_step *s) {
  return s->node.n_gates * s->width;
}

static bool is_backward(const laci_recurrent_step *s, const sub_batch *l) {
  return l->direction == 1 || s->node.backward;
}

/** Returns the earliest point in time of the sub-batch's chunk of steps. */
static int64_t earliest_time_of_chunk(const team *t, const sub_batch *l) {
  return is_backward(t->run->s, l) ? l->length - t->end : t->begin;
}

static rows rows_of_sub_batch(const team *t, const sub_batch *l) {
  const laci_recurrent_step *s = t->run->s;
  float *scratch = t->run->scratch;
  const int64_t sequence = l->direction * s->node.batch + l->first, state = sequence * s->width;
  rows r = {.t = is_backward(s, l) ? l->length - 1 - t->step : t->step,
            .before = scratch + s->offsets.h[t->step & 1] + state,
            .h = scratch + s->offsets.h[1 - (t->step & 1)] + state,
            .c = scratch + s->offsets.c + state,
            .extra = scratch + s->offsets.extra + state};
  r.gates =
      scratch + s->offsets.gates +
      (sequence * s->chunk + (r.t - earliest_time_of_chunk(t, l)) * l->n) * floats_per_gate_row(s);
  return r;
}

/** Adds the products of the weights r and the state x to gates [gates[0], gates[1]), for these
 * hidden units. */
static void add_state_products(const team *t, const sub_batch *l, const units *u, const float *x,
                               const int gates[2], float *to) {
  const laci_recurrent_step *s = t->run->s;
  const int64_t matrix = l->direction * s->node.n_gates, strip = s->r.depth * LACI_STRIP;
  const int64_t block = u->begin / LACI_STRIP, n = (u->end - u->begin) / LACI_STRIP;
  const bool whole = n == s->blocks; /* all units: the strips of the gates follow each other, and
                                        one product does all gates */
  for (int gate = gates[0]; gate < gates[1]; gate++) {
    float *y = to + gate * s->width + u->begin;
    const laci_strip_product p = {
        .n_rows = l->n,
        .depth = s->r.depth,
        .n_strips = whole ? (gates[1] - gates[0]) * n : n,
        .x = x,
        .strips = t->run->r + ((matrix + gate) * s->blocks + block) * strip,
        .start = y,
        .y = y,
        .x_row = s->width,
        .start_row = floats_per_gate_row(s),
        .y_row = floats_per_gate_row(s)};
    s->multiply(&p);
    if (whole) break;
  }
}

/** Multiplies the state by the weights r of a GRU's hidden gate with linear_before_reset. The
 * product goes to `extra`, since the reset gate multiplies it before the input's product is
 * added. */
static void multiply_hidden_gate(const team *t, const sub_batch *l, const units *u, const rows *r) {
  const laci_recurrent_step *s = t->run->s;
  const int64_t gate = l->direction * s->node.n_gates + 2;
  const laci_strip_product p = {
      .n_rows = l->n,
      .depth = s->r.depth,
      .n_strips = (u->end - u->begin) / LACI_STRIP,
      .x = r->before,
      .strips = t->run->r + (gate * s->width + u->begin) * s->r.depth,
      .start = t->run->scratch + s->offsets.inner + l->direction * s->width + u->begin,
      .y = r->extra + u->begin,
      .x_row = s->width,
      .y_row = s->width};
  s->multiply(&p);
}

/** Writes the new states of the sub-batch's sequences, for these hidden units, to the output y. */
static void copy_states_to_output(const team *t, const sub_batch *l, const units *u,
                                  const rows *r) {
  const laci_recurrent_step *s = t->run->s;
  const laci_recurrent_node *node = &s->node;
  const int64_t end = u->end < node->hidden ? u->end : node->hidden;
  for (int64_t at = 0; t->run->y && at < l->n; at++) {
    const int64_t b = l->first + at;
    const int64_t place = node->batch_first
                              ? (b * node->time + r->t) * node->directions + l->direction
                              : (r->t * node->directions + l->direction) * node->batch + b;
    memcpy(t->run->y + place * node->hidden + u->begin, r->h + at * s->width + u->begin,
           (size_t)(end - u->begin) * sizeof(float));
  }
}

static void advance_gru_units(const team *t, const sub_batch *l, const units *u, const rows *r) {
  const laci_recurrent_step *s = t->run->s;
  const bool linear = s->node.linear_before;
  if (t->phase == 0) {
    add_state_products(t, l, u, r->before, (const int[]){0, 2}, r->gates);
    if (linear) multiply_hidden_gate(t, l, u, r);
  } else {
    add_state_products(t, l, u, r->extra, (const int[]){2, 3}, r->gates);
  }
  for (int64_t at = 0; at < l->n; at++) {
    float *x = r->gates + at * floats_per_gate_row(s) + u->begin;
    const int64_t state = at * s->width + u->begin;
    if (t->phase == 0) apply_gru_reset_gate(s, u, x, r->before + state, r->extra + state);
    if (t->phase == 1 || linear) finish_gru_row(s, u, x, r->before + state, r->h + state);
  }
}

static void advance_hidden_units(const team *t, const sub_batch *l, const units *u) {
  const laci_recurrent_step *s = t->run->s;
  const rows r = rows_of_sub_batch(t, l);
  if (s->node.kind == LACI_RECURRENT_GRU) {
    advance_gru_units(t, l, u, &r);
    if (t->phase == 0 && !s->node.linear_before) return;
  } else {
    add_state_products(t, l, u, r.before, (const int[]){0, s->node.n_gates}, r.gates);
  }
  for (int64_t at = 0; at < l->n && s->node.kind != LACI_RECURRENT_GRU; at++) {
    float *x = r.gates + at * floats_per_gate_row(s) + u->begin;
    const int64_t state = at * s->width + u->begin;
    if (s->node.kind == LACI_RECURRENT_LSTM) {
      advance_lstm_row(s, u, x, r.c + state, r.h + state, r.extra + state);
    } else {
      apply_activation(s, u->functions[0], x, u->end - u->begin);
      memcpy(r.h + state, x, (size_t)(u->end - u->begin) * sizeof *x);
    }
  }
  copy_states_to_output(t, l, u, &r);
}

/** Returns those hidden units of the sub-batch that are in blocks [block_begin, block_end), which
 * are numbered through all sub-batches of the team. */
static units units_of_sub_batch(const team *t, int index, int64_t block_begin, int64_t block_end) {
  const laci_recurrent_step *s = t->run->s;
  const int64_t direction = t->sub_batches[index].direction, first = index * s->blocks;
  const float *peephole = t->run->scratch + s->offsets.peephole + direction * 3 * s->width;
  block_begin = block_begin > first ? block_begin - first : 0;
  block_end = block_end < first + s->blocks ? block_end - first : s->blocks;
  return (units){.begin = block_begin * LACI_STRIP,
                 .end = block_end * LACI_STRIP,
                 .gate = s->width,
                 .peephole = s->peephole >= 0 ? peephole : NULL,
                 .functions = s->node.functions[direction]};
}

static void advance_units_of_thread(int part, int n, void *context) {
  const team *t = context;
  const int64_t blocks = t->n_sub_batches * t->run->s->blocks;
  for (int at = 0; at < t->n_sub_batches; at++) {
    const units u = units_of_sub_batch(t, at, part * blocks / n, (part + 1) * blocks / n);
    if (u.begin < u.end) advance_hidden_units(t, &t->sub_batches[at], &u);
  }
}

/* ---- A chunk of time steps ---- */

/** Multiplies the chunk's inputs by the strips [first, last) of the weights w; the products are
 * stored in the gates. */
static void multiply_inputs(const team *t, const sub_batch *l, int64_t first, int64_t last) {
  const laci_recurrent_step *s = t->run->s;
  const laci_recurrent_node *node = &s->node;
  const int64_t row = floats_per_gate_row(s), n = t->end - t->begin,
                sequence = l->direction * node->batch;
  const int64_t later = (node->batch_first ? 1 : node->batch) * node->inputs;
  const int64_t next = (node->batch_first ? node->time : 1) * node->inputs;
  const bool together = later == l->n * next; /* the rows of all time steps have the same distance
                                                 from each other */
  const bool by_time = !together && n >= l->n;
  const int64_t strip = l->direction * node->n_gates * s->blocks + first;
  laci_strip_product p = {.depth = node->inputs,
                          .n_strips = last - first,
                          .n_rows = together  ? n * l->n
                                    : by_time ? n
                                              : l->n,
                          .strips = t->run->w + strip * node->inputs * LACI_STRIP,
                          .start = t->run->scratch + s->offsets.start + strip * LACI_STRIP,
                          .x = t->run->x + earliest_time_of_chunk(t, l) * later + l->first * next,
                          .y = t->run->scratch + s->offsets.gates +
                               (sequence + l->first) * s->chunk * row + first * LACI_STRIP,
                          .x_row = by_time ? later : next,
                          .y_row = by_time ? l->n * row : row};
  const int64_t n_products = together ? 1 : by_time ? l->n : n;
  for (int64_t at = 0; at < n_products; at++) {
    s->multiply(&p);
    p.x += by_time ? next : later;
    p.y += by_time ? row : l->n * row;
  }
}

static void multiply_inputs_of_thread(int part, int n, void *context) {
  const team *t = context;
  const int64_t strips = t->run->s->node.n_gates * t->run->s->blocks;
  for (int at = 0; at < t->n_sub_batches; at++) {
    const int64_t first = part * strips / n, last = (part + 1) * strips / n;
    if (first < last) multiply_inputs(t, &t->sub_batches[at], first, last);
  }
}

/** Runs the loop `body` over all sub-batches of a team. It is divided among threads if its
 * multiplications (work) are at least `least`. */
static void run_team_loop(team *t, laci_crew_body *body, int64_t work, int64_t least) {
  if (t->crew && work >= least) laci_crew_for(t->crew, body, t);
  else body(0, 1, t);
}

/** Runs all time steps of a team's sub-batches, which all have the same number of steps. */
static void run_team(team *t) {
  const laci_recurrent_step *s = t->run->s;
  const laci_recurrent_node *node = &s->node;
  const bool twice = node->kind == LACI_RECURRENT_GRU && !node->linear_before;
  const int64_t length = t->sub_batches[0].length,
                gates = t->n_sub_batches * t->sub_batches[0].n * floats_per_gate_row(s);
  for (t->begin = 0; t->begin < length; t->begin = t->end) {
    if (laci_engine_is_interrupted(t->run->net->watch)) {
      atomic_store_explicit(&t->run->interrupted, true, memory_order_relaxed);
      return;
    }
    t->end = t->begin + s->chunk < length ? t->begin + s->chunk : length;
    run_team_loop(t, multiply_inputs_of_thread, (t->end - t->begin) * gates * node->inputs,
                  SHARED_INPUTS);
    for (t->step = t->begin; t->step < t->end; t->step++) {
      for (t->phase = 0; t->phase < 1 + twice; t->phase++) {
        run_team_loop(t, advance_units_of_thread, gates * node->hidden, SHARED_STEP);
      }
    }
  }
}

/* ---- The whole node ---- */

/** Copies `hidden` floats of `from` to the row `to`, and fills the rest of its `width` floats with
 * zeros. from NULL: the whole row is zeros. */
static void copy_padded_row(const laci_recurrent_step *s, float *to, const float *from) {
  const size_t n = (size_t)s->node.hidden, all = (size_t)s->width;
  if (from) memcpy(to, from, n * sizeof *to);
  memset(to + (from ? n : 0), 0, (all - (from ? n : 0)) * sizeof *to);
}

static const float *data_of_operand(const laci_net *net, int tensor) {
  return tensor < 0 ? NULL : laci_net_tensor_data(net, tensor);
}

/** Sets the numbers at which the sums of the gates begin: the biases of w and r together. If r's
 * bias is used inside of a gate (linear_before_reset), it is stored separately. Also copies the
 * peepholes. */
static void set_biases(run *now) {
  const laci_recurrent_step *s = now->s;
  const laci_recurrent_node *node = &s->node;
  const float *bias = data_of_operand(now->net, s->bias);
  const int64_t hidden = node->hidden, of_r = node->n_gates * hidden;
  for (int64_t at = 0; at < node->directions * node->n_gates; at++) {
    const int64_t d = at / node->n_gates, gate = at % node->n_gates;
    const float *from = bias ? bias + d * 2 * of_r + gate * hidden : NULL;
    float *to = now->scratch + s->offsets.start + at * s->width;
    const bool inside = node->linear_before && gate == 2;
    copy_padded_row(s, to, from);
    if (inside)
      copy_padded_row(s, now->scratch + s->offsets.inner + d * s->width, from ? from + of_r : NULL);
    for (int64_t k = 0; from && !inside && k < hidden; k++) to[k] += from[of_r + k];
  }
  const float *peephole = data_of_operand(now->net, s->peephole);
  for (int64_t at = 0; peephole && at < 3 * node->directions; at++) {
    copy_padded_row(s, now->scratch + s->offsets.peephole + at * s->width, peephole + at * hidden);
  }
}

/** Returns the offset of a sequence's state in the initial states and in the results. */
static int64_t state_offset(const laci_recurrent_node *node, int64_t direction, int64_t sequence) {
  return (node->batch_first ? sequence * node->directions + direction
                            : direction * node->batch + sequence) *
         node->hidden;
}

static void load_initial_states(const run *now, const sub_batch *l) {
  const laci_recurrent_step *s = now->s;
  const float *h = data_of_operand(now->net, s->initial_h),
              *c = data_of_operand(now->net, s->initial_c);
  for (int64_t b = l->first; b < l->first + l->n; b++) {
    const int64_t from = state_offset(&s->node, l->direction, b);
    const int64_t to = (l->direction * s->node.batch + b) * s->width;
    copy_padded_row(s, now->scratch + s->offsets.h[0] + to, h ? h + from : NULL);
    if (s->node.kind == LACI_RECURRENT_LSTM)
      copy_padded_row(s, now->scratch + s->offsets.c + to, c ? c + from : NULL);
  }
}

static void store_final_states(const run *now, const sub_batch *l) {
  const laci_recurrent_step *s = now->s;
  const int64_t areas[2] = {s->offsets.h[l->length & 1], s->offsets.c};
  for (int at = 0; at < 2; at++) {
    if (s->results[1 + at] < 0) continue;
    float *to = laci_net_tensor_data(now->net, s->results[1 + at]);
    for (int64_t b = l->first; b < l->first + l->n; b++) {
      const float *from = now->scratch + areas[at] + (l->direction * s->node.batch + b) * s->width;
      memcpy(to + state_offset(&s->node, l->direction, b), from,
             (size_t)s->node.hidden * sizeof *to);
    }
  }
}

/** Returns the number of time steps of a sequence. */
static int64_t sequence_length(const run *now, int64_t sequence) {
  const int64_t time = now->s->node.time, n = now->lengths ? now->lengths[sequence] : time;
  return n < 0 ? 0 : n < time ? n : time;
}

/** Runs the teams [begin, end), each of which has one sub-batch. */
static void run_single_teams(int64_t begin, int64_t end, void *context) {
  run *now = context;
  const int64_t n = now->n_sub_batches_each, batch = now->s->node.batch;
  for (int64_t at = begin; at < end; at++) {
    sub_batch l = {.direction = at / n, .first = at % n * batch / n};
    l.n = (at % n + 1) * batch / n - l.first;
    l.length = sequence_length(now, l.first);
    team t = {.run = now, .sub_batches = {l}, .n_sub_batches = 1};
    load_initial_states(now, &l);
    run_team(&t);
    store_final_states(now, &l);
  }
}

/** Runs n directions, from `first` on, as one team, whose sub-batches they are. */
static void run_directions(run *now, laci_crew *crew, int first, int n) {
  team t = {.run = now, .crew = crew, .n_sub_batches = n};
  for (int at = 0; at < n; at++) {
    t.sub_batches[at] =
        (sub_batch){.direction = first + at, .n = now->s->node.batch, .length = now->length};
    load_initial_states(now, &t.sub_batches[at]);
  }
  run_team(&t);
  for (int at = 0; at < n; at++) store_final_states(now, &t.sub_batches[at]);
}

/** Runs all sequences by threads that share each time step. */
static void run_shared_team(laci_crew *crew, void *context) {
  run *now = context;
  const int directions = (int)now->s->node.directions, each = now->one_by_one ? 1 : directions;
  for (int first = 0; first < directions; first += each) run_directions(now, crew, first, each);
}

static const float *pack_strips_if_computed(const laci_recurrent_step *s, laci_net *net,
                                            const laci_recurrent_matrix *m) {
  float *strips = laci_net_tensor_data(net, m->strips);
  if (m->rows < 0) return strips;
  const int64_t matrices = s->node.directions * s->node.n_gates;
  memset(strips, 0, (size_t)(matrices * s->width * m->depth) * sizeof *strips);
  laci_recurrent_pack_rows(s, m->depth, 0, matrices * s->node.hidden, data_of_operand(net, m->rows),
                           strips);
  return strips;
}

/** Should all threads run one direction after the other? They should if a thread's part of one
 * direction's matrix fits its second cache, where it stays from step to step, and if what a thread
 * reads otherwise does not: its part of both matrices (shared), or one matrix. */
static bool should_run_directions_one_by_one(const run *now, int64_t threads, bool shared) {
  const laci_recurrent_node *node = &now->s->node;
  const double cache = 1.125 * (double)laci_cpu_second_cache_bytes(); /* a little more than fits is
                                                                         mostly there, too */
  const double matrix =
      (double)(floats_per_gate_row(now->s) * node->hidden) * (double)sizeof(float);
  const double otherwise = shared ? 2 * matrix / (double)threads : matrix;
  return node->directions == 2 && threads > 1 && otherwise > cache &&
         matrix / (double)threads <= cache;
}

static void run_recurrent_node(run *now) {
  const laci_recurrent_node *node = &now->s->node;
  const int64_t threads = laci_pool_threads(now->net->pool);
  const int64_t wanted = (threads + node->directions - 1) / node->directions;
  const int64_t work = node->batch * floats_per_gate_row(now->s) * node->hidden;
  now->n_sub_batches_each = !now->alike ? node->batch : wanted < node->batch ? wanted : node->batch;
  const bool shared = node->directions * now->n_sub_batches_each < threads;
  now->one_by_one =
      now->n_sub_batches_each == 1 && should_run_directions_one_by_one(now, threads, shared);
  if (now->alike && work >= SHARED_STEP && (shared || now->one_by_one)) {
    laci_crew_run_leader(now->net->pool, run_shared_team, now);
  } else {
    laci_pool_for(now->net->pool, node->directions * now->n_sub_batches_each, 1, run_single_teams,
                  now);
  }
}

lac_status laci_recurrent_run(laci_net *net, laci_net_step *step, lac_error *err) {
  const laci_recurrent_step *s = step->context;
  const laci_recurrent_node *node = &s->node;
  run now = {.net = net,
             .s = s,
             .x = data_of_operand(net, s->x),
             .w = pack_strips_if_computed(s, net, &s->w),
             .r = pack_strips_if_computed(s, net, &s->r),
             .scratch = laci_net_tensor_data(net, s->scratch),
             .y = s->results[0] < 0 ? NULL : laci_net_tensor_data(net, s->results[0]),
             .lengths = s->lengths < 0 ? NULL : laci_net_tensor_data(net, s->lengths),
             .alike = true};
  now.length = sequence_length(&now, 0);
  for (int64_t b = 1; b < node->batch; b++) {
    if (sequence_length(&now, b) != now.length) now.alike = false;
  }
  if (now.y && now.lengths) { /* y is zero in time steps after the end of a sequence */
    const int64_t n = node->time * node->directions * node->batch * node->hidden;
    memset(now.y, 0, (size_t)n * sizeof *now.y);
  }
  set_biases(&now);
  run_recurrent_node(&now);
  if (atomic_load_explicit(&now.interrupted, memory_order_relaxed))
    return laci_fail(err, LAC_INTERRUPTED, "interrupted");
  return LAC_OK;
}
