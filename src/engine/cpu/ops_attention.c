/* SPDX-License-Identifier: Apache-2.0
 * Attention: two products of values around a softmax, as one step over kernel/attention.
 *
 *     q -> [* number] -> MatMul -> [* number] -> [+ mask] -> Softmax -> [NaN to 0] -> MatMul
 *     k -> [* number] ----^                                                   v ------^
 *
 * is found around its Softmax, wherever nobody else reads what lies between. Operands are read as
 * they lie: heads cut out of one product by Reshape, Transpose and Slice cost nothing. A Transpose
 * behind is a matter of where rows are written. */
#include <string.h>

#include "engine/cpu/net_in.h"
#include "kernel/attention/attention.h"

/* ---- Finding ---- */

typedef struct attention {
  int q, k, v, mask; /* values; k as the product reads it: [.., depth, n_keys]; mask -1: none */
  float scale;
  bool zero_nan;
  int product;               /* the node of the second product */
  int places[LACI_MAX_RANK]; /* where the product's axes stand in the layer's output */
} attention;

enum { MOST_NODES = 8 };
typedef struct found {
  int nodes[MOST_NODES]; /* between the operands and the second product */
  int n;
} found;

/** value = number * x, read by nobody else: x, and the number into scale. Otherwise value. */
static int without_scale(laci_net *net, int value, float *scale, found *f) {
  int maker = laci_net_maker(net, value), input;
  laci_eltwise e[2];
  if (maker < 0 || laci_net_uses(net, value) != 1 || f->n == MOST_NODES) return value;
  const laci_node *node = &net->graph->nodes[maker];
  if (laci_eltwise_of(net, node, &input, e) != 1) return value;
  int x = node->inputs[input];
  bool same = laci_shape_equal(laci_net_shape(net, x), laci_net_shape(net, value));
  if (!same || e[0].alg != dnnl_eltwise_linear || e[0].beta != 0) return value;
  *scale *= e[0].alpha;
  f->nodes[f->n++] = maker;
  return x;
}

static int matmul_of(const laci_net *net, int value) {
  int maker = laci_net_maker(net, value);
  bool is = maker >= 0 && laci_node_is(&net->graph->nodes[maker], "MatMul");
  return is && laci_net_uses(net, value) == 1 ? maker : -1;
}

/** Does the mask go along with scores of this shape without making them larger? */
static bool fits_mask(const laci_net *net, int mask, const laci_shape *scores) {
  const laci_shape *m = laci_net_shape(net, mask);
  if (!laci_net_is_float(net, mask) || m->rank > scores->rank) return false;
  for (int axis = 0; axis < m->rank; axis++) {
    int64_t size = scores->dims[axis + scores->rank - m->rank];
    if (m->dims[axis] != 1 && m->dims[axis] != size) return false;
  }
  return true;
}

/** From the Softmax's input up to the first product's operands. */
static bool find_scores(laci_net *net, int scores, attention *a, found *f) {
  int maker = laci_net_maker(net, scores), product = -1, x = scores;
  const laci_shape *shape = laci_net_shape(net, scores);
  if (maker >= 0 && laci_node_is(&net->graph->nodes[maker], "Add") &&
      laci_net_uses(net, scores) == 1 && net->graph->nodes[maker].n_inputs == 2) {
    const laci_node *add = &net->graph->nodes[maker];
    for (int side = 0; side < 2 && product < 0; side++) {
      found tried = *f;
      float scale = 1;
      x = without_scale(net, add->inputs[side], &scale, &tried);
      a->mask = add->inputs[!side];
      product = fits_mask(net, a->mask, shape) ? matmul_of(net, x) : -1;
      if (product < 0) continue;
      a->scale = scale;
      *f = tried;
      f->nodes[f->n++] = maker;
    }
  } else {
    x = without_scale(net, scores, &a->scale, f);
    product = matmul_of(net, x);
  }
  if (product < 0 || f->n + 3 > MOST_NODES) return false;
  if (!laci_shape_equal(laci_net_shape(net, x), shape)) return false;
  f->nodes[f->n++] = product;
  a->q = without_scale(net, net->graph->nodes[product].inputs[0], &a->scale, f);
  a->k = without_scale(net, net->graph->nodes[product].inputs[1], &a->scale, f);
  return true;
}

/** Where(IsNaN(p), 0, p), which guards a Softmax: its result; or p itself. */
static int without_guard(laci_net *net, int p, attention *a, found *f) {
  const laci_graph *graph = net->graph;
  const laci_value *v = &graph->values[p];
  int is_nan = -1, where = -1;
  double zero = 1;
  if (laci_net_uses(net, p) != 2) return p;
  for (int at = 0; at < v->n_readers; at++) {
    if (!net->computed[v->readers[at]]) continue;
    if (laci_node_is(&graph->nodes[v->readers[at]], "IsNaN")) is_nan = v->readers[at];
    if (laci_node_is(&graph->nodes[v->readers[at]], "Where")) where = v->readers[at];
  }
  if (is_nan < 0 || where < 0 || f->n + 2 > MOST_NODES) return p;
  const laci_node *node = &graph->nodes[where];
  bool guards = laci_net_only_reader(net, graph->nodes[is_nan].outputs[0]) == where &&
                node->inputs[0] == graph->nodes[is_nan].outputs[0] && node->inputs[2] == p;
  if (!guards || !laci_net_scalar(net, node->inputs[1], &zero) || zero != 0) return p;
  if (!laci_shape_equal(laci_net_shape(net, node->outputs[0]), laci_net_shape(net, p))) return p;
  f->nodes[f->n++] = is_nan;
  f->nodes[f->n++] = where;
  a->zero_nan = true;
  return node->outputs[0];
}

/** All three operands change from run to run, with the same axes in front. */
static bool fits_operands(const laci_net *net, const attention *a) {
  const laci_shape *q = laci_net_shape(net, a->q), *k = laci_net_shape(net, a->k);
  const laci_shape *v = laci_net_shape(net, a->v);
  int rank = q->rank;
  bool fits = rank >= 2 && k->rank == rank && v->rank == rank && a->v != a->k;
  for (int axis = 0; axis + 2 < rank && fits; axis++) {
    fits = q->dims[axis] == k->dims[axis] && q->dims[axis] == v->dims[axis];
  }
  const int values[] = {a->q, a->k, a->v};
  for (int at = 0; at < 3 && fits; at++) {
    fits = !laci_net_is_constant(net, values[at]) && laci_net_is_float(net, values[at]) &&
           laci_shape_count(laci_net_shape(net, values[at])) > 0;
  }
  const laci_attention sizes = {.n_queries = 1,
                                .n_keys = fits ? k->dims[rank - 1] : 0,
                                .depth = fits ? k->dims[rank - 2] : 0,
                                .width = fits ? v->dims[rank - 1] : 0};
  return fits && laci_attention_scratch(&sizes) > 0;
}

/** Takes a Reshape that changes nothing and a Transpose that leaves the last axis. */
static void take_moves(laci_net *net, laci_net_layer *layer, attention *a) {
  int rank = laci_net_shape(net, layer->output)->rank, next;
  for (int axis = 0; axis < rank; axis++) a->places[axis] = axis;
  while ((next = laci_net_only_reader(net, layer->output)) >= 0) {
    const laci_node *node = &net->graph->nodes[next];
    bool same = laci_node_is(node, "Reshape") || laci_node_is(node, "Identity");
    if (node->inputs[0] != layer->output) return;
    if (!same || !laci_shape_equal(laci_net_shape(net, node->outputs[0]),
                                   laci_net_shape(net, layer->output))) {
      break;
    }
    laci_net_melt(net, layer, next);
  }
  if (next < 0 || !laci_node_is(&net->graph->nodes[next], "Transpose")) return;
  size_t n = 0;
  const int64_t *order = laci_node_ints(&net->graph->nodes[next], "perm", &n);
  if (!order || (int)n != rank || order[rank - 1] != rank - 1) return;
  for (int axis = 0; axis < rank; axis++) a->places[order[axis]] = axis;
  laci_net_melt(net, layer, next);
}

static laci_net_builder build_attention;

bool laci_net_find_attention(laci_net *net, int softmax) {
  const laci_node *node = &net->graph->nodes[softmax];
  attention a = {.mask = -1, .scale = 1}, *kept;
  found f = {.nodes = {softmax}, .n = 1};
  if (!laci_node_is(node, "Softmax") || !laci_net_is_float(net, node->inputs[0])) return false;
  int rank = laci_net_shape(net, node->inputs[0])->rank;
  int64_t axis = laci_node_int(node, "axis", node->version < 13 ? 1 : -1);
  if (axis != -1 && axis != rank - 1) return false;
  if (laci_net_uses(net, node->inputs[0]) != 1) return false;
  if (!find_scores(net, node->inputs[0], &a, &f)) return false;
  int weights = without_guard(net, node->outputs[0], &a, &f);
  a.product = laci_net_only_reader(net, weights);
  if (a.product < 0 || !laci_node_is(&net->graph->nodes[a.product], "MatMul")) return false;
  if (net->graph->nodes[a.product].inputs[0] != weights) return false;
  a.v = net->graph->nodes[a.product].inputs[1];
  if (!fits_operands(net, &a)) return false;
  kept = laci_net_new(net, 1, sizeof *kept);
  if (!kept) return false;
  laci_net_layer *layer = &net->layers[a.product];
  laci_net_absorb(net, a.product, f.nodes, f.n);
  take_moves(net, layer, &a);
  *kept = a;
  layer->build = build_attention;
  layer->pattern = kept;
  const int reads[] = {a.q, a.k, a.v, a.mask};
  for (int at = 0; at < 4; at++) {
    if (reads[at] >= 0) layer->reads[layer->n_reads++] = reads[at];
  }
  return true;
}

/* ---- Running ---- */

/** A tensor that a step reads or writes: where index 0 is, and the way along each axis. */
typedef struct operand {
  int tensor;
  int64_t offset, strides[LACI_MAX_RANK]; /* elements */
} operand;

typedef struct attend_step {
  laci_attention a;
  laci_attend *attend;
  int n_outer; /* axes in front of the matrices */
  int64_t sizes[LACI_MAX_RANK], n_heads, n_parts;
  operand q, k, v, mask, y; /* mask.tensor -1: none */
  int scratch;
  size_t scratch_bytes; /* of one part */
} attend_step;

typedef struct work {
  const laci_net *net;
  const attend_step *s;
} work;

static char *at_head(const work *w, const operand *o, int64_t head, size_t element) {
  int64_t at = o->offset;
  if (o->tensor < 0) return NULL;
  for (int axis = w->s->n_outer - 1; axis >= 0; axis--) {
    at += head % w->s->sizes[axis] * o->strides[axis];
    head /= w->s->sizes[axis];
  }
  return (char *)laci_net_data(w->net, o->tensor) + at * (int64_t)element;
}

static void attend_parts(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  const attend_step *s = w->s;
  size_t element = s->a.bf16 ? sizeof(uint16_t) : sizeof(float);
  for (int64_t part = begin; part < end; part++) {
    void *scratch = (char *)laci_net_data(w->net, s->scratch) + (size_t)part * s->scratch_bytes;
    int64_t last = (part + 1) * s->n_heads / s->n_parts;
    for (int64_t h = part * s->n_heads / s->n_parts; h < last; h++) {
      const laci_attention_head head = {
          .q = at_head(w, &s->q, h, element),
          .k = at_head(w, &s->k, h, element),
          .v = at_head(w, &s->v, h, element),
          .mask = (const float *)(const void *)at_head(w, &s->mask, h, sizeof(float)),
          .y = at_head(w, &s->y, h, element),
          .scratch = scratch};
      s->attend(&s->a, &head);
    }
  }
}

static lac_status run_attention(laci_net *net, laci_net_step *step, lac_error *err) {
  const attend_step *s = step->context;
  work w = {.net = net, .s = s};
  (void)err;
  laci_pool_for(net->pool, s->n_parts, 1, attend_parts, &w);
  return LAC_OK;
}

/* ---- Building ---- */

/** The tensor with elements of the net's type whose axis `along` has stride 1, copied if need be.
 */
static operand rows_of(laci_net *net, int value, int along) {
  operand o = {.tensor = laci_net_read(net, value)};
  dnnl_data_type_t dt = laci_net_dt(net);
  if (o.tensor < 0) return o;
  const laci_shape shape = net->tensors[o.tensor].shape;
  bool fits = net->tensors[o.tensor].dt == dt &&
              laci_md_layout(net->tensors[o.tensor].md, shape.rank, o.strides, &o.offset);
  if (fits && (o.strides[along] == 1 || shape.dims[along] == 1)) return o;
  dnnl_dims_t strides;
  int64_t stride = shape.dims[along];
  laci_md md = NULL;
  for (int axis = shape.rank - 1; axis >= 0; axis--) {
    strides[axis] = axis == along ? 1 : stride;
    if (axis != along) stride *= shape.dims[axis];
  }
  if (!laci_md_strided(&md, shape.rank, shape.dims, dt, strides)) laci_net_no_memory(net);
  o.tensor = laci_net_as(net, o.tensor, md, dt);
  laci_md_drop(md);
  o.offset = 0;
  memcpy(o.strides, strides, (size_t)shape.rank * sizeof *strides);
  return o;
}

/** Strides over the scores' axes; 0 where the mask repeats. */
static operand mask_of(laci_net *net, int value, int rank) {
  operand o = {.tensor = -1};
  if (value < 0) return o;
  const laci_shape shape = *laci_net_shape(net, value);
  o.tensor = laci_net_as_dense(net, laci_net_read(net, value), dnnl_f32);
  int64_t stride = 1;
  for (int axis = shape.rank - 1; axis >= 0; axis--) {
    o.strides[rank - shape.rank + axis] = shape.dims[axis] == 1 ? 0 : stride;
    stride *= shape.dims[axis];
  }
  return o;
}

/** The layer's output, row-major; its strides along the product's axes. */
static operand output_of(laci_net *net, const laci_net_layer *layer, const int *places) {
  const laci_shape *y = laci_net_shape(net, layer->output);
  dnnl_data_type_t dt = laci_net_dt(net);
  operand o = {.tensor = -1};
  int64_t strides[LACI_MAX_RANK], stride = 1;
  laci_md md = laci_net_dense(net, y, dt);
  size_t bytes = md ? dnnl_memory_desc_get_size(md) : 0;
  o.tensor = laci_net_tensor_new(net, y, dt, md, laci_net_buffer_new(net, LACI_PLACE_ARENA, bytes));
  for (int axis = y->rank - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= y->dims[axis];
  }
  for (int axis = 0; axis < y->rank; axis++) o.strides[axis] = strides[places[axis]];
  return o;
}

static void describe(laci_net *net, attend_step *s, const attention *a) {
  const laci_shape *q = laci_net_shape(net, a->q), *v = laci_net_shape(net, a->v);
  int rank = q->rank, row = rank - 2, last = rank - 1;
  s->n_outer = row;
  s->n_heads = laci_shape_count_range(q, 0, row);
  for (int axis = 0; axis < row; axis++) s->sizes[axis] = q->dims[axis];
  s->a = (laci_attention){.n_queries = q->dims[row],
                          .n_keys = v->dims[row],
                          .depth = q->dims[last],
                          .width = v->dims[last],
                          .q_row = s->q.strides[row],
                          .k_row = s->k.strides[last],
                          .v_row = s->v.strides[row],
                          .y_row = s->y.strides[row],
                          .mask_row = s->mask.strides[row],
                          .mask_column = s->mask.strides[last],
                          .scale = a->scale,
                          .bf16 = net->bf16,
                          .zero_nan = a->zero_nan};
  s->attend = laci_attend_now(net->bf16);
  s->n_parts = s->n_heads < net->n_threads ? s->n_heads : net->n_threads;
  s->scratch_bytes = (laci_attention_scratch(&s->a) + 63) / 64 * 64;
}

static void build_attention(laci_net *net, const laci_net_layer *layer) {
  const attention *a = layer->pattern;
  attend_step *s = laci_net_new(net, 1, sizeof *s);
  int rank = laci_net_shape(net, a->q)->rank;
  if (!s) return;
  s->q = rows_of(net, a->q, rank - 1);
  s->k = rows_of(net, a->k, rank - 2);
  s->v = rows_of(net, a->v, rank - 1);
  s->mask = mask_of(net, a->mask, rank);
  s->y = output_of(net, layer, a->places);
  if (net->status) return;
  describe(net, s, a);
  s->scratch = laci_net_scratch(net, s->scratch_bytes * (size_t)s->n_parts);
  laci_net_step *step = laci_net_step_code(
      net, &net->graph->nodes[layer->node], run_attention, 6,
      (int[]){s->q.tensor, s->k.tensor, s->v.tensor, s->y.tensor, s->scratch, s->mask.tensor});
  if (!step) return;
  step->what = a->mask >= 0 ? "Attention + mask" : "Attention";
  step->kernel = "attention";
  step->context = s;
  step->shown = s->y.tensor;
  step->codes[4] = DNNL_ARG_SCRATCHPAD;
  step->flops = 2 * s->n_heads * s->a.n_queries * s->a.n_keys * (s->a.depth + s->a.width);
  laci_net_bind(net, layer->output, s->y.tensor);
}
