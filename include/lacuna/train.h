/* SPDX-License-Identifier: Apache-2.0
 * Training: a network on labelled images, from fresh weights or from those of a file, its zeros
 * held where masks say so (mask.h).
 *
 *     lac_train_options o = lac_train_options_default();
 *     lac_mask_from_model(model, &pruning, &mask, &err);             after lac_prune; or no mask
 *     lac_train(model, "data", mask, &o, &result, &err);             the model's weights change
 *     lac_model_save(model, "tuned.onnx", false, &err);
 *
 * Threads. The model belongs to the call; masks are only read, and several trainings may share
 * them. A listener is called on the thread that called. */
#ifndef LACUNA_TRAIN_H
#define LACUNA_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/mask.h"
#include "lacuna/model.h"
#include "lacuna/report.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_process_group lac_process_group; /* lacuna/process_group.h */

/* ---- Fresh networks ---- */

/** Which network is built. */
typedef struct lac_network_options {
  const char *name;   /* "resnet50", "cifar-resnet20", "digits" ...: lac_network_names */
  int classes;        /* 0: 1000, or 10 for CIFAR's and digits */
  int image_size;     /* pixels a side, 8..4096; 0: 224, 32 for CIFAR's, 8 for digits */
  bool conv_shortcut; /* CIFAR's: convolutions where the size changes, not channels of zeros */
  uint64_t seed;      /* of the weights */
} lac_network_options;

/** The names of all networks that lac_network_create knows; views that stay. */
LAC_API const char *const *lac_network_names(int *n);

/** A network with fresh weights, which lac_model_save writes as ONNX. Fails LAC_NOT_FOUND for
 * another name, LAC_BAD_ARGUMENT, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_network_create(const lac_network_options *options,
                                                     lac_model **model, lac_error *err);

/* ---- Training ---- */

/** What happened, as it happens. */
typedef struct lac_train_event {
  enum {
    LAC_TRAIN_BEGIN, /* step: where this run starts; 0, or a checkpoint's */
    LAC_TRAIN_STEP,
    LAC_TRAIN_EVALUATED,
    LAC_TRAIN_SAVED, /* a checkpoint */
  } kind;
  bool is_display;            /* STEP: one of every display_steps */
  int64_t step, steps, epoch; /* taken, in all, whole epochs taken */
  double loss, rate;          /* STEP: the batch's, before the update; EVALUATED: loss */
  double images_per_second;   /* STEP */
  double seconds_left;        /* STEP: without evaluations */
  double top1, top5;          /* EVALUATED: percent */
  bool is_best;               /* EVALUATED */
  size_t memory_bytes;        /* BEGIN: as planned: values, weights, gradients, optimizer */
} lac_train_event;

/** What a training calls for each event, in the thread that trains. */
typedef void lac_train_listener(const lac_train_event *event, void *context);

/** Start from lac_train_options_default(). A number below 0, or a NULL, is "as the recipe says". */
typedef struct lac_train_options {
  int threads;        /* 0 (default): the cores this process may use */
  lac_dtype dtype;    /* LAC_DTYPE_F32 (default), or LAC_DTYPE_BF16: images, activations and their
                         gradients in bf16; weights, statistics and loss stay f32. A processor
                         without instructions for it trains in f32, which is a warning and the
                         result's dtype */
  bool dense_only;    /* no sparse kernels under masks: zeros are multiplied, too; default false.
                         The environment variable LAC_SPARSE=0 says so for the process */
  bool remat;         /* less memory, more time, the same bits: most values that gradients need are
                         dropped after the forward part and computed again (false) */
  uint64_t seed;      /* of shuffling, augmentation, MixUp (0) */
  const char *recipe; /* resnet-sgd (default), resnet-lars, resnext, mixup-250, cifar */
  int batch;          /* images a batch, 1..65536; 0 (default): the recipe's, else 128, bf16 256 */
  int accumulate;     /* batches a step, 1..65536 (1) */
  double epochs;      /* (-1) */
  int64_t steps;      /* in the place of epochs; 0: none (0) */
  const char *optimizer;    /* sgd, lars, adamw; another than the recipe's needs a rate (NULL) */
  double rate;              /* used as given; -1: the recipe's, scaled where it says so (-1) */
  double momentum;          /* 0 <= m < 1 (-1) */
  double weight_decay;      /* (-1) */
  int nesterov;             /* 0, 1 (-1) */
  bool decay_all;           /* normalizations and biases decay, too (false) */
  const char *schedule;     /* constant, piecewise, cosine, polynomial (NULL) */
  const double *boundaries; /* epochs at which the rate falls, ascending: the schedule is piecewise
                               (NULL) */
  int n_boundaries;         /* 0: the recipe's; 8 at most (0) */
  double decay;             /* what the rate is multiplied by at each (-1) */
  double warmup_epochs;     /* (-1) */
  double label_smoothing;   /* 0..1 (-1) */
  double mixup;             /* alpha, 0: none (-1) */
  double ema; /* decay d of a moving average of weights and running statistics, 0 <= d < 1:
                 after step t it is d' average + (1 - d') weights, where d' = min(d,
                 (1 + t) / (10 + t)), t = 0 first. It is what is evaluated, kept as the best
                 and the result; 0: none (0) */
  bool augment, shuffle; /* (true, true); without both, batches are the files' own order */
  bool evaluate;         /* on the test part (true) */
  bool eval_only;        /* no step (false) */
  bool eval_first; /* evaluates before the first step, too, where that is step 0: what pruning left,
                      to compare with. For the log and the listener only: it is no best one and
                      reaches no threshold (false) */
  int64_t eval_limit;           /* on the first so many images of the test part; 0: all (0) */
  int64_t eval_steps;           /* every so many steps; 0: see the next (0) */
  int64_t epochs_between_evals; /* >= 1 (1) */
  int64_t steps_per_loop;       /* evaluations and checkpoints wait for a multiple of it;
                                   at most those of an epoch count (1) */
  double stop_threshold;        /* top-1 in percent that ends the training; -1: none (-1) */
  bool keep_best;               /* the best evaluated weights are the result (false) */
  const char *model_dir;        /* checkpoints, log.jsonl, curves.svg, TensorBoard events; made
                                   where it is not there; NULL: none of them (NULL) */
  int64_t checkpoint_steps;     /* 0: every epoch (0) */
  int keep_checkpoints;         /* >= 1 (3) */
  bool recover;          /* go on from the newest whole checkpoint, where there is one (false) */
  bool force;            /* a new run in a model_dir that has checkpoints: they go (false) */
  int64_t display_steps; /* >= 1 (100) */
  double dense_top1;     /* percent, what the network scored before it was pruned: a dashed line in
                            curves.svg; 0: not known (0) */
  const char *
      format; /* cifar10, cifar100, folder, tfrecords, digits; NULL: what the folder holds (NULL) */
  int resize, crop;      /* pixels, see lac_eval_options (0) */
  float mean[3], std[3]; /* see lac_eval_options (ImageNet's) */
  const char *classes;   /* see lac_eval_options (NULL) */
  uint64_t max_memory;   /* bytes that training may take, as planned; 0: 80 % of the machine's, or
                            of its control group's (0) */
  lac_train_listener *listener; /* called at every event, on the caller's thread (NULL) */
  void *context;
  const char *engine; /* of training and evaluation, see lac_engine_options (NULL: "cpu") */
  /* Several processes, each with batches of its own; all but the group do not count for one. */
  bool trace;               /* the result has a trace of the last steps; one process, too (false) */
  lac_process_group *group; /* which do the same job, all with the same options (NULL: alone) */
  lac_dtype wire;           /* of gradients as sent: f32 or bf16, half the bytes (f32) */
  int64_t bucket_bytes;     /* of gradients that are summed at a time, up to 512 MiB; 0: a 16th of
                               them, 256 KiB to 4 MiB (0) */
  int64_t paranoid_steps;   /* all compare what they hold after so many steps; 0: after the first
                               and at checkpoints, as always (0) */
} lac_train_options;

/** Every field's default, which its line names. */
LAC_API lac_train_options lac_train_options_default(void);

/** One of the settings that a recipe is made of. */
typedef struct lac_train_setting {
  const char *name; /* a view that stays */
  char value[120];
  const char *from; /* where the recipe has it from, a view that stays; NULL: options say it */
} lac_train_setting;

enum { LAC_TRAIN_MOST_SETTINGS = 16 };

/** What the options make of their recipe, before any data are known: settings [<=
 * LAC_TRAIN_MOST_SETTINGS], which the caller has, *n of them. Fails LAC_BAD_ARGUMENT. */
LAC_API LAC_MUST_CHECK lac_status lac_train_settings(const lac_train_options *options,
                                                     lac_train_setting *settings, int *n,
                                                     lac_error *err);

/** What is in a folder of data. */
typedef struct lac_train_data {
  const char *format; /* as lac_train_options names it */
  int64_t images;     /* for training */
  int classes, channels, height, width;
} lac_train_data;

/** Looks without training: what a fresh network has to fit. The folder is one that eval takes; one
 * with the folders "train" and "val" (or "validation", "test"), which are then its parts; else a
 * folder of images is trained and evaluated on the same images. Fails as lac_train. */
LAC_API LAC_MUST_CHECK lac_status lac_train_data_find(const char *data,
                                                      const lac_train_options *options,
                                                      lac_train_data *found, lac_error *err);

/** What a training with these options would be, once its data are known. */
typedef struct lac_train_size {
  int64_t images; /* for training */
  int classes;
  int64_t step_images; /* of one step: batch, batches that are summed, processes */
  int64_t steps_per_epoch, steps, warmup_steps;
  double rate; /* after the warm-up, at this many images a step */
} lac_train_size;

/** Looks without training. Fails as lac_train of the same options and data. */
LAC_API LAC_MUST_CHECK lac_status lac_train_size_find(const char *data,
                                                      const lac_train_options *options,
                                                      lac_train_size *found, lac_error *err);

enum { LAC_TRAIN_CHANGED_BYTES = 512 };

/** What a training came to. */
typedef struct lac_train_result {
  const char *recipe; /* a view that stays */
  lac_dtype dtype;    /* that was computed in */
  int threads, batch, accumulate, processes;
  int64_t images;            /* for training */
  int64_t planned_steps;     /* in all, had it not ended before */
  int64_t first_step, steps; /* where this run began; taken in all */
  double epochs;             /* taken in all */
  double loss;               /* of the last step; NaN: none was taken */
  bool evaluated;            /* the next three count */
  double top1, top5;         /* percent, of the last evaluation */
  double eval_loss;          /* its mean cross entropy */
  int64_t eval_step;         /* when that was */
  double best_top1;          /* of all evaluations; -1: none */
  double best_top5; /* of the same one; NaN: an earlier run made it, and that is not known */
  int64_t best_step;
  bool reached;                     /* stop_threshold */
  bool interrupted;                 /* lac_train failed with LAC_INTERRUPTED, after `steps` */
  double images_per_second;         /* of the last steps */
  double average_images_per_second; /* of all steps of this run, without evaluations; NaN: none */
  char *trace; /* with that option, of process 0, and not after a failure: the last 3 steps as
                  chrome://tracing and Perfetto read them, JSON; free with lac_text_free. Else
                  NULL */
  double comm_seconds; /* in which gradients were summed over processes */
  double comm_hidden;  /* share of these hidden by backward, 0..1; NaN: one process */
  double seconds;      /* of the whole run: planning and evaluations, too */
  size_t memory_bytes; /* as planned */
  char changed[LAC_TRAIN_CHANGED_BYTES]; /* what the run makes of its recipe since it is shorter,
                                       such as half the warm-up; a line each, empty: nothing */
} lac_train_result;

/** What lac_train_json writes in addition to the result. */
typedef struct lac_train_about {
  const char *verb;         /* "train", "finetune" */
  const char *model, *arch; /* the file that was trained on from, the fresh network; NULL: none */
  const char *data;         /* the folder */
  const lac_train_options *options;
  const lac_report *layers; /* of lac_prune, or of lac_check where masks were there already: what
                               is pruned; NULL: nothing is masked */
} lac_train_about;

/** A run as JSON text (UTF-8, two-space indent, final newline), see docs/json.md; free with
 * lac_text_free. */
LAC_API LAC_MUST_CHECK lac_status lac_train_json(const lac_train_about *about,
                                                 const lac_train_result *result, char **text,
                                                 lac_error *err);

/** What lac_train would refuse of options, data and the network's input, without planning a
 * step: for a caller who has long work, such as lac_prune, in between. Fails as lac_train. */
LAC_API LAC_MUST_CHECK lac_status lac_train_check(lac_model *model, const char *data,
                                                  const lac_train_options *options, lac_error *err);

/** Trains the model, a classifier with one input of images and, as its first output, scores
 * [N, classes], on the folder of data. Its stored weights and running statistics become the
 * result's. mask: what it masks, weights that are trained, stays zero; NULL: nothing. The same bits
 * for the same options on the same machine with the same threads, however often it was interrupted
 * and recovered. On failure the model's weights are those of its last evaluation.
 *
 * With a group, every process calls it: a step's batches are shared out, weights and masks are
 * process 0's, which alone writes into model_dir; all end with the same network and status. A
 * checkpoint is gone on from by as many processes. Fails LAC_PEER where one of them is gone.
 *
 * Fails LAC_BAD_ARGUMENT (options), LAC_UNSUPPORTED (an operator without a gradient), LAC_BAD_SHAPE
 * (network, masks and images do not fit, or the parts of the data each other), LAC_BAD_VALUE (loss
 * or weights no finite numbers any more: the text names the step, checkpoints stay),
 * LAC_INTERRUPTED (after a checkpoint), LAC_EXISTS (model_dir has checkpoints, or another run
 * writes there now), LAC_NOT_FOUND (data, a mask's weight), LAC_BAD_FILE (data, a checkpoint of
 * another run), LAC_IO, LAC_NO_MEMORY, LAC_MEMORY_LIMIT. What does not fit is found before anything
 * is written. */
LAC_API LAC_MUST_CHECK lac_status lac_train(lac_model *model, const char *data,
                                            const lac_mask *mask, const lac_train_options *options,
                                            lac_train_result *result, lac_error *err);

/* ---- The drawing ---- */

/** One evaluation of a run. */
typedef struct lac_recovery_score {
  int64_t step; /* 0: pruned, before the first step */
  double top1;  /* percent */
} lac_recovery_score;

/** One run: a method of pruning, and the training after it. */
typedef struct lac_recovery_run {
  const char *label;                /* "permuted first" */
  const lac_recovery_score *scores; /* [n_scores], steps ascending: as a listener gets them */
  int n_scores;
} lac_recovery_run;

/** Several runs of one network, for one drawing. */
typedef struct lac_recovery {
  const char *title, *data; /* the network; what it learned, or NULL */
  double dense_top1;        /* percent, a dashed line; 0: not known */
  double steps_per_epoch;   /* 0: not known */
  const lac_recovery_run *runs;
  int n_runs; /* 1..4 */
} lac_recovery;

/** Draws what pruning took and training brought back, with the values, as PATH.svg. Fails
 * LAC_BAD_ARGUMENT, LAC_EXISTS (without force), LAC_IO, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_recovery_plot(const lac_recovery *recovery, const char *path,
                                                    bool force, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
