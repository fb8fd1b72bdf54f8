/* SPDX-License-Identifier: Apache-2.0
 * AveragePool: the mean under the window; with count_include_pad = 1 the padding counts as zeros.
 * */
#include "graph/ops/shared/grad_in.h"
#include "graph/ops/shared/pool_in.h"
#include "graph/ops/shared/window_grad_in.h"

static void add_element(laci_pool_state *state, double x, int64_t at) {
  (void)at;
  state->value += x;
}

static double mean_without_padding(const laci_pool_state *state) {
  return state->n_inside > 0 ? state->value / (double)state->n_inside : 0;
}

static double mean_with_padding(const laci_pool_state *state) {
  return state->n_padded > 0 ? state->value / (double)state->n_padded : 0;
}

static lac_status eval(laci_eval *eval) {
  static const laci_pooling inside = {.step = add_element, .end = mean_without_padding};
  static const laci_pooling padded = {.step = add_element, .end = mean_with_padding};
  bool with_pad = laci_node_int(eval->node, "count_include_pad", 0) != 0;
  return laci_pooling_eval(eval, with_pad ? &padded : &inside, NULL);
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  laci_window_attrs attrs;
  laci_shape x = laci_gradient_shape_of_input(b, node, 0);
  lac_status st = laci_gradient_read_window(b, node, &x, NULL, &attrs);
  if (st) return st;
  laci_window_attrs_add_input_shape(&attrs, &x);
  attrs.attr[attrs.n++] =
      laci_attr_int("count_include_pad", laci_node_int(node, "count_include_pad", 0));
  int dy = laci_gradient_of(b, node, 0);
  laci_gradient_contribute(b, node, 0,
                           laci_gradient_add_internal(b, "AveragePoolGrad", 1, &dy, &attrs));
  return laci_gradient_status(b);
}

const laci_op laci_op_average_pool = {
    .name = "AveragePool",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"auto_pad", LACI_ATTR_TEXT}, {"ceil_mode", LACI_ATTR_INT},
                                  {"count_include_pad", LACI_ATTR_INT},
                                  {"dilations", LACI_ATTR_INTS}, {"kernel_shape", LACI_ATTR_INTS},
                                  {"pads", LACI_ATTR_INTS}, {"strides", LACI_ATTR_INTS}),
    .infer = laci_pooling_infer,
    .eval = eval,
    .couple = laci_pooling_couple_orders,
    .gradient = gradient};
