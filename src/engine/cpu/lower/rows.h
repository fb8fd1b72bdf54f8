/* SPDX-License-Identifier: Apache-2.0
 * A step that computes its result in rows (kernel/pointwise/rows.h), from operands that may be
 * broadcast. User: masks.c. */
#ifndef LACI_ENGINE_CPU_LOWER_ROWS_H
#define LACI_ENGINE_CPU_LOWER_ROWS_H

#include "engine/cpu/net_in.h"
#include "kernel/pointwise/rows.h"

/** Adds a step that computes the fused node's output from the node's first n inputs. Its result is
 * row-major. */
void laci_rows_add_step(laci_net *net, const laci_fused *fused, laci_row_kind kind, int n);

#endif
