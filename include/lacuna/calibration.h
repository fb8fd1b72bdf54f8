/* SPDX-License-Identifier: Apache-2.0
 * Pruning with a look at data: a few hundred inputs of the network, without labels, choose the
 * masks and what the kept weights become, so that every layer's outputs stay as near to the dense
 * network's as they can. Nothing is trained, unless `refine` is set.
 *
 *   lac_calibration calibration = lac_calibration_default();
 *   calibration.data = "cifar-10-batches-bin";
 *   options.calibration = &calibration;      // then lac_prune; see report->calibration
 *
 * An eighth of the samples is held back from the fits: errors in reports are measured on these. */
#ifndef LACUNA_CALIBRATION_H
#define LACUNA_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Start from lac_calibration_default() and set data. */
typedef struct lac_calibration {
  const char *data; /* inputs of the network: a folder of images as lac_train reads it (its part for
                       training), a .npy file, a .npz, or a folder of .npy: an array for each input,
                       NAME.npy, samples along the first axis; `labels` among them are classes */
  int64_t samples;  /* how many are taken of it, chosen by lac_options.seed; 1 and more (512) */
  int copies; /* of each image that is not held back, changed as training changes images (0) */
  bool solve; /* the kept weights become those with the least squared error of the layer's outputs;
                 else they stay as the score leaves them (true) */
  int resize; /* images: shorter side after resizing, pixels; 0: as is usual with such data (0) */
  int crop;   /* images: side of the square cut out, pixels; 0: as is usual with such data (0) */
  float mean[3];    /* images: of red, green, blue, in grey levels (ImageNet's) */
  float std[3];     /* images: > 0 (ImageNet's) */
  int keep_dense;   /* leave so many layers dense, those whose pruning alone changes the outputs
                       most (0) */
  double max_drop;  /* leave as few layers dense as it takes to lose no more than this, with 95 %
                       confidence: points of top-1, where data has labels for the network's outputs;
                       percent of the answers that change, where each sample has one; else percent
                       of the outputs' relative error. Judged by further samples of the data that
                       nothing else looks at, as many as so small a loss needs, for which `samples`
                       may become fewer; < 0: whatever it is (-1) */
  bool curve;       /* measure the loss over the number of layers pruned (false) */
  bool recalibrate; /* estimate the statistics of batch normalization again, on images that are
                       changed as training changes them; kept only where the outputs err less on
                       the samples held back (false) */
  double refine;    /* seconds of steps in which all parameters of the network are fitted to the
                       dense network's outputs, masks fixed; kept only as above. The steps that fit
                       depend on the machine: see refine_steps. 0: none (0) */
  int64_t refine_steps; /* exactly so many steps, in the place of seconds: the same bytes for the
                           same number of threads. 0: as refine says (0) */
} lac_calibration;

/** Every field's default, which its line names; `data` is NULL. */
LAC_API lac_calibration lac_calibration_default(void);

/** How the network fares with its n layers of least effect pruned, the others dense: those of
 * layers [0, n) of the curve, as they were fitted with all pruned. */
typedef struct lac_calibration_point {
  const char *layer;    /* that was the last to be pruned; NULL: none is */
  double effect;        /* of this layer alone on the outputs, relative error */
  double outputs_error; /* of the outputs, relative */
  double top1;          /* percent; 0 without labels */
} lac_calibration_point;

/** What calibration found; part of a report. Errors are sums of squares relative to those of what
 * the dense network has there, over the samples held back, or over all where there are too few. */
typedef struct lac_calibration_result {
  const char *data;  /* "512 of 50000 images of DIR, 64 held back" */
  const char *score; /* "alps" */
  bool solved;
  int64_t samples;        /* that layers were fitted on, copies among them */
  int64_t held_back;      /* that errors were measured on */
  double outputs_error;   /* of the network's outputs: sum |dense - pruned|^2 / sum |dense|^2 */
  int64_t answers;        /* rows of the first output in which a largest element was looked for; 0:
                             there are none */
  double agreement;       /* percent of these with the same largest element */
  double agreement_least; /* what that is at least on such data, with 95 % confidence; 0: not known,
                             for no sample was held back, or one has several answers */
  int64_t labelled;       /* samples with a label for the outputs; 0: top-1 is not known */
  double top1_dense;      /* percent of the samples held back */
  double top1_pruned;
  const char *outputs_reason; /* why outputs were not compared; NULL: they were */
  const char *drop_measure;   /* max_drop's: "top1", "answers", "outputs"; NULL: none was wanted, or
                                 nothing was to be pruned */
  double drop_limit;          /* max_drop */
  int64_t drop_samples;       /* that it was judged by; none was fitted or held back */
  double drop, drop_most;     /* on these, and at most with so much confidence */
  double drop_confidence;     /* 0.95 */
  int kept_dense;             /* layers that were left dense for the outputs' sake */
  int n_curve;                /* points; 0: not measured */
  const lac_calibration_point *curve; /* [n_curve], from no layer pruned on */
  uint64_t kept_bytes;                /* the most that was kept of values between layers, ... */
  uint64_t file_bytes;                /* ... and of that in temporary files */
  double seconds, fit_seconds;        /* all of it but refinement; the fits alone */
  double error_fitted;       /* outputs_error before what follows; 0: nothing was to follow */
  bool recalibrated;         /* statistics were estimated again, and are kept */
  double error_recalibrated; /* outputs_error with these, kept or not; 0: not tried */
  bool refined;              /* what the steps made is kept */
  double error_refined;      /* outputs_error with it, kept or not; 0: no step */
  int64_t refine_steps;      /* that were taken */
  double refine_seconds;
  const char *refine_reason; /* why one of these could not be done; NULL: it could */
} lac_calibration_result;

typedef struct lac_report lac_report;

/** Draws the curve of a report: the error of the outputs, and top-1 where it is known, over the
 * number of layers pruned; path ends in .svg. Fails LAC_BAD_ARGUMENT for a report without one. */
LAC_API LAC_MUST_CHECK lac_status lac_calibration_plot(const lac_report *report, const char *path,
                                                       bool force, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
