/* SPDX-License-Identifier: Apache-2.0
 * A roofline diagram as an SVG drawing: operations per second over operations per byte of a
 * network's layers, on logarithmic scales, with the processor's limits of memory and multiply-adds.
 * Dense layers are rings and sparse ones dots, with a line between the two of one node; the area is
 * proportional to the time. No other program is needed. */
#ifndef LACI_REPORT_ROOFLINE_H
#define LACI_REPORT_ROOFLINE_H

#include <stddef.h>

#include "lacuna/status.h"

typedef struct lac_bench_result lac_bench_result;

/** Draws the diagram; the caller frees *svg with laci_free. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_roofline_svg(const lac_bench_result *result, char **svg,
                                            size_t *size_bytes, lac_error *err);

#endif
