/* SPDX-License-Identifier: Apache-2.0
 * Time for reports and benches. No result may depend on it: budgets are counted in iterations. */
#ifndef LACI_BASE_CLOCK_H
#define LACI_BASE_CLOCK_H

/** Seconds on a clock that never goes back; only differences mean something. Any thread. */
double laci_clock_seconds(void);

#endif
