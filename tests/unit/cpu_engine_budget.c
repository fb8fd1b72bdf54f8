/* SPDX-License-Identifier: Apache-2.0
 * How much memory layers of Winograd's algorithm may take (native/choose/budget.c): of a network
 * that holds zeros, some are done by what takes less; of one that does not, all are as they were.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "support/engine_check.h"
#include "support/engine_plan.h"

enum { TEXT = 8192, N_BLOCKS = 12, NARROW = 192, WIDE = 512 };

/* Blocks of ResNet's kind. */
static void network(const char *weights, char *text) {
  size_t used = (size_t)snprintf(text, TEXT, "input x0 1x%dx14x14\n", WIDE);
  for (int at = 0; at < N_BLOCKS; at++) {
    used += (size_t)snprintf(text + used, TEXT - used,
                             "stored p%d %dx%dx1x1%s\nstored w%d %dx%dx3x3%s\n"
                             "stored q%d %dx%dx1x1%s\n",
                             at, NARROW, WIDE, weights, at, NARROW, NARROW, weights, at, WIDE,
                             NARROW, weights);
    used += (size_t)snprintf(text + used, TEXT - used,
                             "a%d = Conv(x%d, p%d)\nb%d = Relu(a%d)\n"
                             "c%d = Conv(b%d, w%d) pads=1,1,1,1\nd%d = Relu(c%d)\n"
                             "e%d = Conv(d%d, q%d)\nx%d = Relu(e%d)\n",
                             at, at, at, at, at, at, at, at, at, at, at, at, at, at + 1, at);
  }
  (void)snprintf(text + used, TEXT - used, "output x%d\n", N_BLOCKS);
}

static void weights_stay_below_the_limit(void **state) {
  const double each = NARROW * (9 * NARROW + 2 * WIDE) * sizeof(float), raw = N_BLOCKS * each;
  const double most = 1.85; /* and what is rounded up for such small layers */
  char text[TEXT];
  (void)state;
  network(" pruned", text);
  planned p = plan_text(text, (laci_engine_options){.threads = 1});
  const int n = planned_steps(p.engine, "winograd-3x3");
  const double bytes = (double)laci_engine_planned_memory(p.engine).weight_bytes;
  planned_clear(&p);
  if (laci_cpu_level_in_force() != LACI_CPU_AVX512)
    skip(); /* elsewhere there is no rule, or grouped rows take
                                                less */
  if (n == 0 || n == N_BLOCKS) fail_msg("%d layers of %d", n, N_BLOCKS);
  if (bytes > most * raw) fail_msg("%g times the bytes of the weights", bytes / raw);
}

static void others_keep_their_algorithm(void **state) {
  char text[TEXT];
  (void)state;
  network("", text);
  planned p = plan_text(text, (laci_engine_options){.threads = 1});
  const int n = planned_steps(p.engine, "winograd-3x3");
  planned_clear(&p);
  assert_int_equal(n, laci_cpu_level_in_force() == LACI_CPU_AVX2 ? N_BLOCKS : 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_stay_below_the_limit),
      cmocka_unit_test(others_keep_their_algorithm),
  };
  return cmocka_run_group_tests(tests, choose_one_table, NULL);
}
