/* SPDX-License-Identifier: Apache-2.0
 * update.h on 64-bit ARM: scalar by name, since its plain code is vector code already. */
#define UPDATE laci_update_neon
#include "kernel/update_text.h"
