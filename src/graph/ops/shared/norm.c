/* SPDX-License-Identifier: Apache-2.0
 * Mean and variance, and checks of parameters, for the normalizations; see batch_normalization.c
 * for the simplest user. */
#include "graph/coupling.h"
#include "graph/ops/shared/norm_in.h"

#include <math.h>

laci_moments laci_moments_of(const double *x, int64_t n) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i];
  double mean = sum / (double)n;
  for (int64_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
  return (laci_moments){.mean = mean, .variance = squares / (double)n};
}

void laci_normalize_run(const double *x, int64_t n, laci_moments moments, double epsilon,
                        double *y) {
  double factor = 1 / sqrt(moments.variance + epsilon);
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - moments.mean) * factor;
}

double laci_inverse_root_mean_square(const double *x, int64_t n, double epsilon) {
  double squares = 0;
  for (int64_t i = 0; i < n; i++) squares += x[i] * x[i];
  return 1 / sqrt(squares / (double)n + epsilon);
}

lac_status laci_check_input_vector(laci_infer *infer, int port, int64_t size) {
  const laci_shape *shape = laci_in_shape(infer, port);
  if (!shape) return LAC_OK;
  if (shape->rank == 1 && (size < 0 || shape->dims[0] < 0 || shape->dims[0] == size)) return LAC_OK;
  char text[128];
  if (size < 0) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "input %d is %s, wanted one axis",
                          port, laci_shape_text(shape, text, sizeof text));
  }
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "input %d is %s, wanted [%lld]",
                        port, laci_shape_text(shape, text, sizeof text), (long long)size);
}

double laci_epsilon(const laci_node *node) { return laci_node_float(node, "epsilon", 1e-5f); }

bool laci_couple_channels(laci_coupling *c, int first, int last) {
  const laci_shape *x = laci_port_shape(c, 0);
  if (!x || !laci_port_shape(c, LACI_OUT(0)) || x->rank < 2) return false;
  laci_couple_equal_axes(c, 0, LACI_OUT(0));
  for (int port = first; port <= last; port++) {
    laci_coupling_set_label(c, port, 0, laci_coupling_get_label(c, 0, 1));
  }
  return true;
}
