/* SPDX-License-Identifier: Apache-2.0
 * The generated code of one plan: written first, then made executable, never both at once.
 *
 * Kernels are generated into `code`, where they are data, and known by their entries. Sealing makes
 * its pages readable and executable, and no longer writable, in place. Where the system forbids
 * such pages (seccomp, SELinux, systemd's MemoryDenyWriteExecute), sealing fails LAC_UNSUPPORTED:
 * the caller uses other kernels and reports it. Numbers that code reads are in pages of their
 * own, which stay writable. Next: x86.h, sparse_code.h. */
#ifndef LACI_JIT_CACHE_H
#define LACI_JIT_CACHE_H

#include "jit/code.h"

typedef struct laci_code_cache laci_code_cache;

/** An empty one for at most so many bytes of code, and as many of data: addresses are reserved for
 * these, memory is taken for what is written. */
LAC_MUST_CHECK lac_status laci_code_cache_create(size_t limit_bytes, laci_code_cache **cache,
                                                 lac_error *err);
/** NULL is fine. Nobody may be running its code. */
void laci_code_cache_destroy(laci_code_cache *cache);

/** Where to write code; NULL once it is sealed. */
laci_code *laci_code_cache_open(laci_code_cache *cache);

/** Zeros that stay writable, for what code reads, as long as the cache; aligned to 64 bytes. Fails
 * LAC_NO_MEMORY, LAC_UNSUPPORTED beyond the limit. */
LAC_MUST_CHECK lac_status laci_code_cache_data(laci_code_cache *cache, size_t bytes, void **data,
                                               lac_error *err);

/** Makes what was written executable; no more can be. Fails LAC_UNSUPPORTED where the system
 * forbids it, LAC_NO_MEMORY; the cache can then be destroyed only. */
LAC_MUST_CHECK lac_status laci_code_cache_seal(laci_code_cache *cache, lac_error *err);

/** The function at an entry (the code's `n` when it was begun) of a sealed cache; any thread. */
void *laci_code_cache_at(const laci_code_cache *cache, size_t entry);
/** Bytes of code and of its data, for reports. */
size_t laci_code_cache_size(const laci_code_cache *cache);
size_t laci_code_cache_data_size(const laci_code_cache *cache);

#endif
