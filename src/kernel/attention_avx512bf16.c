/* SPDX-License-Identifier: Apache-2.0
 * attention.h by AVX512-BF16: both products multiply pairs of bf16 and sum in f32. */
#define ATTEND laci_attend_avx512bf16
#define PAIRS
#include "kernel/attention_text.h"
