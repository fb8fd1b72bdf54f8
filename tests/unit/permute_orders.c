/* SPDX-License-Identifier: Apache-2.0
 * Reordering a tensor against the definition, element by element: one axis, several, axes taken
 * together, grouped weights, and orders that do not fit. */
#include "permute/orders.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

enum { MAX_COUNT = 4096 };

static const int32_t *shuffled(laci_arena *arena, int64_t count, int64_t part, uint64_t seed) {
  int32_t *order = laci_arena_alloc(arena, (size_t)count + 1, sizeof *order);
  assert_non_null(order);
  for (int64_t i = 0; i < count; i++) order[i] = (int32_t)i;
  for (int64_t begin = 0; begin < count; begin += part) {
    for (int64_t i = part - 1; i > 0; i--) {
      int64_t j =
          (int64_t)laci_rng_integer_below(seed, (uint64_t)begin, (uint64_t)i, (uint64_t)i + 1);
      int32_t kept = order[begin + i];
      order[begin + i] = order[begin + j];
      order[begin + j] = kept;
    }
  }
  return order;
}

/* The old place of new element p, straight from the header's definition. */
static int64_t old_place(const laci_shape *shape, const laci_value_orders *orders, int64_t p) {
  int64_t now[LACI_MAX_RANK], old[LACI_MAX_RANK], left = p;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    now[axis] = old[axis] = left % shape->dims[axis];
    left /= shape->dims[axis];
  }
  for (int i = 0; i < orders->n; i++) {
    const laci_axis_order *item = &orders->items[i];
    if (item->n_groups > 0) {
      int axis = item->axes[0];
      int64_t size = shape->dims[axis];
      int64_t group = now[item->row_axis] / (shape->dims[item->row_axis] / item->n_groups);
      old[axis] = item->order[group * size + now[axis]] - group * size;
      continue;
    }
    int64_t index = 0;
    for (int k = 0; k < item->n_axes; k++)
      index = index * shape->dims[item->axes[k]] + now[item->axes[k]];
    index = item->order[index];
    for (int k = item->n_axes - 1; k >= 0; k--) {
      old[item->axes[k]] = index % shape->dims[item->axes[k]];
      index /= shape->dims[item->axes[k]];
    }
  }
  int64_t at = 0;
  for (int axis = 0; axis < shape->rank; axis++) at = at * shape->dims[axis] + old[axis];
  return at;
}

static void check_case(const laci_shape *shape, const laci_value_orders *orders) {
  static const size_t sizes[] = {1, 2, 4, 8, 16};
  static uint8_t in[MAX_COUNT * 16 + 1], out[MAX_COUNT * 16 + 1];
  int64_t count = laci_shape_count(shape);
  assert_true(count <= MAX_COUNT);
  for (size_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)laci_rng(1, 2, i);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    size_t bytes = sizes[s];
    uint8_t *to = out + 1; /* not aligned, as bytes in a file */
    memset(out, 0xee, sizeof out);
    assert_int_equal(laci_reorder(shape, bytes, orders, in + 1, to, NULL), LAC_OK);
    for (int64_t p = 0; p < count; p++) {
      int64_t from = old_place(shape, orders, p);
      assert_memory_equal(to + (size_t)p * bytes, in + 1 + (size_t)from * bytes, bytes);
    }
    assert_int_equal(out[0], 0xee);
    assert_int_equal(to[(size_t)count * bytes], 0xee);
  }
}

typedef struct order_case {
  const char *comment;
  int rank;
  int64_t dims[4];
  int n;
  laci_axis_order items[3]; /* order and count are filled in */
} order_case;

static const order_case cases[] = {
    {"nothing moves", 2, {3, 4}, 0, {{0}}},
    {"scalar", 0, {0}, 0, {{0}}},
    {"bias", 1, {7}, 1, {{.n_axes = 1, .axes = {0}}}},
    {"output channels: long runs", 4, {6, 5, 3, 3}, 1, {{.n_axes = 1, .axes = {0}}}},
    {"input channels: short runs", 4, {6, 5, 3, 3}, 1, {{.n_axes = 1, .axes = {1}}}},
    {"columns: single elements", 2, {6, 17}, 1, {{.n_axes = 1, .axes = {1}}}},
    {"both axes", 2, {30, 20}, 2, {{.n_axes = 1, .axes = {1}}, {.n_axes = 1, .axes = {0}}}},
    {"three axes, one held",
     4,
     {3, 4, 5, 6},
     3,
     {{.n_axes = 1, .axes = {3}}, {.n_axes = 1, .axes = {0}}, {.n_axes = 1, .axes = {1}}}},
    {"heads x size", 3, {4, 3, 5}, 1, {{.n_axes = 2, .axes = {0, 1}}}},
    {"axes taken together, apart and reversed",
     4,
     {4, 3, 5, 2},
     2,
     {{.n_axes = 2, .axes = {3, 0}}, {.n_axes = 1, .axes = {1}}}},
    {"grouped, with its rows",
     4,
     {8, 3, 2, 2},
     2,
     {{.n_axes = 1, .axes = {1}, .n_groups = 4, .row_axis = 0},
      {.n_axes = 1, .axes = {0}, .n_groups = 0}}},
    {"grouped, rows innermost",
     4,
     {2, 2, 3, 8},
     2,
     {{.n_axes = 1, .axes = {2}, .n_groups = 4, .row_axis = 3}, {.n_axes = 1, .axes = {3}}}},
    {"an empty tensor", 2, {4, 0}, 1, {{.n_axes = 1, .axes = {0}}}},
    {"more runs than are fetched at once", 2, {3, 1301}, 1, {{.n_axes = 1, .axes = {1}}}},
};

static void reorders_as_defined(void **state) {
  (void)state;
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    laci_arena arena = {0};
    laci_shape shape = laci_shape_of(cases[c].rank, cases[c].dims);
    laci_axis_order items[3];
    memcpy(items, cases[c].items, sizeof items);
    for (int i = 0; i < cases[c].n; i++) {
      items[i].count = items[i].n_groups > 0 ? items[i].n_groups : 1;
      for (int k = 0; k < items[i].n_axes; k++) items[i].count *= shape.dims[items[i].axes[k]];
      int64_t part = items[i].n_groups > 0 ? shape.dims[items[i].axes[0]] : items[i].count;
      items[i].order = shuffled(&arena, items[i].count, part, c);
    }
    laci_value_orders orders = {.n = cases[c].n, .items = items};
    check_case(&shape, &orders);
    laci_arena_clear(&arena);
  }
}

static void tells_identities_from_moves(void **state) {
  (void)state;
  const int32_t still[] = {0, 1, 2}, moved[] = {0, 2, 1};
  laci_axis_order items[] = {{.n_axes = 1, .axes = {0}, .count = 3, .order = still},
                             {.n_axes = 1, .axes = {1}, .count = 3, .order = moved}};
  laci_value_orders none = {0}, first = {.n = 1, .items = items}, both = {.n = 2, .items = items};
  assert_true(laci_orders_are_identity(&none));
  assert_true(laci_orders_are_identity(&first));
  assert_false(laci_orders_are_identity(&both));
}

static void an_inverse_brings_the_bytes_back(void **state) {
  (void)state;
  laci_arena arena = {0};
  laci_shape shape = laci_shape_of(3, (int64_t[]){5, 12, 4});
  const int32_t *order = shuffled(&arena, 12, 12, 9);
  int32_t inverse[12];
  for (int i = 0; i < 12; i++) inverse[order[i]] = i;
  laci_axis_order item = {.n_axes = 1, .axes = {1}, .count = 12, .order = order};
  laci_axis_order back = item;
  back.order = inverse;
  int16_t in[240], there[240], again[240];
  for (int i = 0; i < 240; i++) in[i] = (int16_t)(i * 7);
  assert_int_equal(laci_reorder(&shape, 2, &(laci_value_orders){1, &item}, in, there, NULL),
                   LAC_OK);
  assert_int_equal(laci_reorder(&shape, 2, &(laci_value_orders){1, &back}, there, again, NULL),
                   LAC_OK);
  assert_memory_not_equal(in, there, sizeof in);
  assert_memory_equal(in, again, sizeof in);
  laci_arena_clear(&arena);
}

static void refuses_orders_that_do_not_fit(void **state) {
  (void)state;
  static const int32_t swap[] = {1, 0, 2, 3}, twice[] = {0, 0, 1, 2}, far[] = {0, 1, 2, 4},
                       below[] = {-1, 0, 1, 2}, crossing[] = {2, 1, 0, 3};
  static const struct {
    const char *comment;
    int n;
    laci_axis_order items[2];
  } wrong[] = {
      {"too short", 1, {{.n_axes = 1, .axes = {0}, .count = 3, .order = swap}}},
      {"no such axis", 1, {{.n_axes = 1, .axes = {2}, .count = 4, .order = swap}}},
      {"no axis at all", 1, {{.n_axes = 0, .count = 1, .order = swap}}},
      {"a place used twice", 1, {{.n_axes = 1, .axes = {0}, .count = 4, .order = twice}}},
      {"a place outside", 1, {{.n_axes = 1, .axes = {0}, .count = 4, .order = far}}},
      {"a place below", 1, {{.n_axes = 1, .axes = {0}, .count = 4, .order = below}}},
      {"an axis with two orders",
       2,
       {{.n_axes = 1, .axes = {0}, .count = 4, .order = swap},
        {.n_axes = 1, .axes = {0}, .count = 4, .order = swap}}},
      {"rows on the grouped axis",
       1,
       {{.n_axes = 1, .axes = {1}, .count = 4, .order = swap, .n_groups = 2, .row_axis = 1}}},
      {"rows not divisible",
       1,
       {{.n_axes = 1, .axes = {1}, .count = 6, .order = swap, .n_groups = 3, .row_axis = 0}}},
      {"across groups",
       1,
       {{.n_axes = 1, .axes = {1}, .count = 4, .order = crossing, .n_groups = 2, .row_axis = 0}}},
  };
  laci_shape shape = laci_shape_of(2, (int64_t[]){4, 2});
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    laci_axis_order items[2];
    memcpy(items, wrong[i].items, sizeof items);
    float in[8] = {0}, out[8];
    lac_error err = {0};
    lac_status st = laci_reorder(&shape, 4, &(laci_value_orders){wrong[i].n, items}, in, out, &err);
    if (st != LAC_INTERNAL || !err.text[0])
      fail_msg("%s: %s", wrong[i].comment, lac_status_text(st));
  }
  laci_shape unknown = laci_shape_unknown();
  float in = 0, out;
  assert_int_equal(laci_reorder(&unknown, 4, NULL, &in, &out, NULL), LAC_INTERNAL);
}

static void fails_cleanly_without_memory(void **state) {
  (void)state;
  const int32_t swap[] = {1, 0, 2, 3};
  laci_axis_order items[] = {{.n_axes = 1, .axes = {0}, .count = 4, .order = swap},
                             {.n_axes = 1, .axes = {1}, .count = 4, .order = swap}};
  laci_shape shape = laci_shape_of(2, (int64_t[]){4, 4});
  float in[16] = {0}, out[16];
  for (long n = 1; n < 100; n++) {
    laci_memory_fail_from(n);
    lac_status st = laci_reorder(&shape, 4, &(laci_value_orders){2, items}, in, out, NULL);
    laci_memory_fail_from(0);
    if (!st) {
      assert_true(n > 1);
      return;
    }
    assert_int_equal(st, LAC_NO_MEMORY);
  }
  fail_msg("never succeeded");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reorders_as_defined),
      cmocka_unit_test(tells_identities_from_moves),
      cmocka_unit_test(an_inverse_brings_the_bytes_back),
      cmocka_unit_test(refuses_orders_that_do_not_fit),
      cmocka_unit_test(fails_cleanly_without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
