/* SPDX-License-Identifier: Apache-2.0
 * `lacuna train` and `lacuna finetune`: a network is created or read, pruned if it should be
 * sparse, trained, and written. Next: train_options.c. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/folder.h"
#include "base/plural.h"
#include "runs/run_folder.h"
#include "export.h"
#include "group.h"
#include "input.h"
#include "lacuna/finetune.h"
#include "lacuna/pretrained.h"
#include "layers.h"
#include "outputs.h"
#include "log.h"
#include "train_options.h"
#include "verbs.h"

/* The state of one run of `lacuna train` or `lacuna finetune`. */
typedef struct run {
  const arguments *args;
  train_options options;
  lac_train_data data;
  lac_model *model;
  lac_report *drawn;     /* report for the drawing, if this run did not prune; else NULL */
  lac_report *check;     /* report of the check of the resulting network, to be printed; NULL: not
                            wanted */
  char source[PATH_MAX]; /* file that the network is read from; empty: the network is created */
  lac_finetune_result result;
  outputs *outputs;
  int64_t first_step; /* number of steps that were done before this run */
  struct {
    int64_t epoch, n;
    double loss, top1; /* sums over n steps of this epoch */
    bool ended;        /* the last step was its epoch's last one */
  } so_far;
} run;

/* ---- The log ---- */

static void format_time(double seconds, char text[32]) {
  int64_t s = seconds < 1e9 ? llround(seconds) : 0;
  (void)snprintf(text, 32, "%" PRId64 ":%02d:%02d", s / 3600, (int)(s / 60 % 60), (int)(s % 60));
}

/* Writes images per second with as many digits as make sense, such as 0.31, 8.5, 277: large
 * networks take seconds for an image. */
static void format_speed(double images_per_second, char text[32]) {
  int places = images_per_second < 1 ? 2 : images_per_second < 10 ? 1 : 0;
  (void)snprintf(text, 32, "%.*f images/s", places, images_per_second);
}

static void log_begin_of_run(const run *r, const lac_train_event *event) {
  int64_t left = event->steps - event->step;
  if (r->options.training.eval_only) return;
  if (left <= 0) {
    log_line("no step is left to take");
  } else {
    char processes[32] = "";
    int n = group_size(r->args);
    if (n > 1) (void)snprintf(processes, sizeof processes, ", %d processes", n);
    log_line("%" PRId64 " images for training; %" PRId64 " step%s to go, recipe %s%s",
             r->data.images, left, left == 1 ? "" : "s", r->options.training.recipe, processes);
    if (r->options.training.stop_threshold >= 0)
      log_line("ends at top-1 of %g %%, or after the last step",
               r->options.training.stop_threshold);
  }
}

/* Adds a step to the means over its epoch. event->epoch counts complete epochs, so that it grows
 * with the last step of one. */
static void add_step_to_epoch_means(run *r, const lac_train_event *event) {
  if (r->so_far.ended) {
    r->so_far.n = 0;
    r->so_far.loss = r->so_far.top1 = 0;
  }
  r->so_far.ended = event->epoch != r->so_far.epoch && r->so_far.n > 0;
  r->so_far.epoch = event->epoch;
  r->so_far.n++;
  r->so_far.loss += event->loss;
  r->so_far.top1 += event->top1;
}

/* Logs after a few steps how long the run will take, if it takes long. */
static void log_estimated_duration(const run *r, const lac_train_event *event) {
  enum { MEASURED_STEPS = 5, LONG_S = 120 };
  char time[32];
  if (event->step - r->first_step != MEASURED_STEPS || event->seconds_left < LONG_S) return;
  format_time(event->seconds_left, time);
  log_line("about %s for %" PRId64 " steps, and evaluations", time, event->steps - event->step);
}

static void handle_train_event(const lac_train_event *event, void *context) {
  run *r = context;
  char left[32], speed[32];
  outputs_add_event_to_page(r->outputs, event);
  if (event->kind == LAC_TRAIN_BEGIN) {
    r->first_step = event->step;
    log_begin_of_run(r, event);
  } else if (event->kind == LAC_TRAIN_STEP) {
    format_time(event->seconds_left, left);
    format_speed(event->images_per_second, speed);
    add_step_to_epoch_means(r, event);
    log_estimated_duration(r, event);
    log_set_progress_note(", %s, %s left", speed, left);
    if (!event->is_display) return;
    log_line("step %" PRId64 " of %" PRId64 ", epoch %" PRId64
             ": loss %.4f, so far %.4f, top-1 %.1f%%, rate %.4g, %s, %s left",
             event->step, event->steps, event->epoch, event->loss,
             r->so_far.loss / (double)r->so_far.n, r->so_far.top1 / (double)r->so_far.n,
             event->rate, speed, left);
  } else if (event->kind == LAC_TRAIN_EVALUATED && !r->options.training.eval_only) {
    log_line("step %" PRId64 ": top-1 %.2f%%, top-5 %.2f%%, loss %.4f%s", event->step, event->top1,
             event->top5, event->loss,
             event->step == 0
                 ? (r->result.pruning ? ", after pruning, before training" : ", before training")
             : event->is_best ? ", the best so far"
                              : "");
  }
}

/* Logs a summary of the run, also after an interrupt. */
static void log_run_summary(const run *r) {
  const lac_train_result *result = r->result.training;
  int64_t n = result->steps - result->first_step;
  char time[32], speed[32], best[96] = "";
  if (r->options.training.eval_only) return;
  format_time(result->seconds, time);
  format_speed(result->average_images_per_second, speed);
  if (result->best_top1 >= 0) {
    (void)snprintf(best, sizeof best, "; best: top-1 %.2f%% at step %" PRId64, result->best_top1,
                   result->best_step);
  }
  log_line("%" PRId64 " step%s in %s%s%s%s%s%s", n, n == 1 ? "" : "s", time,
           n ? ", on average " : "", n ? speed : "", best,
           result->interrupted ? "; interrupted" : "",
           result->reached ? "; the threshold was reached" : "");
}

/* ---- The network ---- */

/* Checks early that the folder's images fit the network; planning checks the rest. */
static lac_status check_images_fit_network(const run *r, lac_error *err) {
  const lac_train_data *data = &r->data;
  const char *arch = r->options.arch;
  bool wants_grey = strcmp(arch, "digits") == 0;
  if (wants_grey != (data->channels == 1)) {
    return laci_fail(err, LAC_BAD_SHAPE, "--arch %s reads %s images, but %s holds %s ones", arch,
                     wants_grey ? "grey" : "colour", r->args->data, wants_grey ? "colour" : "grey");
  }
  if (data->height == data->width) return LAC_OK;
  return laci_fail(err, LAC_BAD_SHAPE, "%s: images of %d x %d, wanted squares", r->args->data,
                   data->height, data->width);
}

/* Replaces fresh weights by pretrained ones (--pretrained). */
static lac_status load_pretrained(run *r, lac_error *err) {
  lac_pretrained found = LAC_SIZED(lac_pretrained);
  const char *path = r->args->pretrained;
  lac_status st = lac_pretrained_read(r->model, path, NULL, &found, err);
  if (st) return st;
  log_line("%s: %d tensor%s taken", path, found.n_taken, laci_plural(found.n_taken));
  if (found.fresh_classifier) {
    log_line("%s: its classifier knows %lld classes, these data have %d: fc begins fresh", path,
             found.classes, r->data.classes);
  }
  if (found.n_unknown) {
    log_line("%s: %d tensor%s of it %s not in %s, the first is %s", path, found.n_unknown,
             laci_plural(found.n_unknown), found.n_unknown == 1 ? "is" : "are", r->options.arch,
             found.unknown);
  }
  return LAC_OK;
}

static lac_status create_or_load_network(run *r, lac_error *err) {
  const char *arch = r->options.arch;
  lac_model *fresh = NULL;
  lac_status st = check_images_fit_network(r, err);
  if (st) return st;
  lac_network_options o = {.size = sizeof(lac_network_options),
                           .name = arch,
                           .classes = r->data.classes,
                           .image_size = r->data.height,
                           .conv_shortcut = strcmp(r->args->shortcut, "conv") == 0,
                           .seed = r->args->seed};
  st = lac_network_create(&o, &fresh, err);
  if (!st && export_is_from_existing_model(r->args)) {
    st = export_load_matching_model(r->source, arch, fresh, &r->model, err);
    lac_model_destroy(fresh);
    return st;
  }
  r->model = fresh;
  return !st && r->args->pretrained ? load_pretrained(r, err) : st;
}

/* Finds the file that the network is read from, if any, which the outputs must not replace. */
static lac_status find_source_model(run *r, lac_error *err) {
  const arguments *args = r->args;
  if (export_is_from_existing_model(args)) return export_source_path(args, r->source, err);
  const char *source = args->operand ? args->operand : args->pretrained;
  int n = snprintf(r->source, sizeof r->source, "%s", source ? source : "");
  if (n >= 0 && (size_t)n < sizeof r->source) return LAC_OK;
  return laci_fail(err, LAC_IO, "%s: the name is too long", source);
}

/* Adds to the library's error about layers which options of the command would help. */
static lac_status add_option_hints(const run *r, lac_status st, lac_error *err) {
  const lac_finetune_options *o = &r->options.library;
  const lac_finetune_result *result = &r->result;
  if (st != LAC_BAD_VALUE || !result->found) return st;
  if (!o->prune_rest && result->n_pruned == 0) {
    return laci_fail(err, st,
                     "%s: no layer holds %s, so that --keep-masks has nothing to keep: wanted "
                     "--prune-rest, or --no-sparse",
                     r->source[0] ? r->source : "fresh weights", r->args->pattern);
  }
  if (!o->must_mask || !result->mask || lac_mask_count(result->mask) > 0) return st;
  return laci_fail(err, st,
                   "%s: no layer takes %s, so that nothing would be sparse (--all-sizes prunes "
                   "what Tensor Cores do not take, too)",
                   r->source, r->args->pattern);
}

/* Prunes the network if it should be sparse, and trains it. */
static lac_status prune_and_train(run *r, lac_error *err) {
  /* an evaluation before the first step says nothing about freshly initialized weights */
  r->options.training.eval_first = r->source[0] != 0;
  lac_status st = lac_finetune(r->model, r->args->data, &r->options.library, &r->result, err);
  if (!st || (r->result.training && r->result.training->interrupted)) log_run_summary(r);
  return add_option_hints(r, st, err);
}

static lac_status create_model_and_check_images(run *r, lac_error *err) {
  return r->args->verb == VERB_train ? create_or_load_network(r, err)
                                     : input_load_model(r->args, r->args->operand, &r->model, err);
}

static lac_status fail_bad_folder(const char *folder, const char *text, lac_error *err) {
  return laci_fail(err, LAC_IO, "--model-dir %s: %s", folder, text);
}

/* Checks that the folder can be created: the nearest existing folder above it must be writable. */
static lac_status check_parent_is_writable(const char *folder, lac_error *err) {
  char parent[PATH_MAX];
  struct stat link;
  if (strlen(folder) >= sizeof parent) return fail_bad_folder(folder, "the name is too long", err);
  if (lstat(folder, &link) == 0) return fail_bad_folder(folder, "a link that leads nowhere", err);
  strcpy(parent, folder);
  const char *above = dirname(parent);
  while (access(above, F_OK) != 0 && errno == ENOENT && strcmp(above, ".") != 0 &&
         strcmp(above, "/") != 0)
    above = dirname(parent);
  return access(above, W_OK | X_OK) == 0 ? LAC_OK : fail_bad_folder(folder, strerror(errno), err);
}

static lac_status check_not_overwritten(const run *r, const char *path, lac_error *err) {
  const lac_train_options *o = &r->options.training;
  if (!path || !path[0] || !o->model_dir || o->eval_only) return LAC_OK;
  if (!laci_run_may_write_path(o->model_dir, path)) return LAC_OK;
  return laci_fail(err, LAC_EXISTS,
                   "%s: it is an input, and the run in --model-dir %s writes a file of that name",
                   path, o->model_dir);
}

/* Checks that no input is a file that the run will write. */
static lac_status check_inputs_not_overwritten(const run *r, lac_error *err) {
  lac_status st = check_not_overwritten(r, r->source, err);
  if (!st) st = check_not_overwritten(r, r->args->data, err);
  return st ? st : check_not_overwritten(r, r->args->classes, err);
}

/* Checks that the run overwrites no external data file of the model. Their names are known only
 * after loading. */
static lac_status check_data_files_not_overwritten(const run *r, lac_error *err) {
  const char *slash = strrchr(r->source, '/'), *name;
  int n_folder = slash ? (int)(slash + 1 - r->source) : 0;
  char path[PATH_MAX];
  lac_status st = LAC_OK;
  for (int at = 0; !st && (name = lac_model_data_file(r->model, at)); at++) {
    int n = snprintf(path, sizeof path, "%.*s%s", n_folder, r->source, name);
    if (n > 0 && (size_t)n < sizeof path) st = check_not_overwritten(r, path, err);
  }
  return st;
}

/* Checks --model-dir before the pruning, which may take long; the library checks most of this, too,
 * but only later. */
static lac_status check_model_dir(const run *r, lac_error *err) {
  const lac_train_options *o = &r->options.training;
  if (!o->model_dir) return LAC_OK;
  DIR *files = opendir(o->model_dir);
  if (!files && errno != ENOENT) return fail_bad_folder(o->model_dir, strerror(errno), err);
  bool taken = laci_folder_has_match(o->model_dir, LACI_RUN_CHECKPOINTS);
  if (files) (void)closedir(files);
  if (o->eval_only && o->recover && !taken) {
    return laci_fail(err, LAC_NOT_FOUND, "%s: no checkpoint in it", o->model_dir);
  }
  if (files && !o->eval_only && access(o->model_dir, W_OK | X_OK) != 0) {
    return fail_bad_folder(o->model_dir, strerror(errno), err);
  }
  if (!files) return check_parent_is_writable(o->model_dir, err);
  if (!o->eval_only) {
    lac_status st = laci_run_folder_check_usable(o->model_dir, err);
    if (st) return st;
  }
  if (!taken || o->recover || o->force || o->eval_only) return LAC_OK;
  return laci_fail(err, LAC_EXISTS,
                   "%s: it has the checkpoints of another run (--recover goes on with it, --force "
                   "removes them)",
                   o->model_dir);
}

/* Checks that no file that the run writes exists already or is an input. */
static lac_status check_outputs(const run *r, const outputs *plan, lac_error *err) {
  lac_status st = outputs_check_against_run_folder(plan, r->args->model_dir, err);
  if (!st) st = check_inputs_not_overwritten(r, err);
  return st ? st : check_model_dir(r, err);
}

/* ---- The result ---- */

static lac_status make_json_report(const run *r, char **text, lac_error *err) {
  const arguments *args = r->args;
  const lac_finetune_result *result = &r->result;
  const lac_train_about about = {.size = sizeof(lac_train_about),
                                 .verb = args->verb == VERB_train ? "train" : "finetune",
                                 .model = r->source[0] ? r->source : NULL,
                                 .arch = r->options.arch[0] ? r->options.arch : NULL,
                                 .data = args->data,
                                 .options = &r->options.training,
                                 .layers = result->pruning ? result->pruning : result->found};
  return args->json || args->html ? lac_train_json(&about, result->training, text, err) : LAC_OK;
}

static void print_result(const run *r) {
  const lac_train_result *result = r->result.training;
  if (!r->options.training.eval_only) {
    printf("%" PRId64 " step%s", result->steps, result->steps == 1 ? "" : "s");
    if (!isnan(result->loss)) printf(", loss %.4f", result->loss);
    printf("%s\n", result->reached ? ": the threshold was reached" : "");
  }
  if (result->evaluated) {
    printf("top-1 %.2f%%, top-5 %.2f%%, loss %.4f\n", result->top1, result->top5,
           result->eval_loss);
  }
  if (r->options.training.keep_best && result->best_top1 >= 0) {
    printf("best: top-1 %.2f%% after %" PRId64 " step%s\n", result->best_top1, result->best_step,
           laci_plural(result->best_step));
  }
}

static lac_status print_check_of_result(const run *r, lac_error *err) {
  if (!r->check) return LAC_OK;
  lac_status st = layers_print_sparsity(r->check, stdout, err);
  if (st) return st;
  layers_print_pruned(r->check, stdout);
  layers_print_permutable(r->check, stdout);
  return LAC_OK;
}

static lac_status write_result(run *r, outputs *plan, lac_error *err) {
  const arguments *args = r->args;
  char *json = NULL;
  lac_status st = make_json_report(r, &json, err);
  plan->json = json;
  plan->trace = r->result.training->trace;
  const lac_report *report = r->result.pruning;
  bool drawn = plan->files[OUTPUT_PLOT].path || plan->files[OUTPUT_PAGE].path;
  if (!st && drawn && !report) {
    st = lac_inspect(r->model, &r->options.pruning, &r->drawn, err);
    report = r->drawn;
  }
  if (!st && export_is_from_existing_model(args) && !args->eval_only) {
    st = export_check_masks(r->model, r->result.mask, &r->options.pruning, &r->check, err);
  }
  if (!st && !plan->uses_stdout) st = print_check_of_result(r, err);
  if (!st) st = outputs_write(plan, r->model, report, err);
  if (!st && !plan->uses_stdout) print_result(r);
  st = outputs_rename_or_remove(plan, st, err);
  if (!st) outputs_log(plan);
  plan->json = NULL;
  lac_text_free(json);
  return st;
}

static exit_code run_training_verb(const arguments *args, lac_error *err) {
  run r = {
      .args = args, .data = LAC_SIZED(lac_train_data), .result = LAC_SIZED(lac_finetune_result)};
  outputs plan = {0};
  lac_status st = train_options_read(args, &r.options, err);
  if (!st && args->print)
    return exit_code_of_status(train_options_print_recipe(&r.options, args->data, stdout, err));
  r.options.training.listener = handle_train_event;
  r.options.training.context = &r;
  r.outputs = &plan;
  if (!st) st = find_source_model(&r, err);
  if (!st) st = outputs_plan_and_check(args, &plan, err);
  if (!st) st = outputs_check_against_data(&plan, args, err);
  if (!st && group_is_first_process(args)) st = check_outputs(&r, &plan, err);
  if (!st) st = lac_train_data_find(args->data, &r.options.training, &r.data, err);
  if (!st) st = create_model_and_check_images(&r, err);
  if (!st) st = outputs_check_against_model(&plan, r.model, r.source, err);
  if (!st) st = check_data_files_not_overwritten(&r, err);
  st = group_agree_on_status_without_timeout(args, st, err);
  if (!st) st = prune_and_train(&r, err);
  if (!st) st = group_agree_on_status_without_timeout(args, write_result(&r, &plan, err), err);
  lac_report_destroy(r.check);
  lac_report_destroy(r.drawn);
  lac_finetune_result_clear(&r.result);
  lac_model_destroy(r.model);
  return exit_code_of_status(st);
}

exit_code verb_train(const arguments *args, lac_error *err) { return run_training_verb(args, err); }
exit_code verb_finetune(const arguments *args, lac_error *err) {
  return run_training_verb(args, err);
}
