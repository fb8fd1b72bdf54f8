/* SPDX-License-Identifier: Apache-2.0
 * gate.h on 64-bit ARM. */
#define GATE laci_gate_neon
#include "kernel/gate_text.h"
