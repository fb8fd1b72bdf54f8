/* SPDX-License-Identifier: Apache-2.0
 * Time for reports and benchmarks. No result may depend on it: limits on work are counted in
 * iterations. */
#ifndef LACI_BASE_CLOCK_H
#define LACI_BASE_CLOCK_H

/** Returns seconds of a monotonic clock; only differences are meaningful. Callable from any
 * thread. */
double laci_clock_seconds(void);

#endif
