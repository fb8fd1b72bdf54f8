/* SPDX-License-Identifier: Apache-2.0
 * Trainings that another program starts with its options: the two scripts of a model runner
 * (resnet_estimator, resnet_keras), and demo_resnet_hvd, which reads environment variables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "like_items.h"
#include "like_scripts.h"

/* ---- What both scripts of the model runner share ---- */

static lac_status set_dtype_option(like *l, lac_error *err) {
  static const char *const types[] = {"fp32", "f32", "float32", "bf16", NULL};
  const char *type = script_find_value(l, "dtype", NULL);
  if (!type) return LAC_OK;
  if (!script_is_in_list(type, types)) return script_fail_value(l, "dtype", "fp32 or bf16", err);
  return strcmp(type, "float32") == 0 ? script_set_option(l, "dtype", "fp32", "--dtype", err)
                                      : LAC_OK;
}

/* Sets the folders of the network and of the checkpoints: both are model_dir. keeps: checkpoints
 * are written. */
static lac_status set_checkpoint_and_export_folders(like *l, bool keeps, lac_error *err) {
  const like_item *given = script_find_item(l, "*model-dir");
  const like_item folder = given ? *given : (like_item){.value = "run"};
  lac_status st = LAC_OK;
  if (!script_is_option_given(l, "output") && !script_is_option_given(l, "export-dir"))
    st = script_set_option(l, "export-dir", folder.value, folder.typed, err);
  if (!st && keeps && !script_is_option_given(l, "model-dir"))
    st = script_set_option(l, "model-dir", folder.value, folder.typed, err);
  return st;
}

/* Translates --clean: an earlier run in the folder is removed. */
static lac_status set_force_if_clean(like *l, lac_error *err) {
  return script_find_item(l, "*clean") ? script_set_default(l, "force", NULL, err) : LAC_OK;
}

/* ---- resnet_estimator ---- */

/* Translates export_dir, if it is a folder. If it is a boolean, the network goes to the folder of
 * checkpoints. */
static lac_status set_export_folder(like *l, lac_error *err) {
  static const char *const words[] = {"True", "true", "1", "False", "false", "0", NULL};
  const like_item *given = script_find_item(l, "*export");
  if (!given || script_is_in_list(given->value, words)) return LAC_OK;
  return script_set_option(l, "export-dir", given->value, given->typed, err);
}

static lac_status check_resnet_version(like *l, lac_error *err) {
  const char *version = script_find_value(l, "*version", "1");
  if (strcmp(version, "1") == 0) return LAC_OK;
  return script_fail_value(l, "*version", "1, whose networks are those of --resnet_size", err);
}

lac_status script_complete_resnet_estimator(like *l, lac_error *err) {
  const bool lars = script_find_item(l, "*lars");
  lac_status st = set_dtype_option(l, err);
  if (!st) st = check_resnet_version(l, err);
  if (!st && !script_is_option_given(l, "arch")) st = script_set_architecture(l, false, err);
  if (!st && (lars || l->verb == VERB_train))
    st = script_set_default(l, "recipe", lars ? "resnet-lars" : "resnet-sgd", err);
  if (!st && script_find_item(l, "*cold")) st = script_set_default(l, "warmup-epochs", "0", err);
  if (!st && !script_is_option_given(l, "steps")) st = script_set_default(l, "epochs", "1", err);
  if (!st) st = set_force_if_clean(l, err);
  if (!st) st = set_export_folder(l, err);
  return st ? st : set_checkpoint_and_export_folders(l, true, err);
}

/* ---- resnet_keras ---- */

/* Sets the number of steps from train_steps, which limits the steps of one epoch: the run has
 * `epochs` times as many. */
static lac_status set_training_steps(like *l, lac_error *err) {
  uint64_t steps;
  const like_item *item = script_find_item(l, "*train-steps");
  if (!item || script_has_own_option(l, "steps")) return LAC_OK;
  const char *typed = item->typed, *text;
  const double epochs = strtod(script_find_value(l, "epochs", "1"), NULL);
  lac_status st = script_read_count(l, "*train-steps", &steps, err);
  if (st) return st;
  st = script_format_text(l, &text, err, "%.0f", (double)steps * (epochs > 1 ? epochs : 1));
  if (!st) st = script_set_option(l, "steps", text, typed, err);
  script_remove_item(l, "epochs");
  return st;
}

/* Sets the recipe that belongs to the optimizer, and the schedule if it differs from the recipe's.
 */
static lac_status set_recipe_and_schedule(like *l, lac_error *err) {
  const char *optimizer = script_find_value(l, "*optimizer", "SGD");
  const bool lars = strcmp(optimizer, "LARS") == 0;
  const char *schedule = script_find_value(l, "*schedule", lars ? "polynomial" : "piecewise");
  lac_status st = LAC_OK;
  if (!lars && strcmp(optimizer, "SGD") != 0)
    return script_fail_value(l, "*optimizer", "SGD or LARS", err);
  static const char *const schedules[] = {"piecewise", "polynomial", "constant", NULL};
  if (!script_is_in_list(schedule, schedules))
    return script_fail_value(l, "*schedule", "piecewise, polynomial or constant", err);
  if (lars || l->verb == VERB_train)
    st = script_set_default(l, "recipe", lars ? "resnet-lars" : "resnet-sgd", err);
  if (st || strcmp(schedule, lars ? "polynomial" : "piecewise") == 0) return st;
  return strcmp(schedule, "piecewise") == 0 ? script_set_default(l, "boundaries", "30,60,80", err)
                                            : script_set_default(l, "schedule", schedule, err);
}

/* Sets the learning rate from base_learning_rate. The polynomial schedule takes it as it is; the
 * constant one scales it from a batch of 256 to the batch size; the piecewise one ignores it. */
static lac_status set_learning_rate(like *l, lac_error *err) {
  const like_item *item = script_find_item(l, "*rate");
  if (!item) return LAC_OK;
  const char *typed = item->typed, *value = item->value, *text;
  const bool lars = strcmp(script_find_value(l, "*optimizer", "SGD"), "LARS") == 0;
  const char *schedule = script_find_value(l, "*schedule", lars ? "polynomial" : "piecewise");
  if (strcmp(schedule, "piecewise") == 0)
    return script_add_note(l, typed, "the piecewise schedule has a rate of its own", err);
  if (strcmp(schedule, "polynomial") == 0) return script_set_option(l, "lr", value, typed, err);
  char *end;
  const double rate = strtod(value, &end);
  if (end == value || *end) return script_fail_value(l, "*rate", "a number", err);
  const double batch = strtod(script_find_value(l, "batch-size", "128"), NULL);
  lac_status st = script_format_text(l, &text, err, "%g", rate * batch / 256);
  return st ? st : script_set_option(l, "lr", text, typed, err);
}

lac_status script_complete_resnet_keras(like *l, lac_error *err) {
  const bool keeps = script_find_item(l, "*checkpoint") || script_find_item(l, "*events") ||
                     script_is_option_given(l, "recover");
  lac_status st = set_dtype_option(l, err);
  if (!st && !script_is_option_given(l, "arch")) st = script_set_architecture(l, false, err);
  if (!st) st = set_recipe_and_schedule(l, err);
  if (!st) st = set_learning_rate(l, err);
  if (!st) st = set_training_steps(l, err);
  if (!st && !script_is_option_given(l, "steps")) st = script_set_default(l, "epochs", "1", err);
  if (!st) st = set_force_if_clean(l, err);
  return st ? st : set_checkpoint_and_export_folders(l, keeps, err);
}

/* ---- demo_resnet_hvd ---- */

/* Sets an option to the value of an environment variable; if that is unset or empty, to `usual`,
 * unless that is NULL. */
static lac_status set_option_from_variable(like *l, const char *option, const char *value,
                                           const char *usual, lac_error *err) {
  const char *text = value && value[0] ? value : usual;
  return text ? script_set_default(l, option, text, err) : LAC_OK;
}

static bool is_true_value(const char *value, bool usual) {
  return value && value[0] ? strcmp(value, "1") == 0 || strcmp(value, "true") == 0 : usual;
}

lac_status script_complete_demo_resnet_hvd(like *l, lac_error *err) {
  const bool resnext = script_find_item(l, "*resnext");
  const char *size = getenv("RESNET_SIZE"), *steps = getenv("TRAIN_STEPS");
  const char *workers = getenv("NUM_WORKERS_PER_HLS"), *data = getenv("IMAGENET_DIR"), *note;
  const bool lars = is_true_value(getenv("USE_LARS_OPTIMIZER"), !resnext);
  const bool has_steps = steps && steps[0] && strcmp(steps, "-1") != 0;
  const char *usual = resnext ? "101" : "50";
  lac_status st = LAC_OK;
  if (!data && !script_is_option_given(l, "data") && !script_is_only_printed(l))
    st = laci_fail(err, LAC_BAD_ARGUMENT, "IMAGENET_DIR is not set: the folder of images");
  if (!st && size && size[0]) st = script_set_option(l, "*size", size, "RESNET_SIZE", err);
  if (!st && !script_is_option_given(l, "arch")) st = script_set_architecture(l, resnext, err);
  if (!st && (lars || l->verb == VERB_train))
    st = script_set_default(l, "recipe",
                            lars      ? "resnet-lars"
                            : resnext ? "resnext"
                                      : "resnet-sgd",
                            err);
  if (!st) st = set_option_from_variable(l, "data", data, NULL, err);
  if (!st) st = script_set_default(l, "dtype", "bf16", err);
  if (!st) st = set_option_from_variable(l, "batch-size", getenv("BATCH_SIZE"), "256", err);
  if (!st && has_steps) st = script_set_default(l, "steps", steps, err);
  if (!st && !script_is_option_given(l, "steps"))
    st = set_option_from_variable(l, "epochs", getenv("TRAIN_EPOCHS"), "40", err);
  if (!st) st = script_set_default(l, "display-steps", "100", err);
  if (!st) st = script_set_default(l, "checkpoint-steps", "5005", err);
  if (!st) st = set_option_from_variable(l, "epochs-between-evals", workers, "8", err);
  if (!st) st = set_option_from_variable(l, "stop-threshold", getenv("STOP_THRESHOLD"), NULL, err);
  if (!st && is_true_value(getenv("NO_EVAL"), false))
    st = script_set_default(l, "no-eval", NULL, err);
  if (!st)
    st = script_format_text(l, &note, err, "%s%s", resnext ? "resnext" : "resnet",
                            size && size[0] ? size : usual);
  if (!st) st = script_set_default(l, "model-dir", note, err);
  if (!st && !script_is_option_given(l, "output"))
    st = script_set_default(l, "export-dir", note, err);
  if (!st)
    st = script_format_text(l, &note, err, "mpirun -np %s before this command starts as many",
                            workers && workers[0] ? workers : "8");
  return st ? st : script_add_note(l, "NUM_WORKERS_PER_HLS", note, err);
}
