/* SPDX-License-Identifier: Apache-2.0
 * attention.h by AVX-512. */
#define ATTEND laci_attend_avx512
#include "kernel/attention_text.h"
