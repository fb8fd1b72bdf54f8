/* SPDX-License-Identifier: Apache-2.0
 * A function that a graph writes as several operators (plan/fuse_function.c), as one step in any
 * layout: zeros stay zeros, so that padding between elements can be included. */
#include <string.h>

#include "engine/cpu/lower/float_pass.h"
#include "engine/cpu/lower/pointwise.h"
#include "engine/cpu/net_in.h"
#include "engine/cpu/onednn/onednn.h"

enum {
  GRAIN = 1 << 13,  /* number of floats that a thread computes at a time */
  AT_ONCE = 1 << 10 /* number of floats that stay in the first cache */
};

static void apply_function(const void *function, const float *x, int64_t n, float *y) {
  for (int64_t at = 0; at < n; at += AT_ONCE) {
    const int64_t each = n - at < AT_ONCE ? n - at : AT_ONCE;
    if (y != x) memcpy(y + at, x + at, (size_t)each * sizeof *y);
    laci_pointwise_apply_variant()(function, y + at, each);
  }
}

static const char *name_of_function(laci_pointwise_kind kind) {
  return kind == LACI_POINTWISE_GELU_ERF    ? "Gelu"
         : kind == LACI_POINTWISE_GELU_TANH ? "Gelu"
         : kind == LACI_POINTWISE_SWISH     ? "Swish"
                                            : "HardSwish";
}

static void lower_function_nodes(laci_net *net, const laci_fused *fused) {
  const int x = laci_net_make_whole_tensor(net, laci_net_read_value(net, fused->reads[0]));
  laci_pointwise *function = laci_plan_alloc(&net->plan, 1, sizeof *function);
  if (!function) return;
  (void)laci_lower_to_pointwise(&fused->posts[0].function, function);
  laci_net_add_float_pass(net, fused, x,
                          &(laci_float_pass){.compute = apply_function,
                                             .details = function,
                                             .what = name_of_function(function->kind),
                                             .grain = GRAIN});
}

const laci_implementation laci_implementations_function_nodes[] = {
    {"our kernel", LACI_FUSIBLE_FUNCTIONS, laci_can_lower_float_pass, lower_function_nodes},
    {.name = NULL},
};
