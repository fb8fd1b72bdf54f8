/* SPDX-License-Identifier: Apache-2.0
 * All output files of a command, or none: checks before the work, and writing after it. The files
 * keep temporary names until standard output was written, too. */
#define _GNU_SOURCE /* realpath */
#include "outputs.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "runs/run_folder.h"
#include "base/writer.h"
#include "export.h"
#include "group.h"
#include "input.h"
#include "lacuna/calibration.h"
#include "log.h"
#include "page.h"

static const char *const option_names[OUTPUT_COUNT] = {
    "output",           "export-dir", "plot",          "roofline", "curve",
    "save-permutation", "trace",      "measure-costs", "html",     "json"};

static const char *option_name_of_output(const arguments *args, output_role role) {
  return args->verb == VERB_plot && role == OUTPUT_PLOT ? "output" : option_names[role];
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool is_drawing_role(output_role role) {
  return role == OUTPUT_PLOT || role == OUTPUT_ROOFLINE || role == OUTPUT_CURVE;
}

static bool is_standard_output(const char *path) { return path && strcmp(path, "-") == 0; }

static lac_status fail_errno(lac_error *err, const char *path) {
  return laci_fail(err, LAC_IO, "%s: %s", path, strerror(errno));
}

/* Fills file->real: the resolved folder of the path, followed by the path's last part. */
static lac_status resolve_output_path(output_file *file, lac_error *err) {
  char folder[PATH_MAX], last[PATH_MAX], resolved[PATH_MAX];
  struct stat found;
  if (strlen(file->path) >= sizeof folder)
    return laci_fail(err, LAC_IO, "%s: the name is too long", file->path);
  strcpy(folder, file->path);
  strcpy(last, file->path);
  bool there = realpath(dirname(folder), resolved) && stat(resolved, &found) == 0;
  if (!there || !S_ISDIR(found.st_mode)) {
    return laci_fail(err, LAC_IO, "%s: its folder: %s", file->path,
                     strerror(there ? ENOTDIR : errno));
  }
  if (access(resolved, W_OK | X_OK) != 0) {
    return laci_fail(err, LAC_IO, "%s: nothing can be written to its folder: %s", file->path,
                     strerror(errno));
  }
  int n = snprintf(file->real, sizeof file->real, "%s/%s",
                   strcmp(resolved, "/") == 0 ? "" : resolved, basename(last));
  if (n < 0 || (size_t)n >= sizeof file->real)
    return laci_fail(err, LAC_IO, "%s: the name is too long", file->path);
  return LAC_OK;
}

/* Resolves the path of OUTPUT_EXPORT. Its folder may be missing, but the parent of that folder must
 * exist. */
static lac_status resolve_export_path(outputs *plan, lac_error *err) {
  output_file *file = &plan->files[OUTPUT_EXPORT], folder = {0};
  char path[PATH_MAX];
  struct stat link;
  strcpy(path, file->path);
  folder.path = dirname(path);
  if (access(folder.path, F_OK) == 0 || errno != ENOENT) return resolve_output_path(file, err);
  lac_status st = resolve_output_path(&folder, err);
  if (st) return st;
  if (lstat(folder.real, &link) == 0)
    return laci_fail(err, LAC_IO, "%s: its folder is a link that leads nowhere", file->path);
  int n = snprintf(file->real, sizeof file->real, "%s/%s", folder.real, base_name(file->path));
  if (n < 0 || (size_t)n >= sizeof file->real)
    return laci_fail(err, LAC_IO, "%s: the name is too long", file->path);
  strcpy(plan->folder, folder.real);
  return LAC_OK;
}

/* Is the file `found` this input, under any name? */
static bool is_same_file(const struct stat *found, const char *input) {
  struct stat it;
  return input && stat(input, &it) == 0 && found->st_dev == it.st_dev && found->st_ino == it.st_ino;
}

static lac_status fail_output_is_input(const output_file *file, lac_error *err) {
  return laci_fail(err, LAC_EXISTS, "%s: it is an input, which is never replaced", file->path);
}

/* Checks that no file of this name exists, or that it may be replaced (--force). */
static lac_status check_file_is_free(const output_file *file, const arguments *args,
                                     lac_error *err) {
  struct stat found;
  if (stat(file->path, &found) != 0) return errno == ENOENT ? LAC_OK : fail_errno(err, file->path);
  const char *const inputs[] = {args->operand, args->against, args->apply, args->invert};
  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
    if (is_same_file(&found, inputs[i])) return fail_output_is_input(file, err);
  }
  if (!S_ISREG(found.st_mode))
    return laci_fail(err, LAC_EXISTS, "%s: it exists and is no regular file", file->path);
  if (!args->force)
    return laci_fail(err, LAC_EXISTS, "%s: it exists already (--force replaces it)", file->path);
  return LAC_OK;
}

static lac_status check_drawing_ending(const char *path, output_role role, lac_error *err) {
  const char *ending = strrchr(path, '.');
  static const char *const formats[] = {".svg", ".pdf", ".png", ".dot"};
  size_t n = role != OUTPUT_PLOT ? 1 : sizeof formats / sizeof formats[0];
  for (size_t i = 0; ending && i < n; i++) {
    if (strcasecmp(ending, formats[i]) == 0) return LAC_OK;
  }
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: wanted a name ending in .svg%s", path,
                   n > 1 ? ", .pdf, .png or .dot" : "");
}

static lac_status plan_and_check_file(outputs *plan, output_role role, const arguments *args,
                                      lac_error *err) {
  output_file *file = &plan->files[role];
  if (!file->path) return LAC_OK;
  if (is_standard_output(file->path)) {
    if (is_drawing_role(role) || role == OUTPUT_PERMUTATION || role == OUTPUT_PAGE ||
        plan->uses_stdout) {
      return laci_fail(err, LAC_BAD_ARGUMENT,
                       plan->uses_stdout ? "--%s -: standard output is taken already"
                                         : "--%s -: this goes to a file only",
                       option_name_of_output(args, role));
    }
    plan->uses_stdout = true;
    return LAC_OK;
  }
  if (is_drawing_role(role)) {
    lac_status st = check_drawing_ending(file->path, role, err);
    if (st) return st;
  }
  lac_status st =
      role == OUTPUT_EXPORT ? resolve_export_path(plan, err) : resolve_output_path(file, err);
  if (!st) st = check_file_is_free(file, args, err);
  for (int other = 0; !st && other < (int)role; other++) {
    if (strcmp(plan->files[other].real, file->real) == 0) {
      st = laci_fail(err, LAC_BAD_ARGUMENT, "%s: --%s and --%s name the same file", file->path,
                     option_names[other], option_names[role]);
    }
  }
  return st;
}

/* Checks that no output file has the name of a folder that the command will create. */
static lac_status check_no_output_is_folder(const outputs *plan, const char *folder,
                                            const char *option, lac_error *err) {
  for (int role = 0; folder[0] && role < OUTPUT_COUNT; role++) {
    if (strcmp(plan->files[role].real, folder) != 0) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: --%s makes a folder of that name",
                     plan->files[role].path, option);
  }
  return LAC_OK;
}

lac_status outputs_plan_and_check(const arguments *args, outputs *plan, lac_error *err) {
  memset(plan, 0, sizeof *plan);
  plan->force = args->force;
  plan->all_nodes = args->all_nodes;
  plan->details = args->details;
  if (!group_is_first_process(args)) return LAC_OK; /* this process writes nothing */
  if (args->verb == VERB_plot) {
    plan->files[OUTPUT_PLOT].path = args->output;
  } else {
    plan->files[OUTPUT_MODEL].path = args->output;
    plan->files[OUTPUT_PLOT].path = args->plot;
  }
  plan->files[OUTPUT_ROOFLINE].path = args->roofline;
  plan->files[OUTPUT_CURVE].path = args->curve;
  plan->files[OUTPUT_PERMUTATION].path = args->save_permutation;
  plan->files[OUTPUT_TRACE].path = args->trace;
  plan->files[OUTPUT_COSTS].path = args->measure_costs;
  plan->files[OUTPUT_PAGE].path = args->html;
  plan->files[OUTPUT_JSON].path = args->json;
  bool writes_one =
      args->verb == VERB_prune || args->verb == VERB_permute || args->verb == VERB_plot;
  if (writes_one && !args->output) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "-o FILE is missing: where the result goes");
  }
  plan->writes_model = args->verb == VERB_prune || args->verb == VERB_permute ||
                       args->verb == VERB_train || args->verb == VERB_finetune;
  lac_status st = LAC_OK;
  if (args->export_dir && !args->eval_only) {
    st = export_target_path(args, plan->export_path, err);
    plan->files[OUTPUT_EXPORT].path = plan->export_path;
  }
  for (int role = 0; !st && role < OUTPUT_COUNT; role++)
    st = plan_and_check_file(plan, role, args, err);
  return st ? st : check_no_output_is_folder(plan, plan->folder, option_names[OUTPUT_EXPORT], err);
}

/* Would saving the model as `out` write an external data file named `real`? Data files of OUT.onnx
 * are called OUT.data, OUT.1.data ... If OUT is in another folder than the input, they may keep
 * their names. */
static bool is_external_data_name(const char *out, const char *real, const lac_model *model) {
  size_t n_folder = (size_t)(base_name(out) - out);
  if (strncmp(out, real, n_folder) != 0 || strchr(real + n_folder, '/')) return false;
  const char *name = real + n_folder, *ending = strrchr(out + n_folder, '.');
  size_t n_stem = ending ? (size_t)(ending - out) - n_folder : strlen(out + n_folder);
  size_t n_name = strlen(name), n_data = strlen(".data");
  if (strncmp(name, out + n_folder, n_stem) == 0 && n_name >= n_stem + n_data &&
      strcmp(name + n_name - n_data, ".data") == 0)
    return true;
  const char *data = "";
  for (int at = 0; data && strcmp(data, name) != 0; at++) data = lac_model_data_file(model, at);
  return data != NULL;
}

/* Checks early that the names which lac_model_save will give external data files are free: the
 * original names if the output is in another folder and they are free there, else names derived
 * from the model's. */
static lac_status check_external_data_names_free(const outputs *plan, const output_file *out,
                                                 const lac_model *model, const char *input,
                                                 lac_error *err) {
  char copy[PATH_MAX], folder[PATH_MAX], path[PATH_MAX];
  const char *base = base_name(out->real), *dot = strrchr(base, '.'), *name;
  int n_folder = (int)(base - out->real);
  if (plan->force || !plan->writes_model || strlen(input) >= sizeof copy) return LAC_OK;
  strcpy(copy, input);
  if (!out->real[0] || !realpath(dirname(copy), folder)) return LAC_OK;
  bool keeps =
      (int)strlen(folder) + 1 != n_folder || strncmp(folder, out->real, (size_t)n_folder - 1) != 0;
  for (int at = 0; keeps && (name = lac_model_data_file(model, at)); at++) {
    keeps = !strchr(name, '/') && strcmp(name, base) != 0;
  }
  int n_stem = dot && dot != base ? (int)(dot - base) : (int)strlen(base);
  const char *ending = dot && strcmp(dot, ".data") == 0 ? "external.data" : "data";
  for (int at = 0; (name = lac_model_data_file(model, at)); at++) {
    int n = keeps     ? snprintf(path, sizeof path, "%.*s%s", n_folder, out->real, name)
            : at == 0 ? snprintf(path, sizeof path, "%.*s.%s", n_folder + n_stem, out->real, ending)
                      : snprintf(path, sizeof path, "%.*s.%d.%s", n_folder + n_stem, out->real, at,
                                 ending);
    if (n < 0 || (size_t)n >= sizeof path || access(path, F_OK) != 0) continue;
    return laci_fail(err, LAC_EXISTS,
                     "%.*s%s: it exists already, and the data of %s go there (--force replaces it)",
                     (int)(base_name(out->path) - out->path), out->path, base_name(path),
                     out->path);
  }
  return LAC_OK;
}

/* Refuses two models with external data in one folder, where their data files might get the same
 * names. */
static lac_status check_models_in_separate_folders(const outputs *plan, const lac_model *model,
                                                   lac_error *err) {
  const output_file *a = &plan->files[OUTPUT_MODEL], *b = &plan->files[OUTPUT_EXPORT];
  size_t n = (size_t)(base_name(a->real) - a->real);
  bool same_folder = a->real[0] && b->real[0] && n == (size_t)(base_name(b->real) - b->real) &&
                     strncmp(a->real, b->real, n) == 0;
  if (!same_folder || !lac_model_data_file(model, 0)) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT,
                   "%s and %s: the network has external data, so they need folders of their own",
                   a->path, b->path);
}

lac_status outputs_check_against_model(const outputs *plan, const lac_model *model,
                                       const char *input, lac_error *err) {
  if (is_standard_output(plan->files[OUTPUT_MODEL].path) && lac_model_data_file(model, 0)) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "standard output: the model has external data, which needs a file of its own");
  }
  for (int role = 0; role < OUTPUT_COUNT; role++) {
    const output_file *file = &plan->files[role];
    if (!file->real[0]) continue;
    if (lac_model_reads(model, file->real)) return fail_output_is_input(file, err);
    for (int other = OUTPUT_MODEL; other <= OUTPUT_EXPORT; other++) {
      const output_file *out = &plan->files[other];
      if (other == role || !out->real[0] || !is_external_data_name(out->real, file->real, model))
        continue;
      return laci_fail(err, LAC_EXISTS, "%s: this name is kept for the data of %s", file->path,
                       out->path);
    }
  }
  lac_status st = check_models_in_separate_folders(plan, model, err);
  for (int role = OUTPUT_MODEL; !st && role <= OUTPUT_EXPORT; role++) {
    st = check_external_data_names_free(plan, &plan->files[role], model, input, err);
  }
  return st;
}

lac_status outputs_check_against_data(const outputs *plan, const arguments *args, lac_error *err) {
  char data[PATH_MAX], target[PATH_MAX];
  struct stat found;
  const char *input = args->data ? args->data : args->calibration;
  if (!realpath(input, data)) {
    return laci_fail(err, errno == ENOENT ? LAC_NOT_FOUND : LAC_IO, "%s: %s", input,
                     strerror(errno));
  }
  size_t n = strlen(data);
  for (int role = 0; role < OUTPUT_COUNT; role++) {
    const output_file *file = &plan->files[role];
    if (!file->real[0] || stat(file->real, &found) != 0 || !realpath(file->real, target)) continue;
    bool inside = strncmp(target, data, n) == 0 && (n == 1 || target[n] == '/' || target[n] == 0);
    if (inside || is_same_file(&found, args->classes) || is_same_file(&found, args->pretrained)) {
      return laci_fail(err, LAC_EXISTS, "%s: it is an input, which is never replaced", file->path);
    }
  }
  return LAC_OK;
}

lac_status outputs_check_against_run_folder(const outputs *plan, const char *model_dir,
                                            lac_error *err) {
  char folder[PATH_MAX];
  output_file made = {.path = model_dir};
  if (!model_dir) return LAC_OK;
  /* a folder that does not exist contains no outputs, except for the exported network, whose name
   * differs from the run's files; other problems are reported when the folder is created */
  if (!realpath(model_dir, folder))
    return resolve_output_path(&made, NULL)
               ? LAC_OK
               : check_no_output_is_folder(plan, made.real, "model-dir", err);
  for (int role = 0; role < OUTPUT_COUNT; role++) {
    const output_file *file = &plan->files[role];
    bool taken = file->real[0] && laci_run_may_write_path(folder, file->real);
    taken |=
        plan->folder[0] && role == OUTPUT_EXPORT && laci_run_may_write_path(folder, plan->folder);
    if (!taken) continue;
    return laci_fail(err, LAC_EXISTS, "%s: the run in --model-dir %s has files of that name",
                     file->path, model_dir);
  }
  /* the file that --keep-best writes */
  int n = snprintf(made.real, sizeof made.real, "%s/" LACI_RUN_BEST, folder);
  return n < 0 || (size_t)n >= sizeof made.real
             ? LAC_OK
             : check_no_output_is_folder(plan, made.real, "model-dir", err);
}

/* ---- Writing ---- */

void outputs_begin_file_set(outputs *plan) {
  laci_file_set_begin(&plan->set);
  plan->begun = true;
}

lac_status outputs_write_json(outputs *plan, const char *text, lac_error *err) {
  const char *path = plan->files[OUTPUT_JSON].path;
  if (!path) return LAC_OK;
  if (!is_standard_output(path)) return laci_file_write(path, text, strlen(text), plan->force, err);
  return fputs(text, stdout) == EOF ? fail_errno(err, "standard output") : LAC_OK;
}

lac_status outputs_write_costs(outputs *plan, const char *text, lac_error *err) {
  const char *path = plan->files[OUTPUT_COSTS].path;
  if (!is_standard_output(path)) return laci_file_write(path, text, strlen(text), plan->force, err);
  return fputs(text, stdout) == EOF ? fail_errno(err, "standard output") : LAC_OK;
}

static lac_status write_report(outputs *plan, const lac_report *report, lac_error *err) {
  char *text = NULL;
  if (!plan->files[OUTPUT_JSON].path) return LAC_OK;
  lac_status st = plan->json ? LAC_OK : lac_report_json(report, &text, err);
  if (!st) st = outputs_write_json(plan, plan->json ? plan->json : text, err);
  lac_text_free(text);
  return st;
}

void outputs_add_event_to_page(outputs *plan, const lac_train_event *event) {
  if (plan->files[OUTPUT_PAGE].path) page_log_add(&plan->log, event);
}

lac_status outputs_write_page(outputs *plan, const char *report, const lac_model *model,
                              const lac_report *layers, lac_error *err) {
  const char *path = plan->files[OUTPUT_PAGE].path;
  char *log = NULL;
  if (!path) return LAC_OK;
  lac_status st = page_log_to_json(plan->log, &log, err);
  const lac_page page = {.report = report, .log = log, .model = model, .layers = layers};
  if (!st) st = page_write(&page, path, plan->force, err);
  laci_free(log);
  return st;
}

static lac_status write_to_stdout(const void *bytes, size_t size_bytes, void *context,
                                  lac_error *err) {
  (void)context;
  if (fwrite(bytes, 1, size_bytes, stdout) == size_bytes) return LAC_OK;
  return fail_errno(err, "standard output");
}

static lac_status save_exported_model(outputs *plan, lac_model *model, lac_error *err) {
  const char *path = plan->files[OUTPUT_EXPORT].path;
  if (!path) return LAC_OK;
  lac_status st = plan->folder[0] ? laci_file_set_make_folder(plan->folder, err) : LAC_OK;
  return st ? st : lac_model_save(model, path, plan->force, err);
}

lac_status outputs_write(outputs *plan, lac_model *model, const lac_report *report,
                         lac_error *err) {
  const char *plot = plan->files[OUTPUT_PLOT].path, *out = plan->files[OUTPUT_MODEL].path;
  const char *permutation = plan->files[OUTPUT_PERMUTATION].path;
  const char *trace = plan->files[OUTPUT_TRACE].path, *curve = plan->files[OUTPUT_CURVE].path;
  outputs_begin_file_set(plan);
  plan->has_data = lac_model_data_file(model, 0) != NULL;
  lac_status st = LAC_OK;
  lac_plot_options drawing = lac_plot_options_default();
  drawing.all_nodes = plan->all_nodes;
  drawing.details = plan->details;
  drawing.force = plan->force;
  if (plot) st = lac_plot_with(model, report, plot, &drawing, err);
  if (!st && curve) st = lac_calibration_plot(report, curve, plan->force, err);
  if (!st && permutation) st = lac_permutation_save(report, permutation, plan->force, err);
  if (!st && trace) {
    st = laci_file_write(trace, plan->trace, strlen(plan->trace), plan->force, err);
  }
  if (!st) st = save_exported_model(plan, model, err);
  if (!st && out && !is_standard_output(out)) st = lac_model_save(model, out, plan->force, err);
  if (!st) st = outputs_write_page(plan, plan->json, model, report, err);
  if (!st) st = write_report(plan, report, err);
  /* standard output is written last, since bytes written there cannot be removed after a failure */
  if (!st && is_standard_output(out)) st = lac_model_stream(model, write_to_stdout, NULL, err);
  return st;
}

/* ---- Renaming the finished files ---- */

lac_status outputs_flush(lac_error *err) {
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return LAC_OK;
  if (errno == 0) errno = EIO; /* an earlier write failed and errno was overwritten since */
  return fail_errno(err, "standard output");
}

lac_status outputs_rename_or_remove(outputs *plan, lac_status st, lac_error *err) {
  if (!st) st = outputs_flush(err);
  if (plan->begun) st = laci_file_set_end(&plan->set, st, err);
  plan->begun = false;
  page_log_destroy(plan->log);
  plan->log = NULL;
  return st;
}

void outputs_log(const outputs *plan) {
  for (int role = 0; role < OUTPUT_COUNT; role++) {
    const bool is_model = (role == OUTPUT_MODEL && plan->writes_model) || role == OUTPUT_EXPORT;
    if (plan->files[role].real[0])
      log_line("saved %s%s", plan->files[role].path,
               is_model && plan->has_data ? " and, next to it, the data file that it reads" : "");
  }
}

lac_status outputs_plan_and_load(const arguments *args, lac_options *options, outputs *plan,
                                 lac_model **model, lac_error *err) {
  lac_status st = input_read_prune_options(args, options, err);
  if (!st) st = outputs_plan_and_check(args, plan, err);
  if (!st) st = input_load_model(args, args->operand, model, err);
  if (!st && args->calibration && !input_calibration_is_synthetic(args))
    st = outputs_check_against_data(plan, args, err);
  return st ? st : outputs_check_against_model(plan, *model, args->operand, err);
}
