/* SPDX-License-Identifier: Apache-2.0
 * lap_rows.h for AVX2. */
#define LACI_LAP_ROWS_NAME laci_lap_rows_avx2
#include "kernel/lap_rows_text.h"
