/* SPDX-License-Identifier: Apache-2.0
 * Denormal floats of a thread: numbers below 1.2e-38 take a hundred times as long as others on most
 * processors, and weights that decay end there. While they are flushed, they are 0 as operands and
 * as results, for all instructions of the thread.
 *
 * laci_pool_for hands its caller's mode to all who work for it, so that results do not depend on
 * who does which part. */
#ifndef LACI_CPU_DENORMALS_H
#define LACI_CPU_DENORMALS_H

#include <stdbool.h>

/** Are they flushed in the calling thread? False on a processor where that is not known. */
bool laci_denormals_flushed(void);
/** Flushes them, or not, in the calling thread from now on; returns what was before. */
bool laci_denormals_flush(bool flush);

#endif
