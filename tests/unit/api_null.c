/* SPDX-License-Identifier: Apache-2.0
 * A NULL where a pointer is wanted: LAC_BAD_ARGUMENT, the text names the argument, and the result
 * is NULL. What cannot fail does nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lacuna/mask.h"
#include "lacuna/prune.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits/digits.onnx"

static lac_model *model;
static lac_report *report;
static lac_mask *mask;
static lac_options options;
static const char *const tensor = "model.0.weight";

static int open_all(void **state) {
  (void)state;
  lac_error err = {0};
  options = lac_options_default();
  options.threads = 1;
  if (lac_model_load(DIGITS, NULL, &model, &err) || lac_inspect(model, &options, &report, &err) ||
      lac_mask_create(&mask, &err)) {
    print_error("%s\n", err.text);
    return -1;
  }
  return 0;
}

static int close_all(void **state) {
  (void)state;
  lac_mask_destroy(mask);
  lac_report_destroy(report);
  lac_model_destroy(model);
  return 0;
}

static void check_refused(lac_status st, const lac_error *err, const char *wanted, int line) {
  if (st != LAC_BAD_ARGUMENT || err->status != st || strcmp(err->text, wanted) != 0)
    fail_msg("line %d: status %d, \"%s\", wanted \"%s\"", line, (int)st, err->text, wanted);
}
#define refused(wanted, call)                  \
  do {                                         \
    lac_error err = {0};                       \
    lac_status st = (call);                    \
    check_refused(st, &err, wanted, __LINE__); \
  } while (0)

static void a_model_wants_its_arguments(void **state) {
  (void)state;
  lac_model *made = model;
  lac_tensor found = LAC_SIZED(lac_tensor);
  refused("lac_model_load: none of path, options.bytes and options.read: wanted one",
          lac_model_load(NULL, NULL, &made, &err));
  assert_null(made);
  refused("lac_model_load: model is NULL", lac_model_load(DIGITS, NULL, NULL, &err));
  refused("lac_model_save: model is NULL", lac_model_save(NULL, "out.onnx", false, &err));
  refused("lac_model_save: path is NULL", lac_model_save(model, NULL, false, &err));
  refused("lac_model_find_tensor: model is NULL",
          lac_model_find_tensor(NULL, tensor, &found, &err));
  refused("lac_model_find_tensor: name is NULL", lac_model_find_tensor(model, NULL, &found, &err));
  refused("lac_model_find_tensor: tensor is NULL",
          lac_model_find_tensor(model, tensor, NULL, &err));
  refused("lac_model_tensor: model is NULL", lac_model_tensor(NULL, 0, &found, &err));
  refused("lac_model_tensor: tensor is NULL", lac_model_tensor(model, 0, NULL, &err));
}

static void what_cannot_fail_takes_a_null(void **state) {
  (void)state;
  assert_int_equal(lac_model_tensor_count(NULL), 0);
  assert_false(lac_model_reads(NULL, DIGITS));
  assert_false(lac_model_reads(model, NULL));
  assert_null(lac_model_data_file(NULL, 0));
  assert_null(lac_model_data_file(model, -1));
  lac_model_destroy(NULL);
  lac_report_destroy(NULL);
  lac_text_free(NULL);
  lac_mask_destroy(NULL);
  assert_int_equal(lac_mask_count(NULL), 0);
  assert_null(lac_mask_name(NULL, 0));
}

typedef lac_status verb(lac_model *model, const lac_options *options, lac_report **out,
                        lac_error *err);

static lac_status inspect(lac_model *m, const lac_options *o, lac_report **out, lac_error *err) {
  return lac_inspect(m, o, out, err);
}
static lac_status check(lac_model *m, const lac_options *o, lac_report **out, lac_error *err) {
  return lac_check(m, NULL, o, out, err);
}
static lac_status apply(lac_model *m, const lac_options *o, lac_report **out, lac_error *err) {
  return lac_permutation_apply(m, "order.json", false, o, out, err);
}

static void a_verb_wants_a_model_options_and_a_report(void **state) {
  (void)state;
  static const struct {
    const char *name;
    verb *call;
  } verbs[] = {{"lac_prune", lac_prune},
               {"lac_permute", lac_permute},
               {"lac_inspect", inspect},
               {"lac_check", check},
               {"lac_permutation_apply", apply}};
  for (size_t v = 0; v < sizeof verbs / sizeof *verbs; v++) {
    char wanted[3][64];
    static const char *const arguments[3] = {"model", "options", "report"};
    for (int k = 0; k < 3; k++) {
      lac_report *out = report;
      (void)snprintf(wanted[k], sizeof wanted[k], "%s: %s is NULL", verbs[v].name, arguments[k]);
      refused(wanted[k], verbs[v].call(k == 0 ? NULL : model, k == 1 ? NULL : &options,
                                       k == 2 ? NULL : &out, &err));
      if (k < 2) assert_null(out);
    }
  }
}

static void the_other_verbs_want_their_arguments(void **state) {
  (void)state;
  char before[] = "before", *text = before;
  lac_report *out = report;
  refused("lac_inspect_why: model is NULL", lac_inspect_why(NULL, &options, "x", &text, &err));
  assert_null(text);
  refused("lac_inspect_why: options is NULL", lac_inspect_why(model, NULL, "x", &text, &err));
  refused("lac_inspect_why: node is NULL", lac_inspect_why(model, &options, NULL, &text, &err));
  refused("lac_inspect_why: text is NULL", lac_inspect_why(model, &options, "x", NULL, &err));
  refused("lac_permutation_save: report is NULL", lac_permutation_save(NULL, "o", false, &err));
  refused("lac_permutation_save: path is NULL", lac_permutation_save(report, NULL, false, &err));
  refused("lac_permutation_apply: path is NULL",
          lac_permutation_apply(model, NULL, false, &options, &out, &err));
  refused("lac_plot: model is NULL", lac_plot(NULL, report, "o.dot", false, NULL, &err));
  refused("lac_plot: report is NULL", lac_plot(model, NULL, "o.dot", false, NULL, &err));
  refused("lac_plot: path is NULL", lac_plot(model, report, NULL, false, NULL, &err));
  refused("lac_plot_with: path is NULL", lac_plot_with(model, report, NULL, NULL, &err));
}

static void a_list_without_texts_is_refused(void **state) {
  (void)state;
  lac_report *out;
  lac_options o = options;
  o.n_assume = 1;
  refused("assume is NULL, but n_assume is 1", lac_inspect(model, &o, &out, &err));
  o.assume = (const char *const[]){NULL};
  refused("assume[0] is NULL", lac_inspect(model, &o, &out, &err));
  o.n_assume = -1;
  refused("n_assume is -1, wanted 0 or more", lac_inspect(model, &o, &out, &err));
  o = options;
  o.n_input_shapes = 2;
  refused("input_shapes is NULL, but n_input_shapes is 2", lac_prune(model, &o, &out, &err));
  o.input_shapes = (const char *const[]){"x=1x1x8x8", NULL};
  refused("input_shapes[1] is NULL", lac_check(model, NULL, &o, &out, &err));
}

static void a_report_wants_its_arguments(void **state) {
  (void)state;
  char *text = NULL;
  int32_t order[8];
  uint8_t bytes[8];
  refused("lac_report_json: report is NULL", lac_report_json(NULL, &text, &err));
  refused("lac_report_json: text is NULL", lac_report_json(report, NULL, &err));
  refused("lac_report_order: report is NULL", lac_report_order(NULL, tensor, 0, order, 8, &err));
  refused("lac_report_order: tensor is NULL", lac_report_order(report, NULL, 0, order, 8, &err));
  refused("lac_report_order: order is NULL", lac_report_order(report, tensor, 0, NULL, 8, &err));
  refused("lac_report_mask: report is NULL", lac_report_mask(NULL, tensor, bytes, 8, &err));
  refused("lac_report_mask: tensor is NULL", lac_report_mask(report, NULL, bytes, 8, &err));
  refused("lac_report_mask: mask is NULL", lac_report_mask(report, tensor, NULL, 8, &err));
}

static void masks_want_their_arguments(void **state) {
  (void)state;
  float values[4] = {1, 2, 3, 4};
  lac_mask_weight w = {.size = sizeof(lac_mask_weight),
                       .name = "w",
                       .dtype = LAC_DTYPE_F32,
                       .rank = 1,
                       .shape = {4},
                       .values = values};
  lac_mask *made = mask;
  const uint8_t *bytes;
  size_t count;
  refused("lac_mask_create: mask is NULL", lac_mask_create(NULL, &err));
  refused("lac_mask_from_model: model is NULL", lac_mask_from_model(NULL, &options, &made, &err));
  assert_null(made);
  refused("lac_mask_from_model: options is NULL", lac_mask_from_model(model, NULL, &made, &err));
  refused("lac_mask_from_model: mask is NULL", lac_mask_from_model(model, &options, NULL, &err));
  refused("lac_mask_add: mask is NULL", lac_mask_add(NULL, &w, 2, 4, &err));
  refused("lac_mask_add: weight is NULL", lac_mask_add(mask, NULL, 2, 4, &err));
  refused("lac_mask_add_zeros: mask is NULL", lac_mask_add_zeros(NULL, &w, &err));
  refused("lac_mask_add_zeros: weight is NULL", lac_mask_add_zeros(mask, NULL, &err));
  w.values = NULL;
  refused("lac_mask_weight: values is NULL", lac_mask_add(mask, &w, 2, 4, &err));
  w.name = NULL;
  refused("lac_mask_weight: name is NULL", lac_mask_add_zeros(mask, &w, &err));
  refused("lac_mask_bytes: mask is NULL", lac_mask_bytes(NULL, "w", &bytes, &count, &err));
  refused("lac_mask_bytes: name is NULL", lac_mask_bytes(mask, NULL, &bytes, &count, &err));
  refused("lac_mask_bytes: bytes is NULL", lac_mask_bytes(mask, "w", NULL, &count, &err));
  refused("lac_mask_bytes: count is NULL", lac_mask_bytes(mask, "w", &bytes, NULL, &err));
  refused("lac_mask_apply: mask is NULL",
          lac_mask_apply(NULL, "w", LAC_DTYPE_F32, values, 4, &err));
  refused("lac_mask_apply: name is NULL",
          lac_mask_apply(mask, NULL, LAC_DTYPE_F32, values, 4, &err));
  refused("lac_mask_apply: values is NULL",
          lac_mask_apply(mask, "w", LAC_DTYPE_F32, NULL, 4, &err));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_model_wants_its_arguments),
      cmocka_unit_test(what_cannot_fail_takes_a_null),
      cmocka_unit_test(a_verb_wants_a_model_options_and_a_report),
      cmocka_unit_test(the_other_verbs_want_their_arguments),
      cmocka_unit_test(a_list_without_texts_is_refused),
      cmocka_unit_test(a_report_wants_its_arguments),
      cmocka_unit_test(masks_want_their_arguments),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
