/* SPDX-License-Identifier: Apache-2.0
 * attention.h by AVX2 and FMA. */
#define ATTEND laci_attend_avx2
#include "kernel/attention_text.h"
