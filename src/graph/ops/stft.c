/* SPDX-License-Identifier: Apache-2.0
 * STFT (opset 17): the discrete Fourier transform (dft.c) of frames of a signal [B, L, parts],
 * `frame_step` apart and weighted by a window; y is [B, frames, frequencies, 2]. The batch axis
 * passes channel orders through (coupling.h); all others are FIXED. */
#include <math.h>

#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

enum { SIGNAL, STEP, WINDOW, LENGTH };

/** Returns the integer in a scalar input; -1: it is not known. */
static int64_t read_integer_scalar(const laci_buf *buf) {
  return buf && buf->count == 1 ? laci_size_from_element(laci_buf_get_i(buf, 0)) : -1;
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 2, 4);
  if (st) return st;
  const laci_shape *x = laci_in_shape(infer, SIGNAL), *window = laci_in_shape(infer, WINDOW);
  bool has_length = LENGTH < infer->n_in && infer->in[LENGTH];
  int64_t step = read_integer_scalar(laci_in_known_content(infer, STEP)), length = -1;
  if (has_length) length = read_integer_scalar(laci_in_known_content(infer, LENGTH));
  else if (window && window->rank == 1) length = window->dims[0];
  infer->out[0].dtype = infer->in[SIGNAL]->dtype;
  if (!x) return LAC_OK;
  int64_t size = x->rank >= 2 ? x->dims[1] : 0;
  bool known = step >= 0 && length >= 0 && size >= 0;
  bool fits = x->rank == 2 || (x->rank == 3 && (x->dims[2] < 0 || x->dims[2] <= 2));
  if (!fits || (known && (step == 0 || length == 0 || length > size))) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "frames of %lld, %lld apart, do not fit the signal", (long long)length,
                          (long long)step);
  }
  bool onesided = laci_node_int(infer->node, "onesided", 1) != 0;
  laci_shape *y = &infer->out[0].shape;
  y->rank = 4;
  y->dims[0] = x->dims[0];
  y->dims[1] = known ? (size - length) / step + 1 : infer->new_symbol(infer);
  y->dims[2] = length < 0 ? infer->new_symbol(infer) : onesided ? length / 2 + 1 : length;
  y->dims[3] = 2;
  return LAC_OK;
}

typedef struct job {
  const laci_buf *x, *window;
  laci_buf *y;
  int64_t size, parts, step, length, frames, bins;
} job;

static void transform_frames(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  for (int64_t at = begin; at < end; at++) {
    const double *x = j->x->f + (at / j->frames * j->size + at % j->frames * j->step) * j->parts;
    for (int64_t k = 0; k < j->bins; k++) {
      double real = 0, imaginary = 0;
      for (int64_t n = 0; n < j->length; n++) {
        double angle = -2 * acos(-1) * (double)(k * n % j->length) / (double)j->length;
        double w = j->window ? j->window->f[n] : 1, a = w * x[n * j->parts];
        double b = j->parts == 2 ? w * x[n * j->parts + 1] : 0;
        real += a * cos(angle) - b * sin(angle);
        imaginary += a * sin(angle) + b * cos(angle);
      }
      double *y = j->y->f + (at * j->bins + k) * 2;
      y[0] = real, y[1] = imaginary;
    }
  }
}

static lac_status eval(laci_eval *eval) {
  const laci_buf *x = eval->in[SIGNAL], *window = laci_operand(eval, WINDOW);
  laci_buf *y = eval->out[0];
  job j = {.x = x,
           .y = y,
           .window = window,
           .size = x->shape.dims[1],
           .parts = x->shape.rank == 3 ? x->shape.dims[2] : 1,
           .step = read_integer_scalar(eval->in[STEP]),
           .length = read_integer_scalar(laci_operand(eval, LENGTH)),
           .frames = y->shape.dims[1],
           .bins = y->shape.dims[2]};
  if (j.length < 0 && window) j.length = window->count;
  bool fits = x->f && y->f && j.length > 0 && j.step > 0 && (!window || window->f);
  if (!fits || (window && window->count != j.length)) {
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "a window of other length than frames of %lld", (long long)j.length);
  }
  laci_eval_parallel(eval, x->shape.dims[0] * j.frames, transform_frames, &j);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  c->why = "order matters along a signal that is transformed";
  int batch = laci_coupling_new_label(c);
  laci_coupling_set_label(c, SIGNAL, 0, batch);
  laci_coupling_set_label(c, LACI_OUT(0), 0, batch);
  return laci_coupling_status(c);
}

const laci_op laci_op_stft = {.name = "STFT",
                              .role = LACI_ROLE_PASS_THROUGH,
                              .attributes = LACI_ATTRIBUTES({"onesided", LACI_ATTR_INT}),
                              .inputs_without_channels = 1u << 1 | 1u << 2 | 1u << 3,
                              .infer = infer,
                              .eval = eval,
                              .couple = couple_channel_orders};
