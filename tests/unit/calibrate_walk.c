/* SPDX-License-Identifier: Apache-2.0
 * The walk of calibration: layers as matrix products against the plain engine, sums against their
 * definition, small networks against two runs of the plain engine, and what must not change a byte.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/analyze.h"
#include "base/budget.h"
#include "calibrate/fit.h"
#include "calibrate/grams_in.h"
#include "calibrate/walk.h"
#include "cpu/pool.h"
#include "lacuna/log.h"
#include "sparse/mask.h"
#include "support/graph_run.h"
#include "support/light.h"
#include "support/unfold_rows.h"

enum { SAMPLES = 40 };

/* ---- Networks and samples ---- */

/* Axis 0 of every input is open: "input x 1x..." */
static laci_graph *read_open(const char *text) {
  laci_graph *graph;
  lac_error err = {0};
  char line[NET_LINE];
  net_state state = {.opset = 22};
  lac_status st = laci_graph_create(&graph, &err);
  for (; *text && !st; text += strcspn(text, "\n"), text += *text == '\n') {
    (void)snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    st = net_line(graph, line, &state, &err);
  }
  graph->ir_version = 8;
  int64_t batch = laci_graph_add_symbol(graph);
  for (int i = 0; i < graph->n_inputs && !st; i++)
    graph->values[graph->inputs[i]].type.shape.dims[0] = batch;
  if (!st) st = laci_graph_finish(graph, &err);
  if (!st) st = laci_graph_infer(graph, NULL, 0, &err);
  if (st) fail_msg("%s", err.text);
  return graph;
}

static laci_graph *read_fixed(const char *text) {
  laci_graph *graph;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

static laci_analysis *analyze(const laci_graph *graph) {
  laci_analysis *analysis;
  lac_error err = {0};
  const laci_rules rules = {.pattern = {2, 4}, .all_sizes = true};
  if (laci_analyze(graph, &rules, &analysis, &err)) fail_msg("%s", err.text);
  return analysis;
}

typedef struct source {
  const laci_graph *graph;
  laci_shape shapes[4];
  laci_calibration_samples samples;
  int64_t n_fetched, fails_at;
} source;

/* Neighbours are alike, as in images: inputs that say nothing of each other need no fit. */
static bool all_alike;
static float sample_number(int input, int64_t sample, int64_t at) {
  if (all_alike) sample = 0;
  uint64_t stream = (uint64_t)(input * 100000 + sample);
  double slow = laci_rng_unit_interval(5, stream, (uint64_t)(at / 8)) - 0.5;
  return (float)(slow * 2 + laci_rng_unit_interval(6, stream, (uint64_t)at) - 0.5);
}

static lac_status fetch(void *context, int64_t first, int64_t n, void *const *to, lac_error *err) {
  source *s = context;
  s->n_fetched += n;
  if (s->fails_at > 0 && s->n_fetched >= s->fails_at)
    return laci_fail(err, LAC_IO, "sample %d cannot be read", (int)first);
  for (int i = 0; i < s->graph->n_inputs; i++) {
    const laci_type *type = &s->graph->values[s->graph->inputs[i]].type;
    int64_t per = laci_shape_count_range(&s->shapes[i], 1, s->shapes[i].rank);
    for (int64_t k = 0; k < n * per; k++) {
      float x = sample_number(i, first + k / per, k % per);
      if (laci_dtype_is_float(type->dtype)) ((float *)to[i])[k] = x;
      else ((int64_t *)to[i])[k] = (int64_t)fabsf(x * 4);
    }
  }
  return LAC_OK;
}

static void source_init(source *s, const laci_graph *graph, int64_t count) {
  *s = (source){.graph = graph};
  for (int i = 0; i < graph->n_inputs; i++)
    s->shapes[i] = graph->values[graph->inputs[i]].type.shape;
  s->samples =
      (laci_calibration_samples){.count = count, .shapes = s->shapes, .fetch = fetch, .context = s};
}

static laci_calibrate_options options_of(const char *score) {
  return (laci_calibrate_options){
      .pattern = {2, 4}, .score = laci_score_find(score), .solve = true};
}

static laci_calibrated *calibrate(const laci_analysis *analysis, const source *s,
                                  const laci_calibrate_options *options) {
  laci_calibrated *out;
  lac_error err = {0};
  if (laci_calibrate(analysis, &s->samples, options, &out, &err)) fail_msg("%s", err.text);
  return out;
}

static const char chain[] =
    "input x 1x8x7x7\nstored a 8x8x3x3\nstored ab 8\nstored b 12x8x3x3\nstored c 10x12\n"
    "u = Conv(x, a, ab) pads=1,1,1,1\nv = Relu(u)\nw = Conv(v, b) strides=2,2\nr = Relu(w)\n"
    "p = GlobalAveragePool(r)\nf = Flatten(p)\ny = Gemm(f, c) transB=1\noutput y\n";

static const char residual[] =
    "input x 1x8x6x6\nstored a 8x8x3x3\nstored b 8x8x3x3\nstored d 8x8x1x1\nstored e 16x8x3x3\n"
    "stored c 16x6\n"
    "u = Conv(x, a) pads=1,1,1,1\nv = Relu(u)\nw = Conv(v, b) pads=1,1,1,1\ns = Conv(x, d)\n"
    "t = Add(w, s)\nr = Relu(t)\nq = Conv(r, e) dilations=2,2 auto_pad=\"SAME_UPPER\"\n"
    "z = Add(q, q)\np = GlobalAveragePool(z)\nf = Flatten(p)\ny = MatMul(f, c)\noutput y\n";

static const char attention[] =
    "input x 1x5x8\nstored q.w 8x8\nstored k.w 8x8\nstored v.w 8x8\nstored o.w 8x8\n"
    "stored shape 3 i64 = 0 0 -1\nstored half \"\" = 0.35\n"
    "q = MatMul(x, q.w)\nk = MatMul(x, k.w)\nv = MatMul(x, v.w)\nkt = Transpose(k) perm=0,2,1\n"
    "s = MatMul(q, kt)\nsc = Mul(s, half)\np = Softmax(sc)\na = MatMul(p, v)\n"
    "n = Shape(x)\nas = Reshape(a, n)\no = MatMul(as, o.w)\ny = Add(x, o)\noutput y\n";

static const char branches[] =
    "input x 1x8x8x8\nstored a 8x4x3x3\nstored b 8x8x3x3\nstored d 8x1x3x3\nstored t 8x6x2x2\n"
    "stored e 8x14x1x1\n"
    "u = Conv(x, a) group=2 pads=1,1,1,1\nr = Relu(u)\nv = Conv(r, b) pads=1,1,1,1\n"
    "m = Conv(r, d) group=8 strides=2,2 pads=1,1,1,1\n"
    "w = ConvTranspose(m, t) strides=2,2\nj = Concat(v, w) axis=1\ny = Conv(j, e)\noutput y\n";

/* Indices as an input, and a second input that only its end reads. */
static const char tokens[] =
    "input x 1x6 i64\ninput z 1x6x8\nstored e 8x8\nstored s \"\" = 0.125\nstored a 8x12\n"
    "stored b 8x12\nstored c 12x8\n"
    "g = Gather(e, x)\nu = MatMul(g, a)\nt = Tanh(u)\nv = MatMul(t, c)\nw = Add(v, z)\n"
    "r = Relu(w)\ny = MatMul(r, b)\noutput y\noutput t\n";

static const char *const networks[] = {chain, residual, attention, branches, tokens};
enum { N_NETWORKS = sizeof networks / sizeof *networks };

/* ---- A layer is a matrix product ---- */

/* One layer each, y = ... */
static const char *const layers[] = {
    "input x 2x8x7x6\nstored w 6x8x3x3\ny = Conv(x, w)\noutput y\n",
    "input x 2x8x7x6\nstored w 6x8x3x2\ny = Conv(x, w) strides=2,1 pads=1,0,2,1\noutput y\n",
    "input x 2x8x9x9\nstored w 6x8x3x3\ny = Conv(x, w) dilations=2,3 pads=2,2,2,2\noutput y\n",
    "input x 2x8x7x6\nstored w 6x4x3x3\ny = Conv(x, w) group=2 pads=1,1,1,1\noutput y\n",
    "input x 2x8x7x6\nstored w 6x8x2x2\ny = Conv(x, w) auto_pad=\"SAME_LOWER\"\noutput y\n",
    "input x 2x8x7x6\nstored w 6x8x2x3\ny = Conv(x, w) auto_pad=\"SAME_UPPER\" strides=2,2\n"
    "output y\n",
    "input x 2x8x7x6\nstored w 6x8x3x3\ny = Conv(x, w) auto_pad=\"VALID\"\noutput y\n",
    "input x 2x8x9\nstored w 6x8x3\ny = Conv(x, w) strides=2 pads=1,1\noutput y\n",
    "input x 2x4x5x4x3\nstored w 6x4x3x2x2\ny = Conv(x, w) pads=1,0,1,1,1,0\noutput y\n",
    "input x 2x8x4x3\nstored w 8x6x3x3\ny = ConvTranspose(x, w)\noutput y\n",
    "input x 2x8x4x3\nstored w 8x6x3x2\n"
    "y = ConvTranspose(x, w) strides=2,3 pads=1,0,0,1 dilations=2,1 output_padding=1,0\noutput "
    "y\n",
    "input x 2x8x4x3\nstored w 8x3x2x2\ny = ConvTranspose(x, w) group=2 strides=2,2\noutput y\n",
    "input x 2x8x4x3\nstored w 8x6x3x3\n"
    "y = ConvTranspose(x, w) strides=2,2 auto_pad=\"SAME_UPPER\"\noutput y\n",
    "input x 5x8\nstored w 8x6\ny = Gemm(x, w)\noutput y\n",
    "input x 5x8\nstored w 6x8\ny = Gemm(x, w) transB=1\noutput y\n",
    "input x 8x5\nstored w 8x6\ny = Gemm(x, w) transA=1\noutput y\n",
    "input x 8x5\nstored w 6x8\ny = Gemm(w, x)\noutput y\n",
    "input x 5x8\nstored w 8x6\ny = Gemm(w, x) transA=1 transB=1\noutput y\n",
    "input x 2x5x8\nstored w 8x6\ny = MatMul(x, w)\noutput y\n",
    "input x 2x8x5\nstored w 6x8\ny = MatMul(w, x)\noutput y\n",
    "input x 2x5x8\nstored w 6x8\nt = Transpose(w) perm=1,0\ny = MatMul(x, t)\noutput y\n",
};
enum { N_LAYERS = sizeof layers / sizeof *layers };

/* Index in y of row `row` of group `group` at position p. */
static int64_t output_at(const laci_matrix_layer *l, const laci_node *node, int64_t group,
                         int64_t row, int64_t p) {
  int64_t all = l->rows * l->unfold.groups, k = group * l->rows + row;
  int64_t positions = laci_unfold_n_positions(&l->unfold), per_image = positions / l->unfold.images;
  bool gemm = strcmp(node->type, "Gemm") == 0, product = strcmp(node->type, "MatMul") == 0;
  if ((gemm || product) && l->port == 1) return p * all + k;
  if (gemm) return k * positions + p;
  return (p / per_image * all + k) * per_image + p % per_image;
}

static void check_product(const char *text, const laci_matrix_layer *l, const laci_network *n,
                          laci_buf **values) {
  const laci_graph *graph = &n->graph;
  const laci_buf *x = values[l->value], *y = values[graph->outputs[0]];
  int64_t positions = laci_unfold_n_positions(&l->unfold);
  float *in = laci_alloc((size_t)x->count, sizeof *in);
  float *rows = laci_alloc((size_t)(positions * l->columns), sizeof *rows);
  double *w = laci_alloc((size_t)(l->rows * l->columns), sizeof *w);
  for (int64_t i = 0; i < x->count; i++) in[i] = (float)x->f[i];
  assert_int_equal(positions * l->rows * l->unfold.groups, y->count);
  for (int64_t group = 0; group < l->unfold.groups; group++) {
    const laci_group_matrix matrix = {.group = group, .elements = w};
    unfold_rows(&l->unfold, group, in, rows);
    assert_int_equal(laci_matrix_layer_gather(l, n, n->weights[l->stored], &matrix, NULL), LAC_OK);
    for (int64_t p = 0; p < positions; p++) {
      for (int64_t row = 0; row < l->rows; row++) {
        double sum = 0;
        for (int64_t j = 0; j < l->columns; j++)
          sum += w[row * l->columns + j] * (double)rows[p * l->columns + j];
        double want = y->f[output_at(l, &graph->nodes[l->node], group, row, p)];
        if (!(fabs(sum - want) <= 1e-5))
          fail_msg("%s: group %d, position %d, row %d: %g, wanted %g", text, (int)group, (int)p,
                   (int)row, sum, want);
      }
    }
  }
  laci_free(in);
  laci_free(rows);
  laci_free(w);
}

static laci_network *network_of(const laci_graph *graph, int64_t batch) {
  laci_network *n;
  lac_error err = {0};
  const laci_weighted_graph from = {.graph = graph};
  laci_shape shapes[4];
  for (int i = 0; i < graph->n_inputs; i++) shapes[i] = graph->values[graph->inputs[i]].type.shape;
  if (laci_network_create(&from, &(laci_calibration_samples){.shapes = shapes}, 0, batch, &n, &err))
    fail_msg("%s", err.text);
  return n;
}

static void layers_are_products_of_their_weight_and_unfolded_inputs(void **state) {
  (void)state;
  for (int c = 0; c < N_LAYERS; c++) {
    laci_graph *graph = read_fixed(layers[c]);
    laci_analysis *analysis = analyze(graph);
    laci_network *n = network_of(graph, graph->values[graph->inputs[0]].type.shape.dims[0]);
    laci_buf **values = run_graph(graph);
    laci_matrix_layer l;
    assert_int_equal(analysis->n_layers, 1);
    const char *reason = laci_matrix_layer_init(analysis, 0, n, &l);
    if (reason) fail_msg("%s: %s", layers[c], reason);
    check_product(layers[c], &l, n, values);
    run_clear(graph, values);
    laci_network_destroy(n);
    laci_analysis_destroy(analysis);
    laci_graph_destroy(graph);
  }
}

/* ---- Sums ---- */

static void check_sums(const char *text, const laci_matrix_layer *l, const float *d,
                       const float *p) {
  int64_t n = laci_unfold_n_positions(&l->unfold), columns = l->columns;
  float *xd = laci_alloc((size_t)(n * columns), sizeof *xd);
  float *xp = laci_alloc((size_t)(n * columns), sizeof *xp);
  laci_grams m;
  assert_int_equal(laci_grams_init(&m, &l->unfold, true, INT64_MAX, NULL), LAC_OK);
  laci_grams_add(&m, d, p, NULL);
  laci_grams_add(&m, p, p, NULL);
  laci_grams_finish(&m, NULL);
  assert_int_equal(m.n_positions, 2 * n);
  for (int64_t group = 0; group < l->unfold.groups; group++) {
    unfold_rows(&l->unfold, group, d, xd);
    unfold_rows(&l->unfold, group, p, xp);
    for (int64_t i = 0; i < columns; i++) {
      for (int64_t j = 0; j < columns; j++) {
        double h = 0, k = 0, size = 1;
        for (int64_t at = 0; at < n; at++) {
          double pp = (double)xp[at * columns + i] * (double)xp[at * columns + j];
          h += 2 * pp;
          k += pp + (double)xd[at * columns + i] * (double)xp[at * columns + j];
          size += fabs(pp);
        }
        int64_t at = (group * columns + i) * columns + j;
        if (!(fabs(m.h[at] - h) <= 1e-5 * size) || !(fabs(m.k[at] - k) <= 1e-5 * size))
          fail_msg("%s: [%d, %d]: %g and %g, wanted %g and %g", text, (int)i, (int)j, m.h[at],
                   m.k[at], h, k);
      }
    }
  }
  laci_grams_clear(&m);
  laci_free(xd);
  laci_free(xp);
}

static void sums_are_those_of_unfolded_inputs(void **state) {
  (void)state;
  for (int c = 0; c < N_LAYERS; c++) {
    laci_graph *graph = read_fixed(layers[c]);
    laci_analysis *analysis = analyze(graph);
    laci_network *n = network_of(graph, graph->values[graph->inputs[0]].type.shape.dims[0]);
    laci_matrix_layer l;
    assert_null(laci_matrix_layer_init(analysis, 0, n, &l));
    int64_t count = (int64_t)laci_network_value_bytes(n, l.value) / 4;
    float *d = laci_alloc((size_t)count, sizeof *d), *p = laci_alloc((size_t)count, sizeof *p);
    for (int64_t i = 0; i < count; i++) {
      d[i] = sample_number(1, 0, i);
      p[i] = d[i] + sample_number(2, 0, i) / 4;
    }
    check_sums(layers[c], &l, d, p);
    laci_free(d);
    laci_free(p);
    laci_network_destroy(n);
    laci_analysis_destroy(analysis);
    laci_graph_destroy(graph);
  }
}

/* Of many positions, a part says nearly the same: half of the diagonal from half of them. */
static void sums_of_some_positions_are_near_those_of_all(void **state) {
  (void)state;
  enum { BATCHES = 6, VALUE = 4 * 8 * 24 * 24 };
  laci_unfold unfold = {.images = 4, .groups = 1, .channels = 8};
  unfold.axis[0] = (laci_unfold_axis){1, 1, 1, 1, 1, 0};
  unfold.axis[1] = unfold.axis[2] = (laci_unfold_axis){24, 24, 3, 1, 1, 1};
  laci_grams all, some;
  float *x = laci_alloc(VALUE, sizeof *x);
  assert_int_equal(laci_grams_init(&all, &unfold, false, INT64_MAX, NULL), LAC_OK);
  assert_int_equal(laci_grams_init(&some, &unfold, false, 700, NULL), LAC_OK);
  for (int batch = 0; batch < BATCHES; batch++) {
    for (int64_t i = 0; i < VALUE; i++) x[i] = sample_number(3, batch, i) + 0.5f;
    laci_grams_add(&all, x, x, NULL);
    laci_grams_add(&some, x, x, NULL);
  }
  laci_grams_finish(&all, NULL);
  laci_grams_finish(&some, NULL);
  assert_int_equal(all.n_positions, BATCHES * 4 * 24 * 24);
  assert_int_equal(some.n_positions, BATCHES * 700);
  double scale = (double)all.n_positions / (double)some.n_positions, diagonal = 0, far = 0;
  for (int i = 0; i < 72; i++) diagonal += all.h[i * 73] / 72;
  for (int i = 0; i < 72 * 72; i++) far = fmax(far, fabs(scale * some.h[i] - all.h[i]));
  if (!(far > 0 && far < 0.1 * diagonal)) fail_msg("%g from sums of %g", far, diagonal);
  laci_grams_clear(&all);
  laci_grams_clear(&some);
  laci_free(x);
}

/* Batches of few positions of a wide layer wait for each other; the last few of them, too, count.
 */
static void sums_of_wide_layers_hold_all_batches(void **state) {
  (void)state;
  enum { BATCHES = 60, ROWS = 70, WIDE = 1027, VALUE = ROWS * WIDE };
  laci_unfold unfold = {.images = ROWS, .groups = 1, .channels = WIDE};
  for (int i = 0; i < LACI_UNFOLD_AXES; i++) unfold.axis[i] = (laci_unfold_axis){1, 1, 1, 1, 1, 0};
  laci_grams m;
  float *d = laci_alloc((size_t)BATCHES * VALUE, sizeof *d);
  float *p = laci_alloc((size_t)BATCHES * VALUE, sizeof *p);
  assert_true(d && p);
  for (int64_t i = 0; i < (int64_t)BATCHES * VALUE; i++) {
    d[i] = sample_number(1, 0, i);
    p[i] = d[i] + sample_number(2, 0, i) / 4;
  }
  assert_int_equal(laci_grams_init(&m, &unfold, true, INT64_MAX, NULL), LAC_OK);
  assert_true(m.most_waiting > 1 && BATCHES % m.most_waiting != 0);
  for (int64_t b = 0; b < BATCHES; b++) laci_grams_add(&m, d + b * VALUE, p + b * VALUE, NULL);
  laci_grams_finish(&m, NULL);
  assert_int_equal(m.n_positions, BATCHES * ROWS);
  for (int64_t at = 0; at < (int64_t)WIDE * WIDE; at += 1013 * tests_stride(10)) {
    const int64_t i = at / WIDE, j = at % WIDE;
    double h = 0, k = 0;
    for (int64_t row = 0; row < BATCHES * ROWS; row++) {
      h += (double)p[row * WIDE + i] * (double)p[row * WIDE + j];
      k += (double)d[row * WIDE + i] * (double)p[row * WIDE + j];
    }
    if (!(fabs(m.h[at] - h) <= 1e-3) || !(fabs(m.k[at] - k) <= 1e-3))
      fail_msg("[%d, %d]: %g and %g, wanted %g and %g", (int)i, (int)j, m.h[at], m.k[at], h, k);
  }
  laci_grams_clear(&m);
  laci_free(d);
  laci_free(p);
}

/* ---- Whole networks ---- */

/* All values for the samples that judge, in one batch, by the plain engine, with other weights. */
static laci_buf **run_plainly(const laci_graph *graph, const source *s, int64_t first, int64_t n,
                              uint8_t *const *weights) {
  laci_graph copy = *graph;
  copy.stored = laci_alloc((size_t)graph->n_stored + 1, sizeof *copy.stored);
  for (int i = 0; i < graph->n_stored; i++) {
    copy.stored[i] = graph->stored[i];
    if (weights && weights[i]) copy.stored[i].bytes = weights[i];
  }
  const laci_weighted_graph from = {.graph = &copy};
  laci_network *network;
  assert_int_equal(laci_network_create(&from, &s->samples, 0, n, &network, NULL), LAC_OK);
  laci_buf **values = laci_alloc((size_t)graph->n_values + 1, sizeof(laci_buf *));
  for (int v = 0; v < graph->n_values; v++)
    if (graph->values[v].stored >= 0) values[v] = run_source(&network->graph, v);
  for (int i = 0; i < graph->n_inputs; i++) {
    laci_buf *buf;
    const laci_type *type = &network->graph.values[graph->inputs[i]].type;
    assert_int_equal(laci_buf_create(type->dtype, &type->shape, &buf, NULL), LAC_OK);
    int64_t per = buf->count / n;
    for (int64_t k = 0; k < buf->count; k++) {
      float x = sample_number(i, first + k / per, k % per);
      if (buf->f) buf->f[k] = (double)x;
      else buf->i[k] = (int64_t)fabsf(x * 4);
    }
    values[graph->inputs[i]] = buf;
  }
  for (int node = 0; node < graph->n_nodes; node++)
    assert_int_equal(run_node(&network->graph, node, values, NULL), LAC_OK);
  laci_network_destroy(network);
  laci_free(copy.stored);
  return values;
}

/* sum |a - b|^2; b NULL: of a alone. Biases are no part of a layer's energy. */
static double distance(const laci_buf *a, const laci_buf *b) {
  double sum = 0;
  for (int64_t i = 0; i < a->count; i++) {
    double x = a->f[i] - (b ? b->f[i] : 0);
    sum += x * x;
  }
  return sum;
}

static void check_pattern(const laci_analysis *analysis, const laci_calibrated *c) {
  for (int l = 0; l < analysis->n_layers; l++) {
    const laci_layer *layer = &analysis->layers[l];
    assert_int_equal(c->layers[l].pruned, layer->eligible);
    if (!c->layers[l].pruned) continue;
    laci_weight_view view = layer->view;
    laci_mask_stats stats;
    view.bytes = c->weights[layer->stored];
    assert_non_null(c->masks[layer->stored]);
    assert_int_equal(laci_mask_measure(&view, (laci_pattern){2, 4}, NULL, &stats, NULL), LAC_OK);
    if (!stats.holds_pattern) fail_msg("%s does not hold 2:4", view.name);
    const float *w = (const float *)(const void *)view.bytes;
    for (int64_t i = 0; i < stats.n_elements; i++)
      if (!c->masks[layer->stored][i]) assert_true(w[i] == 0);
  }
}

/* Errors of layers without a bias, from two plain runs of the whole network. */
static void check_errors(const laci_analysis *analysis, const source *s, const laci_calibrated *c) {
  const laci_graph *graph = analysis->graph;
  int64_t first = c->cut.n_fitted * c->cut.batch;
  int64_t n = (c->cut.n_batches - c->cut.n_fitted) * c->cut.batch;
  laci_buf **dense = run_plainly(graph, s, first, n, NULL);
  laci_buf **pruned = run_plainly(graph, s, first, n, c->weights);
  for (int l = 0; l < analysis->n_layers; l++) {
    const laci_node *node = &graph->nodes[analysis->layers[l].node];
    if (!c->layers[l].calibrated) continue;
    const laci_buf *yd = dense[node->outputs[0]], *yp = pruned[node->outputs[0]];
    double error = distance(yd, yp), got = c->layers[l].error_after * c->layers[l].energy;
    if (!(fabs(got - error) <= 1e-4 * error + 1e-9))
      fail_msg("%s: error %g, wanted %g", node->name, got, error);
    if (node->n_inputs > 2) continue;
    double energy = distance(yd, NULL);
    if (!(fabs(c->layers[l].energy - energy) <= 1e-4 * energy))
      fail_msg("%s: energy %g, wanted %g", node->name, c->layers[l].energy, energy);
  }
  double far = 0, all = 0;
  for (int i = 0; i < graph->n_outputs; i++) {
    far += distance(dense[graph->outputs[i]], pruned[graph->outputs[i]]);
    all += distance(dense[graph->outputs[i]], NULL);
  }
  if (!(fabs(c->outputs.relative - far / all) <= 1e-4 * far / all))
    fail_msg("outputs differ by %g, wanted %g", c->outputs.relative, far / all);
  run_clear(graph, dense);
  run_clear(graph, pruned);
}

static void errors_are_those_of_two_plain_runs(void **state) {
  (void)state;
  for (int i = 0; i < N_NETWORKS; i++) {
    laci_graph *graph = read_open(networks[i]);
    laci_analysis *analysis = analyze(graph);
    source s;
    source_init(&s, graph, SAMPLES);
    laci_calibrate_options o = options_of("magnitude");
    laci_calibrated *c = calibrate(analysis, &s, &o);
    check_pattern(analysis, c);
    check_errors(analysis, &s, c);
    laci_calibrated_destroy(c);
    laci_analysis_destroy(analysis);
    laci_graph_destroy(graph);
  }
}

static void a_fit_lowers_errors_that_it_has_not_seen(void **state) {
  (void)state;
  for (int i = 0; i < N_NETWORKS; i++) {
    laci_graph *graph = read_open(networks[i]);
    laci_analysis *analysis = analyze(graph);
    source s;
    source_init(&s, graph, 400);
    laci_calibrate_options o = options_of("magnitude");
    laci_calibrated *solved = calibrate(analysis, &s, &o);
    o.solve = false;
    laci_calibrated *masked = calibrate(analysis, &s, &o);
    int n_solved = 0, n = 0;
    for (int l = 0; l < analysis->n_layers; l++) {
      const laci_calibrated_layer *layer = &solved->layers[l];
      if (!layer->calibrated) continue;
      n++;
      n_solved += layer->solved;
      assert_true(layer->error_after <= layer->error_before);
      assert_false(masked->layers[l].solved);
    }
    assert_true(n > 1);
    if (n_solved < n - 1) fail_msg("network %d: %d of %d layers are better solved", i, n_solved, n);
    if (!(solved->outputs.relative < 0.9 * masked->outputs.relative))
      fail_msg("network %d: outputs %g, masked %g", i, solved->outputs.relative,
               masked->outputs.relative);
    laci_calibrated_destroy(solved);
    laci_calibrated_destroy(masked);
    laci_analysis_destroy(analysis);
    laci_graph_destroy(graph);
  }
}

/* One with nothing to calibrate has none, nor has a short walk. */
static void a_forecast_is_made_of_the_walk(void **state) {
  (void)state;
  for (int i = 0; i < N_NETWORKS; i++) {
    laci_graph *graph = read_open(networks[i]);
    laci_analysis *analysis = analyze(graph);
    source s;
    source_init(&s, graph, 400);
    laci_calibrate_options o = options_of("alps");
    laci_calibrated *c = calibrate(analysis, &s, &o);
    assert_true(c->forecast_seconds == 0 && c->forecast_bytes == 0);
    laci_calibrated_destroy(c);
    o.n_walks = 1;
    c = calibrate(analysis, &s, &o);
    assert_true(c->forecast_seconds == 0);
    assert_true(c->forecast_bytes >= c->values_bytes);
    laci_calibrated_destroy(c);
    o.n_walks = 1 << 24;
    c = calibrate(analysis, &s, &o);
    assert_true(c->forecast_seconds > 0);
    laci_calibrated_destroy(c);
    bool *wanted = laci_alloc((size_t)analysis->n_layers + 1, sizeof *wanted);
    o.wanted = wanted;
    c = calibrate(analysis, &s, &o);
    assert_true(c->forecast_seconds == 0);
    laci_calibrated_destroy(c);
    laci_free(wanted);
    laci_analysis_destroy(analysis);
    laci_graph_destroy(graph);
  }
}

/* ---- The same bytes ---- */

static void check_same(const laci_graph *graph, const laci_calibrated *a,
                       const laci_calibrated *b) {
  for (int i = 0; i < graph->n_stored; i++) {
    assert_int_equal(a->weights[i] != NULL, b->weights[i] != NULL);
    if (!a->weights[i]) continue;
    assert_memory_equal(a->weights[i], b->weights[i], graph->stored[i].size_bytes);
  }
  assert_memory_equal(&a->outputs, &b->outputs, sizeof a->outputs);
  for (int l = 0; l < a->n_layers; l++) {
    assert_true(a->layers[l].error_before == b->layers[l].error_before);
    assert_true(a->layers[l].error_after == b->layers[l].error_after);
  }
}

static void threads_and_places_change_no_byte(void **state) {
  (void)state;
  for (int i = 0; i < N_NETWORKS; i++) {
    laci_graph *graph = read_open(networks[i]);
    laci_analysis *analysis = analyze(graph);
    laci_pool *pool;
    source s;
    source_init(&s, graph, SAMPLES);
    assert_int_equal(laci_pool_create(3, &pool, NULL), LAC_OK);
    laci_calibrate_options o = options_of("wanda");
    laci_calibrated *alone = calibrate(analysis, &s, &o);
    o.pool = pool;
    laci_calibrated *three = calibrate(analysis, &s, &o);
    o.memory_for_values = 1;
    laci_calibrated *files = calibrate(analysis, &s, &o);
    o.pool = NULL;
    laci_calibrated *both = calibrate(analysis, &s, &o);
    assert_int_equal(alone->file_bytes, 0);
    assert_true(files->file_bytes == alone->values_bytes);
    check_same(graph, alone, three);
    check_same(graph, alone, files);
    check_same(graph, alone, both);
    laci_calibrated_destroy(alone);
    laci_calibrated_destroy(three);
    laci_calibrated_destroy(files);
    laci_calibrated_destroy(both);
    laci_pool_destroy(pool);
    laci_analysis_destroy(analysis);
    laci_graph_destroy(graph);
  }
}

/* ---- What cannot be calibrated, and what goes wrong ---- */

static void layers_that_cannot_be_calibrated_are_masked_and_say_why(void **state) {
  (void)state;
  laci_graph *graph = read_open(
      "input x 1x8\nstored twice 8x8\nstored w 8x8\nstored f 8x8\nstored k \"\" i64 = 2\n"
      "a = MatMul(x, twice)\nb = MatMul(a, twice)\nc = MatMul(b, w)\n"
      "d = Mystery(c) domain=\"my\"\nshape d 1x8\ny = MatMul(d, f)\noutput y\n");
  laci_analysis *analysis = analyze(graph);
  source s;
  source_init(&s, graph, SAMPLES);
  laci_calibrate_options o = options_of("magnitude");
  laci_calibrated *c = calibrate(analysis, &s, &o);
  check_pattern(analysis, c);
  for (int l = 0; l < analysis->n_layers; l++) {
    const char *name = graph->stored[analysis->layers[l].stored].name;
    bool plain = strcmp(name, "w") == 0;
    assert_int_equal(c->layers[l].calibrated, plain);
    assert_int_equal(c->layers[l].reason == NULL, plain);
    if (strcmp(name, "twice") == 0)
      assert_string_equal(c->layers[l].reason, "several layers read its weight");
    if (strcmp(name, "f") == 0) assert_non_null(strstr(c->layers[l].reason, "Mystery"));
  }
  assert_non_null(strstr(c->outputs_reason, "Mystery"));
  laci_calibrated_destroy(c);
  laci_analysis_destroy(analysis);
  laci_graph_destroy(graph);
}

static void what_is_not_wanted_stays_dense(void **state) {
  (void)state;
  laci_graph *graph = read_open(chain);
  laci_analysis *analysis = analyze(graph);
  source s;
  source_init(&s, graph, SAMPLES);
  bool wanted[3] = {false, true, false};
  laci_calibrate_options o = options_of("magnitude");
  o.wanted = wanted;
  laci_calibrated *c = calibrate(analysis, &s, &o);
  for (int l = 0; l < 3; l++) {
    assert_int_equal(c->layers[l].pruned, wanted[l]);
    assert_int_equal(c->weights[analysis->layers[l].stored] != NULL, wanted[l]);
  }
  laci_calibrated_destroy(c);
  laci_analysis_destroy(analysis);
  laci_graph_destroy(graph);
}

static void a_fixed_batch_size_is_kept(void **state) {
  (void)state;
  laci_graph *graph = read_fixed(
      "input x 4x8\nstored a 8x8\nstored b 8x8\nu = MatMul(x, a)\nr = Relu(u)\n"
      "y = MatMul(r, b)\noutput y\n");
  laci_analysis *analysis = analyze(graph);
  source s;
  source_init(&s, graph, 42);
  laci_calibrate_options o = options_of("magnitude");
  laci_calibrated *c = calibrate(analysis, &s, &o);
  assert_int_equal(c->cut.batch, 4);
  assert_int_equal(c->cut.n_batches, 10);
  assert_int_equal(c->layers[0].positions, 4 * c->cut.n_fitted);
  check_errors(analysis, &s, c);
  laci_calibrated_destroy(c);
  laci_analysis_destroy(analysis);
  laci_graph_destroy(graph);
}

/* A network whose weights were changed, but not in the graph. */
static void other_weights_replace_those_of_the_graph(void **state) {
  (void)state;
  laci_graph *graph = read_open(chain);
  laci_analysis *analysis = analyze(graph);
  source s;
  source_init(&s, graph, SAMPLES);
  laci_calibrate_options o = options_of("magnitude");
  uint8_t *weights[8] = {NULL};
  assert_true(graph->n_stored <= 8);
  laci_stored *first = &graph->stored[analysis->layers[0].stored];
  uint8_t *other = laci_alloc(first->size_bytes, 1);
  for (size_t i = 0; i < first->size_bytes; i += 4)
    memcpy(other + i, first->bytes + (i + 4 * 9 * 8) % first->size_bytes, 4);
  weights[analysis->layers[0].stored] = other;
  o.weights = (const uint8_t *const *)weights;
  laci_calibrated *outside = calibrate(analysis, &s, &o);
  laci_calibrated *before = NULL, *inside = NULL;
  o.weights = NULL;
  before = calibrate(analysis, &s, &o);
  memcpy(laci_stored_writable_bytes(first), other, first->size_bytes);
  inside = calibrate(analysis, &s, &o);
  check_same(graph, outside, inside);
  assert_memory_not_equal(outside->weights[analysis->layers[0].stored],
                          before->weights[analysis->layers[0].stored], first->size_bytes);
  laci_calibrated_destroy(outside);
  laci_calibrated_destroy(before);
  laci_calibrated_destroy(inside);
  laci_free(other);
  laci_analysis_destroy(analysis);
  laci_graph_destroy(graph);
}

static void weights_of_other_float_types_are_rounded_to_them(void **state) {
  (void)state;
  static const char *const types[] = {"bf16", "f64"};
  for (size_t i = 0; i < 2; i++) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   "input x 1x8\nstored a 8x8 %s\nstored b 8x8\nf = Cast(a) to=1\n"
                   "u = MatMul(x, f)\nr = Relu(u)\ny = MatMul(r, b)\noutput y\n",
                   types[i]);
    laci_graph *graph = read_open(text);
    laci_analysis *analysis = analyze(graph);
    source s;
    source_init(&s, graph, 400);
    laci_calibrate_options o = options_of("magnitude");
    laci_calibrated *c = calibrate(analysis, &s, &o);
    laci_weight_view view = analysis->layers[0].view;
    laci_mask_stats stats;
    view.bytes = c->weights[analysis->layers[0].stored];
    assert_int_equal(laci_mask_measure(&view, o.pattern, NULL, &stats, NULL), LAC_OK);
    assert_true(stats.holds_pattern);
    assert_true(c->layers[0].solved);
    assert_true(c->layers[0].error_after < c->layers[0].error_before);
    check_errors(analysis, &s, c);
    laci_calibrated_destroy(c);
    laci_analysis_destroy(analysis);
    laci_graph_destroy(graph);
  }
}

/* Memory for no batch, for one of four, for all: the same bits; and what is kept is not computed
 * again, so that another network in its place makes no difference. */
static void check_kept(const laci_weighted_graph *dense, const laci_weighted_graph *other,
                       const laci_calibration_samples *samples) {
  const uint64_t batch = 8 * 10 * sizeof(float), rooms[] = {0, batch, 4 * batch};
  laci_compare_options how = {.first = 8, .n = 32, .batch = 8};
  laci_output_difference want, got;
  assert_int_equal(laci_compare_outputs(dense, other, samples, &how, &want, NULL), LAC_OK);
  for (int k = 0; k < 3; k++) {
    how.cache = laci_output_cache_create(rooms[k]);
    assert_non_null(how.cache);
    for (int again = 0; again < 3; again++) {
      how.n = again == 1 ? 16 : 32;
      assert_int_equal(laci_compare_outputs(dense, other, samples, &how, &got, NULL), LAC_OK);
      if (again != 1) assert_memory_equal(&got, &want, sizeof want);
    }
    assert_int_equal(laci_compare_outputs(other, dense, samples, &how, &got, NULL), LAC_OK);
    assert_int_equal(got.n_agree, 8 * k * k); /* 0, one batch, all four */
    laci_output_cache_destroy(how.cache);
  }
}

/* Dense against itself, and against other weights, with labels that one of them gets right. */
static void outputs_of_two_networks_are_compared(void **state) {
  (void)state;
  laci_graph *graph = read_open(chain);
  source s;
  int64_t labels[SAMPLES];
  source_init(&s, graph, SAMPLES);
  laci_buf **values = run_plainly(graph, &s, 0, SAMPLES, NULL);
  const laci_buf *y = values[graph->outputs[0]];
  for (int64_t i = 0; i < SAMPLES; i++) {
    labels[i] = 0;
    for (int64_t k = 1; k < 10; k++)
      if (y->f[i * 10 + k] > y->f[i * 10 + labels[i]]) labels[i] = k;
  }
  s.samples.labels = labels;
  laci_stored *last = &graph->stored[graph->values[laci_graph_find_value(graph, "c")].stored];
  uint8_t *transposed = laci_alloc(last->size_bytes, 1);
  for (size_t i = 0; i < last->size_bytes; i += 4) {
    float w;
    memcpy(&w, last->bytes + i, 4);
    w = -w;
    memcpy(transposed + i, &w, 4);
  }
  const uint8_t *weights[8] = {NULL};
  weights[last - graph->stored] = transposed;
  const laci_weighted_graph dense = {.graph = graph}, other = {.graph = graph, .weights = weights};
  const laci_compare_options how = {.first = 8, .n = 32, .batch = 8};
  laci_output_difference d;
  assert_int_equal(laci_compare_outputs(&dense, &dense, &s.samples, &how, &d, NULL), LAC_OK);
  assert_int_equal(d.n_samples, 32);
  assert_true(d.relative == 0);
  assert_int_equal(d.n_answers, 32);
  assert_int_equal(d.n_agree, 32);
  assert_int_equal(d.n_labelled, 32);
  assert_int_equal(d.n_right_b, 32);
  assert_int_equal(d.n_lost + d.n_won, 0);
  assert_int_equal(laci_compare_outputs(&dense, &other, &s.samples, &how, &d, NULL), LAC_OK);
  assert_true(fabs(d.relative - 4) < 1e-5); /* |y + y|^2 */
  assert_int_equal(d.n_agree, 0);
  assert_int_equal(d.n_right_a, 32);
  assert_int_equal(d.n_right_b, 0);
  assert_int_equal(d.n_lost, 32);
  assert_int_equal(d.sums.n, 32);
  assert_true(fabs(d.sums.e - 4 * d.sums.s) < 1e-4 * d.sums.s);
  assert_true(fabs(d.sums.es - 4 * d.sums.ss) < 1e-4 * d.sums.es);
  assert_true(d.sums.ss > 0 && d.sums.ss < d.sums.s * d.sums.s);
  assert_int_equal(laci_compare_outputs(&other, &dense, &s.samples, &how, &d, NULL), LAC_OK);
  assert_int_equal(d.n_won, 32);
  assert_int_equal(d.n_lost, 0);
  check_kept(&dense, &other, &s.samples);
  run_clear(graph, values);
  laci_free(transposed);
  laci_graph_destroy(graph);
}

static lac_status try_calibration(const char *text, source *s, laci_calibrate_options *o,
                                  lac_error *err) {
  laci_graph *graph = read_open(text);
  laci_analysis *analysis = analyze(graph);
  laci_calibrated *c;
  int64_t fails_at = s->fails_at, count = s->samples.count ? s->samples.count : SAMPLES;
  source_init(s, graph, count);
  s->fails_at = fails_at;
  lac_status st = laci_calibrate(analysis, &s->samples, o, &c, err);
  assert_int_equal(st != LAC_OK, c == NULL);
  laci_calibrated_destroy(c);
  laci_analysis_destroy(analysis);
  laci_graph_destroy(graph);
  return st;
}

/* Equal samples agree whatever was done to the weights. */
static void samples_that_are_all_the_same_judge_nothing(void **state) {
  (void)state;
  laci_graph *graph = read_open(chain);
  laci_analysis *analysis = analyze(graph);
  source s;
  source_init(&s, graph, SAMPLES);
  laci_calibrate_options o = options_of("magnitude");
  all_alike = true;
  laci_calibrated *c = calibrate(analysis, &s, &o);
  all_alike = false;
  assert_non_null(strstr(c->outputs_reason, "the samples are all the same"));
  assert_true(c->outputs.n_answers == 0 && c->outputs.n_agree == 0);
  laci_calibrated_destroy(c);
  c = calibrate(analysis, &s, &o);
  assert_null(c->outputs_reason);
  assert_true(c->outputs.n_answers > 0);
  laci_calibrated_destroy(c);
  laci_analysis_destroy(analysis);
  laci_graph_destroy(graph);
}

/* A network whose answer is no number is not "0 % off". */
static void outputs_that_are_not_finite_judge_nothing(void **state) {
  (void)state;
  laci_graph *graph = read_open(
      "input x 1x8\nstored w 8x8\nstored k \"\" = inf\na = MatMul(x, w)\ny = Mul(a, k)\noutput "
      "y\n");
  laci_analysis *analysis = analyze(graph);
  source s;
  source_init(&s, graph, SAMPLES);
  laci_calibrate_options o = options_of("magnitude");
  laci_calibrated *c = calibrate(analysis, &s, &o);
  assert_non_null(strstr(c->outputs_reason, "not finite"));
  laci_calibrated_destroy(c);
  laci_analysis_destroy(analysis);
  laci_graph_destroy(graph);
}

static void a_budget_too_small_is_refused_before_a_sample_is_read(void **state) {
  (void)state;
  source s = {0};
  lac_error err = {0};
  laci_budget budget = {.limit = 20000};
  laci_calibrate_options o = options_of("magnitude");
  o.budget = &budget;
  assert_int_equal(try_calibration(chain, &s, &o, &err), LAC_MEMORY_LIMIT);
  assert_int_equal(s.n_fetched, 0);
  assert_non_null(strstr(err.text, "the calibration needs"));
}

static void failures_of_samples_come_through(void **state) {
  (void)state;
  source s = {.fails_at = 20};
  lac_error err = {0};
  laci_calibrate_options o = options_of("magnitude");
  assert_int_equal(try_calibration(chain, &s, &o, &err), LAC_IO);
  assert_non_null(strstr(err.text, "cannot be read"));
}

static void too_few_samples_for_a_fixed_batch_are_refused(void **state) {
  (void)state;
  laci_calibration_cut cut;
  lac_error err = {0};
  assert_int_equal(laci_calibration_cut_samples(7, 64, 8, &cut, &err), LAC_BAD_SHAPE);
  assert_string_equal(err.text, "7 calibration samples, the network wants at least 8");
}

static void batches_use_the_samples_and_hold_an_eighth_back(void **state) {
  (void)state;
  static const struct {
    int64_t count, most, fixed, batch, n_batches, n_fitted;
  } cases[] = {{2048, 64, 0, 64, 32, 28}, {100, 64, 0, 10, 10, 9}, {1, 64, 0, 1, 1, 1},
               {2, 64, 0, 1, 2, 1},       {16, 64, 0, 2, 8, 7},    {1024, 15, 0, 8, 128, 112},
               {1000, 64, 48, 48, 20, 18}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    laci_calibration_cut cut;
    assert_int_equal(
        laci_calibration_cut_samples(cases[i].count, cases[i].most, cases[i].fixed, &cut, NULL),
        LAC_OK);
    assert_int_equal(cut.batch, cases[i].batch);
    assert_int_equal(cut.n_batches, cases[i].n_batches);
    assert_int_equal(cut.n_fitted, cases[i].n_fitted);
  }
}

static void an_interrupt_ends_it(void **state) {
  (void)state;
  source s = {0};
  lac_error err = {0};
  laci_calibrate_options o = options_of("magnitude");
  lac_interrupt(true);
  lac_status st = try_calibration(chain, &s, &o, &err);
  lac_interrupt(false);
  assert_int_equal(st, LAC_INTERRUPTED);
}

static void a_folder_that_takes_no_files_is_named(void **state) {
  (void)state;
  source s = {0};
  lac_error err = {0};
  laci_calibrate_options o = options_of("magnitude");
  o.memory_for_values = 1;
  o.folder = "/nowhere/at/all";
  assert_int_equal(try_calibration(chain, &s, &o, &err), LAC_NOT_FOUND);
  assert_non_null(strstr(err.text, "/nowhere/at/all"));
}

/* One allocation after the other fails; every failure cleans up (the sanitizers look). */
static void running_out_of_memory_is_a_failure_at_every_allocation(void **state) {
  (void)state;
  laci_graph *graph = read_open(chain);
  laci_analysis *analysis = analyze(graph);
  source s;
  laci_calibrate_options o = options_of("magnitude");
  for (long at = 1;; at += at < 200 ? 1 : 17) {
    laci_calibrated *c;
    source_init(&s, graph, 8);
    laci_memory_fail_once(at);
    lac_status st = laci_calibrate(analysis, &s.samples, &o, &c, NULL);
    bool reached = !laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    laci_calibrated_destroy(c);
    if (!reached) {
      assert_int_equal(st, LAC_OK);
      break;
    }
    assert_true(st == LAC_NO_MEMORY || st == LAC_OK);
  }
  laci_analysis_destroy(analysis);
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layers_are_products_of_their_weight_and_unfolded_inputs),
      cmocka_unit_test(sums_are_those_of_unfolded_inputs),
      cmocka_unit_test(sums_of_some_positions_are_near_those_of_all),
      cmocka_unit_test(sums_of_wide_layers_hold_all_batches),
      cmocka_unit_test(errors_are_those_of_two_plain_runs),
      cmocka_unit_test(a_fit_lowers_errors_that_it_has_not_seen),
      cmocka_unit_test(a_forecast_is_made_of_the_walk),
      cmocka_unit_test(threads_and_places_change_no_byte),
      cmocka_unit_test(layers_that_cannot_be_calibrated_are_masked_and_say_why),
      cmocka_unit_test(what_is_not_wanted_stays_dense),
      cmocka_unit_test(a_fixed_batch_size_is_kept),
      cmocka_unit_test(other_weights_replace_those_of_the_graph),
      cmocka_unit_test(weights_of_other_float_types_are_rounded_to_them),
      cmocka_unit_test(outputs_of_two_networks_are_compared),
      cmocka_unit_test(samples_that_are_all_the_same_judge_nothing),
      cmocka_unit_test(outputs_that_are_not_finite_judge_nothing),
      cmocka_unit_test(a_budget_too_small_is_refused_before_a_sample_is_read),
      cmocka_unit_test(failures_of_samples_come_through),
      cmocka_unit_test(too_few_samples_for_a_fixed_batch_are_refused),
      cmocka_unit_test(batches_use_the_samples_and_hold_an_eighth_back),
      cmocka_unit_test(an_interrupt_ends_it),
      cmocka_unit_test(a_folder_that_takes_no_files_is_named),
      cmocka_unit_test(running_out_of_memory_is_a_failure_at_every_allocation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
