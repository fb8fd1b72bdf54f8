/* SPDX-License-Identifier: Apache-2.0
 * HannWindow (opset 17), and the code that it shares with the other window functions
 * (shared/taper_in.h). */
#include <math.h>

#include "graph/ops/shared/taper_in.h"
#include "tensor/buf.h"

const laci_attr_type laci_taper_attributes[] = {
    {"output_datatype", LACI_ATTR_INT}, {"periodic", LACI_ATTR_INT}, {NULL, LACI_ATTR_OTHER}};

lac_status laci_cosine_window_infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 1);
  if (st) return st;
  const laci_buf *size = laci_in_known_content(infer, 0);
  int64_t n = size && size->count == 1 ? laci_size_from_element(laci_buf_get_i(size, 0)) : -1;
  int64_t dtype = laci_node_int(infer->node, "output_datatype", LAC_DTYPE_F32);
  bool known = dtype > LAC_DTYPE_NONE && dtype < LAC_DTYPE_COUNT;
  if (!known || !laci_dtype_is_float((lac_dtype)dtype)) {
    return laci_node_fail(infer->node, infer->err, LAC_UNSUPPORTED, "a window of type %lld",
                          (long long)dtype);
  }
  infer->out[0].dtype = (lac_dtype)dtype;
  infer->out[0].shape = (laci_shape){.rank = 1, .dims = {n >= 0 ? n : infer->new_symbol(infer)}};
  return LAC_OK;
}

lac_status laci_cosine_window_eval(const laci_eval *eval, double a0, double a1, double a2) {
  laci_buf *y = eval->out[0];
  bool periodic = laci_node_int(eval->node, "periodic", 1) != 0;
  double n = (double)(periodic ? y->count : y->count - 1);
  for (int64_t k = 0; k < y->count; k++) {
    double angle = n > 0 ? 2 * acos(-1) * (double)k / n : 0;
    y->f[k] = a0 - a1 * cos(angle) + a2 * cos(2 * angle);
  }
  return LAC_OK;
}

static lac_status eval(laci_eval *eval) { return laci_cosine_window_eval(eval, 0.5, 0.5, 0); }

const laci_op laci_op_hann_window = {.name = "HannWindow",
                                     .role = LACI_ROLE_SKIP,
                                     .attributes = laci_taper_attributes,
                                     .infer = laci_cosine_window_infer,
                                     .eval = eval,
                                     .couple = laci_couple_nothing};
