/* SPDX-License-Identifier: Apache-2.0
 * How far bytes_pool_isa.c's memory for a row reaches. */
#ifndef LACI_KERNEL_SPARSE_BYTES_POOL_IN_H
#define LACI_KERNEL_SPARSE_BYTES_POOL_IN_H

enum {
  LACI_BYTES_POOL_SOME = 64, /* results of a row at a time */
  LACI_BYTES_POOL_STRIDE = 8,
  LACI_BYTES_POOL_KERNEL = 32,
};

#endif
