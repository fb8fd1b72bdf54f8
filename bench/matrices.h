/* SPDX-License-Identifier: Apache-2.0
 * The matrices that the search is measured on: one class of channels and the weights that read it.
 *
 * numpy          numpy.random.seed(1); numpy.random.rand(rows, columns), as float32
 * uniform        independent, in [0, 1)
 * gaussian       independent, mean 0, deviation 1
 * heterogeneous  like trained weights, where most of what a search can gain lies in how different
 *                rows and columns are:  w = row * column * t,  row = exp(0.5 g),
 *                column = exp(0.5 g) with gaussian g (a convolution has a row for each output
 *                channel and position, a column for each input channel), and t from Student's
 *                distribution with 4 degrees of freedom. Every weight that reads the class has
 *                rows and columns of its own.
 *
 * A weight is a function of (seed, consumer, row, column) only: any part of a matrix can be made
 * again, in any order. Next: network.h (the classes of ResNet-50), contenders.h (what is measured).
 * */
#ifndef BENCH_MATRICES_H
#define BENCH_MATRICES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "support/numpy_random.h"
#include "permute/search.h"

enum { MATRIX_MOST_CONSUMERS = 8 };

typedef enum matrix_weights { NUMPY, UNIFORM, GAUSSIAN, HETEROGENEOUS } matrix_weights;

static const char *const matrix_weights_names[] = {"numpy", "uniform", "gaussian", "heterogeneous"};

/** What is to be made. A consumer is a weight [outer, channels, inner]: outer * inner rows. */
typedef struct matrix_form {
  char name[48];
  matrix_weights weights;
  laci_pattern pattern;
  int channels, n_consumers;
  struct {
    int64_t outer, inner;
  } consumers[MATRIX_MOST_CONSUMERS];
  uint64_t seed;
} matrix_form;

/** A search problem with its memory. Points into itself: not to be copied. */
typedef struct matrix {
  matrix_form form;
  float *values[MATRIX_MOST_CONSUMERS];
  int32_t *column; /* [channels] 0, 1, 2 ... */
  laci_slice slices[MATRIX_MOST_CONSUMERS];
  laci_problem problem;
} matrix;

/** A bench has no better answer to a lack of memory than to end. */
static inline void *need(size_t n, size_t size) {
  void *memory = calloc(n ? n : 1, size);
  if (memory) return memory;
  (void)fprintf(stderr, "bench: not enough memory for %zu elements\n", n);
  exit(1);
}

static inline int64_t matrix_rows(const matrix_form *form) {
  int64_t rows = 0;
  for (int i = 0; i < form->n_consumers; i++) {
    rows += form->consumers[i].outer * form->consumers[i].inner;
  }
  return rows;
}

/* ---- elements ---- */

/* Four numbers in (0, 1) that belong to (seed, stream, counter). */
static inline void units_of(uint64_t seed, uint64_t stream, uint64_t counter, double unit[4]) {
  uint32_t at[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream, 0xBE7CU};
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, word[4];
  laci_rng_block(at, key, word);
  for (int i = 0; i < 4; i++) unit[i] = (word[i] + 0.5) / 4294967296.0;
}

/* Box and Muller: two uniform numbers make a gaussian one. */
static inline double gaussian_of(const double unit[2]) {
  return sqrt(-2 * log(unit[0])) * cos(6.283185307179586 * unit[1]);
}

/* g / sqrt(chi / 4) where chi, the sum of four squared gaussians, is -2 ln(u v). */
static inline double student_of(const double unit[4]) {
  return gaussian_of(unit) / sqrt(-2 * log(unit[2] * unit[3]) / 4);
}

static inline double scale_of(uint64_t seed, uint64_t stream, uint64_t counter) {
  double unit[4];
  units_of(seed, stream, counter, unit);
  return exp(0.5 * gaussian_of(unit));
}

static inline double element_of(const matrix_form *form, uint64_t consumer, uint64_t at) {
  double unit[4];
  units_of(form->seed, 4 * consumer, at, unit);
  if (form->weights == UNIFORM) return unit[0];
  return form->weights == GAUSSIAN ? gaussian_of(unit) : student_of(unit);
}

/* values: [outer, channels, inner] */
static inline void fill_consumer(const matrix_form *form, int which, float *values) {
  const int64_t outer = form->consumers[which].outer, inner = form->consumers[which].inner;
  const int64_t columns = form->channels, rows = outer * inner;
  const uint64_t consumer = (uint64_t)which;
  const bool scaled = form->weights == HETEROGENEOUS;
  double *row = need((size_t)rows, sizeof *row), *column = need((size_t)columns, sizeof *column);
  for (int64_t r = 0; r < rows; r++) {
    row[r] = scaled ? scale_of(form->seed, 4 * consumer + 1, (uint64_t)r) : 1;
  }
  for (int64_t c = 0; c < columns; c++) {
    column[c] = scaled ? scale_of(form->seed, 4 * consumer + 2, (uint64_t)c) : 1;
  }
  for (int64_t at = 0; at < rows * columns; at++) {
    int64_t o = at / (columns * inner), c = at / inner % columns, i = at % inner;
    values[at] = (float)(row[o * inner + i] * column[c] * element_of(form, consumer, (uint64_t)at));
  }
  free(column);
  free(row);
}

static inline void fill_like_numpy(const matrix_form *form, float *values) {
  twister t;
  twister_seed(&t, (uint32_t)form->seed);
  for (int64_t i = 0; i < matrix_rows(form) * form->channels; i++) {
    values[i] = (float)twister_unit(&t);
  }
}

/* ---- matrices ---- */

/** Zero weights, ready to be filled. */
static inline void matrix_init_empty(matrix *m, const matrix_form *form) {
  *m = (matrix){.form = *form};
  m->column = need((size_t)form->channels, sizeof *m->column);
  for (int c = 0; c < form->channels; c++) m->column[c] = c;
  for (int i = 0; i < form->n_consumers; i++) {
    const int64_t outer = form->consumers[i].outer, inner = form->consumers[i].inner;
    m->values[i] = need((size_t)(outer * inner * form->channels), sizeof *m->values[i]);
    laci_weight_view weight = {.name = m->form.name, .dtype = LAC_DTYPE_F32};
    weight.bytes = (const uint8_t *)m->values[i];
    weight.outer = outer;
    weight.inner = inner;
    weight.columns = weight.run = form->channels;
    m->slices[i] = (laci_slice){.weight = weight, .outer_end = outer, .column = m->column};
  }
  m->problem = (laci_problem){.name = m->form.name, .pattern = form->pattern, .slices = m->slices};
  m->problem.n_channels = form->channels;
  m->problem.n_slices = form->n_consumers;
}

static inline void matrix_init(matrix *m, const matrix_form *form) {
  matrix_init_empty(m, form);
  for (int i = 0; i < form->n_consumers; i++) {
    if (form->weights == NUMPY) fill_like_numpy(form, m->values[i]);
    else fill_consumer(form, i, m->values[i]);
  }
}

static inline void matrix_clear(matrix *m) {
  for (int i = 0; i < m->form.n_consumers; i++) free(m->values[i]);
  free(m->column);
  *m = (matrix){0};
}

/** Column j of `to` becomes column order[j] of `from`; both hold one consumer of inner 1. */
static inline void matrix_gather(matrix *to, const matrix *from, const int32_t *order) {
  for (int64_t r = 0; r < matrix_rows(&to->form); r++) {
    float *row = to->values[0] + r * to->form.channels;
    const float *old = from->values[0] + r * from->form.channels;
    for (int j = 0; j < to->form.channels; j++) row[j] = old[order[j]];
  }
}

#endif
