/* SPDX-License-Identifier: Apache-2.0
 * The permutation file: what is written comes back, a file that lost any part is refused, and an
 * allocation that fails costs the whole text or nothing of it. */
#include "support/expect_classes.h"

#include <jansson.h>

#include "base/json.h"
#include "permute/file.h"
#include "permute/plan.h"
#include "permute/search.h"
#include "tensor/buf.h"

static const laci_pattern two_of_four = {2, 4};

/* A grouped convolution, a residual and a class that is in one tensor twice. */
static const char network[] =
    "input x 1x3x4x4\nstored w1 8x3x1x1\na = Conv(x, w1) name=\"c1\"\n"
    "stored wg 8x4x3x3\nb = Conv(a, wg) group=2 pads=1,1,1,1 name=\"g\"\nc = Add(a, b)\n"
    "stored w2 6x8x1x1\nstored b2 6\nd = Conv(c, w2, b2) name=\"c2\"\n"
    "e = Concat(d, d) axis=1\nstored w3 4x12x1x1\ny = Conv(e, w3) name=\"c3\"\noutput y\n";

/* Every class rotated by one place. */
static laci_plan *rotated_plan(const analysed *n) {
  laci_plan *plan;
  lac_error err = {0};
  if (laci_plan_create(n->a, &plan, &err)) fail_msg("%s", err.text);
  for (int g = 0; g < n->a->n_groups; g++) {
    int size = n->a->groups[g].n_channels;
    for (int c = 0; c < size && !n->a->groups[g].frozen; c++)
      plan->found[g].order[c] = (c + 1) % size;
  }
  if (laci_plan_make_value_orders(plan, &err)) fail_msg("%s", err.text);
  return plan;
}

static char *text_of(const laci_plan *plan) {
  char *text;
  lac_error err = {0};
  if (laci_permutation_text(plan, two_of_four, 7, &text, &err)) fail_msg("%s", err.text);
  return text;
}

static lac_status read_into_new_plan(const analysed *n, const char *text, bool invert,
                                     laci_plan **plan, lac_error *err) {
  lac_status st = laci_plan_create(n->a, plan, err);
  return st ? st : laci_permutation_read(*plan, "order.json", text, invert, err);
}

static bool same_orders(const laci_plan *a, const laci_plan *b) {
  for (int g = 0; g < a->analysis->n_groups; g++) {
    size_t n = (size_t)a->analysis->groups[g].n_channels;
    if (memcmp(a->found[g].order, b->found[g].order, n * sizeof(int32_t)) != 0) return false;
  }
  return true;
}

static void what_is_written_comes_back(void **state) {
  (void)state;
  analysed n = analyse(network);
  assert_true(count_free_groups(&n) > 1);
  laci_plan *plan = rotated_plan(&n), *again;
  lac_error err = {0};
  char *text = text_of(plan);
  if (read_into_new_plan(&n, text, false, &again, &err)) fail_msg("%s", err.text);
  assert_true(same_orders(plan, again));
  laci_plan_destroy(again);
  if (read_into_new_plan(&n, text, true, &again, &err)) fail_msg("%s", err.text);
  for (int g = 0; g < n.a->n_groups; g++) {
    for (int c = 0; c < n.a->groups[g].n_channels; c++)
      assert_int_equal(again->found[g].order[plan->found[g].order[c]], c);
  }
  laci_plan_destroy(again);
  laci_plan_destroy(plan);
  laci_free(text);
  analysed_clear(&n);
}

static void a_seed_of_all_bits_is_written_whole(void **state) {
  (void)state;
  analysed n = analyse(network);
  laci_plan *plan = rotated_plan(&n), *again;
  char *text;
  lac_error err = {0};
  if (laci_permutation_text(plan, two_of_four, UINT64_MAX, &text, &err)) fail_msg("%s", err.text);
  assert_non_null(strstr(text, "\"seed\": \"18446744073709551615\""));
  if (read_into_new_plan(&n, text, false, &again, &err)) fail_msg("%s", err.text);
  laci_plan_destroy(again);
  laci_plan_destroy(plan);
  laci_free(text);
  analysed_clear(&n);
}

/* Takes away the element at which *at is 0, counted from the first, with all that is inside it.
 * False: there are not that many. */
static bool take_away(json_t *value, long *at, char *what, size_t capacity) {
  for (size_t i = 0; i < json_array_size(value); i++) {
    if ((*at)-- == 0) {
      (void)snprintf(what, capacity, "element %zu", i);
      return json_array_remove(value, i) == 0;
    }
    if (take_away(json_array_get(value, i), at, what, capacity)) return true;
  }
  for (void *it = json_object_iter(value); it; it = json_object_iter_next(value, it)) {
    if ((*at)-- == 0) {
      (void)snprintf(what, capacity, "key %s", json_object_iter_key(it));
      return json_object_del(value, what + 4) == 0;
    }
    if (take_away(json_object_iter_value(it), at, what, capacity)) return true;
  }
  return false;
}

static void a_file_that_lost_any_part_is_refused(void **state) {
  (void)state;
  analysed n = analyse(network);
  laci_plan *plan = rotated_plan(&n), *again;
  char *text = text_of(plan), what[64];
  json_t *whole = json_loads(text, 0, NULL);
  long lost = 0;
  for (;; lost++) {
    long at = lost;
    json_t *damaged = json_deep_copy(whole);
    bool any = take_away(damaged, &at, what, sizeof what);
    char *left = json_dumps(damaged, 0);
    lac_error err = {0};
    lac_status st = any ? read_into_new_plan(&n, left, false, &again, &err) : LAC_OK;
    if (any) laci_plan_destroy(again);
    free(left);
    json_decref(damaged);
    if (!any) break;
    if (st != LAC_BAD_FILE) fail_msg("without its part %ld, %s: %s", lost, what, err.text);
  }
  assert_true(lost > 100);
  json_decref(whole);
  laci_free(text);
  laci_plan_destroy(plan);
  analysed_clear(&n);
}

/* ---- memory ---- */

static void *json_memory(size_t size) { return laci_alloc(size, 1); }

static void begin_failing(void) { json_set_alloc_funcs(json_memory, laci_free); }
static void end_failing(void) { json_set_alloc_funcs(malloc, free); }

static void an_allocation_that_fails_costs_the_whole_text(void **state) {
  (void)state;
  analysed n = analyse(network);
  laci_plan *plan = rotated_plan(&n);
  char *wanted = text_of(plan);
  long at = 1, failed = 0;
  begin_failing();
  for (bool pending = false; !pending; at++) {
    char *text = wanted;
    lac_error err = {0};
    laci_memory_fail_once(at);
    lac_status st = laci_permutation_text(plan, two_of_four, 7, &text, &err);
    pending = laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    if (st ? st != LAC_NO_MEMORY || text : !text || strcmp(text, wanted) != 0)
      fail_msg("allocation %ld: %s", at, st ? err.text : "another text");
    failed += st != LAC_OK;
    laci_free(text);
  }
  end_failing();
  assert_true(failed > 100);
  laci_free(wanted);
  laci_plan_destroy(plan);
  analysed_clear(&n);
}

static void an_allocation_that_fails_changes_no_order(void **state) {
  (void)state;
  analysed n = analyse(network);
  laci_plan *plan = rotated_plan(&n);
  char *text = text_of(plan);
  long at = 1, failed = 0;
  begin_failing();
  for (bool pending = false; !pending; at++) {
    laci_plan *again;
    lac_error err = {0};
    laci_memory_fail_once(at);
    lac_status st = read_into_new_plan(&n, text, false, &again, &err);
    pending = laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    if (!st && !same_orders(plan, again)) fail_msg("allocation %ld: other orders", at);
    failed += st != LAC_OK;
    laci_plan_destroy(again);
  }
  end_failing();
  assert_true(failed > 100);
  laci_free(text);
  laci_plan_destroy(plan);
  analysed_clear(&n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_comes_back),
      cmocka_unit_test(a_seed_of_all_bits_is_written_whole),
      cmocka_unit_test(a_file_that_lost_any_part_is_refused),
      cmocka_unit_test(an_allocation_that_fails_costs_the_whole_text),
      cmocka_unit_test(an_allocation_that_fails_changes_no_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
