/* SPDX-License-Identifier: Apache-2.0
 * data: arrays as networks in use take them: samples along any axis, one more axis before all
 * others, none at all, numbers for all samples, and a file for each sample whose sizes differ. */
#include "data/sample_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/budget.h"
#include "base/memory.h"
#include "data/samples.h"
#include "support/zip_file.h"
#include "unit/data_folder.h"

enum { N = 5, BATCH = -1, TIME = -2 };

/* A network that listens to sound: samples, a state, a rate. */
static const laci_sample_input inputs[] = {{"sound", {LAC_DTYPE_F32, {2, {BATCH, TIME}}}},
                                           {"state", {LAC_DTYPE_F32, {3, {2, BATCH, 3}}}},
                                           {"rate", {LAC_DTYPE_I64, {0, {0}}}}};

static const char kinds[] = {[LACI_LAYOUT_NONE] = '-',
                             [LACI_LAYOUT_ROWS] = 'r',
                             [LACI_LAYOUT_STACK] = 's',
                             [LACI_LAYOUT_SAME] = '='};

static void samples_are_found_along_any_axis(void **state) {
  (void)state;
  static const struct {
    laci_shape sound, state, rate;
    const char *kinds; /* "" refused */
    int axes[3];
    int64_t n;
    const char *text; /* of the refusal */
  } cases[] = {
      {{2, {N, 8}}, {3, {2, N, 3}}, {0, {0}}, "rr=", {0, 1, -1}, N, ""},
      {{2, {N, 8}}, {3, {2, 1, 3}}, {1, {N}}, "r=s", {0, 1, -1}, N, ""}, /* one state for all */
      {{3, {N, 1, 8}}, {4, {N, 2, 1, 3}}, {1, {N}}, "sss", {0, 1, -1}, N, ""},
      {{3, {N, 2, 8}}, {4, {N, 2, 2, 3}}, {1, {1}}, "ss=", {-1, -1, -1}, N, ""},
      {{2, {1, 8}}, {3, {2, 1, 3}}, {0, {0}}, "rr=", {0, 1, -1}, 1, ""},
      {{2, {N, 8}},
       {3, {2, 4, 3}},
       {0, {0}},
       "",
       {0},
       0,
       "state.npy: 4 samples, but another input"},
      {{2, {N, 8}}, {3, {2, N, 4}}, {0, {0}}, "", {0}, 0, "found 4 along axis 2, wanted 3"},
      {{1, {N}}, {3, {2, N, 3}}, {0, {0}}, "", {0}, 0, "found 1 axes, wanted 2"},
      {{2, {N, 8}}, {3, {2, N, 3}}, {1, {3}}, "", {0}, 0, "rate.npy: 3 samples, but another input"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const laci_type types[] = {{LAC_DTYPE_F32, cases[c].sound},
                               {LAC_DTYPE_F32, cases[c].state},
                               {LAC_DTYPE_I64, cases[c].rate}};
    const laci_sample_array arrays[] = {
        {"sound.npy", &types[0]}, {"state.npy", &types[1]}, {"rate.npy", &types[2]}};
    laci_sample_layout layouts[3];
    int64_t n = 0;
    lac_error err = {0};
    lac_status st = laci_sample_layouts_find(inputs, arrays, 3, layouts, &n, &err);
    if (!cases[c].kinds[0]) {
      assert_int_equal(st, LAC_BAD_SHAPE);
      if (!strstr(err.text, cases[c].text)) fail_msg("case %zu: %s", c, err.text);
      continue;
    }
    if (st) fail_msg("case %zu: %s", c, err.text);
    assert_int_equal(n, cases[c].n);
    for (int k = 0; k < 3; k++) {
      if (kinds[layouts[k].kind] != cases[c].kinds[k] || layouts[k].batch_axis != cases[c].axes[k])
        fail_msg("case %zu, input %d: %c along %d", c, k, kinds[layouts[k].kind],
                 layouts[k].batch_axis);
    }
  }
}

static void a_fixed_size_says_where_samples_are(void **state) {
  (void)state;
  const laci_sample_input fixed[] = {{"x", {LAC_DTYPE_F32, {3, {1, 3, 4}}}},
                                     {"h", {LAC_DTYPE_F32, {3, {2, 1, 4}}}}};
  static const struct {
    laci_shape x, h;
    const char *kinds;
    int axes[2];
    int64_t n;
  } cases[] = {{{3, {N, 3, 4}}, {3, {2, N, 4}}, "rr", {0, 1}, N},
               {{3, {N, 3, 4}}, {3, {2, 1, 4}}, "r=", {0, -1}, N},
               {{4, {N, 1, 3, 4}}, {3, {2, 1, 4}}, "s=", {0, -1}, N},
               {{3, {1, 3, 4}}, {3, {2, 1, 4}}, "r=", {0, -1}, 1}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const laci_type types[] = {{LAC_DTYPE_F32, cases[c].x}, {LAC_DTYPE_F32, cases[c].h}};
    const laci_sample_array arrays[] = {{"x", &types[0]}, {"h", &types[1]}};
    laci_sample_layout layouts[2];
    int64_t n = 0;
    lac_error err = {0};
    if (laci_sample_layouts_find(fixed, arrays, 2, layouts, &n, &err))
      fail_msg("case %zu: %s", c, err.text);
    assert_int_equal(n, cases[c].n);
    for (int k = 0; k < 2; k++) {
      if (kinds[layouts[k].kind] != cases[c].kinds[k] || layouts[k].batch_axis != cases[c].axes[k])
        fail_msg("case %zu, input %d: %c along %d", c, k, kinds[layouts[k].kind],
                 layouts[k].batch_axis);
    }
  }
}

/* ---- Arrays ---- */

static size_t floats(uint8_t *to, const char *shape, int n, int first) {
  char header[128];
  float values[256];
  for (int k = 0; k < n; k++) values[k] = (float)(first + k);
  (void)snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%s)}\n",
                 shape);
  return npy_bytes(to, header, values, (size_t)n * sizeof *values);
}

static size_t number(uint8_t *to, int64_t value) {
  return npy_bytes(to, "{'descr': '<i8', 'fortran_order': False, 'shape': ()}\n", &value,
                   sizeof value);
}

static laci_samples *open_samples(const char *path, const laci_samples_options *options) {
  laci_samples *samples = NULL;
  lac_error err = {0};
  if (laci_samples_open(path, options, &samples, &err)) fail_msg("%s", err.text);
  return samples;
}

static void batches_are_put_together_along_each_inputs_axis(void **state) {
  (void)state;
  folder f = make_folder();
  uint8_t bytes[4096];
  add_bytes(&f, "sound.npy", bytes, floats(bytes, "5, 8", 40, 0));
  add_bytes(&f, "state.npy", bytes, floats(bytes, "2, 5, 3", 30, 100));
  add_bytes(&f, "rate.npy", bytes, number(bytes, 16000));
  const laci_samples_options o = {.n = 3, .seed = 1, .inputs = inputs, .n_inputs = 3};
  laci_samples *s = open_samples(f.path, &o);
  assert_int_equal(laci_samples_batch_axis(s, 1), 1);
  assert_int_equal(*(const int64_t *)laci_samples_constant(s, 2), 16000);
  assert_null(laci_samples_constant(s, 1));
  assert_false(laci_samples_need_batch_of_one(s));
  assert_int_equal(laci_samples_count_shape_sets(s), 1);
  float sound[3][8], held[2][3][3];
  int64_t rate = 0;
  assert_int_equal(laci_samples_read_batch(s, 0, 3, (void *[]){sound, held, &rate}, NULL), LAC_OK);
  for (int k = 0; k < 3; k++) {
    const int at = (int)laci_samples_data_index(s, k);
    assert_true(sound[k][7] == (float)(8 * at + 7));
    for (int layer = 0; layer < 2; layer++)
      for (int e = 0; e < 3; e++)
        assert_true(held[layer][k][e] == (float)(100 + 15 * layer + 3 * at + e));
  }
  assert_int_equal(rate, 16000);
  laci_samples_close(s);
  remove_folder(&f);
}

static void one_state_is_repeated_in_every_batch(void **state) {
  (void)state;
  folder f = make_folder();
  uint8_t bytes[4096];
  add_bytes(&f, "sound.npy", bytes, floats(bytes, "5, 8", 40, 0));
  add_bytes(&f, "state.npy", bytes, floats(bytes, "2, 1, 3", 6, 100));
  const laci_sample_constant rate = {"rate", 8000};
  const laci_samples_options o = {
      .n = 4, .inputs = inputs, .n_inputs = 3, .constants = &rate, .n_constants = 1};
  laci_samples *s = open_samples(f.path, &o);
  float sound[4][8], held[2][4][3];
  int64_t got = 0;
  assert_int_equal(laci_samples_read_batch(s, 0, 4, (void *[]){sound, held, &got}, NULL), LAC_OK);
  for (int k = 0; k < 4; k++) assert_true(held[1][k][2] == 105);
  assert_int_equal(got, 8000);
  laci_samples_close(s);
  remove_folder(&f);
}

static void constants_that_fit_no_input_are_refused(void **state) {
  (void)state;
  static const struct {
    laci_sample_constant given[2];
    int n;
    lac_status status;
    const char *text;
  } cases[] = {{{{"speed", 1}}, 1, LAC_BAD_ARGUMENT, "constant speed: no input"},
               {{{"rate", 1}, {"rate", 2}}, 2, LAC_BAD_ARGUMENT, "constant rate is given twice"},
               {{{"rate", 0.5}}, 1, LAC_BAD_VALUE, "constant rate: 0.5, wanted an integer"},
               {{{"sound", 1}}, 1, LAC_BAD_SHAPE, "constant sound: the input is [?, ?], with an"},
               {{{"state", 0}}, 1, LAC_BAD_ARGUMENT, "input 'state' has a constant, too"}};
  folder f = make_folder();
  uint8_t bytes[4096];
  add_bytes(&f, "sound.npy", bytes, floats(bytes, "5, 8", 40, 0));
  add_bytes(&f, "state.npy", bytes, floats(bytes, "2, 1, 3", 6, 100));
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    laci_samples *s = NULL;
    lac_error err = {0};
    const laci_samples_options o = {.n = 4,
                                    .inputs = inputs,
                                    .n_inputs = 3,
                                    .constants = cases[c].given,
                                    .n_constants = cases[c].n};
    assert_int_equal(laci_samples_open(f.path, &o, &s, &err), cases[c].status);
    assert_null(s);
    if (!strstr(err.text, cases[c].text)) fail_msg("%s", err.text);
  }
  remove_folder(&f);
}

/* ---- A file for each sample ---- */

static void add_sample(const folder *f, const char *name, int length, int64_t rate, int label) {
  zip_file *z = calloc(1, sizeof *z);
  uint8_t bytes[4096];
  char shape[32];
  assert_non_null(z);
  (void)snprintf(shape, sizeof shape, "1, %d", length);
  zip_add(z, "sound.npy", bytes, floats(bytes, shape, length, length), false);
  zip_add(z, "state.npy", bytes, floats(bytes, "2, 3", 6, 0), true); /* no axis of samples */
  zip_add(z, "rate.npy", bytes, number(bytes, rate), false);
  if (label >= 0) zip_add(z, "labels.npy", bytes, number(bytes, label), false);
  zip_finish(z);
  add_bytes(f, name, z->at, z->n);
  free(z);
}

static void files_may_differ_in_size(void **state) {
  (void)state;
  folder f = make_folder();
  add_sample(&f, "a.npz", 4, 16000, 3);
  add_sample(&f, "b.npz", 6, 16000, 1);
  add_sample(&f, "c.npz", 4, 16000, 2);
  const laci_samples_options o = {.n = 8, .inputs = inputs, .n_inputs = 3};
  laci_samples *s = open_samples(f.path, &o);
  assert_int_equal(laci_samples_count(s), 3);
  assert_int_equal(laci_samples_count_shape_sets(s), 2);
  assert_true(laci_samples_need_batch_of_one(s));
  assert_int_equal(*(const int64_t *)laci_samples_constant(s, 2), 16000);
  for (int place = 0; place < 3; place++) {
    const int64_t at = laci_samples_data_index(s, place);
    const int length = at == 1 ? 6 : 4, form = laci_samples_shape_set(s, place);
    float sound[6] = {0}, held[6] = {0};
    int64_t rate;
    assert_int_equal(form, at == 1);
    const laci_shape *shapes = laci_samples_shapes_of_set(s, form);
    assert_int_equal(shapes[0].dims[1], length);
    assert_int_equal(shapes[1].rank, 3);
    assert_int_equal(shapes[1].dims[1], 1);
    assert_int_equal(laci_samples_labels(s)[place], at == 0 ? 3 : at == 1 ? 1 : 2);
    lac_error err = {0};
    if (laci_samples_read_batch(s, place, 1, (void *[]){sound, held, &rate}, &err))
      fail_msg("%s", err.text);
    assert_true(sound[length - 1] == (float)(2 * length - 1));
    assert_true(held[5] == 5);
  }
  laci_samples_close(s);
  remove_folder(&f);
}

static void files_of_one_size_make_batches(void **state) {
  (void)state;
  folder f = make_folder();
  add_sample(&f, "a.npz", 4, 16000, -1);
  add_sample(&f, "b.npz", 4, 8000, -1);
  const laci_samples_options o = {.n = 8, .inputs = inputs, .n_inputs = 2};
  laci_samples *s = NULL;
  lac_error err = {0};
  assert_int_equal(laci_samples_open(f.path, &o, &s, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "a.npz: array rate is no input of the network"));
  const laci_samples_options all = {.n = 8, .inputs = inputs, .n_inputs = 3};
  s = open_samples(f.path, &all);
  assert_int_equal(laci_samples_count_shape_sets(s), 1);
  assert_null(laci_samples_constant(s, 2)); /* the rates differ */
  laci_samples_close(s);
  add_sample(&f, "c.npz", 4, 8000, 1);
  assert_int_equal(laci_samples_open(f.path, &all, &s, &err), LAC_NOT_FOUND);
  assert_non_null(strstr(err.text, "c.npz: it has labels, unlike"));
  remove_folder(&f);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  folder files = make_folder(), arrays = make_folder();
  uint8_t bytes[4096];
  add_sample(&files, "a.npz", 4, 16000, 3);
  add_sample(&files, "b.npz", 6, 16000, 1);
  add_bytes(&arrays, "sound.npy", bytes, floats(bytes, "5, 8", 40, 0));
  add_bytes(&arrays, "state.npy", bytes, floats(bytes, "2, 5, 3", 30, 100));
  add_bytes(&arrays, "rate.npy", bytes, number(bytes, 16000));
  for (int k = 0; k < 2; k++) {
    const laci_samples_options o = {.n = 2, .inputs = inputs, .n_inputs = 3};
    lac_status st = LAC_NO_MEMORY;
    for (long at = 1; st; at++) {
      laci_samples *s = NULL;
      float sound[16], held[12];
      int64_t rate[2];
      laci_memory_fail_once(at);
      st = laci_samples_open(k ? files.path : arrays.path, &o, &s, NULL);
      if (!st) st = laci_samples_read_batch(s, 0, 1, (void *[]){sound, held, rate}, NULL);
      const bool reached = !laci_memory_is_failure_pending();
      laci_memory_fail_from(0);
      laci_samples_close(s);
      if (reached) assert_true(st == LAC_NO_MEMORY || st == LAC_OK);
      if (reached && !st) st = LAC_NO_MEMORY;
    }
  }
  remove_folder(&files);
  remove_folder(&arrays);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples_are_found_along_any_axis),
      cmocka_unit_test(a_fixed_size_says_where_samples_are),
      cmocka_unit_test(batches_are_put_together_along_each_inputs_axis),
      cmocka_unit_test(one_state_is_repeated_in_every_batch),
      cmocka_unit_test(constants_that_fit_no_input_are_refused),
      cmocka_unit_test(files_may_differ_in_size),
      cmocka_unit_test(files_of_one_size_make_batches),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
