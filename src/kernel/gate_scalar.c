/* SPDX-License-Identifier: Apache-2.0
 * gate.h as every processor can: the definition of right for the other variants. */
#define GATE laci_gate_scalar
#include "kernel/gate_text.h"
