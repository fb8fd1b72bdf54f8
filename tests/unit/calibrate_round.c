/* SPDX-License-Identifier: Apache-2.0
 * Weights rounded as a fit: the error by its definition, zeros that stay, and the sums over a
 * convolution's inputs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/model/model_in.h"
#include "base/budget.h"
#include "base/memory.h"
#include "base/rng.h"
#include "calibrate/round_in.h"
#include "calibrate/rounding.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "graph/op.h"
#include "lacuna/model.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

enum { ROWS = 37, COLUMNS = 150, POSITIONS = 400, MOST = 7 };

static double draw(uint64_t seed, int64_t at) {
  return 2 * laci_rng_unit_interval(seed, 0, (uint64_t)at) - 1;
}

/** A layer whose inputs have neighbours that are alike. */
typedef struct layer {
  double x[POSITIONS * COLUMNS], h[COLUMNS * COLUMNS];
  double weight[ROWS * COLUMNS], rounded[ROWS * COLUMNS];
  laci_fit fit;
} layer;

static void layer_init(layer *l) {
  for (int p = 0; p < POSITIONS; p++) {
    for (int c = 0; c < COLUMNS; c++) {
      const double before = c > 0 ? l->x[p * COLUMNS + c - 1] : 0;
      l->x[p * COLUMNS + c] = 0.9 * before + draw(1, p * COLUMNS + c) * (c % 7 == 0 ? 3 : 1);
    }
  }
  memset(l->h, 0, sizeof l->h);
  for (int p = 0; p < POSITIONS; p++)
    for (int i = 0; i < COLUMNS; i++)
      for (int j = 0; j < COLUMNS; j++)
        l->h[i * COLUMNS + j] += l->x[p * COLUMNS + i] * l->x[p * COLUMNS + j];
  for (int at = 0; at < ROWS * COLUMNS; at++)
    l->weight[at] = at % 4 < 2 && at % 3 ? 0 : MOST * draw(2, at);
  l->fit = (laci_fit){.name = "layer",
                      .rows = ROWS,
                      .columns = COLUMNS,
                      .h = l->h,
                      .positions = POSITIONS,
                      .damping = 0.01,
                      .weight = l->weight};
}

/* The error of a row's outputs for the integers q, with damping, by its definition. */
static double error_of_row(const layer *l, const double *w, const double *q) {
  double error = 0, trace = 0, squares = 0;
  for (int p = 0; p < POSITIONS; p++) {
    double y = 0;
    for (int c = 0; c < COLUMNS; c++) y += (w[c] - q[c]) * l->x[p * COLUMNS + c];
    error += y * y;
  }
  for (int c = 0; c < COLUMNS; c++) {
    trace += l->h[c * COLUMNS + c];
    squares += (w[c] - q[c]) * (w[c] - q[c]);
  }
  return error + 0.01 * trace / COLUMNS * squares;
}

static double nearest_of(double w) { return fmax(-MOST, fmin(MOST, rint(w))); }

static void no_other_integer_of_one_weight_is_better(void **state) {
  (void)state;
  layer *l = malloc(sizeof *l);
  lac_error err = {0};
  double all = 0, all_nearest = 0;
  layer_init(l);
  if (laci_fit_round(&l->fit, MOST, NULL, l->rounded, &err)) fail_msg("%s", err.text);
  for (int row = 0; row < ROWS; row++) {
    const double *w = l->weight + row * COLUMNS;
    double *q = l->rounded + row * COLUMNS, nearest[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) {
      nearest[c] = nearest_of(w[c]);
      assert_true(q[c] == rint(q[c]) && fabs(q[c]) <= MOST);
      if (w[c] == 0) assert_true(q[c] == 0);
    }
    const double error = error_of_row(l, w, q);
    all += error;
    all_nearest += error_of_row(l, w, nearest);
    for (int c = 0; c < COLUMNS; c += 11) {
      const double was = q[c];
      for (int by = -1; by <= 1 && w[c] != 0; by += 2) {
        q[c] = fmax(-MOST, fmin(MOST, was + by));
        assert_true(error_of_row(l, w, q) >= error * (1 - 1e-6));
      }
      q[c] = was;
    }
  }
  assert_true(all < 0.35 * all_nearest);
  free(l);
}

/* The layer's data are rounded, too: with K, its outputs are nearer to those of the data in
 * floats. */
static void outputs_are_fitted_to_those_of_other_inputs(void **state) {
  (void)state;
  layer *l = malloc(sizeof *l);
  double *k = calloc(COLUMNS * COLUMNS, sizeof *k), *floats = malloc(sizeof l->x);
  double error[2] = {0};
  lac_error err = {0};
  layer_init(l);
  memcpy(floats, l->x, sizeof l->x);
  memset(l->h, 0, sizeof l->h);
  for (int at = 0; at < POSITIONS * COLUMNS; at++)
    l->x[at] = fmax(-2, fmin(2, rint(2 * l->x[at]) / 2)); /* coarse, and cut off */
  for (int p = 0; p < POSITIONS; p++) {
    for (int i = 0; i < COLUMNS; i++) {
      for (int j = 0; j < COLUMNS; j++) {
        l->h[i * COLUMNS + j] += l->x[p * COLUMNS + i] * l->x[p * COLUMNS + j];
        k[i * COLUMNS + j] += floats[p * COLUMNS + i] * l->x[p * COLUMNS + j];
      }
    }
  }
  for (int with = 0; with < 2; with++) {
    l->fit.k = with ? k : NULL;
    if (laci_fit_round(&l->fit, MOST, NULL, l->rounded, &err)) fail_msg("%s", err.text);
    for (int row = 0; row < ROWS; row++) {
      for (int p = 0; p < POSITIONS; p++) {
        double y = 0;
        for (int c = 0; c < COLUMNS; c++)
          y += l->weight[row * COLUMNS + c] * floats[p * COLUMNS + c] -
               l->rounded[row * COLUMNS + c] * l->x[p * COLUMNS + c];
        error[with] += y * y;
      }
    }
    for (int at = 0; at < ROWS * COLUMNS; at++)
      assert_true(l->weight[at] != 0 || l->rounded[at] == 0);
  }
  assert_true(error[1] < 0.9 * error[0]);
  free(floats);
  free(k);
  free(l);
}

static void integers_are_the_same_for_any_pool(void **state) {
  (void)state;
  layer *l = malloc(sizeof *l);
  double *other = malloc(sizeof l->rounded);
  lac_error err = {0};
  laci_pool *pool;
  layer_init(l);
  assert_int_equal(laci_pool_create(3, &pool, &err), LAC_OK);
  assert_int_equal(laci_fit_round(&l->fit, MOST, NULL, l->rounded, &err), LAC_OK);
  assert_int_equal(laci_fit_round(&l->fit, MOST, pool, other, &err), LAC_OK);
  assert_memory_equal(l->rounded, other, sizeof l->rounded);
  laci_pool_destroy(pool);
  free(other);
  free(l);
}

/* ---- A convolution ---- */

enum { IMAGES = 5, SIZE = 6 };

/** A convolution of a network with windows of 3 x 3 and a border of 1, and its inputs. */
typedef struct convolution {
  lac_model *model;
  const laci_node *node;
  int64_t k, c, columns;
  float *data;     /* [2, IMAGES, c, SIZE, SIZE] two batches */
  double *weights; /* [k, c, 3, 3] */
  double *h; /* [columns, columns] sums over inputs without their means; by tap, then channel */
} convolution;

static double read_pixel(const convolution *v, int64_t image, int64_t column, int position) {
  const int64_t tap = column / v->c, channel = column % v->c;
  const int64_t row = position / SIZE + tap / 3 - 1, at = position % SIZE + tap % 3 - 1;
  if (row < 0 || row >= SIZE || at < 0 || at >= SIZE) return 0;
  return (double)v->data[((image * v->c + channel) * SIZE + row) * SIZE + at];
}

static void add_window_products(convolution *v) {
  const int n_positions = 2 * IMAGES * SIZE * SIZE;
  double *x = malloc((size_t)v->columns * (size_t)n_positions * sizeof *x);
  for (int64_t i = 0; i < v->columns; i++) {
    double mean = 0;
    for (int p = 0; p < n_positions; p++) {
      x[i * n_positions + p] = read_pixel(v, p / (SIZE * SIZE), i, p % (SIZE * SIZE));
      mean += x[i * n_positions + p] / n_positions;
    }
    for (int p = 0; p < n_positions; p++) x[i * n_positions + p] -= mean;
  }
  for (int64_t i = 0; i < v->columns; i++)
    for (int64_t j = 0; j < v->columns; j++)
      for (int p = 0; p < n_positions; p++)
        v->h[i * v->columns + j] += x[i * n_positions + p] * x[j * n_positions + p];
  free(x);
}

static void convolution_init(convolution *v) {
  lac_error err = {0};
  if (lac_model_load(DIGITS, NULL, &v->model, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_model_materialise(v->model, &err), LAC_OK);
  assert_int_equal(laci_graph_infer(v->model->graph, NULL, 0, &err), LAC_OK);
  const laci_graph *graph = v->model->graph;
  const laci_shape *shape = NULL;
  for (int at = 0; at < graph->n_nodes; at++) {
    if (!laci_node_is(&graph->nodes[at], "Conv")) continue;
    shape = &graph->values[graph->nodes[at].inputs[1]].type.shape;
    size_t n = 0;
    const int64_t *strides = laci_node_ints(&graph->nodes[at], "strides", &n);
    v->node = &graph->nodes[at];
    if (shape->dims[1] > 1 && shape->dims[2] == 3 && (!strides || strides[0] == 1)) break;
  }
  v->k = shape->dims[0];
  v->c = shape->dims[1];
  assert_true(v->c > 1 && shape->dims[2] == 3);
  v->columns = 9 * v->c;
  const size_t n_data = (size_t)(2 * IMAGES * v->c * SIZE * SIZE);
  v->data = malloc(n_data * sizeof *v->data);
  v->weights = malloc((size_t)(v->k * v->columns) * sizeof *v->weights);
  v->h = calloc((size_t)(v->columns * v->columns), sizeof *v->h);
  for (size_t at = 0; at < n_data; at++) /* multiples of 1/16, whose sums are exact in float */
    v->data[at] = (float)rint(16 * fmax(0, draw(3, (int64_t)at))) / 16;
  for (int64_t at = 0; at < v->k * v->columns; at++)
    v->weights[at] = at % 5 == 0 ? 0 : MOST * draw(4, at);
  add_window_products(v);
}

static void inputs_of_a_convolution_are_its_windows(void **state) {
  (void)state;
  convolution v = {0};
  lac_error err = {0};
  const char *reason;
  laci_rounding *rounding;
  convolution_init(&v);
  const int64_t count = v.k * v.columns;
  const laci_shape input = {4, {IMAGES, v.c, SIZE, SIZE}}, output = {4, {IMAGES, v.k, SIZE, SIZE}};
  const laci_rounding_options how = {.graph = v.model->graph,
                                     .node = v.node,
                                     .port = 1,
                                     .input = &input,
                                     .output = &output,
                                     .n_batches = 2,
                                     .centered = true};
  int8_t *found = malloc((size_t)count);
  assert_int_equal(laci_rounding_create(&how, &rounding, &reason, &err), LAC_OK);
  assert_null(reason);
  for (int b = 0; b < 2; b++)
    laci_rounding_add(rounding, v.data + b * IMAGES * v.c * SIZE * SIZE, NULL);
  if (laci_rounding_finish(rounding, v.weights, MOST, found, &err)) fail_msg("%s", err.text);
  /* the same from sums by their definition */
  double *matrix = malloc((size_t)count * sizeof *matrix),
         *wanted = malloc((size_t)count * sizeof *wanted);
  for (int64_t row = 0; row < v.k; row++)
    for (int64_t i = 0; i < v.columns; i++)
      matrix[row * v.columns + i] = v.weights[(row * v.c + i % v.c) * 9 + i / v.c];
  const laci_fit fit = {.name = "conv",
                        .rows = (int)v.k,
                        .columns = (int)v.columns,
                        .h = v.h,
                        .positions = 2 * IMAGES * SIZE * SIZE,
                        .weight = matrix};
  assert_int_equal(laci_fit_round(&fit, MOST, NULL, wanted, &err), LAC_OK);
  int n_other = 0;
  for (int64_t row = 0; row < v.k; row++)
    for (int64_t i = 0; i < v.columns; i++)
      n_other += wanted[row * v.columns + i] != found[(row * v.c + i % v.c) * 9 + i / v.c];
  assert_true(n_other <= count / 100); /* sums are rounded in another order */
  laci_rounding_destroy(rounding);
  lac_model_destroy(v.model);
  free(matrix);
  free(wanted);
  free(found);
  free(v.data);
  free(v.weights);
  free(v.h);
}

static void what_exceeds_the_memory_has_a_reason(void **state) {
  (void)state;
  convolution v = {0};
  lac_error err = {0};
  const char *reason;
  laci_rounding *rounding;
  convolution_init(&v);
  const laci_shape input = {4, {IMAGES, v.c, SIZE, SIZE}}, output = {4, {IMAGES, v.k, SIZE, SIZE}};
  laci_budget budget = laci_budget_with_limit(1000);
  laci_rounding_options how = {.graph = v.model->graph,
                               .node = v.node,
                               .port = 1,
                               .input = &input,
                               .output = &output,
                               .n_batches = 2,
                               .budget = &budget};
  assert_int_equal(laci_rounding_create(&how, &rounding, &reason, &err), LAC_OK);
  assert_null(rounding);
  assert_string_equal(reason, "its sums exceed the memory limit");
  how.port = 0;
  assert_int_equal(laci_rounding_create(&how, &rounding, &reason, &err), LAC_OK);
  assert_null(rounding);
  assert_string_equal(reason, "its operator has no such weight");
  lac_model_destroy(v.model);
  free(v.data);
  free(v.weights);
  free(v.h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_other_integer_of_one_weight_is_better),
      cmocka_unit_test(outputs_are_fitted_to_those_of_other_inputs),
      cmocka_unit_test(integers_are_the_same_for_any_pool),
      cmocka_unit_test(inputs_of_a_convolution_are_its_windows),
      cmocka_unit_test(what_exceeds_the_memory_has_a_reason),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
