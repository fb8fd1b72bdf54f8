/* SPDX-License-Identifier: Apache-2.0
 * What the search is measured on and what it has to reach there, one line a row of the table.
 *
 * limits: seconds that every algorithm gets. A bound belongs to one of them: mean efficacy of
 * `assign` over the seeds, or with `share` the part of the seeds that has to reach it. bound_ms:
 * proven, by `exact`, within so many milliseconds. beats: in limits[0] better than every rival
 * given the same time. Next: search_bench.c. */
#ifndef BENCH_SEARCH_CASES_H
#define BENCH_SEARCH_CASES_H

#include "matrices.h"

enum { CASE_MOST_LIMITS = 10, CASE_MOST_BOUNDS = 3 };

typedef struct case_bound {
  double seconds, efficacy, share;
} case_bound;

typedef struct search_case {
  const char *name;
  matrix_weights weights;
  int rows, columns;
  laci_pattern pattern;
  double limits[CASE_MOST_LIMITS]; /* ascending, 0: no more */
  case_bound bounds[CASE_MOST_BOUNDS];
  double bound_ms;
  bool beats;
  bool large; /* left out of a quick run */
} search_case;

static const search_case search_cases[] = {
    {.name = "reference",
     .weights = NUMPY,
     .rows = 128,
     .columns = 64,
     .pattern = {2, 4},
     .limits = {0.0003, 0.0005, 0.001, 0.002, 0.005, 0.010, 0.030, 0.100, 0.300, 1.0},
     .bounds = {{0.002, 36.6, 0}, {0.010, 38.3, 0}, {1.0, 39.25, 0.9}}},
    {.name = "16 channels",
     .weights = UNIFORM,
     .rows = 1152,
     .columns = 16,
     .pattern = {2, 4},
     .bound_ms = 50},
    {.name = "20 channels",
     .weights = UNIFORM,
     .rows = 512,
     .columns = 20,
     .pattern = {2, 4},
     .bound_ms = 50},
    {.name = "128x256",
     .weights = UNIFORM,
     .rows = 128,
     .columns = 256,
     .pattern = {2, 4},
     .limits = {0.01, 0.1, 1.0}},
    {.name = "2304x256",
     .weights = HETEROGENEOUS,
     .rows = 2304,
     .columns = 256,
     .pattern = {2, 4},
     .limits = {0.005, 0.010, 0.020, 0.050, 0.100, 0.200, 0.500, 1.0, 3.0}},
    {.name = "512x1024",
     .weights = GAUSSIAN,
     .rows = 512,
     .columns = 1024,
     .pattern = {2, 4},
     .limits = {0.010, 0.030, 0.100, 0.200, 0.500, 1.0, 3.0, 10.0},
     .bounds = {{1.0, 26.0, 0}}},
    {.name = "2048x2048",
     .weights = UNIFORM,
     .rows = 2048,
     .columns = 2048,
     .pattern = {2, 4},
     .limits = {0.100, 1.0, 10.0},
     .bounds = {{1.0, 13.2, 0}, {10.0, 14.0, 0}},
     .large = true},
    {.name = "4096x4096",
     .weights = GAUSSIAN,
     .rows = 4096,
     .columns = 4096,
     .pattern = {2, 4},
     .limits = {1.0, 10.0},
     .bounds = {{1.0, 9.5, 0}, {10.0, 10.5, 0}},
     .large = true},
    {.name = "11008x4096",
     .weights = GAUSSIAN,
     .rows = 11008,
     .columns = 4096,
     .pattern = {2, 4},
     .limits = {10.0},
     .bounds = {{10.0, 6.3, 0}},
     .large = true},
    {.name = "4:8",
     .weights = GAUSSIAN,
     .rows = 512,
     .columns = 512,
     .pattern = {4, 8},
     .limits = {1.0},
     .beats = true},
    {.name = "1:4",
     .weights = GAUSSIAN,
     .rows = 512,
     .columns = 512,
     .pattern = {1, 4},
     .limits = {1.0},
     .beats = true},
    {.name = "2:8",
     .weights = GAUSSIAN,
     .rows = 512,
     .columns = 512,
     .pattern = {2, 8},
     .limits = {1.0},
     .beats = true},
};

#endif
