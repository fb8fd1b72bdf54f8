/* SPDX-License-Identifier: Apache-2.0
 * Random small networks of all operators: the fast engine computes what the plain one does.
 *
 * Left out are networks where a rounding error may become a jump (Round, comparisons, ArgMax ...)
 * or grows without bound. LAC_RANDOM_GRAPHS sets how many, LAC_RANDOM_SEED where they start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/engine_check.h"
#include "support/random_ops.h"

#include "base/memory.h"
#include "graph/graph.h"
#include "support/random_net.h"
#include "tensor/buf.h"

enum { DEFAULT_GRAPHS = 250 };

static long number_from(const char *variable, long otherwise) {
  const char *text = getenv(variable);
  return text ? strtol(text, NULL, 10) : otherwise;
}

/** Operators whose results jump, those whose derivatives have poles, and those whose results have a
 * size that contents decide: a plan needs sizes. */
static bool jumps(const laci_graph *graph) {
  static const char *const types[] = {"Round",
                                      "Floor",
                                      "Ceil",
                                      "Sign",
                                      "Equal",
                                      "Greater",
                                      "GreaterOrEqual",
                                      "Less",
                                      "LessOrEqual",
                                      "ArgMax",
                                      "ArgMin",
                                      "TopK",
                                      "Hardmax",
                                      "Mod",
                                      "BitCast",
                                      "Cast",
                                      "CastLike",
                                      "QuantizeLinear",
                                      "IsInf",
                                      "IsNaN",
                                      "NonZero",
                                      "Tan",
                                      "Log",
                                      "Pow",
                                      "Acosh",
                                      "Atanh",
                                      "ReduceLogSum",
                                      "ThresholdedRelu",
                                      "Compress",
                                      "NonMaxSuppression",
                                      "Unique"};
  for (int n = 0; n < graph->n_nodes; n++) {
    for (size_t at = 0; at < sizeof types / sizeof *types; at++) {
      if (strcmp(graph->nodes[n].type, types[at]) == 0) return true;
    }
  }
  return false;
}

static void computes_random_networks_like_the_plain_engine(void **state) {
  (void)state;
  long n = number_from("LAC_RANDOM_GRAPHS", DEFAULT_GRAPHS), n_checked = 0;
  long first = number_from("LAC_RANDOM_SEED", 0);
  int n_ops;
  const laci_op *const *ops = drawn_ops(&n_ops);
  builder *m = malloc(sizeof *m);
  for (long seed = first; seed < first + n && m; seed++) {
    bool made = make_net(m, (uint64_t)seed, key_of(ops[seed % n_ops]).text);
    if (made && !jumps(m->graph) && m->graph->n_inputs + m->graph->n_outputs < MAX_PORTS) {
      check_as(m->text, (expectation){.tolerance = 1e-4, .plain = -1});
      n_checked++;
    }
    laci_graph_destroy(m->graph);
  }
  free(m);
  assert_true(n_checked > n / 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(computes_random_networks_like_the_plain_engine),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
