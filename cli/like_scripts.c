/* SPDX-License-Identifier: Apache-2.0
 * The list of scripts, and one function for each; demo_resnet and demo_keras_resnet share one.
 * A script's default is used only if neither the script's option nor the equivalent option of this
 * command was given. docs/how-to/from-reference-scripts.md documents this for users. */
#include "like_scripts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/folder.h"
#include "like_items.h"
#include "runs/run_folder.h"

/* ---- demo_resnet, demo_keras_resnet ---- */

/* Translates -l N: the evaluation uses N batches. */
static lac_status set_eval_limit(like *l, lac_error *err) {
  uint64_t batch, batches;
  const like_item *item = script_find_item(l, "*eval-batches");
  if (!item) return LAC_OK;
  const char *typed = item->typed, *images;
  lac_status st = script_read_count(l, "*eval-batches", &batches, err);
  if (!st) st = script_read_count(l, "batch-size", &batch, err);
  if (!st)
    st = script_format_text(l, &images, err, "%" PRIu64, batches * (batch < 65536 ? batch : 65536));
  return st ? st : script_set_option(l, "eval-limit", images, typed, err);
}

static lac_status set_demo_dtype(like *l, lac_error *err) {
  static const char *const types[] = {"fp32", "bf16", NULL};
  const char *type = script_find_value(l, "dtype", NULL);
  if (!type && !script_is_only_printed(l)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "-d is missing: -d fp32 or -d bf16");
  }
  if (type && !script_is_in_list(type, types))
    return script_fail_value(l, "dtype", "fp32 or bf16", err);
  bool bf16 = type && strcmp(type, "bf16") == 0;
  return script_set_default(l, "batch-size", bf16 ? "256" : "128", err);
}

/* Sets the length of the training: the steps of -s, or else the epochs of -e, by default one. */
static lac_status set_training_length(like *l, lac_error *err) {
  const like_item *epochs = script_find_item(l, "epochs");
  if (!script_is_option_given(l, "steps")) return script_set_default(l, "epochs", "1", err);
  if (!epochs) return LAC_OK;
  lac_status st = script_add_note(l, epochs->typed, "the number of steps counts", err);
  script_remove_item(l, "epochs");
  return st;
}

/* Sets one folder for checkpoints and network; by default the current folder. */
static lac_status set_demo_folder(like *l, bool keeps, lac_error *err) {
  const char *usual = script_find_value(l, "arch", "run"), *note;
  const like_item *given = script_find_item(l, "model-dir");
  like_item folder = given ? *given : (like_item){.value = usual};
  lac_status st = LAC_OK;
  if (!script_is_option_given(l, "output") && !script_is_option_given(l, "export-dir")) {
    st = script_set_option(l, "export-dir", folder.value, folder.typed, err);
    if (!st)
      st = script_format_text(l, &note, err, "the network will be %s/model.onnx", folder.value);
    if (!st) st = script_add_note(l, folder.typed ? folder.typed : "no -m", note, err);
  }
  if (!keeps) script_remove_item(l, "model-dir");
  else if (!st) st = script_set_option(l, "model-dir", folder.value, folder.typed, err);
  return st;
}

static lac_status complete_demo_options(like *l, bool keeps, lac_error *err) {
  bool resnext = script_find_item(l, "*resnext"), lars = script_find_item(l, "*lars");
  lac_status st = set_demo_dtype(l, err);
  if (!st) st = script_set_architecture(l, resnext, err);
  if (!st && (lars || l->verb == VERB_train)) {
    st = script_set_default(l, "recipe",
                            lars      ? "resnet-lars"
                            : resnext ? "resnext"
                                      : "resnet-sgd",
                            err);
  }
  if (!st) st = set_training_length(l, err);
  if (!st) st = set_eval_limit(l, err);
  if (!st) st = script_set_default(l, "data", "/software/data/tf/data/imagenet/tf_records/", err);
  return st ? st : set_demo_folder(l, keeps, err);
}

static lac_status complete_demo_resnet(like *l, lac_error *err) {
  return complete_demo_options(l, true, err);
}

static lac_status complete_demo_keras_resnet(like *l, lac_error *err) {
  return complete_demo_options(
      l, script_find_item(l, "*checkpoint") || script_is_option_given(l, "recover"), err);
}

/* ---- resnet_ctl ---- */

/* Translates the script's option for the precision. */
static lac_status set_dtype_from_precision(like *l, lac_error *err) {
  static const char *const full[] = {"fp32", "tf32", NULL}, *const half[] = {"fp16", "amp", NULL};
  const char *precision = script_find_value(l, "*precision", NULL);
  if (!precision) return LAC_OK;
  const char *typed = script_find_item(l, "*precision")->typed;
  if (script_is_in_list(precision, full)) return script_set_option(l, "dtype", "fp32", typed, err);
  if (strcmp(precision, "bf16") == 0) return script_set_option(l, "dtype", "bf16", typed, err);
  if (!script_is_in_list(precision, half))
    return script_fail_value(l, "*precision", "fp32, amp, fp16 or bf16", err);
  lac_status st =
      script_add_note(l, typed, "half precision is bf16 here, which needs no scaled loss", err);
  return st ? st : script_set_option(l, "dtype", "bf16", typed, err);
}

static lac_status set_epochs_or_steps(like *l, lac_error *err) {
  const char *unit = script_find_value(l, "*unit", "epoch"),
             *n = script_find_value(l, "*iterations", "90");
  const like_item *given = script_find_item(l, "*iterations");
  const char *typed = given ? given->typed : NULL;
  if (strcmp(unit, "batch") == 0) return script_set_option(l, "steps", n, typed, err);
  if (strcmp(unit, "epoch") != 0) return script_fail_value(l, "*unit", "epoch or batch", err);
  if (script_is_option_given(l, "steps") && !given) return LAC_OK;
  return given ? script_set_option(l, "epochs", n, typed, err)
               : script_set_default(l, "epochs", n, err);
}

static lac_status complete_resnet_ctl(like *l, lac_error *err) {
  bool is_placed = script_is_option_given(l, "export-dir") || script_is_option_given(l, "output") ||
                   script_is_only_printed(l);
  bool has_data = script_is_option_given(l, "data") || script_is_only_printed(l);
  if (!has_data) return laci_fail(err, LAC_BAD_ARGUMENT, "--data_dir DIR is missing: the images");
  if (!is_placed) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--export_dir DIR is missing: where the network goes");
  }
  lac_status st = script_set_architecture(l, false, err);
  if (!st) st = set_dtype_from_precision(l, err);
  if (!st) st = set_epochs_or_steps(l, err);
  return st ? st : script_set_default(l, "display-steps", "10", err);
}

/* ---- resnet_training_main ---- */

/* Sets the script's schedule: the rate is divided by ten every 30 epochs. */
static lac_status set_rate_stages(like *l, lac_error *err) {
  double epochs = strtod(script_find_value(l, "epochs", "90"), NULL);
  char text[64] = "";
  size_t used = 0;
  if (script_is_option_given(l, "boundaries") || script_is_option_given(l, "schedule"))
    return LAC_OK;
  if (!(epochs > 30)) return script_set_default(l, "schedule", "constant", err);
  for (int at = 30; at < epochs && at <= 240; at += 30) {
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", at > 30 ? "," : "", at);
  }
  const char *kept;
  lac_status st = script_format_text(l, &kept, err, "%s", text);
  return st ? st : script_set_default(l, "boundaries", kept, err);
}

/* Translates --pretrained. The script also accepts "true" here, which is not a file. */
static lac_status set_pretrained(like *l, lac_error *err) {
  const like_item *item = script_find_item(l, "*pretrained");
  if (!item || (item->value && strcmp(item->value, "false") == 0)) return LAC_OK;
  if (item->value && strchr(item->value, '.')) {
    return script_set_option(l, "pretrained", item->value, item->typed, err);
  }
  return laci_fail(err, LAC_BAD_ARGUMENT,
                   "%s: nothing is downloaded: wanted %s FILE.safetensors or FILE.onnx",
                   item->typed, item->typed);
}

/* Translates --ONNX: the output is the file given, or else is named after the network. */
static lac_status set_onnx_output(like *l, lac_error *err) {
  const like_item *item = script_find_item(l, "*onnx");
  const char *name = item ? item->value : NULL, *typed = item ? item->typed : NULL;
  if (script_is_option_given(l, "output") || script_is_option_given(l, "export-dir")) return LAC_OK;
  if (name) return script_set_option(l, "output", name, typed, err);
  lac_status st =
      script_format_text(l, &name, err, "%s.onnx", script_find_value(l, "arch", "model"));
  return st ? st : script_set_option(l, "output", name, typed, err);
}

static lac_status set_resume_and_evaluate(like *l, lac_error *err) {
  const like_item *resume = script_find_item(l, "*resume"), *evaluate;
  lac_status st = LAC_OK;
  if (resume) {
    const char *folder = resume->value, *typed = resume->typed;
    if (!script_is_only_printed(l) && !laci_folder_has_match(folder, LACI_RUN_CHECKPOINTS)) {
      return laci_fail(
          err, LAC_NOT_FOUND,
          "%s %s: no checkpoint to go on from; wanted the folder of an earlier run, its "
          "--model-dir",
          typed, folder);
    }
    st = script_set_option(l, "model-dir", folder, typed, err);
    if (!st) st = script_set_option(l, "recover", NULL, typed, err);
  }
  evaluate = script_find_item(l, "*evaluate");
  if (st || !evaluate) return st;
  if (!script_find_item(l, "*resume") && !script_find_item(l, "pretrained")) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s without --resume DIR or --pretrained FILE: fresh weights; lacuna eval "
                     "MODEL --data DIR evaluates "
                     "a file",
                     evaluate->typed);
  }
  script_remove_item(l, "output");
  return script_set_option(l, "eval-only", NULL, evaluate->typed, err);
}

/* Moves the operand that is the folder of images to --data: the first operand of train, the second
 * of finetune. */
static lac_status move_operand_to_data_folder(like *l, lac_error *err) {
  int first = verb_table[l->verb].most;
  if (l->n_operands <= first || script_is_option_given(l, "data")) return LAC_OK;
  const char *folder = l->operands[first];
  for (int k = first + 1; k < l->n_operands; k++) l->operands[k - 1] = l->operands[k];
  l->n_operands--;
  return script_set_option(l, "data", folder, NULL, err);
}

static lac_status complete_resnet_training_main(like *l, lac_error *err) {
  static const struct {
    const char *name, *value;
  } usual[] = {{"recipe", "resnet-sgd"}, {"batch-size", "256"},    {"lr", "0.1"},
               {"warmup-epochs", "0"},   {"label-smoothing", "0"}, {"display-steps", "10"}};
  lac_status st = move_operand_to_data_folder(l, err);
  if (!st && !script_is_option_given(l, "data") && !script_is_only_printed(l)) {
    st = laci_fail(err, LAC_BAD_ARGUMENT,
                   "DIR is missing: the folder of images, train and val in it");
  }
  if (!st && l->verb == VERB_train) st = script_set_default(l, "arch", "resnet18", err);
  for (size_t k = 0; !st && k < sizeof usual / sizeof usual[0]; k++) {
    st = script_set_default(l, usual[k].name, usual[k].value, err);
  }
  if (!st && !script_is_option_given(l, "steps")) st = script_set_default(l, "epochs", "90", err);
  if (!st) st = set_rate_stages(l, err);
  if (!st) st = set_pretrained(l, err);
  if (!st) st = set_onnx_output(l, err);
  return st ? st : set_resume_and_evaluate(l, err);
}

/* ---- All scripts ---- */

static const struct {
  const char *name;
  verb_id verb; /* verb that the script becomes; VERB_train: train or finetune */
  lac_status (*complete)(like *l, lac_error *err);
  const char *variables; /* environment variables that the script reads; NULL: none */
} scripts[] = {{"demo_resnet", VERB_train, complete_demo_resnet, NULL},
               {"demo_keras_resnet", VERB_train, complete_demo_keras_resnet, NULL},
               {"demo_resnet_hvd", VERB_train, script_complete_demo_resnet_hvd,
                "RESNET_SIZE, IMAGENET_DIR, BATCH_SIZE, TRAIN_EPOCHS, TRAIN_STEPS, NO_EVAL, "
                "STOP_THRESHOLD, USE_LARS_OPTIMIZER, NUM_WORKERS_PER_HLS"},
               {"resnet_estimator", VERB_train, script_complete_resnet_estimator, NULL},
               {"resnet_keras", VERB_train, script_complete_resnet_keras, NULL},
               {"resnet_ctl", VERB_train, complete_resnet_ctl, NULL},
               {"resnet_training_main", VERB_train, complete_resnet_training_main, NULL},
               {"preprocess_imagenet", VERB_data, script_complete_preprocess_imagenet, NULL},
               {"MN_check", VERB_check, script_complete_mn_check, NULL},
               {"trt_accuracy", VERB_eval, script_complete_trt_accuracy, NULL},
               {"tftrt_infer", VERB_bench, script_complete_tftrt_infer, "TF_TRT_SPARSE_MODE"}};
enum { N_SCRIPTS = sizeof scripts / sizeof scripts[0] };

/* Returns the script's index, or N_SCRIPTS. */
static int find_script(const char *script) {
  int k = 0;
  while (k < N_SCRIPTS && strcmp(scripts[k].name, script) != 0) k++;
  return k;
}

lac_status script_check_name(const char *script, bool has_verb, verb_id *verb, lac_error *err) {
  const int k = find_script(script);
  char names[512] = "";
  size_t used = 0;
  if (k < N_SCRIPTS) {
    const verb_id own = scripts[k].verb;
    if (!has_verb) *verb = own;
    if (*verb == own || (own == VERB_train && *verb == VERB_finetune)) return LAC_OK;
    return laci_fail(err, LAC_BAD_ARGUMENT, "--like %s: not for %s; wanted lacuna %s --like %s",
                     script, verb_table[*verb].name, verb_table[own].name, script);
  }
  for (int at = 0; at < N_SCRIPTS; at++) {
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                             at == 0              ? ""
                             : at < N_SCRIPTS - 1 ? ", "
                                                  : " or ",
                             scripts[at].name);
  }
  return laci_fail(err, LAC_BAD_ARGUMENT, "--like %s: wanted %s", script, names);
}

lac_status script_complete_options(like *l, lac_error *err) {
  const int k = find_script(l->script);
  return k < N_SCRIPTS ? scripts[k].complete(l, err) : LAC_OK;
}

void script_print_environment_variables(const char *script, FILE *out) {
  const int k = find_script(script);
  if (k < N_SCRIPTS && scripts[k].variables)
    fprintf(out, "Environment: %s\n\n", scripts[k].variables);
}
