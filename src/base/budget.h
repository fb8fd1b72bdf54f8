/* SPDX-License-Identifier: Apache-2.0
 * Limits the memory of a computation: planned allocations are added up before any is made, and a
 * sum above the limit is an error that names the largest part.
 *
 *   laci_budget budget = laci_budget_with_limit(options->max_memory);
 *   laci_budget_add(&budget, bytes, "%s: %s f32", name, shape);
 *   st = laci_budget_check(&budget, "the run", err);
 *
 * A budget is a value that can be copied: each phase of a computation can start from a copy that
 * counts only what stays in memory during the phase. */
#ifndef LACI_BASE_BUDGET_H
#define LACI_BASE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

/** A memory limit, and the sum of the planned allocations. Zero-initialized, it allows no
 * memory. */
typedef struct laci_budget {
  uint64_t limit;   /* limit of the memory in bytes; UINT64_MAX: no limit */
  uint64_t needed;  /* bytes added so far; stays at UINT64_MAX once it gets there */
  uint64_t largest; /* bytes of the largest allocation */
  char name[256];   /* name of the largest allocation */
} laci_budget;

/** Returns the bytes that this process may use by default: 80 % of the machine's memory, or of the
 * limit of its control group (version 1 or 2), and no more than its limit of address space allows.
 * UINT64_MAX where nothing is known. root: a prefix of /proc and /sys, for tests; else "". */
uint64_t laci_memory_default_limit(const char *root);

/** Returns an empty budget with that limit in bytes; limit 0: that of laci_memory_default_limit. */
laci_budget laci_budget_with_limit(uint64_t limit);

/** Adds an allocation of `bytes` bytes, with a printf-style name. The name is formatted only if the
 * allocation is the largest so far. */
void laci_budget_add(laci_budget *budget, uint64_t bytes, const char *format, ...) LAC_PRINTF(3, 4);
/** Adds an allocation without a name. */
void laci_budget_add_unnamed(laci_budget *budget, uint64_t bytes);
/** Subtracts an allocation of `bytes` bytes that was added and is freed. */
void laci_budget_subtract(laci_budget *budget, uint64_t bytes);
/** Does the limit allow `bytes` more? A NULL budget has no limit. */
bool laci_budget_allows(const laci_budget *budget, uint64_t bytes);
/** Copies *phase to *most if *phase needs more memory, so that *most becomes the budget of the
 * phase that needs most. */
void laci_budget_keep_larger(laci_budget *most, const laci_budget *phase);

/** Fails LAC_MEMORY_LIMIT if the sum exceeds the limit. what: the computation, for the message:
 * "pad_3 (output of Pad 'p'): 1x3000000x512 f32, 5.7 GB; WHAT needs 11.5 GB, 8.0 GB are
 * allowed". */
LAC_MUST_CHECK lac_status laci_budget_check(const laci_budget *budget, const char *what,
                                            lac_error *err);

/** Parses a size such as "16G", "1.5g", "800M", "4096"; K, M, G and T are powers of 1024. False:
 * not a size, 0, or more than 64 bits. */
bool laci_size_parse(const char *text, uint64_t *bytes);
/** Writes a size such as "11.5 GB" (2^30 bytes) or "512 bytes" to the buffer; returns the
 * buffer. */
const char *laci_size_text(uint64_t bytes, char *buffer, size_t size);

/** Returns count * size, or UINT64_MAX if that exceeds 64 bits. A negative count is treated as
 * 0. */
uint64_t laci_count_bytes_saturated(int64_t count, size_t size);

#endif
