/* SPDX-License-Identifier: Apache-2.0
 * HannWindow, HammingWindow and BlackmanWindow: window functions for spectra; the code is in
 * hann_window.c.
 *   y[k] = a0 - a1 cos(2 pi k / N) + a2 cos(4 pi k / N),  N = size, or size - 1 if not periodic */
#ifndef LACI_GRAPH_OPS_SHARED_TAPER_IN_H
#define LACI_GRAPH_OPS_SHARED_TAPER_IN_H

#include "graph/ops/shared/op_in.h"

lac_status laci_cosine_window_infer(laci_infer *infer);
LAC_MUST_CHECK lac_status laci_cosine_window_eval(const laci_eval *eval, double a0, double a1,
                                                  double a2);
extern const laci_attr_type laci_taper_attributes[];

#endif
