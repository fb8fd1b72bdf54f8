/* SPDX-License-Identifier: Apache-2.0
 * The digits network, opened with its weights, and drawn samples for it: half of them held back. */
#ifndef DIGITS_SAMPLES_H
#define DIGITS_SAMPLES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/model/model_in.h"
#include "calibrate/samples.h"
#include "cpu/pool.h"
#include "graph/infer.h"
#include "lacuna/model.h"

enum { DIGITS_COUNT = 32, DIGITS_PIXELS = 64 };

typedef struct fixture {
  lac_model *model;
  laci_pool *pool;
  laci_shape shape;
  laci_calibration_samples samples;
} fixture;

/* Draws pixels from 0 to 1, the same for a sample whichever samples it is fetched with. */
static inline lac_status fetch(void *context, int64_t first, int64_t n, void *const *to,
                               lac_error *err) {
  (void)context, (void)err;
  float *x = to[0];
  for (int64_t k = 0; k < n * DIGITS_PIXELS; k++) {
    const uint32_t hash = (uint32_t)(first * DIGITS_PIXELS + k) * 2654435761U;
    x[k] = (float)(hash >> 16) / 65536.0f;
  }
  return LAC_OK;
}

static inline void setup(fixture *f, int threads) {
  lac_error err = {0};
  if (lac_model_load(LAC_SOURCE_DIR "/examples/digits/digits.onnx", NULL, &f->model, &err))
    fail_msg("%s", err.text);
  assert_int_equal(laci_model_materialise(f->model, &err), LAC_OK);
  assert_int_equal(laci_graph_infer(f->model->graph, NULL, 0, &err), LAC_OK);
  assert_int_equal(laci_pool_create(threads, &f->pool, &err), LAC_OK);
  f->shape = (laci_shape){.rank = 4, .dims = {1, 1, 8, 8}};
  f->samples = (laci_calibration_samples){
      .count = DIGITS_COUNT, .held_back = DIGITS_COUNT / 2, .shapes = &f->shape, .fetch = fetch};
}

static inline void teardown(fixture *f) {
  laci_pool_destroy(f->pool);
  lac_model_destroy(f->model);
}

#endif
