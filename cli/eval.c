/* SPDX-License-Identifier: Apache-2.0
 * `lacuna eval`: top-1, top-5 and loss of a classifier on labelled images. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "input.h"
#include "lacuna/eval.h"
#include "outputs.h"
#include "story.h"
#include "verbs.h"

enum { MOST_PIXELS = 16384 };

/* "R,G,B" of option --name. */
static lac_status parse_colour(const char *name, const char *text, float colour[3],
                               lac_error *err) {
  const char *at = text;
  for (int c = 0; c < 3; c++) {
    char *end;
    colour[c] = strtof(at, &end);
    if (end == at || *end != (c < 2 ? ',' : 0)) {
      return laci_fail(err, LAC_BAD_ARGUMENT,
                       "--%s %s: wanted R,G,B in grey levels, such as 123.675,116.28,103.53", name,
                       text);
    }
    at = end + 1;
  }
  return LAC_OK;
}

/* An option that counts, inside its limits. */
static lac_status check_number(const char *name, uint64_t value, uint64_t least, uint64_t most,
                               lac_error *err) {
  if (value >= least && value <= most) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT,
                   "--%s %" PRIu64 ": wanted a whole number from %" PRIu64 " to %" PRIu64, name,
                   value, least, most);
}

static lac_status read_options(const arguments *args, lac_eval_options *options, lac_error *err) {
  *options = lac_eval_options_default();
  if (!args->data) { return laci_fail(err, LAC_BAD_ARGUMENT, "--data DIR is missing: the images"); }
  lac_status st = check_number("resize", args->resize, 0, MOST_PIXELS, err);
  if (!st) st = check_number("crop", args->crop, 0, MOST_PIXELS, err);
  if (!st) st = check_number("batch-size", args->batch_size, 1, 65536, err);
  if (!st) st = check_number("limit", args->limit, 0, INT64_MAX, err);
  if (!st && args->mean) st = parse_colour("mean", args->mean, options->mean, err);
  if (!st && args->std) st = parse_colour("std", args->std, options->std, err);
  options->threads = args->threads;
  options->dtype = strcmp(args->dtype, "bf16") == 0 ? LAC_DTYPE_BF16 : LAC_DTYPE_F32;
  options->batch = (int)args->batch_size;
  options->limit = (int64_t)args->limit;
  options->resize = (int)args->resize;
  options->crop = (int)args->crop;
  options->classes = args->classes;
  options->predictions = args->predictions;
  options->force = args->force;
  return st;
}

/* The predictions take the place that a written model has elsewhere. */
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
  return outputs_plan(&named, plan, err);
}

/* None of the files that exist already is one of the data's or the list of classes. */
static lac_status guard_data(const arguments *args, const outputs *plan, lac_error *err) {
  char data[PATH_MAX], target[PATH_MAX];
  struct stat classes, found;
  bool has_classes = args->classes && stat(args->classes, &classes) == 0;
  if (!realpath(args->data, data)) {
    return laci_fail(err, errno == ENOENT ? LAC_NOT_FOUND : LAC_IO, "%s: %s", args->data,
                     strerror(errno));
  }
  size_t n = strlen(data);
  for (int role = 0; role < OUTPUT_COUNT; role++) {
    const output_file *file = &plan->files[role];
    if (!file->real[0] || stat(file->real, &found) != 0 || !realpath(file->real, target)) continue;
    bool inside = strncmp(target, data, n) == 0 && (n == 1 || target[n] == '/');
    bool list = has_classes && found.st_dev == classes.st_dev && found.st_ino == classes.st_ino;
    if (inside || list) {
      return laci_fail(err, LAC_EXISTS, "%s: it is an input, which is never replaced", file->path);
    }
  }
  return LAC_OK;
}

static lac_status write_json(outputs *plan, const lac_model *model, const lac_eval_result *result,
                             lac_error *err) {
  output_file *file = &plan->files[OUTPUT_JSON];
  char *text = NULL;
  if (!file->path) return LAC_OK;
  lac_status st = lac_eval_json(model, result, &text, err);
  if (!st && plan->uses_stdout) fputs(text, stdout);
  else if (!st) st = laci_file_write(file->path, text, strlen(text), plan->force, err);
  file->placed = !st && !plan->uses_stdout;
  lac_text_free(text);
  return st;
}

static lac_status report(outputs *plan, const lac_model *model, const lac_eval_result *result,
                         lac_error *err) {
  plan->files[OUTPUT_MODEL].placed = plan->files[OUTPUT_MODEL].path != NULL;
  lac_status st = write_json(plan, model, result, err);
  if (!st && !plan->uses_stdout) {
    printf("%" PRId64 " images: top-1 %.2f%%, top-5 %.2f%%, loss %.4f\n", result->images,
           result->top1, result->top5, result->loss);
  }
  if (st && plan->files[OUTPUT_MODEL].placed) (void)remove(plan->files[OUTPUT_MODEL].real);
  return st ? st : outputs_finish(plan, err);
}

exit_code verb_eval(const arguments *args, lac_error *err) {
  lac_eval_options options;
  lac_eval_result result;
  lac_model *model = NULL;
  outputs plan;
  lac_status st = read_options(args, &options, err);
  if (!st) st = plan_outputs(args, &plan, err);
  if (!st) st = guard_data(args, &plan, err);
  if (!st) st = input_model(args->operand, &model, err);
  if (!st) st = outputs_guard(&plan, model, args->operand, err);
  if (!st) st = lac_eval(model, args->data, &options, &result, err);
  if (!st) st = report(&plan, model, &result, err);
  if (!st) {
    story_tell("%.0f images a second", result.images_per_second);
    outputs_tell(&plan);
  }
  lac_model_destroy(model);
  return exit_code_of(st);
}
