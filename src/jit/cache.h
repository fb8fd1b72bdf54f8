/* SPDX-License-Identifier: Apache-2.0
 * The generated code of one plan: written first, then made executable, never both at once.
 *
 * Kernels are generated into a buffer, and are identified by their offsets in it (entries). Sealing
 * makes the buffer's pages readable and executable in place, and no longer writable. Where the
 * system forbids such pages (seccomp, SELinux, systemd's MemoryDenyWriteExecute), sealing fails
 * LAC_UNSUPPORTED: the caller uses other kernels and reports it. Data that the code reads is in
 * separate pages, which stay writable. Read next: x86.h, sparse_code.h. */
#ifndef LACI_JIT_CACHE_H
#define LACI_JIT_CACHE_H

#include "jit/code.h"

typedef struct laci_code_cache laci_code_cache;

/** Creates an empty cache for at most limit_bytes bytes of code, and as many of data. Addresses are
 * reserved for all of these, but memory is used only for what is written. */
LAC_MUST_CHECK lac_status laci_code_cache_create(size_t limit_bytes, laci_code_cache **cache,
                                                 lac_error *err);
/** Frees the cache and its code, which no thread may be running. cache NULL is fine. */
void laci_code_cache_destroy(laci_code_cache *cache);

/** Returns the buffer to write code into; NULL once the cache is sealed. */
laci_code *laci_code_cache_get_writable(laci_code_cache *cache);

/** Returns zeroed memory for data that the code reads, aligned to 64 bytes. It stays writable and
 * lives as long as the cache. Fails LAC_NO_MEMORY, or LAC_UNSUPPORTED beyond the limit. */
LAC_MUST_CHECK lac_status laci_code_cache_alloc_data(laci_code_cache *cache, size_t bytes,
                                                     void **data, lac_error *err);

/** Makes the code executable; no more can be written. Fails LAC_UNSUPPORTED where the system
 * forbids it, or LAC_NO_MEMORY; the cache can then only be destroyed. */
LAC_MUST_CHECK lac_status laci_code_cache_seal(laci_code_cache *cache, lac_error *err);

/** Returns the address of the function that begins at byte `entry` of a sealed cache: the value
 * that the field n of the buffer had when its code began. Callable from any thread. */
void *laci_code_cache_find_function(const laci_code_cache *cache, size_t entry);
/** Return the bytes of code and of data, for reports. */
size_t laci_code_cache_code_bytes(const laci_code_cache *cache);
size_t laci_code_cache_data_bytes(const laci_code_cache *cache);

#endif
