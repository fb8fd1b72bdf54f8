/* SPDX-License-Identifier: Apache-2.0
 * What a network's layers reach against what the processor allows, as an SVG drawing: operations a
 * second over operations a byte, both on scales of powers, under the limits of memory and of
 * multiply-adds. Dense layers are rings, sparse ones dots, with a line between the two of one
 * node; the area is the time. Plain text is all it needs. */
#ifndef LACI_REPORT_ROOFLINE_H
#define LACI_REPORT_ROOFLINE_H

#include <stddef.h>

#include "lacuna/status.h"

typedef struct lac_bench_result lac_bench_result;

/** *svg: the drawing, the caller's (laci_free). Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_roofline_svg(const lac_bench_result *result, char **svg,
                                            size_t *size_bytes, lac_error *err);

#endif
