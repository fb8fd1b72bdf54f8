/* SPDX-License-Identifier: Apache-2.0
 * LRN: y = x / (bias + alpha / size * sum of x^2 over `size` neighbouring channels)^beta. The order
 * of channels matters, since neighbours are summed: that axis is FIXED; all others pass channel
 * orders through (coupling.h). */
#include <math.h>

#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

typedef struct job {
  const laci_eval *eval;
  /* before, after: number of neighbouring channels on either side */
  int64_t channels, spatial, before, after;
  double alpha, beta, bias;
} job;

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  infer->out[0] = *infer->in[0];
  int rank = infer->in[0]->shape.rank;
  if ((rank < 0 || rank >= 2) && laci_node_int(infer->node, "size", 0) > 0) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "rank %d and size %lld, wanted at least 2 and 1", rank,
                        (long long)laci_node_int(infer->node, "size", 0));
}

static void normalize_channels(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  for (int64_t at = begin; at < end; at++) {
    int64_t channel = at % j->channels;
    int64_t first = channel - j->before < 0 ? 0 : channel - j->before;
    int64_t last = channel + j->after >= j->channels ? j->channels - 1 : channel + j->after;
    const double *x = j->eval->in[0]->f + at * j->spatial;
    double *y = j->eval->out[0]->f + at * j->spatial;
    for (int64_t i = 0; i < j->spatial; i++) {
      double squares = 0;
      for (int64_t other = first; other <= last; other++) {
        double v = x[(other - channel) * j->spatial + i];
        squares += v * v;
      }
      y[i] = x[i] / pow(j->bias + j->alpha * squares, j->beta);
    }
  }
}

static lac_status eval(laci_eval *eval) {
  lac_status st = laci_check_floats(eval);
  if (st) return st;
  const laci_shape *x = &eval->in[0]->shape;
  int64_t size = laci_node_int(eval->node, "size", 1);
  /* a window over all channels; the limit keeps sums in range */
  if (size > x->dims[1] * 2 + 2) size = x->dims[1] * 2 + 2;
  job j = {.eval = eval,
           .channels = x->dims[1],
           .spatial = laci_shape_count_range(x, 2, x->rank),
           .before = (size - 1) / 2,
           .after = size / 2,
           .alpha = laci_node_float(eval->node, "alpha", 1e-4f) /
                    (double)laci_node_int(eval->node, "size", 1),
           .beta = laci_node_float(eval->node, "beta", 0.75f),
           .bias = laci_node_float(eval->node, "bias", 1)};
  laci_eval_parallel(eval, x->dims[0] * x->dims[1], normalize_channels, &j);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  c->why = "order matters to LRN, which looks at neighbouring channels";
  const laci_shape *x = laci_port_shape(c, 0), *y = laci_port_shape(c, LACI_OUT(0));
  if (x && y && x->rank == y->rank) laci_couple_other_axes(c, 0, LACI_OUT(0), 1);
  return laci_coupling_status(c);
}

const laci_op laci_op_lrn = {
    .name = "LRN",
    .role = LACI_ROLE_PASS_THROUGH,
    .attributes = LACI_ATTRIBUTES({"alpha", LACI_ATTR_FLOAT}, {"beta", LACI_ATTR_FLOAT},
                                  {"bias", LACI_ATTR_FLOAT}, {"size", LACI_ATTR_INT}),
    .infer = infer,
    .eval = eval,
    .couple = couple_channel_orders};
