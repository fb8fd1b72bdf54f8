/* SPDX-License-Identifier: Apache-2.0
 * Implements lacuna/data.h with src/data. */
#include "lacuna/data.h"

#include "api/model/model_in.h"
#include "base/error.h"
#include "data/imagenet.h"

lac_imagenet_options lac_imagenet_options_default(void) {
  return (lac_imagenet_options){.shards = 1024, .val_shards = 128};
}

static lac_imagenet_part part_of(const laci_imagenet_part *part) {
  return (lac_imagenet_part){part->images, part->broken, part->shards, part->kept};
}

lac_status lac_imagenet_convert(const char *raw, const char *folder,
                                const lac_imagenet_options *options, lac_imagenet_result *result,
                                lac_error *err) {
  const lac_imagenet_options usual = lac_imagenet_options_default();
  laci_imagenet_part parts[2] = {{0}};
  if (result) *result = (lac_imagenet_result){0};
  lac_status st = LACI_CHECK_GIVEN(err, {"raw", raw}, {"folder", folder}, {"result", result});
  if (st) return st;
  if (!options) options = &usual;
  st = laci_check_threads(options->threads, err);
  if (st) return st;
  laci_imagenet_options o = {.threads = options->threads,
                             .shards = options->shards,
                             .val_shards = options->val_shards,
                             .seed = options->seed,
                             .force = options->force};
  st = laci_imagenet_convert(raw, folder, &o, parts, err);
  *result = (lac_imagenet_result){part_of(&parts[0]), part_of(&parts[1])};
  return st;
}
