/* SPDX-License-Identifier: Apache-2.0
 * Reads the weights and bias of a layer, which is a convolution or a product.
 *
 * Packed weights are read row by row (packed.c). Other weights are read all at once. Then the
 * threads search rows of the product for kept weights, in two passes: the first counts them, the
 * second writes them. */
#include "engine/cpu/onednn/convolution.h"
#include "base/budget.h"
#include "base/memory.h"
#include "engine/cpu/lower/product.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "cpu/pool.h"

enum {
  GRAIN = 1 << 15,     /* number of weights that a thread searches before it takes more */
  MOST_HELD = 4 << 20, /* maximum number of floats of scratch memory that are kept for the next
                          layer */
};

/* ---- Scratch ---- */

/** Returns scratch memory for n floats; NULL: no memory, which is recorded in the plan. */
static float *reserve_scratch(laci_net *net, laci_native_scratch *s, int64_t n) {
  if (s->n >= n) return s->floats;
  laci_free(s->floats);
  s->floats = laci_alloc((size_t)n, sizeof *s->floats);
  s->n = s->floats ? n : 0;
  if (!s->floats) laci_plan_fail_no_memory(&net->plan);
  return s->floats;
}

void laci_native_clear_scratch(laci_native_net *native) {
  laci_free(native->dense.floats);
  laci_free(native->transposed.floats);
  native->dense = native->transposed = (laci_native_scratch){.n = 0};
}

/* ---- A matrix that is stored transposed ---- */

typedef struct transposition {
  const float *from; /* [depth][columns] the matrix */
  float *to;         /* [columns][depth] its transpose */
  int64_t columns, depth;
} transposition;

/** Transposes the columns [begin, end), in blocks, so that each cache line is used for several
 * columns while it is in the cache. */
static void transpose_column_range(int64_t begin, int64_t end, void *context) {
  enum { WIDE = 8, DEEP = 256 };
  const transposition *t = context;
  for (int64_t deep = 0; deep < t->depth; deep += DEEP) {
    const int64_t bottom = deep + DEEP < t->depth ? deep + DEEP : t->depth;
    for (int64_t wide = begin; wide < end; wide += WIDE) {
      const int64_t right = wide + WIDE < end ? wide + WIDE : end;
      for (int64_t d = deep; d < bottom; d++) {
        for (int64_t c = wide; c < right; c++) {
          t->to[c * t->depth + d] = t->from[d * t->columns + c];
        }
      }
    }
  }
}

static const float *transpose_weight(laci_net *net, const float *from,
                                     const laci_right_operand *r) {
  enum { COLUMNS = 64 };
  float *to = reserve_scratch(net, &net->native->transposed, r->columns * r->depth);
  transposition t = {from, to, r->columns, r->depth};
  if (to) laci_pool_for(net->pool, r->columns, COLUMNS, transpose_column_range, &t);
  return to;
}

/* ---- The kept weights ---- */

static laci_net_weight describe_layer_weight(const laci_net *net, const laci_native_layer *layer) {
  const laci_fused *fused = layer->fused;
  const int value = net->plan.graph->nodes[fused->node].inputs[1];
  if (!layer->rows) return laci_conv_weight(net, fused, laci_plan_shape(&net->plan, value));
  const laci_right_operand r = laci_right_operand_read(net, fused);
  return laci_right_operand_weight(net, fused, &r);
}

/** Reads all weights of the layer, [channels_out][inputs of a result], into scratch memory and
 * returns them. NULL after a failure. */
static const float *read_all_weights(laci_net *net, const laci_native_layer *layer,
                                     const laci_net_weight *weight) {
  float *floats = reserve_scratch(net, &net->native->dense, laci_shape_count(&weight->shape));
  if (!floats || !laci_net_read_weight_floats(net, weight, floats)) return NULL;
  if (!layer->rows) return floats;
  const laci_right_operand r = laci_right_operand_read(net, layer->fused);
  return r.transposed ? floats : transpose_weight(net, floats, &r);
}

typedef struct kept_search {
  const float *dense;
  const int32_t *dense_at;
  int64_t n_dense, length; /* n_dense: number of weights of a dense row; length: number of columns
                              of a row of the product */
  int64_t rows_together;   /* number of rows (output channels) of a convolution group */
  laci_sparse_kept_weights *kept;
} kept_search;

static void count_kept_in_rows(int64_t begin, int64_t end, void *context) {
  const kept_search *l = context;
  for (int64_t row = begin; row < end; row++) {
    const float *x = l->dense + row * l->n_dense;
    int64_t n = 0;
    for (int64_t at = 0; at < l->n_dense; at++) n += x[at] != 0;
    l->kept->row_begin[row + 1] = n;
  }
}

/** Writes the kept weights of the rows [begin, end) and their columns. No branch tests a weight,
 * since it could not be predicted: every weight is written, and overwritten by the next one if it
 * is zero. */
static void write_kept_of_rows(int64_t begin, int64_t end, void *context) {
  const kept_search *l = context;
  for (int64_t row = begin; row < end; row++) {
    const float *x = l->dense + row * l->n_dense;
    const int64_t first = row / l->rows_together * l->length;
    int64_t k = l->kept->row_begin[row];
    for (int64_t at = 0; k < l->kept->row_begin[row + 1]; at++) {
      const int32_t from = l->dense_at[at];
      const float weight = from < 0 ? 0 : x[from];
      l->kept->column[k] = (int32_t)(first + at);
      l->kept->weight[k] = weight;
      k += weight != 0;
    }
  }
}

static bool find_kept_weights(laci_net *net, const laci_native_layer *layer,
                              const laci_net_weight *weight, laci_sparse_kept_weights *kept) {
  const laci_sparse_window *g = &layer->window;
  const int64_t length = laci_sparse_row_length(g), rows = g->channels_out;
  const int64_t grain = length < GRAIN ? GRAIN / length : 1;
  const float *dense = read_all_weights(net, layer, weight);
  int32_t *dense_at = laci_alloc((size_t)length, sizeof *dense_at);
  kept_search l = {dense,  dense_at,         laci_sparse_dense_row_length(g),
                   length, rows / g->groups, kept};
  *kept = (laci_sparse_kept_weights){.row_begin =
                                         laci_alloc((size_t)rows + 1, sizeof *kept->row_begin)};
  if (dense && dense_at && kept->row_begin) {
    laci_sparse_order_columns(g, dense_at);
    laci_pool_for(net->pool, rows, grain, count_kept_in_rows, &l);
    for (int64_t row = 0; row < rows; row++) kept->row_begin[row + 1] += kept->row_begin[row];
    kept->column = laci_alloc((size_t)kept->row_begin[rows], sizeof *kept->column);
    kept->weight = laci_alloc((size_t)kept->row_begin[rows], sizeof *kept->weight);
  }
  if (kept->column && kept->weight) laci_pool_for(net->pool, rows, grain, write_kept_of_rows, &l);
  else laci_plan_fail_no_memory(&net->plan);
  if (net->native->dense.n > MOST_HELD) laci_native_clear_scratch(net->native);
  laci_free(dense_at);
  return net->plan.status == LAC_OK;
}

bool laci_native_read_kept_weights(laci_net *net, const laci_native_layer *layer,
                                   laci_sparse_kept_weights *kept) {
  enum { EACH = 64 }; /* maximum bytes of memory for an element while code is generated for it */
  const laci_net_weight weight = describe_layer_weight(net, layer);
  const uint64_t bytes = laci_count_bytes_saturated(laci_shape_count(&weight.shape), EACH);
  *kept = (laci_sparse_kept_weights){.row_begin = NULL};
  if (!laci_plan_check_budget(&net->plan, bytes, weight.value)) return false;
  if (laci_native_read_packed_weights(net, layer, &weight, kept)) return true;
  return !net->plan.status && find_kept_weights(net, layer, &weight, kept);
}

const float *laci_native_read_dense_weights(laci_net *net, const laci_native_layer *layer) {
  const laci_net_weight weight = describe_layer_weight(net, layer);
  return read_all_weights(net, layer, &weight);
}

int laci_native_store_dense_weights(laci_net *net, const laci_native_layer *layer) {
  const laci_net_weight weight = describe_layer_weight(net, layer);
  const float *dense = read_all_weights(net, layer, &weight);
  return dense ? laci_net_weight_from_floats(net, dense, laci_shape_count(&weight.shape)) : -1;
}

/* ---- The bias ---- */

int laci_native_store_bias(laci_net *net, const laci_native_layer *layer) {
  const int64_t n = layer->window.channels_out;
  int bias;
  const laci_node *node = &net->plan.graph->nodes[layer->fused->node];
  if (layer->mask) {
    const bool has_bias = !layer->transposed && laci_plan_has_input(node, 2);
    bias = has_bias ? laci_net_convert_to_dense(net, laci_net_read_value(net, node->inputs[2]),
                                                LACI_ELEMENT_F32)
                    : -1;
  } else if (layer->rows) {
    const laci_right_operand r = laci_right_operand_read(net, layer->fused);
    bias = laci_right_operand_bias(net, layer->fused, &r);
  } else {
    bias = laci_conv_bias(net, layer->fused);
  }
  if (bias >= 0 || net->plan.status) return bias;
  float *zeros = laci_alloc((size_t)n, sizeof *zeros);
  if (!zeros) laci_plan_fail_no_memory(&net->plan);
  const int tensor = zeros ? laci_net_weight_from_floats(net, zeros, n) : -1;
  laci_free(zeros);
  return tensor;
}
