/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a permutation file for one network: a plan whose orders are permutations, or one
 * error line. */
#include "fuzz/fuzz.h"
#include "permute/file.h"
#include "permute/plan.h"
#include "permute/search.h"
#include "support/expect_classes.h"
#include "tensor/buf.h"

static const char network[] =
    "input x 1x3x4x4\nstored w1 8x3x1x1\na = Conv(x, w1) name=\"c1\"\n"
    "stored w2 4x8x1x1\ny = Conv(a, w2) name=\"c2\"\noutput y\n";

static void read_as(const analysed *n, const char *text, bool invert) {
  laci_plan *plan = NULL;
  lac_error err = {0};
  require(laci_plan_create(n->a, &plan, &err) == LAC_OK);
  lac_status st = laci_permutation_read(plan, "order.json", text, invert, &err);
  require_one_line(st, &err);
  for (int g = 0; !st && g < n->a->n_groups; g++) {
    int size = n->a->groups[g].n_channels;
    for (int c = 0; c < size; c++) {
      require(plan->found[g].order[c] >= 0 && plan->found[g].order[c] < size);
    }
  }
  laci_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes) {
  static analysed net;
  if (!net.a) net = analyse(network); /* once a process */
  char *text = malloc(size_bytes + 1);
  require(text != NULL);
  if (size_bytes) memcpy(text, bytes, size_bytes);
  text[size_bytes] = '\0';
  read_as(&net, text, false);
  read_as(&net, text, true);
  free(text);
  return 0;
}
