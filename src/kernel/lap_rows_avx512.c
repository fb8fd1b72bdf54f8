/* SPDX-License-Identifier: Apache-2.0
 * lap_rows.h for AVX-512. */
#define LACI_LAP_ROWS_NAME laci_lap_rows_avx512
#include "kernel/lap_rows_text.h"
