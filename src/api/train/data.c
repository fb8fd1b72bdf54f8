/* SPDX-License-Identifier: Apache-2.0
 * Implements lacuna/data.h with src/data. */
#include "lacuna/data.h"

#include "api/model/structs.h"
#include "base/error.h"
#include "data/imagenet.h"

void lac_imagenet_options_init(lac_imagenet_options *options, size_t size) {
  const lac_imagenet_options usual = {.size = sizeof usual, .shards = 1024, .val_shards = 128};
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

static lac_imagenet_part copy_imagenet_part(const laci_imagenet_part *part) {
  return (lac_imagenet_part){part->images, part->broken, part->shards, part->kept};
}

lac_status lac_imagenet_convert(const char *raw, const char *folder,
                                const lac_imagenet_options *options, lac_imagenet_result *result,
                                lac_error *err) {
  lac_imagenet_options own;
  lac_imagenet_result made = LAC_SIZED(lac_imagenet_result);
  laci_imagenet_part parts[2] = {{0}};
  lac_status st = LACI_CHECK_GIVEN(err, {"raw", raw}, {"folder", folder}, {"result", result});
  if (!st) st = laci_check_struct_imagenet_result(result, err);
  if (st) return st;
  laci_give_imagenet_result(&made, result);
  st = laci_take_imagenet_options(options, &own, err);
  if (!st) st = laci_check_threads(own.threads, err);
  if (st) return st;
  laci_imagenet_options o = {.threads = own.threads,
                             .shards = own.shards,
                             .val_shards = own.val_shards,
                             .seed = own.seed,
                             .force = own.force};
  lac_context *before = laci_call_enter_context(own.context);
  st = laci_imagenet_convert(raw, folder, &o, parts, err);
  laci_call_leave_context(before);
  made.train = copy_imagenet_part(&parts[0]);
  made.validation = copy_imagenet_part(&parts[1]);
  laci_give_imagenet_result(&made, result);
  return st;
}
