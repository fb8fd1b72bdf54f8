/* SPDX-License-Identifier: Apache-2.0
 * Pruning by several processes, which are threads here: orders, weights, masks and figures are
 * those of one process, byte for byte, and all end alike. */
#include "base/log.h"
#include "support/expect_classes.h"

#include "lacuna/context.h"
#include "permute/plan.h"
#include "permute/plan_share.h"
#include "permute/search.h"
#include "prune/prune.h"
#include "support/group_threads.h"

enum { MOST = 5, TEXT_BYTES = 1 << 14 };

static const int sizes[] = {1, 2, 3, 5};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

/* ---- Networks ---- */

static int draw(uint64_t seed, int *at, int below) {
  return (int)laci_rng_integer_below(31, seed, (uint64_t)(*at)++, (uint64_t)below);
}

/** Convolutions one after the other: some parallel and joined, where blocks hold channels of both,
 * some added to what came before. */
static void write_net(uint64_t seed, char text[TEXT_BYTES]) {
  int at = 0, n = 0, width = 4 + draw(seed, &at, 20), n_layers = 3 + draw(seed, &at, 10);
  n += sprintf(text + n, "input x 1x3x4x4\nstored w0 %dx3x1x1\nv0 = Conv(x, w0) name=\"c0\"\n",
               width);
  for (int l = 1; l <= n_layers; l++) {
    int kind = draw(seed, &at, 4), other = 4 + draw(seed, &at, 28);
    if (kind == 0) {
      int mine = 3 + draw(seed, &at, 9);
      n += sprintf(text + n,
                   "stored w%d 6x%dx1x1\na%d = Conv(v%d, w%d) name=\"c%d\"\nstored u%d %dx%dx1x1\n"
                   "b%d = Conv(v%d, u%d) name=\"d%d\"\nv%d = Concat(a%d, b%d) axis=1\n",
                   l, width, l, l - 1, l, l, l, mine, width, l, l - 1, l, l, l, l, l);
      width = 6 + mine;
    } else if (kind == 1) {
      n += sprintf(text + n,
                   "stored w%d %dx%dx3x3\na%d = Conv(v%d, w%d) pads=1,1,1,1 name=\"c%d\"\n"
                   "v%d = Add(a%d, v%d)\n",
                   l, width, width, l, l - 1, l, l, l, l, l - 1);
    } else {
      n += sprintf(text + n, "stored w%d %dx%dx1x1\na%d = Conv(v%d, w%d) name=\"c%d\"\n", l, other,
                   width, l, l - 1, l, l);
      n += sprintf(text + n, "v%d = Relu(a%d)\n", l, l);
      width = other;
    }
  }
  (void)sprintf(text + n, "output v%d\n", n_layers);
}

/* ---- One process's part ---- */

typedef struct part {
  analysed net; /* its own: an analysis is for one thread */
  laci_prune_options options;
  laci_pruning *made;
  lac_context *context;
  bool stops; /* when the first progress is told */
} part;

static void stop(const char *what, int64_t done, int64_t total, void *context) {
  (void)done;
  (void)total;
  if (strcmp(what, "search") == 0) lac_context_interrupt(context, true);
}

static lac_status prune(lac_process_group *group, void *mine, lac_error *err) {
  part *p = mine;
  laci_budget none = {.limit = UINT64_MAX};
  lac_context *before = laci_context_enter(p->context);
  if (p->stops) lac_context_set_progress(p->context, stop, p->context);
  p->options.comm = laci_process_group_comm(group);
  p->options.budget = &none;
  lac_status st = laci_prune(p->net.a, &p->options, NULL, &p->made, err);
  (void)laci_context_enter(before);
  return st;
}

static const laci_prune_options usual = {.pattern = {2, 4},
                                         .permute = true,
                                         .mask = true,
                                         .verify = true,
                                         .search = {.effort = LACI_EFFORT_NORMAL}};

typedef struct crew {
  part parts[MOST];
  group_member members[MOST];
  int n;
} crew;

static void crew_init(crew *c, int n, const char *text) {
  *c = (crew){.n = n};
  for (int k = 0; k < n; k++) {
    c->parts[k] = (part){.net = analyse(text), .options = usual};
    assert_int_equal(lac_context_create(&c->parts[k].context, NULL), LAC_OK);
  }
}

static void crew_run(crew *c) {
  void *mine[MOST];
  for (int k = 0; k < c->n; k++) mine[k] = &c->parts[k];
  group_threads_run(c->n, prune, mine, c->members);
}

static void crew_clear(crew *c) {
  for (int k = 0; k < c->n; k++) {
    laci_pruning_destroy(c->parts[k].made);
    lac_context_destroy(c->parts[k].context);
    analysed_clear(&c->parts[k].net);
  }
}

/* ---- What is the same ---- */

static void check_found(const laci_search_result *got, const laci_search_result *want,
                        int n_channels) {
  assert_memory_equal(got->order, want->order, (size_t)n_channels * sizeof *want->order);
  assert_memory_equal(&got->kept_identity, &want->kept_identity, 3 * sizeof(double));
  assert_int_equal(got->iterations, want->iterations);
  assert_int_equal(got->proven, want->proven);
  if (want->strategy) assert_string_equal(got->strategy, want->strategy);
  else assert_null(got->strategy);
}

static void check_verification(const laci_pruning_verification *got,
                               const laci_pruning_verification *want) {
  assert_int_equal(got->verified, want->verified);
  assert_true(got->found.max_abs_error == want->found.max_abs_error);
  assert_true(got->found.worst_ratio == want->found.worst_ratio);
  assert_int_equal(got->found.n_compared, want->found.n_compared);
  assert_string_equal(got->found.reason, want->found.reason);
  if (want->found.engine) assert_string_equal(got->found.engine, want->found.engine);
  else assert_null(got->found.engine);
}

static void check_same(const laci_pruning *got, const laci_pruning *want) {
  const laci_analysis *a = want->analysis;
  for (int g = 0; g < a->n_groups; g++) {
    check_found(&got->plan->found[g], &want->plan->found[g], a->groups[g].n_channels);
  }
  for (int s = 0; s < a->graph->n_stored; s++) {
    assert_int_equal(got->weights[s] != NULL, want->weights[s] != NULL);
    if (!want->weights[s]) continue;
    assert_memory_equal(got->weights[s], want->weights[s], a->graph->stored[s].size_bytes);
  }
  assert_int_equal(got->n_masks, want->n_masks);
  for (int k = 0; k < want->n_masks; k++) {
    assert_int_equal(got->masks[k].stored, want->masks[k].stored);
    assert_memory_equal(got->masks[k].bits, want->masks[k].bits,
                        (size_t)(want->masks[k].count + 7) / 8);
  }
  for (int l = 0; l < a->n_layers; l++) {
    assert_memory_equal(&got->layers[l].kept_identity, &want->layers[l].kept_identity,
                        3 * sizeof(double));
    assert_int_equal(got->layers[l].n_zeros, want->layers[l].n_zeros);
  }
  check_verification(&got->verification, &want->verification);
  assert_int_equal(got->interrupted, want->interrupted);
}

static laci_pruning *prune_alone(const analysed *n) {
  laci_budget none = {.limit = UINT64_MAX};
  laci_prune_options options = usual;
  laci_pruning *made;
  lac_error err = {0};
  options.budget = &none;
  if (laci_prune(n->a, &options, NULL, &made, &err)) fail_msg("%s", err.text);
  return made;
}

static void any_number_of_processes_finds_the_same(void **state) {
  (void)state;
  int n_searched = 0, n_moved = 0;
  for (uint64_t seed = 0; seed < 8; seed++) {
    char text[TEXT_BYTES];
    write_net(seed, text);
    analysed n = analyse(text);
    laci_pruning *alone = prune_alone(&n);
    n_searched += n.a->n_searchable;
    for (int g = 0; g < n.a->n_searchable; g++) n_moved += laci_plan_moves_channels(alone->plan, g);
    for (int i = 0; i < N_SIZES; i++) {
      crew c;
      crew_init(&c, sizes[i], text);
      crew_run(&c);
      for (int k = 0; k < c.n; k++) {
        if (c.members[k].status) fail_msg("%s\n%s", c.members[k].err.text, text);
        assert_int_equal(c.members[k].ended, 0);
        check_same(c.parts[k].made, alone);
      }
      crew_clear(&c);
    }
    laci_pruning_destroy(alone);
    analysed_clear(&n);
  }
  assert_true(n_searched > 35);
  assert_true(n_moved > 20);
}

/* ---- Who searches what ---- */

static void the_most_expensive_go_to_who_has_least(void **state) {
  (void)state;
  const double cost[] = {1, 5, 3, 3, 2, 0};
  const int of_two[] = {1, 0, 1, 1, 0, 0}, of_eight[] = {4, 0, 1, 2, 3, 5};
  int owner[6];
  assert_int_equal(laci_plan_assign_owners(cost, 6, 1, owner, NULL), LAC_OK);
  for (int k = 0; k < 6; k++) assert_int_equal(owner[k], 0);
  assert_int_equal(laci_plan_assign_owners(cost, 6, 2, owner, NULL), LAC_OK);
  for (int k = 0; k < 6; k++) assert_int_equal(owner[k], of_two[k]);
  assert_int_equal(laci_plan_assign_owners(cost, 6, 8, owner, NULL), LAC_OK);
  for (int k = 0; k < 6; k++) assert_int_equal(owner[k], of_eight[k]);
  assert_int_equal(laci_plan_assign_owners(cost, 0, 3, owner, NULL), LAC_OK);
}

/* ---- All end alike ---- */

static void check_failed(const crew *c, lac_status status, const char *text) {
  for (int k = 0; k < c->n; k++) {
    assert_int_equal(c->members[k].status, status);
    assert_string_equal(c->members[k].err.text, text);
    assert_null(c->parts[k].made);
    assert_int_equal(c->members[k].ended, 0);
  }
}

static void another_network_or_option_is_noticed(void **state) {
  (void)state;
  static const char wanted[] =
      "process 2: its network or options are not those of process 0: wanted the same file and "
      "options everywhere";
  char text[TEXT_BYTES];
  write_net(3, text);
  for (int what = 0; what < 3; what++) {
    crew c;
    crew_init(&c, 3, text);
    if (what == 0) {
      analysed_clear(&c.parts[2].net);
      *net_salt() = 1; /* other numbers */
      c.parts[2].net = analyse(text);
      *net_salt() = 0;
    }
    if (what == 1) c.parts[2].options.search.seed = 7;
    if (what == 2) c.parts[2].options.search.effort = LACI_EFFORT_BEST;
    crew_run(&c);
    check_failed(&c, LAC_BAD_ARGUMENT, wanted);
    crew_clear(&c);
  }
}

static void a_failure_of_one_is_that_of_all(void **state) {
  (void)state;
  char text[TEXT_BYTES];
  write_net(4, text);
  for (int who = 0; who < 3; who++) {
    crew c;
    crew_init(&c, 3, text);
    const analysed *bad = &c.parts[who].net;
    for (int l = 0; l < bad->a->n_layers; l++) {
      laci_stored *stored = &bad->graph->stored[bad->a->layers[l].stored];
      float *weight = (float *)(void *)laci_stored_writable_bytes(stored);
      weight[1] = NAN;
    }
    crew_run(&c);
    for (int k = 0; k < 3; k++) {
      assert_int_equal(c.members[k].status, LAC_BAD_VALUE);
      assert_string_equal(c.members[k].err.text, c.members[0].err.text);
      assert_null(c.parts[k].made);
    }
    assert_int_equal(strncmp(c.members[0].err.text, "process ", 8) == 0, who > 0);
    crew_clear(&c);
  }
}

static void an_interrupt_before_the_search_ends_all(void **state) {
  (void)state;
  char text[TEXT_BYTES];
  write_net(5, text);
  crew c;
  crew_init(&c, 3, text);
  lac_context_interrupt(c.parts[1].context, true);
  crew_run(&c);
  check_failed(&c, LAC_INTERRUPTED, "process 1: interrupted before the search");
  crew_clear(&c);
}

static void an_interrupt_of_one_search_is_known_to_all(void **state) {
  (void)state;
  char text[TEXT_BYTES];
  write_net(6, text);
  crew c;
  crew_init(&c, 3, text);
  c.parts[1].stops = true;
  crew_run(&c);
  for (int k = 0; k < 3; k++) {
    if (c.members[k].status) fail_msg("%s", c.members[k].err.text);
    assert_true(c.parts[k].made->interrupted);
    check_same(c.parts[k].made, c.parts[0].made);
  }
  crew_clear(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_number_of_processes_finds_the_same),
      cmocka_unit_test(the_most_expensive_go_to_who_has_least),
      cmocka_unit_test(another_network_or_option_is_noticed),
      cmocka_unit_test(a_failure_of_one_is_that_of_all),
      cmocka_unit_test(an_interrupt_before_the_search_ends_all),
      cmocka_unit_test(an_interrupt_of_one_search_is_known_to_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
