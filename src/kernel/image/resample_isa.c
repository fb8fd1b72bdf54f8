/* SPDX-License-Identifier: Apache-2.0
 * resample.h for every instruction set that has vectors: the build compiles this once for each
 * (variants.h). The compiler vectorizes the loops over `inner`. With inner 1, one loop computes the
 * results one after the other, each from inputs at arbitrary positions. */
#include <string.h>

#include "kernel/image/resample.h"

#if defined(__clang__)
#define EACH_BY_ITSELF _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_BY_ITSELF _Pragma("GCC ivdep")
#endif

/* ---- Axes with adjacent elements (inner > 1) ---- */

static void sum_two_scaled_arrays(const float *a, const float *b, float u, float v, int64_t n,
                                  float *y) {
  EACH_BY_ITSELF
  for (int64_t i = 0; i < n; i++) y[i] = u * a[i] + v * b[i];
}

static void scale_array(const float *a, float u, int64_t n, float *y) {
  EACH_BY_ITSELF
  for (int64_t i = 0; i < n; i++) y[i] = u * a[i];
}

static void add_scaled_array(const float *a, float u, int64_t n, float *y) {
  EACH_BY_ITSELF
  for (int64_t i = 0; i < n; i++) y[i] += u * a[i];
}

static void resample_line(const laci_resample_pass *p, const float *x, int64_t first, float *y) {
  const int64_t n = p->inner;
  const float *a = x + p->index[first] * n;
  if (!p->weight) {
    memcpy(y, a, (size_t)n * sizeof *y);
    return;
  }
  if (p->width == 1) scale_array(a, p->weight[first], n, y);
  else
    sum_two_scaled_arrays(a, x + p->index[first + 1] * n, p->weight[first], p->weight[first + 1], n,
                          y);
  for (int64_t k = first + 2; k < first + p->width; k++) {
    add_scaled_array(x + p->index[k] * n, p->weight[k], n, y);
  }
}

/* ---- The innermost axis (inner 1) ---- */

static void resample_elements_one_by_one(const laci_resample_pass *p, const float *x, int64_t begin,
                                         int64_t end, float *y) {
  const int32_t *index = p->index;
  const float *weight = p->weight;
  if (!weight) {
    for (int64_t at = begin; at < end; at++) y[at] = x[index[at]];
  } else if (p->width == 2) {
    EACH_BY_ITSELF
    for (int64_t at = begin; at < end; at++) {
      y[at] = weight[2 * at] * x[index[2 * at]] + weight[2 * at + 1] * x[index[2 * at + 1]];
    }
  } else if (p->width == 4) {
    EACH_BY_ITSELF
    for (int64_t at = begin; at < end; at++) {
      const int32_t *from = index + 4 * at;
      const float *w = weight + 4 * at;
      y[at] = w[0] * x[from[0]] + w[1] * x[from[1]] + w[2] * x[from[2]] + w[3] * x[from[3]];
    }
  } else {
    for (int64_t at = begin; at < end; at++) {
      const int64_t first = at * p->width;
      float sum = weight[first] * x[index[first]];
      for (int64_t k = first + 1; k < first + p->width; k++) sum += weight[k] * x[index[k]];
      y[at] = sum;
    }
  }
}

void LACI_VARIANT(laci_resample)(const laci_resample_pass *pass, const float *x, float *y,
                                 int64_t begin, int64_t end) {
  for (int64_t line = begin, some; line < end; line += some) {
    const int64_t place = line % pass->out, outer = line / pass->out;
    const float *from = x + outer * pass->in * pass->inner;
    some = 1;
    if (pass->inner > 1) {
      resample_line(pass, from, place * pass->width, y + line * pass->inner);
      continue;
    }
    some = pass->out - place < end - line ? pass->out - place : end - line;
    resample_elements_one_by_one(pass, from, place, place + some, y + outer * pass->out);
  }
}
