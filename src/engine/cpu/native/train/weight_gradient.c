/* SPDX-License-Identifier: Apache-2.0
 * The gradient of a native layer's weight under a mask: it is computed for kept weights only, and
 * is zero for the others. It is computed from the layer's input and the gradient of its results,
 * both in HWC16N. Read next: kernel/sparse/gradient.h. */
#include "base/memory.h"
#include "kernel/sparse/gradient.h"

#include <string.h>

#include "engine/cpu/native/layout/tensors.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/train/train.h"
#include "cpu/pool.h"
#include "engine/cpu/onednn/onednn.h"

typedef struct laci_native_weight_gradient {
  laci_sparse_gradient g;
  int32_t *places;         /* [g.n_kept] index, in the weight tensor, of each weight that the mask
                              keeps */
  laci_sparse_layout dy;   /* the layout of dy, the gradient of the layer's results */
  laci_sparse_tile *tiles; /* the product's tiles for the layout of dy; NULL: those of the forward
                              product are used */
} laci_native_weight_gradient;

/* ---- While the forward layer is lowered ---- */

/** Returns the layout of dy, the gradient of the layer's results. dy and the results are read by
 * different layers, so that their borders may differ. */
static laci_sparse_layout make_dy_layout(const laci_net *net, const laci_native_layer *layer,
                                         const laci_sparse_convolution *convolution) {
  const laci_graph *graph = net->plan.graph;
  const int weight = graph->nodes[layer->fused->node].inputs[1];
  const int producer = graph->values[*laci_net_find_weight_facts(net, weight)->gradient].producer;
  const int dy = producer >= 0 ? graph->nodes[producer].inputs[1] : -1;
  const bool placed = dy >= 0 && laci_native_has_assigned_layout(net, dy);
  return placed ? *laci_native_assigned_layout(net, dy) : convolution->out;
}

/** Makes the product's tiles for the layout of dy, whose border may differ. */
static bool make_tiles_for_dy(laci_net *net, const laci_sparse_convolution *convolution,
                              laci_native_weight_gradient *made) {
  const laci_sparse_layout *from = &convolution->out, *to = &made->dy;
  if (laci_sparse_layout_equal(from, to)) return true;
  made->tiles = laci_alloc((size_t)convolution->n_tiles, sizeof *made->tiles);
  if (!made->tiles) laci_plan_fail_no_memory(&net->plan);
  for (int64_t at = 0; made->tiles && at < convolution->n_tiles; at++) {
    laci_sparse_tile tile = convolution->tiles[at];
    const int64_t image_block = tile.out / from->n_floats, place = tile.out % from->n_floats;
    const int64_t y = place / from->row_stride - from->top;
    const int64_t x = place % from->row_stride / from->pixel_stride - from->left;
    tile.out = image_block * to->n_floats + laci_sparse_offset(to, 0, y, x);
    made->tiles[at] = tile;
  }
  return made->tiles;
}

void laci_native_destroy_gradient(laci_native_kernel *kernel) {
  if (!kernel->gradient) return;
  laci_sparse_gradient_clear(&kernel->gradient->g);
  laci_free(kernel->gradient->places);
  laci_free(kernel->gradient->tiles);
  kernel->gradient = NULL;
}

bool laci_native_prepare_gradient(laci_net *net, const laci_native_layer *layer,
                                  laci_native_kernel *kernel) {
  const laci_sparse_convolution *convolution = &kernel->convolution;
  const int weight = net->plan.graph->nodes[layer->fused->node].inputs[1];
  if (layer->transposed || !laci_net_find_weight_facts(net, weight)->gradient) return false;
  laci_native_weight_gradient *made = laci_plan_alloc(&net->plan, 1, sizeof *made);
  lac_error why = {0};
  if (!made) return false;
  kernel->gradient = made;
  made->dy = make_dy_layout(net, layer, convolution);
  if (!make_tiles_for_dy(net, convolution, made)) return false;
  lac_status st = laci_sparse_gradient_init(&convolution->product,
                                            made->tiles ? made->tiles : convolution->tiles,
                                            convolution->n_tiles, &made->g, &why);
  if (st == LAC_UNSUPPORTED) laci_native_destroy_gradient(kernel);
  else if (st) laci_plan_fail(&net->plan, st, "%s", why.text);
  if (st) return false;
  made->places = laci_native_find_weight_indices(net, layer, 0, convolution);
  net->plan.weight_bytes += (size_t)made->g.n_kept * sizeof *made->places +
                            (size_t)made->g.n_items * sizeof *made->g.items;
  return made->places;
}

/* ---- A step ---- */

typedef struct gradient_step {
  const laci_native_weight_gradient *of;
  laci_sparse_gradient_run *run;
  int64_t n_weights;
  int n_parts;                  /* number of parts of the sum, one for each thread */
  int x, dy, dw, kept, scratch; /* indices of tensors; `kept`: gradients of the weights that the
                                   mask keeps */
} gradient_step;

typedef struct gradient_work {
  const gradient_step *s;
  /* operands of the kernel; `scratch` is that of the first part */
  laci_sparse_gradient_operands slopes;
  float *dw;
} gradient_work;

static void sum_gradient_of_items(int64_t begin, int64_t end, void *context) {
  const gradient_work *w = context;
  const laci_sparse_gradient *g = &w->s->of->g;
  for (int64_t part = begin; part < end; part++) {
    laci_sparse_gradient_operands slopes = w->slopes;
    slopes.scratch += (size_t)part * laci_sparse_gradient_scratch_floats(g);
    w->s->run(g, &slopes, part * g->n_items / w->s->n_parts,
              (part + 1) * g->n_items / w->s->n_parts);
  }
}

static void zero_gradient_elements(int64_t begin, int64_t end, void *context) {
  const gradient_work *w = context;
  memset(w->dw + begin, 0, (size_t)(end - begin) * sizeof *w->dw);
}

static void scatter_kept_gradients(int64_t begin, int64_t end, void *context) {
  const gradient_work *w = context;
  for (int64_t k = begin; k < end; k++) w->dw[w->s->of->places[k]] = w->slopes.gradient[k];
}

static lac_status run_weight_gradient(laci_net *net, laci_net_step *step, lac_error *err) {
  enum { GRAIN = 1 << 16 };
  const gradient_step *s = step->context;
  gradient_work w = {.s = s,
                     .slopes = {.x = laci_net_tensor_data(net, s->x),
                                .dy = laci_net_tensor_data(net, s->dy),
                                .gradient = laci_net_tensor_data(net, s->kept),
                                .scratch = laci_net_tensor_data(net, s->scratch)},
                     .dw = laci_net_tensor_data(net, s->dw)};
  (void)err;
  laci_pool_for(net->pool, s->n_parts, 1, sum_gradient_of_items, &w);
  laci_pool_for(net->pool, s->n_weights, GRAIN, zero_gradient_elements, &w);
  laci_pool_for(net->pool, s->of->g.n_kept, GRAIN, scatter_kept_gradients, &w);
  return LAC_OK;
}

/* ---- Lowering ---- */

/** Returns the chosen forward layer whose weight gradient the fused node computes; NULL: there is
 * none. */
static const laci_native_layer *find_forward_layer(const laci_net *net, const laci_fused *fused) {
  const laci_native_net *native = net->native;
  for (int at = 0; native && at < native->n_layers; at++) {
    const laci_native_layer *layer = &native->layers[at];
    if (!layer->chosen || !layer->mask || layer->transposed) continue;
    const int weight = net->plan.graph->nodes[layer->fused->node].inputs[1];
    const int *gradient = laci_net_find_weight_facts(net, weight)->gradient;
    if (gradient && *gradient == fused->output) return layer;
  }
  return NULL;
}

bool laci_can_lower_native_gradient(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_native_layer *layer = find_forward_layer(net, fused);
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  *why = "no mask is known that stays, or dense kernels are faster";
  return layer && layer->kernel && layer->kernel->gradient && layer->input == node->inputs[0];
}

void laci_lower_native_gradient(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_native_layer *layer = find_forward_layer(net, fused);
  const laci_native_weight_gradient *of = layer->kernel->gradient;
  const laci_native_layout in = {.layout = layer->kernel->convolution.in};
  const laci_native_layout out = {.layout = of->dy};
  const laci_shape *shape = laci_plan_shape(&net->plan, fused->output);
  gradient_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  laci_layout *md = laci_net_dense_layout(net, shape, LACI_ELEMENT_F32);
  if (!s || !md) return;
  const size_t each = laci_sparse_gradient_scratch_floats(&of->g);
  *s = (gradient_step){
      .of = of,
      .run = of->g.bf16 ? laci_sparse_gradient_bf16_variant() : laci_sparse_gradient_variant(),
      .n_weights = laci_shape_count(shape)};
  s->n_parts = (int)(net->n_threads < of->g.n_items ? net->n_threads : of->g.n_items);
  s->x = laci_native_read_in_layout(net, node->inputs[0], &in);
  s->dy = laci_native_read_in_layout(net, node->inputs[1], &out);
  s->dw = laci_net_new_result(net, shape, LACI_ELEMENT_F32, md);
  s->kept = laci_net_scratch_new(net, (size_t)of->g.n_kept * sizeof(float));
  s->scratch = laci_net_scratch_new(net, each * (size_t)s->n_parts * sizeof(float));
  laci_layout_destroy(md);
  laci_net_step *step = laci_net_step_add_code(net, node, run_weight_gradient, 5,
                                               (int[]){s->x, s->dy, s->kept, s->scratch, s->dw});
  if (!step) return;
  laci_net_step_mark_scratch(step, 2);
  laci_net_step_mark_scratch(step, 3);
  step->kernel = "kept weights alone";
  step->sparse = true;
  step->context = s;
  step->shown = s->dw;
  laci_net_bind_value(net, fused->output, s->dw);
}
