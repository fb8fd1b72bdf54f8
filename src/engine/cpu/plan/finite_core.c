/* SPDX-License-Identifier: Apache-2.0
 * Implements finite.h: bounds of the results of operators, from bounds of their operands. */
#include <float.h>
#include <math.h>

#include "base/memory.h"
#include "engine/cpu/plan/finite.h"
#include "engine/cpu/plan/quantized.h"
#include "engine/cpu/plan/recurrent.h"
#include "graph/ops.h"
#include "tensor/narrow.h"
#include "graph/op.h"
#include "tensor/buf.h"

/** The bound of a value whose integers are cast to floats. */
static const double most_integer = 1e19;

/* ---- Constants ---- */

enum { RUN = 4096 };

/** Sums of the magnitudes of each row, for the rows of one block. */
typedef struct row_sums {
  const laci_finite_rows *rows;
  double *sums;     /* [inner] sum of each row in the block */
  int64_t in, left; /* in: row of the next element; left: elements of the block still to come */
  int64_t first_row;
  double largest;
} row_sums;

/** Returns the larger number, or NaN if one is NaN. */
static double larger_or_nan(double a, double b) { return a >= b || isnan(a) ? a : b; }

static void take_largest_row_sum(row_sums *s) {
  const laci_finite_rows *rows = s->rows;
  for (int64_t at = 0; at < rows->inner; at++) {
    const double scale =
        rows->scale ? fabs((double)rows->scale[(s->first_row + at) % rows->n_scale]) : 1;
    s->largest = larger_or_nan(s->largest, s->sums[at] * scale);
    s->sums[at] = 0;
  }
  s->first_row += rows->inner;
  s->left = rows->inner * rows->length;
}

static void add_row_elements(row_sums *s, const float *x, int64_t n) {
  const int64_t inner = s->rows->inner;
  for (int64_t at = 0; at < n;) {
    const int64_t some = n - at < s->left ? n - at : s->left;
    double sum = 0;
    if (inner == 1) {
      for (int64_t i = 0; i < some; i++) sum += fabs((double)x[at + i]);
      s->sums[0] += sum;
    }
    for (int64_t i = 0; inner > 1 && i < some; i++) {
      s->sums[s->in] += fabs((double)x[at + i]);
      s->in = s->in + 1 < inner ? s->in + 1 : 0;
    }
    at += some;
    s->left -= some;
    if (s->left == 0) take_largest_row_sum(s);
  }
}

double laci_finite_largest_row_sum(laci_cpu_plan *plan, int value, const laci_finite_rows *rows) {
  const laci_constant *c = plan->values[value].constant;
  if (c->i || !laci_dtype_is_float(plan->values[value].type.dtype)) {
    return (double)rows->length * most_integer;
  }
  row_sums s = {.rows = rows,
                .sums = laci_alloc((size_t)rows->inner, sizeof *s.sums),
                .left = rows->inner * rows->length};
  float run[RUN];
  lac_error why = {0};
  lac_status st = LAC_OK;
  if (!s.sums) laci_plan_fail_no_memory(plan);
  for (int64_t at = 0; at < c->count && !plan->status && !st; at += RUN) {
    const int64_t n = c->count - at < RUN ? c->count - at : RUN;
    st = laci_plan_read_floats(plan, value, at, n, run, &why);
    if (!st) add_row_elements(&s, run, n);
  }
  if (st) laci_plan_fail(plan, st, "%s: %s", plan->graph->values[value].name, why.text);
  laci_free(s.sums);
  return s.largest;
}

static double largest_magnitude(laci_cpu_plan *plan, int value) {
  const laci_finite_rows each = {.inner = 1, .length = 1};
  const laci_plan_value *v = &plan->values[value];
  if (v->constant->i || !laci_dtype_is_float(v->type.dtype)) return most_integer;
  return laci_finite_largest_row_sum(plan, value, &each);
}

double laci_finite_operand_bound(laci_cpu_plan *plan, const double *bounds, int value) {
  if (value < 0) return 0;
  if (laci_plan_is_constant(plan, value)) return largest_magnitude(plan, value);
  return laci_plan_is_float(plan, value) ? bounds[value] : most_integer;
}

/* ---- Functions ---- */

bool laci_function_may_be_nonfinite(const laci_function *f) {
  return f->kind == LACI_FUNCTION_EXP || f->kind == LACI_FUNCTION_LOG ||
         f->kind == LACI_FUNCTION_SQRT || f->kind == LACI_FUNCTION_POW;
}

static double power_bound(const laci_function *f, double x) {
  const double beta = (double)f->beta;
  return beta == 2 || beta == 3 ? fabs((double)f->alpha) * pow(x, beta) : INFINITY;
}

/** Returns the bound of a clip to [alpha, beta]. */
static double clip_bound(const laci_function *f, double x) {
  const double alpha = fabs((double)f->alpha), beta = fabs((double)f->beta);
  const double nearest = f->alpha <= 0 && f->beta >= 0 ? 0 : fmin(alpha, beta);
  return fmin(fmax(x, nearest), fmax(alpha, beta));
}

double laci_finite_function_bound(const laci_function *f, double x) {
  const double alpha = fabs((double)f->alpha), beta = fabs((double)f->beta);
  switch (f->kind) {
    case LACI_FUNCTION_LOGISTIC:
    case LACI_FUNCTION_TANH: return 1;
    case LACI_FUNCTION_RELU:
    case LACI_FUNCTION_RELU_BY_RESULT: return x * fmax(1, alpha);
    case LACI_FUNCTION_ELU: return fmax(x, alpha);
    case LACI_FUNCTION_LINEAR: return alpha * x + beta;
    case LACI_FUNCTION_SOFTPLUS: return x + 1;
    case LACI_FUNCTION_HARDSWISH: return x;
    case LACI_FUNCTION_CLIP:
    case LACI_FUNCTION_CLIP_OPEN: return clip_bound(f, x);
    case LACI_FUNCTION_POW: return power_bound(f, x);
    case LACI_FUNCTION_EXP:
    case LACI_FUNCTION_LOG:
    case LACI_FUNCTION_SQRT: return INFINITY;
    default: return x; /* ABS, MISH, SWISH and GELU: no larger than x, up to a small error */
  }
}

/* ---- Products ---- */

/** Returns the bound of a product: the largest sum of magnitudes in a row of the constant operand
 * times the bound of the other; without a constant, the number of terms times both bounds. */
static double product_bound_by_rows(laci_cpu_plan *plan, const double *bounds,
                                    const laci_fused *fused, const laci_finite_rows *rows) {
  const laci_node *node = &plan->graph->nodes[fused->node];
  const double x = laci_finite_operand_bound(plan, bounds, node->inputs[0]);
  if (laci_plan_is_constant(plan, node->inputs[1])) {
    return laci_finite_largest_row_sum(plan, node->inputs[1], rows) * x;
  }
  double scale = rows->scale ? 0 : 1;
  for (int64_t at = 0; rows->scale && at < rows->n_scale; at++) {
    scale = larger_or_nan(scale, fabs((double)rows->scale[at]));
  }
  return scale * (double)rows->length * x *
         laci_finite_operand_bound(plan, bounds, node->inputs[1]);
}

static double bound_with_scales(const laci_fused *fused, double sum, double bias) {
  double scale = 0, shift = 0;
  if (!fused->scale) return sum + bias;
  for (int64_t at = 0; at < fused->channels; at++) {
    scale = larger_or_nan(scale, fabs((double)fused->scale[at]));
    shift = larger_or_nan(shift, fabs((double)fused->shift[at]));
    if (isnan(fused->scale[at]) || isnan(fused->shift[at])) return INFINITY;
  }
  return sum + bias * scale + shift;
}

static double scaled_product_bound(laci_cpu_plan *plan, const double *bounds,
                                   const laci_fused *fused, laci_finite_rows rows) {
  const laci_node *node = &plan->graph->nodes[fused->node];
  const double alpha = fabs((double)laci_node_float(node, "alpha", 1));
  const double beta = fabs((double)laci_node_float(node, "beta", 1));
  const double c =
      laci_plan_has_input(node, 2) ? laci_finite_operand_bound(plan, bounds, node->inputs[2]) : 0;
  rows.scale = fused->scale;
  rows.n_scale = fused->channels;
  const bool gemm = node->op == &laci_op_gemm;
  return bound_with_scales(fused,
                           (gemm ? alpha : 1) * product_bound_by_rows(plan, bounds, fused, &rows),
                           (gemm ? beta : 1) * c);
}

static double conv_bound(laci_cpu_plan *plan, const double *bounds, const laci_fused *fused) {
  const laci_shape *w = laci_plan_shape(plan, plan->graph->nodes[fused->node].inputs[1]);
  return scaled_product_bound(
      plan, bounds, fused,
      (laci_finite_rows){.inner = 1, .length = laci_shape_count_range(w, 1, w->rank)});
}

/** Returns the bound of a ConvTranspose with a weight [c, k, kernel]: the largest sum over c, times
 * the size of the kernel, times the bound of the input. */
static double conv_transpose_bound(laci_cpu_plan *plan, const double *bounds,
                                   const laci_fused *fused) {
  const laci_node *node = &plan->graph->nodes[fused->node];
  const laci_shape *w = laci_plan_shape(plan, node->inputs[1]);
  const double window = (double)laci_shape_count_range(w, 2, w->rank);
  double scale = fused->scale ? 0 : 1, bias = 0;
  for (int64_t c = 0; fused->scale && c < fused->channels; c++) {
    scale = larger_or_nan(scale, fabs((double)fused->scale[c]));
  }
  if (laci_plan_has_input(node, 2)) {
    bias = laci_finite_operand_bound(plan, bounds, node->inputs[2]);
  }
  const laci_finite_rows rows = {.inner = laci_shape_count_range(w, 1, w->rank),
                                 .length = w->dims[0]};
  const double sum = product_bound_by_rows(plan, bounds, fused, &rows);
  return bound_with_scales(fused, sum * window * scale, bias);
}

static double matrix_bound(laci_cpu_plan *plan, const double *bounds, const laci_fused *fused) {
  const laci_node *node = &plan->graph->nodes[fused->node];
  const laci_shape *w = laci_plan_shape(plan, node->inputs[1]);
  const int64_t last = w->dims[w->rank - 1], before = w->rank > 1 ? w->dims[w->rank - 2] : 1;
  const bool by_rows =
      w->rank == 1 || (node->op == &laci_op_gemm && laci_node_int(node, "transB", 0));
  return scaled_product_bound(plan, bounds, fused,
                              by_rows ? (laci_finite_rows){.inner = 1, .length = last}
                                      : (laci_finite_rows){.inner = last, .length = before});
}

/* ---- Others ---- */

/** Returns the largest bound of all operands, or the sum of their bounds. */
static double combine_operand_bounds(laci_cpu_plan *plan, const double *bounds,
                                     const laci_node *node, bool sum) {
  double all = 0;
  for (int at = 0; at < node->n_inputs; at++) {
    if (node->inputs[at] < 0 || !laci_plan_is_float(plan, node->inputs[at])) continue;
    const double one = laci_finite_operand_bound(plan, bounds, node->inputs[at]);
    all = sum ? all + one : larger_or_nan(all, one);
  }
  return all;
}

/** Returns the bound of Max (sign 1) or Min (sign -1). A constant counts only by how far it is
 * above 0 (Max) or below 0 (Min), so that the largest negative float in a mask does not count. */
static double bound_of_extremes(laci_cpu_plan *plan, const double *bounds, const laci_node *node,
                                double sign) {
  double all = 0;
  bool computed = false;
  for (int at = 0; at < node->n_inputs; at++) {
    const int value = node->inputs[at];
    if (value < 0) continue;
    const float *c =
        laci_plan_is_constant(plan, value) ? laci_plan_constant_floats(plan, value) : NULL;
    computed = computed || !c;
    if (!c) all = larger_or_nan(all, laci_finite_operand_bound(plan, bounds, value));
    for (int64_t e = 0; c && e < plan->values[value].constant->count; e++) {
      all = larger_or_nan(all, isnan(c[e]) ? NAN : fmax(0, sign * (double)c[e]));
    }
  }
  return computed ? all : INFINITY;
}

static double count_elements(laci_cpu_plan *plan, int value) {
  return (double)laci_shape_count(laci_plan_shape(plan, value));
}

/** Returns the bound of a layer norm. If epsilon is too small for a float, a row of equal numbers
 * is divided by 0: the bound is INFINITY. */
static double layer_norm_bound(laci_cpu_plan *plan, double x, int64_t n, float epsilon,
                               const int scale_and_shift[2]) {
  double y = sqrt((double)n);
  if (!(epsilon >= FLT_MIN)) return INFINITY;
  if (!(x * x * (double)n < LACI_FINITE_BOUND)) return INFINITY;
  if (scale_and_shift[0] >= 0) y *= laci_finite_operand_bound(plan, NULL, scale_and_shift[0]);
  return scale_and_shift[1] >= 0 ? y + laci_finite_operand_bound(plan, NULL, scale_and_shift[1])
                                 : y;
}

static double batch_norm_bound(laci_cpu_plan *plan, const laci_node *node, double x) {
  const laci_shape *s = laci_plan_shape(plan, node->inputs[1]);
  if (!laci_plan_is_inference_norm(node) || s->rank != 1) return INFINITY;
  laci_fused f = {.channels = s->dims[0]};
  f.scale = laci_alloc((size_t)f.channels, sizeof *f.scale);
  f.shift = laci_alloc((size_t)f.channels, sizeof *f.shift);
  double y = INFINITY;
  if (!f.scale || !f.shift) laci_plan_fail_no_memory(plan);
  else if (laci_plan_read_norm_scales(plan, node, f.channels, f.scale, f.shift)) {
    y = bound_with_scales(&f, 0, x);
  }
  laci_free(f.scale);
  laci_free(f.shift);
  return y;
}

static double functions_bound(const laci_function *f, int n, double x) {
  for (int at = 0; at < n; at++) {
    if (isnan(x)) return INFINITY; /* fmax would skip the NaN in a later comparison */
    x = laci_finite_function_bound(&f[at], x);
  }
  return x;
}

/* ---- The rule of each operator ---- */

typedef enum bound_rule {
  BOUND_NONE,
  BOUND_SAME,    /* the bound of operand 0 */
  BOUND_POOLED,  /* the bound of operand 0, if each window of a MaxPool covers an element */
  BOUND_CAST,    /* the bound of operand 0, unless it exceeds the largest number of a narrow type */
  BOUND_LARGER,  /* the largest bound of all operands */
  BOUND_PADDED,  /* the largest bound of all operands, and an attribute's magnitude */
  BOUND_LARGEST, /* the largest bound of the operands of Max: constants below 0 do not count */
  BOUND_LEAST,   /* the largest bound of the operands of Min: constants above 0 do not count */
  BOUND_CHOSEN,  /* the largest bound of all operands but the first, which selects among them */
  BOUND_SUM,     /* the sum of all operands' bounds */
  BOUND_PRODUCT, /* the product of all operands' bounds */
  BOUND_QUOTIENT, /* the bound of operand 0 divided by the least magnitude of the constant operand
                     1 */
  BOUND_MANY,     /* the bound of operand 0 times the number of elements that are summed */
  /* the bound of operand 0 times a small factor: cubic weights, the logarithm of a softmax */
  BOUND_TWICE,
  BOUND_ONE,
  BOUND_CONV,
  BOUND_CONV_TRANSPOSE,
  BOUND_MATRIX,
  BOUND_BATCH_NORM,
  BOUND_LAYER_NORM,
} bound_rule;

/** A row of the table: an operator, the rule for the bound of its results, and the flags of
 * laci_finite_core. */
typedef struct row {
  const laci_op *op;
  bound_rule rule;
  bool loses_nonfinite, propagates_nonfinite, selects_elements;
} row;

static const row rows[] = {
    {&laci_op_conv, BOUND_CONV, true, false, false},
    {&laci_op_conv_transpose, BOUND_CONV_TRANSPOSE, true, false, false},
    {&laci_op_gemm, BOUND_MATRIX, true, false, false},
    {&laci_op_mat_mul, BOUND_MATRIX, true, false, false},
    {&laci_op_max_pool, BOUND_POOLED, true, true, true},
    {&laci_op_average_pool, BOUND_SAME, true, false, false},
    {&laci_op_global_average_pool, BOUND_SAME, true, false, false},
    {&laci_op_global_max_pool, BOUND_SAME, true, true, true},
    {&laci_op_batch_normalization, BOUND_BATCH_NORM, false, false, false},
    {&laci_op_layer_normalization, BOUND_LAYER_NORM, false, false, false},
    {&laci_op_softmax, BOUND_ONE, false, true, false},
    {&laci_op_log_softmax, BOUND_TWICE, true, false, false},
    {&laci_op_reduce_mean, BOUND_SAME, true, false, false},
    {&laci_op_reduce_sum, BOUND_MANY, true, false, false},
    {&laci_op_reduce_max, BOUND_SAME, true, false, true},
    {&laci_op_reduce_min, BOUND_SAME, true, false, true},
    {&laci_op_add, BOUND_SUM, false, false, false},
    {&laci_op_sub, BOUND_SUM, false, false, false},
    {&laci_op_mul, BOUND_PRODUCT, false, false, false},
    {&laci_op_div, BOUND_QUOTIENT, false, false, false},
    {&laci_op_max, BOUND_LARGEST, true, false, true},
    {&laci_op_min, BOUND_LEAST, true, false, true},
    {&laci_op_sum, BOUND_SUM, false, false, false},
    {&laci_op_concat, BOUND_LARGER, false, false, true},
    {&laci_op_reshape, BOUND_SAME, false, false, true},
    {&laci_op_flatten, BOUND_SAME, false, false, true},
    {&laci_op_squeeze, BOUND_SAME, false, false, true},
    {&laci_op_unsqueeze, BOUND_SAME, false, false, true},
    {&laci_op_transpose, BOUND_SAME, false, false, true},
    {&laci_op_slice, BOUND_SAME, false, false, true},
    {&laci_op_split, BOUND_SAME, false, false, true},
    {&laci_op_gather, BOUND_SAME, false, false, true},
    {&laci_op_gather_nd, BOUND_SAME, false, false, true},
    {&laci_op_resize, BOUND_TWICE, true, false, false},
    {&laci_op_upsample, BOUND_TWICE, true, false, false},
    {&laci_op_identity, BOUND_SAME, false, false, true},
    {&laci_op_dropout, BOUND_SAME, false, false, true},
    {&laci_op_cast, BOUND_CAST, false, false, false},
    {&laci_op_expand, BOUND_SAME, false, false, true},
    {&laci_op_pad, BOUND_PADDED, false, false, true},
    {&laci_op_where, BOUND_CHOSEN, false, false, true},
};

static double quotient_bound(laci_cpu_plan *plan, const laci_node *node, double x) {
  const int by = node->inputs[1];
  const float *c = laci_plan_is_constant(plan, by) ? laci_plan_constant_floats(plan, by) : NULL;
  double least = INFINITY;
  for (int64_t at = 0; c && at < plan->values[by].constant->count; at++) {
    if (isnan(c[at])) return INFINITY;
    least = fmin(least, fabs((double)c[at]));
  }
  return c ? x / least : INFINITY;
}

static double product_bound(laci_cpu_plan *plan, const double *bounds, const laci_node *node) {
  double all = 1;
  for (int at = 0; at < node->n_inputs; at++) {
    all *= laci_finite_operand_bound(plan, bounds, node->inputs[at]);
  }
  return isnan(all) ? INFINITY : all;
}

/** Returns the bound after a cast. Rounding to 16 bits adds a factor of 1 + 2^-8 at most; narrower
 * types have a small largest number, and a result beyond it may be infinite. */
static double cast_bound(const laci_cpu_plan *plan, const laci_node *node, double x) {
  const int ends[2] = {node->inputs[0], node->outputs[0]};
  for (int at = 0; at < 2; at++) {
    const lac_dtype dtype = plan->values[ends[at]].type.dtype;
    if (!laci_dtype_is_narrow(dtype)) continue;
    if (laci_dtype_bits(dtype) < 16 || (dtype == LAC_DTYPE_F16 && !(x < 65504))) return INFINITY;
    x *= 1 + 0x1p-8;
  }
  return x;
}

static double bound_by_rule(laci_cpu_plan *plan, const double *bounds, const laci_fused *fused,
                            bound_rule how) {
  const laci_node *node = &plan->graph->nodes[fused->node];
  const double x = laci_finite_operand_bound(plan, bounds, node->inputs[0]);
  const laci_shape *s = laci_plan_shape(plan, node->inputs[0]);
  switch (how) {
    case BOUND_NONE: return INFINITY;
    case BOUND_SAME: return x;
    case BOUND_CAST: return cast_bound(plan, node, x);
    case BOUND_POOLED: return laci_plan_window_may_be_all_padding(plan, node) ? INFINITY : x;
    case BOUND_LARGER: return combine_operand_bounds(plan, bounds, node, false);
    case BOUND_CHOSEN:
      return larger_or_nan(laci_finite_operand_bound(plan, bounds, node->inputs[1]),
                           laci_finite_operand_bound(plan, bounds, node->inputs[2]));
    case BOUND_SUM: return combine_operand_bounds(plan, bounds, node, true);
    case BOUND_PRODUCT: return product_bound(plan, bounds, node);
    case BOUND_QUOTIENT: return quotient_bound(plan, node, x);
    case BOUND_MANY:
      return x * count_elements(plan, node->inputs[0]) / count_elements(plan, node->outputs[0]);
    case BOUND_TWICE: /* the added term covers the logarithm of any row length, and values outside
                         of a resized image */
      return larger_or_nan(2 * x + 64,
                           fabs((double)laci_node_float(node, "extrapolation_value", 0)));
    case BOUND_PADDED:
      return larger_or_nan(combine_operand_bounds(plan, bounds, node, false),
                           fabs((double)laci_node_float(node, "value", 0)));
    case BOUND_LARGEST: return bound_of_extremes(plan, bounds, node, 1);
    case BOUND_LEAST: return bound_of_extremes(plan, bounds, node, -1);
    case BOUND_ONE: return x < LACI_FINITE_BOUND ? 1 : INFINITY;
    case BOUND_CONV: return conv_bound(plan, bounds, fused);
    case BOUND_CONV_TRANSPOSE: return conv_transpose_bound(plan, bounds, fused);
    case BOUND_MATRIX: return matrix_bound(plan, bounds, fused);
    case BOUND_BATCH_NORM: return batch_norm_bound(plan, node, x);
    case BOUND_LAYER_NORM: {
      const int64_t axis = laci_node_int(node, "axis", -1);
      const int64_t first = axis < 0 ? axis + s->rank : axis;
      const int both[2] = {node->inputs[1], laci_plan_has_input(node, 2) ? node->inputs[2] : -1};
      bool known = true;
      for (int at = 0; at < 2; at++) {
        known = known && (both[at] < 0 || laci_plan_is_constant(plan, both[at]));
      }
      return known ? layer_norm_bound(plan, x, laci_shape_count_range(s, (int)first, s->rank),
                                      laci_node_float(node, "epsilon", 1e-5F), both)
                   : INFINITY;
    }
  }
  return INFINITY;
}

/** The operand of a table is quantized, so that it is finite. The results may not be. */
static laci_finite_core table_bounds(const laci_table_pattern *table) {
  laci_finite_core core = {0};
  for (int at = 0; at < LACI_N_BYTES; at++) {
    const double y = fabs((double)table->table.values[at]);
    core.bound = isnan(y) ? INFINITY : fmax(core.bound, y);
  }
  return core;
}

static laci_finite_core bounds_of_quantize_list(const laci_quantize_list *list) {
  laci_finite_core core = {.bound = 0, .loses_nonfinite = false};
  for (int64_t k = 0; k < list->n; k++) {
    const laci_fake_quantized *q = &list->each[k];
    const double bound = fabs((double)q->scale) * fmax(-(double)q->low, (double)q->high);
    if (!(bound <= core.bound)) core.bound = bound;
  }
  return core;
}

static laci_finite_core bounds_of_pattern_core(laci_cpu_plan *plan, const double *bounds,
                                               const laci_fused *fused) {
  laci_finite_core core = {.bound = INFINITY, .loses_nonfinite = true};
  if (fused->pattern == LACI_PATTERN_ATTENTION) {
    const laci_attention_pattern *a = fused->details;
    const laci_shape *k = laci_plan_shape(plan, a->k);
    const double depth = (double)k->dims[k->rank - 2], scale = fabs((double)a->scale);
    const double score = depth * scale * laci_finite_operand_bound(plan, bounds, a->q) *
                         laci_finite_operand_bound(plan, bounds, a->k);
    core.bound =
        score < LACI_FINITE_BOUND ? laci_finite_operand_bound(plan, bounds, a->v) : INFINITY;
  } else if (fused->pattern == LACI_PATTERN_LAYER_NORM) {
    const laci_layer_norm_pattern *l = fused->details;
    const laci_shape *s = laci_plan_shape(plan, l->x);
    core.bound =
        layer_norm_bound(plan, laci_finite_operand_bound(plan, bounds, l->x), s->dims[s->rank - 1],
                         l->epsilon, (const int[2]){l->scale, l->shift});
  } else if (fused->pattern == LACI_PATTERN_QUANTIZE) {
    const laci_fake_quantized *q = fused->details;
    core.bound = fabs((double)q->scale) * fmax(-(double)q->low, (double)q->high);
    /* this node handles infinities and NaN as a careful plan does: they become a bound, NaN the
     * lower one */
    core.loses_nonfinite = false;
  } else if (fused->pattern == LACI_PATTERN_QUANTIZE_LIST) {
    core = bounds_of_quantize_list(fused->details);
  } else if (fused->pattern == LACI_PATTERN_TABLE) {
    core = table_bounds(fused->details);
  } else if (fused->pattern == LACI_PATTERN_DUPLICATE || fused->pattern == LACI_PATTERN_FUNCTION) {
    core = (laci_finite_core){.bound = laci_finite_operand_bound(plan, bounds, fused->reads[0])};
  }
  return core;
}

/** Has the node a NaN among its attributes, such as the number that a Pad fills with? No check of
 * operands would find it. */
static bool has_nan_attribute(const laci_node *node) {
  for (int at = 0; at < node->n_attrs; at++)
    if (node->attrs[at].kind == LACI_ATTR_FLOAT && isnan(node->attrs[at].f)) return true;
  return false;
}

laci_finite_core laci_finite_core_bounds(laci_cpu_plan *plan, const double *bounds,
                                         const laci_fused *fused) {
  const laci_node *node = &plan->graph->nodes[fused->node];
  laci_function f[2];
  laci_recurrent_node recurrent;
  int input;
  if (fused->pattern) return bounds_of_pattern_core(plan, bounds, fused);
  if (!laci_plan_has_elements(plan, node)) return (laci_finite_core){.bound = INFINITY};
  if (laci_plan_read_recurrent(plan, node, &recurrent, NULL)) {
    const double bound = laci_plan_recurrent_bound(plan, bounds, node, &recurrent);
    return (laci_finite_core){.bound = bound, .loses_nonfinite = true};
  }
  const bool numbers = !has_nan_attribute(node);
  const int n = laci_find_node_functions(plan, node, &input, f);
  if (n > 0) {
    const double x = laci_finite_operand_bound(plan, bounds, node->inputs[input]);
    const bool linear = n == 1 && f[0].kind == LACI_FUNCTION_LINEAR;
    return (laci_finite_core){
        .bound = functions_bound(f, n, x),
        .loses_nonfinite = !linear,
        .selects_elements = numbers && (node->op == &laci_op_relu || node->op == &laci_op_clip)};
  }
  for (size_t at = 0; at < sizeof rows / sizeof *rows; at++) {
    if (node->op != rows[at].op) continue;
    const double bound = bound_by_rule(plan, bounds, fused, rows[at].rule);
    return (laci_finite_core){bound, rows[at].loses_nonfinite, rows[at].propagates_nonfinite,
                              rows[at].selects_elements && numbers};
  }
  return (laci_finite_core){.bound = INFINITY};
}
