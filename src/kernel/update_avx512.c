/* SPDX-License-Identifier: Apache-2.0
 * update.h by AVX-512, as the compiler sees fit. */
#define UPDATE laci_update_avx512
#include "kernel/update_text.h"
