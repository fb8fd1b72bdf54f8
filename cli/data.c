/* SPDX-License-Identifier: Apache-2.0
 * `lacuna data imagenet`: converts ImageNet's original files to TFRecords. */
#include "lacuna/data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/plural.h"
#include "input.h"
#include "terminal.h"
#include "verbs.h"

enum { MOST_SHARDS = 99999 };

static lac_status read_options(const arguments *args, lac_imagenet_options *options,
                               lac_error *err) {
  *options = lac_imagenet_options_default();
  if (strcmp(args->operand, "imagenet") != 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: no data that are known, wanted imagenet",
                     args->operand);
  }
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

static void print_part(const char *name, const lac_imagenet_part *part) {
  char broken[64] = "";
  if (!part->shards) return;
  if (part->broken) {
    (void)snprintf(broken, sizeof broken, ", %" PRId64 " broken left out", part->broken);
  }
  terminal_print_sentence(stdout, "%s: %" PRId64 " image%s in %d shard%s%s", name, part->images,
                          laci_plural(part->images), part->shards, laci_plural(part->shards),
                          broken);
}

exit_code verb_data(const arguments *args, lac_error *err) {
  lac_imagenet_options options;
  lac_imagenet_result result = LAC_SIZED(lac_imagenet_result);
  lac_status st = read_options(args, &options, err);
  if (!st) st = lac_imagenet_convert(args->second, args->output, &options, &result, err);
  if (st) return exit_code_of_status(st);
  print_part("train", &result.train);
  print_part("validation", &result.validation);
  if (result.train.broken + result.validation.broken > 0) {
    terminal_print_sentence(stdout, "%s/broken.txt: which were left out, and why", args->output);
  }
  return EXIT_DONE;
}
