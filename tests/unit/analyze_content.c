/* SPDX-License-Identifier: Apache-2.0
 * Readers of a shape or a type: they freeze no order, join nothing, and keep no weight whole; a
 * reader of contents does. Every free order is verified on values. */
#include "support/expect_classes.h"

#include "graph/content.h"
#include "permute/plan.h"
#include "permute/search.h"
#include "tensor/buf.h"
#include "verify/verify.h"

/* Reverses every free group and verifies it. */
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
  if (!st) st = laci_verify(n->graph, &plan->orders, &options, NULL, &found, &err);
  if (st) fail_msg("%s", err.text);
  laci_plan_destroy(plan);
  analysed_clear(n);
}

/* Two layers; `reader` reads the second one's weight w2, and gives v, an output. */
static analysed with_reader(const char *reader) {
  char text[2048];
  (void)snprintf(text, sizeof text,
                 "input x 1x3x4x4\nstored w1 8x3x3x3\na = Conv(x, w1) pads=1,1,1,1 name=\"c1\"\n"
                 "stored w2 4x8x1x1\ny = Conv(a, w2) name=\"c2\"\noutput y\n%soutput v\n",
                 reader);
  return analyse(text);
}

static const char *const shape_readers[] = {
    "v = Shape(w2)\n",
    "v = Shape(w2) start=1 end=3\n",
    "v = Size(w2)\n",
    "input q 2x2\nv = CastLike(q, w2)\n",
    "s = Shape(w2)\nv = ConstantOfShape(s)\n",
    "stored k 1 i64 = -1\nf = Flatten(w2)\nv = EyeLike(f)\n",
    "v = RandomNormalLike(w2)\n",
    "v = RandomUniformLike(w2)\n",
    "v = OptionalHasElement(w2)\n",
    /* what comes of a weight, and is read for its shape */
    "t = Transpose(w2) perm=1,0,2,3\nv = Shape(t)\n",
    "stored p 4x8x1x1\nt = Add(w2, p)\nv = Size(t)\n",
    "t = Softmax(w2) axis=1\nu = Relu(t)\nv = Shape(u)\n",
    "t = Mystery(w2)\nshape t 2x2\nv = Shape(t)\n",
};

static void readers_of_a_shape_freeze_nothing_and_keep_no_weight_whole(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof shape_readers / sizeof *shape_readers; i++) {
    analysed n = with_reader(shape_readers[i]);
    const laci_layer *layer = layer_named(&n, "c2");
    if (!layer->eligible) fail_msg("%s: %s", shape_readers[i], layer->reason);
    expect_free(&n, "c2", 'C', 8);
    expect_members(&n, "c2", 'C', "c2 < c1");
    verify_and_clear(&n);
  }
}

static void readers_of_a_content_still_keep_a_weight_whole(void **state) {
  (void)state;
  static const char *const readers[] = {
      "v = ReduceSum(w2)\n",
      "v = Mystery(w2)\n",
      "input q 4x8x1x1\nv = CastLike(w2, q)\n",
      /* how many elements there are depends on what is there */
      "t = NonZero(w2)\nv = Shape(t)\n",
      "t = NonZero(w2)\nu = Cast(t) to=1\nv = Size(u)\n",
      "t = Mystery(w2)\nv = Shape(t)\n",
      ("t = Cast(w2) to=7\nstored k 1 i64 = -1\nu = Reshape(t, k)\nc = ConstantOfShape(u)\n"
       "v = Size(c)\n"),
  };
  for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
    analysed n = with_reader(readers[i]);
    if (layer_named(&n, "c2")->eligible) fail_msg("%s: may be pruned", readers[i]);
    verify_and_clear(&n);
  }
}

static void sizes_of_what_is_read_for_its_shape_stay_in_place(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 2x3x3x3\nstored k 5 i64 = 2 3 3 1 3\na = Reshape(x, k)\nv = Size(a)\noutput v\n");
  expect_pattern(&n, "k", 0, ".....");
  verify_and_clear(&n);
}

static void a_shape_that_is_read_leaves_groups_their_own_orders(void **state) {
  (void)state;
  /* With another reader, all groups of a grouped weight have one order. */
  analysed n = analyse(
      "input x 1x3x4x4\nstored w1 8x3x3x3\na = Conv(x, w1) pads=1,1,1,1 name=\"c1\"\n"
      "stored w2 4x4x1x1\nb = Conv(a, w2) group=2 name=\"c2\"\nv = Shape(w2)\n"
      "stored w3 2x4x1x1\ny = Conv(b, w3) name=\"c3\"\noutput y\noutput v\n");
  expect_pattern(&n, "w1", 0, "aaaabbbb");
  assert_true(layer_named(&n, "c2")->eligible);
  verify_and_clear(&n);
}

static void a_whole_vision_transformers_attention_may_be_permuted(void **state) {
  (void)state;
  /* As both exporters write it: [T, N, 3 * E] in three parts, each of which goes to its heads. */
  analysed n = analyse(
      "input x 5x1x8\nstored w0 8x8\nx0 = MatMul(x, w0) name=\"embed\"\n"
      "stored w 8x24\nstored b 24\nm = MatMul(x0, w) name=\"qkv\"\na = Add(m, b)\n"
      "stored cut 4 i64 = 5 1 3 8\nr = Reshape(a, cut)\nstored zero 1 i64 = 0\n"
      "u = Unsqueeze(r, zero)\nt = Transpose(u) perm=3,1,2,0,4\nstored last 1 i64 = -2\n"
      "s = Squeeze(t, last)\n"
      "stored i0 \"\" i64 = 0\nstored i1 \"\" i64 = 1\nstored i2 \"\" i64 = -1\n"
      "q0 = Gather(s, i0) axis=0\nk0 = Gather(s, i1) axis=0\nv0 = Gather(s, i2) axis=0\n"
      "stored heads 3 i64 = 5 2 4\nq1 = Reshape(q0, heads)\nk1 = Reshape(k0, heads)\n"
      "v1 = Reshape(v0, heads)\nq = Transpose(q1) perm=1,0,2\nk = Transpose(k1) perm=1,2,0\n"
      "v = Transpose(v1) perm=1,0,2\np = MatMul(q, k)\nsm = Softmax(p)\no = MatMul(sm, v)\n"
      "ot = Transpose(o) perm=1,0,2\nstored back 2 i64 = 5 8\nob = Reshape(ot, back)\n"
      "stored wo 8x8\ny = Gemm(ob, wo) name=\"out\"\noutput y\n");
  expect_pattern(&n, "wo", 0, "aaaabbbb");
  expect_members(&n, "out", 'C', "out < qkv");
  expect_pattern(&n, "w", 1, "aaaabbbbccccddddeeeeffff");
  verify_and_clear(&n);
}

static void what_matters_is_found_without_memory_too(void **state) {
  (void)state;
  analysed n = with_reader("v = Shape(w2)\n");
  uint8_t *matters = NULL;
  lac_error err = {0};
  laci_memory_fail_from(1);
  assert_int_equal(laci_find_values_affecting_outputs(n.graph, &matters, &err), LAC_NO_MEMORY);
  laci_memory_fail_from(0);
  assert_null(matters);
  assert_int_equal(laci_find_values_affecting_outputs(n.graph, &matters, &err), LAC_OK);
  assert_false(laci_node_reads_content(n.graph, matters, 2, laci_graph_find_value(n.graph, "w2")));
  assert_int_equal(
      laci_count_content_readers(n.graph, matters, laci_graph_find_value(n.graph, "w2")), 1);
  laci_free(matters);
  analysed_clear(&n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(readers_of_a_shape_freeze_nothing_and_keep_no_weight_whole),
      cmocka_unit_test(readers_of_a_content_still_keep_a_weight_whole),
      cmocka_unit_test(sizes_of_what_is_read_for_its_shape_stay_in_place),
      cmocka_unit_test(a_shape_that_is_read_leaves_groups_their_own_orders),
      cmocka_unit_test(a_whole_vision_transformers_attention_may_be_permuted),
      cmocka_unit_test(what_matters_is_found_without_memory_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
