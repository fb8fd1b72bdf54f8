/* SPDX-License-Identifier: Apache-2.0
 * Channels in the bodies of If, Loop and Scan: what is carried has one order for all iterations,
 * what two branches give has one order, what is inside is free.
 *
 * A loop of known length is the same network with its iterations unrolled, and an If is one whose
 * two branches are chosen by a Where. The rules for these are held to brute force elsewhere
 * (analyze_random.c); here the same stored tensors must be free in both writings. */
#include "support/expect_classes.h"

#include "engine/plain/plain.h"
#include "permute/plan.h"
#include "permute/search.h"
#include "tensor/buf.h"
#include "verify/verify.h"

/* Reverses every free group and verifies it, in both engines that the verification knows. */
static void verify_network(analysed *n) {
  laci_plan *plan;
  laci_verification found;
  lac_error err = {0};
  if (laci_plan_create(n->a, &plan, &err)) fail_msg("%s", err.text);
  for (int g = 0; g < n->a->n_groups; g++) {
    int channels = n->a->groups[g].frozen ? 0 : n->a->groups[g].n_channels;
    for (int c = 0; c < channels; c++) plan->found[g].order[c] = channels - 1 - c;
  }
  lac_status st = laci_plan_make_value_orders(plan, &err);
  for (int g = 0; g < n->a->n_groups && !st; g++) {
    if (!n->a->groups[g].frozen && !laci_plan_moves_channels(plan, g))
      fail_msg("group %d was set back", g);
  }
  static const laci_verify_engine engines[] = {LACI_VERIFY_PLAIN, LACI_VERIFY_CPU};
  for (int e = 0; e < 2 && !st; e++) {
    laci_verify_options options = {.seed = 3, .tolerance = 1e-9, .engine = engines[e]};
    st = laci_verify(n->graph, &plan->orders, &options, NULL, &found, &err);
  }
  if (st) fail_msg("%s", err.text);
  laci_plan_destroy(plan);
}

static void verify_and_clear(analysed *n) {
  verify_network(n);
  analysed_clear(n);
}

#define FIRST       \
  "input x 2x4\n"   \
  "stored w1 4x8\n" \
  "a = MatMul(x, w1) name=\"m1\"\n"

/* ---- If ---- */

static void channels_inside_a_branch_are_free(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 2x4\ninput c 1 bool\n"
      "then\nstored w1 4x8\na = MatMul(x, w1) name=\"m1\"\nr = Relu(a)\n"
      "stored w2 8x3\nb = MatMul(r, w2) name=\"m2\"\n"
      "else\nstored w3 4x3\nd = MatMul(x, w3) name=\"m3\"\n"
      "end\ny = If(c, b, d)\noutput y\n");
  expect_free(&n, "m2", 'C', 8);
  expect_members(&n, "m2", 'C', "m2 < m1");
  expect_frozen(&n, "m2", 'K', "y is an output of the network");
  expect_frozen(&n, "m3", 'K', "y is an output of the network");
  verify_and_clear(&n);
}

static void results_of_two_branches_share_an_order(void **state) {
  (void)state;
  analysed n = analyse(FIRST
                       "input c 1 bool\n"
                       "then\nstored w2 8x6\nb = MatMul(a, w2) name=\"m2\"\n"
                       "else\nstored w3 8x6\nd = MatMul(a, w3) name=\"m3\"\n"
                       "end\ne = If(c, b, d)\nstored w4 6x3\n"
                       "y = MatMul(e, w4) name=\"m4\"\noutput y\n");
  expect_members(&n, "m2", 'C', "m2 m3 < m1"); /* captured by both */
  expect_members(&n, "m4", 'C', "m4 < m2 m3");
  expect_free(&n, "m4", 'C', 6);
  verify_and_clear(&n);
}

static void a_branch_that_hands_an_input_through_freezes_the_other(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 2x4\ninput z 2x6\ninput c 1 bool\n"
      "then\nstored w2 4x6\nb = MatMul(x, w2) name=\"m2\"\n"
      "else\nd = Identity(z)\n"
      "end\ne = If(c, b, d)\nstored w4 6x3\n"
      "y = MatMul(e, w4) name=\"m4\"\noutput y\n");
  expect_frozen(&n, "m4", 'C', "z is an input of the network");
  expect_frozen(&n, "m2", 'K', "z is an input of the network");
  verify_and_clear(&n);
}

static void branches_of_different_sizes_freeze(void **state) {
  (void)state;
  analysed n = analyse(FIRST
                       "input c 1 bool\n"
                       "then\nstored w2 8x6\nb = MatMul(a, w2) name=\"m2\"\n"
                       "else\nstored w3 8x4\nd = MatMul(a, w3) name=\"m3\"\n"
                       "end\ny = If(c, b, d) name=\"which\"\noutput y\n");
  expect_free(&n, "m2", 'C', 8);
  expect_frozen(&n, "m2", 'K', "which: ");
  expect_frozen(&n, "m3", 'K', "which: ");
  analysed_clear(&n);
}

/* ---- Loop ---- */

/* h = tanh(h r + x w) three times, then a layer. */
#define RECURRENCE(first)                                                       \
  "input x 2x4\ninput n 1 i64\n" first                                          \
  "stored w 4x8\np = MatMul(x, w) name=\"in\"\n"                                \
  "loop\ni, go, h = LoopBegin(n, _, h0) domain=\"lacuna\"\n"                    \
  "stored r 8x8\nq = MatMul(h, r) name=\"again\"\ns = Add(p, q)\nt = Tanh(s)\n" \
  "end\nz, zs = Loop(go, h0, h, t, t)\n"                                        \
  "stored v 8x3\ny = MatMul(z, v) name=\"out\"\noutput y\n"

static void what_is_carried_has_one_order(void **state) {
  (void)state;
  analysed n = analyse(RECURRENCE("stored h0 2x8\n"));
  expect_free(&n, "again", 'C', 8);
  expect_members(&n, "again", 'C', "again out < in again");
  expect_pattern(&n, "h0", 1, "aaaaaaaa");
  expect_pattern(&n, "r", 0, "aaaaaaaa");
  expect_pattern(&n, "r", 1, "aaaaaaaa");
  verify_and_clear(&n);
}

/* Zeros say nothing of the order, but what comes out of an iteration does. */
static void a_uniform_beginning_still_joins(void **state) {
  (void)state;
  analysed n = analyse(RECURRENCE("stored sizes 2 i64 = 2 8\nh0 = ConstantOfShape(sizes)\n"));
  expect_members(&n, "again", 'C', "again out < in again");
  expect_free(&n, "again", 'C', 8);
  verify_and_clear(&n);
}

static void a_beginning_from_outside_freezes(void **state) {
  (void)state;
  analysed n = analyse(RECURRENCE("input h0 2x8\n"));
  expect_frozen(&n, "again", 'C', "h0 is an input of the network");
  verify_and_clear(&n);
}

static void slices_of_iterations_keep_their_channels(void **state) {
  (void)state;
  analysed n = analyse(FIRST
                       "input n 1 i64\nloop\ni, go, h = LoopBegin(n, _, a) domain=\"lacuna\"\n"
                       "stored r 8x8\nq = MatMul(h, r) name=\"again\"\nt = Tanh(q)\n"
                       "end\nz, zs = Loop(go, a, h, t, t)\nm = ReduceMean(zs) axes=0, keepdims=0\n"
                       "opset 13\nk = ReduceMean(zs) axes=0, keepdims=0\n"
                       "stored v 8x3\ny = MatMul(k, v) name=\"out\"\noutput y\n");
  expect_members(&n, "out", 'C', "again out < m1 again");
  verify_and_clear(&n);
}

/* The second state is the first one of the iteration before. */
static void states_that_follow_each_other_share_an_order(void **state) {
  (void)state;
  analysed n = analyse(
      "stored h0 2x6\nstored g0 2x6\ninput n 1 i64\nloop\n"
      "i, go, h, g = LoopBegin(n, _, h0, g0) domain=\"lacuna\"\n"
      "stored r 6x6\nq = MatMul(g, r) name=\"again\"\n"
      "end\nz, u = Loop(go, h0, g0, h, g, q, h)\n"
      "stored v 6x3\ny = MatMul(z, v) name=\"out\"\noutput y\n");
  expect_members(&n, "out", 'C', "again out < again");
  expect_pattern(&n, "g0", 1, "aaaaaa");
  verify_and_clear(&n);
}

static void scans_keep_channels_of_slices(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 5x2x4\nstored w 4x8\ns = MatMul(x, w) name=\"in\"\nstored h0 2x8\n"
      "loop\nh, p = ScanBegin(h0, s) num_scan_inputs=1 domain=\"lacuna\"\n"
      "stored r 8x8\nq = MatMul(h, r) name=\"again\"\nt = Add(p, q)\nu = Tanh(t)\n"
      "end\nz, zs = Scan(h0, h, u, u) num_scan_inputs=1\n"
      "stored v 8x3\ny = MatMul(zs, v) name=\"out\"\noutput y\n");
  expect_members(&n, "again", 'C', "again out < in again");
  expect_free(&n, "again", 'C', 8);
  verify_and_clear(&n);
}

static void scanned_axes_stay(void **state) {
  (void)state;
  analysed n = analyse(
      "stored s 4x2x5\nstored h0 2x5\n"
      "loop\nh, p = ScanBegin(h0, s) num_scan_inputs=1 domain=\"lacuna\"\n"
      "t = Add(p, h)\n"
      "end\nz, zs = Scan(h0, h, t, t) num_scan_inputs=1 name=\"scan\"\n"
      "stored v 5x3\ny = MatMul(zs, v) name=\"out\"\noutput y\n");
  expect_pattern(&n, "s", 0, "....");
  expect_pattern(&n, "s", 2, "aaaaa");
  verify_and_clear(&n);
}

static void a_size_that_changes_between_iterations_is_not_known(void **state) {
  (void)state;
  analysed n = analyse(
      "input n 1 i64\nstored h0 2x3\nstored one 2x1\nloop\n"
      "i, go, h = LoopBegin(n, _, h0) domain=\"lacuna\"\n"
      "t = Concat(h, one) axis=1\nend\nz = Loop(go, h0, h, t)\noutput z\n");
  const laci_graph *g = n.graph;
  assert_int_equal(g->values[laci_graph_find_value(g, "z")].type.shape.dims[0], 2);
  assert_true(g->values[laci_graph_find_value(g, "z")].type.shape.dims[1] < 0);
  assert_true(g->values[laci_graph_find_value(g, "h")].type.shape.dims[1] < 0);
  analysed_clear(&n);
}

static void loops_in_loops_and_branches(void **state) {
  (void)state;
  analysed n = analyse(
      "input n 1 i64\ninput c 1 bool\nstored h0 2x6\nloop\n"
      "i, go, h = LoopBegin(n, _, h0) domain=\"lacuna\"\n"
      "loop\nj, on, g = LoopBegin(n, _, h) domain=\"lacuna\"\n"
      "then\nstored r 6x6\nq = MatMul(g, r) name=\"again\"\n"
      "else\ns = Neg(g)\nend\nt = If(c, q, s)\n"
      "end\nu = Loop(on, h, g, t)\n"
      "end\nz = Loop(go, h0, h, u)\n"
      "stored v 6x3\ny = MatMul(z, v) name=\"out\"\noutput y\n");
  expect_members(&n, "out", 'C', "again out < again");
  expect_free(&n, "out", 'C', 6);
  verify_and_clear(&n);
}

/* ---- The same network, written out ---- */

enum { ITERATIONS = 3, WIDTH = 6, MOST_STEPS = 6, N_NETWORKS = 300 };

typedef struct writing {
  char text[1 << 14];
  size_t n;
} writing;

static void put(writing *w, const char *format, ...) LAC_PRINTF(2, 3);
static void put(writing *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(w->text + w->n, sizeof w->text - w->n, format, args);
  va_end(args);
  assert_true(n >= 0 && (size_t)n < sizeof w->text - w->n);
  w->n += (size_t)n;
}

/** A random body: steps of one kind each, which read values made before. */
typedef struct random_body {
  int n_steps, kind[MOST_STEPS], a[MOST_STEPS], b[MOST_STEPS], n_states, out[2];
  int first[2]; /* what a state begins with: 0 a stored tensor, 1 zeros, 2 a layer of the input */
} random_body;

static uint64_t draws;
static int draw(int n) { return (int)(laci_rng_unit_interval(77, 5, draws++) * n); }

static random_body draw_body(void) {
  random_body b = {.n_steps = 1 + draw(MOST_STEPS), .n_states = 1 + draw(2)};
  for (int s = 0; s < b.n_states; s++) b.first[s] = draw(3);
  for (int k = 0; k < b.n_steps; k++) {
    int known = b.n_states + 1 + k; /* states, an outer value, steps */
    b.kind[k] = draw(6);
    b.a[k] = draw(known);
    b.b[k] = draw(known);
  }
  for (int s = 0; s < b.n_states; s++) b.out[s] = draw(b.n_states + 1 + b.n_steps);
  return b;
}

/** The name of the body's value `at` in an iteration: states of this iteration, the outer value,
 * steps. */
static const char *named(const random_body *b, int at, int iteration, char text[32]) {
  if (at < b->n_states) (void)snprintf(text, 32, "h%d.%d", at, iteration);
  else if (at == b->n_states) (void)snprintf(text, 32, "outer");
  else (void)snprintf(text, 32, "t%d.%d", at - b->n_states - 1, iteration);
  return text;
}

static void put_steps(writing *w, const random_body *b, int iteration) {
  char x[32], z[32];
  for (int k = 0; k < b->n_steps; k++) {
    named(b, b->a[k], iteration, x);
    named(b, b->b[k], iteration, z);
    switch (b->kind[k]) {
      case 0: put(w, "t%d.%d = MatMul(%s, w%d)\n", k, iteration, x, k); break;
      case 1: put(w, "t%d.%d = Add(%s, b%d)\n", k, iteration, x, k); break;
      case 2: put(w, "t%d.%d = Tanh(%s)\n", k, iteration, x); break;
      case 3: put(w, "t%d.%d = Add(%s, %s)\n", k, iteration, x, z); break;
      case 4: put(w, "t%d.%d = Mul(%s, %s)\n", k, iteration, x, z); break;
      default: /* the halves change places */
        put(w, "l%d.%d, r%d.%d = Split(%s, halves) axis=1\n", k, iteration, k, iteration, x);
        put(w, "t%d.%d = Concat(r%d.%d, l%d.%d) axis=1\n", k, iteration, k, iteration, k,
            iteration);
    }
  }
}

static void put_begin(writing *w, const random_body *b) {
  put(w,
      "input x 2x4\nstored halves 2 i64 = 3 3\nstored sizes 2 i64 = 2 %d\nstored wx 4x%d\n"
      "outer = MatMul(x, wx)\n",
      WIDTH, WIDTH);
  for (int s = 0; s < b->n_states; s++) {
    if (b->first[s] == 0) put(w, "stored h%d.0 2x%d\n", s, WIDTH);
    else if (b->first[s] == 1) put(w, "h%d.0 = ConstantOfShape(sizes)\n", s);
    else put(w, "stored wf%d 4x%d\nh%d.0 = MatMul(x, wf%d)\n", s, WIDTH, s, s);
  }
  for (int k = 0; k < b->n_steps; k++)
    put(w, b->kind[k] ? "stored b%d %d\n" : "stored w%d %dx6\n", k, WIDTH);
}

static void put_end(writing *w, const random_body *b, int iteration) {
  for (int s = 0; s < b->n_states; s++)
    put(w, "stored wo%d %dx3\ny%d = MatMul(h%d.%d, wo%d)\noutput y%d\n", s, WIDTH, s, s, iteration,
        s, s);
}

static void put_carried(writing *w, const random_body *b, int iteration) {
  for (int s = 0; s < b->n_states; s++) put(w, ", h%d.%d", s, iteration);
}

static void write_loop(writing *w, const random_body *b) {
  char name[32];
  w->n = 0;
  put_begin(w, b);
  put(w, "stored trips \"\" i64 = %d\nloop\ni, go", ITERATIONS);
  put_carried(w, b, 1);
  put(w, " = LoopBegin(trips, _");
  put_carried(w, b, 0);
  put(w, ") domain=\"lacuna\"\n");
  put_steps(w, b, 1);
  put(w, "end\n");
  for (int s = 0; s < b->n_states; s++) put(w, "%sh%d.9", s ? ", " : "", s);
  put(w, " = Loop(go");
  put_carried(w, b, 0);
  put_carried(w, b, 1);
  for (int s = 0; s < b->n_states; s++) put(w, ", %s", named(b, b->out[s], 1, name));
  put(w, ")\n");
  put_end(w, b, 9);
}

static void write_out(writing *w, const random_body *b) {
  char name[32];
  w->n = 0;
  put_begin(w, b);
  for (int iteration = 0; iteration < ITERATIONS; iteration++) {
    put_steps(w, b, iteration);
    for (int s = 0; s < b->n_states; s++)
      put(w, "h%d.%d = Identity(%s)\n", s, iteration + 1, named(b, b->out[s], iteration, name));
  }
  put_end(w, b, ITERATIONS);
}

/** Pairs of indices that may change places in the one writing, but not in the other. */
static void compare(const analysed *loop, const analysed *flat, int *only_loop, int *only_flat,
                    int *both) {
  for (int s = 0; s < loop->graph->n_stored; s++) {
    const laci_stored *stored = &loop->graph->stored[s];
    if (laci_graph_find_value(flat->graph, stored->name) < 0) continue;
    for (int axis = 0; axis < stored->shape.rank; axis++) {
      for (int64_t p = 0; p < stored->shape.dims[axis]; p++) {
        for (int64_t q = 0; q < p; q++) {
          bool a = may_exchange(loop, stored->name, axis, p, q);
          bool b = may_exchange(flat, stored->name, axis, p, q);
          *only_loop += a && !b;
          *only_flat += b && !a;
          *both += a && b;
        }
      }
    }
  }
}

static void a_loop_is_what_it_is_written_out(void **state) {
  (void)state;
  static writing loop_text, flat_text;
  int both = 0, only_flat_all = 0;
  for (int k = 0; k < N_NETWORKS; k++) {
    random_body b = draw_body();
    write_loop(&loop_text, &b);
    write_out(&flat_text, &b);
    analysed loop = analyse(loop_text.text), flat = analyse(flat_text.text);
    int only_loop = 0, only_flat = 0;
    compare(&loop, &flat, &only_loop, &only_flat, &both);
    if (only_loop)
      fail_msg("free in the loop only:\n%s\nwritten out:\n%s", loop_text.text, flat_text.text);
    only_flat_all += only_flat;
    verify_network(&loop);
    analysed_clear(&loop);
    analysed_clear(&flat);
  }
  print_message("%d pairs free in both, %d only where written out\n", both, only_flat_all);
  assert_true(both > 1000);
  /* A permutation of the carried channels may come back to itself after three iterations, or be in
     no place that is read: so much may be lost. */
  assert_true(only_flat_all * 20 < both);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(channels_inside_a_branch_are_free),
      cmocka_unit_test(results_of_two_branches_share_an_order),
      cmocka_unit_test(a_branch_that_hands_an_input_through_freezes_the_other),
      cmocka_unit_test(branches_of_different_sizes_freeze),
      cmocka_unit_test(what_is_carried_has_one_order),
      cmocka_unit_test(a_uniform_beginning_still_joins),
      cmocka_unit_test(a_beginning_from_outside_freezes),
      cmocka_unit_test(slices_of_iterations_keep_their_channels),
      cmocka_unit_test(states_that_follow_each_other_share_an_order),
      cmocka_unit_test(scans_keep_channels_of_slices),
      cmocka_unit_test(scanned_axes_stay),
      cmocka_unit_test(a_size_that_changes_between_iterations_is_not_known),
      cmocka_unit_test(loops_in_loops_and_branches),
      cmocka_unit_test(a_loop_is_what_it_is_written_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
