/* SPDX-License-Identifier: Apache-2.0
 * `lacuna eval`: top-1, top-5 and loss of a classifier on labelled images. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/plural.h"
#include "input.h"
#include "lacuna/eval.h"
#include "outputs.h"
#include "log.h"
#include "page.h"
#include "terminal.h"
#include "run_options.h"
#include "verbs.h"

enum { MOST_PIXELS = 16384 };

static lac_status read_options(const arguments *args, lac_eval_options *options, lac_error *err) {
  *options = lac_eval_options_default();
  uint64_t batch_size = args->given.batch_size ? args->batch_size : (uint64_t)options->batch;
  if (!args->data) { return laci_fail(err, LAC_BAD_ARGUMENT, "--data DIR is missing: the images"); }
  lac_status st = input_check_number("resize", args->resize, 0, MOST_PIXELS, err);
  if (!st) st = input_check_number("crop", args->crop, 0, MOST_PIXELS, err);
  if (!st) st = input_check_number("batch-size", batch_size, 1, 65536, err);
  if (!st) st = input_check_number("limit", args->limit, 0, INT64_MAX, err);
  if (!st && args->mean) st = input_parse_colour("mean", args->mean, options->mean, err);
  if (!st && args->std) st = input_parse_colour("std", args->std, options->std, err);
  options->run = run_options_from_arguments(args);
  options->batch = (int)batch_size;
  options->limit = (int64_t)args->limit;
  options->resize = (int)args->resize;
  options->crop = (int)args->crop;
  options->classes = args->classes;
  options->predictions = args->predictions;
  options->force = args->force;
  return st;
}

/* Plans the outputs. The file of predictions takes the place of OUTPUT_MODEL, which other verbs use
 * for the model. */
static lac_status plan_outputs(const arguments *args, outputs *plan, lac_error *err) {
  arguments named = *args;
  named.output = args->predictions;
  if (args->predictions && strcmp(args->predictions, "-") == 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--predictions -: this goes to a file only");
  }
  if (args->predictions && args->json && strcmp(args->predictions, args->json) == 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: --predictions and --json name the same file",
                     args->json);
  }
  return outputs_plan_and_check(&named, plan, err);
}

static lac_status write_page(outputs *plan, const char *json, lac_model *model, lac_error *err) {
  const lac_options usual = lac_options_default();
  lac_report *layers = NULL;
  lac_status st = page_inspect_model(model, usual.n, usual.m, &layers, err);
  if (!st) st = outputs_write_page(plan, json, model, layers, err);
  lac_report_destroy(layers);
  return st;
}

static lac_status print_and_write_result(outputs *plan, lac_model *model,
                                         const lac_eval_result *result, lac_error *err) {
  char *text = NULL;
  bool wanted = plan->files[OUTPUT_JSON].path || plan->files[OUTPUT_PAGE].path;
  lac_status st = wanted ? lac_eval_json(model, result, &text, err) : LAC_OK;
  if (!st && plan->files[OUTPUT_PAGE].path) st = write_page(plan, text, model, err);
  if (!st && text) st = outputs_write_json(plan, text, err);
  lac_text_free(text);
  if (!st && !plan->uses_stdout) {
    terminal_print_sentence(stdout, "%" PRId64 " image%s: top-1 %.2f%%, top-5 %.2f%%, loss %.4f",
                            result->images, laci_plural(result->images), result->top1, result->top5,
                            result->loss);
  }
  return st;
}

exit_code verb_eval(const arguments *args, lac_error *err) {
  lac_eval_options options;
  lac_eval_result result = LAC_SIZED(lac_eval_result);
  lac_model *model = NULL;
  outputs plan = {0};
  lac_status st = read_options(args, &options, err);
  if (!st) st = plan_outputs(args, &plan, err);
  if (!st) st = outputs_check_against_data(&plan, args, err);
  if (!st) st = input_load_model(args, args->operand, &model, err);
  if (!st) st = outputs_check_against_model(&plan, model, args->operand, err);
  if (!st) {
    outputs_begin_file_set(&plan);
    st = lac_eval(model, args->data, &options, &result, err);
  }
  if (!st) st = print_and_write_result(&plan, model, &result, err);
  st = outputs_rename_or_remove(&plan, st, err);
  if (!st) {
    log_images_per_second(result.images_per_second, result.n_sparse);
    outputs_log(&plan);
  }
  lac_model_destroy(model);
  return exit_code_of_status(st);
}
