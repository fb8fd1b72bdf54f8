/* SPDX-License-Identifier: Apache-2.0
 * Products with a constant matrix on the right, by kernel/linear/strips, with all that is fused to
 * them.
 *
 * With AVX2, oneDNN's matrix product reaches two thirds of the peak, and a function
 * after it may take as long as the product. The kernel for strips reaches nine tenths of the peak,
 * and functions follow while results are in a cache.
 *
 * The result is divided into blocks of some rows and some strips, which threads compute in any
 * order. Sums do not depend on the division. Read next: kernel/linear/strips.h. */
#include <string.h>

#include "base/divide.h"
#include "base/min.h"
#include "cpu/cpu.h"
#include "cpu/pool.h"
#include "engine/cpu/lower/pointwise.h"
#include "engine/cpu/lower/product.h"
#include "engine/cpu/onednn/onednn.h"
#include "graph/op.h"
#include "kernel/linear/strips.h"

enum {
  ROWS = 128,   /* largest number of rows of a block: those of the left matrix stay in a cache */
  BLOCKS = 8,   /* number of blocks for each thread, so that other threads take over if one is
                 interrupted */
  OPERANDS = 3, /* the left matrix, the strips and the result; then come the summands */
};

/** What follows the sums of products: a function, or a summand that is the step's operand. */
typedef struct strips_post {
  int operand; /* index of the summand's tensor in the step; -1: `function` */
  laci_pointwise function;
} strips_post;

typedef struct strips_step {
  int64_t rows, depth, columns, n_strips; /* sizes; strips hold at least `columns` columns */
  int64_t block_rows, block_strips, n_row_blocks, n_strip_blocks;
  laci_multiply_strips *multiply;
  laci_pointwise_apply *apply;
  int n_posts;
  strips_post posts[LACI_FUSED_MAX_POSTS];
} strips_step;

/* ---- Running ---- */

typedef struct work {
  const strips_step *s;
  const float *x, *start, *strips; /* start: [n_strips * 16], where all sums begin */
  const float *summands[LACI_FUSED_MAX_POSTS];
  float *y;
} work;

/** The rows [row, row + n_rows) and the columns [column, column + n_columns) of the result. */
typedef struct block {
  int64_t row, n_rows, column, n_columns;
} block;

static void multiply_block(const work *w, const block *b, float *y, int64_t y_row) {
  const strips_step *s = w->s;
  s->multiply(&(laci_strip_product){.n_rows = b->n_rows,
                                    .depth = s->depth,
                                    .n_strips = laci_strips_count(b->n_columns),
                                    .x = w->x + b->row * s->depth,
                                    .strips = w->strips + b->column * s->depth,
                                    .start = w->start + b->column,
                                    .y = y,
                                    .x_row = s->depth,
                                    .y_row = y_row});
}

/** Computes a last strip that holds more columns than the result has. */
static void multiply_partial_strip(const work *w, const block *b) {
  float sums[ROWS * LACI_STRIP];
  const int64_t columns = w->s->columns;
  multiply_block(w, b, sums, LACI_STRIP);
  for (int64_t r = 0; r < b->n_rows; r++) {
    memcpy(w->y + (b->row + r) * columns + b->column, sums + r * LACI_STRIP,
           (size_t)b->n_columns * sizeof *sums);
  }
}

static void add_row(float *y, const float *summand, int64_t n) {
  for (int64_t k = 0; k < n; k++) y[k] += summand[k];
}

static void apply_posts(const work *w, const block *b) {
  for (int64_t r = 0; r < b->n_rows; r++) {
    const int64_t at = (b->row + r) * w->s->columns + b->column;
    for (int post = 0; post < w->s->n_posts; post++) {
      const strips_post *p = &w->s->posts[post];
      if (p->operand >= 0) add_row(w->y + at, w->summands[post] + at, b->n_columns);
      else w->s->apply(&p->function, w->y + at, b->n_columns);
    }
  }
}

static void compute_blocks(int64_t begin, int64_t end, void *context) {
  const work *w = context;
  const strips_step *s = w->s;
  for (int64_t at = begin; at < end; at++) {
    const int64_t row = at / s->n_strip_blocks * s->block_rows,
                  column = at % s->n_strip_blocks * s->block_strips * LACI_STRIP;
    block b = {.row = row,
               .n_rows = laci_min(s->rows - row, s->block_rows),
               .column = column,
               .n_columns = laci_min(s->columns - column, s->block_strips * LACI_STRIP)};
    block whole = b, partial = b;
    partial.n_columns = b.n_columns % LACI_STRIP;
    whole.n_columns -= partial.n_columns;
    partial.column += whole.n_columns;
    if (whole.n_columns > 0)
      multiply_block(w, &whole, w->y + row * s->columns + column, s->columns);
    if (partial.n_columns > 0) multiply_partial_strip(w, &partial);
    apply_posts(w, &b);
  }
}

static lac_status run_strips_product(laci_net *net, laci_net_step *step, lac_error *err) {
  const strips_step *s = step->context;
  work w = {.s = s,
            .x = laci_net_tensor_data(net, step->tensors[0]),
            .start = laci_net_tensor_data(net, step->tensors[1]),
            .y = laci_net_tensor_data(net, step->tensors[2])};
  (void)err;
  w.strips = w.start + s->n_strips * LACI_STRIP;
  for (int post = 0; post < s->n_posts; post++) {
    const int operand = s->posts[post].operand;
    if (operand >= 0) w.summands[post] = laci_net_tensor_data(net, step->tensors[operand]);
  }
  laci_pool_for(net->pool, s->n_row_blocks * s->n_strip_blocks, 1, compute_blocks, &w);
  return LAC_OK;
}

/* ---- Which products ---- */

static bool can_follow_sums(const laci_net *net, const laci_fused *fused) {
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  for (int at = 0; at < fused->n_posts; at++) {
    const laci_post *p = &fused->posts[at];
    laci_pointwise ignored;
    if (p->value < 0 && !laci_lower_to_pointwise(&p->function, &ignored)) return false;
    if (p->value < 0) continue;
    if (!laci_plan_is_float(&net->plan, p->value)) return false;
    if (!laci_shape_equal(laci_plan_shape(&net->plan, p->value), y)) return false;
  }
  return true;
}

bool laci_can_lower_product_strips(laci_net *net, const laci_fused *fused, const char **why) {
  if (!laci_is_product_with_constant_matrix(net, fused, why)) return false;
  const laci_right_operand r = laci_right_operand_read(net, fused);
  *why = "oneDNN's kernels are faster on this processor, or another type";
  if (laci_cpu_level_in_force() != LACI_CPU_AVX2 || net->plan.bf16) return false;
  if (laci_net_result_element(net, fused->output) != LACI_ELEMENT_F32) return false;
  *why = "a left matrix that is transposed, or empty matrices";
  if (r.left_transposed || r.rows < 1 || r.depth < 1 || r.columns < 1) return false;
  *why = "functions or sums of this kind";
  return can_follow_sums(net, fused);
}

/* ---- The strips ---- */

typedef struct packing {
  const laci_right_operand *r;
  float *strips;
} packing;

/** Writes a slice of the matrix, which is stored column by column or row by row, to the strips. */
static bool pack_slice(void *context, int64_t first, int64_t n, const float *x) {
  const packing *p = context;
  const laci_right_operand *r = p->r;
  if (r->transposed) {
    for (int64_t c = 0; c < n / r->depth; c++)
      laci_strips_set_column(p->strips, r->depth, first / r->depth + c, x + c * r->depth);
    return true;
  }
  for (int64_t k = 0; k < n / r->columns; k++) {
    const float *row = x + k * r->columns;
    float *to = p->strips + (first / r->columns + k) * LACI_STRIP;
    for (int64_t column = 0; column < r->columns; column += LACI_STRIP) {
      memcpy(to + column * r->depth, row + column,
             (size_t)laci_min(LACI_STRIP, r->columns - column) * sizeof *row);
    }
  }
  return true;
}

/** Returns the tensor of a weight that holds the numbers at which sums begin, and then the
 * strips. */
static int pack_matrix(laci_net *net, const laci_fused *fused, const laci_right_operand *r) {
  const laci_net_weight weight = laci_right_operand_weight(net, fused, r);
  const int64_t width = laci_strips_count(r->columns) * LACI_STRIP;
  const int bias = laci_right_operand_bias(net, fused, r);
  const int tensor =
      laci_net_weight_new(net, (size_t)(width * (r->depth + 1)) * sizeof(float), weight.value);
  if (net->plan.status || tensor < 0) return -1;
  float *start = net->buffers[net->tensors[tensor].buffer].data;
  if (bias >= 0) {
    memcpy(start, net->buffers[net->tensors[bias].buffer].data, (size_t)r->columns * sizeof *start);
  }
  laci_net_visit_weight_slices(net, &weight, pack_slice,
                               &(packing){.r = r, .strips = start + width});
  return tensor;
}

/* ---- The step ---- */

/** Divides the result into blocks: enough for all threads, and whole strips. */
static void choose_blocks(strips_step *s, int n_threads) {
  const int64_t wanted = (int64_t)BLOCKS * n_threads;
  s->n_row_blocks = laci_ceil_div(s->rows, ROWS);
  s->block_rows = laci_ceil_div(s->rows, s->n_row_blocks);
  s->block_strips = laci_ceil_div(s->n_strips, laci_ceil_div(wanted, s->n_row_blocks));
  s->n_strip_blocks = laci_ceil_div(s->n_strips, s->block_strips);
}

/** Sets the step's posts, and writes the tensors of summands to `tensors`; returns their number. */
static int read_posts(laci_net *net, const laci_fused *fused, strips_step *s, int *tensors) {
  int n = 0;
  s->n_posts = fused->n_posts;
  for (int at = 0; at < fused->n_posts; at++) {
    const laci_post *p = &fused->posts[at];
    s->posts[at].operand = p->value >= 0 ? OPERANDS + n : -1;
    if (p->value >= 0)
      tensors[n++] = laci_product_read_matrix(net, p->value, s->rows, s->columns, false);
    else (void)laci_lower_to_pointwise(&p->function, &s->posts[at].function);
  }
  return n;
}

void laci_lower_product_strips(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_right_operand r = laci_right_operand_read(net, fused);
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  const laci_shape flat = laci_shape_of(2, (int64_t[]){r.rows, r.columns});
  int tensors[OPERANDS + LACI_FUSED_MAX_POSTS];
  strips_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s) return;
  *s = (strips_step){.rows = r.rows,
                     .depth = r.depth,
                     .columns = r.columns,
                     .n_strips = laci_strips_count(r.columns),
                     .multiply = laci_multiply_strips_variant(),
                     .apply = laci_pointwise_apply_variant()};
  choose_blocks(s, net->n_threads);
  tensors[0] = laci_product_read_matrix(net, node->inputs[0], r.rows, r.depth, false);
  tensors[1] = pack_matrix(net, fused, &r);
  const int n_summands = read_posts(net, fused, s, tensors + OPERANDS);
  laci_layout *md = laci_net_dense_layout(net, &flat, LACI_ELEMENT_F32);
  tensors[2] = md ? laci_net_new_result(net, &flat, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  laci_net_step *step =
      laci_net_step_add_code(net, node, run_strips_product, OPERANDS + n_summands, tensors);
  if (!step) return;
  step->what = laci_net_describe_fused(net, fused);
  step->kernel = "strips";
  step->context = s;
  step->shown = tensors[2];
  step->flops = 2 * r.rows * r.depth * r.columns;
  laci_net_bind_value(net, fused->output,
                      laci_net_view_new(net, tensors[2], y,
                                        laci_net_dense_layout(net, y, LACI_ELEMENT_F32), false));
}
