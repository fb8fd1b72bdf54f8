/* SPDX-License-Identifier: Apache-2.0
 * Every field of every options struct of the public headers, with values that no caller should
 * give: an answer or a status with a text, never a crash or a run without an end. The fields come
 * from the headers (tests/tools/option_fields.py); a new struct needs a caller here to compile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lacuna/bench.h"
#include "lacuna/calibration.h"
#include "lacuna/compare.h"
#include "lacuna/data.h"
#include "lacuna/engine.h"
#include "lacuna/eval.h"
#include "lacuna/finetune.h"
#include "lacuna/infer.h"
#include "lacuna/log.h"
#include "lacuna/process_group.h"
#include "lacuna/prune.h"
#include "lacuna/quantization.h"
#include "lacuna/session.h"
#include "lacuna/train.h"
#include "unit/data_folder.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits"

static lac_model *dense;
static folder outputs;

/* ---- A caller for each struct ---- */

static lac_status pruned_copy(const lac_options *o, lac_error *err) {
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_status st = lac_model_load(DIGITS "/digits.onnx", NULL, &model, err);
  if (!st) st = lac_prune(model, o, &report, err);
  lac_report_destroy(report);
  lac_model_destroy(model);
  return st;
}

static lac_status try_lac_options(const lac_options *o, lac_error *err) {
  lac_report *report = NULL;
  lac_options quick = *o;
  lac_status st = lac_inspect(dense, o, &report, err);
  lac_report_destroy(report);
  quick.verify = false;
  return st ? st : pruned_copy(&quick, err);
}

static lac_calibration few_samples(void) {
  lac_calibration c = lac_calibration_default();
  c.data = DIGITS;
  c.samples = 2;
  c.solve = false;
  return c;
}

static lac_status try_lac_calibration(const lac_calibration *c, lac_error *err) {
  lac_options o = lac_options_default();
  o.permute = o.verify = false;
  o.score = "magnitude";
  o.calibration = c;
  return pruned_copy(&o, err);
}

static lac_status try_lac_quantization(const lac_quantization *q, lac_error *err) {
  const lac_calibration c = few_samples();
  lac_options o = lac_options_default();
  o.permute = o.verify = false;
  o.score = "magnitude";
  o.calibration = &c;
  o.quantization = q;
  return pruned_copy(&o, err);
}

static lac_status try_lac_bench_options(const lac_bench_options *o, lac_error *err) {
  lac_bench_result *result = NULL;
  lac_bench_options quick = *o;
  if (quick.runs == lac_bench_options_default().runs) quick.runs = 1;
  lac_status st = lac_bench(dense, &quick, &result, err);
  lac_bench_result_destroy(result);
  return st;
}

static lac_status try_lac_engine_options(const lac_engine_options *o, lac_error *err) {
  lac_engine *engine = NULL;
  lac_status st = lac_engine_create(dense, o, &engine, err);
  lac_engine_destroy(engine);
  return st;
}

static lac_status try_lac_session_options(const lac_session_options *o, lac_error *err) {
  float in[64] = {0};
  lac_session *session = NULL;
  const lac_array image = {.dtype = LAC_DTYPE_F32,
                           .rank = 4,
                           .shape = {1, 1, 8, 8},
                           .data = in,
                           .size_bytes = sizeof in};
  lac_status st = lac_session_create(dense, o, &session, err);
  if (!st) st = lac_session_run(session, &image, 1, NULL, 0, err);
  lac_session_destroy(session);
  return st;
}

static lac_status try_lac_eval_options(const lac_eval_options *o, lac_error *err) {
  lac_eval_result result = LAC_SIZED(lac_eval_result);
  lac_eval_options quick = *o;
  if (quick.limit == 0) quick.limit = 4;
  return lac_eval(dense, DIGITS, &quick, &result, err);
}

static lac_status try_lac_infer_options(const lac_infer_options *o, lac_error *err) {
  char path[FOLDER_PATH], to[FOLDER_PATH];
  path_in(path, &outputs, "image.npy");
  path_in(to, &outputs, "out");
  const lac_infer_input input = {"image", path};
  lac_infer_options again = *o;
  again.force = true;
  return lac_infer(dense, &input, 1, to, &again, NULL, err);
}

static lac_status try_lac_finetune_options(const lac_finetune_options *o, lac_error *err) {
  lac_model *model = NULL;
  lac_finetune_result result = LAC_SIZED(lac_finetune_result);
  lac_finetune_options quick = *o;
  lac_train_options training = lac_finetune_training_default();
  training.steps = 1;
  training.evaluate = false;
  quick.training = &training;
  lac_status st = lac_model_load(DIGITS "/digits.onnx", NULL, &model, err);
  if (!st) st = lac_finetune(model, DIGITS, &quick, &result, err);
  lac_finetune_result_clear(&result);
  lac_model_destroy(model);
  return st;
}

static lac_status try_lac_train_options(const lac_train_options *o, lac_error *err) {
  lac_train_setting settings[LAC_TRAIN_MOST_SETTINGS];
  lac_train_data found = LAC_SIZED(lac_train_data);
  lac_train_size size = LAC_SIZED(lac_train_size);
  int n;
  lac_status st = lac_train_settings(o, settings, &n, err);
  if (!st) st = lac_train_data_find(DIGITS, o, &found, err);
  return st ? st : lac_train_size_find(DIGITS, o, &size, err);
}

static lac_status try_lac_network_options(const lac_network_options *o, lac_error *err) {
  lac_model *model = NULL;
  lac_status st = lac_network_create(o, &model, err);
  lac_model_destroy(model);
  return st;
}

static lac_status try_lac_imagenet_options(const lac_imagenet_options *o, lac_error *err) {
  lac_imagenet_result result = LAC_SIZED(lac_imagenet_result);
  char to[FOLDER_PATH];
  path_in(to, &outputs, "shards");
  return lac_imagenet_convert(outputs.path, to, o, &result, err);
}

static lac_status try_lac_synthetic_options(const lac_synthetic_options *o, lac_error *err) {
  lac_array images = {.rank = 0};
  lac_status st = lac_synthetic_images(dense, o, &images, err);
  lac_session_release(&images, 1);
  return st;
}

static lac_status try_lac_process_group_options(const lac_process_group_options *o,
                                                lac_error *err) {
  lac_process_group *group = NULL;
  return lac_process_group_open(o, &group, err); /* alone: there is none */
}

static lac_status try_lac_load_options(const lac_load_options *o, lac_error *err) {
  lac_model *model = NULL;
  lac_status st = lac_model_load(DIGITS "/digits.onnx", o, &model, err);
  lac_model_destroy(model);
  return st;
}

static lac_status try_lac_compare_options(const lac_compare_options *o, lac_error *err) {
  lac_compare_result *result = NULL;
  lac_status st = lac_compare(dense, dense, o, &result, err);
  lac_compare_result_destroy(result);
  return st;
}

static lac_status try_lac_plot_options(const lac_plot_options *o, lac_error *err) {
  lac_report *report = NULL;
  const lac_options usual = lac_options_default();
  lac_plot_options again = *o;
  char to[FOLDER_PATH];
  path_in(to, &outputs, "net.dot");
  again.force = true;
  lac_status st = lac_inspect(dense, &usual, &report, err);
  if (!st) st = lac_plot_with(dense, report, to, &again, err);
  lac_report_destroy(report);
  return st;
}

static lac_network_options digits_network(void) {
  lac_network_options o = lac_network_options_default();
  o.name = "digits";
  return o;
}

/* ---- The fields ---- */

typedef enum kind { INT, INT64, BYTES, REAL, REALS, TEXT, ENUM, BOOL, POINTER } kind;

#define KIND_OF(field) \
  _Generic(&(field), int *: INT, int64_t *: INT64, uint64_t *: BYTES, double *: REAL,        \
           float(*)[3]: REALS, const char **: TEXT, unsigned *: ENUM, bool *: BOOL, default: \
           POINTER)

static const int ints[] = {-1, 0, 1, 3, 99, 65537, INT_MIN, INT_MAX};
static const int64_t longs[] = {-1, 0, 1, INT64_MIN, INT64_MAX};
static const uint64_t bytes[] = {0, 1, UINT64_MAX};
static const double reals[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, -2, 0};
static const char *const texts[] = {NULL, "", "no/such", "[", "\xff\xfe", "%s%n"};
static const unsigned enums[] = {3, 99, 9999, UINT_MAX};

/** Puts the at-th value into the field; false: there are no more. */
static bool put(kind k, void *field, size_t at) {
  switch (k) {
#define PUT(values)                                          \
  if (at >= sizeof(values) / sizeof *(values)) return false; \
  memcpy(field, &(values)[at], sizeof *(values));            \
  return true
    case INT: PUT(ints);
    case INT64: PUT(longs);
    case BYTES: PUT(bytes);
    case REAL: PUT(reals);
    case TEXT: PUT(texts);
    case ENUM: PUT(enums);
#undef PUT
    case REALS:
      if (at >= sizeof reals / sizeof *reals) return false;
      for (int i = 0; i < 3; i++) ((float *)field)[i] = (float)reals[at];
      return true;
    case BOOL: return false; /* both of its values are right */
    case POINTER: memset(field, 0, sizeof(void *)); return at == 0;
  }
  return false;
}

static void judge(const char *name, kind k, size_t at, lac_status st, const lac_error *err) {
  if (st && !err->text[0]) fail_msg("%s, value %zu: status %d without a text", name, at, (int)st);
  if (k == ENUM && st != LAC_BAD_ARGUMENT)
    fail_msg("%s = %u: status %d, wanted LAC_BAD_ARGUMENT", name, enums[at], (int)st);
}

static void no_field_does_more_than_an_answer_or_a_status(void **state) {
  (void)state;
#define lac_calibration_default few_samples
#define lac_network_options_default digits_network
#define OPTION_FIELD(record, field)                                 \
  for (size_t at = 0;; at++) {                                      \
    record o = record##_default();                                  \
    lac_error err = {0};                                            \
    const kind k = KIND_OF(o.field);                                \
    if (!put(k, &o.field, at)) break;                               \
    judge(#record "." #field, k, at, try_##record(&o, &err), &err); \
  }
#include "option_fields.def"
}

static int open_all(void **state) {
  (void)state;
  static const char head[] =
      "\x93NUMPY\x01\0\x45\0{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 8, 8), }   \n";
  char npy[sizeof head - 1 + 256] = {0};
  memcpy(npy, head, sizeof head - 1);
  lac_log_set(LAC_LOG_ERROR, NULL, NULL);
  outputs = make_folder();
  add_bytes(&outputs, "image.npy", npy, sizeof npy);
  return lac_model_load(DIGITS "/digits.onnx", NULL, &dense, NULL);
}

static int close_all(void **state) {
  (void)state;
  lac_model_destroy(dense);
  remove_folder(&outputs);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_field_does_more_than_an_answer_or_a_status),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
