/* SPDX-License-Identifier: Apache-2.0
 * Images fitted to a network: stored statistics come nearer, also where it was not asked; pixels
 * stay in their range; the same bytes for any number of threads. */
#include "calibrate/images.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "support/graph_build.h"

enum { IMAGES = 8, SIDE = 8, PIXELS = 3 * SIDE * SIDE };

/* Five normalizations in a row, whose statistics are those of images brighter than ours. */
static const char network[] =
    "input x -1x3x8x8\n"
    "stored w 3x3x1x1 f32 = 1.0 0.2 0.1 0.1 1.0 0.2 0.2 0.1 1.0\n"
    "stored s 3 f32 = 1.0 1.0 1.0\nstored b 3 f32 = 0.5 0.5 0.5\n"
    "stored m 3 f32 = 1.0 1.0 1.0\nstored v 3 f32 = 0.3 0.3 0.3\n"
    "a = Conv(x, w)\nn1 = BatchNormalization(a, s, b, m, v)\nr1 = Relu(n1)\n"
    "c = Conv(r1, w)\nn2 = BatchNormalization(c, s, b, m, v)\nr2 = Relu(n2)\n"
    "d = Conv(r2, w)\nn3 = BatchNormalization(d, s, b, m, v)\nr3 = Relu(n3)\n"
    "e = Conv(r3, w)\nn4 = BatchNormalization(e, s, b, m, v)\nr4 = Relu(n4)\n"
    "f = Conv(r4, w)\ny = BatchNormalization(f, s, b, m, v)\noutput y\n";

static laci_graph *read_network(const char *text) {
  laci_graph *graph = NULL;
  lac_error err = {0};
  if (net_read(text, &graph, &err)) fail_msg("%s", err.text);
  if (laci_graph_infer(graph, NULL, 0, &err)) fail_msg("%s", err.text);
  return graph;
}

static void draw(float *images) {
  for (int k = 0; k < IMAGES * PIXELS; k++)
    images[k] = (float)laci_rng_unit_interval(7, 1, (uint64_t)k);
}

static laci_fitted_images fit(const laci_graph *graph, int threads, float *images) {
  laci_pool *pool = NULL;
  lac_error err = {0};
  laci_fitted_images done;
  if (laci_pool_create(threads, &pool, &err)) fail_msg("%s", err.text);
  const laci_fit_images_options how = {.shape = {4, {1, 3, SIDE, SIDE}},
                                       .low = {0, 0, 0},
                                       .high = {1.5F, 1.5F, 1.5F},
                                       .n = IMAGES,
                                       .batch = 4,
                                       .steps = 10,
                                       .pool = pool};
  draw(images);
  if (laci_fit_images(graph, &how, images, &done, &err)) fail_msg("%s", err.text);
  laci_pool_destroy(pool);
  return done;
}

static void statistics_come_nearer(void **state) {
  (void)state;
  float images[IMAGES * PIXELS], drawn[IMAGES * PIXELS], again[IMAGES * PIXELS];
  laci_graph *graph = read_network(network);
  const laci_fitted_images done = fit(graph, 1, images);
  assert_int_equal(done.n_norms, 5);
  assert_true(done.after < 0.7 * done.before);
  assert_true(done.held_after < done.held_before);
  draw(drawn);
  for (int k = 0; k < IMAGES * PIXELS; k++) {
    assert_true(images[k] >= 0 && images[k] <= 1.5F);
    assert_true(images[k] - drawn[k] <= 0.6F && drawn[k] - images[k] <= 0.6F);
  }
  (void)fit(graph, 2, again);
  assert_memory_equal(images, again, sizeof images);
  laci_graph_destroy(graph);
}

static void without_statistics_images_stay(void **state) {
  (void)state;
  float images[IMAGES * PIXELS], drawn[IMAGES * PIXELS];
  laci_graph *graph = read_network("input x -1x3x8x8\ny = Relu(x)\noutput y\n");
  const laci_fitted_images done = fit(graph, 1, images);
  draw(drawn);
  assert_int_equal(done.n_norms, 0);
  assert_memory_equal(images, drawn, sizeof images);
  laci_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(statistics_come_nearer),
      cmocka_unit_test(without_statistics_images_stay),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
