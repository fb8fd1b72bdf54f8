/* SPDX-License-Identifier: Apache-2.0
 * Masks and weights from samples: layer after layer in the order of the graph, the dense network
 * and the one that is pruned so far together.
 *
 *   for every value that layers read, in the order of the graph:
 *     compute it for all samples, in both networks     parts of the graph, each an engine
 *     H = sum x_p x_p',  K = sum x_d x_p'              Gram matrices of the layers that read it
 *     fit mask and weight of these layers              calibrate/fit.h
 *     measure them on samples held back from the sums
 *     put the new weights into the pruned network
 *
 * Only values that are still to be read are kept, in memory or in temporary files (frontier_in.h).
 * Asymmetric reconstruction (targets from the dense network, inputs from the pruned one): He et
 * al., "Channel Pruning for Accelerating Very Deep Neural Networks" (2017); layer after layer:
 * Frantar and Alistarh, "Optimal Brain Compression" (2022). Next: walk.c (the loop), plan_in.h
 * (the parts), samples.h (batches; outputs of two networks). */
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
  laci_mask_form
      form;      /* of masks: another than 1-D only for scores that say what a weight is worth */
  int v;         /* of V:N:M; else 0 */
  uint64_t seed; /* of scores that draw */
  const laci_score *score; /* how masks are chosen: laci_score_find */
  bool solve;              /* kept weights are fitted; else they are what the score leaves them */
  bool symmetric;          /* both sides of the fit see the pruned network: no K is summed */
  const bool *wanted;      /* [analysis->n_layers] layers to be pruned; NULL: all eligible ones */
  const uint8_t *const *weights; /* [n_stored] bytes in the place of the graph's, NULL entries: the
                                    graph's (a network that is permuted and not committed); NULL */
  int64_t positions;  /* inputs x that are summed for every column of a layer's matrix, at most: so
                         many say enough, and more cost as much again. 0: 128, of wide layers fewer
                         (walk.c); INT64_MAX:  all */
  int batch;          /* samples at a time, at most; 0: by the size of the network. A
                         network whose batch size is fixed has that one */
  const char *folder; /* of temporary files; NULL: TMPDIR or /tmp */
  uint64_t memory_for_values; /* bytes of values kept between layers that may be in memory; 0: what
                                 the budget leaves, at most a quarter of it and 1.5 GB. Tests: 1 */
  const laci_budget *budget;  /* the limit, and what others hold; NULL: no limit */
  laci_pool *pool;
} laci_calibrate_options;

/** What became of a layer. Errors: sum |W_d x_d - W x_p|^2 / sum |W_d x_d|^2 over the samples held
 * back (over all, where there are none). */
typedef struct laci_calibrated_layer {
  bool pruned;         /* it was wanted, is eligible, and has a mask */
  bool calibrated;     /* by samples; else by the magnitude of its weights */
  bool solved;         /* its kept weights were fitted, and that lowered the error held back */
  const char *reason;  /* why it is pruned, but not calibrated; NULL: nothing to say */
  double error_before; /* masked only */
  double error_after;  /* with the new weights; both 0 unless calibrated */
  double energy;       /* sum |W_d x_d|^2 over the samples held back */
  int64_t positions;   /* inputs x that were summed, of samples that are not held back */
} laci_calibrated_layer;

typedef struct laci_calibrated {
  int n_layers, n_stored;
  laci_calibrated_layer *layers; /* [n_layers] as in the analysis */
  uint8_t **masks;   /* [n_stored] bytes in the weight's own order, 1 = kept; NULL: not pruned */
  uint8_t **weights; /* [n_stored] new bytes in the type of the stored tensor; NULL: as they were.
                        laci_alloc both; a taker sets NULL */
  laci_calibration_cut cut;       /* how the samples were used */
  laci_output_difference outputs; /* the whole network, over the samples held back (or all) */
  const char *outputs_reason;     /* why outputs could not be compared; NULL: they were */
  uint64_t values_bytes;          /* the most that was kept between layers at a time, ... */
  uint64_t file_bytes;            /* ... and in temporary files */
  double seconds, fit_seconds;    /* all of it; the fits alone */
  laci_arena arena;               /* texts */
} laci_calibrated;

/** The graph of the analysis stays as it is. The same bytes for any number of threads and any
 * place of the values. Fails LAC_BAD_SHAPE (samples that do not fit the network's inputs),
 * LAC_BAD_VALUE (NaN or Inf in a weight, or in what a layer reads), LAC_MEMORY_LIMIT (before any
 * sample is read), LAC_NO_MEMORY, LAC_IO (temporary files), LAC_INTERRUPTED, and as samples->fetch
 * does; *out is NULL then. */
LAC_MUST_CHECK lac_status laci_calibrate(const laci_analysis *analysis,
                                         const laci_calibration_samples *samples,
                                         const laci_calibrate_options *options,
                                         laci_calibrated **out, lac_error *err);
void laci_calibrated_destroy(laci_calibrated *calibrated); /* NULL is fine */

#endif
