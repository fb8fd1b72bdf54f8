/* SPDX-License-Identifier: Apache-2.0
 * Prunes a network, in these steps: scores -> orders -> verification -> masks -> new weights.
 *
 *   scores         measure.c        what masks keep of each layer, before and after
 *   orders         permute/plan.h   found, then reverted if a layer keeps less: prune.c
 *                  choose_orders.c  reverted if fits have no smaller errors
 *   verification   verify.c         compares the network before and after reordering
 *   masks          weights.c        stored tensors in the new order, masked by magnitude
 *   statistics     correct.c        means and variances that masks changed, without samples
 *   new weights    calibrated.c     masks and weights from samples; dense.c: layers left dense
 *                  magnitude.c      compares these with masks by magnitude
 *
 * Pruning reads an analysis and makes a result, laci_pruning, which has all that is new, including
 * the weights. The graph itself changes in one last step, the commit, which cannot fail. Other code
 * makes reports from the result. Read prune.c first: it calls the other files in this order.
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
typedef struct laci_prune_timing laci_prune_timing; /* defined in speed.h */
typedef struct laci_score laci_score;
typedef struct laci_spill laci_spill;

/** How masks and weights are chosen by samples of the network's inputs (calibrate/walk.h), instead
 * of by magnitude. */
typedef struct laci_prune_calibration {
  const laci_calibration_samples *samples;
  const laci_score *score;
  bool solve;
  int keep_dense;  /* number of layers that stay dense (dense.c) */
  double max_drop; /* limit of laci_judged_drop.most, which is judged on samples->judging; < 0: no
                      limit */
  bool curve;
  bool drawn; /* true: all samples are drawn (synthetic), so that errors of outputs say less about
                     real inputs */
  bool must_gain; /* true: fails with LAC_UNSUPPORTED if the outputs have a larger error than with
                     masks by magnitude (magnitude.c) */
} laci_prune_calibration;

/** What a search for an order of channels maximizes. */
typedef enum laci_permute_for {
  LACI_FOR_SCORE,     /* the sum of the squares of kept weights; the errors of outputs are
                         proportional to what is lost of it */
  LACI_FOR_MAGNITUDE, /* the sum of the magnitudes of kept weights, as in
                         laci_search_result_efficacy */
} laci_permute_for;

typedef struct laci_prune_options {
  laci_pattern pattern;
  laci_mask_form form;        /* form of the masks. Orders are searched for N:M, whatever the form
                                 is */
  int v;                      /* V of the pattern V:N:M, the number of rows that share columns; 0
                                 for other patterns */
  const float *const *scores; /* [n_stored] scores of each tensor's elements, in its layout. NULL,
                                 or NULL for a tensor: scores are |w|. Not together with
                                 calibration */
  bool permute;               /* true: searches for orders; false: every channel keeps its place */
  bool mask;                  /* true: chooses masks for the eligible layers */
  bool keep_pruned; /* true: layers that are pruned already keep their masks, and the order of their
                       input channels */
  bool correct; /* true: without calibration, corrects means and variances that masks changed, by
                       what batch normalizations store (correct.c) */
  bool verify;  /* true: compares the network before and after the reordering, value by value */
  const char
      *engine; /* engine: name of the engine that runs the networks whose outputs are compared, on
                  random inputs. If it is the exact engine, the verification uses double throughout,
                  too. NULL: the fast engine */
  laci_permute_for permute_for;
  laci_search_options search;
  bool spill; /* true: new weights and masks are written to files without names (base/spill.h). Not
                 together with calibration */
  const laci_budget *budget;       /* memory limit, and the memory that the model holds */
  laci_comm *comm;                 /* processes that run laci_prune together; NULL: this process
                                      alone */
  const laci_prune_timing *timing; /* predicted times: to reach a wanted speed, and to weigh the
                                      harm of pruning a layer against the time it saves. NULL: times
                                      do not matter */
  const laci_prune_calibration *calibration; /* how masks and weights are chosen by samples, if
                                                laci_prune runs in one process; NULL: masks are
                                                chosen by magnitude */
} laci_prune_options;

/** The result of pruning for a layer of the analysis. Figures of layers that cannot be measured are
 * 0. */
typedef struct laci_pruned_layer {
  double kept_identity; /* sum of the magnitudes that N:M keeps in the file's order */
  double kept;          /* sum of the magnitudes that N:M keeps in the result's order */
  double total;         /* sum of the magnitudes of all elements */
  double score_kept_identity, score_kept, score_total; /* the same three sums for options->scores
                                                          instead of magnitudes; equal to the sums
                                                          of magnitudes if there are no scores */
  bool measured;               /* true: the weight's elements were read; false: they were not, and
                                  the fields below are 0 */
  bool holds_rows;             /* true: the new weight holds the N:M pattern along its output
                                  channels, too */
  int64_t n_zeros, n_elements; /* number of zeros, and of all elements, in the new weight */
  bool holds_pattern;          /* true: the new weight holds the pattern */
  bool was_pruned;    /* true: the old weight was pruned: it holds the pattern, is not all zeros,
                         and has so many channels that the pattern matters */
  bool pruned;        /* true: the layer has a mask in the result */
  bool is_pruned;     /* true: the layer has a mask in the result, or its new weight meets the
                         conditions of was_pruned */
  bool searchable;    /* true: the layer's input channels belong to a group whose order may be
                         searched */
  const char *reason; /* why the layer is not pruned, or why its channels are not reordered; NULL:
                         there is nothing to explain */
  bool calibrated, solved;          /* calibrated: the mask was chosen by samples. solved: the kept
                                       weights were fitted by samples (laci_calibrated_layer) */
  double error_before, error_after; /* error of the layer's outputs before and after its weights
                                       were fitted (laci_calibrated_layer) */
  double effect; /* relative change of the network's outputs if only this layer is pruned; 0: not
                    measured */
} laci_pruned_layer;

/** The mask of a stored tensor. It has one bit for each element, 1 = kept, beginning with the
 * lowest bit of a byte. */
typedef struct laci_pruned_mask {
  int stored;
  int64_t count;
  uint8_t *bits; /* the mask, from laci_alloc; NULL if `spilled` is true */
  bool spilled;  /* true: the bits are in the file masks_spill */
} laci_pruned_mask;

typedef struct laci_pruning_verification {
  bool verified;      /* true: all outputs were compared and agree, or nothing is reordered */
  bool order_unknown; /* true: only outputs were compared, since no reordering explains how the
                         weights changed */
  double seconds;
  laci_verification found; /* what the verification found. Its field `engine` is NULL if there was
                              nothing to compute */
} laci_pruning_verification;

enum { LACI_VERIFICATION_TEXT_SIZE = 1280 };

/** Writes one sentence on the result of the verification, for log and report. The text is empty if
 * laci_pruning_verify was not called, since nothing was to be verified. */
void laci_verification_text(const laci_pruning_verification *v,
                            char text[LACI_VERIFICATION_TEXT_SIZE]);

/** How a loss of quality is measured. */
typedef enum laci_drop_measure {
  LACI_DROP_TOP1,      /* by top-1 accuracy, in percentage points; for data with labels and one
                          answer for each sample */
  LACI_DROP_ANSWERS,   /* by the answers that change, in percent; no loss of top-1 accuracy can be
                          larger */
  LACI_DROP_OUTPUTS,   /* by the relative error of the worst part of the outputs, in percent */
  LACI_DROP_POSITIONS, /* by the rows of probabilities whose largest element moves, in percent of
                          the rows in the worst output */
} laci_drop_measure;

/** If at most LACI_DROP_TRIES networks are tried, the bound laci_judged_drop.most holds for the
 * network that is kept with this confidence. */
#define LACI_DROP_CONFIDENCE 0.95
enum { LACI_DROP_TRIES = 8 };

typedef struct laci_judged_drop {
  laci_drop_measure measure;
  int64_t n;    /* number of samples on which the loss was judged; 0: it was not judged */
  double found; /* loss on these samples */
  double most;  /* upper bound of the loss on all data of this kind */
  /* true: the loss was far above the limit on the first samples, so the other samples were not
     run */
  bool hopeless;
} laci_judged_drop;

/** Return the number of samples that can show a loss of at most max_drop. laci_drop_least_samples:
 * if there is no loss at all on these samples. laci_drop_enough_samples: if there is half of
 * max_drop on them. INT64_MAX: no number of samples can show it. has_answers: the measure is
 * LACI_DROP_TOP1 or LACI_DROP_ANSWERS. */
int64_t laci_drop_least_samples(double max_drop, bool has_answers);
int64_t laci_drop_enough_samples(double max_drop, bool has_answers);

/** Computes the loss and its upper bound from a comparison of outputs. The bound to->most is wrong
 * with a probability of at most (1 - LACI_DROP_CONFIDENCE) / LACI_DROP_TRIES. */
void laci_drop_compute_bound(const laci_output_difference *difference, laci_judged_drop *to);

/** A point of the loss curve. The layers of least effect are pruned, the others are dense. */
typedef struct laci_pruning_point {
  int layer; /* index of the pruned layer that has the largest effect; -1: no layer is pruned */
  double effect;
  laci_output_difference difference;
} laci_pruning_point;

/** How the new order of a group changed the errors of the layers that read the group. */
typedef struct laci_pruned_order {
  bool judged;
  double error_before, error_after; /* sum of the errors of the layers that read the group: before,
                                       with the channels in the file's order; after, in the plan's
                                       order */
} laci_pruned_order;

typedef struct laci_pruning_calibration {
  bool done;
  const char *score;
  int64_t n_fitted, n_held_back; /* n_fitted: number of samples that the fits read. n_held_back:
                                    number of samples that judge the fits */
  laci_output_difference outputs;
  const char *outputs_reason; /* why outputs were not compared; NULL: they were compared */
  double error_magnitude;     /* outputs.relative for masks by magnitude; 0: it was not measured */
  int n_kept_dense;
  laci_judged_drop drop; /* loss of quality of the network that is kept; drop.n is 0 if no limit was
                            set */
  int n_points;
  laci_pruning_point *points; /* [n_points] loss curve, from laci_alloc; NULL: it was not
                                 measured */
  uint64_t values_bytes, file_bytes;
  double seconds, fit_seconds;
  double forecast_seconds; /* seconds that all calibration walks together take, as forecast before
                              the first; 0: it was not forecast, since walks are short or the
                              network does not run as a whole */
  uint64_t forecast_bytes;
} laci_pruning_calibration;

typedef struct laci_pruning {
  const laci_analysis *analysis;
  laci_pattern pattern;
  laci_mask_rule rule;        /* rule by which masks are chosen; by default 1-D with `pattern` */
  const float *const *scores; /* scores of the elements, from laci_prune_options.scores */
  laci_plan *plan;            /* the chosen order of each group of channels */
  laci_pruned_layer *layers;  /* [analysis->n_layers] result for each layer */
  const char **held_cause;    /* [analysis->n_groups] why each group that could be reordered is not;
                                 else NULL */
  int n_masks;
  laci_pruned_mask *masks;   /* [n_masks] masks, with space for n_layers */
  uint8_t **weights;         /* [n_stored] new bytes of each stored tensor; NULL: they are
                                unchanged */
  laci_spill *weights_spill; /* file with the new bytes; NULL: they are in memory */
  laci_spill *masks_spill;   /* file with the masks; NULL: they are in memory. A caller that takes
                                over the masks takes this, too, and sets NULL */
  laci_pruning_verification verification;
  laci_pruning_calibration calibration;
  laci_pruned_order *orders;      /* [analysis->n_groups] how each group's new order was judged;
                                     NULL: no order was judged */
  struct laci_calibrated *fitted; /* result of the calibration, until laci_prune_end; else NULL */
  bool *left_dense;               /* [analysis->n_layers] true: the wanted speed can be reached
                                     without pruning the layer; NULL: no layer is like this */
  bool *wanted;                   /* [analysis->n_layers] true: `fitted` has a result for the layer.
                                     Lives as long as `fitted` */
  int n_corrected;                /* number of layers whose means and variances were corrected */
  bool interrupted;               /* true: the user interrupted the search */
  double search_seconds;
  laci_arena arena; /* memory of the texts */
} laci_pruning;

/** Creates a result in which nothing is reordered or pruned yet. The analysis must outlive it.
 * After a failure *out is NULL, as in the functions below. */
LAC_MUST_CHECK lac_status laci_pruning_create(const laci_analysis *analysis, laci_pattern pattern,
                                              laci_pruning **out, lac_error *err);
void laci_pruning_destroy(laci_pruning *pruning); /* pruning may be NULL */

/** Runs all steps of pruning except the commit. The processes of options->comm share the search,
 * and the first of them verifies. All return the same result or failure.
 *
 * Fails with LAC_PEER, LAC_BAD_VALUE (a NaN or an infinity in an eligible layer), LAC_PROOF_FAILED,
 * LAC_INTERRUPTED, LAC_NO_MEMORY, or LAC_MEMORY_LIMIT (which is found before the search, also for
 * the verification). */
LAC_MUST_CHECK lac_status laci_prune(const laci_analysis *analysis,
                                     const laci_prune_options *options, laci_pool *pool,
                                     laci_pruning **out, lac_error *err);

/** Two halves of laci_prune, for a caller that changes the whole network between them. After
 * laci_prune_begin, `fitted` has the calibrated weights, and `weights` still has the dense ones.
 * laci_prune_end replaces the dense weights by the calibrated ones and logs the result. */
LAC_MUST_CHECK lac_status laci_prune_begin(const laci_analysis *analysis,
                                           const laci_prune_options *options, laci_pool *pool,
                                           laci_pruning **out, lac_error *err);
LAC_MUST_CHECK lac_status laci_prune_end(laci_pruning *pruning, const laci_prune_options *options,
                                         laci_pool *pool, lac_error *err);

/** A pruned network whose loss of quality is to be judged. It is accepted if its loss is at most
 * calibration->max_drop. */
typedef struct laci_drop_candidate {
  const laci_calibration_cut *cut;   /* how the samples of the fit were cut into batches */
  const laci_weighted_graph *pruned; /* the graph with the pruned weights */
  laci_pool *pool;
  laci_output_cache *cache; /* outputs of the dense network; NULL: they are computed again */
} laci_drop_candidate;

/** Judges the loss of candidate->pruned, compared with the graph with pruning->weights. Fails with
 * LAC_BAD_VALUE if there are too few samples to judge by, and as laci_compare_outputs. */
LAC_MUST_CHECK lac_status laci_pruning_judge_drop(const laci_pruning *pruning,
                                                  const laci_prune_options *options,
                                                  const laci_drop_candidate *candidate,
                                                  laci_judged_drop *drop, lac_error *err);

/** A permutation file: its name, for messages, and its text. invert: the inverse of its orders is
 * applied, which undoes them. */
typedef struct laci_saved_orders {
  const char *name, *text;
  bool invert;
} laci_saved_orders;

/** Reorders as laci_prune does, but by saved orders instead of a search. No layer is masked. Fails
 * as laci_prune, and with LAC_BAD_FILE. */
LAC_MUST_CHECK lac_status laci_prune_with_saved_orders(const laci_analysis *analysis,
                                                       const laci_saved_orders *orders,
                                                       const laci_prune_options *options,
                                                       laci_pool *pool, laci_pruning **out,
                                                       lac_error *err);

/** Puts the new weights into `graph`, which must be the analysis's graph. Views of the old weights
 * become invalid, also those in the analysis. */
void laci_pruning_commit(laci_pruning *pruning, laci_graph *graph);

/* ---- Single steps, for callers that need only some of them ---- */

/** Measures the weight of every layer as it is in the graph. Fails with LAC_BAD_VALUE for a NaN or
 * an infinity in an eligible layer. */
LAC_MUST_CHECK lac_status laci_pruning_measure_layers(laci_pruning *pruning, laci_pool *pool,
                                                      lac_error *err);

/** Finds the orders that map the graph's stored tensors to those of `changed`, and checks every
 * element. Elements of a layer's weight that are masked out (zero) may differ. Fails with
 * LAC_PROOF_FAILED; the text names the first tensor that is no such reordering. */
LAC_MUST_CHECK lac_status laci_pruning_find_orders(laci_pruning *pruning, const laci_graph *changed,
                                                   lac_error *err);

/** To be called after laci_pruning_find_orders failed with the error `why`. Compares the outputs of
 * both networks instead of their weights, and stores how much they differ as the verification's
 * reason. Returns LAC_OK only if options->verify is false; otherwise fails with LAC_PROOF_FAILED
 * and that reason. */
LAC_MUST_CHECK lac_status laci_pruning_compare_unexplained(laci_pruning *pruning,
                                                           const laci_graph *changed,
                                                           const laci_prune_options *options,
                                                           laci_pool *pool, const lac_error *why,
                                                           lac_error *err);

/** Verifies the orders and logs the result. If no channel moves, no network is run. Of the options
 * it reads only verify, budget and the search's seed. Fails with LAC_PROOF_FAILED, or with
 * LAC_UNSUPPORTED if no value could be compared. If only some values could be compared, it logs a
 * warning. */
LAC_MUST_CHECK lac_status laci_pruning_verify(laci_pruning *pruning,
                                              const laci_prune_options *options, laci_pool *pool,
                                              lac_error *err);

/** Returns the gain of a search in percent of the gain that is possible: (kept - identity) / (upper
 * - identity); 0 if no gain is possible. */
double laci_search_result_efficacy(const laci_search_result *found);

/** computed.c: a network may compute a layer's weight from stored tensors. Computes its content, as
 * it would be stored. layer: a layer of the analysis, from index n_layers on. The caller frees
 * *bytes; it is NULL if the content cannot be known, which is logged. Fails only with errors that
 * end the run: LAC_NO_MEMORY, LAC_IO, LAC_INTERRUPTED. */
LAC_MUST_CHECK lac_status laci_evaluate_computed_weight(const laci_analysis *analysis, int layer,
                                                        const laci_budget *budget,
                                                        laci_weight_view *view, uint8_t **bytes,
                                                        lac_error *err);

typedef struct laci_computed_options {
  const laci_mask_rule *rule;
  const laci_budget *budget; /* memory limit; NULL: there is none */
  laci_pool *pool;
} laci_computed_options;

/** computed.c: sets *pruned to whether the computed weight of this layer holds the pattern; false
 * if its content is not known. */
LAC_MUST_CHECK lac_status laci_computed_is_pruned(const laci_analysis *analysis, int layer,
                                                  const laci_computed_options *how, bool *pruned,
                                                  lac_error *err);

#endif
