/* SPDX-License-Identifier: Apache-2.0
 * `lacuna demo`: the whole road on the network inside the program, told as a story on standard
 * output. It uses nothing but the public library, so it is also the example of how the pieces fit.
 * */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "digits.h"
#include "lacuna/prune.h"
#include "lacuna/run.h"
#include "layers.h"
#include "story.h"
#include "verbs.h"

enum { BATCH = 60 };

/* One pass over the road. */
typedef struct attempt {
  lac_model *model;
  lac_report *report; /* NULL: the dense network */
  double accuracy;    /* percent */
} attempt;

static int largest(const float *scores, int n) {
  int best = 0;
  for (int i = 1; i < n; i++) {
    if (scores[i] > scores[best]) best = i;
  }
  return best;
}

/* Percent of the test digits that the model names rightly. */
static lac_status evaluate(const lac_model *model, const digits *images, int threads,
                           double *accuracy, lac_error *err) {
  int n_right = 0;
  for (int first = DIGITS_TRAINING; first < images->n; first += BATCH) {
    int n = images->n - first < BATCH ? images->n - first : BATCH;
    lac_run_tensor input = {.rank = 4,
                            .shape = {n, 1, DIGITS_SIDE, DIGITS_SIDE},
                            .values = images->pixels + (size_t)first * DIGITS_PIXELS};
    lac_run_result *result = NULL;
    lac_status st = lac_run(model, &input, 1, threads, &result, err);
    if (st) return st;
    for (int i = 0; i < n; i++) {
      const float *scores = result->outputs[0].values + (size_t)i * DIGITS_CLASSES;
      n_right += largest(scores, DIGITS_CLASSES) == images->labels[first + i];
    }
    lac_run_result_destroy(result);
    laci_progress("evaluate", first + n - DIGITS_TRAINING, images->n - DIGITS_TRAINING);
  }
  *accuracy = 100.0 * n_right / (images->n - DIGITS_TRAINING);
  return LAC_OK;
}

/* Loads the network afresh, prunes it if options are given, and evaluates it. */
static lac_status try(attempt *run, const lac_options *options, const digits *images, int threads,
                      lac_error *err) {
  size_t size_bytes = 0;
  const void *bytes = digits_model(&size_bytes);
  lac_status st = lac_model_load_memory(bytes, size_bytes, NULL, &run->model, err);
  if (!st && options) st = lac_prune(run->model, options, &run->report, err);
  if (!st) st = evaluate(run->model, images, threads, &run->accuracy, err);
  return st;
}

static void attempt_clear(attempt *run) {
  lac_report_destroy(run->report);
  lac_model_destroy(run->model);
}

static double kept_percent(const lac_report *report) {
  double kept = 0, total = 0;
  for (int i = 0; i < report->n_layers; i++) {
    if (!report->layers[i].pruned) continue;
    kept += report->layers[i].kept;
    total += report->layers[i].total;
  }
  return total > 0 ? 100 * kept / total : 0;
}

static lac_status file_in(const char *folder, const char *name, char path[PATH_MAX],
                          lac_error *err) {
  int n = snprintf(path, PATH_MAX, "%s/%s", folder, name);
  return n > 0 && n < PATH_MAX ? LAC_OK
                               : laci_fail(err, LAC_IO, "%s: the name is too long", folder);
}

/* Makes the folder if need be (*leftover, else -1) and looks whether the files may be written,
 * before any work. */
static lac_status prepare_folder(const char *folder, bool force, int *leftover, lac_error *err) {
  static const char *const names[] = {"digits.onnx", "digits-2to4.onnx", "digits.svg"};
  char path[PATH_MAX];
  struct stat found;
  if (mkdir(folder, 0777) == 0) *leftover = laci_leftover_add(folder);
  else if (errno != EEXIST) return laci_fail(err, LAC_IO, "%s: %s", folder, strerror(errno));
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    lac_status st = file_in(folder, names[i], path, err);
    if (st) return st;
    if (!force && stat(path, &found) == 0) {
      return laci_fail(err, LAC_EXISTS, "%s: it exists already (--force replaces it)", path);
    }
  }
  return LAC_OK;
}

static lac_status save(const char *folder, const attempt *dense, const attempt *sparse, bool force,
                       lac_error *err) {
  char path[PATH_MAX];
  lac_status st = file_in(folder, "digits.onnx", path, err);
  if (!st) st = lac_model_save(dense->model, path, force, err);
  if (!st) st = file_in(folder, "digits-2to4.onnx", path, err);
  if (!st) st = lac_model_save(sparse->model, path, force, err);
  if (!st) st = file_in(folder, "digits.svg", path, err);
  if (!st) st = lac_plot(sparse->model, sparse->report, path, force, err);
  return st;
}

static void print_accuracies(const attempt *dense, const attempt *plain, const attempt *permuted) {
  printf("network                        accuracy  weight magnitude kept\n");
  printf("dense                          %7.2f%%\n", dense->accuracy);
  printf("2:4, channels as they were     %7.2f%%  %20.2f%%\n", plain->accuracy,
         kept_percent(plain->report));
  printf("2:4, channels permuted first   %7.2f%%  %20.2f%%\n", permuted->accuracy,
         kept_percent(permuted->report));
}

static lac_status print_check(const attempt *permuted, const lac_options *options, lac_error *err) {
  lac_report *report = NULL;
  lac_status st = lac_check(permuted->model, NULL, options, &report, err);
  if (!st) st = layers_print_sparsity(report, stdout, err);
  if (!st) {
    layers_print_figures(permuted->report, stdout);
    layers_print_pruned(report, stdout);
    layers_print_permuted(permuted->report, stdout);
  }
  lac_report_destroy(report);
  return st;
}

exit_code verb_demo(const arguments *args, lac_error *err) {
  const char *folder = args->operand ? args->operand : "lacuna-demo";
  double begin = laci_clock_seconds();
  attempt dense = {0}, plain = {0}, permuted = {0};
  digits images = {0};
  lac_options options = lac_options_default();
  options.threads = args->threads;
  options.seed = args->seed;
  lac_options as_it_is = options;
  as_it_is.permute = false;
  int made = -1;
  lac_status st = prepare_folder(folder, args->force, &made, err);
  if (!st) st = digits_init(&images, err);
  if (st) goto out;
  story_tell("a small residual network names %d handwritten digits it has not seen",
             images.n - DIGITS_TRAINING);
  st = try(&dense, NULL, &images, args->threads, err);
  story_tell("the same, pruned 2:4 with its channels as they are");
  if (!st) st = try(&plain, &as_it_is, &images, args->threads, err);
  story_tell("the same, with channels permuted so that pruning takes less, and the order proven");
  if (!st) st = try(&permuted, &options, &images, args->threads, err);
  if (!st) st = save(folder, &dense, &permuted, args->force, err);
  if (st) goto out;
  st = print_check(&permuted, &options, err);
  if (st) goto out;
  printf("\n");
  print_accuracies(&dense, &plain, &permuted);
  printf("\nin %s: digits.onnx, digits-2to4.onnx, and digits.svg, a drawing of what was done\n",
         folder);
  story_tell("%.1f s", laci_clock_seconds() - begin);
out:
  if (st && made >= 0) (void)rmdir(folder);
  laci_leftover_drop(made);
  digits_clear(&images);
  attempt_clear(&permuted);
  attempt_clear(&plain);
  attempt_clear(&dense);
  return exit_code_of(st);
}
