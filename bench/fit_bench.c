/* SPDX-License-Identifier: Apache-2.0
 * Seconds that a layer's mask and exact weights take.
 *
 *     fit_bench [--threads N] [--score NAME] [--layer ROWSxCOLUMNSxCHANNELS]...
 *
 * Without layers: a 3x3 layer of ResNet-20 and the largest one of ResNet-50. Inputs have much in
 * common, as those of networks have: a few hidden directions of falling strength, and noise; H and
 * K are their sums, made directly from these. Errors are relative to the energy of the outputs. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "calibrate/fit.h"
#include "cpu/pool.h"
#include "kernel/linear/linear.h"

enum { MOST_LAYERS = 8 };

static const double SHIFT = 0.05; /* of the pruned network's inputs, relative to the noise */

typedef struct form {
  int rows, columns, channels;
} form;

typedef struct layer {
  laci_fit fit;
  double *h, *k, *weight, energy;
} layer;

static void *need(size_t n, size_t size) {
  void *memory = laci_alloc(n, size);
  if (memory) return memory;
  (void)fprintf(stderr, "fit_bench: not enough memory\n");
  exit(1);
}

static double gaussian(uint64_t stream, uint64_t at) {
  const double u = laci_rng_unit_interval(1, stream, 2 * at),
               v = laci_rng_unit_interval(1, stream, 2 * at + 1);
  return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

/* H = Z'Z + I, for all positions; K loses a little, and H has more noise on its diagonal. */
static void sum_products(layer *l, const double *hidden, int n_hidden, laci_pool *pool) {
  const int n = l->fit.columns;
  laci_linear_product(pool, &(laci_linear_operands){.m = n,
                                                    .n = n,
                                                    .k = n_hidden,
                                                    .lda = n,
                                                    .ldb = n,
                                                    .ldc = n,
                                                    .a_transposed = true,
                                                    .alpha = l->fit.positions,
                                                    .a = hidden,
                                                    .b = hidden,
                                                    .c = l->h});
  for (int64_t i = 0; i < n; i++) l->h[i * n + i] += l->fit.positions;
  for (int64_t at = 0; at < (int64_t)n * n; at++) l->k[at] = l->h[at] * (1 - SHIFT * 0.1);
  for (int64_t i = 0; i < n; i++) l->h[i * n + i] *= 1 + SHIFT * SHIFT;
}

static void layer_init(layer *l, const form *f, laci_pool *pool) {
  const int n = f->columns, n_hidden = n / 8 + 8;
  double *hidden = need((size_t)n_hidden * (size_t)n, sizeof *hidden);
  l->h = need((size_t)n * (size_t)n, sizeof *l->h);
  l->k = need((size_t)n * (size_t)n, sizeof *l->k);
  l->weight = need((size_t)f->rows * (size_t)n, sizeof *l->weight);
  for (int d = 0; d < n_hidden; d++) {
    for (int c = 0; c < n; c++) {
      hidden[(int64_t)d * n + c] = gaussian(2, (uint64_t)d * (uint64_t)n + (uint64_t)c) /
                                   sqrt(1 + 0.5 * d) * exp(0.5 * gaussian(3, (uint64_t)c));
    }
  }
  for (int64_t at = 0; at < (int64_t)f->rows * n; at++) l->weight[at] = gaussian(4, (uint64_t)at);
  l->fit = (laci_fit){.name = "layer", .rows = f->rows, .columns = n, .channels = f->channels};
  l->fit.pattern = (laci_pattern){2, 4};
  l->fit.positions = 1e5;
  l->fit.h = l->h;
  l->fit.k = l->k;
  l->fit.weight = l->weight;
  sum_products(l, hidden, n_hidden, pool);
  laci_free(hidden);
}

static void layer_clear(layer *l) {
  laci_free(l->h);
  laci_free(l->k);
  laci_free(l->weight);
}

static double seconds_of_processors(void) {
  struct timespec t = {0};
  (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static lac_status run_layer(const form *f, const laci_score *score, laci_pool *pool,
                            lac_error *err) {
  layer l = {0};
  layer_init(&l, f, pool);
  const size_t count = (size_t)f->rows * (size_t)f->columns;
  uint8_t *mask = need(count, 1);
  double *weight = need(count, sizeof *weight), *solved = need(count, sizeof *solved);
  double all, before, after;
  const double start = laci_clock_seconds(), cpu = seconds_of_processors();
  lac_status st = laci_fit_choose_mask(&l.fit, score, pool, mask, weight, err);
  const double chosen = laci_clock_seconds() - start, cpu_chosen = seconds_of_processors() - cpu;
  if (!st) st = laci_fit_solve_weights(&l.fit, mask, pool, solved, err);
  const double both = laci_clock_seconds() - start, cpu_both = seconds_of_processors() - cpu;
  l.fit.k = NULL; /* symmetric errors need no energy */
  double *none = need(count, sizeof *none);
  if (!st) st = laci_fit_compute_error(&l.fit, none, 0, pool, &all, err);
  if (!st) st = laci_fit_compute_error(&l.fit, weight, 0, pool, &before, err);
  if (!st) st = laci_fit_compute_error(&l.fit, solved, 0, pool, &after, err);
  if (!st) {
    printf(
        "%4d x %4d  %-9s  mask %.3f / %.3f s  solution %.3f / %.3f s  error %.5f, solved %.5f  "
        "%.2f GB\n",
        f->rows, f->columns, laci_score_name(score), chosen, cpu_chosen, both - chosen,
        cpu_both - cpu_chosen, before / all, after / all,
        (double)laci_fit_memory_bytes(&l.fit, score, laci_pool_threads(pool)) / 1e9);
    (void)fflush(stdout);
  }
  laci_free(none);
  laci_free(mask);
  laci_free(weight);
  laci_free(solved);
  layer_clear(&l);
  return st;
}

static bool form_parse(const char *text, form *f) {
  char *end;
  f->rows = (int)strtol(text, &end, 10);
  f->columns = *end == 'x' ? (int)strtol(end + 1, &end, 10) : 0;
  f->channels = *end == 'x' ? (int)strtol(end + 1, &end, 10) : 0;
  return !*end && f->rows > 0 && f->channels > 0 && f->columns % f->channels == 0;
}

int main(int argc, char **argv) {
  static const struct option options[] = {{"threads", required_argument, NULL, 't'},
                                          {"score", required_argument, NULL, 's'},
                                          {"layer", required_argument, NULL, 'l'},
                                          {0}};
  form forms[MOST_LAYERS] = {{64, 576, 64}, {512, 4608, 512}};
  int n_forms = 0, n_threads = 0;
  const laci_score *score = laci_score_find("alps");
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) >= 0;) {
    bool good = option != '?';
    if (option == 't') n_threads = (int)strtol(optarg, NULL, 10);
    if (option == 's') good = (score = laci_score_find(optarg)) != NULL;
    if (option == 'l') good = n_forms < MOST_LAYERS && form_parse(optarg, &forms[n_forms++]);
    if (!good) {
      (void)fprintf(stderr,
                    "usage: fit_bench [--threads N] [--score NAME] [--layer RxCxCHANNELS]...\n");
      return 2;
    }
  }
  if (!n_forms) n_forms = 2;
  laci_pool *pool = NULL;
  lac_error err = {0};
  lac_status st = laci_pool_create(n_threads, &pool, &err);
  for (int at = 0; at < n_forms && !st; at++) st = run_layer(&forms[at], score, pool, &err);
  if (st) (void)fprintf(stderr, "fit_bench: %s\n", err.text);
  laci_pool_destroy(pool);
  return st ? 1 : 0;
}
