/* SPDX-License-Identifier: Apache-2.0
 * Pruning with calibration data: a few hundred inputs of the network, without labels. They may be
 * synthetic images, which need no data at all. Masks are chosen, and the weights that they keep are
 * fitted, so that every layer's outputs stay as close to the dense network's as possible. Nothing
 * is trained, unless `refine` or `refine_steps` is set.
 *
 *   lac_calibration calibration = lac_calibration_default();
 *   calibration.data = "cifar-10-batches-bin";
 *   options.calibration = &calibration;      // then lac_prune; see report->calibration
 *
 * An eighth of the samples is held back (a quarter, where synthetic ones are added): nothing is
 * fitted on these samples, and reports give the errors on them. */
#ifndef LACUNA_CALIBRATION_H
#define LACUNA_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_samples lac_samples; /* lacuna/array.h */

/** Start from lac_calibration_default() and set data, from_memory or synthetic. */
typedef struct lac_calibration {
  size_t size;      /* sizeof of this struct, set by lac_calibration_init */
  const char *data; /* inputs of the network: a folder of images as lac_train reads it (the training
                       part is used), a .npy file, a .npz file, or a folder of files NAME.npy: one
                       array for each input. Samples are along the input's batch axis, or along one
                       more axis before all others; an array with neither is the same for all
                       samples. Or a folder of .npz files, one for each sample, whose sizes may
                       differ. An array called `labels` holds the samples' classes */
  /** Samples in memory, instead of `data`: an array for each input of the network, in its type, and
   * perhaps `labels` (default NULL) */
  const lac_samples *from_memory;
  int64_t samples; /* number of samples of the data that are used, drawn with lac_options.seed; >=
                      1. With synthetic also 0: as many as calibrate such a network on two cores in
                      about a minute, 32 to 512, the same number on every machine (default 512) */
  int copies; /* number of additional, augmented copies of each image that is not held back (default
                 0) */
  bool solve; /* fit the kept weights to the least squared error of the layer's outputs; false: they
                 stay as the score leaves them (default true) */
  int resize; /* images: shorter side after resizing, pixels; 0: the usual size for this kind of
                 data, see lac_eval_options (default 0) */
  int crop;   /* images: side of the square cut out, pixels; 0: the usual size for this kind of data
                 (default 0) */
  float mean[3];    /* images: mean of red, green and blue, in grey levels 0..255 (default
                       ImageNet's) */
  float std[3];     /* images: standard deviation of red, green and blue, in grey levels; > 0
                       (default ImageNet's) */
  int keep_dense;   /* number of layers to leave dense: those whose pruning alone changes the
                       outputs most (default 0) */
  double max_drop;  /* largest loss of quality that is accepted. Layers are left dense, as few as
                       possible, so that the loss is at most this with 95 % confidence. If the data
                       have labels, it is measured in points of top-1. Else it is the percentage of
                       samples whose predicted class changes, if the network predicts one class for
                       each sample. Else it is the outputs' relative error in percent. It is
                       measured on extra samples, which are used for nothing else. A smaller limit
                       needs more extra samples, which may reduce `samples`. It holds for a network
                       that is quantized, too: there, layers also stay in floats. < 0: no limit
                       (default -1) */
  bool curve;       /* measure the loss as a function of the number of pruned layers (default false)
                       */
  bool recalibrate; /* estimate the statistics of batch normalization again on augmented images;
                       they are kept only if this lowers the outputs' error on the held-back samples
                       (default false) */
  double refine;    /* seconds of training in which all parameters, with fixed masks, are fitted to
                       the dense network's outputs; kept only if this lowers the outputs' error on
                       the held-back samples. How many steps fit into the time depends on the
                       machine: see refine_steps. 0: none (default 0) */
  int64_t refine_steps; /* number of refinement steps, used instead of `refine`: the result is the
                           same bytes for the same number of threads. 0: see `refine` (default 0) */
  bool synthetic; /* calibrate on synthetic images instead of data: pictures of shapes and textures
                     that are drawn with lac_options.seed. The network has one input, images [N, C,
                     H, W] or [N, H, W, C] of 3 channels or 1; open sizes are `crop`, or 224. If
                     mean and std are the defaults, the range of values is found out: the usual
                     range that comes nearest to the stored statistics of the first batch
                     normalization. The report says which. Four times as many images are drawn, and
                     those nearest to the statistics of all normalizations are used. Images of 64
                     pixels and more are then fitted to these statistics. Or token ids: a network's
                     inputs are integers, and one looks up the rows of a stored table. Or sounds: an
                     input of floats enters a convolution of one channel. Or normal numbers: an
                     input [N, n] enters a product; they have the mean and deviation that the
                     network's first steps undo. If data or
                     from_memory is set, too, the default number of synthetic samples is added to
                     the samples of the data, which are repeated until they weigh about a third. A
                     quarter of the data's samples is then held back. A fit with and one without
                     synthetic samples are compared on these, and the one with the lower error of
                     the outputs is kept (default false) */
  bool optional;  /* prune as without calibration if the data do not fit the network (synthetic
                     images for an input that takes none), if memory is too small or no engine can
                     run it, if several processes prune, or if the outputs' error on the held-back
                     samples is larger than with masks by magnitude. lac_report.uncalibrated says
                     why. With masks in blocks of rows the score is then magnitude (default false)
                     */
  const char *const *constants; /* [n_constants] "NAME=NUMBER": the number that every element of the
                                   input NAME has in all samples, so that it needs no array. What
                                   follows from it alone, such as the branch that an If takes, is
                                   calibrated as it is with this number (default NULL) */
  int n_constants;              /* length of `constants` (default 0) */
} lac_calibration;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_calibration). */
LAC_API void lac_calibration_init(lac_calibration *options, size_t size);
LAC_DEFAULT(lac_calibration)

/** Point n of the curve: the loss if the n layers of least effect are pruned and the other layers
 * are dense. The pruned layers have the weights that were fitted with all layers pruned. */
typedef struct lac_calibration_point {
  const char *layer;    /* the n-th pruned layer; NULL: point 0, no layer is pruned */
  double effect;        /* relative error of the outputs with this layer alone pruned */
  double outputs_error; /* relative error of the outputs at this point */
  double top1;          /* top-1 at this point, percent; 0: the samples have no labels */
} lac_calibration_point;

/** What calibration found; part of a report. Errors are sums of squared differences to the dense
 * network's values, divided by the sum of those values squared. They are over the held-back
 * samples, or over all samples if there are too few. */
typedef struct lac_calibration_result {
  const char *data;       /* "512 of 50000 images of DIR, 64 held back" */
  const char *score;      /* name of the score that masks were chosen by: "alps" */
  bool solved;            /* the weights that masks keep were to be fitted (lac_calibration.solve)
                             */
  int64_t samples;        /* number of samples that layers were fitted on, copies included */
  int64_t held_back;      /* number of samples that errors were measured on */
  double outputs_error;   /* relative error of the network's outputs: sum |dense - pruned|^2 / sum
                             |dense|^2 */
  int64_t answers;        /* number of predictions: rows of the first output, of which the largest
                             element was compared with the dense network's; 0: not compared */
  double agreement;       /* percent of the answers in which the same element is the largest */
  double agreement_least; /* lower bound of agreement on such data, with 95 % confidence; 0: not
                             known, because no sample was held back or a sample has several answers
                             */
  int64_t labelled;       /* samples with a label for the outputs; 0: top-1 is not known */
  double top1_dense;      /* top-1 of the dense network, percent of the labelled held-back
                             samples */
  double top1_pruned;     /* top-1 of the pruned network, percent of the same samples */
  const char *outputs_reason; /* why outputs were not compared; NULL: they were */
  const char *drop_measure;   /* what lac_calibration.max_drop limited: "top1", "answers",
                                 "outputs", "positions"; NULL: no limit was set, or nothing was to
                                 be pruned */
  double drop_limit;          /* lac_calibration.max_drop */
  int64_t drop_samples;       /* number of samples that the loss was measured on, used for nothing
                                 else */
  double drop, drop_most;     /* the loss that was measured on drop_samples samples, and an upper
                                 bound of the loss with confidence drop_confidence */
  double drop_confidence;     /* confidence of the bound drop_most: 0.95 */
  int kept_dense;             /* number of layers left dense because of keep_dense or max_drop */
  int n_curve;                /* number of points; 0: not measured */
  const lac_calibration_point *curve; /* [n_curve]; point 0 has no layer pruned */
  uint64_t kept_bytes;                /* maximum number of bytes of values between layers that were
                                         held in memory */
  uint64_t file_bytes;                /* maximum number of bytes of values between layers that were
                                         held in temporary files */
  double seconds, fit_seconds;        /* time of the calibration without refinement; time of fitting
                                         weights alone */
  double error_fitted;       /* outputs_error before recalibration and refinement; 0: neither was
                                wanted */
  bool recalibrated;         /* the statistics of batch normalization were estimated again, and the
                                network has the new ones */
  double error_recalibrated; /* outputs_error with the new statistics, whether they were kept or
                                not; 0: not tried */
  bool refined;              /* the network has the parameters that refinement found */
  double error_refined;      /* outputs_error after refinement, whether its result was kept or not;
                                0: no step was done */
  int64_t refine_steps;      /* number of refinement steps done */
  double refine_seconds;     /* wall time of the refinement steps */
  const char *refine_reason; /* why recalibration or refinement could not be done; NULL: no such
                                failure */
  bool synthetic;            /* the samples were synthetic images: errors on them are not those on
                                real data */
  double error_magnitude;    /* outputs_error of masks by magnitude, on the same samples; 0: not
                                measured, since calibration was not optional */
  double worst_error;      /* relative error, computed as outputs_error, of the part of the outputs
                              that differs most. A part is one output or, if an output mixes numbers
                              of two scales (boxes in pixels, and scores), the numbers of one scale.
                              For rows of probabilities it is the share of rows whose largest
                              element moves. Without labels, max_drop limits this */
  const char *worst_of;    /* name of the part that has worst_error; NULL: the outputs have one part
                              alone */
  double forecast_seconds; /* seconds that the calibration was predicted to take, before the work
                              began; 0: not known */
  uint64_t forecast_bytes; /* predicted maximum of the memory that the calibration takes, in bytes
                              */
  int64_t synthetic_added; /* number of synthetic samples that were added to those of the data; 0:
                              none */
  double error_alone;      /* outputs_error on held-back samples of the data, in the file's order of
                              channels, after a fit to samples of the data alone; 0: no synthetic
                              samples were tried */
  double error_added;      /* outputs_error on these samples after a fit to samples of the data and
                              synthetic samples; 0: no synthetic samples were tried */
} lac_calibration_result;

typedef struct lac_report lac_report;

/** Draws the curve of a report as SVG: the outputs' error, and top-1 if known, over the number of
 * pruned layers. The name `path` must end in .svg. Fails LAC_BAD_ARGUMENT for a report without a
 * curve. */
LAC_API LAC_MUST_CHECK lac_status lac_calibration_plot(const lac_report *report, const char *path,
                                                       bool force, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
