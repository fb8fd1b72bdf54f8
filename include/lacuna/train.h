/* SPDX-License-Identifier: Apache-2.0
 * Training of a network on labelled images, from fresh weights or from those of a file. Weights
 * that a mask marks (mask.h) stay zero.
 *
 *     lac_train_options o = lac_train_options_default();
 *     lac_mask_from_model(model, &pruning, &mask, &err);             after lac_prune; or no mask
 *     lac_train(model, "data", mask, &o, &result, &err);             the model's weights change
 *     lac_model_save(model, "tuned.onnx", false, &err);
 *
 * Threads. No other thread may use the model during a call. Masks are only read: several trainings
 * may share them. The listener is called on the thread that called lac_train. */
#ifndef LACUNA_TRAIN_H
#define LACUNA_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/model.h"
#include "lacuna/run.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_mask lac_mask;       /* lacuna/mask.h */
typedef struct lac_report lac_report;   /* lacuna/report.h */
typedef struct lac_samples lac_samples; /* lacuna/array.h */

typedef struct lac_process_group lac_process_group; /* lacuna/process_group.h */

/* ---- Fresh networks ---- */

/** Which network is built. */
typedef struct lac_network_options {
  size_t size;        /* sizeof of this struct, set by lac_network_options_init */
  const char *name;   /* "resnet50", "cifar-resnet20", "digits" ...: lac_network_names */
  int classes;        /* number of classes; 0: 1000, or 10 for CIFAR's and digits */
  int image_size;     /* height and width of an image in pixels, 8..4096; 0: 224, 32 for CIFAR's, 8
                         for digits */
  bool conv_shortcut; /* CIFAR networks: shortcuts where the size changes are convolutions (true) or
                         padding with channels of zeros (false) */
  uint64_t seed;      /* seed of the initial weights */
} lac_network_options;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_network_options). */
LAC_API void lac_network_options_init(lac_network_options *options, size_t size);
LAC_DEFAULT(lac_network_options)

/** Returns the names of all networks that lac_network_create knows, *n of them; static strings. */
LAC_API const char *const *lac_network_names(int *n);

/** Returns the recipe that trains a network of this name, where none is chosen: "cifar" for CIFAR's
 * networks and digits, "resnext" for ResNeXt, "resnet-sgd" for all else; a static string. */
LAC_API const char *lac_network_recipe(const char *name);

/** Creates a network with random initial weights; lac_model_save writes it as ONNX. Fails
 * LAC_NOT_FOUND (unknown name), LAC_BAD_ARGUMENT, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_network_create(const lac_network_options *options,
                                                     lac_model **model, lac_error *err);

/* ---- Training ---- */

/** An event of a training, passed to the listener when it happens. Comments name the kinds that set
 * a field. */
typedef struct lac_train_event {
  enum {
    LAC_TRAIN_BEGIN = 0, /* `step` is where this run starts: 0, or the checkpoint's step */
    LAC_TRAIN_STEP = 1,
    LAC_TRAIN_EVALUATED = 2,
    LAC_TRAIN_SAVED = 3,      /* a checkpoint was saved */
  } kind;                     /* which event happened */
  bool is_display;            /* STEP: this step is a multiple of display_steps */
  int64_t step, steps, epoch; /* steps done; steps of the whole training; complete epochs done */
  double loss, rate;          /* STEP: the batch's loss before the update, and the learning rate;
                                 EVALUATED: the loss alone */
  double images_per_second;   /* STEP: images trained on per second */
  double seconds_left;        /* STEP: predicted seconds to the end of the training, without
                                 evaluations */
  double top1, top5;   /* EVALUATED: percent; STEP: top1 alone, of this process's images of the
                                 step, before the update */
  bool is_best;        /* EVALUATED: top1 is the best so far */
  size_t memory_bytes; /* BEGIN: memory planned for values, weights, gradients and the
                                 optimizer's state */
} lac_train_event;

/** A caller's function that receives each event, on the thread that called lac_train. */
typedef void lac_train_listener(const lac_train_event *event, void *context);

/** How a network is trained. Start from lac_train_options_default(). A number below 0, or a NULL,
 * means the recipe's value. */
typedef struct lac_train_options {
  size_t size; /* sizeof of this struct, set by lac_train_options_init */
  lac_run_options
      run;            /* how steps and evaluations run, see run.h; weights, statistics and loss stay
                          f32 in bf16; engine NULL: "cpu"; nothing is tuned: `tuning` must be off */
  bool remat;         /* rematerialization, which takes less memory and more time and gives the same
                         bits: most of the values that gradients need are dropped after the forward
                         pass and computed again (default false) */
  uint64_t seed;      /* seed of shuffling, augmentation, MixUp (default 0) */
  const char *recipe; /* resnet-sgd (default), resnet-lars, resnext, mixup-250, cifar, adamw-300 */
  int batch;          /* images per batch, 1..65536; 0 (default): the recipe's, or 128 (256 in bf16)
                         if it has none */
  int accumulate;     /* batches per step (gradient accumulation), 1..65536 (default 1) */
  double epochs;      /* length of the training in epochs; -1: the recipe's (default -1) */
  int64_t steps;      /* length of the training, used instead of epochs; 0: see epochs (default 0)
                         */
  const char *optimizer;    /* sgd, lars, adamw; if it is not the recipe's, `rate` must be given
                               (default NULL) */
  double rate;              /* learning rate; -1: the recipe's, which some recipes scale with the
                               batch (default -1) */
  double momentum;          /* factor of the momentum, 0 <= m < 1; -1: the recipe's (default -1) */
  double weight_decay;      /* factor of the weight decay; -1: the recipe's (default -1) */
  int nesterov;             /* 1: Nesterov's momentum, 0: the usual one; -1: the recipe's (default
                               -1) */
  bool decay_all;           /* weight decay also for parameters of normalizations and for biases
                               (default false) */
  const char *schedule;     /* how the rate changes: constant, piecewise, cosine, polynomial; NULL:
                               the recipe's (default NULL) */
  const double *boundaries; /* epochs at which the rate falls, ascending; implies the piecewise
                               schedule (default NULL) */
  int n_boundaries;         /* number of boundaries, at most 8; 0: the recipe's (default 0) */
  double decay;             /* factor by which the rate changes at each boundary; -1: the recipe's
                               (default -1) */
  double warmup_epochs;     /* epochs in which the rate rises from 0; -1: the recipe's (default -1)
                               */
  double label_smoothing;   /* share of the label that is spread over all classes, 0..1; -1: the
                               recipe's (default -1) */
  double mixup;             /* alpha of MixUp, 0: none; -1: the recipe's (default -1) */
  double ema; /* decay d of a moving average of weights and running statistics, 0 <= d < 1: after
                 step t it is d' average + (1 - d') weights, where d' = min(d, (1 + t) / (10 + t)),
                 counted from 0. The average is what is evaluated, kept as the best, and returned as
                 the result; 0: no average (default 0) */
  bool augment, shuffle; /* change images at random; draw the images of a batch at random. If both
                            are false, batches follow the order of the files (default true, true) */
  bool evaluate;         /* evaluate on the test part of the data (default true) */
  bool eval_only;        /* evaluate without training (default false) */
  bool eval_first; /* also evaluate before step 0, to know the score after pruning. The result goes
                      to the log and the listener only; it does not count as the best and does not
                      end the training (default false) */
  int64_t eval_limit;           /* maximum number of images of the test part to evaluate on, from
                                   the first one on; 0: all (default 0) */
  int64_t eval_steps;           /* steps between evaluations; 0: see epochs_between_evals (default
                                   0) */
  int64_t epochs_between_evals; /* epochs between evaluations, >= 1 (default 1) */
  int64_t steps_per_loop;       /* evaluations and checkpoints happen only at steps that are
                                   multiples of this; capped at the steps of an epoch (default 1) */
  double stop_threshold;        /* the training ends when an evaluation reaches this top-1, percent;
                                   -1: never (default -1) */
  bool keep_best;               /* the result has the weights of the best evaluation, not the last
                                   weights (default false) */
  const char *model_dir;        /* folder for checkpoints, log.jsonl, curves.svg and TensorBoard
                                   events, created if missing; NULL: none of these are written
                                   (default NULL) */
  int64_t checkpoint_steps;     /* steps between checkpoints; 0: one per epoch (default 0) */
  int keep_checkpoints;         /* number of checkpoints that stay in model_dir, the newest ones; >=
                                   1 (default 3) */
  bool recover;          /* continue from the newest complete checkpoint, if there is one (default
                            false) */
  bool force;            /* allow a new run in a model_dir that has checkpoints, which are deleted
                            (default false) */
  int64_t display_steps; /* steps between displayed steps (lac_train_event.is_display), >= 1
                            (default 100) */
  double dense_top1;     /* top-1 of the network before pruning, percent, drawn as a dashed line in
                            curves.svg; 0: not known (default 0) */
  const char
      *format; /* cifar10, cifar100, folder, tfrecords, digits, arrays; format of the data; NULL:
                  detected from the folder (default NULL) */
  int resize, crop;             /* sides of images in pixels, see lac_eval_options (default 0) */
  float mean[3], std[3];        /* see lac_eval_options (default ImageNet's) */
  const char *classes;          /* see lac_eval_options (default NULL) */
  lac_train_listener *listener; /* called at every event, on the caller's thread (default NULL) */
  void *context;                /* passed to listener (default NULL) */
  /* The fields below are for several processes, each of which trains on different batches; with one
   * process only `trace` has an effect. */
  bool trace;               /* record a trace of the last steps in the result (default false) */
  lac_process_group *group; /* the processes; all must have the same options. NULL: this process
                               alone (default NULL) */
  lac_dtype wire;           /* type in which gradients are sent: f32, or bf16 for half the bytes
                               (default f32) */
  int64_t bucket_bytes;     /* bytes of gradients that are summed over the processes at a time, up
                               to 512 MiB; 0: a 16th of all gradients, within 256 KiB to 4 MiB
                               (default 0) */
  int64_t paranoid_steps;   /* steps between checks that all processes have the same weights; 0:
                               only the checks that are always done, after the first step and at
                               checkpoints (default 0) */
  /** Samples to train on, instead of the argument `data`, which is NULL then: see lac_eval_options.
   * `augment` changes bytes as it changes images of CIFAR (a crop of the image padded by 4 pixels,
   * and flips), and never floats. With a group, all processes must have the same samples (default
   * NULL) */
  const lac_samples *from_memory;
  /** With from_memory: samples to evaluate on; NULL: those that are trained on (default NULL) */
  const lac_samples *test_from_memory;
  double cutmix;      /* alpha of CutMix, 0: none; with MixUp, each step does one of both; -1: the
                       recipe's (default -1) */
  double erasing;     /* share of images in which a random rectangle is replaced by the mean, 0..1;
                         -1: the recipe's (default -1) */
  double clip_norm;   /* limit of the norm of a step's gradients, which are scaled down to it; 0:
                         none; -1: the recipe's (default -1) */
  const char *policy; /* further augmentation of images as they are read: none, randaugment or
                         trivialaugment; NULL: the recipe's (default NULL) */
  int policy_magnitude; /* strength of randaugment, 0..30; -1: the recipe's, or 9 (default -1) */
} lac_train_options;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_train_options). */
LAC_API void lac_train_options_init(lac_train_options *options, size_t size);
LAC_DEFAULT(lac_train_options)

/** One setting of a recipe, after the options were applied. */
typedef struct lac_train_setting {
  const char *name; /* static string */
  char value[120];  /* value of the setting as text */
  const char *from; /* source of the recipe's value, a static string; NULL: the value is from the
                       options */
} lac_train_setting;

enum { LAC_TRAIN_MOST_SETTINGS = 20 };

/** Writes the recipe's settings with the options applied, without looking at data. settings: the
 * caller's array of LAC_TRAIN_MOST_SETTINGS elements, of which *n are filled. Fails
 * LAC_BAD_ARGUMENT. */
LAC_API LAC_MUST_CHECK lac_status lac_train_settings(const lac_train_options *options,
                                                     lac_train_setting *settings, int *n,
                                                     lac_error *err);

/** What a folder of data contains. */
typedef struct lac_train_data {
  size_t size;        /* sizeof of this struct, set by LAC_SIZED */
  const char *format; /* format of the data, as in lac_train_options.format */
  int64_t images;     /* number of images for training */
  int classes;
  int channels, height, width; /* sizes of a sample; 0: the samples have other axes */
} lac_train_data;

/** Examines a folder of data without training, so that a fresh network of fitting sizes can be
 * made. The path `data` is as lac_eval takes it, or has the folders "train" and "val" (or
 * "validation", "test") as its parts. A folder of images without parts is used for both training
 * and evaluation. NULL: options->from_memory has the samples. Fails as lac_train. */
LAC_API LAC_MUST_CHECK lac_status lac_train_data_find(const char *data,
                                                      const lac_train_options *options,
                                                      lac_train_data *found, lac_error *err);

/** The size of a training, which depends on the options and the data. */
typedef struct lac_train_size {
  size_t size;    /* sizeof of this struct, set by LAC_SIZED */
  int64_t images; /* number of images for training */
  int classes;
  int64_t step_images; /* images per step: batch * accumulate * processes */
  int64_t steps_per_epoch, steps, warmup_steps; /* number of steps of an epoch; of the whole
                                                   training; of its warm-up */
  double rate; /* learning rate after the warm-up, for this number of images per step */
} lac_train_size;

/** Computes the size of a training without training. Fails as lac_train of the same options and
 * data. */
LAC_API LAC_MUST_CHECK lac_status lac_train_size_find(const char *data,
                                                      const lac_train_options *options,
                                                      lac_train_size *found, lac_error *err);

enum { LAC_TRAIN_CHANGED_BYTES = 512 };

/** The result of a training. */
typedef struct lac_train_result {
  size_t size;        /* sizeof of this struct, set by LAC_SIZED */
  const char *recipe; /* static string */
  lac_dtype dtype;    /* type of the computation */
  int threads, batch, accumulate, processes;
  int64_t images;            /* number of images for training */
  int64_t planned_steps;     /* steps of the whole training if it does not end early */
  int64_t first_step, steps; /* step at which this run began; steps done in total, earlier runs
                                included */
  double epochs;             /* epochs done in total */
  double loss;               /* loss of the last step; NaN: no step was done */
  bool evaluated;            /* an evaluation was done: top1, top5, eval_loss and eval_step are
                                valid */
  double top1, top5;         /* percent, of the last evaluation */
  double eval_loss;          /* mean cross entropy of the last evaluation */
  int64_t eval_step;         /* step of the last evaluation */
  double best_top1;          /* best of all evaluations; -1: there was none */
  double best_top5;  /* top-5 of the evaluation with best_top1; NaN: not known, because an earlier
                       run did that evaluation */
  int64_t best_step; /* step of the evaluation with best_top1 */
  bool reached;      /* stop_threshold was reached */
  bool interrupted;  /* lac_train failed with LAC_INTERRUPTED, after `steps` */
  double images_per_second;         /* images per second in the last steps */
  double average_images_per_second; /* images per second over all steps of this run, without
                                       evaluations; NaN: no step was done */
  char *trace; /* JSON for chrome://tracing or Perfetto of the last 3 steps, in process 0; free with
                  lac_text_free. NULL after a failure, in other processes, or without the option
                  `trace` */
  double comm_seconds; /* time of summing gradients over processes */
  double comm_hidden;  /* share of comm_seconds that overlapped with the backward pass, 0..1; NaN:
                          one process */
  double seconds;      /* seconds of the whole run, planning and evaluations included */
  size_t memory_bytes; /* planned memory in bytes */
  char changed[LAC_TRAIN_CHANGED_BYTES]; /* how the recipe was changed because this training is
                                            shorter, such as half the warm-up; one line per change;
                                            empty: not changed */
} lac_train_result;

/** What lac_train_json writes in addition to the result of lac_train. */
typedef struct lac_train_about {
  size_t size;              /* sizeof of this struct, set by LAC_SIZED */
  const char *verb;         /* "train", "finetune" */
  const char *model, *arch; /* file of the network that was trained; name of the fresh network that
                               was built; NULL: none */
  const char *data;         /* the folder of the data; NULL: the samples were in memory */
  const lac_train_options *options;
  const lac_report *layers; /* report of lac_prune, or of lac_check for a network that was pruned
                               before: which layers are pruned; NULL: nothing is masked */
} lac_train_about;

/** Sets *text to a training run as JSON text (UTF-8, two-space indent, final newline), see
 * docs/reference/json.md. Free it with lac_text_free. */
LAC_API LAC_MUST_CHECK lac_status lac_train_json(const lac_train_about *about,
                                                 const lac_train_result *result, char **text,
                                                 lac_error *err);

/** Checks options, data and the network's input as lac_train does, without planning a step. For a
 * caller with long work, such as lac_prune, before the training. Fails as lac_train. */
LAC_API LAC_MUST_CHECK lac_status lac_train_check(lac_model *model, const char *data,
                                                  const lac_train_options *options, lac_error *err);

/** Trains the model, a classifier with one input and, as its first output, scores [N, classes]. It
 * is trained on the images of the folder `data`, or on arrays in a path as lac_eval takes it. If
 * `data` is NULL, options->from_memory has the samples. The trained weights and running statistics
 * replace those stored in the model. mask: the weights that it masks stay zero; NULL: no masks. The
 * result is the same bits for the same options, machine and number of threads, even if the run was
 * interrupted and recovered. On failure the model has the weights of the last evaluation.
 *
 * With a group, every process calls lac_train. The batches of a step are divided among the
 * processes. Weights and masks are those of process 0, which alone writes into model_dir. All
 * processes end with the same network and status. A checkpoint can only be continued by the same
 * number of processes. Fails LAC_PEER if a process is lost.
 *
 * Fails LAC_BAD_ARGUMENT (options), LAC_UNSUPPORTED (an operator without a gradient),
 * LAC_INTERRUPTED (a checkpoint was written), LAC_IO, LAC_NO_MEMORY, LAC_MEMORY_LIMIT. Fails
 * LAC_BAD_SHAPE if network, masks and images do not fit together, or training and test data do not.
 * Fails LAC_BAD_VALUE if loss or weights are not finite any more: the text names the step,
 * checkpoints stay. Fails LAC_EXISTS if model_dir has checkpoints, or another run writes there now.
 * Fails LAC_NOT_FOUND if there are no data, or a mask has no weight in the model. Fails
 * LAC_BAD_FILE for bad data, or a checkpoint of another run. Before anything is written, lac_train
 * checks that network, masks, data and checkpoint fit together. */
LAC_API LAC_MUST_CHECK lac_status lac_train(lac_model *model, const char *data,
                                            const lac_mask *mask, const lac_train_options *options,
                                            lac_train_result *result, lac_error *err);

/* ---- The drawing ---- */

/** One evaluation of a run. */
typedef struct lac_recovery_score {
  int64_t step; /* 0: after pruning, before the first step */
  double top1;  /* top-1 accuracy in percent */
} lac_recovery_score;

/** One run: a method of pruning, and the training after it. */
typedef struct lac_recovery_run {
  const char *label;                /* label of the curve: "permuted first" */
  const lac_recovery_score *scores; /* [n_scores], in ascending order of step */
  int n_scores;
} lac_recovery_run;

/** Several runs of one network, for one drawing. */
typedef struct lac_recovery {
  size_t size;              /* sizeof of this struct, set by LAC_SIZED */
  const char *title, *data; /* name of the network; name of its data, or NULL */
  double dense_top1;        /* top-1 before pruning, percent, drawn as a dashed line; 0: not known
                               */
  double steps_per_epoch;   /* number of steps of an epoch; 0: not known */
  const lac_recovery_run *runs;
  int n_runs; /* number of runs, 1..4 */
} lac_recovery;

/** Draws how top-1 recovers after pruning: one curve over the training steps for each run, with the
 * values, as an SVG file. The name `path` must end in .svg. Fails LAC_BAD_ARGUMENT, LAC_EXISTS
 * (without force), LAC_IO, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_recovery_plot(const lac_recovery *recovery, const char *path,
                                                    bool force, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
