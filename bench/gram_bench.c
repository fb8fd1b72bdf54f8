/* SPDX-License-Identifier: Apache-2.0
 * Sums of products of a layer's inputs against OpenBLAS on unfolded inputs, one thread each.
 *
 *     gram_bench [--repeats N]
 *
 * The peer unfolds a block of positions, adds ssyrk of it (sgemm for K) to a matrix of floats, and
 * adds that in double; it is looked up by name, and left out where it is not there. GFLOP/s are
 * those of all products, half of them for H, whatever was saved. Times are the thread's own. */
#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/min.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernel/gram/gram.h"

enum { BLOCK = 1024, ROWS = 101, PLAIN = 111, TRANSPOSED = 112, UPPER = 121 };

typedef void syrk_of(int order, int half, int transposed, int n, int k, float alpha, const float *a,
                     int lda, float beta, float *c, int ldc);
typedef void gemm_of(int order, int transposed, int b_transposed, int m, int n, int k, float alpha,
                     const float *a, int lda, const float *b, int ldb, float beta, float *c,
                     int ldc);
static syrk_of *ssyrk;
static gemm_of *sgemm;

typedef struct bench_layer {
  const char *name;
  laci_unfold unfold;
} bench_layer;

#define NONE \
  { 1, 1, 1, 1, 1, 0 }
#define CONV(n, k) \
  NONE, {n, n, k, 1, 1, (k) / 2}, { n, n, k, 1, 1, (k) / 2 }
static const bench_layer layers[] = {
    {"3x3, 16 of 32x32", {32, 1, 16, {CONV(32, 3)}, false}},
    {"3x3, 32 of 16x16", {128, 1, 32, {CONV(16, 3)}, false}},
    {"3x3, 64 of 8x8", {128, 1, 64, {CONV(8, 3)}, false}},
    {"3x3, 64 of 56x56", {4, 1, 64, {CONV(56, 3)}, false}},
    {"3x3, 128 of 28x28", {8, 1, 128, {CONV(28, 3)}, false}},
    {"3x3, 256 of 14x14", {16, 1, 256, {CONV(14, 3)}, false}},
    {"3x3, 512 of 7x7", {32, 1, 512, {CONV(7, 3)}, false}},
    {"3x3, stride 2, 128 of 56x56",
     {4, 1, 128, {NONE, {56, 28, 3, 2, 1, 1}, {56, 28, 3, 2, 1, 1}}, false}},
    {"7x7, stride 2, 3 of 224x224",
     {4, 1, 3, {NONE, {224, 112, 7, 2, 1, 3}, {224, 112, 7, 2, 1, 3}}, false}},
    {"1x1, 256 of 56x56", {2, 1, 256, {CONV(56, 1)}, false}},
    {"1x1, 1024 of 14x14", {16, 1, 1024, {CONV(14, 1)}, false}},
    {"matrix, 768", {4096, 1, 768, {NONE, NONE, NONE}, false}},
    {"matrix, 3072", {1024, 1, 3072, {NONE, NONE, NONE}, false}},
    {"3x3, depthwise, 96 of 56x56", {4, 96, 1, {CONV(56, 3)}, false}},
    {"3x3, 32 groups of 4 of 56x56", {2, 32, 4, {CONV(56, 3)}, false}},
};
enum { N_LAYERS = sizeof layers / sizeof *layers };

typedef struct work {
  const laci_unfold *unfold;
  int64_t columns, positions;
  float *pruned, *dense, *lines, *others, *product;
  double *h, *k;
  void *scratch;
} work;

static void *need(size_t n, size_t size) {
  void *memory = laci_alloc(n, size);
  if (memory) return memory;
  (void)fprintf(stderr, "gram_bench: not enough memory\n");
  exit(1);
}

static void work_init(work *w, const laci_unfold *u) {
  const int64_t channel_pixels = u->axis[0].in * u->axis[1].in * u->axis[2].in;
  const size_t n = (size_t)(u->images * u->groups * u->channels * channel_pixels);
  *w = (work){.unfold = u, .columns = laci_unfold_n_columns(u)};
  w->positions = laci_unfold_n_positions(u);
  const size_t columns = (size_t)w->columns, count = (size_t)u->groups * columns * columns;
  w->pruned = need(n, sizeof *w->pruned);
  w->dense = need(n, sizeof *w->dense);
  w->lines = need(BLOCK * columns, sizeof *w->lines);
  w->others = need(BLOCK * columns, sizeof *w->others);
  w->product = need(columns * columns, sizeof *w->product);
  w->h = need(count, sizeof *w->h);
  w->k = need(count, sizeof *w->k);
  w->scratch = need(laci_gram_scratch_bytes(u, true), 1);
  for (size_t at = 0; at < n; at++) {
    w->pruned[at] = (float)laci_rng_unit_interval(1, 1, at);
    w->dense[at] = (float)laci_rng_unit_interval(1, 2, at);
  }
}

static void work_clear(work *w) {
  laci_free(w->pruned);
  laci_free(w->dense);
  laci_free(w->lines);
  laci_free(w->others);
  laci_free(w->product);
  laci_free(w->h);
  laci_free(w->k);
  laci_free(w->scratch);
}

static void run_ours(const work *w, bool with_dense) {
  laci_gram_add_positions(&(laci_gram){.unfold = w->unfold,
                                       .pruned = w->pruned,
                                       .dense = with_dense ? w->dense : NULL,
                                       .h = w->h,
                                       .k = w->k,
                                       .scratch = w->scratch},
                          NULL);
}

static void add(const work *w, double *sum, bool half) {
  for (int64_t i = 0; i < w->columns; i++) {
    for (int64_t j = half ? i : 0; j < w->columns; j++)
      sum[i * w->columns + j] += (double)w->product[i * w->columns + j];
  }
}

static void run_peer(const work *w, bool with_dense) {
  const int n = (int)w->columns;
  for (int64_t group = 0; group < w->unfold->groups; group++) {
    for (int64_t first = 0; first < w->positions; first += BLOCK) {
      const int k = (int)laci_min(BLOCK, w->positions - first);
      laci_unfold_lines to = {w->unfold, w->pruned, group, first, k, NULL, w->lines, BLOCK};
      laci_unfold_fill_lines(&to, 0, n);
      ssyrk(ROWS, UPPER, PLAIN, n, k, 1, w->lines, BLOCK, 0, w->product, n);
      add(w, w->h + group * n * n, true);
      if (!with_dense) continue;
      to.value = w->dense;
      to.lines = w->others;
      laci_unfold_fill_lines(&to, 0, n);
      sgemm(ROWS, PLAIN, TRANSPOSED, n, n, k, 1, w->others, BLOCK, w->lines, BLOCK, 0, w->product,
            n);
      add(w, w->k + group * n * n, false);
    }
  }
}

static double seconds_of_thread(void) {
  struct timespec t = {0};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The least of some runs. */
static double seconds_of(void (*run)(const work *, bool), const work *w, bool with_dense,
                         int repeats) {
  double least = 0;
  for (int at = 0; at <= repeats; at++) {
    const double start = seconds_of_thread();
    run(w, with_dense);
    const double took = seconds_of_thread() - start;
    if (at == 1 || (at > 1 && took < least)) least = took;
  }
  return least;
}

static void run_layer(const bench_layer *l, int repeats) {
  work w;
  work_init(&w, &l->unfold);
  for (int dense = 0; dense < 2; dense++) {
    const double flop = (double)w.positions * (double)w.columns * (double)w.columns *
                        (double)l->unfold.groups * (dense ? 3 : 1);
    const double ours = seconds_of(run_ours, &w, dense != 0, repeats);
    const double peer = ssyrk ? seconds_of(run_peer, &w, dense != 0, repeats) : 0;
    printf("%-30s %-7s %9.2f ms %7.1f GFLOP/s", l->name, dense ? "H and K" : "H", ours * 1e3,
           flop / ours * 1e-9);
    if (ssyrk)
      printf("   OpenBLAS %9.2f ms %7.1f GFLOP/s   %.2f", peer * 1e3, flop / peer * 1e-9,
             peer / ours);
    printf("%s\n", laci_gram_can_correlate(&l->unfold) ? "   by displacements" : "");
    (void)fflush(stdout);
  }
  work_clear(&w);
}

int main(int argc, char **argv) {
  static const struct option options[] = {{"repeats", required_argument, NULL, 'r'}, {0}};
  int repeats = 5;
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
    if (option == 'r') repeats = (int)strtol(optarg, NULL, 10);
    if (option != 'r' || repeats < 1) {
      (void)fprintf(stderr, "usage: gram_bench [--repeats N]\n");
      return 2;
    }
  }
  (void)setenv("OMP_NUM_THREADS", "1",
               1); /* before the library's run time, which it alone may have */
  (void)setenv("OPENBLAS_NUM_THREADS", "1", 1);
  void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  void *syrk = library ? dlsym(library, "cblas_ssyrk") : NULL;
  void *gemm = library ? dlsym(library, "cblas_sgemm") : NULL;
  if (syrk && gemm) {
    memcpy(&ssyrk, &syrk, sizeof syrk);
    memcpy(&sgemm, &gemm, sizeof gemm);
  }
  for (int at = 0; at < N_LAYERS; at++) run_layer(&layers[at], repeats);
  return 0;
}
