/* SPDX-License-Identifier: Apache-2.0
 * Describes the layer as a matrix product, sums over its inputs, and rounds group by group. */
#include "calibrate/rounding.h"

#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "calibrate/grams_in.h"
#include "calibrate/layer_in.h"
#include "calibrate/round_in.h"
#include "graph/op.h"
#include "graph/ops.h"

enum {
  POSITIONS_OF_WIDE = 16
}; /* minimum number of positions (inputs x) that are summed for each
                                    column of a wide layer */

struct laci_rounding {
  laci_rounding_options how;
  laci_matrix_layer layer;
  laci_grams grams;
};

static const char *describe_layer(const laci_rounding_options *how, laci_matrix_layer *l) {
  const laci_node *node = how->node;
  const laci_value *value = &how->graph->values[node->inputs[how->port]];
  const laci_shape *w = &value->type.shape;
  laci_weight_axes axes[2];
  const int n = node->op && node->op->weights ? node->op->weights(how->graph, node, axes) : 0;
  int at = 0;
  while (at < n && axes[at].port != how->port) at++;
  if (at == n) return "its operator has no such weight";
  const bool window = node->op == &laci_op_conv || node->op == &laci_op_conv_transpose;
  if (!window && w->rank != 2) return "its weight is more than one matrix";
  const laci_weight_axes *a = &axes[at];
  const bool along_c = node->op == &laci_op_conv_transpose;
  const int64_t k = w->dims[a->k_axis], c = w->dims[a->c_axis];
  *l = (laci_matrix_layer){.port = how->port,
                           .rows = along_c ? k : k / a->groups,
                           .channels = along_c ? c / a->groups : c,
                           .taps = laci_shape_count(w) / (k * c),
                           .k_stride = laci_shape_count_range(w, a->k_axis + 1, w->rank),
                           .c_stride = laci_shape_count_range(w, a->c_axis + 1, w->rank),
                           .groups_along_c = along_c,
                           .unfold.groups = a->groups};
  l->columns = l->taps * l->channels;
  if (l->columns > INT32_MAX || l->rows > INT32_MAX) return "it is too large";
  return laci_matrix_layer_describe_input(node, how->input, how->output, w, l);
}

lac_status laci_rounding_create(const laci_rounding_options *options, laci_rounding **rounding,
                                const char **reason, lac_error *err) {
  laci_rounding *r = laci_alloc(1, sizeof *r);
  *rounding = NULL;
  *reason = NULL;
  if (!r) return laci_fail_memory(err, "sums over a layer's inputs");
  r->how = *options;
  *reason = describe_layer(options, &r->layer);
  if (!*reason &&
      !laci_budget_allows(options->budget,
                          laci_grams_memory_bytes(&r->layer.unfold, options->from_floats) +
                              laci_fit_round_memory_bytes(r->layer.rows, r->layer.columns)))
    *reason = "its sums exceed the memory limit";
  if (*reason) {
    laci_free(r);
    return LAC_OK;
  }
  lac_status st =
      laci_grams_init(&r->grams, &r->layer.unfold, options->from_floats,
                      laci_grams_choose_positions(r->layer.columns, POSITIONS_OF_WIDE,
                                                  options->n_batches > 0 ? options->n_batches : 1),
                      err);
  if (!st && options->centered) st = laci_grams_want_sums(&r->grams, err);
  if (st) laci_rounding_destroy(r);
  else *rounding = r;
  return st;
}

void laci_rounding_destroy(laci_rounding *r) {
  if (!r) return;
  laci_grams_clear(&r->grams);
  laci_free(r);
}

void laci_rounding_add(laci_rounding *r, const float *data, const float *floats) {
  laci_grams_add(&r->grams, floats, data, r->how.pool);
}

/* Subtracts the products of the means, so that the sums are those of inputs without their means. a,
 * b: sums of the inputs that the rows and the columns of the matrix stand for. */
static void center_products(const laci_rounding *r, const double *a, const double *b,
                            double *matrix) {
  const int64_t n = r->layer.columns;
  const double positions = (double)r->grams.n_positions;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) matrix[i * n + j] -= a[i] * b[j] / positions;
}

static void center_group(const laci_rounding *r, int64_t group, double *h, double *k) {
  const double *sums = r->grams.sums ? r->grams.sums + group * r->layer.columns : NULL;
  if (!sums) return;
  center_products(r, sums, sums, h);
  if (k) center_products(r, r->grams.dense_sums + group * r->layer.columns, sums, k);
}

/* Returns the damping, which draws the weights towards those of the network in floats, as a part of
 * the mean square of the inputs. It is larger than that of a fit (sums.c): what layers before this
 * one lose is made up for on these samples, and may be something else on others. */
static double choose_damping(const laci_rounding *r) {
  const double scarce = 0.25 * (double)r->layer.columns / (double)r->grams.n_positions;
  return scarce > 0.03 ? scarce : 0.03;
}

/** The weights of a layer that are rounded, and memory for those of one group. */
typedef struct rounded_weights {
  const double *weights; /* in units of a step of their grid, in the stored layout */
  int most;
  double *matrix, *integers; /* [rows, columns] weights of one group, and their integers */
  int8_t *rounded;           /* integers in the stored layout */
} rounded_weights;

static lac_status round_group(laci_rounding *r, int64_t group, const rounded_weights *w,
                              lac_error *err) {
  const laci_matrix_layer *l = &r->layer;
  double *h = r->grams.h + group * l->columns * l->columns,
         *k = r->grams.k ? r->grams.k + group * l->columns * l->columns : NULL;
  const laci_fit fit = {.name = r->how.node->name,
                        .rows = (int)l->rows,
                        .columns = (int)l->columns,
                        .h = h,
                        .k = k,
                        .positions = (double)r->grams.n_positions,
                        .damping = choose_damping(r),
                        .weight = w->matrix};
  if (laci_interrupted())
    return laci_fail(err, LAC_INTERRUPTED, "%s: interrupted while it was rounded", fit.name);
  center_group(r, group, h, k);
  for (int64_t row = 0; row < l->rows; row++)
    for (int64_t c = 0; c < l->columns; c++)
      w->matrix[row * l->columns + c] = w->weights[laci_matrix_layer_element(l, group, row, c)];
  lac_status st = laci_fit_round(&fit, w->most, r->how.pool, w->integers, err);
  for (int64_t row = 0; row < l->rows && !st; row++)
    for (int64_t c = 0; c < l->columns; c++)
      w->rounded[laci_matrix_layer_element(l, group, row, c)] =
          (int8_t)w->integers[row * l->columns + c];
  return st;
}

lac_status laci_rounding_finish(laci_rounding *r, const double *weights, int most, int8_t *rounded,
                                lac_error *err) {
  const size_t count = (size_t)(r->layer.rows * r->layer.columns);
  const rounded_weights w = {.weights = weights,
                             .most = most,
                             .matrix = laci_alloc(count, sizeof *w.matrix),
                             .integers = laci_alloc(count, sizeof *w.integers),
                             .rounded = rounded};
  lac_status st =
      w.matrix && w.integers ? LAC_OK : laci_fail_memory(err, "the rounded weights of a layer");
  laci_grams_finish(&r->grams, r->how.pool);
  for (int64_t group = 0; group < r->layer.unfold.groups && !st; group++)
    st = round_group(r, group, &w, err);
  laci_free(w.matrix);
  laci_free(w.integers);
  return st;
}
