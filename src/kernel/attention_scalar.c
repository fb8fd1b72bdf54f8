/* SPDX-License-Identifier: Apache-2.0
 * attention.h as every processor can: the definition of right for the other variants. */
#define ATTEND laci_attend_scalar
#include "kernel/attention_text.h"
