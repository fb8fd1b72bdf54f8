/* SPDX-License-Identifier: Apache-2.0
 * From orders of groups to orders of tensors: hand-made orders land where they should, grouped
 * weights included, the inverse order brings every byte back, and what a search finds keeps no less
 * than what was there. */
#include "support/expect_classes.h"

#include "permute/plan.h"
#include "permute/search.h"
#include "sparse/mask.h"
#include "tensor/buf.h"

static const laci_pattern two_of_four = {2, 4};

static laci_plan *plan_of(const analysed *n) {
  laci_plan *plan;
  lac_error err = {0};
  if (laci_plan_create(n->a, &plan, &err)) fail_msg("%s", err.text);
  return plan;
}

static void complete(laci_plan *plan) {
  lac_error err = {0};
  if (laci_plan_make_value_orders(plan, &err)) fail_msg("%s", err.text);
}

/* The stored tensor's bytes in the plan's order; the caller frees. */
static uint8_t *reordered(const analysed *n, const laci_plan *plan, const laci_stored *stored,
                          const uint8_t *from) {
  uint8_t *to = laci_alloc(stored->size_bytes + 1, 1);
  assert_non_null(to);
  lac_error err = {0};
  const laci_value_orders *orders = &plan->orders.values[stored->value];
  if (laci_reorder(&stored->shape, lac_dtype_size(stored->dtype), orders, from, to, &err))
    fail_msg("%s", err.text);
  (void)n;
  return to;
}

static const laci_stored *stored_named(const analysed *n, const char *name) {
  return &n->graph->stored[n->graph->values[laci_graph_find_value(n->graph, name)].stored];
}

/* Slices of the new tensor along `axis` are the old ones at from[]. */
static void check_slices(const analysed *n, const laci_plan *plan, const char *name, int axis,
                         const int *from, int line) {
  const laci_stored *stored = stored_named(n, name);
  uint8_t *now = reordered(n, plan, stored, stored->bytes);
  const float *new_f = (const float *)(const void *)now,
              *old_f = (const float *)(const void *)stored->bytes;
  int64_t size = stored->shape.dims[axis],
          inner = laci_shape_count_range(&stored->shape, axis + 1, stored->shape.rank);
  for (int64_t i = 0; i < laci_shape_count(&stored->shape); i++) {
    int64_t p = i / inner % size, old = i + (from[p] - p) * inner;
    if (new_f[i] != old_f[old])
      fail_msg("line %d: %s[%lld] is not the old [%lld]", line, name, (long long)i, (long long)old);
  }
  laci_free(now);
}
#define expect_slices(n, plan, name, axis, ...) \
  check_slices(n, plan, name, axis, (const int[]){__VA_ARGS__}, __LINE__)

static void set_order(laci_plan *plan, int group, const int *order) {
  for (int c = 0; c < plan->analysis->groups[group].n_channels; c++)
    plan->found[group].order[c] = order[c];
}

static const char chain[] =
    "input x 1x3x4x4\nstored w1 4x3x1x1\nstored b1 4\na = Conv(x, w1, b1) name=\"c1\"\n"
    "stored s 4\nstored b 4\nstored m 4\nstored v 4 positive\nt = BatchNormalization(a, s, b, m, "
    "v)\n"
    "stored w2 4x4x3x3\nc = Conv(t, w2) pads=1,1,1,1 name=\"c2\"\nf = Flatten(c)\n"
    "stored w3 5x64\ny = Gemm(f, w3) transB=1 name=\"fc\"\noutput y\n";

static void a_new_plan_moves_nothing(void **state) {
  (void)state;
  analysed n = analyse(chain);
  laci_plan *plan = plan_of(&n);
  for (int g = 0; g < n.a->n_groups; g++) assert_false(laci_plan_moves_channels(plan, g));
  for (int v = 0; v < n.graph->n_values; v++)
    assert_true(laci_orders_are_identity(&plan->orders.values[v]));
  laci_plan_destroy(plan);
  analysed_clear(&n);
}

static void an_order_reaches_every_tensor_of_its_group(void **state) {
  (void)state;
  analysed n = analyse(chain);
  laci_plan *plan = plan_of(&n);
  set_order(plan, group_at(&n, "c2", 'C'), (const int[]){2, 0, 3, 1});
  complete(plan);
  expect_slices(&n, plan, "w1", 0, 2, 0, 3, 1);
  expect_slices(&n, plan, "b1", 0, 2, 0, 3, 1);
  expect_slices(&n, plan, "m", 0, 2, 0, 3, 1);
  expect_slices(&n, plan, "w2", 1, 2, 0, 3, 1);
  expect_slices(&n, plan, "w3", 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
                19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39,
                40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60,
                61, 62, 63);
  laci_plan_destroy(plan);
  analysed_clear(&n);
}

static void flattened_columns_move_in_whole_images(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 1x3x1x2\nstored w1 4x3x1x1\na = Conv(x, w1) name=\"c1\"\nf = Flatten(a)\n"
      "stored w2 8x5\ny = MatMul(f, w2) name=\"fc\"\noutput y\n");
  laci_plan *plan = plan_of(&n);
  set_order(plan, group_at(&n, "fc", 'C'), (const int[]){3, 2, 0, 1});
  complete(plan);
  expect_slices(&n, plan, "w1", 0, 3, 2, 0, 1);
  expect_slices(&n, plan, "w2", 0, 6, 7, 4, 5, 0, 1, 2, 3);
  laci_plan_destroy(plan);
  analysed_clear(&n);
}

static void grouped_weights_move_group_by_group(void **state) {
  (void)state;
  analysed n = analyse(
      "input x 1x3x4x4\nstored w1 8x3x1x1\na = Conv(x, w1) name=\"c1\"\n"
      "stored wg 4x4x1x1\nb = Conv(a, wg) group=2 name=\"g\"\n"
      "stored w2 4x4x1x1\ny = Conv(b, w2) name=\"c2\"\noutput y\n");
  laci_plan *plan = plan_of(&n);
  assert_int_equal(n.a->n_searchable, 4);
  for (int g = 0; g < n.a->n_groups; g++) {
    const laci_group *group = &n.a->groups[g];
    if (group->frozen) continue;
    if (group->n_channels == 2) set_order(plan, g, (const int[]){1, 0}); /* outputs of a group */
    else if (group->consumers[0].conv_group == 0) set_order(plan, g, (const int[]){1, 2, 3, 0});
    else set_order(plan, g, (const int[]){0, 3, 1, 2});
  }
  complete(plan);
  expect_slices(&n, plan, "w1", 0, 1, 2, 3, 0, 4, 7, 5, 6);
  expect_slices(&n, plan, "w2", 1, 1, 0, 3, 2);
  const laci_stored *wg = stored_named(&n, "wg");
  uint8_t *now = reordered(&n, plan, wg, wg->bytes);
  static const int row_from[4] = {1, 0, 3, 2}, column_from[2][4] = {{1, 2, 3, 0}, {0, 3, 1, 2}};
  for (int row = 0; row < 4; row++) {
    for (int c = 0; c < 4; c++) {
      const float *old = (const float *)(const void *)wg->bytes,
                  *found = (const float *)(const void *)now;
      assert_true(found[row * 4 + c] == old[row_from[row] * 4 + column_from[row / 2][c]]);
    }
  }
  laci_free(now);
  laci_plan_destroy(plan);
  analysed_clear(&n);
}

/* ---- networks to search on ---- */

static const char *const networks[] = {
    chain,
    /* grouped, with a residual */
    "input x 1x3x4x4\nstored w1 16x3x1x1\na = Conv(x, w1) name=\"c1\"\nstored wg 16x4x3x3\n"
    "b = Conv(a, wg) group=4 pads=1,1,1,1 name=\"g\"\nc = Add(a, b)\nstored w2 4x16x1x1\n"
    "y = Conv(c, w2) name=\"c2\"\noutput y\n",
    /* blocks that hold channels of two groups, and of a group twice */
    "input x 1x3x4x4\nstored w1 6x3x1x1\na = Conv(x, w1) name=\"c1\"\nstored w2 9x3x1x1\nb = "
    "Conv(x, w2) name=\"c2\"\n"
    "c = Concat(a, b, a) axis=1\nstored w3 7x21x1x1\nd = Conv(c, w3) name=\"c3\"\nstored w4 "
    "5x9x1x1\n"
    "e = Conv(b, w4) name=\"c4\"\noutput d\noutput e\n",
    /* copies of a channel that share blocks: 6 places a channel, and a layer for which another
       order is better */
    "input x 1x3x2x3\nstored w1 8x3x1x1\na = Conv(x, w1) name=\"c1\"\nf = Flatten(a)\nstored w2 "
    "48x9\n"
    "y = MatMul(f, w2) name=\"fc\"\noutput y\nstored w3 4x8x1x1\nz = Conv(a, w3) "
    "name=\"c3\"\noutput z\n",
    /* one place in four is another group's */
    "input x 1x3x4x4\nstored w1 8x3x1x1\na = Conv(x, w1) name=\"c1\"\n"
    "stored z 1 i64 = 0\nstored o 1 i64 = 1\nstored ax 1 i64 = 1\nb = Slice(a, z, o, ax)\nc = "
    "Mul(a, b)\n"
    "stored w2 6x8x1x1\ny = Conv(c, w2) name=\"c2\"\noutput y\n",
    /* tied weights, a depthwise multiplier, odd sizes */
    "input x 1x3x4x4\nstored w1 5x3x1x1\na = Conv(x, w1) name=\"c1\"\nstored wd 10x1x1x1\n"
    "b = Conv(a, wd) group=5 name=\"dw\"\nstored w2 10x10x1x1\nc = Conv(b, w2) name=\"c2\"\n"
    "d = Conv(c, w2) name=\"c3\"\nstored w3 3x10x1x1\ny = Conv(d, w3) name=\"c4\"\noutput y\n",
};
enum { N_NETWORKS = sizeof networks / sizeof *networks };

/* What 2:4 would keep of all layers that may be pruned, their tensors reordered by the plan. */
static double kept_of(const analysed *n, const laci_plan *plan, bool squared) {
  double kept = 0;
  for (int l = 0; l < n->a->n_layers; l++) {
    const laci_layer *layer = &n->a->layers[l];
    bool again = false;
    for (int k = 0; k < l; k++) again |= n->a->layers[k].stored == layer->stored;
    if (!layer->eligible || again) continue;
    laci_weight_view view = layer->view;
    uint8_t *now = reordered(n, plan, &n->graph->stored[layer->stored], layer->view.bytes);
    view.bytes = now;
    view.squared = squared;
    laci_mask_stats stats;
    lac_error err = {0};
    if (laci_mask_measure(&view, two_of_four, NULL, &stats, &err)) fail_msg("%s", err.text);
    kept += stats.kept;
    laci_free(now);
  }
  return kept;
}

static double kept_by(const analysed *n, const laci_plan *plan) { return kept_of(n, plan, false); }

static void the_inverse_order_brings_the_bytes_back(void **state) {
  (void)state;
  for (int i = 0; i < N_NETWORKS; i++) {
    analysed n = analyse(networks[i]);
    laci_plan *plan = plan_of(&n), *back = plan_of(&n);
    for (int g = 0; g < n.a->n_groups; g++) {
      int channels = n.a->groups[g].frozen ? 0 : n.a->groups[g].n_channels;
      int32_t *order = plan->found[g].order;
      for (int c = channels - 1; c > 0; c--) {
        int j = (int)laci_rng_integer_below(4, (uint64_t)g, (uint64_t)c, (uint64_t)c + 1),
            kept = order[c];
        order[c] = order[j];
        order[j] = kept;
      }
      for (int c = 0; c < channels; c++) back->found[g].order[order[c]] = c;
    }
    complete(plan);
    complete(back);
    for (int s = 0; s < n.graph->n_stored; s++) {
      const laci_stored *stored = &n.graph->stored[s];
      uint8_t *there = reordered(&n, plan, stored, stored->bytes),
              *again = reordered(&n, back, stored, there);
      assert_memory_equal(again, stored->bytes, stored->size_bytes);
      laci_free(there);
      laci_free(again);
    }
    laci_plan_destroy(plan);
    laci_plan_destroy(back);
    analysed_clear(&n);
  }
}

static void a_search_never_keeps_less(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 20; seed++) {
    *net_salt() = seed;
    for (int i = 0; i < N_NETWORKS; i++) {
      analysed n = analyse(networks[i]);
      laci_plan *plan = plan_of(&n);
      double before = kept_by(&n, plan);
      lac_error err = {0};
      laci_search_options options = {.iterations = 100, .seed = seed};
      if (laci_plan_search_orders(plan, two_of_four, &options, NULL, &err))
        fail_msg("%s", err.text);
      for (int g = 0; g < n.a->n_searchable; g++) {
        assert_true(plan->found[g].kept >= plan->found[g].kept_identity);
      }
      double after = kept_by(&n, plan);
      if (!(after >= before * (1 - 1e-12))) {
        fail_msg("network %d, seed %d: %.9g kept of what was %.9g", i, (int)seed, after, before);
      }
      laci_plan_destroy(plan);
      analysed_clear(&n);
    }
  }
  *net_salt() = 0;
}

/* The found plan; views: given, and of squares or of the weights themselves. */
static laci_plan *search_by(const analysed *n, bool given, bool squared) {
  lac_error err = {0};
  laci_plan *plan = plan_of(n);
  laci_weight_view *views = laci_alloc((size_t)n->a->n_layers, sizeof *views);
  assert_non_null(views);
  for (int l = 0; l < n->a->n_layers; l++) {
    views[l] = n->a->layers[l].view;
    views[l].squared = squared;
  }
  laci_search_options options = {.effort = LACI_EFFORT_NORMAL, .views = given ? views : NULL};
  if (laci_plan_search_orders(plan, two_of_four, &options, NULL, &err)) fail_msg("%s", err.text);
  laci_free(views);
  return plan;
}

static void a_search_scores_the_views_that_it_is_given(void **state) {
  (void)state;
  for (int i = 0; i < N_NETWORKS; i++) {
    analysed n = analyse(networks[i]);
    laci_plan *none = plan_of(&n), *usual = search_by(&n, false, false);
    laci_plan *same = search_by(&n, true, false), *squares = search_by(&n, true, true);
    for (int g = 0; g < n.a->n_searchable; g++) {
      const laci_search_result *one = &usual->found[g], *other = &same->found[g];
      assert_memory_equal(one->order, other->order,
                          (size_t)n.a->groups[g].n_channels * sizeof *one->order);
      assert_true(one->kept == other->kept && one->upper == other->upper);
      /* told as the analysis sees the weights, whatever was searched; of several groups, other
       * orders may be fixed */
      assert_true(n.a->n_searchable > 1 || (squares->found[g].kept_identity == one->kept_identity &&
                                            squares->found[g].upper == one->upper));
    }
    assert_true(kept_of(&n, squares, true) >= kept_of(&n, none, true) * (1 - 1e-12));
    laci_plan_destroy(none);
    laci_plan_destroy(usual);
    laci_plan_destroy(same);
    laci_plan_destroy(squares);
    analysed_clear(&n);
  }
}

static void mixed_blocks_are_searched_with_the_other_held_still(void **state) {
  (void)state;
  /* Six channels and two of another layer in blocks of four: what the groups gain adds up. */
  analysed n = analyse(
      "input x 1x3x4x4\nstored w1 6x3x1x1\na = Conv(x, w1) name=\"c1\"\nstored w2 6x3x1x1\n"
      "b = Conv(x, w2) name=\"c2\"\nc = Concat(a, b) axis=1\nstored w3 32x12x1x1\n"
      "y = Conv(c, w3) name=\"c3\"\noutput y\n");
  laci_plan *plan = plan_of(&n);
  double before = kept_by(&n, plan);
  lac_error err = {0};
  laci_search_options options = {.effort = LACI_EFFORT_NORMAL};
  assert_int_equal(n.a->n_searchable, 2);
  if (laci_plan_search_orders(plan, two_of_four, &options, NULL, &err)) fail_msg("%s", err.text);
  assert_true(laci_plan_moves_channels(plan, 0) || laci_plan_moves_channels(plan, 1));
  double gain = 0;
  for (int g = 0; g < 2; g++) gain += plan->found[g].kept - plan->found[g].kept_identity;
  assert_true(gain > 0);
  assert_true(fabs(kept_by(&n, plan) - before - gain) <= 1e-6 * before);
  laci_plan_destroy(plan);
  analysed_clear(&n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_new_plan_moves_nothing),
      cmocka_unit_test(an_order_reaches_every_tensor_of_its_group),
      cmocka_unit_test(flattened_columns_move_in_whole_images),
      cmocka_unit_test(grouped_weights_move_group_by_group),
      cmocka_unit_test(the_inverse_order_brings_the_bytes_back),
      cmocka_unit_test(a_search_never_keeps_less),
      cmocka_unit_test(a_search_scores_the_views_that_it_is_given),
      cmocka_unit_test(mixed_blocks_are_searched_with_the_other_held_still),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
