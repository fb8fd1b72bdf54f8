/* SPDX-License-Identifier: Apache-2.0
 * How much memory work may take: what is planned is added up before any of it is taken, and what is
 * above the limit is an error that names the largest part.
 *
 *   laci_budget budget = laci_budget_of(options->max_memory);
 *   laci_budget_add(&budget, bytes, "%s: %s f32", name, shape);
 *   st = laci_budget_check(&budget, "the run", err);
 *
 * A budget is a value: a phase of the work begins with a copy of what stays in memory
 * meanwhile. */
#ifndef LACI_BASE_BUDGET_H
#define LACI_BASE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

/** Zero-initialised allows nothing. */
typedef struct laci_budget {
  uint64_t limit;   /* bytes; UINT64_MAX: none */
  uint64_t needed;  /* bytes added so far; stays at UINT64_MAX once it gets there */
  uint64_t largest; /* of what was added, ... */
  char name[256];   /* ... and what that is */
} laci_budget;

/** The bytes that this process may take by default: 80 % of the machine's memory, or of what its
 * control group (version 1 or 2) is allowed, and no more than its limit of address space leaves.
 * UINT64_MAX where nothing is known. root: a prefix of /proc and /sys, for tests; else "". */
uint64_t laci_memory_allowed(const char *root);

/** limit 0: laci_memory_allowed. */
laci_budget laci_budget_of(uint64_t limit);

/** A part with a name; the text is made only for the largest so far. */
void laci_budget_add(laci_budget *budget, uint64_t bytes, const char *format, ...) LAC_PRINTF(3, 4);
/** Parts without names. */
void laci_budget_add_sum(laci_budget *budget, uint64_t bytes);
/** What was added and is no more. */
void laci_budget_give_back(laci_budget *budget, uint64_t bytes);
/** Is so much more allowed? A NULL budget has no limit. */
bool laci_budget_has(const laci_budget *budget, uint64_t bytes);
/** The larger of two phases, in *most. */
void laci_budget_keep_most(laci_budget *most, const laci_budget *phase);

/** LAC_MEMORY_LIMIT where more is needed than allowed: "pad_3 (output of Pad 'p'): 1x3000000x512
 * f32, 5.7 GB; WHAT needs 11.5 GB, 8.0 GB are allowed". */
LAC_MUST_CHECK lac_status laci_budget_check(const laci_budget *budget, const char *what,
                                            lac_error *err);

/** "16G", "1.5g", "800M", "4096": K, M, G and T are powers of 1024. False: no size, 0, or more
 * than 64 bits hold. */
bool laci_size_parse(const char *text, uint64_t *bytes);
/** "11.5 GB" (2^30 bytes), "512 bytes", into the buffer, which comes back. */
const char *laci_size_text(uint64_t bytes, char *buffer, size_t size);

/** A count times a size, UINT64_MAX where that is more than 64 bits; counts below 0 are 0. */
uint64_t laci_bytes_of(int64_t count, size_t size);

#endif
