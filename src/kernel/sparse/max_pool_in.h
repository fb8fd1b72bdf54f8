/* SPDX-License-Identifier: Apache-2.0
 * Size of the row buffer of max_pool_isa.c, and how the work of max_pool.h is divided into
 * items. */
#ifndef LACI_KERNEL_SPARSE_BYTES_POOL_IN_H
#define LACI_KERNEL_SPARSE_BYTES_POOL_IN_H

#include "kernel/sparse/max_pool.h"

enum {
  LACI_MAX_POOL_RESULTS_AT_ONCE = 64, /* maximum number of results of a row that are computed at
                                         once */
  LACI_MAX_POOL_STRIDE = 8,
  LACI_MAX_POOL_KERNEL = 32,
};

/** Returns the number of channels of the layout. With bytes, four channels count as one. */
static inline int64_t laci_max_pool_n_channels(const laci_max_pool *p) {
  return laci_sparse_layout_channels(p->window.channels_in, p->window.values);
}
/** Returns the number of bands into which the rows of an image are divided. Tall images are divided
 * as the other kernels divide them, so that a thread mostly reads what it has written itself. */
static inline int64_t laci_max_pool_n_bands(const laci_max_pool *p) {
  enum { TALL = 16, BANDS = 4 };
  return p->window.out_h >= TALL ? BANDS : 1;
}
/** Returns the number of work items in an image block. Items are [band][channel]; in HWC16N,
 * rows. */
static inline int64_t laci_max_pool_items_per_block(const laci_max_pool *p) {
  if (p->in.format == LACI_FORMAT_HWC16N) return p->window.out_h;
  return laci_max_pool_n_bands(p) * laci_max_pool_n_channels(p);
}

#endif
