/* SPDX-License-Identifier: Apache-2.0
 * gate.h by AVX-512. */
#define GATE laci_gate_avx512
#include "kernel/gate_text.h"
