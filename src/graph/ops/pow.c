/* SPDX-License-Identifier: Apache-2.0
 * Pow: y = a^b, broadcast, of a's type. From opset 12 on the exponent may be of another type than
 * the base: it is converted to float or integer first, as the base is. An integer base with a
 * fractional exponent is not supported. */
#include <math.h>

#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static double compute_double(double a, double b) { return pow(a, b); }

static int64_t compute_integer(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  uint64_t result = 1, factor = (uint64_t)a;
  for (; b > 0; b /= 2) {
    if (b % 2) result *= factor;
    factor *= factor;
  }
  return (int64_t)result;
}

static uint64_t compute_unsigned(uint64_t a, uint64_t b) {
  uint64_t result = 1;
  for (; b > 0; b /= 2, a *= a) {
    if (b % 2) result *= a;
  }
  return result;
}

static lac_status convert_to_dtype(const laci_buf *from, lac_dtype dtype, laci_buf **to,
                                   lac_error *err) {
  lac_status st = laci_buf_create(dtype, &from->shape, to, err);
  for (int64_t at = 0; !st && at < from->count; at++) {
    if ((*to)->f) (*to)->f[at] = laci_buf_get_f(from, at);
    else (*to)->i[at] = laci_buf_get_i(from, at);
  }
  return st;
}

static bool are_all_integers(const laci_buf *buf) {
  for (int64_t at = 0; at < buf->count; at++) {
    if (!(buf->f[at] == rint(buf->f[at]) && fabs(buf->f[at]) < 9e18)) return false;
  }
  return true;
}

static lac_status eval(laci_eval *eval) {
  static const laci_binary operation = {.f = compute_double,
                                        .i = compute_integer,
                                        .u = compute_unsigned,
                                        .neutral = LACI_NEUTRAL_ONE_RIGHT};
  const laci_buf *base = eval->in[0], *exponent = eval->in[1];
  if (!base->f == !exponent->f) return laci_eval_binary(eval, &operation);
  if (exponent->f && !are_all_integers(exponent)) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED,
                          "an integer base with a fractional exponent");
  }
  laci_buf *same_class = NULL;
  lac_status st = convert_to_dtype(exponent, base->dtype, &same_class, eval->err);
  if (st) goto out;
  const laci_buf *in[2] = {base, same_class};
  laci_eval inner = *eval;
  inner.in = in;
  st = laci_eval_binary(&inner, &operation);
out:
  laci_buf_destroy(same_class);
  return st;
}

/** Returns e * a^(e-1), with the power computed by Pow; 2a for a known exponent of 2. */
static int add_derivative_by_base(laci_gradient_builder *b, const laci_node *node) {
  const laci_buf *known = laci_gradient_known_content(b, node, 1);
  int base = node->inputs[0], exponent = node->inputs[1];
  if (known && known->count == 1) {
    double e = laci_buf_get_f(known, 0);
    if (e == 2) return laci_gradient_add_scale(b, base, 2);
    int less = laci_gradient_store_scalar(b, base, e - 1);
    return laci_gradient_add_scale(b, laci_gradient_add_binary(b, "Pow", base, less), e);
  }
  int one = laci_gradient_store_scalar(b, exponent, 1);
  int power =
      laci_gradient_add_binary(b, "Pow", base, laci_gradient_add_binary(b, "Sub", exponent, one));
  return laci_gradient_add_binary(b, "Mul", power, exponent);
}

/** da = dy * e * a^(e-1);  de = dy * y * log(a) where a > 0, else 0. */
static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int dy = laci_gradient_of(b, node, 0), base = node->inputs[0];
  if (laci_gradient_is_needed(b, node, 0))
    laci_gradient_contribute_broadcast(
        b, node, 0, laci_gradient_add_binary(b, "Mul", dy, add_derivative_by_base(b, node)));
  if (laci_gradient_is_needed(b, node, 1)) {
    int zero = laci_gradient_store_scalar(b, base, 0), one = laci_gradient_store_scalar(b, base, 1);
    int positive = laci_gradient_add_binary(b, "Greater", base, zero);
    int safe = laci_gradient_add_where(b, positive, base, one); /* log(1) = 0 where a <= 0 */
    int slope = laci_gradient_add_binary(b, "Mul", node->outputs[0],
                                         laci_gradient_add_unary(b, "Log", safe));
    laci_gradient_contribute_broadcast(b, node, 1, laci_gradient_add_binary(b, "Mul", dy, slope));
  }
  return laci_gradient_status(b);
}

const laci_op laci_op_pow = {.name = "Pow",
                             .role = LACI_ROLE_PASS_THROUGH,
                             .is_fold = true,
                             .symbol_safe = true,
                             .infer = laci_infer_broadcast,
                             .eval = eval,
                             .couple = laci_couple_all_inputs_broadcast,
                             .gradient = gradient};
