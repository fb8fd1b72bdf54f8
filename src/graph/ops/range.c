/* SPDX-License-Identifier: Apache-2.0
 * Range: start, start + delta, ... before limit. The output is FIXED: its order must stay
 * (coupling.h), for its order matters. */
#include <math.h>

#include "base/to_int.h"
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

/** Returns the number of steps; -1: the three numbers are invalid. Integer steps are counted
 * exactly. */
static int64_t count_steps(const laci_buf *start, const laci_buf *limit, const laci_buf *delta) {
  if (start->count != 1 || limit->count != 1 || delta->count != 1) return -1;
  if (start->i && limit->i && delta->i) {
    const lac_dtype dtype = start->dtype;
    const laci_wide step = laci_int_to_wide(dtype, delta->i[0]);
    const laci_wide span =
        laci_int_to_wide(dtype, limit->i[0]) - laci_int_to_wide(dtype, start->i[0]);
    if (step == 0) return -1;
    if ((span > 0) != (step > 0) || span == 0) return 0;
    const laci_wide n = span / step + (span % step != 0);
    return n > INT64_MAX ? -1 : (int64_t)n;
  }
  double n = ceil((laci_buf_get_f(limit, 0) - laci_buf_get_f(start, 0)) / laci_buf_get_f(delta, 0));
  return n < 0x1p53 ? laci_clamp_to_range(n, 0, INT64_MAX) : -1;
}

static bool has_symbol(const laci_buf *buf) {
  return buf->i && buf->count == 1 && laci_is_symbol(buf->i[0]);
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 3);
  if (st) return st;
  infer->out[0].dtype = infer->in[0]->dtype;
  infer->out[0].shape.rank = 1;
  const laci_buf *start = laci_in_known_content(infer, 0), *limit = laci_in_known_content(infer, 1);
  const laci_buf *delta = laci_in_known_content(infer, 2);
  int64_t *n = &infer->out[0].shape.dims[0];
  if (!start || !limit || !delta || has_symbol(start) || has_symbol(delta)) {
    *n = infer->new_symbol(infer);
    return LAC_OK;
  }
  if (has_symbol(limit)) { /* Range(0, n, 1) has n elements */
    bool counts = start->i && start->count == 1 && start->i[0] == 0 && delta->i && delta->i[0] == 1;
    *n = counts ? laci_size_from_element(limit->i[0]) : infer->new_symbol(infer);
    return LAC_OK;
  }
  *n = count_steps(start, limit, delta);
  if (*n >= 0) return LAC_OK;
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                        "start, limit and delta give no range");
}

static lac_status eval(laci_eval *eval) {
  laci_buf *out = eval->out[0];
  for (int64_t at = 0; at < out->count; at++) {
    if (out->f)
      out->f[at] = laci_buf_get_f(eval->in[0], 0) + (double)at * laci_buf_get_f(eval->in[2], 0);
    else
      out->i[at] = (int64_t)((uint64_t)laci_buf_get_i(eval->in[0], 0) +
                             (uint64_t)at * (uint64_t)laci_buf_get_i(eval->in[2], 0));
  }
  return LAC_OK;
}

const laci_op laci_op_range = {.name = "Range",
                               .role = LACI_ROLE_SKIP,
                               .discontinuous = true,
                               .attributes = LACI_ATTRIBUTES({"stash_type", LACI_ATTR_INT}),
                               .is_fold = true,
                               .sizes_from_data = true,
                               .infer = infer,
                               .eval = eval,
                               .couple = laci_couple_nothing};
