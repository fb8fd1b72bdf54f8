/* SPDX-License-Identifier: Apache-2.0
 * The blocked product against three plain loops, on sizes around every block's edge; Gemm and
 * MatMul by hand; which of their operands could be weights. */
#include "support/op_case.h"

#include "base/memory.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "graph/ops/shared/gemm_f64.h"
#include "tensor/buf.h"

typedef struct problem {
  int64_t n_batch, m, n, k;
  bool a_transposed, b_transposed;
} problem;

/** Hands out ranges of one index each, in reverse: the order of work must not show. */
static void backwards(void *pool, int64_t n, laci_range_body *body, void *context) {
  (void)pool;
  for (int64_t at = n; at-- > 0;) body(at, at + 1, context);
}

static double *numbers(const char *name, int64_t n) {
  double *x = laci_alloc((size_t)n, sizeof *x);
  assert_non_null(x);
  for (int64_t at = 0; at < n; at++) x[at] = net_number(name, at);
  return x;
}

static void run_problem(const problem *p, bool reversed, const double *a, const double *b,
                        double *c) {
  int64_t offsets[3][4];
  for (int64_t batch = 0; batch < p->n_batch; batch++) {
    offsets[0][batch] = batch * p->m * p->k;
    offsets[1][batch] = batch * p->k * p->n;
    offsets[2][batch] = batch * p->m * p->n;
  }
  laci_gemm_matrix right = {.data = b,
                            .row_stride = p->b_transposed ? 1 : p->n,
                            .col_stride = p->b_transposed ? p->k : 1,
                            .offset = offsets[1]};
  laci_gemm gemm = {.n_batch = p->n_batch,
                    .m = p->m,
                    .n = p->n,
                    .k = p->k,
                    .a = a,
                    .a_row_stride = p->a_transposed ? 1 : p->k,
                    .a_col_stride = p->a_transposed ? p->m : 1,
                    .a_offset = offsets[0],
                    .a_period = p->n_batch,
                    .pack_b = laci_gemm_pack_matrix,
                    .pack_context = &right,
                    .c = c,
                    .c_row_stride = p->n,
                    .c_offset = offsets[2]};
  laci_node node = {.name = "product"};
  laci_eval eval = {.node = &node, .parallel = reversed ? backwards : NULL};
  assert_int_equal(laci_gemm_run(&eval, &gemm), LAC_OK);
}

static double plain_element(const problem *p, const double *a, const double *b, int64_t at) {
  int64_t batch = at / (p->m * p->n), row = at / p->n % p->m, col = at % p->n;
  double sum = 0;
  for (int64_t k = 0; k < p->k; k++) {
    double left = a[batch * p->m * p->k + (p->a_transposed ? k * p->m + row : row * p->k + k)];
    double right = b[batch * p->k * p->n + (p->b_transposed ? col * p->k + k : k * p->n + col)];
    sum += left * right;
  }
  return sum;
}

static void check_problem(const problem *p) {
  int64_t n_c = p->n_batch * p->m * p->n;
  double *a = numbers("a", p->n_batch * p->m * p->k), *b = numbers("b", p->n_batch * p->k * p->n);
  double *c = numbers("c", n_c), *again = numbers("c", n_c);
  run_problem(p, false, a, b, c);
  run_problem(p, true, a, b, again);
  assert_memory_equal(c, again, (size_t)n_c * sizeof *c);
  for (int64_t at = 0; at < n_c; at++) {
    double want = plain_element(p, a, b, at) + net_number("c", at);
    if (!(fabs(c[at] - want) <= 1e-12 * (double)(p->k + 1))) {
      fail_msg("%lldx%lldx%lld, element %lld: %.17g, wanted %.17g", (long long)p->m,
               (long long)p->n, (long long)p->k, (long long)at, c[at], want);
    }
  }
  laci_free(a);
  laci_free(b);
  laci_free(c);
  laci_free(again);
}

static void product_adds_to_what_is_there(void **state) {
  (void)state;
  static const int64_t ms[] = {1, 5, 6, 7, 13, 61}, ns[] = {1, 7, 8, 9, 95, 97, 200};
  static const int64_t ks[] = {1, 2, 255, 257, 600};
  for (size_t m = 0; m < sizeof ms / sizeof *ms; m++) {
    for (size_t n = 0; n < sizeof ns / sizeof *ns; n++) {
      size_t k = (m + n) % (sizeof ks / sizeof *ks);
      problem p = {.n_batch = 1 + (int64_t)(m % 3),
                   .m = ms[m],
                   .n = ns[n],
                   .k = ks[k],
                   .a_transposed = m % 2 != 0,
                   .b_transposed = n % 2 != 0};
      check_problem(&p);
    }
  }
}

static const op_case gemms[] = {
    {"plain", "stored a 2x2 = 1 2 3 4\nstored b 2x2 = 1 0 0 10\ny = Gemm(a, b)\noutput y",
     "y f32 2x2 = 1 20 3 40", "ab bc -> ac"},
    {"all options",
     "stored a 2x1 = 1 2\nstored b 3x2 = 1 0 0 1 1 1\nstored c 3 = 1 2 3\n"
     "y = Gemm(a, b, c) transA=1 transB=1 alpha=2.0 beta=10.0\noutput y",
     "y f32 1x3 = 12 24 36", "ab ca c -> bc"},
    {"a row and a column of C",
     "stored a 2x1 = 1 2\nstored b 1x2 = 1 10\nstored c 2x1 = 0.5 0\ny = Gemm(a, b, c)\noutput y",
     "y f32 2x2 = 1.5 10.5 2 20", "ab bc ad -> ac"},
    {"a scalar C",
     "stored a 1x1 = 3\nstored b 1x1 = 4\nstored c \"\" = 1\ny = Gemm(a, b, c)\noutput y",
     "y f32 1x1 = 13", "ab bc s -> ac"},
};

static const op_case matmuls[] = {
    {"two matrices", "stored a 1x2 = 1 2\nstored b 2x1 = 3 4\ny = MatMul(a, b)\noutput y",
     "y f32 1x1 = 11", "ab bc -> ac"},
    {"two vectors", "stored a 2 = 1 2\nstored b 2 = 3 4\ny = MatMul(a, b)\noutput y",
     "y f32 s = 11", "a a -> s"},
    {"a vector on the left", "stored a 2 = 1 2\nstored b 2x2 = 1 2 3 4\ny = MatMul(a, b)\noutput y",
     "y f32 2 = 7 10", "a ab -> b"},
    {"a vector on the right",
     "stored a 2x1x2 = 1 2 3 4\nstored b 2 = 1 10\ny = MatMul(a, b)\noutput y", "y f32 2x1 = 21 43",
     "abc c -> ab"},
    {"one matrix for a batch",
     "stored a 2x1x2 = 1 2 3 4\nstored b 2x1 = 1 10\ny = MatMul(a, b)\noutput y",
     "y f32 2x1x1 = 21 43", "abc cd -> abd"},
    {"batches that are broadcast",
     "stored a 2x1x1x1 = 1 2\nstored b 3x1x1 = 1 10 100\ny = MatMul(a, b)\noutput y",
     "y f32 2x3x1x1 = 1 10 100 2 20 200", "abcd edf -> aecf"},
    {"nothing to add", "stored a 2x0\nstored b 0x1\ny = MatMul(a, b)\noutput y", "y f32 2x1 = 0 0",
     NULL},
};

static const op_case einsums[] = {
    {"a product",
     "stored a 1x2 = 1 2\nstored b 1x2 = 3 4\ny = Einsum(a, b) equation=\"ij,kj->ik\"\noutput y",
     "y f32 1x1 = 11", "ab cb -> ac"},
    {"implied output",
     "stored a 1x2 = 1 2\nstored b 2x1 = 3 4\ny = Einsum(a, b) equation=\"ca,ab\"\noutput y",
     "y f32 1x1 = 11", "ab bc -> ca"},
    {"a diagonal", "stored a 2x2 = 1 2 3 4\ny = Einsum(a) equation=\"ii->i\"\noutput y",
     "y f32 2 = 1 4", "aa -> a"},
    {"axes under dots are broadcast",
     "stored a 2x1 = 1 2\nstored b 1x1 = 10\ny = Einsum(a, b) equation=\"...i,...i->...i\"\noutput "
     "y",
     "y f32 2x1 = 10 20", "ab cb -> ab"},
    {"everything is summed", "stored a 2x2 = 1 2 3 4\ny = Einsum(a) equation=\"ab->\"\noutput y",
     "y f32 s = 10", "ab -> s"},
};

static void einsum_sums_what_the_output_leaves_out(void **state) {
  (void)state;
  check_cases(einsums, sizeof einsums / sizeof *einsums);
}

static const bad_case refused[] = {
    {"an equation of other ranks", "input a 2x3\ny = Einsum(a) equation=\"abc->a\"\noutput y",
     LAC_BAD_SHAPE, "'abc->a'"},
    {"an unknown output", "input a 2x3\ny = Einsum(a) equation=\"ab->c\"\noutput y", LAC_BAD_SHAPE,
     "'ab->c'"},
    {"no equation", "input a 2x3\ny = Einsum(a)\noutput y", LAC_BAD_SHAPE, "''"},
    {"sizes that contradict",
     "input a 2x3\ninput b 4x5\ny = Einsum(a, b) equation=\"ab,bc->ac\"\noutput y", LAC_BAD_SHAPE,
     "does not fit"},
    {"inner sizes differ", "input a 2x3\nstored b 4x5\ny = MatMul(a, b)\noutput y", LAC_BAD_SHAPE,
     "[2, 3] and [4, 5]"},
    {"a scalar", "input a \nstored b 4x5\ny = MatMul(a, b)\noutput y", LAC_BAD_SHAPE, "multiplied"},
    {"Gemm of three axes", "input a 1x2x3\nstored b 3x5\ny = Gemm(a, b)\noutput y", LAC_BAD_SHAPE,
     "multiplied"},
    {"C of another width", "input a 2x3\nstored b 3x5\nstored c 4\ny = Gemm(a, b, c)\noutput y",
     LAC_BAD_SHAPE, "C is [4]"},
};

static void gemm_scales_and_adds(void **state) {
  (void)state;
  check_cases(gemms, sizeof gemms / sizeof *gemms);
}

static void matmul_follows_numpy(void **state) {
  (void)state;
  check_cases(matmuls, sizeof matmuls / sizeof *matmuls);
}

static void what_does_not_fit_is_refused(void **state) {
  (void)state;
  check_refused(refused, sizeof refused / sizeof *refused);
}

static void check_weights(const char *net, int n, int port, int k_axis, int c_axis) {
  lac_error err = {0};
  laci_graph *graph = NULL;
  laci_weight_axes axes[2];
  if (net_read(net, &graph, &err)) fail_msg("%s", err.text);
  const laci_node *node = &graph->nodes[graph->n_nodes - 1];
  assert_int_equal(node->op->weights(graph, node, axes), n);
  for (int at = 0; at < n; at++) {
    if (axes[at].port != port) continue;
    assert_int_equal(axes[at].k_axis, k_axis);
    assert_int_equal(axes[at].c_axis, c_axis);
  }
  laci_graph_destroy(graph);
}

static void weights_name_their_channel_axes(void **state) {
  (void)state;
  check_weights("input x 1x6x4x4\nstored w 9x2x3x3\ny = Conv(x, w) group=3\noutput y", 1, 1, 0, 1);
  check_weights("input x 1x6x4\nstored w 6x2x3\ny = ConvTranspose(x, w)\noutput y", 1, 1, 1, 0);
  check_weights("input x 2x3\nstored w 3x4\ny = Gemm(x, w)\noutput y", 2, 1, 1, 0);
  check_weights("input x 2x3\nstored w 4x3\ny = Gemm(x, w) transB=1\noutput y", 2, 1, 0, 1);
  check_weights("input x 5x2x3\nstored w 3x4\ny = MatMul(x, w)\noutput y", 1, 1, 1, 0);
  check_weights("stored w 4x3\ninput x 3x2\ny = MatMul(w, x)\noutput y", 2, 0, 0, 1);
  check_weights("input x 5x2x3\nstored w 5x3x4\ny = MatMul(x, w)\noutput y", 0, 0, 0, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(product_adds_to_what_is_there),
      cmocka_unit_test(gemm_scales_and_adds),
      cmocka_unit_test(matmul_follows_numpy),
      cmocka_unit_test(einsum_sums_what_the_output_leaves_out),
      cmocka_unit_test(what_does_not_fit_is_refused),
      cmocka_unit_test(weights_name_their_channel_axes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
