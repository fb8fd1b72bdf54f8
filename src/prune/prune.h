/* SPDX-License-Identifier: Apache-2.0
 * Pruning: scores -> orders -> verification -> masks -> new weights.
 *
 *   scores         measure.c        what masks keep of each layer, before and after
 *   orders         permute/plan.h   found, then reverted where they lose: prune.c
 *                  choose_orders.c  reverted where calibrated errors do not gain
 *   verification   verify.c         the network before and after the reordering
 *   masks          weights.c        stored tensors in the new order, masked by magnitude
 *   new weights    calibrated.c     masks and weights from samples; dense.c: layers left dense
 *                  magnitude.c      whether these are better than masks by magnitude
 *
 * Pruning reads an analysis and makes a result, laci_pruning, which holds all that is new, the
 * weights included. The graph itself changes in one last step, the commit, which cannot fail.
 * Reports are filled from the result by other code. Read prune.c first: it calls the other files in
 * this order.
 *
 * Two results share nothing: several threads may each make one, even of the same graph, until one
 * of them commits. */
#ifndef LACI_PRUNE_PRUNE_H
#define LACI_PRUNE_PRUNE_H

#include "base/memory.h"
#include "calibrate/samples.h"
#include "permute/search.h"
#include "sparse/weight_view.h"

#include "verify/verify.h"

typedef struct laci_analysis laci_analysis;
typedef struct laci_plan laci_plan;
typedef struct laci_prune_timing laci_prune_timing; /* speed.h */
typedef struct laci_score laci_score;
typedef struct laci_spill laci_spill;

/** Masks and weights from samples of the network's inputs (calibrate/walk.h), instead of by
 * magnitude. */
typedef struct laci_prune_calibration {
  const laci_calibration_samples *samples;
  const laci_score *score;
  bool solve;
  int keep_dense;  /* number of layers that stay dense (dense.c) */
  double max_drop; /* limit of laci_judged_drop.most, judged on samples->judging; < 0: no limit */
  bool curve;
  bool must_gain; /* fails LAC_UNSUPPORTED if the outputs' error is above that of masks by magnitude
                     (magnitude.c) */
} laci_prune_calibration;

/** What a search for an order maximizes. */
typedef enum laci_permute_for {
  LACI_FOR_SCORE,     /* kept squares of magnitudes, to which the errors of outputs are
                         proportional */
  LACI_FOR_MAGNITUDE, /* kept magnitudes, as in laci_found_efficacy */
} laci_permute_for;

typedef struct laci_prune_options {
  laci_pattern pattern;
  laci_mask_form form;        /* form of the masks; orders are searched for N:M whatever the form */
  int v;                      /* V of the pattern V:N:M, the number of rows that share columns; 0
                                 for other patterns */
  const float *const *scores; /* [n_stored] the scores of each tensor's elements, in its layout;
                                 NULL, or a NULL entry: scores are |w|. Not with calibration */
  bool permute;               /* searches for orders; otherwise every channel stays at its place */
  bool mask;                  /* chooses masks for the eligible layers */
  bool keep_pruned; /* layers that are pruned already keep their masks and the order of their input
                       channels */
  bool verify;      /* compares the network before and after the reordering, value by value */
  const char
      *engine; /* what runs networks on random inputs whose outputs are compared; the exact engine:
                         also the verification, in double throughout. NULL: the fast engine */
  laci_permute_for permute_for;
  laci_search_options search;
  bool spill; /* new weights and masks go to files without names (base/spill.h); not with
                 calibration */
  const laci_budget *budget;       /* the memory limit, and the memory that the model holds */
  laci_comm *comm;                 /* the processes that run laci_prune together; NULL: this process
                                      alone */
  const laci_prune_timing *timing; /* predicted times: for a wanted speed, and to weigh a layer's
                                      harm against the time it saves; NULL: times are not considered
                                      */
  const laci_prune_calibration *calibration; /* how masks and weights are chosen by samples, for
                                                laci_prune in one process; NULL: masks are chosen by
                                                magnitude */
} laci_prune_options;

/** The result for a layer of the analysis. Figures of layers that cannot be measured are 0. */
typedef struct laci_pruned_layer {
  double kept_identity; /* sum of magnitudes that N:M keeps in the file's order */
  double kept;          /* sum of magnitudes that N:M keeps in the result's order */
  double total;         /* sum of all magnitudes */
  double score_kept_identity, score_kept, score_total; /* the three sums above, by options->scores
                                                          instead of magnitudes; equal to them where
                                                          there are none */
  bool measured;               /* true: the weight's elements were read; false: they were not, and
                                  the fields below are 0 */
  bool holds_rows;             /* the new weight holds the N:M pattern along its output channels,
                                  too */
  int64_t n_zeros, n_elements; /* number of zeros, and of all elements, in the new weight */
  bool holds_pattern;          /* the new weight holds the pattern */
  bool was_pruned;    /* the old weight was pruned: it holds the pattern, is not all zeros, and has
                      enough channels for the pattern to matter */
  bool pruned;        /* the layer has a mask in the result */
  bool is_pruned;     /* the layer has a mask in the result, or its new weight meets the conditions
                         of was_pruned */
  bool searchable;    /* its input channels belong to a group whose order may be searched */
  const char *reason; /* why the layer is not pruned, or its channels are not reordered; NULL:
                              no reason to give */
  bool calibrated, solved;          /* the mask was chosen, and the kept weights were fitted, by
                                       samples, as in laci_calibrated_layer */
  double error_before, error_after; /* errors of the layer's outputs before and after its weights
                                       were fitted, as in laci_calibrated_layer */
  double effect; /* relative change of the outputs if this layer alone is pruned; 0: not measured */
} laci_pruned_layer;

/** The mask of a stored tensor: one bit an element, 1 = kept, lowest bit first. */
typedef struct laci_pruned_mask {
  int stored;
  int64_t count;
  uint8_t *bits; /* laci_alloc; NULL where spilled */
  bool spilled;  /* the bits are in masks_spill */
} laci_pruned_mask;

typedef struct laci_pruning_verification {
  bool verified;      /* all outputs were compared and agree, or nothing is reordered */
  bool order_unknown; /* only outputs were compared, since no reordering explains the change of
                         weights */
  double seconds;
  laci_verification found; /* what the verification found; its field engine is NULL where there was
                              nothing to compute */
} laci_pruning_verification;

enum { LACI_SAID = 1280 };

/** Writes one sentence on the result of the verification, for log and report. The text is empty if
 * nothing was to be verified. */
void laci_verification_text(const laci_pruning_verification *v, char text[LACI_SAID]);

/** How a loss of quality is measured. */
typedef enum laci_drop_measure {
  LACI_DROP_TOP1,      /* percentage points of top-1 accuracy; for data with labels and one answer
                          per sample */
  LACI_DROP_ANSWERS,   /* percent of the answers that change: no loss of top-1 can be larger */
  LACI_DROP_OUTPUTS,   /* percent: the relative error of the worst part of the outputs */
  LACI_DROP_POSITIONS, /* percent of the rows of probabilities whose largest element moves, in the
                          worst output */
} laci_drop_measure;

/** The bound laci_judged_drop.most holds with this confidence for the network that is kept, if at
 * most LACI_DROP_TRIES networks are tried. */
#define LACI_DROP_CONFIDENCE 0.95
enum { LACI_DROP_TRIES = 8 };

typedef struct laci_judged_drop {
  laci_drop_measure measure;
  int64_t n;    /* samples that the loss was judged on; 0: it was not judged */
  double found; /* the loss on these samples */
  double most;  /* upper bound of the loss on all data of this kind */
  /* The loss was far above the limit on the first samples, so the others were not run. */
  bool hopeless;
} laci_judged_drop;

/** Return how many samples can show that a loss is at most max_drop. laci_drop_least_samples: if
 * the samples show no loss at all. laci_drop_enough_samples: if they show half of max_drop.
 * INT64_MAX: no number of samples can. has_answers: the measure is LACI_DROP_TOP1 or
 * LACI_DROP_ANSWERS. */
int64_t laci_drop_least_samples(double max_drop, bool has_answers);
int64_t laci_drop_enough_samples(double max_drop, bool has_answers);

/** A point of the loss curve: the layers of least effect are pruned, all others are dense. */
typedef struct laci_pruning_point {
  int layer; /* the pruned layer of largest effect; -1: no layer is pruned */
  double effect;
  laci_output_difference difference;
} laci_pruning_point;

/** How a group's new order changed the errors of the layers that read the group. */
typedef struct laci_pruned_order {
  bool judged;
  double error_before, error_after; /* sum of the errors of the layers that read the group: with the
                                       channels in the file's order, and in the plan's */
} laci_pruned_order;

typedef struct laci_pruning_calibration {
  bool done;
  const char *score;
  int64_t n_fitted, n_held_back; /* number of samples that the fits read, and number held back to
                                    judge them */
  laci_output_difference outputs;
  const char *outputs_reason; /* why outputs were not compared; NULL: they were */
  double error_magnitude;     /* outputs.relative of masks by magnitude; 0: not measured */
  int n_kept_dense;
  laci_judged_drop drop; /* loss of quality of the network that is kept; drop.n is 0 where no limit
                            was set */
  int n_points;
  laci_pruning_point *points; /* [n_points], laci_alloc; NULL: not measured */
  uint64_t values_bytes, file_bytes;
  double seconds, fit_seconds;
  double
      forecast_seconds; /* seconds that were forecast for all walks before the first; 0: none were,
                              as the walks were short or the network does not run as a whole */
  uint64_t forecast_bytes;
} laci_pruning_calibration;

typedef struct laci_pruning {
  const laci_analysis *analysis;
  laci_pattern pattern;
  laci_mask_rule rule;        /* rule of the masks; by default 1-D with `pattern` */
  const float *const *scores; /* laci_prune_options.scores */
  laci_plan *plan;            /* the chosen order of each group of channels */
  laci_pruned_layer *layers;  /* [analysis->n_layers] the result for each layer */
  const char **held_cause;    /* [analysis->n_groups] why a group that could be reordered is not;
                                 else NULL */
  int n_masks;
  laci_pruned_mask *masks;   /* [n_masks]; capacity n_layers */
  uint8_t **weights;         /* [n_stored] new bytes; NULL: unchanged */
  laci_spill *weights_spill; /* file with the new bytes; NULL: they are in memory */
  laci_spill *masks_spill;   /* file with the masks; NULL: they are in memory. Who takes the masks
                                over takes this, too, and sets NULL */
  laci_pruning_verification verification;
  laci_pruning_calibration calibration;
  laci_pruned_order *orders;      /* [analysis->n_groups] how orders were judged; NULL: none was
                                     judged */
  struct laci_calibrated *fitted; /* result of the calibration until laci_prune_end; else NULL */
  bool *left_dense;               /* [analysis->n_layers] layers that a wanted speed can do without;
                                     NULL: none */
  bool *wanted;                   /* [analysis->n_layers] layers that `fitted` has results for;
                                     lives as long as `fitted` */
  bool interrupted;               /* the user interrupted the search */
  double search_seconds;
  laci_arena arena; /* texts */
} laci_pruning;

/** Creates a result in which nothing is reordered or pruned yet. The analysis must outlive it. *out
 * is NULL on failure, as in the functions below. */
LAC_MUST_CHECK lac_status laci_pruning_create(const laci_analysis *analysis, laci_pattern pattern,
                                              laci_pruning **out, lac_error *err);
void laci_pruning_destroy(laci_pruning *pruning); /* NULL is fine */

/** Runs all steps of pruning except the commit. The processes of options->comm share the search,
 * the first of them verifies, and all return the same result or failure. Fails LAC_PEER,
 * LAC_BAD_VALUE (NaN or Inf in an eligible layer), LAC_PROOF_FAILED, LAC_INTERRUPTED,
 * LAC_NO_MEMORY, LAC_MEMORY_LIMIT (found before the search, for the verification, too). */
LAC_MUST_CHECK lac_status laci_prune(const laci_analysis *analysis,
                                     const laci_prune_options *options, laci_pool *pool,
                                     laci_pruning **out, lac_error *err);

/** laci_prune in two halves, for a caller that changes the whole network between them. After
 * laci_prune_begin, the calibrated weights are in `fitted` and `weights` still has the dense ones.
 * laci_prune_end replaces the dense weights by the calibrated ones and logs the result. */
LAC_MUST_CHECK lac_status laci_prune_begin(const laci_analysis *analysis,
                                           const laci_prune_options *options, laci_pool *pool,
                                           laci_pruning **out, lac_error *err);
LAC_MUST_CHECK lac_status laci_prune_end(laci_pruning *pruning, const laci_prune_options *options,
                                         laci_pool *pool, lac_error *err);

/** A pruned network whose loss of quality is to be judged. It is accepted if the loss is at most
 * calibration->max_drop. */
typedef struct laci_drop_candidate {
  const laci_calibration_cut *cut;   /* batches of the fit */
  const laci_weighted_graph *pruned; /* the graph with the pruned weights */
  laci_pool *pool;
  laci_kept_outputs *kept; /* outputs of the dense network; NULL: they are computed anew */
} laci_drop_candidate;

/** Judges the loss of candidate->pruned against the graph with pruning->weights. Fails
 * LAC_BAD_VALUE where there are too few samples to judge by, and as laci_compare_outputs. */
LAC_MUST_CHECK lac_status laci_pruning_judge_drop(const laci_pruning *pruning,
                                                  const laci_prune_options *options,
                                                  const laci_drop_candidate *candidate,
                                                  laci_judged_drop *drop, lac_error *err);

/** A permutation file: its name, for messages, and its text. invert: apply the inverse orders,
 * which undo the file's. */
typedef struct laci_saved_orders {
  const char *name, *text;
  bool invert;
} laci_saved_orders;

/** Reorders as laci_prune does, but by saved orders instead of a search; nothing is masked. Fails
 * as laci_prune, and LAC_BAD_FILE. */
LAC_MUST_CHECK lac_status laci_prune_with_saved_orders(const laci_analysis *analysis,
                                                       const laci_saved_orders *orders,
                                                       const laci_prune_options *options,
                                                       laci_pool *pool, laci_pruning **out,
                                                       lac_error *err);

/** Puts the new weights into `graph`, which is that of the analysis. Views of the old weights
 * become invalid, those in the analysis included. */
void laci_pruning_commit(laci_pruning *pruning, laci_graph *graph);

/* ---- The single steps, for callers that need only some of them ---- */

/** Measures every layer's weight as it is in the graph. Fails LAC_BAD_VALUE for NaN or Inf in an
 * eligible layer. */
LAC_MUST_CHECK lac_status laci_pruning_measure_layers(laci_pruning *pruning, laci_pool *pool,
                                                      lac_error *err);

/** Finds the orders that map the graph's stored tensors to those of `changed`, elements that are
 * masked out (zero) in a layer's weight excepted, and checks every element. Fails LAC_PROOF_FAILED
 * naming the first tensor that is no such reordering. */
LAC_MUST_CHECK lac_status laci_pruning_find_orders(laci_pruning *pruning, const laci_graph *changed,
                                                   lac_error *err);

/** Call it after laci_pruning_find_orders failed with the error `why`. Compares the outputs of both
 * networks instead of their weights, and stores how far they differ as the verification's reason.
 * Returns LAC_OK only if options->verify is false; otherwise fails LAC_PROOF_FAILED with that
 * reason. */
LAC_MUST_CHECK lac_status laci_pruning_compare_unexplained(laci_pruning *pruning,
                                                           const laci_graph *changed,
                                                           const laci_prune_options *options,
                                                           laci_pool *pool, const lac_error *why,
                                                           lac_error *err);

/** Verifies the orders and logs the result; if no channel moves, nothing is run. Reads only verify,
 * budget and the search's seed from the options. Fails LAC_PROOF_FAILED, and LAC_UNSUPPORTED if no
 * value could be compared. If only some values could be compared, it logs a warning. */
LAC_MUST_CHECK lac_status laci_pruning_verify(laci_pruning *pruning,
                                              const laci_prune_options *options, laci_pool *pool,
                                              lac_error *err);

/** Returns the percentage of the possible gain that the search achieved: (kept - identity) / (upper
 * - identity); 0 where no gain is possible. */
double laci_found_efficacy(const laci_found *found);

/** computed.c: computes the content of a weight that is computed from stored tensors (`layer` is a
 * row of the analysis from n_layers on), as it would be stored. The caller frees *bytes, which is
 * NULL where the content cannot be known; this is logged. Fails only with errors that end the run:
 * LAC_NO_MEMORY, LAC_IO, LAC_INTERRUPTED. */
LAC_MUST_CHECK lac_status laci_evaluate_computed_weight(const laci_analysis *analysis, int layer,
                                                        const laci_budget *budget,
                                                        laci_weight_view *view, uint8_t **bytes,
                                                        lac_error *err);

typedef struct laci_computed_options {
  const laci_mask_rule *rule;
  const laci_budget *budget; /* NULL: no limit */
  laci_pool *pool;
} laci_computed_options;

/** Sets *pruned to whether that computed weight holds the pattern; false if its content is not
 * known. (computed.c) */
LAC_MUST_CHECK lac_status laci_computed_is_pruned(const laci_analysis *analysis, int layer,
                                                  const laci_computed_options *how, bool *pruned,
                                                  lac_error *err);

#endif
