/* SPDX-License-Identifier: Apache-2.0
 * `lacuna demo`: the whole pipeline on the images inside the program, logged step by step. A
 * network is trained, pruned twice, fine-tuned, checked and run; a table says what each step costs.
 *
 * It uses nothing but the public library, so it is also the example of how the pieces fit. So small
 * a network gains nothing from a second thread: it is trained by one, and the result is the same
 * for every --threads. Next: bundle.h, how its files appear all together or not at all. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/plural.h"
#include "base/writer.h"
#include "bundle.h"
#include "digits.h"
#include "lacuna/eval.h"
#include "lacuna/prune.h"
#include "lacuna/train.h"
#include "layers.h"
#include "outputs.h"
#include "log.h"
#include "verbs.h"

enum { BATCH = 32, TRAINING_EPOCHS = 20, TUNING_EPOCHS = 4, TRAINING_THREADS = 1 };
static const double TUNING_RATE = 0.02;

#define IMAGES "digits.csv.gz"
#define DENSE "digits.onnx"
#define SPARSE "digits-2to4.onnx"
#ifdef LAC_WITHOUT_GRAPHVIZ
#define DRAWING "digits.dot"
#else
#define DRAWING "digits.svg"
#endif
#define CURVES "curves.svg"
#define TUNING_CURVES "finetune.svg"
static const char *const files[] = {IMAGES, DENSE, SPARSE, DRAWING, CURVES, TUNING_CURVES};

/* One way of pruning. */
typedef struct attempt {
  lac_model *model;
  lac_report *report;
  double one_shot, tuned;                       /* top-1, percent: just pruned, and trained on */
  lac_recovery_score scores[TUNING_EPOCHS + 1]; /* on the way, from step 0 on */
  int n_scores;
  int64_t steps;
} attempt;

typedef struct demo {
  const arguments *args;
  lac_options pruning;
  bundle out;
  double dense; /* top-1, percent */
  attempt plain, permuted;
} demo;

/* ---- Steps of the pipeline ---- */

static lac_status write_images(const demo *d, lac_error *err) {
  char path[PATH_MAX];
  lac_status st = bundle_path(&d->out, IMAGES, path, err);
  if (st) return st;
  return laci_file_write(path, demo_images, (size_t)(demo_images_end - demo_images), false, err);
}

/* What training and fine-tuning share. */
static lac_train_options training_options(const demo *d, const char *folder) {
  lac_train_options o = lac_train_options_default();
  o.threads = TRAINING_THREADS;
  o.seed = d->args->seed;
  o.recipe = "cifar";
  o.batch = BATCH;
  o.weight_decay = 5e-4;
  o.label_smoothing = 0.1;
  o.model_dir = folder;
  o.keep_checkpoints = 1;
  return o;
}

/* The curves that a training drew in its folder get a name of their own. */
static lac_status keep_curves(const demo *d, const char *folder, const char *name, lac_error *err) {
  char from[PATH_MAX], to[PATH_MAX];
  int n = snprintf(from, sizeof from, "%s/curves.svg", folder);
  if (n < 0 || (size_t)n >= sizeof from)
    return laci_fail(err, LAC_IO, "%s: the name is too long", folder);
  lac_status st = bundle_path(&d->out, name, to, err);
  if (!st && rename(from, to) != 0) st = laci_fail(err, LAC_IO, "%s: %s", to, strerror(errno));
  return st;
}

static lac_status save(const demo *d, lac_model *model, const char *name, lac_error *err) {
  char path[PATH_MAX];
  lac_status st = bundle_path(&d->out, name, path, err);
  return st ? st : lac_model_save(model, path, false, err);
}

static lac_status train(demo *d, lac_error *err) {
  char folder[PATH_MAX];
  lac_model *model = NULL;
  lac_train_result result;
  lac_network_options network = {.name = "digits", .seed = d->args->seed};
  lac_status st = bundle_path(&d->out, "training", folder, err);
  lac_train_options o = training_options(d, folder);
  o.epochs = TRAINING_EPOCHS;
  if (!st) st = lac_network_create(&network, &model, err);
  if (!st) st = lac_train(model, d->out.work, NULL, &o, &result, err);
  if (!st) d->dense = result.top1;
  if (!st) st = save(d, model, DENSE, err);
  if (!st) st = keep_curves(d, folder, CURVES, err);
  lac_model_destroy(model);
  return st;
}

static lac_status load(const demo *d, const char *name, lac_model **model, lac_error *err) {
  char path[PATH_MAX];
  lac_status st = bundle_path(&d->out, name, path, err);
  return st ? st : lac_model_load(path, model, err);
}

static lac_status evaluate(const demo *d, const lac_model *model, double *top1, lac_error *err) {
  lac_eval_options o = lac_eval_options_default();
  lac_eval_result result;
  o.threads = TRAINING_THREADS;
  o.batch = BATCH;
  lac_status st = lac_eval(model, d->out.work, &o, &result, err);
  if (!st) *top1 = result.top1;
  return st;
}

static void note_score(attempt *a, int64_t step, double top1) {
  if (a->n_scores > TUNING_EPOCHS) return;
  a->scores[a->n_scores++] = (lac_recovery_score){step, top1};
}

static void on_event(const lac_train_event *event, void *context) {
  attempt *a = context;
  a->steps = event->steps;
  if (event->kind == LAC_TRAIN_EVALUATED) note_score(a, event->step, event->top1);
}

/* Trains on with the zeros of the pruning held. */
static lac_status tune(const demo *d, attempt *a, const char *folder, lac_error *err) {
  lac_mask *mask = NULL;
  lac_train_result result;
  lac_train_options o = training_options(d, folder);
  o.epochs = TUNING_EPOCHS;
  o.rate = TUNING_RATE;
  o.dense_top1 = d->dense;
  o.listener = on_event;
  o.context = a;
  note_score(a, 0, a->one_shot);
  lac_status st = lac_mask_from_model(a->model, &d->pruning, &mask, err);
  if (!st) st = lac_train(a->model, d->out.work, mask, &o, &result, err);
  if (!st) a->tuned = result.top1;
  lac_mask_destroy(mask);
  return st;
}

static lac_status prune_and_tune(const demo *d, bool permute, attempt *a, const char *folder,
                                 lac_error *err) {
  lac_options pruning = d->pruning;
  pruning.permute = permute;
  lac_status st = load(d, DENSE, &a->model, err);
  if (!st) st = lac_prune(a->model, &pruning, &a->report, err);
  if (!st && a->report->summary.interrupted) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  if (!st) st = evaluate(d, a->model, &a->one_shot, err);
  if (!st) log_line("  top-1 %.2f%%; now trained on, its zeros held", a->one_shot);
  return st ? st : tune(d, a, folder, err);
}

/* Dense, pruned, fine-tuned: both ways in one picture. */
static lac_status draw_recovery(const demo *d, lac_error *err) {
  char path[PATH_MAX];
  const lac_recovery_run runs[] = {
      {"2:4, channels permuted first", d->permuted.scores, d->permuted.n_scores},
      {"2:4, channels as they were", d->plain.scores, d->plain.n_scores}};
  lac_recovery recovery = {
      .title = "digits: dense \u2192 pruned 2:4 \u2192 fine-tuned",
      .data = "top-1 of 360 digits that were not learned; step 0: pruned, not yet trained on",
      .dense_top1 = d->dense,
      .steps_per_epoch = (double)d->permuted.steps / TUNING_EPOCHS,
      .runs = runs,
      .n_runs = 2};
  lac_status st = bundle_path(&d->out, TUNING_CURVES, path, err);
  return st ? st : lac_recovery_plot(&recovery, path, false, err);
}

static lac_status walk(demo *d, lac_error *err) {
  char plain[PATH_MAX], permuted[PATH_MAX], drawing[PATH_MAX];
  lac_status st = bundle_path(&d->out, "plain", plain, err);
  if (!st) st = bundle_path(&d->out, "permuted", permuted, err);
  if (!st) st = bundle_path(&d->out, DRAWING, drawing, err);
  if (!st) st = write_images(d, err);
  if (st) return st;
  log_line("a small residual network learns handwritten digits: %d epochs", TRAINING_EPOCHS);
  st = train(d, err);
  if (st) return st;
  log_line("  top-1 %.2f%% of digits that it has not seen", d->dense);
  log_line("pruned 2:4 with its channels as they are");
  st = prune_and_tune(d, false, &d->plain, plain, err);
  if (st) return st;
  log_line("pruned 2:4 with channels permuted so that it takes less, and the order verified");
  st = prune_and_tune(d, true, &d->permuted, permuted, err);
  if (!st) st = save(d, d->permuted.model, SPARSE, err);
  if (!st) st = lac_plot(d->permuted.model, d->permuted.report, drawing, false, err);
  return st ? st : draw_recovery(d, err);
}

/* ---- What came of it ---- */

/* As any other program would: reads the file that was written, looks at every layer, runs it. */
static lac_status print_check(const demo *d, lac_error *err) {
  lac_model *model = NULL;
  lac_report *report = NULL;
  double top1 = 0;
  lac_status st = load(d, SPARSE, &model, err);
  if (!st) st = lac_check(model, NULL, &d->pruning, &report, err);
  if (!st) st = layers_print_sparsity(report, stdout, err);
  if (!st) {
    layers_print_figures(d->permuted.report, stdout);
    layers_print_pruned(report, stdout);
    layers_print_permuted(d->permuted.report, stdout);
    if (report->summary.pruned < report->summary.eligible) {
      st = laci_fail(err, LAC_BAD_VALUE, SPARSE ": %d of %d layer%s that should hold 2:4 do not",
                     report->summary.eligible - report->summary.pruned, report->summary.eligible,
                     laci_plural(report->summary.eligible));
    }
  }
  if (!st) st = evaluate(d, model, &top1, err);
  if (!st) printf("read back and run: top-1 %.2f%%\n", top1);
  lac_report_destroy(report);
  lac_model_destroy(model);
  return st;
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

static void print_attempt(const char *name, const attempt *a) {
  printf("%-30s%7.2f%%   %7.2f%%  %20.2f%%\n", name, a->one_shot, a->tuned,
         kept_percent(a->report));
}

static void print_accuracies(const demo *d) {
  printf("\nnetwork                          top-1  fine-tuned  weight magnitude kept\n");
  printf("%-30s%7.2f%%\n", "dense", d->dense);
  print_attempt("2:4, channels as they were", &d->plain);
  print_attempt("2:4, channels permuted first", &d->permuted);
}

static void print_files(const demo *d) {
  printf("\nin %s:\n", d->out.folder);
  printf("  " IMAGES "     1437 images for training, 360 for the test\n");
  printf("  " DENSE "       the dense network\n");
  printf("  " SPARSE "  permuted, pruned, fine-tuned\n");
  printf("  " DRAWING "        a drawing of its operations and of what was done to them\n");
  printf("  " CURVES "        loss and accuracy while it was trained\n");
  printf("  " TUNING_CURVES "      what pruning took and fine-tuning brought back, both ways\n");
}

/* The result is out before the files get their places: where it cannot be, there are none. */
static lac_status finish(demo *d, lac_error *err) {
  lac_status st = print_check(d, err);
  if (st) return st;
  print_accuracies(d);
  print_files(d);
  st = outputs_flush(err);
  return st ? st : bundle_place(&d->out, err);
}

static void attempt_clear(attempt *a) {
  lac_report_destroy(a->report);
  lac_model_destroy(a->model);
}

exit_code verb_demo(const arguments *args, lac_error *err) {
  demo d = {.args = args, .pruning = lac_options_default()};
  double begin = laci_clock_seconds();
  d.pruning.threads = args->threads;
  d.pruning.seed = args->seed;
  lac_status st = bundle_open(&d.out, args->operand ? args->operand : "lacuna-demo", files,
                              (int)(sizeof files / sizeof files[0]), args->force, err);
  if (!st) st = walk(&d, err);
  if (!st) st = finish(&d, err);
  if (st == LAC_INTERRUPTED) st = laci_fail(err, st, "interrupted: nothing was kept");
  if (!st) log_line("%.1f s", laci_clock_seconds() - begin);
  bundle_close(&d.out, st, err);
  attempt_clear(&d.permuted);
  attempt_clear(&d.plain);
  return exit_code_of(st);
}
