/* SPDX-License-Identifier: Apache-2.0
 * LSTM, GRU and RNN on the fast engine against the plain one: every attribute with every other one,
 * drawn at random, and large ones whose time steps are divided among threads. Threads and
 * instruction sets change no bit; an interrupt ends a long sequence; what has no fast form is left
 * to the plain operator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "cpu/cpu.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "lacuna/log.h"
#include "support/engine_check.h"
#include "tensor/buf.h"

enum { N_DRAWN = 90, TEXT = 4096 };

typedef struct draws {
  uint64_t seed, n;
} draws;

static int64_t draw(draws *d, int64_t n) {
  return (int64_t)(laci_rng_unit_interval(77, d->seed, d->n++) * (double)n);
}
static int64_t one_of(draws *d, const int64_t *list, int64_t n) { return list[draw(d, n)]; }

static void say(char *text, const char *format, ...) {
  const size_t used = strlen(text);
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text + used, TEXT - used, format, args);
  va_end(args);
}

typedef struct sizes {
  int kind; /* an index of `ops` */
  int64_t directions, time, batch, inputs, hidden;
  bool batch_first;
} sizes;

static const char *const ops[] = {"RNN", "GRU", "LSTM"};
static const int64_t gates[] = {1, 3, 4};

/** Says a weight that is constant, or computed in every run; small enough that states stay
 * sensitive. */
static void say_weight(char *text, const char *name, int64_t rows, int64_t columns, int64_t n,
                       bool computed) {
  say(text, "%s %s_ %dx%dx%d\nstored %s_f 1 f32 = %g\n%s = Mul(%s_, %s_f)\n",
      computed ? "input" : "stored", name, (int)n, (int)rows, (int)columns, name,
      columns > 4 ? 0.2 : 0.5, name, name, name);
}

static void say_operands(char *text, const sizes *z, bool computed) {
  const int64_t rows = gates[z->kind] * z->hidden;
  const int n = (int)z->directions, b = (int)z->batch, t = (int)z->time, h = (int)z->hidden;
  say(text, "input x %dx%dx%d\n", z->batch_first ? b : t, z->batch_first ? t : b, (int)z->inputs);
  say_weight(text, "w", rows, z->inputs, n, computed);
  say_weight(text, "r", rows, z->hidden, n, computed);
  say(text, "stored b %dx%d\nstored p %dx%d\n", n, (int)(2 * rows), n, 3 * h);
  for (int at = 0; at < 2; at++) {
    say(text, "input %s %dx%dx%d\n", at ? "c" : "h", z->batch_first ? b : n, z->batch_first ? n : b,
        h);
  }
}

static void say_lengths(char *text, const sizes *z, draws *d, bool alike) {
  const int64_t length = 1 + draw(d, z->time);
  say(text, "stored l %d i32 =", (int)z->batch);
  for (int64_t b = 0; b < z->batch; b++)
    say(text, " %d", (int)(alike ? length : 1 + draw(d, z->time)));
  say(text, "\n");
}

static const char *either(draws *d, const char *name) { return draw(d, 2) ? name : "_"; }

/** Says the node and the outputs, at least one. */
static void say_node(char *text, const sizes *z, draws *d) {
  static const char *const directions[] = {"forward", "reverse"};
  const bool lstm = z->kind == 2;
  int64_t shown = 1 + draw(d, lstm ? 7 : 3);
  say(text, "%s, %s", shown & 1 ? "y" : "_", shown & 2 ? "yh" : "_");
  if (lstm) say(text, ", %s", shown & 4 ? "yc" : "_");
  say(text, " = %s(x, w, r, %s, %s", ops[z->kind], either(d, "b"), either(d, "l"));
  say(text, ", %s", either(d, "h"));
  if (lstm) say(text, ", %s", either(d, "c"));
  if (lstm) say(text, ", %s", either(d, "p"));
  say(text, ") hidden_size=%d layout=%d direction=\"%s\"", (int)z->hidden, (int)z->batch_first,
      z->directions == 2 ? "bidirectional" : directions[draw(d, 2)]);
  if (draw(d, 3) == 0) say(text, " clip=0.7");
  if (lstm && draw(d, 4) == 0) say(text, " input_forget=1");
  if (z->kind == 1 && draw(d, 2)) say(text, " linear_before_reset=1");
  if (draw(d, 4) == 0) {
    static const char *const other[] = {"\"sigmoid\"", "\"Sigmoid\",\"Sigmoid\"",
                                        "\"Sigmoid\",\"sigmoid\",\"Tanh\""};
    say(text, " activations=%s", other[z->kind]);
    if (z->directions == 2) say(text, ",%s", other[z->kind]);
  }
  say(text, "\n%s%s%s", shown & 1 ? "output y\n" : "", shown & 2 ? "output yh\n" : "",
      shown & 4 ? "output yc\n" : "");
}

static void computes_what_the_plain_operator_does(void **state) {
  static const int64_t times[] = {1, 2, 5, 13}, batches[] = {1, 2, 3, 9}, inputs[] = {1, 4, 19},
                       hidden[] = {1, 4, 16, 21, 48};
  (void)state;
  for (uint64_t seed = 0; seed < N_DRAWN; seed++) {
    char text[TEXT] = "";
    draws d = {.seed = seed};
    const sizes z = {.kind = (int)(seed % 3),
                     .directions = 1 + draw(&d, 2),
                     .time = one_of(&d, times, 4),
                     .batch = one_of(&d, batches, 4),
                     .inputs = one_of(&d, inputs, 3),
                     .hidden = one_of(&d, hidden, 5),
                     .batch_first = draw(&d, 2)};
    say_operands(text, &z, draw(&d, 4) == 0);
    say_lengths(text, &z, &d, draw(&d, 2));
    say_node(text, &z, &d);
    check_plan(text, (expectation){.tolerance = 1e-5});
  }
}

#define LARGE(op, n, gated)                                              \
  "input x 6x1x24\nstored w_ " n "x" gated "x24\nstored r_ " n "x" gated \
  "x208\n"                                                               \
  "stored f 1 f32 = 0.1\nw = Mul(w_, f)\nr = Mul(r_, f)\ny, h = " op "(x, w, r) hidden_size=208"

static const char *const large[] = {
    LARGE("LSTM", "1", "832") "\noutput y\noutput h\n",
    LARGE("LSTM", "2", "832") " direction=\"bidirectional\"\noutput y\noutput h\n",
    LARGE("GRU", "1", "624") " direction=\"reverse\"\noutput y\noutput h\n",
    LARGE("GRU", "2", "624") " direction=\"bidirectional\" linear_before_reset=1\noutput h\n",
    "input x 300x1x64\nstored w 1x16x64\nstored r_ 1x16x16\nstored f 1 f32 = 0.1\n"
    "r = Mul(r_, f)\ny = RNN(x, w, r) hidden_size=16\noutput y\n",
    "input x 5x7x24\nstored w_ 2x832x24\nstored r_ 2x832x208\nstored f 1 f32 = 0.1\n"
    "w = Mul(w_, f)\nr = Mul(r_, f)\ny = LSTM(x, w, r) hidden_size=208 "
    "direction=\"bidirectional\"\noutput y\n",
    /* two matrices of which a core's second cache may hold a half */
    "input x 3x1x8\nstored w_ 2x1600x8\nstored r_ 2x1600x400\nstored f 1 f32 = 0.1\n"
    "w = Mul(w_, f)\nr = Mul(r_, f)\ny, h = LSTM(x, w, r) hidden_size=400 "
    "direction=\"bidirectional\"\noutput y\noutput h\n",
};
enum { N_LARGE = sizeof large / sizeof *large };

static void divides_large_steps_among_threads(void **state) {
  (void)state;
  for (int at = 0; at < N_LARGE; at++) check_plan(large[at], (expectation){.tolerance = 1e-5});
}

/** Runs the network with so many threads; the caller frees the result of its first output. */
static void *result_of(const laci_graph *graph, int threads, size_t *size) {
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_port *in, *out;
  const laci_engine_options options = {.threads = threads};
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s", err.text);
  (void)laci_engine_inputs(engine, &in);
  const int n = laci_engine_outputs(engine, &out);
  laci_buf *x = run_source(graph, graph->inputs[0]);
  void *read = pack(&in[0], x), *written[2] = {0};
  for (int at = 0; at < n; at++) written[at] = laci_alloc(out[at].size_bytes, 1);
  if (laci_engine_run(engine, (const void *[]){read}, written, &err)) fail_msg("%s", err.text);
  *size = out[0].size_bytes;
  laci_free(written[1]);
  laci_free(read);
  laci_buf_destroy(x);
  laci_engine_destroy(engine);
  return written[0];
}

static void threads_and_instruction_sets_change_no_bit(void **state) {
  const laci_cpu_level before = laci_cpu_level_in_force();
  (void)state;
  for (int at = 0; at < N_LARGE; at++) {
    laci_graph *graph;
    lac_error err = {0};
    size_t size, same;
    if (net_read(large[at], &graph, &err)) fail_msg("%s", err.text);
    void *want = result_of(graph, 1, &size);
    for (int threads = 1; threads <= 5; threads++) {
      if (threads == 1) (void)laci_cpu_limit_level(LACI_CPU_ANY);
      void *got = result_of(graph, threads, &same);
      (void)laci_cpu_limit_level(before);
      assert_int_equal(size, same);
      if (memcmp(want, got, size) != 0) fail_msg("%d threads:\n%s", threads, large[at]);
      laci_free(got);
    }
    laci_free(want);
    laci_graph_destroy(graph);
  }
}

static void leaves_other_activations_to_the_plain_operator(void **state) {
  static const char *const others[] = {
      "RNN(x, w, r) hidden_size=4 activations=\"Relu\"",
      "RNN(x, w, r) hidden_size=4 clip=-1.0",
      "GRU(x, w3, r3) hidden_size=4 activations=\"Tanh\",\"Tanh\"",
      "LSTM(x, w4, r4) hidden_size=4 activations=\"HardSigmoid\",\"Tanh\",\"Tanh\"",
  };
  (void)state;
  for (size_t at = 0; at < sizeof others / sizeof *others; at++) {
    char text[TEXT] =
        "input x 5x2x3\nstored w 1x4x3\nstored r 1x4x4\nstored w3 1x12x3\nstored r3 1x12x4\n"
        "stored w4 1x16x3\nstored r4 1x16x4\n";
    say(text, "y = %s\noutput y\n", others[at]);
    check_plan(text, (expectation){.tolerance = 1e-5, .plain = 1});
  }
}

/** The caller's threads: they interrupt the run as soon as it needs them. */
static void interrupt(void *context, void (*part)(void *arg, int index), void *arg, int n) {
  lac_interrupt(*(const bool *)context);
  for (int at = 0; at < n; at++) part(arg, at);
}

static lac_status count_step(void *context, size_t step, lac_error *err) {
  (void)step, (void)err;
  ++*(int *)context;
  return LAC_OK;
}

static void an_interrupt_ends_a_long_sequence(void **state) {
  enum { TIME = 300, INPUTS = 24 };
  bool interrupts = false;
  int n_steps = 0;
  const laci_parallel parallel = {.run = interrupt, .context = &interrupts};
  const laci_engine_options options = {.threads = 2, .parallel = &parallel};
  laci_engine_watch watch = {.after_step = count_step, .context = &n_steps};
  laci_graph *graph;
  laci_engine *engine;
  lac_error err = {0};
  const laci_engine_port *out;
  (void)state;
  if (net_read("input x 300x1x24\nstored w 1x832x24\nstored r 1x832x208\n"
               "y = LSTM(x, w, r) hidden_size=208\noutput y\n",
               &graph, &err))
    fail_msg("%s", err.text);
  if (laci_engine_create(graph, &options, &engine, &err)) fail_msg("%s", err.text);
  (void)laci_engine_outputs(engine, &out);
  float *x = laci_alloc((size_t)TIME * INPUTS, sizeof *x);
  void *y = laci_alloc(out[0].size_bytes, 1);
  for (int ignored = 0; ignored < 2; ignored++) {
    interrupts = true;
    watch.ignores_interrupt = ignored;
    n_steps = 0;
    lac_status st =
        laci_engine_run_watched(engine, (const void *[]){x}, (void *[]){y}, &watch, &err);
    lac_interrupt(false);
    assert_int_equal(st, ignored ? LAC_OK : LAC_INTERRUPTED);
    assert_int_equal(n_steps > 0, ignored); /* else the node's own step did not end */
  }
  laci_free(x);
  laci_free(y);
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(computes_what_the_plain_operator_does),
      cmocka_unit_test(divides_large_steps_among_threads),
      cmocka_unit_test(threads_and_instruction_sets_change_no_bit),
      cmocka_unit_test(leaves_other_activations_to_the_plain_operator),
      cmocka_unit_test(an_interrupt_ends_a_long_sequence),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
