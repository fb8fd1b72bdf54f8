/* SPDX-License-Identifier: Apache-2.0
 * The verification on networks as tools export them: a right order of everything is verified on
 * both engines, and one exchange of two channels in one stored tensor (of a weight, a bias, a batch
 * norm, in one consumer of a group) is found by the fast engine alone as surely as by the plain
 * one. Networks are tests/fixtures/zoo, filled by the tool next to this test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/analyze.h"
#include "api/model/model_in.h"
#include "api/prune/job_in.h"
#include "base/rng.h"
#include "graph/graph.h"
#include "lacuna/model.h"
#include "lacuna/prune.h"
#include "permute/plan.h"
#include "permute/search.h"
#include "support/programs.h"
#include "tensor/buf.h"
#include "verify/verify.h"

enum { BREAKS = 6 }; /* tensors to be broken, spread over the network */

typedef struct network {
  char path[64];
  lac_model *model;
  laci_job job;
  const laci_graph *graph;
  const laci_analysis *analysis;
  laci_plan *plan;
} network;

static void must(lac_status st, const lac_error *err) {
  if (st) fail_msg("%s", err->text);
}

static void shuffle(int32_t *order, int n, uint64_t stream) {
  for (int i = n - 1; i > 0; i--) {
    int j = (int)laci_rng_integer_below(7, stream, (uint64_t)i, (uint64_t)i + 1);
    int32_t other = order[i];
    order[i] = order[j];
    order[j] = other;
  }
}

static network set_up(const char *name) {
  network n = {.path = "/tmp/lacuna_verify_XXXXXX"};
  lac_error err = {0};
  lac_options options = lac_options_default();
  int file = mkstemp(n.path);
  assert_true(file >= 0);
  (void)close(file);
  if (fill_network(name, n.path) != 0) fail_msg("%s", name);
  options.all_sizes = true;
  options.threads = 1;
  must(lac_model_load(n.path, NULL, &n.model, &err), &err);
  must(laci_job_open(n.model, &options, &n.job, &err), &err);
  n.graph = n.model->graph;
  n.analysis = n.job.analysis;
  must(laci_plan_create(n.analysis, &n.plan, &err), &err);
  for (int g = 0; g < n.analysis->n_groups; g++) {
    if (n.analysis->groups[g].frozen) continue;
    shuffle(n.plan->found[g].order, n.analysis->groups[g].n_channels, (uint64_t)g);
  }
  must(laci_plan_make_value_orders(n.plan, &err), &err);
  return n;
}

static void tear_down(network *n) {
  laci_plan_destroy(n->plan);
  laci_job_close(&n->job);
  lac_model_destroy(n->model);
  (void)unlink(n->path);
}

static lac_status verify(const network *n, laci_verify_engine engine, laci_verification *found,
                         lac_error *err) {
  laci_verify_options options = {.seed = 5, .tolerance = 1e-9, .engine = engine};
  return laci_verify(n->graph, &n->plan->orders, &options, NULL, found, err);
}

/* Zero points are all alike and stay what they are: an exchange of two is none. */
static bool can_be_broken(const network *n, const laci_stored *stored) {
  return !laci_orders_are_identity(&n->plan->orders.values[stored->value]) &&
         (laci_dtype_is_float(stored->dtype) || stored->shape.rank > 1);
}

/* Two channels of the tensor change places, and nowhere else. */
static void break_and_verify(network *n, laci_value_orders *orders, const char *name) {
  laci_axis_order *item = &orders->items[orders->n - 1];
  const int32_t *right = item->order;
  int32_t *wrong = malloc((size_t)item->count * sizeof *wrong);
  assert_non_null(wrong);
  memcpy(wrong, right, (size_t)item->count * sizeof *wrong);
  wrong[0] = right[1]; /* neighbours: in one convolution group, too */
  wrong[1] = right[0];
  item->order = wrong;
  laci_verify_engine engines[] = {LACI_VERIFY_CPU, LACI_VERIFY_PLAIN};
  for (int at = 0; at < 2; at++) {
    laci_verification found;
    lac_error err = {0};
    lac_status st = verify(n, engines[at], &found, &err);
    if (st != LAC_PROOF_FAILED) {
      fail_msg("%s: two channels exchanged, and the %s engine says: %s %s", name, found.engine,
               lac_status_text(st), err.text);
    }
  }
  item->order = right;
  free(wrong);
}

static void check_network(const char *name) {
  network n = set_up(name);
  laci_verification found;
  lac_error err = {0};
  must(verify(&n, LACI_VERIFY_CPU, &found, &err), &err);
  assert_string_equal(found.engine, "cpu");
  assert_int_equal(found.state, LACI_VERIFY_ALL);
  assert_true(found.worst_ratio <= 1e-9);
  assert_true(found.max_abs_error <= 1e-3 * found.max_abs_output);
  int n_compared = found.n_compared;
  must(verify(&n, LACI_VERIFY_PLAIN, &found, &err), &err);
  assert_int_equal(n_compared, found.n_compared); /* nothing is left out for speed */
  int n_moved = 0;
  for (int s = 0; s < n.graph->n_stored; s++) n_moved += can_be_broken(&n, &n.graph->stored[s]);
  assert_true(n_moved > 0);
  int step = n_moved / BREAKS + 1, seen = 0;
  for (int s = 0; s < n.graph->n_stored; s++) {
    const laci_stored *stored = &n.graph->stored[s];
    if (!can_be_broken(&n, stored) || seen++ % step != 0) continue;
    break_and_verify(&n, &n.plan->orders.values[stored->value], stored->name);
  }
  tear_down(&n);
}

static void residual_networks_are_verified_and_broken(void **state) {
  (void)state;
  check_network("resnet18_ts_dyn");
}

static void shuffled_channels_are_verified_and_broken(void **state) {
  (void)state;
  check_network("shufflenet_v2_x1_5_ts_dyn");
}

static void depthwise_layers_are_verified_and_broken(void **state) {
  (void)state;
  check_network("mobilenet_v2_keras");
}

static void quantized_networks_are_verified_and_broken(void **state) {
  (void)state;
  check_network("resnet20_qdq");
}

static void half_precision_is_verified_and_broken(void **state) {
  (void)state;
  check_network("resnet18_f16");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(residual_networks_are_verified_and_broken),
      cmocka_unit_test(shuffled_channels_are_verified_and_broken),
      cmocka_unit_test(depthwise_layers_are_verified_and_broken),
      cmocka_unit_test(quantized_networks_are_verified_and_broken),
      cmocka_unit_test(half_precision_is_verified_and_broken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
