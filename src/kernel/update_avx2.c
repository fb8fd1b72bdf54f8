/* SPDX-License-Identifier: Apache-2.0
 * update.h by AVX2, as the compiler sees fit. */
#define UPDATE laci_update_avx2
#include "kernel/update_text.h"
