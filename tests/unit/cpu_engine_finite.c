/* SPDX-License-Identifier: Apache-2.0
 * NaN and infinities inside the fast engine: where the plain engine's result has them, the fast
 * one's has them, too, by every algorithm. They come with the input, are in a weight or a bias, or
 * arise where sums leave the range of floats. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "support/engine_check.h"

/* Each keeps weights of w that are zeros, and is followed by what may lose a NaN. */
static const char *const nets[] = {
    "a = Conv(x, w, b) pads=1,1,1,1\nr = Relu(a)\nc = Conv(r, q)\noutput c\n",
    "a = Conv(x, w, b) pads=1,1,1,1\nr = Relu(a)\nm = MaxPool(r) kernel_shape=2,2 strides=2,2\n"
    "c = Conv(m, q)\ns = Sigmoid(c)\noutput s\n",
    "a = Conv(x, w, b) pads=1,1,1,1\nt = Add(a, x)\nr = Relu(t)\nc = Conv(r, q)\nz = Relu(c)\n"
    "g = GlobalAveragePool(z)\noutput g\n",
    "a = Conv(x, d) group=32 pads=1,1,1,1\nh = HardSwish(a)\nc = Conv(h, q)\nz = Relu(c)\noutput "
    "z\n",
    "f = Flatten(x)\ng = Gemm(f, l) transB=1\nr = Relu(g)\nk = Gemm(r, k1) transB=1\n"
    "s = Softmax(k)\noutput s\n",
    "stored t 3 i64 = 36 1 32\nstored u 3 i64 = 1 288 32\nstored e 1x288x72\n"
    "f = Reshape(x, t)\nv = Reshape(w, u)\no, h = LSTM(f, v, e) hidden_size=72 clip=3.0\n"
    "r = Relu(h)\noutput r\n",
};
enum { N_NETS = sizeof nets / sizeof *nets, ALL = -2 };

static const char head[] =
    "input x 1x32x6x6\nstored w 32x32x3x3 pruned\nstored b 32\nstored q 48x32x1x1 pruned\n"
    "stored d 32x1x3x3 pruned\nstored l 64x1152 pruned\nstored k1 24x64 pruned\n";

/* Taps in the middle, as what a pad multiplies is nothing to oneDNN, and 0 * NaN to the plain
 * engine. What goes where: a stored tensor's name or "x", the element (ALL: all of them), the
 * number. */
typedef struct poison {
  const char *where;
  int64_t at;
  float number;
  bool is_exact; /* the plain engine's doubles hold what leaves the range of floats */
} poison;
static const poison poisons[] = {
    {"x", 5, NAN, true},       {"x", ALL, NAN, true},     {"x", 40, INFINITY, true},
    {"x", 7, -INFINITY, true}, {"w", 13, NAN, true},      {"b", 3, NAN, true},
    {"b", 3, INFINITY, true},  {"b", 2, -INFINITY, true}, {"q", 11, NAN, true},
    {"d", 4, NAN, true},       {"l", 1000, NAN, true},    {"k1", 5, INFINITY, true},
    {"x", ALL, 3e38F, false},  {"w", ALL, 2e38F, false},  {"x", 3, 1.5F, true},
};
enum { N_POISONS = sizeof poisons / sizeof *poisons };

static void put(float *to, int64_t n, const poison *p) {
  for (int64_t at = 0; at < n; at++) {
    if (at == p->at || p->at == ALL) to[at] = p->number;
  }
}

static bool put_in_graph(laci_graph *graph, const poison *p) {
  for (int at = 0; at < graph->n_stored; at++) {
    const laci_stored *s = &graph->stored[at];
    if (strcmp(s->name, p->where) != 0) continue;
    put((float *)(uintptr_t)s->bytes, (int64_t)(s->size_bytes / sizeof(float)), p);
    return true;
  }
  return strcmp(p->where, "x") == 0;
}

static void expect_same(const char *text, const poison *p, const laci_buf *want, const float *got) {
  int64_t n_wrong = 0;
  for (int64_t at = 0; at < want->count; at++) {
    const bool is_lost = p->is_exact ? !isfinite(want->f[at]) && isfinite(got[at])
                                     : fabs(want->f[at]) > 3.5e38 && isfinite(got[at]);
    n_wrong += is_lost;
  }
  if (n_wrong > 0)
    fail_msg("%lld of %lld lost: %g in %s of\n%s", (long long)n_wrong, (long long)want->count,
             (double)p->number, p->where, text);
}

static void check_net(const char *text, const poison *p, laci_engine_options options) {
  laci_graph *graph;
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_port *out, *in;
  laci_buf *inputs[MAX_PORTS];
  if (net_read(text, &graph, &err)) fail_msg("%s\n%s", err.text, text);
  inputs[0] = run_source(graph, graph->inputs[0]);
  if (!put_in_graph(graph, p)) fail_msg("no tensor %s", p->where);
  float *x = laci_alloc((size_t)inputs[0]->count, sizeof *x);
  for (int64_t at = 0; at < inputs[0]->count; at++) x[at] = (float)inputs[0]->f[at];
  if (strcmp(p->where, "x") == 0) put(x, inputs[0]->count, p);
  for (int64_t at = 0; at < inputs[0]->count; at++) inputs[0]->f[at] = (double)x[at];
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s\n%s", err.text, text);
  assert_int_equal(laci_engine_inputs(engine, &in), 1);
  (void)laci_engine_outputs(engine, &out);
  float *y = laci_alloc(out[0].size_bytes, 1);
  laci_stepper *plain = plain_run(graph, inputs);
  if (laci_engine_run(engine, (const void *[]){x}, (void *[]){y}, &err)) fail_msg("%s", err.text);
  expect_same(text, p, laci_stepper_value(plain, graph->outputs[0]), y);
  laci_stepper_destroy(plain);
  laci_engine_destroy(engine);
  laci_buf_destroy(inputs[0]);
  laci_free(x);
  laci_free(y);
  laci_graph_destroy(graph);
}

/* Each third of the numbers, others for the next network and the next algorithm. */
static void check_all(const char *variable, const char *word, int first) {
  enum { EACH = 3 };
  char text[4096];
  assert_int_equal(setenv(variable, word, 1), 0);
  for (int net = 0; net < N_NETS; net++) {
    (void)snprintf(text, sizeof text, "%s%s", head, nets[net]);
    for (int at = (net + first) % EACH; at < N_POISONS; at += EACH) {
      check_net(text, &poisons[at], (laci_engine_options){.threads = 2});
    }
  }
  assert_int_equal(unsetenv(variable), 0);
}

static void dense_kernels_lose_nothing(void **state) {
  (void)state;
  check_all("LAC_SPARSE", "0", 0);
}
static void chosen_kernels_lose_nothing(void **state) {
  (void)state;
  check_all("LAC_SPARSE", "", 1);
}
static void generated_code_loses_nothing(void **state) {
  (void)state;
  check_all("LAC_SPARSE", "all", 2);
}
static void csr_loses_nothing(void **state) {
  (void)state;
  check_all("LAC_ALGORITHM", "csr", 0);
}
static void winograds_algorithm_loses_nothing(void **state) {
  (void)state;
  check_all("LAC_ALGORITHM", "winograd", 1);
}

/* Eighteen layers, whose bounds leave the range of floats: values in between are looked at, by
 * steps that take no memory. Numbers stay ordinary, and nothing is done by plain operators. */
static void deep_networks_are_looked_at(void **state) {
  char text[4096];
  int used =
      snprintf(text, sizeof text, "input x 1x32x4x4\nstored w 32x32x3x3 pruned\nv0 = Relu(x)\n");
  (void)state;
  for (int layer = 1; layer <= 18; layer++) {
    used += snprintf(text + used, sizeof text - (size_t)used,
                     "c%d = Conv(v%d, w) pads=1,1,1,1\nv%d = Relu(c%d)\n", layer, layer - 1, layer,
                     layer);
  }
  (void)snprintf(text + used, sizeof text - (size_t)used, "output v18\n");
  check_plan(text, (expectation){.tolerance = 1e-4, .plain = 0});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dense_kernels_lose_nothing),
      cmocka_unit_test(chosen_kernels_lose_nothing),
      cmocka_unit_test(generated_code_loses_nothing),
      cmocka_unit_test(csr_loses_nothing),
      cmocka_unit_test(winograds_algorithm_loses_nothing),
      cmocka_unit_test(deep_networks_are_looked_at),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
