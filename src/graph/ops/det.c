/* SPDX-License-Identifier: Apache-2.0
 * Det: the determinant of each matrix in the last two axes, by Gaussian elimination with the
 * largest pivot of each column. Rows and columns are FIXED, for exchanging two changes the sign;
 * the axes before them pass channel orders through (coupling.h). */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "graph/coupling.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  const laci_shape *x = laci_in_shape(infer, 0);
  if (!x) return LAC_OK;
  int64_t rows = x->rank >= 2 ? x->dims[x->rank - 2] : 0;
  int64_t cols = x->rank >= 2 ? x->dims[x->rank - 1] : 1;
  if (rows >= 0 && cols >= 0 && rows != cols)
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "the matrices are not square");
  infer->out[0].shape = *x;
  infer->out[0].shape.rank = x->rank - 2;
  return LAC_OK;
}

static void exchange_rows(double *a, int64_t n, int64_t p, int64_t q) {
  for (int64_t k = 0; k < n; k++) {
    double kept = a[p * n + k];
    a[p * n + k] = a[q * n + k];
    a[q * n + k] = kept;
  }
}

/** Returns the determinant of a [n, n], which it overwrites. */
static double compute_determinant(double *a, int64_t n) {
  double det = 1;
  for (int64_t col = 0; col < n; col++) {
    int64_t pivot = col;
    for (int64_t row = col + 1; row < n; row++) {
      if (fabs(a[row * n + col]) > fabs(a[pivot * n + col])) pivot = row;
    }
    if (pivot != col) {
      exchange_rows(a, n, pivot, col);
      det = -det;
    }
    det *= a[col * n + col];
    if (a[col * n + col] == 0) return 0;
    for (int64_t row = col + 1; row < n; row++) {
      double factor = a[row * n + col] / a[col * n + col];
      for (int64_t k = col; k < n; k++) a[row * n + k] -= factor * a[col * n + k];
    }
  }
  return det;
}

static lac_status eval(laci_eval *eval) {
  const laci_shape *x = &eval->in[0]->shape;
  int64_t n = x->dims[x->rank - 1];
  lac_status st = laci_check_floats(eval);
  if (st) return st;
  double *a = laci_alloc((size_t)(n * n), sizeof *a);
  if (!a) return laci_fail_memory(eval->err, eval->node->name);
  for (int64_t at = 0; at < eval->out[0]->count; at++) {
    if (n > 0) memcpy(a, eval->in[0]->f + at * n * n, (size_t)(n * n) * sizeof *a);
    eval->out[0]->f[at] = compute_determinant(a, n);
  }
  laci_free(a);
  return LAC_OK;
}

static lac_status couple_channel_orders(const laci_graph *graph, const laci_node *node,
                                        laci_coupling *c) {
  (void)graph, (void)node;
  const laci_shape *x = laci_port_shape(c, 0);
  c->why = "an exchange of rows changes the sign of a determinant";
  if (!x || !laci_port_shape(c, LACI_OUT(0))) return laci_coupling_status(c);
  for (int axis = 0; axis < x->rank - 2; axis++) {
    int label = laci_coupling_new_label(c);
    laci_coupling_set_label(c, 0, axis, label);
    laci_coupling_set_label(c, LACI_OUT(0), axis, label);
  }
  return laci_coupling_status(c);
}

const laci_op laci_op_det = {.name = "Det",
                             .role = LACI_ROLE_PASS_THROUGH,
                             .infer = infer,
                             .eval = eval,
                             .couple = couple_channel_orders};
