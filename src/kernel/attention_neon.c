/* SPDX-License-Identifier: Apache-2.0
 * attention.h on 64-bit ARM. */
#define ATTEND laci_attend_neon
#include "kernel/attention_text.h"
