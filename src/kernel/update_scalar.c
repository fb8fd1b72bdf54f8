/* SPDX-License-Identifier: Apache-2.0
 * update.h as plain C: the definition. */
#define UPDATE laci_update_scalar
#include "kernel/update_text.h"
