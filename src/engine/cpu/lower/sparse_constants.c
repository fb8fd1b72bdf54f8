/* SPDX-License-Identifier: Apache-2.0
 * Weights and bias of a layer, whether it is a convolution or a product. */
#include <string.h>

#include "engine/cpu/lower/conv.h"
#include "engine/cpu/lower/product.h"
#include "engine/cpu/lower/sparse.h"

void laci_sparse_free_weights(laci_sparse_weights *d) {
  laci_free(d->weight);
  laci_free(d->kept);
}

/** columns: of a matrix that lies transposed; 0: it lies as it should. */
typedef struct target {
  laci_sparse_weights *to;
  int64_t columns, depth;
} target;

static bool take_slice(void *context, int64_t first, int64_t n, const float *x) {
  const target *t = context;
  float *weight = t->to->weight;
  uint8_t *kept = t->to->kept;
  if (t->columns == 0) {
    memcpy(weight + first, x, (size_t)n * sizeof *x);
    for (int64_t at = 0; at < n; at++) kept[first + at] = x[at] != 0;
    return true;
  }
  for (int64_t at = 0; at < n; at++) { /* whole rows: slices are cut along the slowest axis */
    const int64_t to = at % t->columns * t->depth + (first + at) / t->columns;
    weight[to] = x[at];
    kept[to] = x[at] != 0;
  }
  return true;
}

bool laci_sparse_read_weights(laci_net *net, const laci_sparse_layer *layer,
                              laci_sparse_weights *d) {
  const laci_fused *fused = layer->fused;
  const int value = net->plan.graph->nodes[fused->node].inputs[1];
  enum { EACH = 64 }; /* bytes that an element takes at most while code is generated for it */
  const int64_t n = laci_shape_count(laci_plan_shape(&net->plan, value));
  laci_net_weight weight;
  target t = {.to = d};
  if (layer->rows) {
    const laci_right r = laci_right_of(net, fused);
    weight = laci_right_weight(net, fused, &r);
    if (!r.transposed) t = (target){d, r.columns, r.depth};
  } else {
    weight = laci_conv_weight(net, fused, laci_plan_shape(&net->plan, value));
  }
  if (!laci_plan_may_take(&net->plan, laci_bytes_of(n, EACH), value)) return false;
  d->weight = laci_alloc((size_t)n, sizeof *d->weight);
  d->kept = laci_alloc((size_t)n, sizeof *d->kept);
  if (!d->weight || !d->kept) laci_plan_no_memory(&net->plan);
  else laci_net_weight_slices(net, &weight, take_slice, &t);
  return net->plan.status == LAC_OK;
}

int laci_sparse_bias(laci_net *net, const laci_sparse_layer *layer) {
  const int64_t n = layer->window.channels_out;
  int bias;
  if (layer->rows) {
    const laci_right r = laci_right_of(net, layer->fused);
    bias = laci_right_bias(net, layer->fused, &r);
  } else {
    bias = laci_conv_bias(net, layer->fused);
  }
  if (bias >= 0 || net->plan.status) return bias;
  float *zeros = laci_alloc((size_t)n, sizeof *zeros);
  if (!zeros) laci_plan_no_memory(&net->plan);
  const int tensor = zeros ? laci_net_vector(net, zeros, n) : -1;
  laci_free(zeros);
  return tensor;
}
