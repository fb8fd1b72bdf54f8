/* SPDX-License-Identifier: Apache-2.0
 * Chooses the variant of byte_moves.h for the SIMD level in force, and finds runs of columns. */
#include "kernel/sparse/byte_moves.h"

#include "cpu/cpu.h"
#include "kernel/variants.h"

static laci_byte_move_run *const of_level[] = {
#define VARIANT(name, level) [level] = laci_byte_move_##name,
    LACI_KERNEL_VARIANTS(VARIANT)
#undef VARIANT
};

laci_byte_move_run *laci_byte_move_variant(void) { return of_level[laci_cpu_level_in_force()]; }

int64_t laci_byte_move_n_items(const laci_byte_move *m) {
  return m->n_image_blocks * laci_sparse_layout_channels(m->channels, LACI_SPARSE_S8);
}

/* ---- Runs ---- */

static int64_t count_equal(const int32_t *list, int64_t at, int64_t n) {
  int64_t same = 1;
  while (at + same < n && list[at + same] == list[at]) same++;
  return same;
}

/* Returns the longest run of columns from column `at` of y on. columns: [n] the column of the
 * operand for each column of y; -1: the part has none. columns[at] is not -1. */
static laci_byte_run find_run(const int32_t *columns, int64_t at, int64_t n) {
  laci_byte_run r = {(int32_t)at, columns[at], 1, 1, 1, (int32_t)count_equal(columns, at, n)};
  int64_t next = at + r.repeat;
  while (next < n && columns[next] < 0) next++;
  if (next == n || (r.repeat > 1 && next != at + r.repeat)) return r;
  r.to_step = (int32_t)(next - at);
  r.from_step = columns[next] - columns[at];
  for (; next < n; next += r.to_step, r.n++) {
    if (columns[next] != r.from + (int64_t)r.n * r.from_step || columns[next] < 0) break;
    if (count_equal(columns, next, n) != r.repeat) break;
    int64_t between = next - r.to_step + r.repeat;
    while (between < next && columns[between] < 0) between++;
    if (between < next) break;
  }
  return r;
}

int64_t laci_byte_move_find_runs(const int32_t *columns, int64_t n, laci_byte_run *runs) {
  int64_t n_runs = 0;
  for (int64_t at = 0; at < n;) {
    if (columns[at] < 0) {
      at++;
      continue;
    }
    const laci_byte_run r = find_run(columns, at, n);
    at += (int64_t)(r.n - 1) * r.to_step + r.repeat;
    if (runs) runs[n_runs] = r;
    n_runs++;
  }
  return n_runs;
}
