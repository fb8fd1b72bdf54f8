/* SPDX-License-Identifier: Apache-2.0
 * Checks that a training's options are within their limits, before any data are read. */
#include <inttypes.h>
#include <math.h>

#include "api/model/structs.h"
#include "api/train/plan_in.h"
#include "base/error.h"
#include "data/augment.h"

enum { MOST_BATCH = 65536, MOST_BUCKET = 1 << 29 };

static lac_status check_integer(const char *what, int64_t value, int64_t least, int64_t most,
                                lac_error *err) {
  if (value >= least && value <= most) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s %" PRId64 ": wanted %" PRId64 " to %" PRId64, what,
                   value, least, most);
}

/** Checks a number; -1 means the recipe's value. */
static lac_status check_real_or_default(const char *what, double value, double most,
                                        lac_error *err) {
  if (value == -1 || (value >= 0 && value <= most)) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s %g: wanted 0 to %g", what, value, most);
}

lac_status laci_train_check_options(const lac_train_options *o, lac_error *err) {
  lac_status st = laci_check_run_options(&o->run, err);
  if (!st && o->run.tuning != LAC_TUNING_OFF) {
    st = laci_fail(err, LAC_BAD_ARGUMENT, "tuning %d: a training is not tuned", (int)o->run.tuning);
  }
  if (!st) st = check_integer("batch size", o->batch, 0, MOST_BATCH, err);
  if (!st) st = check_integer("accumulated batches", o->accumulate, 1, MOST_BATCH, err);
  if (!st) st = check_integer("steps", o->steps, 0, INT64_MAX / MOST_BATCH, err);
  if (!st) st = check_integer("steps between evaluations", o->eval_steps, 0, INT64_MAX, err);
  if (!st)
    st = check_integer("epochs between evaluations", o->epochs_between_evals, 1, 1000000, err);
  if (!st) st = check_integer("steps a loop", o->steps_per_loop, 1, INT64_MAX, err);
  if (!st) st = check_integer("steps between checkpoints", o->checkpoint_steps, 0, INT64_MAX, err);
  if (!st) st = check_integer("checkpoints to keep", o->keep_checkpoints, 1, 1000000, err);
  if (!st) st = check_integer("display steps", o->display_steps, 1, INT64_MAX, err);
  if (!st) st = check_real_or_default("epochs", o->epochs, 1e6, err);
  if (!st) st = check_real_or_default("rate", o->rate, 1e6, err);
  if (!st) st = check_real_or_default("momentum", o->momentum, nextafter(1, 0), err);
  if (!st) st = check_real_or_default("weight decay", o->weight_decay, 1e6, err);
  if (!st) st = check_real_or_default("warm-up epochs", o->warmup_epochs, 1e6, err);
  if (!st) st = check_real_or_default("label smoothing", o->label_smoothing, 1, err);
  if (!st) st = check_real_or_default("mixup", o->mixup, 1e6, err);
  if (!st) st = check_real_or_default("cutmix", o->cutmix, 1e6, err);
  if (!st) st = check_real_or_default("erasing", o->erasing, 1, err);
  if (!st)
    st = check_integer("policy magnitude", o->policy_magnitude, -1, LACI_POLICY_BINS - 1, err);
  if (!st) st = check_real_or_default("largest norm of gradients", o->clip_norm, 1e9, err);
  if (!st && !(o->ema >= 0 && o->ema < 1)) {
    st = laci_fail(err, LAC_BAD_ARGUMENT, "moving average %g: wanted 0 to less than 1", o->ema);
  }
  if (!st) st = check_real_or_default("decay", o->decay, 1e6, err);
  if (!st) st = check_integer("images to evaluate on", o->eval_limit, 0, INT64_MAX, err);
  if (!st) st = check_real_or_default("stop threshold", o->stop_threshold, 100, err);
  if (!st && o->epochs == 0 && o->steps == 0 && !o->eval_only) {
    st = laci_fail(err, LAC_BAD_ARGUMENT, "0 epochs: wanted more, or to evaluate only");
  }
  if (!st && o->stop_threshold >= 0 && !o->evaluate) {
    st = laci_fail(err, LAC_BAD_ARGUMENT, "a stop threshold without evaluations");
  }
  if (!st && o->keep_best && !o->evaluate) {
    st = laci_fail(err, LAC_BAD_ARGUMENT, "the best evaluated weights without evaluations");
  }
  if (!st && o->wire != LAC_DTYPE_F32 && o->wire != LAC_DTYPE_BF16) {
    st = laci_fail(err, LAC_BAD_ARGUMENT, "gradients sent in %s: wanted f32 or bf16",
                   lac_dtype_name(o->wire));
  }
  if (!st) st = check_integer("bytes of gradients at a time", o->bucket_bytes, 0, MOST_BUCKET, err);
  if (!st) st = check_integer("steps between comparisons", o->paranoid_steps, 0, INT64_MAX, err);
  if (!st && o->n_boundaries > 0 && !o->boundaries) {
    st = laci_fail(err, LAC_BAD_ARGUMENT, "%d boundaries, but there is no array of them",
                   o->n_boundaries);
  }
  if (!st && o->recover && !o->model_dir) {
    st = laci_fail(err, LAC_BAD_ARGUMENT, "recovering: no model dir says where checkpoints are");
  }
  return st;
}
