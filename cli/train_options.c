/* SPDX-License-Identifier: Apache-2.0
 * Options of train and finetune: checks their limits and which exclude each other, and chooses a
 * recipe if none is named. Next: train.c, which uses them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/nearest.h"
#include "export.h"
#include "input.h"
#include "lacuna/train.h"
#include "run_options.h"
#include "table.h"
#include "train_options.h"

/* ---- Limits ---- */

static lac_status check_integer_options(const arguments *args, lac_error *err) {
  const struct {
    const char *name;
    uint64_t value, least, most;
  } rows[] = {
      {"batch-size", args->given.batch_size ? args->batch_size : 1, 1, 65536},
      {"accumulate", args->accumulate, 1, 65536},
      {"resize", args->resize, 0, 16384},
      {"crop", args->crop, 0, 16384},
      {"policy-magnitude", args->given.policy_magnitude ? args->policy_magnitude : 0, 0, 30},
      {"steps", args->given.steps ? args->steps : 1, 1, 1000000000000},
      {"eval-limit", args->given.eval_limit ? args->eval_limit : 1, 1, INT64_MAX},
      {"eval-steps", args->given.eval_steps ? args->eval_steps : 1, 1, INT64_MAX},
      {"epochs-between-evals", args->epochs_between_evals, 1, 1000000},
      {"steps-per-loop", args->steps_per_loop, 1, INT64_MAX},
      {"display-steps", args->display_steps, 1, INT64_MAX},
      {"checkpoint-steps", args->given.checkpoint_steps ? args->checkpoint_steps : 1, 1, INT64_MAX},
      {"keep-checkpoints", args->keep_checkpoints, 1, 1000000},
      {"bucket", args->given.bucket ? args->bucket : 1, 1, 512 << 20},
      {"paranoid", args->given.paranoid ? args->paranoid : 1, 1, INT64_MAX},
  };
  lac_status st = LAC_OK;
  for (size_t k = 0; !st && k < sizeof rows / sizeof rows[0]; k++) {
    st = input_check_number(rows[k].name, rows[k].value, rows[k].least, rows[k].most, err);
  }
  return st;
}

static lac_status check_real_in_limits(const char *name, double value, double least, double most,
                                       lac_error *err) {
  if (value >= least && value <= most) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "--%s %g: wanted a number from %g to %g", name, value,
                   least, most);
}

static lac_status check_real_options(const arguments *args, lac_error *err) {
  if (args->given.epochs && !(args->epochs > 0)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--epochs 0: wanted more than 0");
  }
  lac_status st = check_real_in_limits("epochs", args->epochs, 0, 1e6, err);
  if (!st) st = check_real_in_limits("lr", args->lr, 0, 1e6, err);
  if (!st) st = check_real_in_limits("momentum", args->momentum, 0, 0.999999, err);
  if (!st) st = check_real_in_limits("weight-decay", args->weight_decay, 0, 1e6, err);
  if (!st) st = check_real_in_limits("label-smoothing", args->label_smoothing, 0, 1, err);
  if (!st) st = check_real_in_limits("mixup", args->mixup, 0, 1e6, err);
  if (!st) st = check_real_in_limits("cutmix", args->cutmix, 0, 1e6, err);
  if (!st) st = check_real_in_limits("erasing", args->erasing, 0, 1, err);
  if (!st) st = check_real_in_limits("clip-norm", args->clip_norm, 0, 1e9, err);
  if (!st && !(args->ema < 1)) {
    st = laci_fail(err, LAC_BAD_ARGUMENT, "--ema %g: wanted 0 to less than 1, such as 0.9999",
                   args->ema);
  }
  if (!st) st = check_real_in_limits("decay", args->decay, 0, 1e6, err);
  if (!st) st = check_real_in_limits("warmup-epochs", args->warmup_epochs, 0, 1e6, err);
  if (!st) st = check_real_in_limits("stop-threshold", args->stop_threshold, 0, 100, err);
  return st;
}

static bool is_sparse_training(const arguments *args) {
  return args->given.sparse ? args->sparse : args->verb == VERB_finetune;
}

/* Checks the option that says what is done with unpruned layers of a network that has pruned ones.
 */
static lac_status check_unpruned_layers(const arguments *args, lac_error *err) {
  bool keep_given = args->given.keep_masks, rest_given = args->given.prune_rest;
  if (keep_given && rest_given && args->keep_masks == args->prune_rest) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--keep-masks and --prune-rest: one of them");
  }
  const char *idle = keep_given      ? "keep-masks"
                     : rest_given    ? "prune-rest"
                     : args->include ? "include"
                     : args->exclude ? "exclude"
                                     : NULL;
  if (is_sparse_training(args) || !idle) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "--%s without --sparse: all weights are trained", idle);
}

/* ---- Options that exclude each other ---- */

static lac_status check_exclusive_options(const arguments *args, lac_error *err) {
  const char *text = NULL;
  if (!args->data) text = "--data DIR is missing: the images";
  else if (!args->output && !args->export_dir && !args->eval_only)
    text = "-o FILE or --export-dir DIR is missing: where the result goes";
  else if (args->eval_only && args->output) text = "--eval-only with -o: nothing is written";
  else if (args->eval_only && args->export_dir && !export_is_from_existing_model(args))
    text = "--eval-only with --export-dir: nothing is written";
  else if (args->eval_only && args->plot) text = "--eval-only with --plot: nothing is written";
  else if (args->eval_only && args->trace) text = "--eval-only with --trace: no step is taken";
  else if (args->given.epochs && args->given.steps) text = "--epochs and --steps: one of them";
  else if (args->given.stop_threshold && !args->eval) text = "--stop-threshold with --no-eval";
  else if (args->keep_best && !args->eval) text = "--keep-best with --no-eval";
  else if (args->recover && !args->model_dir) text = "--recover without --model-dir DIR";
  else if (args->given.checkpoint_steps && !args->model_dir)
    text = "--checkpoint-steps without --model-dir DIR: where checkpoints go";
  else if (args->given.keep_checkpoints && !args->model_dir)
    text = "--keep-checkpoints without --model-dir DIR: where checkpoints go";
  else if (args->pretrained && export_is_from_existing_model(args))
    text =
        "--pretrained with --sparse and --export-dir, which begin with DIR/model.onnx: one of them";
  else if (args->verb == VERB_train && args->eval_only && !args->recover && !args->pretrained)
    text = "--eval-only of fresh weights: --recover and --model-dir say which are meant";
  return text ? laci_fail(err, LAC_BAD_ARGUMENT, "%s", text) : check_unpruned_layers(args, err);
}

/* ---- Conversion to the library's options ---- */

/* Parses a list of epochs such as "30,60,80". */
static lac_status copy_stage_epochs(const char *text, train_options *to, lac_error *err) {
  lac_train_options *o = &to->training;
  o->boundaries = to->boundaries;
  for (const char *at = text; at; o->n_boundaries++) {
    char *end;
    double epoch = strtod(at, &end);
    bool is_number = end != at && (*end == ',' || !*end) && epoch > 0;
    if (!is_number || o->n_boundaries == TRAIN_MOST_BOUNDARIES) {
      return laci_fail(err, LAC_BAD_ARGUMENT,
                       "--boundaries %s: wanted up to %d ascending epochs, such as 30,60,80", text,
                       (int)TRAIN_MOST_BOUNDARIES);
    }
    to->boundaries[o->n_boundaries] = epoch;
    at = *end ? end + 1 : NULL;
  }
  return LAC_OK;
}

static void copy_recipe_options(const arguments *args, lac_train_options *o) {
  o->recipe = args->recipe;
  o->optimizer = args->optimizer;
  o->schedule = args->schedule;
  if (args->given.batch_size) o->batch = (int)args->batch_size;
  o->accumulate = (int)args->accumulate;
  if (args->given.epochs) o->epochs = args->epochs;
  if (args->given.steps) o->steps = (int64_t)args->steps;
  if (args->given.lr) o->rate = args->lr;
  if (args->given.momentum) o->momentum = args->momentum;
  if (args->given.weight_decay) o->weight_decay = args->weight_decay;
  if (args->given.nesterov) o->nesterov = args->nesterov;
  if (args->given.label_smoothing) o->label_smoothing = args->label_smoothing;
  if (args->given.mixup) o->mixup = args->mixup;
  if (args->given.cutmix) o->cutmix = args->cutmix;
  if (args->given.erasing) o->erasing = args->erasing;
  o->policy = args->policy;
  if (args->given.policy_magnitude) o->policy_magnitude = (int)args->policy_magnitude;
  if (args->given.clip_norm) o->clip_norm = args->clip_norm;
  if (args->given.decay) o->decay = args->decay;
  if (args->given.warmup_epochs) o->warmup_epochs = args->warmup_epochs;
  o->decay_all = args->decay_all;
  o->augment = args->augment;
  o->shuffle = args->shuffle;
}

/* Returns the threshold in percent: values up to 1 are fractions (0.76 means 76 %), since nobody
 * stops at less than one percent. */
static double threshold_in_percent(double threshold) {
  return threshold <= 1 ? 100 * threshold : threshold;
}

static void copy_loop_options(const arguments *args, lac_train_options *o) {
  o->evaluate = args->eval;
  o->eval_only = args->eval_only;
  if (args->given.eval_limit) o->eval_limit = (int64_t)args->eval_limit;
  if (args->given.eval_steps) o->eval_steps = (int64_t)args->eval_steps;
  o->epochs_between_evals = (int64_t)args->epochs_between_evals;
  o->steps_per_loop = (int64_t)args->steps_per_loop;
  if (args->given.stop_threshold) o->stop_threshold = threshold_in_percent(args->stop_threshold);
  o->ema = args->ema;
  o->keep_best = args->keep_best;
  o->model_dir = args->model_dir;
  if (args->given.checkpoint_steps) o->checkpoint_steps = (int64_t)args->checkpoint_steps;
  o->keep_checkpoints = (int)args->keep_checkpoints;
  o->recover = args->recover;
  o->force = args->force;
  o->display_steps = (int64_t)args->display_steps;
}

/* Chooses the recipe if none is named, as the verbs' descriptions say. */
static void choose_recipe(const arguments *args, const char *arch, lac_train_options *o) {
  if (o->recipe) return;
  if (args->verb == VERB_train) {
    o->recipe = lac_network_recipe(arch);
    return;
  }
  const lac_train_options usual = lac_finetune_training_default();
  o->recipe = usual.recipe;
  if (!args->given.epochs) o->epochs = usual.epochs;
  if (!args->given.lr && !args->given.optimizer) o->rate = usual.rate;
}

/* ---- The network ---- */

static lac_status find_architecture(const arguments *args, char arch[TRAIN_ARCH_BYTES],
                                    lac_error *err) {
  arch[0] = 0;
  if (args->verb != VERB_train) return LAC_OK;
  if (args->arch && args->given.resnet_size) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--arch and --resnet-size: one of them");
  }
  if (args->arch && args->resnext) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--arch and --resnext: one of them");
  }
  if (args->given.resnet_size || args->resnext) {
    uint64_t size = args->given.resnet_size ? args->resnet_size : 101;
    (void)snprintf(arch, TRAIN_ARCH_BYTES,
                   args->resnext ? "resnext%" PRIu64 "_32x4d" : "resnet%" PRIu64, size);
  } else if (args->arch) {
    (void)snprintf(arch, TRAIN_ARCH_BYTES, "%s", args->arch);
  } else {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--arch NAME is missing: the network to train");
  }
  int n;
  const char *const *names = lac_network_names(&n);
  for (int k = 0; k < n; k++) {
    if (strcmp(names[k], arch) == 0) return LAC_OK;
  }
  const char *nearest = laci_find_nearest_text(arch, 0, names, n);
  return laci_fail(err, LAC_BAD_ARGUMENT, "--arch %s: unknown network%s%s%s", arch,
                   nearest ? ", did you mean " : "", nearest ? nearest : "",
                   nearest ? "?" : " (see lacuna help train)");
}

/* ---- Reading all options ---- */

static lac_status copy_pruning_options(const arguments *args, train_options *options,
                                       lac_error *err) {
  lac_finetune_options *o = &options->library;
  *o = lac_finetune_options_default();
  o->training = &options->training;
  o->pruning = &options->pruning;
  o->sparse = is_sparse_training(args);
  o->prune_rest = args->given.keep_masks ? !args->keep_masks : args->prune_rest;
  o->replay = !args->plot; /* the drawing shows the search's results, so the search is done again */
  o->must_mask = export_is_from_existing_model(args);
  return input_read_prune_options(args, &options->pruning, err);
}

static lac_status copy_image_options(const arguments *args, lac_train_options *o, lac_error *err) {
  o->format = args->format;
  o->resize = (int)args->resize;
  o->crop = (int)args->crop;
  o->classes = args->classes;
  lac_status st = args->mean ? input_parse_colour("mean", args->mean, o->mean, err) : LAC_OK;
  if (!st && args->std) st = input_parse_colour("std", args->std, o->std, err);
  return st;
}

static void copy_engine_options(const arguments *args, lac_train_options *o) {
  o->run = run_options_from_arguments(args);
  o->group = args->group;
  o->remat = args->remat;
  o->wire = strcmp(args->wire, "bf16") == 0 ? LAC_DTYPE_BF16 : LAC_DTYPE_F32;
  o->trace = args->trace != NULL;
  if (args->given.bucket) o->bucket_bytes = (int64_t)args->bucket;
  if (args->given.paranoid) o->paranoid_steps = (int64_t)args->paranoid;
  o->seed = args->seed;
}

lac_status train_options_read(const arguments *args, train_options *options, lac_error *err) {
  lac_train_options *o = &options->training;
  *o = lac_train_options_default();
  lac_status st = args->print && !args->arch ? LAC_OK : find_architecture(args, options->arch, err);
  if (!st && !args->print) st = check_exclusive_options(args, err);
  if (!st) st = check_integer_options(args, err);
  if (!st) st = check_real_options(args, err);
  if (!st) st = copy_pruning_options(args, options, err);
  if (!st) st = copy_image_options(args, o, err);
  if (!st && args->boundaries) st = copy_stage_epochs(args->boundaries, options, err);
  if (st) return st;
  copy_engine_options(args, o);
  copy_recipe_options(args, o);
  copy_loop_options(args, o);
  choose_recipe(args, options->arch, o);
  return LAC_OK;
}

/* Prints the sizes of a training with these data. It prints no time, which depends on the machine,
 * the network's plan and the data's format and cannot be predicted without running a few steps. */
static lac_status print_training_size(const lac_train_options *o, const char *data, FILE *out,
                                      lac_error *err) {
  lac_train_size size = LAC_SIZED(lac_train_size);
  text_table table = {0};
  lac_status st = lac_train_size_find(data, o, &size, err);
  if (st) return st;
  table_begin(&table, "this run|value");
  table_add_cell(&table, "images");
  table_add_cell(&table, "%" PRId64 " for training, %d classes", size.images, size.classes);
  table_add_cell(&table, "a step");
  table_add_cell(&table, "%" PRId64 " images", size.step_images);
  table_add_cell(&table, "steps");
  table_add_cell(&table, "%" PRId64 ", %" PRId64 " an epoch", size.steps, size.steps_per_epoch);
  table_add_cell(&table, "warm-up");
  table_add_cell(&table, "%" PRId64 " steps", size.warmup_steps);
  table_add_cell(&table, "rate");
  table_add_cell(&table, "%g after the warm-up", size.rate);
  table_add_cell(&table, "seconds");
  table_add_cell(
      &table,
      "%" PRId64
      " images, divided by the images/s that the same command with --steps 20 --no-eval prints",
      size.steps * size.step_images);
  fprintf(out, "\n");
  st = table_print(&table, out, err);
  table_clear(&table);
  return st;
}

lac_status train_options_print_recipe(const train_options *options, const char *data, FILE *out,
                                      lac_error *err) {
  const lac_train_options *o = &options->training;
  lac_train_setting rows[LAC_TRAIN_MOST_SETTINGS];
  int n;
  lac_status st = lac_train_settings(o, rows, &n, err);
  if (st) return st;
  text_table table = {0};
  table_begin(&table, "setting|value|from");
  for (int k = 0; k < n; k++) {
    table_add_cell(&table, "%s", rows[k].name);
    table_add_cell(&table, "%s", rows[k].value);
    table_add_cell(&table, "%s", rows[k].from ? rows[k].from : "an option");
  }
  fprintf(out, "recipe %s\n\n", o->recipe);
  st = table_print(&table, out, err);
  table_clear(&table);
  /* the recipe is printed even if the data folder does not exist */
  const bool there = data && access(data, F_OK) == 0;
  return st || !there ? st : print_training_size(o, data, out, err);
}
