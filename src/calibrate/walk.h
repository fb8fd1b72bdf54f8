/* SPDX-License-Identifier: Apache-2.0
 * Chooses masks and weights by samples, layer by layer in the order of the graph. The dense network
 * and the network as pruned so far are run together.
 *
 *   for every value that layers read, in the order of the graph:
 *     compute it for all samples, in both networks     parts of the graph, each an engine
 *     H = sum x_p x_p',  K = sum x_d x_p'              Gram matrices of the layers that read it
 *     fit mask and weight of these layers              calibrate/fit.h
 *     measure them on samples held back from the sums
 *     put the new weights into the pruned network
 *
 * Only values that are still to be read are kept, in memory or in temporary files
 * (batch_allocator_in.h). Asymmetric reconstruction (targets from the dense network, inputs from
 * the pruned one): He et al., "Channel Pruning for Accelerating Very Deep Neural Networks" (2017);
 * layer after layer: Frantar and Alistarh, "Optimal Brain Compression" (2022). Next: walk.c (the
 * loop), plan_in.h (the parts), samples.h (batches; outputs of two networks). */
#ifndef LACI_CALIBRATE_WALK_H
#define LACI_CALIBRATE_WALK_H

#include "base/memory.h"
#include "calibrate/samples.h"
#include "sparse/weight_view.h"

typedef struct laci_analysis laci_analysis;
typedef struct laci_budget laci_budget;
typedef struct laci_pool laci_pool;
typedef struct laci_score laci_score;

typedef struct laci_calibrate_options {
  laci_pattern pattern;
  laci_mask_form form;     /* form of the masks; forms other than 1-D need a score for which
                              laci_score_is_saliency is true */
  int v;                   /* V of the pattern V:N:M; 0 for other patterns */
  uint64_t seed;           /* random seed, for scores that draw random numbers */
  const laci_score *score; /* how masks are chosen: laci_score_find */
  bool solve;              /* true: the kept weights are fitted to the samples; false: they are
                              those that the score's method gives */
  bool symmetric;          /* the targets, too, are computed from the pruned network's inputs, so
                              that K = H */
  bool each_alone;         /* each layer is fitted as if it alone were pruned: its inputs are those
                              of the dense network. Outputs of the network are not compared */
  const bool *wanted;      /* [analysis->n_layers] layers to be pruned; NULL: all eligible ones */
  const uint8_t *const *weights; /* [n_stored] for each stored tensor, the bytes to use instead of
                                    the graph's (for a network whose reordering is not committed
                                    yet); NULL, or a NULL entry: the graph's bytes are used */
  int64_t positions; /* limit of the number of inputs x that are summed, divided by the number of
                        columns of a layer's matrix. 0: 128, fewer for wide layers (walk.c);
                        INT64_MAX: no limit */
  int batch;         /* limit of the samples in a batch; 0: chosen by the size of the network.
                        Ignored if the network fixes its batch size */
  int n_walks; /* number of calibrations like this one that the caller plans, this one included;
                  their time and memory are forecast together, before this one; 0: nothing is
                  forecast */
  const char *folder;         /* folder of the temporary files; NULL: that of TMPDIR, or /tmp */
  uint64_t memory_for_values; /* limit of the bytes of values between layers that are kept in
                                 memory; values beyond it go to files. 0: what the budget leaves, at
                                 most a quarter of it and 1.5 GB */
  const laci_budget *budget;  /* the memory limit, and the memory that is in use already; NULL: no
                                 limit */
  laci_pool *pool;
} laci_calibrate_options;

/** The result for one layer. Its errors are sum |W_d x_d - W x_p|^2 / sum |W_d x_d|^2 over the
 * samples held back (over all samples, if none are). */
typedef struct laci_calibrated_layer {
  bool pruned;         /* the layer was to be pruned, can be, and has a mask */
  bool calibrated;     /* true: the mask was chosen by means of samples; false: by the magnitude of
                          the weights */
  bool solved;         /* the kept weights were fitted, which lowered the error on samples held
                          back */
  const char *reason;  /* why the layer is pruned but not calibrated; NULL: it is calibrated, or not
                          pruned */
  double error_before; /* error with the mask alone, before weights are updated */
  double error_after;  /* error with the new weights; both errors are 0 unless the layer was
                          calibrated */
  double energy;       /* sum |W_d x_d|^2 over the samples held back */
  int64_t positions;   /* number of inputs x that were summed, from the samples that are not held
                          back */
} laci_calibrated_layer;

typedef struct laci_calibrated {
  int n_layers, n_stored;
  laci_calibrated_layer *layers; /* [n_layers] the result for each layer, in the order of the
                                    analysis */
  uint8_t **masks;   /* [n_stored] mask of each stored tensor, a byte per element in the tensor's
                        order, 1: kept; NULL: the tensor was not pruned */
  uint8_t **weights; /* [n_stored] new bytes of each stored tensor, in its type; NULL: unchanged.
                        Entries of `masks` and `weights` are of laci_alloc; a caller that takes one
                        over sets it to NULL */
  laci_calibration_cut cut;       /* how the samples were cut into batches, for fitting and for
                                     judging */
  laci_output_difference outputs; /* difference of the network's outputs, over the samples held back
                                     (or all) */
  const char *outputs_reason;     /* why outputs could not be compared; NULL: they were */
  uint64_t values_bytes;          /* peak bytes of the values kept between layers */
  uint64_t file_bytes;            /* peak bytes in temporary files */
  double seconds, fit_seconds;    /* duration of the whole calibration (seconds), and of the fits
                                     alone (fit_seconds) */
  double forecast_seconds;        /* seconds that all n_walks calibrations together take, as
                                     forecast before the first began; 0: not known, or short */
  uint64_t forecast_bytes;        /* peak memory of the calibration in bytes as forecast before it
                                     began */
  laci_arena arena;               /* memory of the texts */
} laci_calibrated;

/** Prunes the wanted layers; the graph of the analysis stays unchanged. *out has the same bytes for
 * any number of threads, and for any memory_for_values. Fails LAC_BAD_SHAPE (samples that do not
 * fit the network's inputs), LAC_BAD_VALUE (NaN or Inf in a weight, or in what a layer reads),
 * LAC_MEMORY_LIMIT (before any sample is read), LAC_NO_MEMORY, LAC_IO (temporary files),
 * LAC_INTERRUPTED, and as samples->fetch does; *out is NULL then. */
LAC_MUST_CHECK lac_status laci_calibrate(const laci_analysis *analysis,
                                         const laci_calibration_samples *samples,
                                         const laci_calibrate_options *options,
                                         laci_calibrated **out, lac_error *err);
void laci_calibrated_destroy(laci_calibrated *calibrated); /* NULL is fine */

#endif
