/* SPDX-License-Identifier: Apache-2.0
 * `lacuna data`: converts ImageNet's original files to TFRecords, or draws synthetic images for a
 * network. */
#include "lacuna/data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/plural.h"
#include "input.h"
#include "lacuna/model.h"
#include "terminal.h"
#include "verbs.h"

enum { MOST_SHARDS = 99999, MOST_PIXELS = 16384 };

static lac_status read_options(const arguments *args, lac_imagenet_options *options,
                               lac_error *err) {
  *options = lac_imagenet_options_default();
  if (!args->output) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "-o DIR is missing: where the shards go");
  }
  lac_status st = input_check_number("shards", args->shards, 1, MOST_SHARDS, err);
  if (!st) st = input_check_number("val-shards", args->val_shards, 1, MOST_SHARDS, err);
  options->threads = args->threads;
  options->shards = (int)args->shards;
  options->val_shards = (int)args->val_shards;
  options->seed = args->seed;
  options->force = args->force;
  return st;
}

static void print_part_counts(const char *name, const lac_imagenet_part *part) {
  char broken[64] = "";
  if (!part->shards) return;
  if (part->broken) {
    (void)snprintf(broken, sizeof broken, ", %" PRId64 " broken left out", part->broken);
  }
  terminal_print_sentence(stdout, "%s: %" PRId64 " image%s in %d shard%s%s", name, part->images,
                          laci_plural(part->images), part->shards, laci_plural(part->shards),
                          broken);
}

static exit_code convert_imagenet(const arguments *args, lac_error *err) {
  lac_imagenet_options options;
  lac_imagenet_result result = LAC_SIZED(lac_imagenet_result);
  lac_status st = read_options(args, &options, err);
  if (!st) st = lac_imagenet_convert(args->second, args->output, &options, &result, err);
  if (st) return exit_code_of_status(st);
  print_part_counts("train", &result.train);
  print_part_counts("validation", &result.validation);
  if (result.train.broken + result.validation.broken > 0) {
    terminal_print_sentence(stdout, "%s/broken.txt: which were left out, and why", args->output);
  }
  return EXIT_DONE;
}

/* ---- Synthetic images ---- */

static lac_status read_synthetic_options(const arguments *args, lac_synthetic_options *options,
                                         lac_error *err) {
  *options = lac_synthetic_options_default();
  if (!args->output) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "-o FILE.npy is missing: where the images go");
  }
  lac_status st = input_check_number("samples", args->samples, 1, INT32_MAX, err);
  if (!st) st = input_check_number("crop", args->crop, 0, MOST_PIXELS, err);
  if (!st && args->mean) st = input_parse_colour("mean", args->mean, options->mean, err);
  if (!st && args->std) st = input_parse_colour("std", args->std, options->std, err);
  options->samples = (int64_t)args->samples;
  options->crop = (int)args->crop;
  options->seed = args->seed;
  options->threads = args->threads;
  return st;
}

static exit_code draw_synthetic(const arguments *args, lac_error *err) {
  lac_synthetic_options options;
  lac_model *model = NULL;
  lac_status st = read_synthetic_options(args, &options, err);
  if (!st) st = input_load_model(args, args->second, &model, err);
  if (!st && lac_model_reads(model, args->output)) {
    st = laci_fail(err, LAC_EXISTS, "%s: it is an input, which is never replaced", args->output);
  }
  if (!st) st = lac_synthetic_save(model, args->output, &options, args->force, err);
  lac_model_destroy(model);
  if (st) return exit_code_of_status(st);
  terminal_print_sentence(stdout, "%s: %" PRId64 " synthetic image%s", args->output,
                          options.samples, laci_plural(options.samples));
  return EXIT_DONE;
}

exit_code verb_data(const arguments *args, lac_error *err) {
  const bool imagenet = strcmp(args->operand, "imagenet") == 0;
  if (imagenet || strcmp(args->operand, "synthetic") == 0)
    return imagenet ? convert_imagenet(args, err) : draw_synthetic(args, err);
  return exit_code_of_status(laci_fail(err, LAC_BAD_ARGUMENT,
                                       "%s: no data that are known, wanted imagenet or synthetic",
                                       args->operand));
}
