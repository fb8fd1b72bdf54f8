/* SPDX-License-Identifier: Apache-2.0
 * Flushing of denormal floats in a thread. Denormals, numbers below 1.2e-38, take a hundred times
 * as long as others on most processors, and weight decay produces them. While they are flushed,
 * they are 0 as operands and as results, for all instructions of the thread.
 *
 * laci_pool_for sets its caller's mode in all worker threads, so that results do not depend on
 * which thread computes which part. */
#ifndef LACI_CPU_DENORMALS_H
#define LACI_CPU_DENORMALS_H

#include <stdbool.h>

/** Are denormals flushed to 0 in the calling thread? False on a processor where this is not
 * known. */
bool laci_denormals_are_flushed(void);
/** Sets whether denormals are flushed to 0 in the calling thread; returns the previous setting. */
bool laci_denormals_set_flushed(bool flush);

#endif
