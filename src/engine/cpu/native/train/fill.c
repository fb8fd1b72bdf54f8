/* SPDX-License-Identifier: Apache-2.0
 * Copies weights that training changes into generated code, or into the compiled kernel: it gathers
 * the elements that the mask keeps. For code of bf16 pairs, the whole weight is rounded first, so
 * that a pair is gathered from two bf16 values. */
#include <string.h>

#include "jit/sparse_code.h"
#include "kernel/sparse/bf16_pairs.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "cpu/pool.h"

typedef struct fill_step {
  const laci_native_kernel *kernel;
  int64_t n_weights;
  int weight, scratch; /* indices of tensors: the weight, and its copy in bf16 (-1: none) */
} fill_step;

typedef struct filling {
  const laci_sparse_places *places;
  const float *weight;
  uint16_t *bf16; /* the weight's elements as bf16; bf16[LACI_SPARSE_NO_SOURCE], the one before
                     them, is zero */
  float *to;
} filling;

enum { GRAIN = 1 << 14 };

static void round_weight_range(int64_t begin, int64_t end, void *context) {
  const filling *f = context;
  laci_sparse_round_variant()(f->weight + begin, end - begin, f->bf16 + begin);
}

static void fill_weight_range(int64_t begin, int64_t end, void *context) {
  const filling *f = context;
  for (int64_t k = begin; k < end; k++) f->to[k] = f->weight[f->places->at[k]];
}

/** Gathers bf16 pairs. Where a pair has only one element, the index of the other is
 * LACI_SPARSE_NO_SOURCE, and that half is zero. */
static void fill_bf16_pairs(int64_t begin, int64_t end, void *context) {
  const filling *f = context;
  const int32_t *at = f->places->at + 2 * begin;
  for (int64_t k = begin; k < end; k++, at += 2) {
    const uint32_t pair = f->bf16[at[0]] | (uint32_t)f->bf16[at[1]] << 16;
    memcpy(f->to + k, &pair, sizeof pair);
  }
}

static lac_status run_weight_fill(laci_net *net, laci_net_step *step, lac_error *err) {
  const fill_step *s = step->context;
  filling f = {.weight = laci_net_tensor_data(net, s->weight)};
  (void)err;
  if (s->scratch >= 0) {
    f.bf16 = (uint16_t *)laci_net_tensor_data(net, s->scratch) + 1;
    f.bf16[LACI_SPARSE_NO_SOURCE] = 0;
    laci_pool_for(net->pool, s->n_weights, GRAIN, round_weight_range, &f);
  }
  for (const laci_native_kernel *kernel = s->kernel; kernel; kernel = kernel->next) {
    f.places = &kernel->places;
    f.to = kernel->code ? laci_sparse_code_weights(kernel->code) : kernel->convolution.kept.weight;
    if (kernel->of_bf16_pairs)
      laci_pool_for(net->pool, f.places->n / 2, GRAIN, fill_bf16_pairs, &f);
    else laci_pool_for(net->pool, f.places->n, GRAIN, fill_weight_range, &f);
  }
  return LAC_OK;
}

/* Adds the step, unless the node is a recomputation: the weights are then already in place. */
void laci_native_add_fill_step(laci_net *net, const laci_native_layer *layer,
                               const laci_native_kernel *kernel) {
  const laci_node *node = &net->plan.graph->nodes[layer->fused->node];
  const int weight = node->inputs[1];
  fill_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s || net->recomputing) return;
  *s = (fill_step){
      .kernel = kernel,
      .n_weights = laci_shape_count(laci_plan_shape(&net->plan, weight)),
      .weight = laci_net_convert_to_dense(net, laci_net_read_value(net, weight), LACI_ELEMENT_F32),
      .scratch = -1};
  if (kernel->of_bf16_pairs) {
    s->scratch = laci_net_scratch_new(net, (size_t)(s->n_weights + 1) * sizeof(uint16_t));
  }
  laci_net_step *step =
      laci_net_step_add_code(net, node, run_weight_fill, 2, (int[]){s->weight, s->scratch});
  if (!step) return;
  laci_net_step_mark_scratch(step, 1);
  step->what = "kept weights";
  step->kernel = "own";
  step->context = s;
  step->shown = s->weight;
}
