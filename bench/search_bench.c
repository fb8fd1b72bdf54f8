/* SPDX-License-Identifier: Apache-2.0
 * What the search strategies reach and what they take, on matrices that others can make again: the
 * 128 x 64 one that the open reference publishes figures for (NumPy's legacy generator, seed 1),
 * uniform and gaussian ones, and the classes of a network the shape of ResNet-50.
 *
 *     search_bench [threads] [pattern n:m] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "cpu/cpu.h"
#include "permute/search.h"

/* Mersenne Twister MT19937 (M. Matsumoto, T. Nishimura, 1998), as NumPy seeds and reads it. */
typedef struct twister {
  uint32_t state[624];
  int at;
} twister;

static void twister_seed(twister *t, uint32_t seed) {
  for (uint32_t i = 0; i < 624; i++) {
    t->state[i] = seed;
    seed = 1812433253U * (seed ^ seed >> 30) + i + 1;
  }
  t->at = 624;
}

static uint32_t twister_next(twister *t) {
  if (t->at == 624) {
    for (int i = 0; i < 624; i++) {
      uint32_t y = (t->state[i] & 0x80000000U) | (t->state[(i + 1) % 624] & 0x7FFFFFFFU);
      t->state[i] = t->state[(i + 397) % 624] ^ y >> 1 ^ (y & 1 ? 0x9908B0DFU : 0);
    }
    t->at = 0;
  }
  uint32_t y = t->state[t->at++];
  y ^= y >> 11;
  y ^= y << 7 & 0x9D2C5680U;
  y ^= y << 15 & 0xEFC60000U;
  return y ^ y >> 18;
}

static double twister_unit(twister *t) {
  uint32_t a = twister_next(t) >> 5, b = twister_next(t) >> 6;
  return (a * 67108864.0 + b) / 9007199254740992.0;
}

typedef enum kind { README, UNIFORM, GAUSSIAN } kind;

static float element(kind k, twister *t, uint64_t seed, uint64_t at) {
  if (k == README) return (float)twister_unit(t);
  double u = laci_rng_unit(seed, 0, at), v = laci_rng_unit(seed, 1, at);
  if (k == UNIFORM) return (float)u;
  return (float)(sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v));
}

typedef struct matrix {
  float *values;
  int32_t *column, *order;
  laci_sheet sheet;
  laci_problem problem;
} matrix;

static void *need(void *memory) {
  if (!memory) {
    fprintf(stderr, "search_bench: not enough memory\n");
    exit(1);
  }
  return memory;
}

static matrix make(kind k, int64_t rows, int columns, int64_t inner, laci_pattern pattern,
                   uint64_t seed) {
  matrix m = {.values = need(malloc(sizeof(float) * (size_t)(rows * columns))),
              .column = need(malloc(sizeof(int32_t) * (size_t)columns)),
              .order = need(malloc(sizeof(int32_t) * (size_t)columns))};
  twister t;
  twister_seed(&t, 1);
  for (int64_t i = 0; i < rows * columns; i++) m.values[i] = element(k, &t, seed, (uint64_t)i);
  for (int i = 0; i < columns; i++) m.column[i] = i;
  m.sheet.weight =
      (laci_weight_view){.name = "w", .dtype = LAC_DTYPE_F32, .bytes = (const uint8_t *)m.values};
  m.sheet.weight.outer = rows / inner;
  m.sheet.weight.inner = inner;
  m.sheet.weight.columns = m.sheet.weight.run = columns;
  m.sheet.outer_end = rows / inner;
  m.sheet.column = m.column;
  m.problem = (laci_problem){.name = "w", .n_channels = columns, .pattern = pattern, .n_sheets = 1};
  return m;
}

static void clear(matrix *m) {
  free(m->values);
  free(m->column);
  free(m->order);
}

static int search(matrix *m, const char *strategy, laci_effort effort, uint64_t seed,
                  laci_pool *pool, double *efficacy, double *ms, int64_t *iterations) {
  laci_search_options options = {.effort = effort, .strategy = strategy, .seed = seed};
  laci_found found = {.order = m->order};
  lac_error err = {0};
  m->problem.sheets = &m->sheet;
  double start = laci_clock_seconds();
  if (laci_search(&m->problem, &options, pool, &found, &err)) {
    fprintf(stderr, "search_bench: %s\n", err.text);
    return 1;
  }
  *ms = 1e3 * (laci_clock_seconds() - start);
  *efficacy = 100 * (found.kept - found.kept_identity) / (found.upper - found.kept_identity);
  *iterations = found.iterations;
  return strcmp(found.strategy, strategy) != 0; /* it does not fit */
}

static const char *const effort_names[] = {"fast", "normal", "best"};

static void compare(const char *name, kind k, int64_t rows, int columns, laci_pattern pattern,
                    laci_pool *pool) {
  static const struct {
    const char *name;
    laci_effort effort;
  } ways[] = {{"exact", LACI_EFFORT_NORMAL},  {"stripes", LACI_EFFORT_NORMAL},
              {"swap", LACI_EFFORT_NORMAL},   {"assign", LACI_EFFORT_FAST},
              {"assign", LACI_EFFORT_NORMAL}, {"assign", LACI_EFFORT_BEST}};
  matrix m = make(k, rows, columns, 1, pattern, 1);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    const int n_seeds = rows * columns <= 32768 ? 5 : 1;
    double efficacy = 0, ms = 0, sum = 0, least = 1e30;
    int64_t iterations = 0;
    if (rows * columns > 1500000 && (i == 1 || i == 5)) continue; /* minutes */
    int failed = 0;
    for (int seed = 0; seed < n_seeds && !failed; seed++) {
      failed = search(&m, ways[i].name, ways[i].effort, (uint64_t)seed, pool, &efficacy, &ms,
                      &iterations);
      sum += efficacy;
      least = ms < least ? ms : least;
    }
    if (failed) continue;
    printf("%-22s %-8s %-7s %9.3f %10.2f ms %6lld iterations\n", name, ways[i].name,
           effort_names[ways[i].effort], sum / n_seeds, least, (long long)iterations);
    (void)fflush(stdout);
  }
  clear(&m);
}

/* Channels and rows of the classes of ResNet-50: the three layers inside each block, and the sums
 * between them. */
static int resnet50(matrix *out, laci_pattern pattern) {
  static const struct { int width, depth; } stages[4] = {{64, 3}, {128, 4}, {256, 6}, {512, 3}};
  int n = 0;
  out[n++] = make(GAUSSIAN, 64 + 256, 64, 1, pattern,
                  1); /* the stem feeds the first block and its shortcut */
  for (int s = 0; s < 4; s++) {
    int width = stages[s].width;
    for (int block = 0; block < stages[s].depth; block++) {
      out[n] = make(GAUSSIAN, 9 * (int64_t)width, width, 9, pattern, (uint64_t)n);
      n++;
      out[n] = make(GAUSSIAN, 4 * (int64_t)width, width, 1, pattern, (uint64_t)n);
      n++;
    }
    int64_t readers =
        (int64_t)width * (stages[s].depth - 1) + (s < 3 ? 2 * width + 8 * width : 1000);
    out[n] = make(GAUSSIAN, readers, 4 * width, 1, pattern, (uint64_t)n);
    n++;
  }
  return n;
}

static int whole_network(laci_pattern pattern, laci_pool *pool) {
  static matrix m[64];
  laci_problem problems[64];
  laci_found found[64] = {{0}};
  int n = resnet50(m, pattern);
  int64_t weights = 0;
  for (int i = 0; i < n; i++) {
    m[i].problem.sheets = &m[i].sheet;
    problems[i] = m[i].problem;
    found[i].order = m[i].order;
    weights += m[i].sheet.weight.outer * m[i].sheet.weight.columns * m[i].sheet.weight.inner;
  }
  for (int effort = LACI_EFFORT_FAST; effort <= LACI_EFFORT_NORMAL; effort++) {
    laci_search_options options = {.effort = (laci_effort)effort};
    lac_error err = {0};
    double start = laci_clock_seconds(), sum = 0;
    if (laci_search_all(problems, n, &options, pool, found, &err)) {
      fprintf(stderr, "search_bench: %s\n", err.text);
      return 1;
    }
    double seconds = laci_clock_seconds() - start;
    for (int i = 0; i < n; i++) {
      sum += 100 * (found[i].kept - found[i].kept_identity) /
             (found[i].upper - found[i].kept_identity);
    }
    printf(
        "ResNet-50 shaped: %d classes, %.1f M weights, %-6s mean efficacy %.3f, %.2f s, %d "
        "threads, %s\n",
        n, 1e-6 * (double)weights, effort_names[effort], sum / n, seconds, laci_pool_threads(pool),
        laci_cpu_name(laci_cpu()));
  }
  for (int i = 0; i < n; i++) clear(&m[i]);
  return 0;
}

int main(int argc, char **argv) {
  laci_pool *pool = NULL;
  laci_pattern pattern = {2, 4};
  if (argc > 2 && sscanf(argv[2], "%d:%d", &pattern.n, &pattern.m) != 2) return 2;
  if (laci_pool_create(argc > 1 ? atoi(argv[1]) : 1, &pool, NULL)) return 1;
  printf("%-22s %-8s %-7s %9s\n", "rows x columns", "strategy", "effort", "efficacy");
  compare("128 x 16 uniform", UNIFORM, 128, 16, pattern, pool);
  compare("128 x 64 reference", README, 128, 64, pattern, pool);
  compare("128 x 256 uniform", UNIFORM, 128, 256, pattern, pool);
  compare("2304 x 256 gaussian", GAUSSIAN, 2304, 256, pattern, pool);
  compare("512 x 1024 gaussian", GAUSSIAN, 512, 1024, pattern, pool);
  compare("2048 x 2048 uniform", UNIFORM, 2048, 2048, pattern, pool);
  int failed = whole_network(pattern, pool);
  laci_pool_destroy(pool);
  return failed;
}
