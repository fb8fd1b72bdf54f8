/* SPDX-License-Identifier: Apache-2.0
 * How fast the kernels of the permutation search are: every variant that this processor has, a few
 * shapes a family, the least of some repeats. Speeds are in 10^9 elements a second, an element
 * being one that is looked at: a pair in the value table, a column's element in a choice of the
 * largest.
 *
 *     kernel_bench [milliseconds for each figure] */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "cpu/cpu.h"
#include "kernel/search/maxsum.h"
#include "kernel/search/quantize.h"
#include "kernel/search/topn.h"
#include "kernel/search/transpose.h"

enum { MOST_COLUMNS = 1024, MOST_ROWS = 4608, REPEATS = 7 };

#define LEVEL(name, level) level,
static const laci_cpu_level levels[] = {LACI_KERNEL_VARIANTS(LEVEL)};
#undef LEVEL
enum { N_LEVELS = sizeof levels / sizeof *levels };

/* One figure: a kernel called once, on data that the bench holds. */
typedef struct shape {
  const char *family, *text;
  laci_number number;
  int nt, nx; /* columns: of the table's sides; n of nx largest; rows and columns of a block */
  int rows;
  lac_dtype dtype;
} shape;

typedef struct bench {
  uint8_t *bytes; /* columns, or stored elements */
  int32_t *table;
  uint8_t *out;
  const void *t[MOST_COLUMNS], *x[MOST_COLUMNS];
  void *to[MOST_COLUMNS];
  int64_t sum; /* of what was computed, lest it be left out */
} bench;

typedef void run(bench *b, const shape *s);

static void run_table(bench *b, const shape *s) {
  laci_maxsum_job job = {.t = b->t, .x = b->x, .nt = s->nt, .nx = s->nx, .out = b->table};
  job.rows = (size_t)s->rows;
  job.out_stride = (size_t)s->nx;
  laci_maxsum_compute_table(s->number, &job);
}

static void run_nth(bench *b, const shape *s) {
  laci_nth_largest(s->number, b->x, s->nx, s->nt, (size_t)s->rows, b->out);
}

static void run_sum(bench *b, const shape *s) {
  b->sum += laci_sum_n_largest(s->number, b->x, s->nx, s->nt, (size_t)s->rows);
}

static void run_quantize(bench *b, const shape *s) {
  laci_search_quantizer q = {s->dtype, s->number, s->number == LACI_U8 ? 255 : 32767, 0};
  q.largest = q.scale;
  laci_search_quantize(&q, b->bytes, (size_t)s->rows, b->out);
}

static void run_transpose(bench *b, const shape *s) {
  laci_transpose(s->number, b->bytes, s->rows, s->nx, b->to, 0);
}

/* Seconds a call, the least of some repeats that take about so long together. */
static double measure(run *kernel, bench *b, const shape *s, double seconds) {
  double least = 1e30, once;
  int64_t n = 1;
  for (;; n *= 2) { /* how many calls the clock can tell apart */
    double start = laci_clock_seconds();
    for (int64_t i = 0; i < n; i++) kernel(b, s);
    once = laci_clock_seconds() - start;
    if (once > seconds / REPEATS / 2) break;
  }
  for (int repeat = 0; repeat < REPEATS; repeat++) {
    double start = laci_clock_seconds();
    for (int64_t i = 0; i < n; i++) kernel(b, s);
    double each = (laci_clock_seconds() - start) / (double)n;
    least = each < least ? each : least;
  }
  return least;
}

/* Columns a little apart from powers of two, as in the search; elements fit both numbers and are
 * finite as stored ones too. */
static int fill(bench *b) {
  const size_t column = 2 * MOST_ROWS + LACI_NUMBER_ROWS, all = 2 * MOST_COLUMNS * column;
  b->bytes = malloc(all);
  b->out = malloc(all);
  b->table = malloc(sizeof *b->table * MOST_COLUMNS * MOST_COLUMNS);
  if (!b->bytes || !b->out || !b->table) return 1;
  for (size_t i = 0; i < all; i++) b->bytes[i] = (uint8_t)(laci_rng(1, 0, i) & 0x3B);
  for (size_t c = 0; c < MOST_COLUMNS; c++) {
    b->t[c] = b->bytes + c * column;
    b->x[c] = b->bytes + (MOST_COLUMNS + c) * column;
    b->to[c] = b->out + c * column;
  }
  return 0;
}

static const struct {
  run *kernel;
  shape shape;
} cases[] = {
    {run_table, {"table", "i16   16 x 16   of  128 rows", LACI_I16, 16, 16, 128, 0}},
    {run_table, {"table", "u8    64 x 64   of  128 rows", LACI_U8, 64, 64, 128, 0}},
    {run_table, {"table", "u8    64 x 64   of 2304 rows", LACI_U8, 64, 64, 2304, 0}},
    {run_table, {"table", "u8   256 x 256  of  512 rows", LACI_U8, 256, 256, 512, 0}},
    {run_table, {"table", "u8     8 x 512  of 2048 rows", LACI_U8, 8, 512, 2048, 0}},
    {run_table, {"table", "i16  256 x 256  of  512 rows", LACI_I16, 256, 256, 512, 0}},
    {run_nth, {"nth", "i16  2nd of  3  of  128 rows", LACI_I16, 2, 3, 128, 0}},
    {run_nth, {"nth", "u8   2nd of  3  of 2304 rows", LACI_U8, 2, 3, 2304, 0}},
    {run_nth, {"nth", "u8   4th of  7  of 2304 rows", LACI_U8, 4, 7, 2304, 0}},
    {run_sum, {"sum", "i16   2 of   4  of  128 rows", LACI_I16, 2, 4, 128, 0}},
    {run_sum, {"sum", "u8    2 of   4  of 2304 rows", LACI_U8, 2, 4, 2304, 0}},
    {run_sum, {"sum", "u8    8 of  16  of 2304 rows", LACI_U8, 8, 16, 2304, 0}},
    {run_quantize, {"quantize", "f32 to u8,  4608 elements", LACI_U8, 1, 1, 4608, LAC_DTYPE_F32}},
    {run_quantize, {"quantize", "f32 to i16, 4608 elements", LACI_I16, 1, 1, 4608, LAC_DTYPE_F32}},
    {run_quantize, {"quantize", "bf16 to u8, 4608 elements", LACI_U8, 1, 1, 4608, LAC_DTYPE_BF16}},
    {run_quantize, {"quantize", "f16 to i16, 4608 elements", LACI_I16, 1, 1, 4608, LAC_DTYPE_F16}},
    {run_transpose, {"transpose", "u8,  64 rows of 512", LACI_U8, 1, 512, 64, 0}},
    {run_transpose, {"transpose", "i16, 64 rows of 512", LACI_I16, 1, 512, 64, 0}},
};

/* A row of the table: nanoseconds a call and speed, variant by variant. */
static void show(bench *b, run *kernel, const shape *s, double seconds) {
  double elements = (double)s->rows * s->nx * (kernel == run_table ? s->nt : 1);
  printf("%-8s %-30s", s->family, s->text);
  for (int i = 0; i < N_LEVELS; i++) {
    if (laci_cpu_limit_level(levels[i]) != levels[i]) continue;
    double each = measure(kernel, b, s, seconds);
    printf(" %10.0f ns %7.1f G/s", 1e9 * each, 1e-9 * elements / each);
  }
  printf("\n");
  (void)fflush(stdout);
}

int main(int argc, char **argv) {
  static bench b;
  double seconds = 1e-3 * (argc > 1 ? atof(argv[1]) : 50);
  if (!(seconds > 0) || seconds > 100) return 2;
  if (fill(&b)) {
    fprintf(stderr, "kernel_bench: not enough memory\n");
    return 1;
  }
  printf("%-39s", "kernel");
  for (int i = 0; i < N_LEVELS; i++) {
    if (laci_cpu_limit_level(levels[i]) == levels[i])
      printf(" %25s", laci_cpu_level_name(levels[i]));
  }
  printf("\n");
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    show(&b, cases[i].kernel, &cases[i].shape, seconds);
  }
  free(b.table);
  free(b.out);
  free(b.bytes);
  return 0;
}
