/* SPDX-License-Identifier: Apache-2.0
 * Synthetic samples of other kinds than images: which inputs are token ids, sounds or rows of
 * numbers, what is drawn for those next to them, and that networks are calibrated on them. */
#include "api/prune/synthetic_in.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "lacuna/calibration.h"
#include "lacuna/session.h"
#include "support/prune_text.h"

enum { MOST_NUMBERS = 8 };

/* The rules for the network's inputs; `numbers` keeps the scale of the first row of numbers. */
static void describe_with(const lac_model *model, laci_drawn_input *inputs, const char *noun,
                          float numbers[2][MOST_NUMBERS]) {
  const laci_samples_options how = {.n_constants = 0};
  laci_arena arena = {0};
  lac_error err = {0};
  assert_string_equal(laci_synthetic_find_noun(model->graph), noun);
  if (laci_synthetic_describe_inputs(model->graph, &how, inputs, &arena, &err))
    fail_msg("%s", err.text);
  if (numbers && inputs->mean) {
    const size_t size = (size_t)inputs->shape.dims[1] * sizeof **numbers;
    memcpy(numbers[0], inputs->mean, size);
    memcpy(numbers[1], inputs->deviation, size);
  }
  laci_arena_clear(&arena);
}

static void describe(const lac_model *model, laci_drawn_input *inputs, const char *noun) {
  describe_with(model, inputs, noun, NULL);
}

/* ---- Token ids ---- */

#define READS(length)                                                              \
  "input input_ids -1x" length " i64\ninput attention_mask -1x" length             \
  " i64\n"                                                                         \
  "input token_type_ids -1x" length " i32\ninput position_ids -1x" length          \
  " i64\n"                                                                         \
  "stored words 50x16\nstored segments 2x16\nstored places 128x16\n"               \
  "a = Gather(words, input_ids)\nb = Gather(segments, token_type_ids)\n"           \
  "c = Gather(places, position_ids)\nd = Add(a, b)\ne = Add(d, c)\n"               \
  "m = Cast(attention_mask) to=1\nstored last 1 i64 = 2\nu = Unsqueeze(m, last)\n" \
  "f = Mul(e, u)\nstored w 16x16\ny = MatMul(f, w)\noutput y\n"

static const char reads_any[] = READS("-1"), reads_text[] = READS("12");

static void inputs_next_to_token_ids_are_told_apart(void **state) {
  (void)state;
  lac_model *model = read_model(reads_any);
  laci_drawn_input inputs[4];
  describe(model, inputs, "token ids");
  const laci_drawn_kind kinds[] = {LACI_DRAWN_IDS, LACI_DRAWN_SAME, LACI_DRAWN_SAME,
                                   LACI_DRAWN_POSITIONS};
  for (int k = 0; k < 4; k++) {
    assert_int_equal(inputs[k].kind, kinds[k]);
    assert_int_equal(inputs[k].shape.dims[0], 1);
    assert_int_equal(inputs[k].shape.dims[1], 128);
  }
  assert_int_equal(inputs[0].below, 50);
  assert_int_equal(inputs[1].value, 1);
  assert_int_equal(inputs[2].value, 0);
  lac_model_destroy(model);
}

static void one_of_n_values_is_a_table_too(void **state) {
  (void)state;
  lac_model *model = read_model(
      "input x 1x7 i32\nstored to 3 i64 = 1 7 1\nr = Reshape(x, to)\n"
      "stored n 1x1x9 i32 = 0 1 2 3 4 5 6 7 8\nq = Equal(r, n)\n"
      "c = Cast(q) to=1\noutput c\n");
  laci_drawn_input input;
  describe(model, &input, "token ids");
  assert_int_equal(input.below, 9);
  assert_int_equal(input.shape.dims[1], 7);
  lac_model_destroy(model);
}

static void token_ids_are_those_of_their_sample(void **state) {
  (void)state;
  enum { N = 6, LENGTH = 40, BELOW = 300 };
  const laci_sample_input input = {"x", {LAC_DTYPE_I64, {2, {-1, LENGTH}}}};
  const laci_drawn_input drawn = {
      .kind = LACI_DRAWN_IDS, .shape = {2, {1, LENGTH}}, .below = BELOW};
  const laci_samples_options how = {.n = N,
                                    .seed = 3,
                                    .inputs = &input,
                                    .n_inputs = 1,
                                    .drawn = &drawn,
                                    .drawn_noun = "token ids"};
  int64_t all[N * LENGTH], one[LENGTH];
  bool seen[BELOW] = {false};
  int n_seen = 0;
  laci_samples *samples;
  lac_error err = {0};
  if (laci_samples_open("synthetic", &how, &samples, &err)) fail_msg("%s", err.text);
  assert_non_null(strstr(laci_samples_description(samples), "6 synthetic samples of token ids"));
  assert_int_equal(laci_samples_read_batch(samples, 0, N, &(void *){all}, &err), LAC_OK);
  for (int k = N; k-- > 0;) {
    assert_int_equal(laci_samples_read_batch(samples, k, 1, &(void *){one}, &err), LAC_OK);
    assert_memory_equal(one, all + k * LENGTH, sizeof one);
  }
  for (int k = 0; k < N * LENGTH; k++) {
    assert_true(all[k] >= 0 && all[k] < BELOW);
    n_seen += !seen[all[k]];
    seen[all[k]] = true;
  }
  assert_true(n_seen > 60); /* three samples of 40 are uniform */
  laci_samples_close(samples);
}

static void token_ids_calibrate(void **state) {
  (void)state;
  lac_calibration calibration = lac_calibration_default();
  calibration.synthetic = true;
  calibration.samples = 16;
  lac_report *report = prune_text(reads_text, &calibration, NULL);
  assert_non_null(report->calibration);
  assert_non_null(strstr(report->calibration->data, "token ids"));
  assert_true(report->calibration->outputs_error < 1);
  lac_report_destroy(report);
  lac_error err = {0};
  lac_options options = lac_options_default();
  options.calibration = &calibration;
  calibration.crop = 8;
  lac_model *model = read_model(reads_text);
  assert_int_equal(lac_prune(model, &options, &report, &err), LAC_BAD_ARGUMENT);
  assert_non_null(strstr(err.text, "are for images"));
  lac_model_destroy(model);
}

/* The data decide how long texts are. */
static void ids_next_to_data_are_as_long_as_these(void **state) {
  (void)state;
  enum { TEXTS = 8, LENGTH = 5 };
  int64_t ids[TEXTS * LENGTH];
  for (int k = 0; k < TEXTS * LENGTH; k++) ids[k] = k * 7 % 50;
  const lac_array texts = {.name = "x",
                           .dtype = LAC_DTYPE_I64,
                           .rank = 2,
                           .shape = {TEXTS, LENGTH},
                           .data = ids,
                           .size_bytes = sizeof ids};
  lac_samples samples = LAC_SIZED(lac_samples);
  samples.arrays = &texts;
  samples.n_arrays = 1;
  lac_calibration calibration = lac_calibration_default();
  calibration.from_memory = &samples;
  calibration.synthetic = true;
  lac_report *report = prune_text(
      "input x -1x-2 i64\nstored t 50x16\na = Gather(t, x)\nstored w 16x16\n"
      "y = MatMul(a, w)\noutput y\n",
      &calibration, NULL);
  assert_int_equal(report->calibration->held_back, 2);
  assert_true(report->calibration->error_alone > 0 && report->calibration->error_added > 0);
  lac_report_destroy(report);
}

static void ids_next_to_other_numbers_are_refused(void **state) {
  (void)state;
  lac_calibration calibration = lac_calibration_default();
  calibration.synthetic = true;
  lac_options options = lac_options_default();
  options.calibration = &calibration;
  lac_error err = {0};
  lac_report *report;
  lac_model *model = read_model(
      "input x -1x7 i64\ninput z -1x7x16\nstored t 50x16\na = Gather(t, x)\n"
      "b = Add(a, z)\nstored w 16x16\ny = MatMul(b, w)\noutput y\n");
  assert_int_equal(lac_prune(model, &options, &report, &err), LAC_BAD_SHAPE);
  assert_non_null(strstr(err.text, "input 'z' is f32"));
  assert_int_equal(err.hint, LAC_HINT_CALIBRATION);
  lac_model_destroy(model);
}

/* ---- Sounds ---- */

/* A rate that an If compares, a state along whose second axis samples are, and 16 channels. */
static const char hears[] =
    "input x -1x-2\ninput state 2x-1x16\ninput sr 1 i64\n"
    "stored rate 1 i64 = 16000\nq = Equal(sr, rate)\nstored one 1 i64 = 1\n"
    "u = Unsqueeze(x, one)\nstored f 16x1x64\nc = Conv(u, f) strides=32,\nr = Relu(c)\n"
    "stored w 16x16x3\ny = Conv(r, w) pads=1,1\nm = GlobalAveragePool(y)\noutput m\n"
    "stored zero 1 i64 = 0\ns = ReduceSum(state, zero)\noutput s\noutput q\n";

static void inputs_next_to_sounds_are_told_apart(void **state) {
  (void)state;
  lac_model *model = read_model(hears);
  laci_drawn_input inputs[3];
  describe(model, inputs, "sounds");
  assert_int_equal(inputs[0].kind, LACI_DRAWN_SOUND);
  assert_int_equal(inputs[0].shape.dims[0], 1);
  assert_int_equal(inputs[0].shape.dims[1], 16000);
  assert_true(inputs[0].rate == 16000);
  assert_int_equal(inputs[1].kind, LACI_DRAWN_NUMBERS);
  assert_int_equal(inputs[1].batch_axis, 1);
  assert_int_equal(inputs[1].shape.dims[1], 1);
  assert_int_equal(inputs[2].kind, LACI_DRAWN_SAME);
  assert_int_equal(inputs[2].value, 16000);
  assert_int_equal(inputs[2].batch_axis, -1);
  lac_model_destroy(model);
}

static void a_given_rate_is_that_of_the_sounds(void **state) {
  (void)state;
  const laci_sample_constant rate = {"sr", 8000};
  const laci_samples_options how = {.constants = &rate, .n_constants = 1};
  lac_model *model = read_model(hears);
  laci_drawn_input inputs[3];
  laci_arena arena = {0};
  lac_error err = {0};
  if (laci_synthetic_describe_inputs(model->graph, &how, inputs, &arena, &err))
    fail_msg("%s", err.text);
  assert_true(inputs[0].rate == 8000);
  laci_arena_clear(&arena);
  lac_model_destroy(model);
}

/* One window of 512 samples fits into one length alone. */
static void sounds_are_as_long_as_the_network_takes(void **state) {
  (void)state;
  lac_model *model = read_model(
      "input x -1x-2\nstored one 1 i64 = 1\nu = Unsqueeze(x, one)\nstored f 8x1x64\n"
      "c = Conv(u, f) strides=64,\nstored to 2 i64 = -1 64\nr = Reshape(c, to)\n"
      "stored w 64x8\ny = MatMul(r, w)\nstored h 8x1x512\nv = Conv(u, h)\n"
      "stored two 1 i64 = 2\nq = Squeeze(v, two)\nz = Add(y, q)\noutput z\n");
  laci_drawn_input input;
  describe(model, &input, "sounds");
  assert_int_equal(input.shape.dims[1], 512);
  lac_model_destroy(model);
}

static void sounds_calibrate(void **state) {
  (void)state;
  lac_calibration calibration = lac_calibration_default();
  calibration.synthetic = true;
  calibration.optional = true;
  calibration.samples = 16;
  lac_report *report = prune_text(hears, &calibration, NULL);
  assert_non_null(report->calibration);
  assert_non_null(strstr(report->calibration->data, "sounds"));
  assert_true(report->calibration->outputs_error < 1);
  lac_report_destroy(report);
}

static void a_number_that_nobody_gives_is_asked_for(void **state) {
  (void)state;
  static const char text[] =
      "input x 1x64\ninput n 1 i64\nstored one 1 i64 = 1\nu = Unsqueeze(x, one)\n"
      "stored f 16x1x4\nc = Conv(u, f)\nstored w 16x16x3\ny = Conv(c, w)\n"
      "t = Cast(n) to=1\nz = Mul(y, t)\noutput z\n";
  const char *given = "n=2";
  lac_calibration calibration = lac_calibration_default();
  lac_options options = lac_options_default();
  lac_report *report = NULL;
  lac_error err = {0};
  calibration.synthetic = true;
  calibration.samples = 8;
  options.calibration = &calibration;
  lac_model *model = read_model(text);
  assert_int_equal(lac_prune(model, &options, &report, &err), LAC_BAD_SHAPE);
  assert_non_null(strstr(err.text, "input 'n' is i64"));
  lac_model_destroy(model);
  calibration.constants = &given;
  calibration.n_constants = 1;
  report = prune_text(text, &calibration, NULL);
  assert_non_null(report->calibration);
  lac_report_destroy(report);
}

/* ---- Rows of numbers ---- */

#define PRODUCTS                                                                     \
  "stored w 4x16\na = MatMul(s, w)\nr = Relu(a)\nstored v 16x16\ny = MatMul(r, v)\n" \
  "output y\n"

static void numbers_have_the_scale_that_the_network_undoes(void **state) {
  (void)state;
  const struct {
    const char *text;
    float mean, deviation;
  } nets[] = {
      {"input x -1x4\nstored g 4 f32 = 1.0 1.0 1.0 1.0\nstored b 4 f32 = 0.0 0.0 0.0 0.0\n"
       "stored m 4 f32 = 1.0 2.0 3.0 4.0\nstored d 4 f32 = 4.0 9.0 16.0 25.0\n"
       "s = BatchNormalization(x, g, b, m, d)\n" PRODUCTS,
       3, 4},
      {"input x -1x4\nstored m 4 f32 = 1.0 2.0 5.0 4.0\nstored d 1 f32 = 8.0\n"
       "t = Sub(x, m)\ns = Div(t, d)\n" PRODUCTS,
       5, 8},
      {"input x -1x4\nstored m 1x4 f32 = 1.0 2.0 6.0 4.0\nstored d 4 f32 = 1.0 1.0 -0.5 1.0\n"
       "t = Sub(x, m)\ns = Mul(t, d)\n" PRODUCTS,
       6, 2},
  };
  for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) {
    float numbers[2][MOST_NUMBERS] = {{0}};
    lac_model *model = read_model(nets[k].text);
    laci_drawn_input input;
    describe_with(model, &input, "rows of numbers", numbers);
    assert_int_equal(input.kind, LACI_DRAWN_NUMBERS);
    if (numbers[0][2] != nets[k].mean || numbers[1][2] != nets[k].deviation)
      fail_msg("network %zu: %g, %g", k, (double)numbers[0][2], (double)numbers[1][2]);
    lac_model_destroy(model);
  }
}

static void numbers_have_mean_and_deviation(void **state) {
  (void)state;
  enum { N = 400, WIDTH = 2 };
  const laci_sample_input input = {"x", {LAC_DTYPE_F32, {2, {-1, WIDTH}}}};
  const float mean[WIDTH] = {10, -2}, deviation[WIDTH] = {3, 0};
  const laci_drawn_input drawn = {.kind = LACI_DRAWN_NUMBERS,
                                  .shape = {2, {1, WIDTH}},
                                  .floats = true,
                                  .mean = mean,
                                  .deviation = deviation};
  const laci_samples_options how = {
      .n = N, .inputs = &input, .n_inputs = 1, .drawn = &drawn, .drawn_noun = "rows of numbers"};
  float all[N * WIDTH];
  double sum = 0, squares = 0;
  laci_samples *samples;
  lac_error err = {0};
  if (laci_samples_open("synthetic", &how, &samples, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_samples_read_batch(samples, 0, N, &(void *){all}, &err), LAC_OK);
  for (int k = 0; k < N; k++) {
    sum += all[k * WIDTH];
    squares += (all[k * WIDTH] - 10) * (all[k * WIDTH] - 10);
    assert_true(all[k * WIDTH + 1] == -2);
  }
  assert_true(fabs(sum / N - 10) < 0.6);
  assert_true(fabs(sqrt(squares / N) - 3) < 0.4);
  laci_samples_close(samples);
}

static void scaled_numbers_calibrate(void **state) {
  (void)state;
  static const char text[] =
      "input x -1x4\nstored m 4 f32 = 1.0 2.0 5.0 4.0\nstored d 1 f32 = 8.0\n"
      "t = Sub(x, m)\ns = Div(t, d)\nstored w 4x16\ny = MatMul(s, w)\noutput y\n";
  lac_calibration calibration = lac_calibration_default();
  calibration.synthetic = true;
  calibration.samples = 64;
  lac_report *report = prune_text(text, &calibration, NULL);
  assert_non_null(report->calibration);
  assert_non_null(strstr(report->calibration->data, "rows of numbers"));
  lac_report_destroy(report);
}

static void numbers_without_a_scale_are_refused(void **state) {
  (void)state;
  static const char text[] = "input s -1x4\nstored w 4x16\ny = MatMul(s, w)\noutput y\n";
  lac_calibration calibration = lac_calibration_default();
  lac_options options = lac_options_default();
  lac_report *report = NULL;
  lac_error err = {0};
  calibration.synthetic = true;
  options.calibration = &calibration;
  options.all_sizes = true;
  lac_model *model = read_model(text);
  assert_int_equal(lac_prune(model, &options, &report, &err), LAC_BAD_VALUE);
  assert_non_null(strstr(err.text, "does not scale input 's'"));
  assert_int_equal(err.hint, LAC_HINT_CALIBRATION);
  lac_model_destroy(model);
  calibration.optional = true;
  report = prune_text(text, &calibration, NULL);
  assert_null(report->calibration);
  assert_non_null(strstr(report->uncalibrated, "does not scale input 's'"));
  lac_report_destroy(report);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inputs_next_to_token_ids_are_told_apart),
      cmocka_unit_test(one_of_n_values_is_a_table_too),
      cmocka_unit_test(token_ids_are_those_of_their_sample),
      cmocka_unit_test(token_ids_calibrate),
      cmocka_unit_test(ids_next_to_data_are_as_long_as_these),
      cmocka_unit_test(ids_next_to_other_numbers_are_refused),
      cmocka_unit_test(inputs_next_to_sounds_are_told_apart),
      cmocka_unit_test(a_given_rate_is_that_of_the_sounds),
      cmocka_unit_test(sounds_are_as_long_as_the_network_takes),
      cmocka_unit_test(sounds_calibrate),
      cmocka_unit_test(a_number_that_nobody_gives_is_asked_for),
      cmocka_unit_test(numbers_have_the_scale_that_the_network_undoes),
      cmocka_unit_test(numbers_have_mean_and_deviation),
      cmocka_unit_test(scaled_numbers_calibrate),
      cmocka_unit_test(numbers_without_a_scale_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
