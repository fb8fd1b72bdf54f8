/* SPDX-License-Identifier: Apache-2.0
 * A build without OpenBLAS. */
#include "kernel/linear/linear_in.h"

const laci_linear_backend *laci_linear_blas_backend(void) { return &laci_linear_plain; }
