/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of topn.h. Calls are small (the columns of one block), so the choice is only
 * an atomic read and a table. Read next: topn_scalar.c. */
#include "kernel/search/topn.h"

#include "cpu/cpu.h"

static const struct {
  laci_nth *nth;
  laci_sum *sum;
} of_level[] = {
#define VARIANT(name, level) [level] = {laci_nth_largest_##name, laci_sum_n_largest_##name},
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

void laci_nth_largest(laci_number number, const void *const *columns, int n_columns, int n,
                      size_t rows, void *out) {
  of_level[laci_cpu_level_in_force()].nth(number, columns, n_columns, n, rows, out);
}

int64_t laci_sum_n_largest(laci_number number, const void *const *columns, int n_columns, int n,
                           size_t rows) {
  return of_level[laci_cpu_level_in_force()].sum(number, columns, n_columns, n, rows);
}
