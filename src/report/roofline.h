/* SPDX-License-Identifier: Apache-2.0
 * Draws a roofline diagram in SVG. On logarithmic scales, it shows for each layer of a network the
 * operations per second over the operations per byte, and the limits of the processor by memory and
 * by multiply-adds. Dense layers are rings and sparse ones dots; a line connects the two of one
 * node. A circle's area is proportional to the layer's time. No other program is needed. */
#ifndef LACI_REPORT_ROOFLINE_H
#define LACI_REPORT_ROOFLINE_H

#include <stddef.h>

#include "lacuna/status.h"

typedef struct lac_bench_result lac_bench_result;

/** Draws the diagram. The caller frees *svg with laci_free. Fails with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_roofline_svg(const lac_bench_result *result, char **svg,
                                            size_t *size_bytes, lac_error *err);

#endif
