/* SPDX-License-Identifier: Apache-2.0
 * What the verification is made of: the comparison against its definition, parameters that both
 * runs draw alike, sizes and inputs. Networks are in graph_build.h's notation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"
#include "permute/orders.h"
#include "verify/verify_in.h"
#include "support/graph_build.h"
#include "tensor/buf.h"

static laci_graph *read_net(const char *net) {
  laci_graph *graph = NULL;
  lac_error err = {0};
  if (net_read(net, &graph, &err)) fail_msg("%s", err.text);
  return graph;
}

static laci_buf *new_buf(lac_dtype dtype, int rank, const int64_t *dims) {
  laci_buf *buf = NULL;
  laci_shape shape = laci_shape_of(rank, dims);
  assert_int_equal(laci_buf_create(dtype, &shape, &buf, NULL), LAC_OK);
  return buf;
}

/* Reverses an axis: every element has another place, if the axis is longer than 1. */
typedef struct reversal {
  int32_t order[4096];
  laci_axis_order item;
  laci_value_orders orders;
} reversal;

static void reverse(reversal *r, const laci_shape *shape, int axis) {
  int64_t n = shape->dims[axis];
  for (int64_t i = 0; i < n; i++) r->order[i] = (int32_t)(n - 1 - i);
  r->item = (laci_axis_order){.n_axes = 1, .axes = {axis}, .count = n, .order = r->order};
  r->orders = (laci_value_orders){.n = 1, .items = &r->item};
}

static void finds_what_differs_and_where(void **state) {
  (void)state;
  static const struct {
    int rank, axis;
    int64_t dims[4];
  } cases[] = {{1, 0, {7}},          {2, 0, {3, 40000}},       {2, 1, {40, 3001}},
               {3, 1, {2, 100, 50}}, {4, 1, {1, 2, 150, 150}}, {2, 1, {70000, 2}}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    laci_buf *a = new_buf(LAC_DTYPE_F32, cases[c].rank, cases[c].dims), *b = NULL;
    laci_draw_uniform(a, &(laci_draw){.seed = c}, -1, 1, NULL);
    reversal r;
    reverse(&r, &a->shape, cases[c].axis);
    assert_int_equal(laci_buf_reorder(a, &r.orders, &b, NULL), LAC_OK);
    laci_difference d;
    assert_int_equal(laci_compare_reordered_values(a, &r.orders, b, NULL, &d, NULL), LAC_OK);
    assert_true(d.at == -1 && d.largest == 0 && d.any_finite && d.scale > 0.5 && d.scale <= 1);
    int64_t first = b->count / 3,
            last = b->count - 1; /* the larger of two, then what is no number at all */
    b->f[first] += 0.25;
    b->f[last] += 0.5;
    assert_int_equal(laci_compare_reordered_values(a, &r.orders, b, NULL, &d, NULL), LAC_OK);
    assert_int_equal(d.at, last);
    assert_true(fabs(d.largest - 0.5) < 1e-12 && !d.kind_differs);
    b->f[first] = NAN;
    assert_int_equal(laci_compare_reordered_values(a, &r.orders, b, NULL, &d, NULL), LAC_OK);
    assert_true(d.kind_differs);
    assert_int_equal(d.at, first);
    laci_buf_destroy(a);
    laci_buf_destroy(b);
  }
}

static void equal_kinds_of_no_number_are_equal(void **state) {
  (void)state;
  laci_buf *a = new_buf(LAC_DTYPE_F64, 1, (int64_t[]){4}),
           *b = new_buf(LAC_DTYPE_F64, 1, (int64_t[]){4});
  const double same[] = {NAN, INFINITY, -INFINITY, 0};
  laci_difference d;
  laci_value_orders none = {0};
  for (int i = 0; i < 4; i++) a->f[i] = b->f[i] = same[i];
  assert_int_equal(laci_compare_reordered_values(a, &none, b, NULL, &d, NULL), LAC_OK);
  assert_true(d.at == -1 && !d.kind_differs && d.any_finite && d.scale == 0);
  b->f[1] = -INFINITY;
  assert_int_equal(laci_compare_reordered_values(a, &none, b, NULL, &d, NULL), LAC_OK);
  assert_true(d.at == 1 && d.kind_differs);
  for (int i = 0; i < 4; i++) a->f[i] = b->f[i] = NAN;
  assert_int_equal(laci_compare_reordered_values(a, &none, b, NULL, &d, NULL), LAC_OK);
  assert_true(d.at == -1 && !d.any_finite);
  laci_buf_destroy(a);
  laci_buf_destroy(b);
}

static void large_integers_are_not_compared_as_floats(void **state) {
  (void)state;
  laci_buf *a = new_buf(LAC_DTYPE_I64, 1, (int64_t[]){2}),
           *b = new_buf(LAC_DTYPE_I64, 1, (int64_t[]){2});
  laci_difference d;
  a->i[1] = INT64_MAX;
  b->i[1] = INT64_MAX - 1; /* the same double */
  assert_int_equal(laci_compare_reordered_values(a, &(laci_value_orders){0}, b, NULL, &d, NULL),
                   LAC_OK);
  assert_true(d.at == 1 && d.largest >= 1);
  laci_buf_destroy(a);
  laci_buf_destroy(b);
}

static laci_buf *load(laci_parameters *parameters, const laci_graph *graph, const char *name,
                      bool anew, const laci_value_orders *orders) {
  laci_buf *buf = NULL;
  lac_error err = {0};
  int stored = graph->values[laci_graph_find_value(graph, name)].stored;
  if (laci_parameters_load_tensor(parameters, stored, anew, orders, &buf, &err))
    fail_msg("%s: %s", name, err.text);
  return buf;
}

static const char parameter_net[] =
    "input x 1x4x9x9\nstored w 8x4x3x3\nstored gamma 8 = 0 0 0 0 0 0 0 0\nstored beta 8\nstored "
    "mean 8\n"
    "stored var 8 positive\nstored scales 4 = 1 1 2 2\nstored one \"\" = 3\nstored mask 3 = 0 0 "
    "-1e9\n"
    "stored q 8x4 i8\nstored s \"\" = 0.1\nstored n 4 i64 = 1 2 3 4\nc = Conv(x, w)\n"
    "b = BatchNormalization(c, gamma, beta, mean, var)\nr = Resize(b, _, scales)\nm = Mul(r, one)\n"
    "d = DequantizeLinear(q, s)\noutput m\noutput d\n";

static void parameters_are_drawn_alike_in_any_order(void **state) {
  (void)state;
  laci_graph *graph = read_net(parameter_net);
  laci_parameters *parameters = NULL;
  assert_int_equal(laci_parameters_create(graph, 5, NULL, &parameters, NULL), LAC_OK);
  static const struct {
    const char *name;
    int axis;
  } cases[] = {{"w", 0}, {"w", 1}, {"w", 3}, {"beta", 0}, {"q", 1}, {"mask", 0}};
  for (int anew = 0; anew < 2; anew++) {
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
      laci_buf *plain = load(parameters, graph, cases[c].name, anew, NULL), *want = NULL;
      reversal r;
      reverse(&r, &plain->shape, cases[c].axis);
      laci_buf *moved = load(parameters, graph, cases[c].name, anew, &r.orders);
      assert_int_equal(laci_buf_reorder(plain, &r.orders, &want, NULL), LAC_OK);
      for (int64_t e = 0; e < want->count; e++) {
        assert_true(want->f ? want->f[e] == moved->f[e] : want->i[e] == moved->i[e]);
      }
      laci_buf_destroy(plain);
      laci_buf_destroy(want);
      laci_buf_destroy(moved);
    }
  }
  laci_parameters_destroy(parameters);
  laci_graph_destroy(graph);
}

/* Elements [7, 261) of w as a product reads them; orders may be NULL. */
static void read_slab(const laci_graph *graph, const laci_orders *orders, bool whole, float *out) {
  laci_products_options how = {.graph = graph, .orders = orders, .seed = 3, .integers = whole};
  int stored = graph->values[laci_graph_find_value(graph, "w")].stored;
  laci_slab slab = {.bytes = graph->stored[stored].bytes, .first = 7, .n = 254};
  assert_int_equal(laci_parameters_read_floats(&how, stored, &slab, out, NULL), LAC_OK);
}

static void slabs_are_alike_in_any_order(void **state) {
  enum { AXES = 4, FIRST = 7, N = 254 };
  (void)state;
  laci_graph *graph = read_net(parameter_net);
  int w = laci_graph_find_value(graph, "w");
  laci_value_orders *values = laci_alloc((size_t)graph->n_values, sizeof *values);
  laci_orders orders = {.n_values = graph->n_values, .values = values};
  laci_buf *plain = new_buf(LAC_DTYPE_F32, 4, graph->stored[graph->values[w].stored].shape.dims);
  assert_non_null(values);
  for (int axis = 0; axis < AXES; axis++) {
    for (int whole = 0; whole < 2; whole++) {
      float here[N], moved[N];
      reversal r;
      laci_buf *places = NULL;
      reverse(&r, &plain->shape, axis);
      values[w] = r.orders;
      for (int64_t e = 0; e < plain->count; e++) plain->f[e] = (double)e;
      assert_int_equal(laci_buf_reorder(plain, &r.orders, &places, NULL), LAC_OK);
      read_slab(graph, NULL, whole, here);
      read_slab(graph, &orders, whole, moved);
      for (int e = 0; e < N; e++) {
        int from = (int)places->f[FIRST + e] - FIRST;
        if (from >= 0 && from < N) assert_true(moved[e] == here[from]);
        if (whole)
          assert_true(fabsf(here[e]) <= LACI_MAX_RANDOM_INTEGER && here[e] == rintf(here[e]));
      }
      laci_buf_destroy(places);
    }
  }
  laci_buf_destroy(plain);
  laci_free(values);
  laci_graph_destroy(graph);
}

static void what_is_drawn_anew_keeps_its_nature(void **state) {
  (void)state;
  laci_graph *graph = read_net(parameter_net);
  laci_parameters *parameters = NULL;
  assert_int_equal(laci_parameters_create(graph, 5, NULL, &parameters, NULL), LAC_OK);
  static const char *const kept[] = {"scales", "one", "mask", "s", "n"};
  for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
    laci_buf *old = load(parameters, graph, kept[k], false, NULL),
             *now = load(parameters, graph, kept[k], true, NULL);
    for (int64_t e = 0; e < old->count; e++) {
      if (old->f ? old->f[e] != now->f[e] : old->i[e] != now->i[e]) fail_msg("%s changed", kept[k]);
    }
    laci_buf_destroy(old);
    laci_buf_destroy(now);
  }
  laci_buf *gamma = load(parameters, graph, "gamma", true, NULL),
           *var = load(parameters, graph, "var", true, NULL);
  laci_buf *q = load(parameters, graph, "q", true, NULL),
           *w = load(parameters, graph, "w", true, NULL);
  laci_buf *old_q = load(parameters, graph, "q", false, NULL),
           *old_w = load(parameters, graph, "w", false, NULL);
  int64_t low = INT64_MAX, high = INT64_MIN;
  int n_changed = 0;
  double squares = 0, old_squares = 0;
  for (int64_t e = 0; e < 8; e++) assert_true(gamma->f[e] > 0.01 && var->f[e] > 0);
  for (int64_t e = 0; e < q->count; e++) {
    low = old_q->i[e] < low ? old_q->i[e] : low;
    high = old_q->i[e] > high ? old_q->i[e] : high;
    n_changed += q->i[e] != old_q->i[e];
  }
  for (int64_t e = 0; e < q->count; e++) assert_true(q->i[e] >= low && q->i[e] <= high);
  assert_true(n_changed > q->count / 2);
  for (int64_t e = 0; e < w->count; e++) {
    squares += w->f[e] * w->f[e];
    old_squares += old_w->f[e] * old_w->f[e];
  }
  assert_true(squares > 0.7 * old_squares && squares < 1.4 * old_squares);
  laci_buf *all[] = {gamma, var, q, w, old_q, old_w};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) laci_buf_destroy(all[i]);
  laci_parameters_destroy(parameters);
  laci_graph_destroy(graph);
}

static void sizes_are_tried_from_small_to_large(void **state) {
  (void)state;
  laci_graph *graph = read_net(
      "input x -1x3x-2x-2\ninput t -1x-3 i64\ninput m -1x1x-3x-3\ny = Relu(x)\noutput y\n");
  int64_t sizes[8];
  assert_true(graph->n_symbols < 8);
  assert_true(laci_choose_symbol_sizes(graph, 0, sizes));
  assert_true(sizes[1] == 2 && sizes[2] == 32 && sizes[3] == 8); /* batch, image, tokens */
  assert_true(laci_choose_symbol_sizes(graph, 1, sizes));
  assert_true(sizes[1] == 1 && sizes[2] == 32 && sizes[3] == 8);
  assert_true(laci_choose_symbol_sizes(graph, 2, sizes));
  assert_true(sizes[1] == 2 && sizes[2] == 64 && sizes[3] == 16);
  assert_false(laci_choose_symbol_sizes(graph, 100, sizes));
  laci_graph_destroy(graph);
  graph = read_net("input x 1x3\ny = Relu(x)\noutput y\n");
  assert_true(laci_choose_symbol_sizes(graph, 0, sizes));
  assert_false(laci_choose_symbol_sizes(graph, 1, sizes)); /* nothing else to try */
  laci_graph_destroy(graph);
}

static void lengths_come_from_windows(void **state) {
  (void)state;
  laci_graph *graph =
      read_net("input x -1x1x-2\nstored taps 16x1x100\ny = Conv(x, taps) dilations=3,\noutput y\n");
  int64_t sizes[8];
  bool once = false, twice = false;
  for (int at = 0; laci_choose_symbol_sizes(graph, at, sizes); at++) {
    once |= sizes[2] == 298; /* 99 steps of 3, and the first tap */
    twice |= sizes[2] == 596;
  }
  assert_true(once && twice);
  laci_graph_destroy(graph);
}

static void inputs_fit_what_reads_them(void **state) {
  (void)state;
  laci_graph *graph = read_net(
      "input i 200 i64\ninput b 200 bool\ninput p 200 u8\ninput f 200\nstored t 5x2\nstored big "
      "900x2\nc = Cast(i) to=6\n"
      "g = Gather(big, c)\nh = Gather(t, i)\nn = Not(b)\no = Cast(p) to=1\nr = Relu(f)\noutput "
      "g\noutput h\noutput n\n"
      "output o\noutput r\n");
  static const struct {
    const char *name;
    int64_t low, high;
  } cases[] = {{"i", 0, 4}, {"b", 0, 1}, {"p", 0, 255}, {"f", -2, 2}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    laci_buf *buf = NULL;
    laci_draw draw = {.seed = 1};
    int value = laci_graph_find_value(graph, cases[c].name);
    laci_shape shape = graph->values[value].type.shape;
    assert_int_equal(laci_draw_value(graph, value, &shape, &draw, &buf, NULL), LAC_OK);
    double least = INFINITY, most = -INFINITY;
    for (int64_t e = 0; e < buf->count; e++) {
      least = fmin(least, laci_buf_get_f(buf, e));
      most = fmax(most, laci_buf_get_f(buf, e));
    }
    if (!(least >= (double)cases[c].low && most <= (double)cases[c].high && most - least > 0.8)) {
      fail_msg("%s: from %g to %g", cases[c].name, least, most);
    }
    laci_buf_destroy(buf);
  }
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_what_differs_and_where),
      cmocka_unit_test(equal_kinds_of_no_number_are_equal),
      cmocka_unit_test(large_integers_are_not_compared_as_floats),
      cmocka_unit_test(parameters_are_drawn_alike_in_any_order),
      cmocka_unit_test(slabs_are_alike_in_any_order),
      cmocka_unit_test(what_is_drawn_anew_keeps_its_nature),
      cmocka_unit_test(sizes_are_tried_from_small_to_large),
      cmocka_unit_test(lengths_come_from_windows),
      cmocka_unit_test(inputs_fit_what_reads_them),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
