/* SPDX-License-Identifier: Apache-2.0
 * DFT: the discrete Fourier transform along an axis, from the definition.
 *   y[k] = sum over n of e^(-2 pi i k n / N) x[n],  the inverse with e^(+...) and 1 / N
 *
 * The last axis holds real and imaginary part, or the real one alone. `onesided` gives the first N
 * / 2 + 1 values of a real signal's spectrum, or (inverse) a real signal from these. The axis is an
 * attribute before opset 20, then an input. All axes but that one and the last pass channel orders
 * through (coupling.h). */
#include <math.h>

#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

typedef struct plan {
  int axis;
  int64_t length; /* N; negative: not known */
  bool inverse, onesided;
} plan;

static lac_status read_dft_parameters(const laci_node *node, const laci_shape *x,
                                      const laci_buf *length, const laci_buf *axis, plan *p,
                                      lac_error *err) {
  bool old = node->version > 0 && node->version < 20;
  int64_t at = old ? laci_node_int(node, "axis", 1) : -2;
  if (!old && axis && axis->count == 1) at = laci_buf_get_i(axis, 0);
  *p = (plan){.inverse = laci_node_int(node, "inverse", 0) != 0,
              .onesided = laci_node_int(node, "onesided", 0) != 0};
  lac_status st = laci_check_axis(node, x->rank, &at, err);
  if (st) return st;
  int64_t parts = x->dims[x->rank - 1];
  if (at == x->rank - 1 || (parts >= 0 && parts != 1 && parts != 2)) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "no axis of real and imaginary parts");
  }
  p->axis = (int)at;
  int64_t size = x->dims[at], given = p->inverse && p->onesided ? 2 * (size - 1) : size;
  if (length && length->count == 1) given = laci_size_from_element(laci_buf_get_i(length, 0));
  else if (laci_has_input(node, 1) || size < 0) given = -1;
  p->length = given;
  return LAC_OK;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 3);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  const laci_buf *axis = laci_in_known_content(infer, 2);
  bool sure = axis && axis->count == 1 && !laci_is_symbol(laci_buf_get_i(axis, 0));
  bool unsure = infer->n_in > 2 && infer->in[2] && !sure;
  if (!x || unsure) return LAC_OK;
  plan p;
  st = read_dft_parameters(infer->node, x, laci_in_known_content(infer, 1), axis, &p, infer->err);
  if (st) return st;
  bool half = p.onesided && !p.inverse;
  laci_shape *y = &infer->out[0].shape;
  *y = *x;
  if (p.length < 0) y->dims[p.axis] = infer->new_symbol(infer);
  else y->dims[p.axis] = half ? p.length / 2 + 1 : p.length;
  y->dims[y->rank - 1] = p.onesided && p.inverse ? 1 : 2;
  return LAC_OK;
}

typedef struct job {
  const laci_buf *x;
  laci_buf *y;
  plan p;
  int64_t inner, n_in, n_out, parts_in, parts_out;
} job;

/** Returns the real part (part 0) or the imaginary part (part 1) of element n of a signal. Beyond
 * the signal it is 0. In the second half of a one-sided spectrum, it is the conjugate of the
 * mirrored element. */
static double read_signal_element(const job *j, int64_t first, int64_t n, int part) {
  bool mirrored = j->p.inverse && j->p.onesided && n > j->p.length / 2;
  if (mirrored) n = j->p.length - n;
  if (n >= j->n_in || part >= j->parts_in) return 0;
  double v = j->x->f[(first + n * j->inner) * j->parts_in + part];
  return mirrored && part == 1 ? -v : v;
}

static void transform_lines(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  double sign = j->p.inverse ? 1 : -1, factor = j->p.inverse ? 1 / (double)j->p.length : 1;
  for (int64_t line = begin; line < end; line++) {
    int64_t from = line / j->inner * j->n_in * j->inner + line % j->inner;
    int64_t to = line / j->inner * j->n_out * j->inner + line % j->inner;
    for (int64_t k = 0; k < j->n_out; k++) {
      double real = 0, imaginary = 0;
      for (int64_t n = 0; n < j->p.length; n++) {
        double angle = sign * 2 * acos(-1) * (double)(k * n % j->p.length) / (double)j->p.length;
        double a = read_signal_element(j, from, n, 0), b = read_signal_element(j, from, n, 1);
        real += a * cos(angle) - b * sin(angle);
        imaginary += a * sin(angle) + b * cos(angle);
      }
      double *y = j->y->f + (to + k * j->inner) * j->parts_out;
      y[0] = real * factor;
      if (j->parts_out == 2) y[1] = imaginary * factor;
    }
  }
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[0];
  laci_buf *y = eval->out[0];
  job j = {.x = x, .y = y};
  if (!x->f || !y->f) return laci_check_floats(eval);
  lac_status st = read_dft_parameters(eval->node, &x->shape, laci_operand(eval, 1),
                                      laci_operand(eval, 2), &j.p, eval->err);
  if (st || y->count == 0 || x->count == 0) return st;
  j.n_in = x->shape.dims[j.p.axis];
  j.n_out = y->shape.dims[j.p.axis];
  j.parts_in = x->shape.dims[x->shape.rank - 1];
  j.parts_out = y->shape.dims[y->shape.rank - 1];
  j.inner = laci_shape_count_range(&x->shape, j.p.axis + 1, x->shape.rank - 1);
  laci_eval_parallel(eval, x->count / j.n_in / j.parts_in, transform_lines, &j);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  const laci_buf *axis = laci_known_content(graph, node, 2);
  plan p;
  c->why = "order matters along an axis that is transformed";
  if (!x || !y || (laci_has_input(node, 2) && !axis) ||
      read_dft_parameters(node, x, NULL, axis, &p, NULL))
    return laci_coupling_status(c);
  laci_couple_other_axes(c, 0, LACI_OUT(0), p.axis);
  laci_coupling_set_label(c, 0, x->rank - 1, LACI_FIXED);
  laci_coupling_set_label(c, LACI_OUT(0), y->rank - 1, LACI_FIXED);
  return laci_coupling_status(c);
}

const laci_op laci_op_dft = {
    .name = "DFT",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"axis", LACI_ATTR_INT}, {"inverse", LACI_ATTR_INT},
                                  {"onesided", LACI_ATTR_INT}),
    .inputs_without_channels = 1u << 1 | 1u << 2,
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
