/* SPDX-License-Identifier: Apache-2.0
 * data: samples are a seeded choice of images or of rows of arrays, the same for any number of
 * threads; what is held back comes last and unchanged; what does not fit is refused, saying what
 * was found and what was wanted. */
#include "data/samples.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/budget.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "data/dataset.h"
#include "data/npy.h"
#include "data/image.h"
#include "data/rows.h"
#include "data/shuffle.h"
#include "support/zip_file.h"
#include "unit/data_folder.h"

enum { N = 23, SAMPLE = 3 * 32 * 32 };

static const laci_sample_input image_input = {"x", {LAC_DTYPE_F32, {4, {-1, 3, 32, 32}}}};

static laci_samples *open_samples(const char *path, const laci_samples_options *options) {
  laci_samples *samples = NULL;
  lac_error err = {0};
  if (laci_samples_open(path, options, &samples, &err)) fail_msg("%s", err.text);
  assert_string_equal(err.text, "");
  return samples;
}

static void expect_refusal(const char *path, const laci_samples_options *options, lac_status status,
                           const char *text) {
  laci_samples *samples = NULL;
  lac_error err = {0};
  lac_status st = laci_samples_open(path, options, &samples, &err);
  if (!strstr(err.text, text)) fail_msg("got '%s', want '%s'", err.text, text);
  assert_int_equal(st, status);
  assert_null(samples);
}

/* ---- Images ---- */

static folder cifar_folder(void) {
  folder f = make_folder();
  add_cifar(&f, "data_batch_1.bin", 1, N, 0, 10);
  add_cifar(&f, "test_batch.bin", 1, 2, 40, 10);
  return f;
}

/** Image `at` of the part for training as it is. */
static void expect_image(const laci_samples *samples, int64_t at, const float *got, int64_t label) {
  laci_preprocessing preprocessing;
  const laci_dataset *set = laci_samples_dataset(samples, &preprocessing);
  laci_preparer *preparer = NULL;
  laci_image image = {0};
  float want[SAMPLE];
  assert_non_null(set);
  assert_int_equal(laci_preparer_create(&preprocessing, &preparer, NULL), LAC_OK);
  assert_int_equal(laci_dataset_read_sample(set, at, preparer, &image, want, NULL), LAC_OK);
  assert_memory_equal(got, want, sizeof want);
  assert_int_equal(label, at % 10);
  laci_image_clear(&image);
  laci_preparer_destroy(preparer);
}

static void images_are_a_seeded_choice_of_the_training_part(void **state) {
  (void)state;
  folder f = cifar_folder();
  laci_samples_options o = {
      .n = 9, .seed = 5, .held_back_part = 8, .inputs = &image_input, .n_inputs = 1};
  laci_samples *samples = open_samples(f.path, &o);
  char text[200];
  assert_int_equal(laci_samples_count(samples), 9);
  assert_int_equal(laci_samples_count_held_back(samples), 1);
  (void)snprintf(text, sizeof text, "9 of %d images of %s, 1 held back", N, f.path);
  assert_string_equal(laci_samples_description(samples), text);
  const laci_type *type = laci_samples_type(samples, 0);
  assert_int_equal(type->dtype, LAC_DTYPE_F32);
  assert_int_equal(type->shape.rank, 4);
  assert_int_equal(type->shape.dims[3], 32);
  float got[9 * SAMPLE];
  assert_int_equal(laci_samples_read_batch(samples, 0, 9, (void *[]){got}, NULL), LAC_OK);
  for (int k = 0; k < 9; k++) {
    expect_image(samples, laci_shuffled_index(5, 0, N, k), got + (size_t)k * SAMPLE,
                 laci_samples_labels(samples)[k]);
  }
  float two[2 * SAMPLE]; /* whichever batches they are asked for in */
  assert_int_equal(laci_samples_read_batch(samples, 4, 2, (void *[]){two}, NULL), LAC_OK);
  assert_memory_equal(two, got + (ptrdiff_t)4 * SAMPLE, sizeof two);
  laci_samples_close(samples);
  remove_folder(&f);
}

/** Folders get the network's numbers where it knows their names; where it does not, none. */
static void labels_are_the_networks_or_none(void **state) {
  (void)state;
  static const struct {
    const char *known;
    int64_t labels[2]; /* of cat and dog; -1: none */
  } cases[] = {{NULL, {0, 1}},       {"cat\ndog", {0, 1}},
               {"dog\ncat", {1, 0}}, {"ant\ncat\ndog", {1, 2}},
               {"cat\nfox", {-1}},   {"x\ny", {-1}}};
  folder f = make_folder();
  add_picture(&f, "cat/1.jpg");
  add_picture(&f, "dog/1.jpg");
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const laci_samples_options o = {
        .n = 2, .known = cases[k].known, .inputs = &image_input, .n_inputs = 1};
    laci_samples *samples = open_samples(f.path, &o);
    const int64_t *labels = laci_samples_labels(samples);
    assert_true((labels != NULL) == (cases[k].labels[0] >= 0));
    for (int at = 0; at < 2 && labels; at++)
      assert_int_equal(labels[at], cases[k].labels[laci_shuffled_index(0, 0, 2, at)]);
    laci_samples_close(samples);
  }
  remove_folder(&f);
}

/** Samples to judge by are others than those taken, which become fewer where the data lack them. */
static void those_that_judge_are_none_of_the_others(void **state) {
  (void)state;
  const struct {
    int64_t n, least, most, taken, judging; /* of N */
  } rows[] = {{9, 4, 8, 9, 8},
              {9, 4, 1000, 9, N - 9},
              {N, 4, 8, N - 8, 8},
              {N, 4, 1000, N / 2, N - N / 2},
              {N, N - 1, N, N / 2, N - N / 2},
              {N, INT64_MAX, INT64_MAX, N / 2, N - N / 2},
              {1, 4, 8, 1, 8},
              {9, 0, 0, 9, 0}};
  folder f = cifar_folder();
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    laci_samples_options o = {.n = rows[k].n,
                              .seed = 5,
                              .held_back_part = 8,
                              .copies = k % 2 ? 2 : 0,
                              .judging_least = rows[k].least,
                              .judging_most = rows[k].most,
                              .inputs = &image_input,
                              .n_inputs = 1};
    laci_samples *samples = open_samples(f.path, &o);
    const int64_t count = laci_samples_count(samples), held = laci_samples_count_held_back(samples);
    assert_int_equal((count - held) / (1 + o.copies) + held, rows[k].taken);
    assert_int_equal(laci_samples_count_judging(samples), rows[k].judging);
    assert_int_equal(laci_samples_count_available(samples), N);
    float one[SAMPLE];
    for (int64_t j = 0; j < rows[k].judging; j++) {
      assert_int_equal(laci_samples_read_batch(samples, count + j, 1, (void *[]){one}, NULL),
                       LAC_OK);
      expect_image(samples, laci_shuffled_index(5, 0, N, rows[k].taken + j), one,
                   laci_samples_labels(samples)[count + j]);
    }
    laci_samples_close(samples);
  }
  remove_folder(&f);
}

static void copies_are_changed_and_what_is_held_back_is_not(void **state) {
  (void)state;
  enum { TAKEN = 16, HELD = 2, COUNT = (TAKEN - HELD) * 3 + HELD };
  folder f = cifar_folder();
  laci_samples_options o = {.n = TAKEN,
                            .seed = 1,
                            .copies = 2,
                            .held_back_part = 8,
                            .inputs = &image_input,
                            .n_inputs = 1};
  laci_samples *samples = open_samples(f.path, &o);
  assert_int_equal(laci_samples_count(samples), COUNT);
  assert_int_equal(laci_samples_count_held_back(samples), HELD);
  float *got = calloc(COUNT, SAMPLE * sizeof *got), *again = calloc(COUNT, SAMPLE * sizeof *again);
  assert_true(got && again);
  assert_int_equal(laci_samples_read_batch(samples, 0, COUNT, (void *[]){got}, NULL), LAC_OK);
  const int64_t *labels = laci_samples_labels(samples);
  int n_changed = 0;
  for (int k = 0; k < COUNT; k++) {
    bool held = k >= COUNT - HELD, first = k < TAKEN - HELD;
    int64_t at = laci_shuffled_index(1, 0, N, held ? TAKEN - COUNT + k : k % (TAKEN - HELD));
    assert_int_equal(labels[k], at % 10);
    if (held || first) expect_image(samples, at, got + (size_t)k * SAMPLE, labels[k]);
    else {
      n_changed += memcmp(got + (size_t)k * SAMPLE, got + (size_t)(k % (TAKEN - HELD)) * SAMPLE,
                          SAMPLE * sizeof *got) != 0;
    }
  }
  assert_true(n_changed > TAKEN);
  laci_samples_close(samples);
  o.pool = NULL;
  for (int threads = 1; threads <= 3; threads += 2) {
    assert_int_equal(laci_pool_create(threads, &o.pool, NULL), LAC_OK);
    samples = open_samples(f.path, &o);
    assert_int_equal(laci_samples_read_batch(samples, 0, COUNT, (void *[]){again}, NULL), LAC_OK);
    assert_memory_equal(got, again, COUNT * SAMPLE * sizeof *got);
    laci_samples_close(samples);
    laci_pool_destroy(o.pool);
  }
  free(got);
  free(again);
  remove_folder(&f);
}

static void scales_of_images_can_be_given(void **state) {
  (void)state;
  folder f = cifar_folder();
  const float mean[3] = {0, 0, 0}, std[3] = {1, 1, 1};
  laci_samples_options o = {
      .n = 1, .mean = mean, .std = std, .crop = 8, .inputs = &image_input, .n_inputs = 1};
  laci_samples *samples = open_samples(f.path, &o);
  assert_int_equal(laci_samples_count_held_back(samples), 0);
  assert_int_equal(laci_samples_type(samples, 0)->shape.dims[2], 8);
  float got[3 * 8 * 8];
  assert_int_equal(laci_samples_read_batch(samples, 0, 1, (void *[]){got}, NULL), LAC_OK);
  for (int k = 0; k < 3 * 8 * 8; k++) assert_true(got[k] == (float)(int)got[k] && got[k] <= 255);
  laci_samples_close(samples);
  o.n = 0;
  expect_refusal(f.path, &o, LAC_BAD_ARGUMENT, "0 samples, wanted 1 or more");
  o.n = 1;
  o.copies = -1;
  expect_refusal(f.path, &o, LAC_BAD_ARGUMENT, "wanted 0 to 1000");
  expect_refusal("no/such/folder", &(laci_samples_options){.n = 1}, LAC_NOT_FOUND, "no/such");
  remove_folder(&f);
}

/* ---- Arrays ---- */

enum { ROWS = 10 };

static const laci_sample_input two_inputs[] = {
    {"ids", {LAC_DTYPE_I32, {2, {-1, 3}}}},
    {"mask", {LAC_DTYPE_F16, {2, {-1, -2}}}}, /* a size that the network leaves open */
};

static size_t make_array(uint8_t *to, int array, int n) {
  char header[128];
  static const char *const formats[] = {"'<i8', 'fortran_order': False, 'shape': (%d, 3)",
                                        "'<f4', 'fortran_order': False, 'shape': (%d, 2)",
                                        "'|u1', 'fortran_order': False, 'shape': (%d,)"};
  int64_t ids[ROWS * 3];
  float mask[ROWS * 2];
  uint8_t labels[ROWS];
  for (int k = 0; k < ROWS * 3; k++) ids[k] = k;
  for (int k = 0; k < ROWS * 2; k++) mask[k] = (float)k / 2;
  for (int k = 0; k < ROWS; k++) labels[k] = (uint8_t)(k + 100);
  int used = snprintf(header, sizeof header, "{'descr': ");
  used += snprintf(header + used, sizeof header - (size_t)used, formats[array], n);
  (void)snprintf(header + used, sizeof header - (size_t)used, "}\n");
  const void *bytes = array == 0 ? (const void *)ids : array == 1 ? (const void *)mask : labels;
  size_t size = array == 0 ? 24 : array == 1 ? 8 : 1;
  return npy_bytes(to, header, bytes, (size_t)n * size);
}

static void add_array(const folder *f, const char *name, int array, int n) {
  uint8_t bytes[1024];
  add_bytes(f, name, bytes, make_array(bytes, array, n));
}

static void expect_rows(const laci_samples *samples, laci_samples *mutable_samples) {
  int64_t ids[ROWS][3];
  float mask[ROWS][2];
  assert_int_equal(laci_samples_count(samples), 8);
  assert_int_equal(laci_samples_type(samples, 0)->dtype, LAC_DTYPE_I64);
  assert_int_equal(laci_samples_type(samples, 1)->shape.dims[1], 2);
  assert_null(laci_samples_dataset(samples, NULL));
  assert_int_equal(laci_samples_read_batch(mutable_samples, 0, 8, (void *[]){ids, mask}, NULL),
                   LAC_OK);
  for (int k = 0; k < 8; k++) {
    int64_t at = laci_shuffled_index(3, 0, ROWS, k);
    for (int c = 0; c < 3; c++) assert_int_equal(ids[k][c], at * 3 + c);
    for (int c = 0; c < 2; c++) assert_true(mask[k][c] == (float)(at * 2 + c) / 2);
    assert_int_equal(laci_samples_labels(samples)[k], at + 100);
  }
}

static void arrays_come_from_a_folder_or_an_npz(void **state) {
  (void)state;
  folder f = make_folder();
  char path[FOLDER_PATH];
  zip_file *z = calloc(1, sizeof *z);
  uint8_t bytes[1024];
  assert_non_null(z);
  add_array(&f, "in/ids.npy", 0, ROWS);
  add_array(&f, "in/mask.npy", 1, ROWS);
  add_array(&f, "in/labels.npy", 2, ROWS);
  zip_add(z, "mask.npy", bytes, make_array(bytes, 1, ROWS), true);
  zip_add(z, "labels.npy", bytes, make_array(bytes, 2, ROWS), false);
  zip_add(z, "ids.npy", bytes, make_array(bytes, 0, ROWS), false);
  zip_finish(z);
  add_bytes(&f, "all.npz", z->at, z->n);
  free(z);
  static const char *const names[] = {"in", "all.npz"};
  for (int k = 0; k < 2; k++) {
    laci_samples_options o = {.n = 8, .seed = 3, .inputs = two_inputs, .n_inputs = 2};
    path_in(path, &f, names[k]);
    laci_samples *samples = open_samples(path, &o);
    expect_rows(samples, samples);
    laci_samples_close(samples);
    o.copies = 1;
    expect_refusal(path, &o, LAC_BAD_ARGUMENT, "changed copies are for images");
    o.copies = 0;
    o.crop = 3;
    expect_refusal(path, &o, LAC_BAD_ARGUMENT, "resizing and cropping are for images");
  }
  remove_folder(&f);
}

static void one_array_is_enough_for_one_input(void **state) {
  (void)state;
  folder f = make_folder();
  char path[FOLDER_PATH];
  add_array(&f, "mask.npy", 1, ROWS);
  path_in(path, &f, "mask.npy");
  laci_samples_options o = {.n = 100, .inputs = &two_inputs[1], .n_inputs = 1};
  laci_samples *samples = open_samples(path, &o);
  assert_int_equal(laci_samples_count(samples), ROWS); /* no more than there are */
  assert_null(laci_samples_labels(samples));
  laci_samples_close(samples);
  o = (laci_samples_options){.n = 100, .inputs = two_inputs, .n_inputs = 2};
  expect_refusal(path, &o, LAC_BAD_ARGUMENT, "one array, but the network has 2 inputs");
  remove_folder(&f);
}

/** Samples along axis 1 of [2, 4, 3], in a file, in memory and from a function. */
static lac_status fetch_row(void *context, const char *name, int64_t row, void *to,
                            lac_error *err) {
  (void)name;
  (void)err;
  memcpy(to, (const float *)context + row * 12, 12 * sizeof(float));
  return LAC_OK;
}

static void samples_may_be_along_another_axis(void **state) {
  (void)state;
  const laci_sample_input input = {"x", {LAC_DTYPE_F32, {3, {2, -1, 3}}}};
  float numbers[24], got[24];
  uint8_t bytes[1024];
  for (int k = 0; k < 24; k++) numbers[k] = (float)k;
  folder f = make_folder();
  char path[FOLDER_PATH];
  add_bytes(&f, "x.npy", bytes,
            npy_bytes(bytes, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4, 3)}\n",
                      numbers, sizeof numbers));
  path_in(path, &f, "x.npy");
  const laci_type type = {LAC_DTYPE_F32, {3, {2, 4, 3}}};
  const laci_rows_memory arrays[] = {
      {.name = "x", .type = type, .bytes = numbers},
      {.name = "x", .type = type, .fetch = fetch_row, .context = numbers}};
  for (int k = 0; k < 3; k++) {
    laci_samples_options o = {.n = 4, .seed = 3, .inputs = &input, .n_inputs = 1};
    o.arrays = k > 0 ? &arrays[k - 1] : NULL;
    o.n_arrays = k > 0;
    laci_samples *samples = open_samples(path, &o);
    assert_int_equal(laci_samples_batch_axis(samples, 0), 1);
    assert_int_equal(laci_samples_read_batch(samples, 0, 4, (void *[]){got}, NULL), LAC_OK);
    for (int e = 0; e < 24; e++) {
      const int64_t at = laci_shuffled_index(3, 0, 4, e / 3 % 4);
      assert_true(got[e] == numbers[e / 12 * 12 + at * 3 + e % 3]);
    }
    laci_samples_close(samples);
  }
  remove_folder(&f);
}

static void arrays_that_do_not_fit_are_refused(void **state) {
  (void)state;
  folder f = make_folder();
  laci_samples_options o = {.n = 8, .inputs = two_inputs, .n_inputs = 2};
  add_array(&f, "ids.npy", 0, ROWS);
  expect_refusal(f.path, &o, LAC_NOT_FOUND, "no array for the input 'mask'");
  add_array(&f, "mask.npy", 1, ROWS - 1);
  expect_refusal(f.path, &o, LAC_BAD_SHAPE, "mask.npy: 9 samples, but another input has 10");
  add_array(&f, "mask.npy", 0, ROWS);
  expect_refusal(f.path, &o, LAC_BAD_SHAPE,
                 "mask.npy: found i64 [10, 3], but input 'mask' is f16 [?, ?]: wanted floats");
  add_array(&f, "mask.npy", 2, ROWS);
  expect_refusal(f.path, &o, LAC_BAD_SHAPE, "wanted floats");
  add_array(&f, "mask.npy", 1, ROWS);
  add_array(&f, "labels.npy", 1, ROWS);
  expect_refusal(f.path, &o, LAC_BAD_SHAPE, "labels.npy: found f32 [10, 2], wanted one integer");
  add_array(&f, "labels.npy", 2, 4);
  expect_refusal(f.path, &o, LAC_BAD_SHAPE, "labels.npy: 4 samples, but the first input has 10");
  add_array(&f, "labels.npy", 2, ROWS);
  laci_sample_input narrow[] = {two_inputs[0], {"mask", {LAC_DTYPE_F32, {2, {-1, 7}}}}};
  o.inputs = narrow;
  expect_refusal(f.path, &o, LAC_BAD_SHAPE, "found 2 along axis 1, wanted 7");
  narrow[1].type.shape = (laci_shape){3, {-1, 2, 1}};
  expect_refusal(f.path, &o, LAC_BAD_SHAPE, "found 2 axes, wanted 3");
  o.inputs = two_inputs;
  add_array(&f, "extra.npy", 1, ROWS);
  expect_refusal(f.path, &o, LAC_BAD_ARGUMENT,
                 "array extra is no input of the network: wanted ids, mask");
  remove_folder(&f);
}

static void a_sample_that_is_not_finite_is_named_with_its_file(void **state) {
  (void)state;
  static const struct {
    float value;
    const char *text;
  } cases[] = {{NAN, "mask.npy: element 1 of sample 1 is NaN"},
               {-INFINITY, "mask.npy: element 1 of sample 1 is infinite"}};
  folder f = make_folder();
  char path[FOLDER_PATH];
  path_in(path, &f, "mask.npy");
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    uint8_t bytes[256];
    lac_error err = {0};
    float values[4] = {1, 2, 3, cases[k].value}, got[4];
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}\n";
    add_bytes(&f, "mask.npy", bytes, npy_bytes(bytes, header, values, sizeof values));
    laci_samples_options o = {.n = 2, .inputs = &two_inputs[1], .n_inputs = 1};
    laci_samples *samples = open_samples(path, &o);
    assert_int_equal(laci_samples_read_batch(samples, 0, 2, (void *[]){got}, &err), LAC_BAD_VALUE);
    assert_non_null(strstr(err.text, cases[k].text));
    laci_samples_close(samples);
  }
  remove_folder(&f);
}

static void no_samples_are_refused(void **state) {
  (void)state;
  folder f = make_folder();
  char path[FOLDER_PATH];
  add_array(&f, "mask.npy", 1, 0);
  path_in(path, &f, "mask.npy");
  laci_samples_options o = {.n = 8, .inputs = &two_inputs[1], .n_inputs = 1};
  expect_refusal(path, &o, LAC_BAD_ARGUMENT, "no samples in it");
  remove_folder(&f);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  folder images = cifar_folder(), arrays = make_folder();
  add_array(&arrays, "ids.npy", 0, ROWS);
  add_array(&arrays, "mask.npy", 1, ROWS);
  add_array(&arrays, "labels.npy", 2, ROWS);
  for (int k = 0; k < 2; k++) {
    laci_samples_options o = {.n = 8,
                              .copies = k == 0,
                              .held_back_part = 8,
                              .inputs = k ? two_inputs : &image_input,
                              .n_inputs = k ? 2 : 1};
    static float first[15 * SAMPLE], second[15 * SAMPLE];
    for (long at = 1;; at++) {
      laci_samples *samples = NULL;
      lac_error err = {0};
      laci_memory_fail_from(at);
      lac_status st = laci_samples_open((k ? &arrays : &images)->path, &o, &samples, &err);
      if (!st)
        st = laci_samples_read_batch(samples, 0, laci_samples_count(samples),
                                     (void *[]){first, second}, &err);
      bool pending = laci_memory_is_failure_pending();
      laci_memory_fail_from(0);
      laci_samples_close(samples);
      if (pending) {
        assert_int_equal(st, LAC_OK);
        break;
      }
      if (st != LAC_NO_MEMORY) fail_msg("allocation %ld: '%s'", at, err.text);
    }
  }
  remove_folder(&images);
  remove_folder(&arrays);
}

/* ---- Data and drawn samples ---- */

static laci_samples *draw_images(int64_t n, int side) {
  const laci_synthetic_input input = {
      .height = side, .width = side, .channels = 3, .range = "0 to 255", .std = {1, 1, 1}};
  const laci_samples_options o = {
      .n = n, .seed = 7, .inputs = &image_input, .n_inputs = 1, .synthetic = &input};
  return open_samples("synthetic", &o);
}

static laci_samples *few_images(const folder *f, int64_t n) {
  const laci_samples_options o = {
      .n = n, .seed = 5, .held_back_part = 4, .inputs = &image_input, .n_inputs = 1};
  return open_samples(f->path, &o);
}

static float *read_all(laci_samples *samples, int64_t batch) {
  const int64_t n = laci_samples_count(samples);
  float *to = laci_alloc((size_t)n * SAMPLE, sizeof *to);
  assert_non_null(to);
  for (int64_t at = 0; at < n; at += batch) {
    void *place = to + (size_t)at * SAMPLE;
    const int64_t size = n - at < batch ? n - at : batch;
    assert_int_equal(laci_samples_read_batch(samples, at, size, &place, NULL), LAC_OK);
  }
  return to;
}

/** Drawn samples come first, then those worked on, repeated, then those held back. */
static void data_and_drawn_samples_are_joined(void **state) {
  (void)state;
  const struct {
    int64_t n, held, drawn, repeats;
  } rows[] = {{9, 2, 19, 1}, {3, 1, 20, 5}, {2, 1, 20, 10}, {N, 5, 17, 1}};
  folder f = cifar_folder();
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    const int64_t held = rows[k].held, worked = rows[k].n - held, drawn = rows[k].drawn;
    laci_samples *data = few_images(&f, rows[k].n), *more = draw_images(20, 32);
    float *of_data = read_all(data, 4), *of_more = read_all(more, 20);
    int64_t labels[N];
    memcpy(labels, laci_samples_labels(data), (size_t)rows[k].n * sizeof *labels);
    assert_int_equal(laci_samples_count_drawn(data), 0);
    assert_int_equal(laci_samples_join_drawn(&data, &more, NULL), LAC_OK);
    assert_null(more);
    assert_int_equal(laci_samples_count_drawn(data), drawn);
    assert_int_equal(laci_samples_count_held_back(data), held);
    const int64_t count = drawn + rows[k].repeats * worked + held;
    assert_int_equal(laci_samples_count(data), count);
    assert_int_equal(count % held, 0);
    assert_non_null(strstr(laci_samples_description(data), "held back, and"));
    float *all = read_all(data, count), *parts = read_all(data, 3);
    for (int64_t at = 0; at < count; at++) {
      const int64_t place = at - drawn;
      const int64_t from = place < rows[k].repeats * worked
                               ? (place + rows[k].repeats * worked) % worked
                               : place - (rows[k].repeats - 1) * worked;
      const float *want = at < drawn ? of_more + at * SAMPLE : of_data + from * SAMPLE;
      assert_memory_equal(all + at * SAMPLE, want, SAMPLE * sizeof(float));
      assert_memory_equal(parts + at * SAMPLE, want, SAMPLE * sizeof(float));
      assert_int_equal(laci_samples_labels(data)[at], at < drawn ? -1 : labels[from]);
    }
    laci_samples_drop_drawn(&data);
    assert_int_equal(laci_samples_count(data), rows[k].n);
    laci_free(all);
    laci_free(parts);
    laci_free(of_data);
    laci_free(of_more);
    laci_samples_close(data);
  }
  remove_folder(&f);
}

static void samples_that_are_not_alike_are_not_joined(void **state) {
  (void)state;
  folder f = cifar_folder();
  laci_samples *data = few_images(&f, 8), *larger = draw_images(4, 33), *one = few_images(&f, 1),
               *more = draw_images(4, 32);
  laci_samples *const before = data, *const alone = one;
  lac_error err = {0};
  assert_int_equal(laci_samples_join_drawn(&data, &larger, &err), LAC_BAD_SHAPE);
  assert_non_null(strstr(err.text, "33"));
  assert_int_equal(laci_samples_join_drawn(&one, &more, &err), LAC_BAD_VALUE);
  assert_non_null(strstr(err.text, "1 sample, wanted 2 or more"));
  assert_ptr_equal(data, before);
  assert_ptr_equal(one, alone);
  for (long at = 1;; at++) {
    laci_memory_fail_from(at);
    const lac_status st = laci_samples_join_drawn(&data, &more, &err);
    laci_memory_fail_from(0);
    if (!st) break;
    assert_int_equal(st, LAC_NO_MEMORY);
    assert_ptr_equal(data, before);
    assert_non_null(more);
  }
  laci_samples_close(data);
  laci_samples_close(one);
  laci_samples_close(larger);
  remove_folder(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(data_and_drawn_samples_are_joined),
      cmocka_unit_test(samples_that_are_not_alike_are_not_joined),
      cmocka_unit_test(images_are_a_seeded_choice_of_the_training_part),
      cmocka_unit_test(labels_are_the_networks_or_none),
      cmocka_unit_test(those_that_judge_are_none_of_the_others),
      cmocka_unit_test(copies_are_changed_and_what_is_held_back_is_not),
      cmocka_unit_test(scales_of_images_can_be_given),
      cmocka_unit_test(arrays_come_from_a_folder_or_an_npz),
      cmocka_unit_test(one_array_is_enough_for_one_input),
      cmocka_unit_test(samples_may_be_along_another_axis),
      cmocka_unit_test(arrays_that_do_not_fit_are_refused),
      cmocka_unit_test(a_sample_that_is_not_finite_is_named_with_its_file),
      cmocka_unit_test(no_samples_are_refused),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
