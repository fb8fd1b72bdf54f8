/* SPDX-License-Identifier: Apache-2.0
 * ReduceSum and ReduceMean over axes side by side: [outer, n, inner] becomes [outer, inner].
 * oneDNN has quick kernels for long rows of adjacent elements alone.
 *
 * Sums are double. The n rows are divided into parts of a fixed length, whose sums are added in
 * order, so that the number of threads does not change any bit. */
#include "cpu/pool.h"
#include "engine/cpu/lower/reduce.h"
#include "engine/cpu/onednn/onednn.h"
#include "graph/ops.h"

enum {
  COLUMNS = 64,   /* number of columns that are summed at a time */
  PART = 4096,    /* number of rows in a part */
  SHORT_ROW = 64, /* limit of the adjacent elements of a sum up to which oneDNN's kernels are
                     slow */
};

typedef struct sums {
  int64_t outer, n, inner, n_parts, n_blocks; /* the operand is [outer, n, inner]; its n rows are in
                                                 n_parts parts, its inner columns in n_blocks blocks
                                                 of COLUMNS */
  double factor;
} sums;

typedef struct sums_work {
  const sums *s;
  const float *x;
  double *parts; /* [outer, n_parts, inner] sums of the parts */
  float *y;
} sums_work;

/** Sets sum [columns] to the sums of n rows, which are `stride` floats apart. */
static void sum_rows_by_column(const float *x, int64_t n, int64_t stride, int64_t columns,
                               double *sum) {
  for (int64_t k = 0; k < columns; k++) sum[k] = 0;
  for (int64_t row = 0; row < n; row++, x += stride) {
    for (int64_t k = 0; k < columns; k++) sum[k] += (double)x[k];
  }
}

static void sum_row_ranges(int64_t begin, int64_t end, void *context) {
  const sums_work *w = context;
  const sums *s = w->s;
  for (int64_t at = begin; at < end; at++) {
    const int64_t block = at % s->n_blocks, part = at / s->n_blocks % s->n_parts;
    const int64_t outer = at / s->n_blocks / s->n_parts, column = block * COLUMNS;
    const int64_t columns = s->inner - column < COLUMNS ? s->inner - column : COLUMNS;
    const int64_t rows = s->n - part * PART < PART ? s->n - part * PART : PART;
    double own[COLUMNS];
    double *to = w->parts ? w->parts + (outer * s->n_parts + part) * s->inner + column : own;
    sum_rows_by_column(w->x + (outer * s->n + part * PART) * s->inner + column, rows, s->inner,
                       columns, to);
    float *y = w->y + outer * s->inner + column;
    for (int64_t k = 0; !w->parts && k < columns; k++) y[k] = (float)(own[k] * s->factor);
  }
}

/** Sums rows of a few adjacent elements each. */
static void sum_short_rows(int64_t begin, int64_t end, void *context) {
  const sums_work *w = context;
  const int64_t n = w->s->n;
  const float *x = w->x + begin * n;
  for (int64_t at = begin; at < end; at++, x += n) {
    double sum = (double)x[0];
    for (int64_t k = 1; k < n; k++) sum += (double)x[k];
    w->y[at] = (float)(sum * w->s->factor);
  }
}

static void add_sums_of_row_ranges(const sums_work *w) {
  const sums *s = w->s;
  for (int64_t at = 0; at < s->outer * s->inner; at++) {
    const double *part = w->parts + at / s->inner * s->n_parts * s->inner + at % s->inner;
    double sum = 0;
    for (int64_t p = 0; p < s->n_parts; p++) sum += part[p * s->inner];
    w->y[at] = (float)(sum * s->factor);
  }
}

static lac_status run_sum_reduction(laci_net *net, laci_net_step *step, lac_error *err) {
  enum { GRAIN = 1 << 14 }; /* number of floats that a thread computes at a time */
  const sums *s = step->context;
  sums_work w = {.s = s,
                 .x = laci_net_tensor_data(net, step->tensors[0]),
                 .y = laci_net_tensor_data(net, step->tensors[1])};
  if (s->n_parts > 1) w.parts = laci_net_tensor_data(net, step->tensors[2]);
  const int64_t columns = s->inner < COLUMNS ? s->inner : COLUMNS;
  const int64_t each = (s->n < PART ? s->n : PART) * columns;
  const bool is_short = s->inner == 1 && s->n_parts == 1;
  (void)err;
  laci_pool_for(net->pool, s->outer * s->n_parts * s->n_blocks, each < GRAIN ? GRAIN / each : 1,
                is_short ? sum_short_rows : sum_row_ranges, &w);
  if (w.parts) add_sums_of_row_ranges(&w);
  return LAC_OK;
}

/** Describes the sums in *s; false: the reduced axes are not next to each other. */
static bool describe_sums(const laci_reduction *r, const laci_node *node, sums *s) {
  *s = (sums){.factor = 1};
  const bool together = laci_reduce_merge_axes(r, &s->outer, &s->n, &s->inner);
  s->n_parts = (s->n + PART - 1) / PART;
  s->n_blocks = (s->inner + COLUMNS - 1) / COLUMNS;
  if (node->op == &laci_op_reduce_mean) s->factor = 1 / (double)s->n;
  return together;
}

bool laci_can_lower_reduce_sums(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_reduction r;
  sums s;
  *why = "no sum or mean along axes side by side";
  if (node->op != &laci_op_reduce_sum && node->op != &laci_op_reduce_mean) return false;
  if (net->plan.bf16 || !laci_reduce_read_node(net, node, &r) || laci_shape_count(&r.x) < 1) {
    return false;
  }
  if (!describe_sums(&r, node, &s)) return false;
  *why = "long rows, which oneDNN sums";
  return s.inner > 1 || s.n <= SHORT_ROW;
}

void laci_lower_reduce_sums(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_reduction r;
  if (!laci_reduce_read_node(net, node, &r)) return;
  int from =
      laci_net_convert_to_dense(net, laci_net_read_value(net, node->inputs[0]), LACI_ELEMENT_F32);
  laci_layout *md = laci_net_dense_layout(net, &r.y, LACI_ELEMENT_F32);
  int to = md && from >= 0 ? laci_net_new_result(net, &r.y, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  sums *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s) return;
  (void)describe_sums(&r, node, s);
  const bool parts = s->n_parts > 1;
  const int64_t bytes = s->outer * s->n_parts * s->inner * (int64_t)sizeof(double);
  const int scratch = parts ? laci_net_scratch_new(net, (size_t)bytes) : -1;
  laci_net_step *step = laci_net_step_add_code(net, node, run_sum_reduction, parts ? 3 : 2,
                                               (int[]){from, to, scratch});
  if (!step) return;
  if (parts) laci_net_step_mark_scratch(step, 2);
  step->context = s;
  step->kernel = "sums";
  step->shown = to;
  laci_net_bind_reshaped(net, fused->output, to);
}
