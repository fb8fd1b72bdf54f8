/* SPDX-License-Identifier: Apache-2.0
 * Orders that are recovered from two files alone, of weights that have few different values: many
 * channels hold the same as a set, and only what is known of the other axes tells them apart. */
#include "support/expect_classes.h"

#include "permute/orders.h"
#include "permute/plan.h"
#include "permute/search.h"
#include "prune/prune.h"

enum { TEXT_BYTES = 1 << 14, NETS = 80, SMALL_NETS = 200, MOST_CHANNELS = 4 };

typedef struct source {
  uint64_t seed, drawn;
} source;

static int draw(source *from, int below) {
  return (int)laci_rng_integer_below(47, from->seed, from->drawn++, (uint64_t)below);
}

/* ---- Networks ---- */

typedef struct writer {
  source *from;
  char *text;
  int n, at, width; /* at: of the last value */
  bool images;
} writer;

static void put(writer *w, const char *form, ...) {
  va_list values;
  va_start(values, form);
  w->n += vsnprintf(w->text + w->n, (size_t)(TEXT_BYTES - w->n), form, values);
  va_end(values);
}

/* A convolution or a product from the last value to v[next], which may be quantized. */
static void put_layer(writer *w, const char *name, int from, int to, int out) {
  const int groups =
      w->images && w->width % 2 == 0 && out % 2 == 0 && draw(w->from, 4) == 0 ? 2 : 1;
  const int taps = w->images ? 1 + 2 * draw(w->from, 2) : 1, pad = taps / 2;
  const bool bytes = draw(w->from, 3) == 0;
  if (w->images)
    put(w, "stored w%s %dx%dx%dx%d%s\n", name, out, w->width / groups, taps, taps,
        bytes ? " i8" : "");
  else put(w, "stored w%s %dx%d%s\n", name, w->width, out, bytes ? " i8" : "");
  if (bytes) {
    put(w, "stored s%s %d\nstored z%s %d i8\n", name, out, name, out);
    put(w, "q%s = DequantizeLinear(w%s, s%s, z%s) axis=%d\n", name, name, name, name, !w->images);
  }
  if (w->images)
    put(w, "v%d = Conv(v%d, %c%s) group=%d pads=%d,%d,%d,%d name=\"c%s\"\n", to, from,
        bytes ? 'q' : 'w', name, groups, pad, pad, pad, pad, name);
  else put(w, "v%d = MatMul(v%d, %c%s) name=\"c%s\"\n", to, from, bytes ? 'q' : 'w', name, name);
}

/* One layer after another, some added to what came before, some parallel and joined. */
static void write_net(source *from, int n_layers, int least, int spread, char text[TEXT_BYTES]) {
  writer w = {.from = from, .text = text, .images = draw(from, 2)};
  int at = 0;
  char name[16];
  w.width = 3 + draw(from, 6);
  put(&w, w.images ? "input v0 1x%dx3x3\n" : "input v0 4x%d\n", w.width);
  for (int l = 0; l < n_layers; l++) {
    const int kind = l + 1 < n_layers ? draw(from, 4) : 3;
    const int out = kind == 0 && l > 0 ? w.width : least + draw(from, spread);
    (void)snprintf(name, sizeof name, "%d", l);
    put_layer(&w, name, at, at + 1, out);
    if (kind == 0 && l > 0) put(&w, "v%d = Add(v%d, v%d)\n", at + 2, at + 1, at);
    else put(&w, "v%d = Relu(v%d)\n", at + 2, at + 1);
    w.width = out;
    at += 2;
    if (kind == 1) {
      (void)snprintf(name, sizeof name, "%db", l);
      put_layer(&w, name, at, at + 1, out);
      put(&w, "v%d = Concat(v%d, v%d) axis=1\n", at + 2, at, at + 1);
      w.width = 2 * out;
      at += 2;
    }
  }
  put(&w, "output v%d\n", at);
}

static void set(laci_stored *stored, int64_t at, int value) {
  uint8_t *bytes = (uint8_t *)(uintptr_t)stored->bytes;
  if (stored->dtype == LAC_DTYPE_F32) ((float *)(void *)bytes)[at] = (float)value;
  else bytes[at] = (uint8_t)(int8_t)value;
}

static int get(const laci_stored *stored, int64_t at) {
  if (stored->dtype == LAC_DTYPE_F32) return (int)((const float *)(const void *)stored->bytes)[at];
  return (int8_t)stored->bytes[at];
}

/* n_values different ones, 0 the first of them; all scales are 1, zero points one or several. */
static void fill(laci_graph *graph, source *from, int n_values) {
  const int n_zeros = 1 + draw(from, 2) * 2;
  for (int s = 0; s < graph->n_stored; s++) {
    laci_stored *stored = &graph->stored[s];
    for (int64_t e = 0; e < laci_shape_count(&stored->shape); e++) {
      if (stored->name[0] == 's') set(stored, e, 1);
      else if (stored->name[0] == 'z') set(stored, e, draw(from, n_zeros));
      else {
        const int v = draw(from, n_values);
        set(stored, e, v % 2 ? v / 2 + 1 : -v / 2);
      }
    }
  }
}

typedef struct both {
  analysed original, changed;
  laci_pruning *pruning; /* of the original, to explain the changed one */
} both;

static laci_budget no_limit = {.limit = UINT64_MAX};

static void both_init(both *b, source *from, const char *text, int n_values, bool masked) {
  const laci_prune_options options = {.pattern = {2, 4},
                                      .permute = true,
                                      .mask = masked,
                                      .search = {.effort = LACI_EFFORT_FAST},
                                      .budget = &no_limit};
  const source before = *from;
  laci_graph *graphs[2];
  laci_pruning *made;
  lac_error err = {0};
  for (int i = 0; i < 2; i++) {
    *from = before;
    if (net_read(text, &graphs[i], &err)) fail_msg("%s", err.text);
    fill(graphs[i], from, n_values);
  }
  b->original = analyse_graph(graphs[0]);
  b->changed = analyse_graph(graphs[1]);
  if (laci_prune(b->changed.a, &options, NULL, &made, &err)) fail_msg("%s\n%s", err.text, text);
  laci_pruning_commit(made, graphs[1]);
  laci_pruning_destroy(made);
  if (laci_pruning_create(b->original.a, options.pattern, &b->pruning, &err))
    fail_msg("%s", err.text);
}

static void both_clear(both *b) {
  laci_pruning_destroy(b->pruning);
  analysed_clear(&b->changed);
  analysed_clear(&b->original);
}

/* ---- Tests ---- */

static void finds_the_order_of_what_was_pruned_from_weights_of_few_values(void **state) {
  (void)state;
  char text[TEXT_BYTES];
  int n_moved = 0;
  for (int n = 0; n < NETS; n++) {
    source from = {.seed = (uint64_t)n};
    both b;
    lac_error err = {0};
    write_net(&from, 2 + draw(&from, 4), 4, 28, text);
    const int n_values = 2 + draw(&from, 7);
    both_init(&b, &from, text, n_values, n % 4 > 0);
    if (laci_pruning_find_orders(b.pruning, b.changed.graph, &err))
      fail_msg("network %d of %d values: %s\n%s", n, n_values, err.text, text);
    bool moved = false;
    for (int g = 0; g < b.original.a->n_groups; g++)
      moved |= laci_plan_moves_channels(b.pruning->plan, g);
    n_moved += moved;
    both_clear(&b);
  }
  assert_true(n_moved > NETS / 2);
}

static void refuses_a_kept_weight_that_is_none_of_the_originals(void **state) {
  (void)state;
  char text[TEXT_BYTES];
  for (int n = 0; n < NETS / 4; n++) {
    source from = {.seed = (uint64_t)n};
    both b;
    lac_error err = {0};
    write_net(&from, 2 + draw(&from, 4), 4, 28, text);
    both_init(&b, &from, text, 2 + draw(&from, 7), true);
    laci_graph *graph = b.changed.graph;
    laci_stored *stored;
    do stored = &graph->stored[draw(&from, graph->n_stored)];
    while (stored->name[0] != 'w');
    set(stored, draw(&from, (int)laci_shape_count(&stored->shape)), 17);
    assert_int_equal(laci_pruning_find_orders(b.pruning, graph, &err), LAC_PROOF_FAILED);
    assert_true(strlen(err.text) > 10);
    both_clear(&b);
  }
}

static void ends_with_no_memory_or_as_without_failures(void **state) {
  (void)state;
  char text[TEXT_BYTES];
  for (int n = 0; n < 6; n++) {
    source from = {.seed = (uint64_t)n};
    both b;
    write_net(&from, 3, 8, 8, text);
    both_init(&b, &from, text, 2, true);
    lac_status st = LAC_NO_MEMORY;
    for (long at = 1; st; at += 1 + at / 8) {
      laci_pruning *pruning;
      lac_error err = {0};
      assert_int_equal(laci_pruning_create(b.original.a, (laci_pattern){2, 4}, &pruning, &err),
                       LAC_OK);
      laci_memory_fail_from(at);
      st = laci_pruning_find_orders(pruning, b.changed.graph, &err);
      if (laci_memory_is_failure_pending()) assert_int_equal(st, LAC_OK);
      else assert_int_equal(st, LAC_NO_MEMORY);
      laci_memory_fail_from(0);
      laci_pruning_destroy(pruning);
    }
    both_clear(&b);
  }
}

/* ---- Against all orders ---- */

static bool next_order(int32_t *order, int n) {
  int i = n - 2, k = n - 1;
  while (i >= 0 && order[i] > order[i + 1]) i--;
  for (int a = i + 1, z = n - 1; a < z; a++, z--) {
    const int32_t kept = order[a];
    order[a] = order[z];
    order[z] = kept;
  }
  if (i < 0) return false;
  for (k = i + 1; order[k] < order[i];) k++;
  const int32_t kept = order[i];
  order[i] = order[k];
  order[k] = kept;
  return true;
}

/* Is the changed tensor the old one in this order, with zero points in some places? */
static bool fits(const both *b, const laci_plan *plan, int s) {
  const laci_stored *old = &b->original.graph->stored[s], *fresh = &b->changed.graph->stored[s];
  const laci_value_orders *orders = &plan->orders.values[old->value];
  const int64_t n = laci_shape_count(&old->shape);
  const laci_weight_view *view = NULL;
  lac_error err = {0};
  int32_t *from = laci_alloc((size_t)n, sizeof *from), *at = laci_alloc((size_t)n, sizeof *at);
  assert_true(from && at);
  for (int64_t e = 0; e < n; e++) from[e] = (int32_t)e;
  assert_int_equal(laci_reorder(&old->shape, sizeof *from, orders, from, at, &err), LAC_OK);
  for (int l = 0; l < b->original.a->n_layers; l++) {
    if (b->original.a->layers[l].stored == s) view = &b->original.a->layers[l].view;
  }
  bool fit = true;
  for (int64_t e = 0; e < n && fit; e++) {
    const bool zeros = view && view->zero && view->n_scales > 0;
    const double zero = zeros ? view->zero[laci_scale_index_of(view, at[e])] : 0;
    fit = get(old, at[e]) == get(fresh, e) || (view && get(fresh, e) == zero);
  }
  laci_free(from);
  laci_free(at);
  return fit;
}

static bool all_fit(both *b, laci_plan *plan) {
  lac_error err = {0};
  bool fit = true;
  assert_int_equal(laci_plan_make_value_orders(plan, &err), LAC_OK);
  for (int s = 0; s < b->original.graph->n_stored && fit; s++) fit = fits(b, plan, s);
  return fit;
}

static bool some_order_fits(both *b) {
  const laci_analysis *a = b->original.a;
  laci_plan *plan;
  lac_error err = {0};
  assert_int_equal(laci_plan_create(a, &plan, &err), LAC_OK);
  bool fit = all_fit(b, plan), more = true;
  while (!fit && more) {
    more = false;
    for (int g = 0; g < a->n_groups && !more; g++)
      more = !a->groups[g].frozen && next_order(plan->found[g].order, a->groups[g].n_channels);
    fit = more && all_fit(b, plan);
  }
  laci_plan_destroy(plan);
  return fit;
}

/* An element takes another's place, a weight of another value, or two rows are exchanged. */
static void spoil(laci_graph *graph, source *from) {
  laci_stored *stored;
  do stored = &graph->stored[draw(from, graph->n_stored)];
  while (stored->name[0] == 's');
  const int n = (int)laci_shape_count(&stored->shape);
  const int a = draw(from, n), z = draw(from, n), kept = get(stored, a), kind = draw(from, 3);
  const int row = n / (int)stored->shape.dims[0];
  if (kind == 0) set(stored, a, draw(from, 3) - 1);
  else if (kind == 1) {
    set(stored, a, get(stored, z));
    set(stored, z, kept);
  } else {
    for (int e = 0; e < row; e++) {
      const int x = a / row * row + e, y = z / row * row + e, was = get(stored, x);
      set(stored, x, get(stored, y));
      set(stored, y, was);
    }
  }
}

static bool is_small(const laci_analysis *a) {
  double n = 1;
  for (int g = 0; g < a->n_groups; g++) {
    for (int c = 2; !a->groups[g].frozen && c <= a->groups[g].n_channels; c++) n *= c;
  }
  return n < 1000;
}

static void says_what_trying_all_orders_says(void **state) {
  (void)state;
  char text[TEXT_BYTES];
  int n_fit = 0, n_tried = 0;
  for (int n = 0; n < SMALL_NETS; n++) {
    source from = {.seed = 1000 + (uint64_t)n};
    both b;
    lac_error err = {0};
    write_net(&from, 2 + draw(&from, 2), 2, MOST_CHANNELS - 1, text);
    both_init(&b, &from, text, 2 + draw(&from, 3), n % 3 > 0);
    if (is_small(b.original.a)) {
      spoil(b.changed.graph, &from);
      const bool want = some_order_fits(&b);
      const lac_status got = laci_pruning_find_orders(b.pruning, b.changed.graph, &err);
      if (got != (want ? LAC_OK : LAC_PROOF_FAILED))
        fail_msg("network %d: some order fits: %d; got %s\n%s", n, want, err.text, text);
      n_fit += want;
      n_tried++;
    }
    both_clear(&b);
  }
  assert_true(n_tried > SMALL_NETS / 2);
  assert_true(n_fit > n_tried / 10 && n_fit < n_tried * 9 / 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_the_order_of_what_was_pruned_from_weights_of_few_values),
      cmocka_unit_test(refuses_a_kept_weight_that_is_none_of_the_originals),
      cmocka_unit_test(says_what_trying_all_orders_says),
      cmocka_unit_test(ends_with_no_memory_or_as_without_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
