/* SPDX-License-Identifier: Apache-2.0
 * Checks values during a run: is every number finite, and no larger than plan/finite.h allows?
 *
 * The check of an element is a load, a mask, a subtraction and an or: numbers that are too large,
 * infinite or NaN have larger bits than the bound. Inputs are checked before the first step, in the
 * caller's buffers. */
#include <stdatomic.h>
#include <string.h>

#include "engine/cpu/net_in.h"
#include "engine/cpu/plan/finite.h"
#include "cpu/pool.h"

enum { GRAIN = 1 << 15 }; /* number of floats that a thread checks at a time */

typedef struct check {
  const float *x;
  atomic_bool beyond;
} check;

static void check_element_range(int64_t begin, int64_t end, void *context) {
  check *l = context;
  const float most = (float)LACI_FINITE_CHECK_LIMIT;
  int32_t limit, any = 0;
  memcpy(&limit, &most, sizeof limit);
  for (int64_t at = begin; at < end; at++) {
    int32_t bits;
    memcpy(&bits, l->x + at, sizeof bits);
    any |= limit - (bits & INT32_MAX);
  }
  if (any < 0) atomic_store_explicit(&l->beyond, true, memory_order_relaxed);
}

static bool has_element_beyond_limit(laci_net *net, const float *x, int64_t n) {
  check l = {.x = x};
  laci_pool_for(net->pool, n, GRAIN, check_element_range, &l);
  return atomic_load_explicit(&l.beyond, memory_order_relaxed);
}

static lac_status run_value_check(laci_net *net, laci_net_step *step, lac_error *err) {
  const laci_net_tensor *t = &net->tensors[step->tensors[0]];
  (void)err;
  if (has_element_beyond_limit(net, laci_net_tensor_data(net, step->tensors[0]),
                               laci_shape_count(&t->shape))) {
    net->suspect = step->context;
  }
  return LAC_OK;
}

static void lower_value_check(laci_net *net, laci_checked_value *l) {
  static const laci_node node = {.name = "", .type = "look"};
  int tensor = laci_net_read_value(net, l->value);
  l->lowered = true;
  if (tensor < 0) return;
  if (!net->plan.graph->values[l->value].is_input) {
    tensor = laci_net_convert_to_dense(net, tensor, LACI_ELEMENT_F32);
    laci_net_step *step = laci_net_step_add_code(net, &node, run_value_check, 1, &tensor);
    if (!step) return;
    step->context = l;
    step->shown = tensor;
  }
  laci_net_note_read_done(net, l->value);
}

void laci_net_add_check_steps(laci_net *net) {
  for (int at = 0; at < net->plan.n_checked && !net->plan.status; at++) {
    laci_checked_value *l = &net->plan.checked[at];
    if (!l->lowered && net->plan.values[l->value].tensor >= 0) lower_value_check(net, l);
  }
}

void laci_net_mark_missing_checks(laci_net *net) {
  for (int at = 0; at < net->plan.n_checked; at++) {
    const laci_checked_value *l = &net->plan.checked[at];
    if (!l->lowered) net->plan.careless = net->plan.graph->values[l->value].name;
  }
}

void laci_net_check_inputs(laci_net *net, const void *const *inputs) {
  net->suspect = NULL;
  for (int at = 0; at < net->plan.n_checked; at++) {
    const laci_checked_value *l = &net->plan.checked[at];
    for (int port = 0; port < net->n_inputs && !net->suspect; port++) {
      if (net->plan.graph->inputs[port] != l->value) continue;
      const int64_t n = (int64_t)(net->inputs[port].size_bytes / sizeof(float));
      if (has_element_beyond_limit(net, inputs[port], n)) net->suspect = l;
    }
  }
}
