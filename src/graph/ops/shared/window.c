/* SPDX-License-Identifier: Apache-2.0
 * Sliding windows: reads attributes, and computes output sizes from them.
 *
 *   reach = (kernel - 1) * dilation + 1
 *   out   = floor or ceil((in + pad_begin + pad_end - reach) / stride) + 1
 *
 * With ceil, a last window that would start past the input and its left padding is dropped. */
#include "graph/ops/shared/window_in.h"

#include <string.h>

#include "graph/ops/shared/op_in.h"
#include "base/plural.h"

/* The largest size accepted; real windows are far smaller, and no sum or product overflows below
 * it. */
static const int64_t LARGEST = 1 << 30;

/** Reads an attribute of `wanted` integers, each at least `least`, into values; an absent attribute
 * leaves them. */
static lac_status read_ints(const laci_node *node, const char *name, size_t wanted, int64_t least,
                            int64_t *values, lac_error *err) {
  size_t n = 0;
  const int64_t *ints = laci_node_ints(node, name, &n);
  if (!ints) return LAC_OK;
  if (n != wanted) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "attribute %s has %zu value%s, wanted %zu",
                          name, n, laci_plural((int64_t)n), wanted);
  }
  for (size_t at = 0; at < n; at++) {
    if (ints[at] < least || ints[at] > LARGEST) {
      return laci_node_fail(node, err, LAC_BAD_SHAPE,
                            "attribute %s[%zu] is %lld, wanted %lld to %lld", name, at,
                            (long long)ints[at], (long long)least, (long long)LARGEST);
    }
    values[at] = ints[at];
  }
  return LAC_OK;
}

static lac_status read_auto_pad(const laci_node *node, laci_node_window *window, lac_error *err) {
  static const char *const names[] = {[LACI_PAD_NOTSET] = "NOTSET",
                                      [LACI_PAD_VALID] = "VALID",
                                      [LACI_PAD_SAME_UPPER] = "SAME_UPPER",
                                      [LACI_PAD_SAME_LOWER] = "SAME_LOWER"};
  const char *text = laci_node_text(node, "auto_pad", "NOTSET");
  for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
    if (strcmp(text, names[at]) == 0) {
      window->auto_pad = (laci_auto_pad)at;
      return LAC_OK;
    }
  }
  return laci_node_fail(node, err, LAC_BAD_SHAPE,
                        "auto_pad is '%s', wanted NOTSET, VALID, SAME_UPPER or SAME_LOWER", text);
}

/** Reads the kernel's sizes from the attribute, or from the weight; both must agree. */
static lac_status read_kernel_sizes(const laci_node *node, const laci_shape *weight, int n_spatial,
                                    int64_t *kernel, lac_error *err) {
  for (int at = 0; at < n_spatial; at++) kernel[at] = -1;
  lac_status st = read_ints(node, "kernel_shape", (size_t)n_spatial, 1, kernel, err);
  if (st) return st;
  for (int at = 0; at < n_spatial && weight && weight->rank == n_spatial + 2; at++) {
    int64_t size = weight->dims[at + 2];
    if (size < 0) continue;
    if (kernel[at] >= 0 && kernel[at] != size) {
      return laci_node_fail(node, err, LAC_BAD_SHAPE,
                            "kernel_shape[%d] is %lld, the weight has %lld", at,
                            (long long)kernel[at], (long long)size);
    }
    if (size == 0 || size > LARGEST) {
      return laci_node_fail(node, err, LAC_BAD_SHAPE, "the weight's kernel has size %lld",
                            (long long)size);
    }
    kernel[at] = size;
  }
  if (!weight && kernel[0] < 0) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "attribute kernel_shape is missing");
  }
  return LAC_OK;
}

lac_status laci_window_read(const laci_node *node, int n_spatial, const laci_shape *weight,
                            laci_node_window *window, lac_error *err) {
  int64_t kernel[LACI_MAX_SPATIAL], strides[LACI_MAX_SPATIAL], dilations[LACI_MAX_SPATIAL];
  int64_t pads[2 * LACI_MAX_SPATIAL] = {0};
  if (n_spatial < 1 || n_spatial > LACI_MAX_SPATIAL) {
    return laci_node_fail(node, err, LAC_BAD_SHAPE, "the input has %d axes, wanted 3 to %d",
                          n_spatial + 2, LACI_MAX_RANK);
  }
  *window = (laci_node_window){.n_spatial = n_spatial};
  for (int at = 0; at < n_spatial; at++) strides[at] = dilations[at] = 1;
  size_t n = (size_t)n_spatial;
  lac_status st = read_kernel_sizes(node, weight, n_spatial, kernel, err);
  if (!st) st = read_ints(node, "strides", n, 1, strides, err);
  if (!st) st = read_ints(node, "dilations", n, 1, dilations, err);
  if (!st) st = read_ints(node, "pads", 2 * n, -LARGEST, pads, err);
  if (!st) st = read_auto_pad(node, window, err);
  if (st) return st;
  window->ceil_mode = laci_node_int(node, "ceil_mode", 0) != 0;
  bool given = window->auto_pad == LACI_PAD_NOTSET;
  for (int at = 0; at < n_spatial; at++) {
    window->axis[at] = (laci_window_axis){.kernel = kernel[at],
                                          .stride = strides[at],
                                          .dilation = dilations[at],
                                          .pad_begin = given ? pads[at] : 0,
                                          .pad_end = given ? pads[at + n_spatial] : 0};
  }
  return LAC_OK;
}

int64_t laci_window_resolve_out_size(laci_node_window *window, int spatial, int64_t in_size) {
  laci_window_axis *a = &window->axis[spatial];
  int64_t reach = (a->kernel - 1) * a->dilation + 1;
  if (window->auto_pad == LACI_PAD_SAME_UPPER || window->auto_pad == LACI_PAD_SAME_LOWER) {
    int64_t out = (in_size + a->stride - 1) / a->stride;
    int64_t total = (out - 1) * a->stride + reach - in_size;
    if (total < 0) total = 0;
    a->pad_begin = window->auto_pad == LACI_PAD_SAME_UPPER ? total / 2 : total - total / 2;
    a->pad_end = total - a->pad_begin;
    return out;
  }
  int64_t span = in_size + a->pad_begin + a->pad_end - reach;
  if (span < 0) return 0;
  int64_t out = span / a->stride + 1;
  if (window->ceil_mode && span % a->stride != 0 && out * a->stride < in_size + a->pad_begin) out++;
  return out;
}

/** Is the output size equal to the input size, whatever that is? So with stride 1 and kernel reach
 * - 1 of padding. */
static bool has_equal_output_size(const laci_node_window *window, int spatial) {
  const laci_window_axis *a = &window->axis[spatial];
  if (a->stride != 1) return false;
  if (window->auto_pad == LACI_PAD_SAME_UPPER || window->auto_pad == LACI_PAD_SAME_LOWER)
    return true;
  return a->kernel > 0 && a->pad_begin + a->pad_end == (a->kernel - 1) * a->dilation;
}

lac_status laci_window_infer(laci_infer *infer, laci_node_window *window, const laci_shape *x,
                             laci_shape *out) {
  for (int at = 0; at < window->n_spatial; at++) {
    int64_t size = x->dims[at + 2];
    if (has_equal_output_size(window, at)) {
      out->dims[at + 2] = size;
    } else if (size < 0 || window->axis[at].kernel < 0) {
      out->dims[at + 2] = infer->new_symbol(infer);
    } else if (size > LARGEST) {
      return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "axis %d has size %lld", at + 2,
                            (long long)size);
    } else {
      int64_t found = laci_window_resolve_out_size(window, at, size);
      if (found <= 0) {
        return laci_node_fail(
            infer->node, infer->err, LAC_BAD_SHAPE,
            "axis %d of size %lld is smaller than the window of %lld", at + 2, (long long)size,
            (long long)((window->axis[at].kernel - 1) * window->axis[at].dilation + 1));
      }
      out->dims[at + 2] = found;
    }
  }
  return LAC_OK;
}
