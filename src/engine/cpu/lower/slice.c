/* SPDX-License-Identifier: Apache-2.0
 * Slices, and their gradient: a tensor of zeros with the slice's gradient written to the elements
 * that Slice had read.
 *
 * A slice with all steps 1 is a view. Other slices, and the gradient, visit the rows of the part. A
 * tensor in blocks of 16 channels is described with five axes, the last of which is a block, so
 * that slices along height and width need no other layout. */
#include "engine/cpu/lower/move.h"

#include <string.h>

#include "cpu/pool.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/plan/moves.h"
#include "engine/cpu/onednn/onednn.h"

/** The elements that a slice reads, as a part of the whole tensor. */
typedef struct part {
  laci_shape shape; /* the part's shape in the order of memory, last axis innermost */
  int64_t first, strides[LACI_MAX_RANK]; /* offset of the part's first element in the whole tensor,
                                            and strides, in elements */
  size_t element, whole;                 /* bytes of an element (element), and of the whole tensor
                                            (whole) */
} part;

typedef struct part_work {
  const part *p;
  uint8_t *small, *large;
  /* true: rows are copied from the whole to the part; false: from the part to the whole */
  bool collects;
} part_work;

/* ---- Strides ---- */

/** Returns the five-axis shape of [n, c, h, w] in blocks: [n, c / 16, h, w, 16]. */
static laci_shape shape_in_channel_blocks(const laci_shape *s) {
  return laci_shape_of(5, (int64_t[]){s->dims[0], s->dims[1] / LACI_NET_BLOCK, s->dims[2],
                                      s->dims[3], LACI_NET_BLOCK});
}

/** Describes, in *p, the part of x with the shape y that starts and steps select. blocks: x is in
 * blocks of 16 channels. */
static void describe_selected_part(const laci_shape *x, const laci_shape *y, const int64_t *starts,
                                   const int64_t *steps, bool blocks, part *p) {
  laci_shape whole = blocks ? shape_in_channel_blocks(x) : *x;
  int64_t stride = 1;
  p->shape = blocks ? shape_in_channel_blocks(y) : *y;
  p->first = 0;
  for (int axis = whole.rank - 1; axis >= 0; axis--) {
    bool inner = blocks && axis == 4; /* the axis inside a block, along which channels have step
                                         1 */
    int64_t start = inner ? 0 : blocks && axis == 1 ? starts[1] / LACI_NET_BLOCK : starts[axis];
    /* an axis of size 0 or 1 is never stepped along, and its step may be any number */
    p->strides[axis] = p->shape.dims[axis] > 1 ? stride * (inner ? 1 : steps[axis]) : 0;
    p->first += stride * start;
    stride *= whole.dims[axis];
  }
}

/** Does the slice select whole blocks of channels? */
static bool selects_whole_channel_blocks(const laci_shape *y, const int64_t *starts,
                                         const int64_t *steps) {
  return y->rank == 4 && y->dims[1] % LACI_NET_BLOCK == 0 && starts[1] % LACI_NET_BLOCK == 0 &&
         steps[1] == 1;
}

/* ---- Running ---- */

static void copy_slice_row(const part_work *w, int64_t row, int64_t place) {
  const part *p = w->p;
  int last = p->shape.rank - 1;
  size_t n = (size_t)p->shape.dims[last];
  ptrdiff_t step = (ptrdiff_t)p->strides[last] * (ptrdiff_t)p->element;
  uint8_t *small = w->small + (size_t)row * n * p->element;
  uint8_t *large = w->large + place * (int64_t)p->element;
  if (p->strides[last] == 1) {
    if (w->collects) memcpy(small, large, n * p->element);
    else memcpy(large, small, n * p->element);
    return;
  }
  for (size_t at = 0; at < n; at++, small += p->element, large += step) {
    if (w->collects) memcpy(small, large, p->element);
    else memcpy(large, small, p->element);
  }
}

static void copy_slice_rows(int64_t begin, int64_t end, void *context) {
  const part_work *w = context;
  for (int64_t row = begin; row < end; row++) {
    int64_t place = w->p->first, rest = row;
    for (int axis = w->p->shape.rank - 2; axis >= 0; axis--) {
      place += rest % w->p->shape.dims[axis] * w->p->strides[axis];
      rest /= w->p->shape.dims[axis];
    }
    copy_slice_row(w, row, place);
  }
}

enum { ROWS_AT_ONCE = 256 };

/* Runs a slice. step->tensors: the whole, the part */
static lac_status run_slice(laci_net *net, laci_net_step *step, lac_error *err) {
  const part *p = step->context;
  part_work w = {.p = p,
                 .large = laci_net_tensor_data(net, step->tensors[0]),
                 .small = laci_net_tensor_data(net, step->tensors[1]),
                 .collects = true};
  (void)err;
  laci_pool_for(net->pool, laci_shape_count_range(&p->shape, 0, p->shape.rank - 1), ROWS_AT_ONCE,
                copy_slice_rows, &w);
  return LAC_OK;
}

/* Runs the gradient of a slice. step->tensors: the gradient of the part, the gradient of the
 * whole */
static lac_status run_slice_grad(laci_net *net, laci_net_step *step, lac_error *err) {
  const part *p = step->context;
  part_work w = {.p = p,
                 .small = laci_net_tensor_data(net, step->tensors[0]),
                 .large = laci_net_tensor_data(net, step->tensors[1])};
  (void)err;
  memset(w.large, 0, p->whole);
  laci_pool_for(net->pool, laci_shape_count_range(&p->shape, 0, p->shape.rank - 1), ROWS_AT_ONCE,
                copy_slice_rows, &w);
  return LAC_OK;
}

/* ---- Building ---- */

static void add_slice_step(laci_net *net, const laci_fused *fused, laci_net_code *code, part *p,
                           int from, int to) {
  laci_net_step *step =
      laci_net_step_add_code(net, &net->plan.graph->nodes[fused->node], code, 2, (int[]){from, to});
  if (!step) return;
  step->context = p;
  step->shown = to;
  laci_net_bind_value(net, fused->output, to);
}

/** Adds a new tensor of the given shape, in blocks of 16 channels or row-major. */
static int new_result_tensor(laci_net *net, const laci_shape *shape, laci_element dt, bool blocks) {
  laci_layout *md =
      blocks ? laci_net_blocks_layout(net, shape, dt) : laci_net_dense_layout(net, shape, dt);
  int tensor = md ? laci_net_new_result(net, shape, dt, md) : -1;
  laci_layout_destroy(md);
  return tensor;
}

static size_t element_bytes(laci_element dt) { return dt == LACI_ELEMENT_BF16 ? 2 : 4; }

/* ---- Slice ---- */

static bool can_lower_slice(laci_net *net, const laci_fused *fused, const char **why) {
  laci_slice_start c;
  *why = "integers, or places that depend on data";
  return laci_plan_read_slice_start(&net->plan, &net->plan.graph->nodes[fused->node], &c);
}

static bool can_lower_slice_view(laci_net *net, const laci_fused *fused, const char **why) {
  laci_slice_start c;
  *why = "steps over elements";
  return laci_plan_read_slice_start(&net->plan, &net->plan.graph->nodes[fused->node], &c) &&
         !c.strided;
}

static void lower_slice_view(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int from = laci_net_read_value(net, node->inputs[0]);
  laci_slice_start c;
  if (!laci_plan_read_slice_start(&net->plan, node, &c)) return;
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  laci_net_bind_value(net, fused->output, laci_move_view_or_copy_part(net, from, y, c.starts));
}

static void lower_slice(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, node->inputs[0]),
                   *y = laci_plan_shape(&net->plan, fused->output);
  int from = laci_net_read_value(net, node->inputs[0]);
  part *p = laci_plan_alloc(&net->plan, 1, sizeof *p);
  laci_slice_start c;
  if (!p || from < 0 || !laci_plan_read_slice_start(&net->plan, node, &c)) return;
  laci_element dt = net->tensors[from].dt;
  bool blocks =
      laci_net_is_in_blocks(net, from) && selects_whole_channel_blocks(y, c.starts, c.steps);
  if (!blocks) from = laci_net_convert_to_dense(net, from, dt);
  describe_selected_part(x, y, c.starts, c.steps, blocks, p);
  p->element = element_bytes(dt);
  add_slice_step(net, fused, run_slice, p, from, new_result_tensor(net, y, dt, blocks));
}

/* ---- The gradient of a Slice ---- */

static bool can_lower_slice_gradient(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  int rank = laci_plan_shape(&net->plan, fused->output)->rank;
  size_t n_starts, n_steps;
  const int64_t *starts = laci_node_ints(node, "starts", &n_starts);
  const int64_t *steps = laci_node_ints(node, "steps", &n_steps);
  *why = "a slice of another form";
  return starts && steps && (int)n_starts == rank && (int)n_steps == rank && rank >= 1;
}

static void lower_slice_gradient(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *x = laci_plan_shape(&net->plan, fused->output),
                   *y = laci_plan_shape(&net->plan, node->inputs[0]);
  size_t n;
  const int64_t *starts = laci_node_ints(node, "starts", &n);
  const int64_t *steps = laci_node_ints(node, "steps", &n);
  laci_element dt = laci_net_float_element(net);
  part *p = laci_plan_alloc(&net->plan, 1, sizeof *p);
  if (!p) return;
  bool blocks = net->blocks && x->rank == 4 && x->dims[1] % LACI_NET_BLOCK == 0 &&
                selects_whole_channel_blocks(y, starts, steps);
  laci_layout *layout =
      blocks ? laci_net_blocks_layout(net, y, dt) : laci_net_dense_layout(net, y, dt);
  int from =
      layout ? laci_net_convert_tensor(net, laci_net_read_value(net, node->inputs[0]), layout, dt)
             : -1;
  int to = new_result_tensor(net, x, dt, blocks);
  laci_layout_destroy(layout);
  describe_selected_part(x, y, starts, steps, blocks, p);
  p->element = element_bytes(dt);
  p->whole = (size_t)laci_shape_count(x) * p->element;
  add_slice_step(net, fused, run_slice_grad, p, from, to);
}

const laci_implementation laci_implementations_slice[] = {
    {"sparse kernels", LACI_FUSIBLE_NOTHING, laci_can_lower_native, laci_lower_native},
    {"a part", LACI_FUSIBLE_NOTHING, can_lower_slice_view, lower_slice_view},
    {"steps over elements", LACI_FUSIBLE_NOTHING, can_lower_slice, lower_slice},
    {.name = NULL},
};
const laci_implementation laci_implementations_slice_grad[] = {
    {"zeros around", LACI_FUSIBLE_NOTHING, can_lower_slice_gradient, lower_slice_gradient},
    {.name = NULL},
};
