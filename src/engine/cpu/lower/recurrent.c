/* SPDX-License-Identifier: Apache-2.0
 * LSTM, GRU and RNN as one step of our own kernels.
 *
 * The inputs of many time steps are multiplied by w in one product. Then every time step multiplies
 * its state by r, whose strips stay in the caches between steps, and applies the gates. Values are
 * f32, also in a bf16 net. Next: recurrent_run.c. */
#include "engine/cpu/lower/recurrent.h"

#include "engine/cpu/net_in.h"

enum {
  CHUNK_FLOATS = 1 << 16, /* limit of the floats of the gates of a chunk of time steps, so that they
                             stay in the cache */
  CHUNK_ROWS = 24,        /* minimum number of rows of a chunk's product */
};

static bool can_lower_recurrent(laci_net *net, const laci_fused *fused, const char **why) {
  laci_recurrent_node r;
  return laci_plan_read_recurrent(&net->plan, &net->plan.graph->nodes[fused->node], &r, why);
}

/* ---- Weights ---- */

void laci_recurrent_pack_rows(const laci_recurrent_step *s, int64_t depth, int64_t first, int64_t n,
                              const float *rows, float *strips) {
  for (int64_t row = first; row < first + n; row++, rows += depth) {
    const int64_t gate = row / s->node.hidden, unit = row % s->node.hidden; /* gate: counted through
                                                                               all directions */
    laci_strips_set_column(strips, depth, gate * s->width + unit, rows);
  }
}

typedef struct packing {
  const laci_recurrent_step *step;
  int64_t depth;
  float *strips;
} packing;

static bool pack_weight_slice(void *context, int64_t first, int64_t n, const float *x) {
  const packing *p = context;
  laci_recurrent_pack_rows(p->step, p->depth, first / p->depth, n / p->depth, x, p->strips);
  return true;
}

/** Packs the weight matrix that is the node's input `port` into strips (kernel/linear/strips.h):
 * now, as a weight, if it is constant; else into scratch memory in every run. */
static void prepare_weight_strips(laci_net *net, const laci_node *node, int port,
                                  const laci_recurrent_step *s, laci_recurrent_matrix *m) {
  const int value = node->inputs[port];
  const int64_t rows = s->node.directions * s->node.n_gates;
  m->depth = laci_plan_shape(&net->plan, value)->dims[2];
  m->rows = -1;
  const size_t bytes = (size_t)(rows * s->width * m->depth) * sizeof(float);
  if (!laci_plan_is_constant(&net->plan, value)) {
    m->rows = laci_net_convert_to_dense(net, laci_net_read_value(net, value), LACI_ELEMENT_F32);
    m->strips = laci_net_scratch_new(net, bytes);
    return;
  }
  m->strips = laci_net_weight_new(net, bytes, value);
  if (net->plan.status) return;
  const laci_net_weight weight = {
      .value = value,
      .shape = laci_shape_of(2, (int64_t[]){rows * s->node.hidden, m->depth}),
      .strides = {m->depth, 1},
      .factor = 1};
  packing p = {s, m->depth, laci_net_tensor_data(net, m->strips)};
  laci_net_visit_weight_slices(net, &weight, pack_weight_slice, &p);
}

/* ---- Operands ---- */

/** Returns the tensor of the node's input `port`, row-major, of f32 or integers; -1: the input is
 * absent. */
static int read_operand_tensor(laci_net *net, const laci_node *node, int port) {
  if (!laci_plan_has_input(node, port)) return -1;
  const int tensor = laci_net_read_value(net, node->inputs[port]);
  return port == LACI_RECURRENT_LENGTHS ? tensor
                                        : laci_net_convert_to_dense(net, tensor, LACI_ELEMENT_F32);
}

static int new_result_tensor(laci_net *net, const laci_node *node, int at) {
  if (at >= node->n_outputs || node->outputs[at] < 0) return -1;
  const laci_shape *shape = laci_plan_shape(&net->plan, node->outputs[at]);
  laci_layout *md = laci_net_dense_layout(net, shape, LACI_ELEMENT_F32);
  const size_t bytes = (size_t)laci_shape_count(shape) * sizeof(float);
  return laci_net_tensor_new(net, shape, LACI_ELEMENT_F32, md,
                             laci_net_buffer_new(net, LACI_PLACE_ARENA, bytes));
}

/** Sets where the parts of the scratch memory begin. */
static void assign_scratch_areas(laci_recurrent_step *s) {
  const laci_recurrent_node *r = &s->node;
  const int64_t row = r->n_gates * s->width, states = r->directions * r->batch * s->width;
  const int64_t least = (CHUNK_ROWS + r->batch - 1) / r->batch,
                some = CHUNK_FLOATS / (r->batch * row);
  s->chunk = some > least ? some : least;
  if (s->chunk > r->time) s->chunk = r->time;
  struct {
    int64_t *at, n;
  } areas[] = {{&s->offsets.start, r->directions * row},
               {&s->offsets.inner, r->linear_before ? r->directions * s->width : 0},
               {&s->offsets.peephole, s->peephole >= 0 ? r->directions * 3 * s->width : 0},
               {&s->offsets.h[0], states},
               {&s->offsets.h[1], states},
               {&s->offsets.c, r->kind == LACI_RECURRENT_LSTM ? states : 0},
               {&s->offsets.extra, r->kind != LACI_RECURRENT_RNN ? states : 0},
               {&s->offsets.gates, r->directions * r->batch * s->chunk * row}};
  for (size_t at = 0; at < sizeof areas / sizeof *areas; at++) {
    *areas[at].at = s->offsets.n;
    s->offsets.n += areas[at].n;
  }
}

static void prepare_recurrent_step(laci_net *net, const laci_node *node, laci_recurrent_step *s) {
  s->blocks = laci_strips_count(s->node.hidden);
  s->width = s->blocks * LACI_STRIP;
  s->multiply = laci_multiply_strips_variant();
  s->apply = laci_pointwise_apply_variant();
  s->x = read_operand_tensor(net, node, LACI_RECURRENT_X);
  s->bias = read_operand_tensor(net, node, LACI_RECURRENT_BIAS);
  s->lengths = read_operand_tensor(net, node, LACI_RECURRENT_LENGTHS);
  s->initial_h = read_operand_tensor(net, node, LACI_RECURRENT_INITIAL_H);
  s->initial_c = read_operand_tensor(net, node, LACI_RECURRENT_INITIAL_C);
  s->peephole = read_operand_tensor(net, node, LACI_RECURRENT_PEEPHOLE);
  prepare_weight_strips(net, node, LACI_RECURRENT_W, s, &s->w);
  prepare_weight_strips(net, node, LACI_RECURRENT_R, s, &s->r);
  for (int at = 0; at < 3; at++) s->results[at] = new_result_tensor(net, node, at);
  assign_scratch_areas(s);
  s->scratch = laci_net_scratch_new(net, (size_t)s->offsets.n * sizeof(float));
}

static void lower_recurrent(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_recurrent_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s || !laci_plan_read_recurrent(&net->plan, node, &s->node, NULL)) return;
  prepare_recurrent_step(net, node, s);
  if (net->plan.status) return;
  const int tensors[] = {s->scratch,   s->x,          s->bias,       s->lengths,   s->initial_h,
                         s->initial_c, s->peephole,   s->w.strips,   s->w.rows,    s->r.strips,
                         s->r.rows,    s->results[0], s->results[1], s->results[2]};
  laci_net_step *step = laci_net_step_add_code(net, node, laci_recurrent_run,
                                               sizeof tensors / sizeof *tensors, tensors);
  if (!step) return;
  const laci_recurrent_node *r = &s->node;
  step->kernel = "recurrent";
  step->context = s;
  step->shown = s->results[0] >= 0   ? s->results[0]
                : s->results[1] >= 0 ? s->results[1]
                                     : s->results[2];
  step->flops =
      2 * r->directions * r->time * r->batch * r->n_gates * r->hidden * (r->inputs + r->hidden);
  laci_net_step_mark_scratch(step, 0);
  if (s->w.rows >= 0) laci_net_step_mark_scratch(step, 7);
  if (s->r.rows >= 0) laci_net_step_mark_scratch(step, 9);
  for (int at = 0; at < 3; at++) {
    if (s->results[at] >= 0) laci_net_bind_value(net, node->outputs[at], s->results[at]);
  }
}

const laci_implementation laci_implementations_recurrent[] = {
    {"our kernel", LACI_FUSIBLE_NOTHING, can_lower_recurrent, lower_recurrent},
    {.name = NULL},
};
