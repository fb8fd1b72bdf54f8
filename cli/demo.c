/* SPDX-License-Identifier: Apache-2.0
 * `lacuna demo`: the whole pipeline on images that are linked into the program, logged step by
 * step. It trains a network, prunes it with several methods, fine-tunes, checks and runs the
 * results. A table shows the accuracy after each step, and the text below it says which differences
 * are significant.
 *
 * It uses nothing but the public library, so it is also the example of how its functions fit
 * together. The network is too small to gain from a second thread: one thread trains it, so that
 * the result is the same for every --threads. Next: output_folder.h, by which the output files
 * appear together or not at all. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/binomial.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/plural.h"
#include "base/writer.h"
#include "output_folder.h"
#include "digits.h"
#include "lacuna/calibration.h"
#include "lacuna/eval.h"
#include "lacuna/mask.h"
#include "lacuna/prune.h"
#include "lacuna/train.h"
#include "layers.h"
#include "outputs.h"
#include "log.h"
#include "verbs.h"

enum { BATCH = 32, TRAINING_EPOCHS = 10, TUNING_EPOCHS = 3, TRAINING_THREADS = 1 };
/* Number of seeds per method. With four seeds each, all four of one method are better than all four
 * of the other by chance in only 2 of 70 cases. */
enum { SEEDS = 4, SAMPLES = 256 };
static const double TUNING_RATE = 0.02, DOUBT = 0.025; /* DOUBT: probability beyond each end of a
                                                          confidence interval */

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

/* One method of pruning, and the fine-tuning after it. */
typedef struct attempt {
  lac_model *model;
  lac_report *report;
  lac_eval_result pruned, tuned;
  lac_recovery_score scores[TUNING_EPOCHS + 1]; /* top-1 during fine-tuning, from step 0 on */
  int n_scores;
  int64_t steps;
} attempt;

typedef struct demo {
  const arguments *args;
  lac_options pruning;
  output_folder out;
  lac_eval_result dense;
  lac_eval_result again;                            /* result of pruning by magnitude and estimating
                                                       batch normalization's statistics again */
  lac_eval_result drawn;                            /* result of pruning without data, on synthetic
                                                       images */
  lac_eval_result in_order[SEEDS], permuted[SEEDS]; /* pruned with calibration, one result per seed:
                                                       in the file's order, and permuted */
  attempt magnitude, calibrated;
} demo;

/* ---- Steps of the pipeline ---- */

static lac_status write_digit_images(const demo *d, lac_error *err) {
  char path[PATH_MAX];
  lac_status st = output_folder_work_path(&d->out, IMAGES, path, err);
  if (st) return st;
  return laci_file_write(path, demo_images, (size_t)(demo_images_end - demo_images), false, err);
}

/* Returns the options that training and fine-tuning have in common. */
static lac_train_options make_training_options(const demo *d, const char *folder) {
  lac_train_options o = lac_train_options_default();
  o.run.threads = TRAINING_THREADS;
  o.seed = d->args->seed;
  o.recipe = "cifar";
  o.batch = BATCH;
  o.weight_decay = 5e-4;
  o.label_smoothing = 0.1;
  o.model_dir = folder;
  o.keep_checkpoints = 1;
  return o;
}

/* Moves the curves that a training drew in its folder to the output `name`. */
static lac_status save_curves(const demo *d, const char *folder, const char *name, lac_error *err) {
  char from[PATH_MAX], to[PATH_MAX];
  int n = snprintf(from, sizeof from, "%s/curves.svg", folder);
  if (n < 0 || (size_t)n >= sizeof from)
    return laci_fail(err, LAC_IO, "%s: the name is too long", folder);
  lac_status st = output_folder_work_path(&d->out, name, to, err);
  if (!st && rename(from, to) != 0) st = laci_fail(err, LAC_IO, "%s: %s", to, strerror(errno));
  return st;
}

static lac_status save_model(const demo *d, lac_model *model, const char *name, lac_error *err) {
  char path[PATH_MAX];
  lac_status st = output_folder_work_path(&d->out, name, path, err);
  return st ? st : lac_model_save(model, path, false, err);
}

static lac_status evaluate_network(const demo *d, const lac_model *model, lac_eval_result *result,
                                   lac_error *err) {
  lac_eval_options o = lac_eval_options_default();
  *result = (lac_eval_result)LAC_SIZED(lac_eval_result);
  o.run.threads = TRAINING_THREADS;
  o.batch = BATCH;
  return lac_eval(model, d->out.work, &o, result, err);
}

static lac_status train_network(demo *d, lac_error *err) {
  char folder[PATH_MAX];
  lac_model *model = NULL;
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_network_options network = {
      .size = sizeof(lac_network_options), .name = "digits", .seed = d->args->seed};
  lac_status st = output_folder_work_path(&d->out, "training", folder, err);
  lac_train_options o = make_training_options(d, folder);
  o.epochs = TRAINING_EPOCHS;
  if (!st) st = lac_network_create(&network, &model, err);
  if (!st) st = lac_train(model, d->out.work, NULL, &o, &result, err);
  if (!st) st = evaluate_network(d, model, &d->dense, err);
  if (!st) st = save_model(d, model, DENSE, err);
  if (!st) st = save_curves(d, folder, CURVES, err);
  lac_model_destroy(model);
  return st;
}

static lac_status load_model(const demo *d, const char *name, lac_model **model, lac_error *err) {
  char path[PATH_MAX];
  lac_status st = output_folder_work_path(&d->out, name, path, err);
  return st ? st : lac_model_load(path, NULL, model, err);
}

static void add_score(attempt *a, int64_t step, double top1) {
  if (a->n_scores > TUNING_EPOCHS) return;
  a->scores[a->n_scores++] = (lac_recovery_score){step, top1};
}

static void record_train_event(const lac_train_event *event, void *context) {
  attempt *a = context;
  a->steps = event->steps;
  if (event->kind == LAC_TRAIN_EVALUATED) add_score(a, event->step, event->top1);
}

/* Fine-tunes the pruned network, in which zeros stay zero. */
static lac_status fine_tune(const demo *d, attempt *a, const char *name, lac_error *err) {
  char folder[PATH_MAX];
  lac_mask *mask = NULL;
  lac_train_result result = LAC_SIZED(lac_train_result);
  lac_status st = output_folder_work_path(&d->out, name, folder, err);
  lac_train_options o = make_training_options(d, folder);
  o.epochs = TUNING_EPOCHS;
  o.rate = TUNING_RATE;
  o.dense_top1 = d->dense.top1;
  o.listener = record_train_event;
  o.context = a;
  add_score(a, 0, a->pruned.top1);
  if (!st) st = lac_mask_from_model(a->model, &d->pruning, &mask, err);
  if (!st) st = lac_train(a->model, d->out.work, mask, &o, &result, err);
  if (!st) st = evaluate_network(d, a->model, &a->tuned, err);
  lac_mask_destroy(mask);
  return st;
}

/* Prunes the dense network with these options, and evaluates it. */
static lac_status prune_network(const demo *d, const lac_options *how, attempt *a, lac_error *err) {
  lac_status st = load_model(d, DENSE, &a->model, err);
  if (!st) st = lac_prune(a->model, how, &a->report, err);
  if (!st && a->report->summary.interrupted) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  return st ? st : evaluate_network(d, a->model, &a->pruned, err);
}

static void clear_attempt(attempt *a) {
  lac_report_destroy(a->report);
  lac_model_destroy(a->model);
  *a = (attempt){.model = NULL};
}

static lac_calibration make_calibration_options(const demo *d) {
  lac_calibration c = lac_calibration_default();
  c.data = d->out.work;
  c.samples = SAMPLES;
  return c;
}

/* Prunes by magnitude alone; then again with the statistics of batch normalization estimated anew,
 * since wrong statistics cause most of the loss. */
static lac_status prune_by_magnitude(demo *d, lac_error *err) {
  lac_options how = d->pruning;
  lac_calibration c = make_calibration_options(d);
  attempt again = {.model = NULL};
  how.permute = false;
  lac_status st = prune_network(d, &how, &d->magnitude, err);
  c.solve = false;
  c.recalibrate = true;
  how.score = "magnitude";
  how.calibration = &c;
  if (!st) st = prune_network(d, &how, &again, err);
  d->again = again.pruned;
  clear_attempt(&again);
  if (!st)
    log_line(
        "  top-1 %.2f%%, with its statistics estimated again %.2f%%; now trained on, its zeros "
        "held",
        d->magnitude.pruned.top1, d->again.top1);
  return st ? st : fine_tune(d, &d->magnitude, "magnitude", err);
}

/* Prunes with masks and weights fitted to images that the program draws: no data are read. */
static lac_status prune_without_data(demo *d, lac_error *err) {
  lac_options how = d->pruning;
  lac_calibration c = lac_calibration_default();
  attempt drawn = {.model = NULL};
  c.synthetic = true;
  c.samples = SAMPLES;
  how.calibration = &c;
  lac_status st = prune_network(d, &how, &drawn, err);
  d->drawn = drawn.pruned;
  clear_attempt(&drawn);
  if (!st) log_line("  top-1 %.2f%%", d->drawn.top1);
  return st;
}

/* Prunes with masks and weights fitted to samples, once per seed on different samples. */
static lac_status prune_calibrated(demo *d, lac_error *err) {
  lac_calibration c = make_calibration_options(d);
  lac_options how = d->pruning;
  how.calibration = &c;
  lac_status st = LAC_OK;
  for (int k = 0; k < SEEDS && !st; k++) {
    attempt plain = {.model = NULL}, permuted = {.model = NULL};
    how.seed = d->args->seed + (uint64_t)k;
    how.permute = false;
    st = prune_network(d, &how, &plain, err);
    how.permute = true;
    if (!st) st = prune_network(d, &how, &permuted, err);
    d->in_order[k] = plain.pruned;
    d->permuted[k] = permuted.pruned;
    clear_attempt(&plain);
    if (k == 0) d->calibrated = permuted;
    else clear_attempt(&permuted);
  }
  if (!st) log_line("  top-1 %.2f%%; now trained on, its zeros held", d->calibrated.pruned.top1);
  return st ? st : fine_tune(d, &d->calibrated, "calibrated", err);
}

/* Computes the confidence interval of the top-1 accuracy, in percent, from the scores of the test
 * images. */
static void compute_confidence_interval(const lac_eval_result *r, double ends[2]) {
  int64_t right = (int64_t)llround(r->top1 * (double)r->images / 100);
  ends[0] = 100 * laci_binomial_lower_bound(right, r->images, DOUBT);
  ends[1] = 100 * laci_binomial_upper_bound(right, r->images, DOUBT);
}

/* Draws the recovery of top-1 of both methods (dense, pruned, fine-tuned) in one diagram, whose
 * text gives the confidence interval. */
static lac_status draw_recovery(const demo *d, lac_error *err) {
  char path[PATH_MAX], data[160];
  double ends[2];
  compute_confidence_interval(&d->dense, ends);
  (void)snprintf(
      data, sizeof data,
      "top-1 of 360 digits that were not learned; 95 %% interval of the dense network's: "
      "%.1f to %.1f",
      ends[0], ends[1]);
  const lac_recovery_run runs[] = {
      {"2:4, calibrated and permuted", d->calibrated.scores, d->calibrated.n_scores},
      {"2:4 by magnitude", d->magnitude.scores, d->magnitude.n_scores}};
  lac_recovery recovery = {.size = sizeof(lac_recovery),
                           .title = "digits: dense \u2192 pruned 2:4 \u2192 fine-tuned",
                           .data = data,
                           .dense_top1 = d->dense.top1,
                           .steps_per_epoch = (double)d->calibrated.steps / TUNING_EPOCHS,
                           .runs = runs,
                           .n_runs = 2};
  lac_status st = output_folder_work_path(&d->out, TUNING_CURVES, path, err);
  return st ? st : lac_recovery_plot(&recovery, path, false, err);
}

static lac_status run_demo_steps(demo *d, lac_error *err) {
  char drawing[PATH_MAX];
  lac_status st = output_folder_work_path(&d->out, DRAWING, drawing, err);
  if (!st) st = write_digit_images(d, err);
  if (st) return st;
  log_line("a small residual network learns handwritten digits: %d epochs", TRAINING_EPOCHS);
  st = train_network(d, err);
  if (st) return st;
  log_line("  top-1 %.2f%% of digits that it has not seen", d->dense.top1);
  log_line("pruned 2:4 by the magnitude of its weights");
  st = prune_by_magnitude(d, err);
  if (st) return st;
  log_line("pruned 2:4 without data: a look at %d images that the program draws", SAMPLES);
  st = prune_without_data(d, err);
  if (st) return st;
  log_line(
      "pruned 2:4 with a look at %d images, its channels in their order and permuted; the order "
      "verified",
      SAMPLES);
  st = prune_calibrated(d, err);
  if (!st) st = save_model(d, d->calibrated.model, SPARSE, err);
  if (!st) st = lac_plot(d->calibrated.model, d->calibrated.report, drawing, false, NULL, err);
  return st ? st : draw_recovery(d, err);
}

/* ---- Results ---- */

/* Reads the written network as any other program would, checks every layer, and runs it. */
static lac_status check_and_print_result(const demo *d, lac_error *err) {
  lac_model *model = NULL;
  lac_report *report = NULL;
  lac_eval_result found = {.size = sizeof(lac_eval_result), .images = 0};
  lac_status st = load_model(d, SPARSE, &model, err);
  if (!st) st = lac_check(model, NULL, &d->pruning, &report, err);
  if (!st) st = layers_print_sparsity(report, stdout, err);
  if (!st) {
    layers_print_kept_magnitude(d->calibrated.report, stdout);
    layers_print_pruned(report, stdout);
    layers_print_permuted(d->calibrated.report, stdout);
    if (report->summary.pruned < report->summary.eligible) {
      st = laci_fail(err, LAC_BAD_VALUE, SPARSE ": %d of %d layer%s that should hold 2:4 do not",
                     report->summary.eligible - report->summary.pruned, report->summary.eligible,
                     laci_plural(report->summary.eligible));
    }
  }
  if (!st) st = evaluate_network(d, model, &found, err);
  if (!st) printf("read back and run: top-1 %.2f%%\n", found.top1);
  lac_report_destroy(report);
  lac_model_destroy(model);
  return st;
}

static void print_accuracy_row(const char *name, const lac_eval_result *r) {
  double ends[2];
  compute_confidence_interval(r, ends);
  printf("%-42s%6.2f%%  %6.2f-%.2f%%  %7.4f\n", name, r->top1, ends[0], ends[1], r->loss);
}

static void find_loss_range(const lac_eval_result of[SEEDS], double *least, double *most) {
  *least = *most = of[0].loss;
  for (int k = 1; k < SEEDS; k++) {
    *least = fmin(*least, of[k].loss);
    *most = fmax(*most, of[k].loss);
  }
}

/* Prints top-1 of the first seed, and the range of the loss over all seeds. */
static void print_accuracy_of_seeds(const char *name, const lac_eval_result of[SEEDS]) {
  double ends[2], least, most;
  compute_confidence_interval(&of[0], ends);
  find_loss_range(of, &least, &most);
  printf("%-42s%6.2f%%  %6.2f-%.2f%%  %7.4f (%.4f-%.4f)\n", name, of[0].top1, ends[0], ends[1],
         of[0].loss, least, most);
}

/* Is the confidence interval of a's top-1 completely below that of b? */
static bool is_accuracy_below(const lac_eval_result *a, const lac_eval_result *b) {
  double of_a[2], of_b[2];
  compute_confidence_interval(a, of_a);
  compute_confidence_interval(b, of_b);
  return of_a[1] < of_b[0];
}

/* Prints which differences between the methods are significant, and which are not. */
static void print_differences(const demo *d) {
  double least[2], most[2];
  find_loss_range(d->in_order, &least[0], &most[0]);
  find_loss_range(d->permuted, &least[1], &most[1]);
  printf("\n%" PRId64 " images: top-1 differs by chance within these 95 %% intervals.\n",
         d->dense.images);
  printf("By magnitude, top-1 falls by %s.\n", is_accuracy_below(&d->magnitude.pruned, &d->dense)
                                                   ? "more than that"
                                                   : "no more than that");
  printf("Calibrated, it falls by %s.\n",
         is_accuracy_below(&d->permuted[0], &d->dense) ? "more than that" : "no more than that");
  if (most[1] < least[0])
    printf("Permuted, the loss is lower with every seed (%d of %d).\n", SEEDS, SEEDS);
  else if (most[0] < least[1])
    printf("Permuted, the loss is higher with every seed (%d of %d).\n", SEEDS, SEEDS);
  else
    printf("Permuted or not: the losses of %d seeds overlap, so no difference is shown.\n", SEEDS);
}

static void print_accuracies(const demo *d) {
  printf(
      "\nnetwork                                    top-1    95 %% interval     loss (%d seeds)\n",
      SEEDS);
  print_accuracy_row("dense", &d->dense);
  print_accuracy_row("2:4 by magnitude, as pruned", &d->magnitude.pruned);
  print_accuracy_row("  its statistics estimated again", &d->again);
  print_accuracy_row("  trained on", &d->magnitude.tuned);
  print_accuracy_row("2:4 without data, on synthetic images", &d->drawn);
  print_accuracy_of_seeds("2:4 calibrated, channels in their order", d->in_order);
  print_accuracy_of_seeds("2:4 calibrated, channels permuted", d->permuted);
  print_accuracy_row("  trained on", &d->calibrated.tuned);
  print_differences(d);
}

static void print_files(const demo *d) {
  printf("\nin %s:\n", d->out.folder);
  printf("  " IMAGES "     1437 images for training, 360 for the test\n");
  printf("  " DENSE "       the dense network\n");
  printf("  " SPARSE "  permuted where that gains, calibrated, fine-tuned\n");
  printf("  " DRAWING "        a drawing of its operations and of what was done to them\n");
  printf("  " CURVES "        loss and accuracy while it was trained\n");
  printf("  " TUNING_CURVES "      what pruning took and fine-tuning brought back\n");
}

/* Flushes standard output, and then moves the files into place: if printing failed, there are no
 * files. */
static lac_status print_and_place_files(demo *d, lac_error *err) {
  lac_status st = check_and_print_result(d, err);
  if (st) return st;
  print_accuracies(d);
  print_files(d);
  st = outputs_flush(err);
  return st ? st : output_folder_move_files(&d->out, err);
}

exit_code verb_demo(const arguments *args, lac_error *err) {
  demo d = {.args = args, .pruning = lac_options_default()};
  double begin = laci_clock_seconds();
  d.pruning.threads = args->threads;
  d.pruning.seed = args->seed;
  lac_status st = output_folder_open(&d.out, args->operand ? args->operand : "lacuna-demo", files,
                                     (int)(sizeof files / sizeof files[0]), args->force, err);
  if (!st) st = run_demo_steps(&d, err);
  if (!st) st = print_and_place_files(&d, err);
  if (st == LAC_INTERRUPTED) st = laci_fail(err, st, "interrupted: nothing was kept");
  if (!st) log_line("%.1f s", laci_clock_seconds() - begin);
  output_folder_close(&d.out, st, err);
  clear_attempt(&d.calibrated);
  clear_attempt(&d.magnitude);
  return exit_code_of_status(st);
}
