/* SPDX-License-Identifier: Apache-2.0
 * lap_rows.h with the vectors that the compiler takes for granted. */
#define LACI_LAP_ROWS_NAME laci_lap_rows_scalar
#include "kernel/lap_rows_text.h"
