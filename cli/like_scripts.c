/* SPDX-License-Identifier: Apache-2.0
 * One function for each script; demo_resnet and demo_keras_resnet share one. A script's default is
 * used only if neither the script's option nor the equivalent option of this command was given.
 * docs/how-to/from-reference-scripts.md documents this for users. */
#include "like_scripts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/memory.h"
#include "runs/run_folder.h"

/* ---- Items ---- */

lac_status like_format_text(like *l, const char **text, lac_error *err, const char *format, ...) {
  va_list list;
  va_start(list, format);
  va_list again;
  va_copy(again, list);
  int n = vsnprintf(NULL, 0, format, list);
  char *made = n >= 0 && l->n_texts < LIKE_MOST_TEXTS ? laci_alloc((size_t)n + 1, 1) : NULL;
  if (made) (void)vsnprintf(made, (size_t)n + 1, format, again);
  va_end(again);
  va_end(list);
  *text = made;
  if (!made) return laci_fail_memory(err, "the command line");
  l->texts[l->n_texts++] = made;
  return LAC_OK;
}

static like_item *find_item(like *l, const char *name) {
  for (int k = 0; k < l->n_items; k++) {
    if (strcmp(l->items[k].name, name) == 0) return &l->items[k];
  }
  return NULL;
}

static const char *item_value(like *l, const char *name, const char *usual) {
  const like_item *item = find_item(l, name);
  return item && item->value ? item->value : usual;
}

lac_status like_set_option(like *l, const char *name, const char *value, const char *typed,
                           lac_error *err) {
  like_item *item = find_item(l, name);
  if (!item && l->n_items == LIKE_MOST) return laci_fail(err, LAC_BAD_ARGUMENT, "too many options");
  if (!item) item = &l->items[l->n_items++];
  *item = (like_item){.name = name, .value = value, .typed = typed};
  return LAC_OK;
}

lac_status like_add_note(like *l, const char *typed, const char *text, lac_error *err) {
  for (int k = 1; k < l->n_notes; k += 2) {
    if (strcmp(l->notes[k], text) == 0) return LAC_OK;
  }
  if (l->n_notes + 2 > LIKE_MOST) return laci_fail(err, LAC_BAD_ARGUMENT, "too many options");
  l->notes[l->n_notes++] = typed;
  l->notes[l->n_notes++] = text;
  return LAC_OK;
}

static void drop_item(like *l, const char *name) {
  like_item *item = find_item(l, name);
  if (item) *item = l->items[--l->n_items];
}

bool like_has_own_option(const like *l, const char *name) {
  for (int k = 0; k < l->n_others; k++) {
    const option_row *option = option_find(l->verb, l->others[k]);
    if (option && strcmp(text_with_dashes(option->name), name) == 0) return true;
  }
  return false;
}

static bool is_option_given(like *l, const char *name) {
  return find_item(l, name) || like_has_own_option(l, name);
}

static lac_status set_default(like *l, const char *name, const char *value, lac_error *err) {
  return is_option_given(l, name) ? LAC_OK : like_set_option(l, name, value, NULL, err);
}

/* Is the translation only shown (--help, --print), so that required words may be missing? */
static bool is_only_printed(const like *l) {
  return like_has_own_option(l, "print") || like_has_own_option(l, "help");
}

static lac_status fail_value(like *l, const char *name, const char *wanted, lac_error *err) {
  const like_item *item = find_item(l, name);
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s %s: wanted %s", item->typed, item->value, wanted);
}

/* Reads the option's value, an integer >= 1. */
static lac_status read_count(like *l, const char *name, uint64_t *count, lac_error *err) {
  const char *text = item_value(l, name, "");
  char *end;
  *count = strtoull(text, &end, 10);
  bool fits =
      text[0] >= '0' && text[0] <= '9' && !*end && *count >= 1 && *count <= INT64_MAX / 65536;
  return fits ? LAC_OK : fail_value(l, name, "an integer from 1 on", err);
}

/* ---- The network ---- */

static bool is_one_of(const char *text, const char *const *list) {
  for (; *list; list++) {
    if (strcmp(*list, text) == 0) return true;
  }
  return false;
}

/* Sets the network: `train` needs --arch, `finetune` needs a MODEL. */
static lac_status set_network(like *l, bool resnext, lac_error *err) {
  static const char *const sizes[] = {"18", "34", "50", "101", "152", NULL};
  static const char *const resnext_sizes[] = {"50", "101", NULL};
  const char *size = item_value(l, "*size", resnext ? "101" : "50"), *name;
  const like_item *given = find_item(l, resnext ? "*resnext" : "*size");
  if (l->verb == VERB_finetune) {
    if (!given) return LAC_OK;
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: MODEL says which network is trained",
                     given->typed);
  }
  if (!is_one_of(size, resnext ? resnext_sizes : sizes)) {
    return fail_value(l, "*size", resnext ? "50 or 101 of ResNeXt" : "18, 34, 50, 101 or 152", err);
  }
  lac_status st = like_format_text(l, &name, err, resnext ? "resnext%s_32x4d" : "resnet%s", size);
  return st ? st : set_default(l, "arch", name, err);
}

/* ---- demo_resnet, demo_keras_resnet ---- */

/* Translates -l N: the evaluation uses N batches. */
static lac_status set_eval_limit(like *l, lac_error *err) {
  uint64_t batch, batches;
  const like_item *item = find_item(l, "*eval-batches");
  if (!item) return LAC_OK;
  const char *typed = item->typed, *images;
  lac_status st = read_count(l, "*eval-batches", &batches, err);
  if (!st) st = read_count(l, "batch-size", &batch, err);
  if (!st)
    st = like_format_text(l, &images, err, "%" PRIu64, batches * (batch < 65536 ? batch : 65536));
  return st ? st : like_set_option(l, "eval-limit", images, typed, err);
}

static lac_status set_demo_type(like *l, lac_error *err) {
  static const char *const types[] = {"fp32", "bf16", NULL};
  const char *type = item_value(l, "dtype", NULL);
  if (!type && !is_only_printed(l)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "-d is missing: -d fp32 or -d bf16");
  }
  if (type && !is_one_of(type, types)) return fail_value(l, "dtype", "fp32 or bf16", err);
  bool bf16 = type && strcmp(type, "bf16") == 0;
  return set_default(l, "batch-size", bf16 ? "256" : "128", err);
}

/* Sets the length of the training: the steps of -s, or else the epochs of -e, by default one. */
static lac_status set_training_length(like *l, lac_error *err) {
  const like_item *epochs = find_item(l, "epochs");
  if (!is_option_given(l, "steps")) return set_default(l, "epochs", "1", err);
  if (!epochs) return LAC_OK;
  lac_status st = like_add_note(l, epochs->typed, "the number of steps counts", err);
  drop_item(l, "epochs");
  return st;
}

/* Sets one folder for checkpoints and network; by default the current folder. */
static lac_status set_demo_folder(like *l, bool keeps, lac_error *err) {
  const char *usual = item_value(l, "arch", "run"), *note;
  const like_item *given = find_item(l, "model-dir");
  like_item folder = given ? *given : (like_item){.value = usual};
  lac_status st = LAC_OK;
  if (!is_option_given(l, "output") && !is_option_given(l, "export-dir")) {
    st = like_set_option(l, "export-dir", folder.value, folder.typed, err);
    if (!st)
      st = like_format_text(l, &note, err, "the network will be %s/model.onnx", folder.value);
    if (!st) st = like_add_note(l, folder.typed ? folder.typed : "no -m", note, err);
  }
  if (!keeps) drop_item(l, "model-dir");
  else if (!st) st = like_set_option(l, "model-dir", folder.value, folder.typed, err);
  return st;
}

static lac_status complete_demo(like *l, bool keeps, lac_error *err) {
  bool resnext = find_item(l, "*resnext"), lars = find_item(l, "*lars");
  lac_status st = set_demo_type(l, err);
  if (!st) st = set_network(l, resnext, err);
  if (!st && (lars || l->verb == VERB_train)) {
    st = set_default(l, "recipe", lars ? "resnet-lars" : resnext ? "resnext" : "resnet-sgd", err);
  }
  if (!st) st = set_training_length(l, err);
  if (!st) st = set_eval_limit(l, err);
  if (!st) st = set_default(l, "data", "/software/data/tf/data/imagenet/tf_records/", err);
  return st ? st : set_demo_folder(l, keeps, err);
}

static lac_status complete_demo_resnet(like *l, lac_error *err) {
  return complete_demo(l, true, err);
}

static lac_status complete_demo_keras_resnet(like *l, lac_error *err) {
  return complete_demo(l, find_item(l, "*checkpoint") || is_option_given(l, "recover"), err);
}

/* ---- resnet_ctl ---- */

/* Translates the script's option for the precision. */
static lac_status set_precision(like *l, lac_error *err) {
  static const char *const full[] = {"fp32", "tf32", NULL}, *const half[] = {"fp16", "amp", NULL};
  const char *precision = item_value(l, "*precision", NULL);
  if (!precision) return LAC_OK;
  const char *typed = find_item(l, "*precision")->typed;
  if (is_one_of(precision, full)) return like_set_option(l, "dtype", "fp32", typed, err);
  if (strcmp(precision, "bf16") == 0) return like_set_option(l, "dtype", "bf16", typed, err);
  if (!is_one_of(precision, half))
    return fail_value(l, "*precision", "fp32, amp, fp16 or bf16", err);
  lac_status st =
      like_add_note(l, typed, "half precision is bf16 here, which needs no scaled loss", err);
  return st ? st : like_set_option(l, "dtype", "bf16", typed, err);
}

static lac_status set_iterations(like *l, lac_error *err) {
  const char *unit = item_value(l, "*unit", "epoch"), *n = item_value(l, "*iterations", "90");
  const like_item *given = find_item(l, "*iterations");
  const char *typed = given ? given->typed : NULL;
  if (strcmp(unit, "batch") == 0) return like_set_option(l, "steps", n, typed, err);
  if (strcmp(unit, "epoch") != 0) return fail_value(l, "*unit", "epoch or batch", err);
  if (is_option_given(l, "steps") && !given) return LAC_OK;
  return given ? like_set_option(l, "epochs", n, typed, err) : set_default(l, "epochs", n, err);
}

static lac_status complete_resnet_ctl(like *l, lac_error *err) {
  bool is_placed =
      is_option_given(l, "export-dir") || is_option_given(l, "output") || is_only_printed(l);
  bool has_data = is_option_given(l, "data") || is_only_printed(l);
  if (!has_data) return laci_fail(err, LAC_BAD_ARGUMENT, "--data_dir DIR is missing: the images");
  if (!is_placed) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "--export_dir DIR is missing: where the network goes");
  }
  lac_status st = set_network(l, false, err);
  if (!st) st = set_precision(l, err);
  if (!st) st = set_iterations(l, err);
  return st ? st : set_default(l, "display-steps", "10", err);
}

/* ---- resnet_training_main ---- */

/* Sets the script's schedule: the rate is divided by ten every 30 epochs. */
static lac_status set_stages(like *l, lac_error *err) {
  double epochs = strtod(item_value(l, "epochs", "90"), NULL);
  char text[64] = "";
  size_t used = 0;
  if (is_option_given(l, "boundaries") || is_option_given(l, "schedule")) return LAC_OK;
  if (!(epochs > 30)) return set_default(l, "schedule", "constant", err);
  for (int at = 30; at < epochs && at <= 240; at += 30) {
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", at > 30 ? "," : "", at);
  }
  const char *kept;
  lac_status st = like_format_text(l, &kept, err, "%s", text);
  return st ? st : set_default(l, "boundaries", kept, err);
}

/* Translates --pretrained. The script also accepts "true" here, which is not a file. */
static lac_status set_pretrained(like *l, lac_error *err) {
  const like_item *item = find_item(l, "*pretrained");
  if (!item || (item->value && strcmp(item->value, "false") == 0)) return LAC_OK;
  if (item->value && strchr(item->value, '.')) {
    return like_set_option(l, "pretrained", item->value, item->typed, err);
  }
  return laci_fail(err, LAC_BAD_ARGUMENT,
                   "%s: nothing is downloaded: wanted %s FILE.safetensors or FILE.onnx",
                   item->typed, item->typed);
}

/* Translates --ONNX: the output is the file given, or else is named after the network. */
static lac_status set_onnx(like *l, lac_error *err) {
  const like_item *item = find_item(l, "*onnx");
  const char *name = item ? item->value : NULL, *typed = item ? item->typed : NULL;
  if (is_option_given(l, "output") || is_option_given(l, "export-dir")) return LAC_OK;
  if (name) return like_set_option(l, "output", name, typed, err);
  lac_status st = like_format_text(l, &name, err, "%s.onnx", item_value(l, "arch", "model"));
  return st ? st : like_set_option(l, "output", name, typed, err);
}

static lac_status set_resumed(like *l, lac_error *err) {
  const like_item *resume = find_item(l, "*resume"), *evaluate;
  lac_status st = LAC_OK;
  if (resume) {
    const char *folder = resume->value, *typed = resume->typed;
    if (!is_only_printed(l) && !laci_folder_has_match(folder, LACI_RUN_CHECKPOINTS)) {
      return laci_fail(
          err, LAC_NOT_FOUND,
          "%s %s: no checkpoint to go on from; wanted the folder of an earlier run, its "
          "--model-dir",
          typed, folder);
    }
    st = like_set_option(l, "model-dir", folder, typed, err);
    if (!st) st = like_set_option(l, "recover", NULL, typed, err);
  }
  evaluate = find_item(l, "*evaluate");
  if (st || !evaluate) return st;
  if (!find_item(l, "*resume") && !find_item(l, "pretrained")) {
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "%s without --resume DIR or --pretrained FILE: fresh weights; lacuna eval "
                     "MODEL --data DIR evaluates "
                     "a file",
                     evaluate->typed);
  }
  drop_item(l, "output");
  return like_set_option(l, "eval-only", NULL, evaluate->typed, err);
}

/* Takes the folder of images: the first operand of train, the second of finetune. */
static lac_status use_data_folder(like *l, lac_error *err) {
  int first = verb_table[l->verb].most;
  if (l->n_operands <= first || is_option_given(l, "data")) return LAC_OK;
  const char *folder = l->operands[first];
  for (int k = first + 1; k < l->n_operands; k++) l->operands[k - 1] = l->operands[k];
  l->n_operands--;
  return like_set_option(l, "data", folder, NULL, err);
}

static lac_status complete_resnet_training_main(like *l, lac_error *err) {
  static const struct {
    const char *name, *value;
  } usual[] = {{"recipe", "resnet-sgd"}, {"batch-size", "256"},    {"lr", "0.1"},
               {"warmup-epochs", "0"},   {"label-smoothing", "0"}, {"display-steps", "10"}};
  lac_status st = use_data_folder(l, err);
  if (!st && !is_option_given(l, "data") && !is_only_printed(l)) {
    st = laci_fail(err, LAC_BAD_ARGUMENT,
                   "DIR is missing: the folder of images, train and val in it");
  }
  if (!st && l->verb == VERB_train) st = set_default(l, "arch", "resnet18", err);
  for (size_t k = 0; !st && k < sizeof usual / sizeof usual[0]; k++) {
    st = set_default(l, usual[k].name, usual[k].value, err);
  }
  if (!st && !is_option_given(l, "steps")) st = set_default(l, "epochs", "90", err);
  if (!st) st = set_stages(l, err);
  if (!st) st = set_pretrained(l, err);
  if (!st) st = set_onnx(l, err);
  return st ? st : set_resumed(l, err);
}

/* ---- All scripts ---- */

static const struct {
  const char *name;
  lac_status (*complete)(like *l, lac_error *err);
} scripts[] = {{"demo_resnet", complete_demo_resnet},
               {"demo_keras_resnet", complete_demo_keras_resnet},
               {"resnet_ctl", complete_resnet_ctl},
               {"resnet_training_main", complete_resnet_training_main}};
enum { N_SCRIPTS = sizeof scripts / sizeof scripts[0] };

lac_status like_check_script(const char *script, lac_error *err) {
  for (int k = 0; k < N_SCRIPTS; k++) {
    if (strcmp(scripts[k].name, script) == 0) return LAC_OK;
  }
  return laci_fail(err, LAC_BAD_ARGUMENT,
                   "--like %s: wanted demo_resnet, demo_keras_resnet, resnet_ctl or "
                   "resnet_training_main",
                   script);
}

lac_status like_complete(like *l, lac_error *err) {
  for (int k = 0; k < N_SCRIPTS; k++) {
    if (strcmp(scripts[k].name, l->script) == 0) return scripts[k].complete(l, err);
  }
  return LAC_OK;
}
