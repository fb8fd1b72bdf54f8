/* SPDX-License-Identifier: Apache-2.0
 * Exact classes, members and causes on networks small enough to think through; each is a text
 * (support/graph_build.h).
 *
 * expect_pattern() shows the indices of a stored tensor's axis as letters: equal letters may change
 * places. */
#include "support/expect_classes.h"

#include "graph/assume.h"
#include "permute/plan.h"
#include "permute/search.h"
#include "tensor/buf.h"
#include "verify/verify.h"

/* Reverses every free group and verifies it: what a test expects to be free must also be right.
 */
static void verify_and_clear(analysed *n) {
  laci_plan *plan;
  laci_verification found;
  lac_error err = {0};
  laci_verify_options options = {.seed = 3, .tolerance = 1e-9};
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
  if (!st) st = laci_verify(n->graph, &plan->orders, &options, NULL, &found, &err);
  if (st) fail_msg("%s", err.text);
  laci_plan_destroy(plan);
  analysed_clear(n);
}

#define FIRST_CONV      \
  "input x 1x3x4x4\n"   \
  "stored w1 8x3x3x3\n" \
  "a = Conv(x, w1) pads=1,1,1,1 name=\"c1\"\n"

static void a_chain_is_one_class_from_layer_to_layer(void **state) {
  (void)state;
  analysed n = analyse(FIRST_CONV
                       "stored s 8\nstored b 8\nstored m 8\nstored v 8 positive\n"
                       "t = BatchNormalization(a, s, b, m, v)\nr = Relu(t)\n"
                       "stored w2 4x8x1x1\ny = Conv(r, w2) name=\"c2\"\noutput y\n");
  assert_int_equal(n.a->n_groups, 3);
  assert_int_equal(n.a->n_searchable, 1);
  expect_free(&n, "c2", 'C', 8);
  expect_members(&n, "c2", 'C', "c2 < c1");
  assert_int_equal(group_at(&n, "c1", 'K'), group_at(&n, "c2", 'C'));
  expect_frozen(&n, "c1", 'C', "x is an input of the network");
  expect_frozen(&n, "c2", 'K', "y is an output of the network");
  expect_pattern(&n, "m", 0, "aaaaaaaa");
  verify_and_clear(&n);
}

static void siblings_share_the_order_of_their_producer(void **state) {
  (void)state;
  analysed n =
      analyse(FIRST_CONV
              "stored w2 4x8x1x1\nstored w3 4x8x1x1\n"
              "y = Conv(a, w2) name=\"c2\"\nz = Conv(a, w3) name=\"c3\"\noutput y\noutput z\n");
  expect_free(&n, "c2", 'C', 8);
  expect_members(&n, "c3", 'C', "c2 c3 < c1");
  verify_and_clear(&n);
}

static void residual_sums_tie_all_that_is_added(void **state) {
  (void)state;
  analysed n =
      analyse(FIRST_CONV
              "stored w2 4x8x1x1\nstored w3 8x4x1x1\nstored w4 4x8x1x1\nstored w5 8x4x1x1\n"
              "b = Conv(a, w2) name=\"c2\"\nc = Conv(b, w3) name=\"c3\"\nd = Add(a, c)\n"
              "e = Conv(d, w4) name=\"c4\"\nf = Conv(e, w5) name=\"c5\"\ng = Add(f, d)\n"
              "p = GlobalAveragePool(g)\nq = Flatten(p)\nstored w6 3x8\n"
              "y = Gemm(q, w6) transB=1 name=\"fc\"\noutput y\n");
  assert_int_equal(n.a->n_searchable, 3);
  expect_members(&n, "fc", 'C', "c2 c4 fc < c1 c3 c5");
  expect_members(&n, "c3", 'C', "c3 < c2");
  expect_members(&n, "c5", 'C', "c5 < c4");
  expect_free(&n, "c3", 'C', 4);
  verify_and_clear(&n);
}

static void an_unknown_operator_freezes_and_is_named(void **state) {
  (void)state;
  static const char text[] = FIRST_CONV
      "b = Strange(a) domain=\"my\" name=\"odd\"\nshape b 1x8x4x4\n"
      "stored w2 4x8x1x1\nc = Conv(b, w2) name=\"c2\"\n"
      "stored w3 4x4x1x1\ny = Conv(c, w3) name=\"c3\"\noutput y\n";
  analysed n = analyse(text);
  expect_frozen(&n, "c1", 'K', "odd: operator my.Strange is not known");
  expect_frozen(&n, "c2", 'C', "odd: operator my.Strange is not known");
  expect_free(&n, "c3", 'C', 4);
  assert_non_null(strstr(layer_named(&n, "c2")->reason, "my.Strange"));
  analysed_clear(&n);
}

static void a_declared_unknown_operator_passes_orders_through(void **state) {
  (void)state;
  lac_error err = {0};
  laci_graph *graph;
  assert_int_equal(net_read(FIRST_CONV "b = Strange(a) domain=\"my\"\nstored w2 4x8x1x1\n"
                                       "y = Conv(b, w2) name=\"c2\"\noutput y\n",
                            &graph, &err),
                   LAC_OK);
  assert_int_equal(laci_graph_assume_same_channels(graph, "my.Strange=same", &err), LAC_OK);
  assert_int_equal(laci_graph_infer(graph, NULL, 0, &err), LAC_OK);
  analysed n = analyse_graph(graph);
  expect_members(&n, "c2", 'C', "c2 < c1");
  analysed_clear(&n);
}

static void a_branch_that_ends_nowhere_follows_freely(void **state) {
  (void)state;
  analysed n = analyse(FIRST_CONV
                       "stored w2 4x8x1x1\ny = Conv(a, w2) name=\"c2\"\noutput y\n"
                       "stored w3 6x8x1x1\nd = Conv(a, w3) name=\"dead\"\ne = Relu(d)\n");
  expect_members(&n, "c2", 'C', "c2 dead < c1");
  expect_free(&n, "dead", 'K', 6);
  expect_members(&n, "dead", 'K', "< dead");
  verify_and_clear(&n);
}

static void an_input_added_to_a_residual_freezes_it(void **state) {
  (void)state;
  analysed n =
      analyse("input extra 1x8x4x4\n" FIRST_CONV
              "b = Add(a, extra)\nstored w2 4x8x1x1\ny = Conv(b, w2) name=\"c2\"\noutput y\n");
  expect_frozen(&n, "c1", 'K', "extra is an input of the network");
  expect_frozen(&n, "c2", 'C', "extra is an input of the network");
  analysed_clear(&n);
}

static void nodes_of_the_same_name_and_of_none_stay_apart(void **state) {
  (void)state;
  analysed n = analyse(FIRST_CONV
                       "stored w2 4x8x1x1\nstored w3 4x4x1x1\n"
                       "b = Conv(a, w2) name=\"c1\"\ny = Conv(b, w3)\noutput y\n");
  assert_int_equal(n.a->n_layers, 3);
  assert_int_equal(n.a->n_searchable, 2);
  assert_int_equal(n.a->groups[0].n_channels, 8);
  assert_int_equal(n.a->groups[1].n_channels, 4);
  verify_and_clear(&n);
}

static void shared_weights_tie_their_readers(void **state) {
  (void)state;
  /* c2 and c3 read one weight, so that their outputs have one order, and so have their inputs. */
  analysed n = analyse(
      FIRST_CONV
      "stored w2 8x8x1x1\nb = Conv(a, w2) name=\"c2\"\nc = Relu(b)\nd = Conv(c, w2) name=\"c3\"\n"
      "stored w4 4x8x1x1\ny = Conv(d, w4) name=\"c4\"\noutput y\n");
  assert_int_equal(n.a->n_searchable, 1);
  expect_members(&n, "c4", 'C', "c2 c3 c4 < c1 c2 c3");
  assert_true(layer_named(&n, "c2")->eligible && layer_named(&n, "c3")->eligible);
  verify_and_clear(&n);
}

static void casts_in_between_pass(void **state) {
  (void)state;
  analysed n = analyse(FIRST_CONV
                       "b = Cast(a) to=10\nc = Cast(b) to=1\nstored w2 4x8x1x1\n"
                       "y = Conv(c, w2) name=\"c2\"\noutput y\n");
  expect_members(&n, "c2", 'C', "c2 < c1");
  verify_and_clear(&n);
}

#define SHUFFLE_BY(g, k)                \
  "stored cut 5 i64 = 1 " #g " " #k     \
  " 4 4\nstored back 4 i64 = 1 8 4 4\n" \
  "r = Reshape(a, cut)\nt = Transpose(r) perm=0,2,1,3,4\ns = Reshape(t, back)\n"

static void a_channel_shuffle_alone_only_moves_channels(void **state) {
  (void)state;
  analysed n = analyse(
      FIRST_CONV SHUFFLE_BY(2, 4) "stored w2 4x8x1x1\ny = Conv(s, w2) name=\"c2\"\noutput y\n");
  expect_free(&n, "c2", 'C', 8);
  expect_members(&n, "c2", 'C', "c2 < c1");
  verify_and_clear(&n);
}

static void x_plus_its_shuffle_makes_cycles(void **state) {
  (void)state;
  /* Shuffled place k * 2 + g reads g * 4 + k: 0 and 7 stay; 1 -> 4 -> 2 -> 1 and 3 -> 5 -> 6 -> 3
   * are cycles of three. Cycles of one are alike, and so are those of three; the rank within an
   * axis would match wrongly. */
  analysed n = analyse(FIRST_CONV SHUFFLE_BY(
      2, 4) "u = Add(a, s)\nstored w2 4x8x1x1\ny = Conv(u, w2) name=\"c2\"\noutput y\n");
  assert_true(may_exchange(&n, "w2", 1, 0, 7));
  assert_false(may_exchange(&n, "w2", 1, 0, 1));
  int64_t with_one = 0;
  for (int64_t p = 0; p < 8; p++) with_one += p != 1 && may_exchange(&n, "w2", 1, 1, p);
  assert_int_equal(with_one, 1); /* the place in the other cycle that the walk matches with 1 */
  verify_and_clear(&n);
}

static void concat_of_x_with_itself_has_two_copies(void **state) {
  (void)state;
  analysed n = analyse(
      FIRST_CONV
      "b = Concat(a, a) axis=1\nstored w2 4x16x1x1\ny = Conv(b, w2) name=\"c2\"\noutput y\n");
  expect_free(&n, "c2", 'C', 8);
  expect_pattern(&n, "w2", 1, "aaaaaaaabbbbbbbb");
  assert_int_equal(n.a->n_searchable, 1);
  assert_int_equal(n.a->groups[0].n_consumers, 2);
  verify_and_clear(&n);
}

static void a_slice_that_is_broadcast_keeps_its_own_place(void **state) {
  (void)state;
  analysed n = analyse(FIRST_CONV
                       "stored z 1 i64 = 0\nstored o 1 i64 = 1\nstored ax 1 i64 = 1\n"
                       "b = Slice(a, z, o, ax)\nc = Mul(a, b)\nstored w2 4x8x1x1\n"
                       "y = Conv(c, w2) name=\"c2\"\noutput y\n");
  expect_free(&n, "c2", 'C', 7);
  expect_pattern(&n, "w2", 1, ".aaaaaaa");
  verify_and_clear(&n);
}

static void a_scalar_index_leaves_a_place_too(void **state) {
  (void)state;
  analysed n =
      analyse(FIRST_CONV
              "stored i \"\" i64 = 2\nb = Gather(a, i) axis=1\nc = Mul(a, b)\nstored w2 4x8x1x1\n"
              "y = Conv(c, w2) name=\"c2\"\noutput y\n");
  expect_pattern(&n, "w2", 1, "aa.aaaaa");
  verify_and_clear(&n);
}

static void zero_padded_shortcuts_nest(void **state) {
  (void)state;
  /* CIFAR shortcuts: 4 channels, then 8 with 2 zeros before and after, then 12 with 2 more on each
   * side. */
  analysed n = analyse(
      "input x 1x3x8x8\nstored w1 4x3x1x1\na = Conv(x, w1) name=\"c1\"\n"
      "stored z 2 i64 = 0 0\nstored e 2 i64 = 99 99\nstored hw 2 i64 = 2 3\nstored two 2 i64 = 2 "
      "2\n"
      "stored p 8 i64 = 0 2 0 0 0 2 0 0\n"
      "s1 = Slice(a, z, e, hw, two)\nq1 = Pad(s1, p)\nstored w2 8x4x1x1\nb1 = Conv(a, w2) "
      "strides=2,2 name=\"c2\"\n"
      "r1 = Add(b1, q1)\n"
      "s2 = Slice(r1, z, e, hw, two)\nq2 = Pad(s2, p)\nstored w3 12x8x1x1\n"
      "b2 = Conv(r1, w3) strides=2,2 name=\"c3\"\nr2 = Add(b2, q2)\n"
      "stored w4 4x12x1x1\ny = Conv(r2, w4) name=\"c4\"\noutput y\n");
  expect_pattern(&n, "w1", 0, "aaaa");
  expect_pattern(&n, "w2", 0, "aabbbbaa");
  expect_pattern(&n, "w3", 0, "aabbccccbbaa");
  expect_pattern(&n, "w4", 1, "aabbccccbbaa");
  assert_int_equal(count_free_groups(&n), 3);
  verify_and_clear(&n);
}

static void depthwise_layers_pass_their_channels(void **state) {
  (void)state;
  analysed n = analyse(
      FIRST_CONV
      "stored wd 8x1x3x3\nstored bd 8\nb = Conv(a, wd, bd) group=8 pads=1,1,1,1 name=\"dw\"\n"
      "stored w2 4x8x1x1\ny = Conv(b, w2) name=\"c2\"\noutput y\n");
  expect_members(&n, "c2", 'C', "c2 < c1 dw");
  expect_pattern(&n, "wd", 0, "aaaaaaaa");
  assert_false(layer_named(&n, "dw")->eligible);
  verify_and_clear(&n);
}

static void a_depthwise_multiplier_makes_copies(void **state) {
  (void)state;
  analysed n = analyse(
      FIRST_CONV
      "stored wd 16x1x3x3\nstored bd 16\nb = Conv(a, wd, bd) group=8 pads=1,1,1,1 name=\"dw\"\n"
      "stored w2 4x16x1x1\ny = Conv(b, w2) name=\"c2\"\noutput y\n");
  expect_free(&n, "c2", 'C', 8);
  expect_pattern(&n, "w2", 1, "abababababababab");
  expect_pattern(&n, "bd", 0, "abababababababab");
  expect_pattern(&n, "w1", 0, "aaaaaaaa");
  verify_and_clear(&n);
}

static void each_group_of_a_grouped_layer_has_its_own_order(void **state) {
  (void)state;
  analysed n = analyse(FIRST_CONV
                       "stored wg 8x4x1x1\nstored bg 8\nb = Conv(a, wg, bg) group=2 name=\"g\"\n"
                       "stored w2 4x8x1x1\ny = Conv(b, w2) name=\"c2\"\noutput y\n");
  expect_pattern(&n, "w1", 0, "aaaabbbb");
  expect_pattern(&n, "w2", 1, "aaaabbbb");
  assert_int_equal(n.a->n_searchable, 4);
  for (int g = 0; g < 4; g++) assert_int_equal(n.a->groups[g].n_channels, 4);
  int conv_groups = 0;
  for (int g = 0; g < 4; g++) {
    for (int k = 0; k < n.a->groups[g].n_consumers; k++)
      conv_groups += 1 + n.a->groups[g].consumers[k].conv_group;
  }
  assert_int_equal(conv_groups, 1 + 2); /* groups 0 and 1 of the grouped layer; -1 for the others */
  verify_and_clear(&n);
}

static void a_grouped_transposed_layer_has_orders_by_group(void **state) {
  (void)state;
  /* Without a bias nothing but the weight makes the output's channels. */
  analysed n = analyse(FIRST_CONV
                       "stored wg 8x4x1x1\nb = ConvTranspose(a, wg) group=2 name=\"g\"\n"
                       "stored w2 4x8x1x1\ny = Conv(b, w2) name=\"c2\"\noutput y\n");
  expect_pattern(&n, "w1", 0, "aaaabbbb");
  expect_pattern(&n, "wg", 0, "aaaabbbb");
  expect_pattern(&n, "w2", 1, "aaaabbbb");
  verify_and_clear(&n);
}

static void equal_weights_of_a_grouped_layer_are_not_equal_outputs(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 1x4x4x4\nstored d 4 i64 = 4 2 1 1\nw = ConstantOfShape(d)\n"
      "b = Conv(x, w) group=2\nstored w2 4x4x1x1\ny = Conv(b, w2) name=\"c2\"\noutput y\n");
  expect_pattern(&n, "w2", 1, "....");
  verify_and_clear(&n);
}

static void flattened_images_are_copies_of_channels(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 1x3x2x2\nstored w1 4x3x1x1\na = Conv(x, w1) name=\"c1\"\nb = Flatten(a)\n"
      "stored w2 16x5\ny = MatMul(b, w2) name=\"fc\"\noutput y\n");
  expect_free(&n, "fc", 'C', 4);
  expect_pattern(&n, "w2", 0, "abcdabcdabcdabcd");
  assert_int_equal(n.a->groups[group_at(&n, "fc", 'C')].n_consumers, 4);
  verify_and_clear(&n);
}

static void squeeze_and_excitation_follows_the_scaled_channels(void **state) {
  (void)state;
  analysed n = analyse(
      FIRST_CONV
      "p = GlobalAveragePool(a)\nstored wd 4x8x1x1\nstored bd 4\nq = Conv(p, wd, bd) "
      "name=\"down\"\n"
      "r = Relu(q)\nstored wu 8x4x1x1\nu = Conv(r, wu) name=\"up\"\ns = Sigmoid(u)\nm = Mul(a, s)\n"
      "stored w2 4x8x1x1\ny = Conv(m, w2) name=\"c2\"\noutput y\n");
  expect_members(&n, "c2", 'C', "down c2 < c1 up");
  expect_members(&n, "up", 'C', "up < down");
  verify_and_clear(&n);
}

static void matmul_chains_work_through_transposes(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 2x3\nstored w1 8x3\nt1 = Transpose(w1) perm=1,0\na = MatMul(x, t1) name=\"m1\"\n"
      "stored b1 8\nb = Add(a, b1)\nc = Gelu(b)\n"
      "stored w2 4x8\nt2 = Transpose(w2) perm=1,0\ny = MatMul(c, t2) name=\"m2\"\noutput y\n");
  expect_free(&n, "m2", 'C', 8);
  expect_members(&n, "m2", 'C', "m2 < m1");
  assert_int_equal(layer_named(&n, "m2")->c_axis, 1);
  assert_int_equal(layer_named(&n, "m2")->k_axis, 0);
  expect_pattern(&n, "b1", 0, "aaaaaaaa");
  verify_and_clear(&n);
}

static const char attention[] =
    "input x 1x5x6\nstored wq 6x8\nstored wk 6x8\nstored wv 6x8\nstored wo 8x6\nstored cut 4 i64 = "
    "1 5 2 4\n"
    "stored back 3 i64 = 1 5 8\n"
    "q = MatMul(x, wq) name=\"q\"\nq1 = Reshape(q, cut)\nq2 = Transpose(q1) perm=0,2,1,3\n"
    "k = MatMul(x, wk) name=\"k\"\nk1 = Reshape(k, cut)\nk2 = Transpose(k1) perm=0,2,3,1\n"
    "v = MatMul(x, wv) name=\"v\"\nv1 = Reshape(v, cut)\nv2 = Transpose(v1) perm=0,2,1,3\n"
    "s = MatMul(q2, k2)\np = Softmax(s) axis=-1\no = MatMul(p, v2)\no1 = Transpose(o) "
    "perm=0,2,1,3\n"
    "o2 = Reshape(o1, back)\ny = MatMul(o2, wo) name=\"o\"\noutput y\n";

static void channels_never_cross_heads(void **state) {
  (void)state;
  /* Two heads of four: queries and keys share an order, values and the projection another, head by
   * head. */
  analysed n = analyse(attention);
  expect_pattern(&n, "wq", 1, "aaaabbbb");
  expect_pattern(&n, "wk", 1, "aaaabbbb");
  expect_pattern(&n, "wv", 1, "aaaabbbb");
  expect_pattern(&n, "wo", 0, "aaaabbbb");
  expect_members(&n, "o", 'C', "o < v");
  assert_int_equal(group_at(&n, "q", 'K'), group_at(&n, "k", 'K'));
  assert_int_equal(count_free_groups(&n), 4);
  verify_and_clear(&n);
}

static void a_scalar_index_takes_a_part_from_a_composite(void **state) {
  (void)state;
  /* One layer for queries, keys and values, taken apart by scalar indices: [3, N, heads, T,
   * size][i]. The part that is read is ordered head by head, the others freely.
   */
  analysed n = analyse(
      "input x 1x5x6\nstored w 6x24\nstored cut 5 i64 = 1 5 3 2 4\n"
      "a = MatMul(x, w) name=\"qkv\"\nb = Reshape(a, cut)\nc = Transpose(b) perm=2,0,3,1,4\n"
      "stored i \"\" i64 = 0\nq = Gather(c, i) axis=0\n"
      "stored wo 4x4\ny = MatMul(q, wo) name=\"o\"\noutput y\n");
  expect_pattern(&n, "wo", 0, "aaaa");
  expect_pattern(&n, "w", 1, "aaaabbbbcccccccccccccccc");
  verify_and_clear(&n);
}

static void split_and_concat_map_position_by_position(void **state) {
  (void)state;
  /* The halves change sides, and one of them is read by a layer of its own. */
  analysed n = analyse(FIRST_CONV
                       "b, c = Split(a) axis=1 num_outputs=2\nd = Concat(c, b) axis=1\n"
                       "stored w2 4x8x1x1\ny = Conv(d, w2) name=\"c2\"\noutput y\n"
                       "stored w3 4x4x1x1\nz = Conv(b, w3) name=\"c3\"\noutput z\n");
  expect_pattern(&n, "w1", 0, "aaaabbbb");
  expect_pattern(&n, "w2", 1, "aaaabbbb");
  expect_members(&n, "c3", 'C', "c2 c3 < c1");
  assert_int_equal(count_free_groups(&n), 2);
  verify_and_clear(&n);
}

static void concatenations_that_grow_keep_their_segments(void **state) {
  (void)state;
  /* DenseNet: every layer reads all that came before. */
  analysed n = analyse(FIRST_CONV
                       "stored w2 4x8x1x1\nb = Conv(a, w2) name=\"c2\"\nc = Concat(a, b) axis=1\n"
                       "stored w3 4x12x1x1\nd = Conv(c, w3) name=\"c3\"\ne = Concat(c, d) axis=1\n"
                       "stored w4 4x16x1x1\ny = Conv(e, w4) name=\"c4\"\noutput y\n");
  expect_pattern(&n, "w4", 1, "aaaaaaaabbbbcccc");
  expect_members(&n, "c2", 'C', "c2 c3 c4 < c1");
  assert_int_equal(n.a->n_searchable, 3);
  verify_and_clear(&n);
}

static void layer_normalization_takes_the_whole_axis(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 2x3x4\nstored w1 4x8\na = MatMul(x, w1) name=\"m1\"\nstored s 8\nstored b 8\n"
      "c = LayerNormalization(a, s, b) axis=-1\nstored w2 8x4\ny = MatMul(c, w2) "
      "name=\"m2\"\noutput y\n");
  expect_members(&n, "m2", 'C', "m2 < m1");
  expect_pattern(&n, "s", 0, "aaaaaaaa");
  verify_and_clear(&n);
}

static void group_normalization_keeps_channels_in_their_groups(void **state) {
  (void)state;
  analysed n = analyse(FIRST_CONV
                       "stored s 8\nstored b 8\nc = GroupNormalization(a, s, b) num_groups=2\n"
                       "stored w2 4x8x1x1\ny = Conv(c, w2) name=\"c2\"\noutput y\n");
  expect_pattern(&n, "w2", 1, "aaaabbbb");
  expect_pattern(&n, "s", 0, "aaaabbbb");
  verify_and_clear(&n);
}

static void channels_last_networks_work_through_transposes(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 1x4x4x3\nt = Transpose(x) perm=0,3,1,2\nstored w1 8x3x3x3\n"
      "a = Conv(t, w1) pads=1,1,1,1 name=\"c1\"\nb = Transpose(a) perm=0,2,3,1\n"
      "stored bias 8\nc = Add(b, bias)\nd = Transpose(c) perm=0,3,1,2\n"
      "stored w2 4x8x1x1\ne = Conv(d, w2) name=\"c2\"\nf = Transpose(e) perm=0,2,3,1\n"
      "stored axes 2 i64 = 1 2\ng = ReduceMean(f, axes) keepdims=0\n"
      "stored w3 4x2\ny = MatMul(g, w3) name=\"fc\"\noutput y\n");
  expect_members(&n, "c2", 'C', "c2 < c1");
  expect_members(&n, "fc", 'C', "fc < c2");
  expect_pattern(&n, "bias", 0, "aaaaaaaa");
  verify_and_clear(&n);
}

static void a_listed_initializer_is_free_before_ir_4(void **state) {
  (void)state;
  /* The importer sets overridable from IR 4 on only; before, a listed initializer is an
   * initializer. */
  static const char *const kinds[2] = {"", "listed"};
  for (int i = 0; i < 2; i++) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   FIRST_CONV
                   "stored bias 8x1x1 %s\nb = Add(a, bias)\nstored w2 4x8x1x1\n"
                   "y = Conv(b, w2) name=\"c2\"\noutput y\n",
                   kinds[i]);
    analysed n = analyse(text);
    if (i) expect_frozen(&n, "c2", 'C', "bias may be replaced by the caller");
    else expect_free(&n, "c2", 'C', 8);
    verify_and_clear(&n);
  }
}

static void an_intermediate_that_is_an_output_stays(void **state) {
  (void)state;
  analysed n = analyse(FIRST_CONV
                       "b = Relu(a)\noutput b\nstored w2 4x8x1x1\nc = Conv(b, w2) name=\"c2\"\n"
                       "stored w3 4x4x1x1\ny = Conv(c, w3) name=\"c3\"\noutput y\n");
  expect_frozen(&n, "c2", 'C', "b is an output of the network");
  expect_frozen(&n, "c1", 'K', "b is an output of the network");
  expect_free(&n, "c3", 'C', 4);
  verify_and_clear(&n);
}

static void order_dependent_operators_freeze_and_say_so(void **state) {
  (void)state;
  analysed n =
      analyse(FIRST_CONV
              "stored ax \"\" i64 = 1\nb = CumSum(a, ax) name=\"running\"\nstored w2 4x8x1x1\n"
              "y = Conv(b, w2) name=\"c2\"\noutput y\n");
  expect_frozen(&n, "c2", 'C', "running");
  expect_frozen(&n, "c1", 'K', "running");
  verify_and_clear(&n);
}

static void depth_to_space_puts_channels_together(void **state) {
  (void)state;
  /* Pixel shuffle (CRD): out channel c reads 4 c .. 4 c + 3, which move as one. */
  analysed n = analyse(FIRST_CONV
                       "b = DepthToSpace(a) blocksize=2 mode=\"CRD\"\nstored w2 4x2x1x1\n"
                       "y = Conv(b, w2) name=\"c2\"\noutput y\n");
  expect_free(&n, "c2", 'C', 2);
  expect_pattern(&n, "w1", 0, "abcdabcd");
  verify_and_clear(&n);
}

static void parameters_of_groups_tell_equal_channels_apart(void **state) {
  (void)state;
  analysed n = analyse(
      "stored d 4 i64 = 1 4 2 2\na = ConstantOfShape(d)\nstored s 2\nstored b 2\nopset 18\n"
      "c = GroupNormalization(a, s, b) num_groups=2\nstored w2 4x4x1x1\n"
      "y = Conv(c, w2) name=\"c2\"\noutput y\n");
  expect_pattern(&n, "w2", 1, "....");
  verify_and_clear(&n);
}

static void blocks_of_one_channel_are_not_alike(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 1x3x4x4\nstored w1 1x3x1x1\na = Conv(x, w1) name=\"c1\"\n"
      "b = SpaceToDepth(a) blocksize=2\nstored w2 4x4x1x1\ny = Conv(b, w2) name=\"c2\"\noutput "
      "y\n");
  expect_pattern(&n, "w2", 1, "....");
  verify_and_clear(&n);
}

static void fails_cleanly_without_memory(void **state) {
  (void)state;
  static const char grouped[] = FIRST_CONV
      "stored wg 8x4x1x1\nb = Conv(a, wg) group=2\nstored p 8 i64 = 0 1 0 0 0 0 0 0\nc = Pad(b, "
      "p)\n"
      "d = Flatten(c)\nstored w2 144x4\ny = MatMul(d, w2)\noutput y\n";
  const char *const texts[2] = {attention, grouped};
  laci_rules rules = {.pattern = {2, 4}, .all_sizes = true, .recurrent = true};
  for (int i = 0; i < 2; i++) {
    laci_graph *graph;
    assert_int_equal(net_read(texts[i], &graph, NULL), LAC_OK);
    lac_status st = LAC_NO_MEMORY;
    for (long at = 1; st; at++) {
      laci_analysis *a;
      laci_memory_fail_from(at);
      st = laci_analyze(graph, &rules, &a, NULL);
      laci_memory_fail_from(0);
      if (st) assert_int_equal(st, LAC_NO_MEMORY);
      if (st) assert_null(a);
      laci_analysis_destroy(a);
      assert_true(at < 100000);
    }
    laci_graph_destroy(graph);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_chain_is_one_class_from_layer_to_layer),
      cmocka_unit_test(siblings_share_the_order_of_their_producer),
      cmocka_unit_test(residual_sums_tie_all_that_is_added),
      cmocka_unit_test(an_unknown_operator_freezes_and_is_named),
      cmocka_unit_test(a_declared_unknown_operator_passes_orders_through),
      cmocka_unit_test(a_branch_that_ends_nowhere_follows_freely),
      cmocka_unit_test(an_input_added_to_a_residual_freezes_it),
      cmocka_unit_test(nodes_of_the_same_name_and_of_none_stay_apart),
      cmocka_unit_test(shared_weights_tie_their_readers),
      cmocka_unit_test(casts_in_between_pass),
      cmocka_unit_test(a_channel_shuffle_alone_only_moves_channels),
      cmocka_unit_test(x_plus_its_shuffle_makes_cycles),
      cmocka_unit_test(concat_of_x_with_itself_has_two_copies),
      cmocka_unit_test(a_slice_that_is_broadcast_keeps_its_own_place),
      cmocka_unit_test(a_scalar_index_leaves_a_place_too),
      cmocka_unit_test(zero_padded_shortcuts_nest),
      cmocka_unit_test(depthwise_layers_pass_their_channels),
      cmocka_unit_test(a_depthwise_multiplier_makes_copies),
      cmocka_unit_test(each_group_of_a_grouped_layer_has_its_own_order),
      cmocka_unit_test(a_grouped_transposed_layer_has_orders_by_group),
      cmocka_unit_test(equal_weights_of_a_grouped_layer_are_not_equal_outputs),
      cmocka_unit_test(flattened_images_are_copies_of_channels),
      cmocka_unit_test(squeeze_and_excitation_follows_the_scaled_channels),
      cmocka_unit_test(matmul_chains_work_through_transposes),
      cmocka_unit_test(channels_never_cross_heads),
      cmocka_unit_test(a_scalar_index_takes_a_part_from_a_composite),
      cmocka_unit_test(split_and_concat_map_position_by_position),
      cmocka_unit_test(concatenations_that_grow_keep_their_segments),
      cmocka_unit_test(layer_normalization_takes_the_whole_axis),
      cmocka_unit_test(group_normalization_keeps_channels_in_their_groups),
      cmocka_unit_test(channels_last_networks_work_through_transposes),
      cmocka_unit_test(a_listed_initializer_is_free_before_ir_4),
      cmocka_unit_test(an_intermediate_that_is_an_output_stays),
      cmocka_unit_test(order_dependent_operators_freeze_and_say_so),
      cmocka_unit_test(depth_to_space_puts_channels_together),
      cmocka_unit_test(parameters_of_groups_tell_equal_channels_apart),
      cmocka_unit_test(fails_cleanly_without_memory),
      cmocka_unit_test(blocks_of_one_channel_are_not_alike),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
