/* SPDX-License-Identifier: Apache-2.0
 * lap_rows.h for NEON. */
#define LACI_LAP_ROWS_NAME laci_lap_rows_neon
#include "kernel/lap_rows_text.h"
