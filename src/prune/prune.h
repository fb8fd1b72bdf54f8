/* SPDX-License-Identifier: Apache-2.0
 * Pruning: scores -> orders -> verification -> masks -> new weights.
 *
 *   scores         measure.c        what each layer is worth, before and after
 *   orders         permute/plan.h   found, then those that lose taken back: prune.c
 *                  choose_orders.c  ... by what calibration makes of them
 *   verification   verify.c         the network before and after the reordering
 *   masks          weights.c        stored tensors in the new order, masked by magnitude
 *   new weights    calibrated.c     masks and weights from samples; dense.c: layers left dense
 *
 * It works on an analysis and makes a result, laci_pruning, in which everything is there, the new
 * weights too; the network changes in one last step, which cannot fail. Reports are filled from the
 * result, and nothing here knows them. Read prune.c first: it calls the other files in this order.
 *
 * Nothing is shared between two results: several threads may each work on their own, of one graph
 * too, until one of them commits. */
#ifndef LACI_PRUNE_PRUNE_H
#define LACI_PRUNE_PRUNE_H

#include "base/memory.h"
#include "calibrate/samples.h"
#include "permute/search.h"
#include "sparse/weight_view.h"

#include "verify/verify.h"

typedef struct laci_analysis laci_analysis;
typedef struct laci_plan laci_plan;
typedef struct laci_score laci_score;
typedef struct laci_spill laci_spill;

/** Masks and weights from samples of the network's inputs (calibrate/walk.h), in the place of
 * magnitude. */
typedef struct laci_prune_calibration {
  const laci_calibration_samples *samples;
  const laci_score *score;
  bool solve;
  int keep_dense;  /* layers; see dense.c */
  double max_drop; /* of laci_judged_drop.most, by samples->judging; < 0: any */
  bool curve;
} laci_prune_calibration;

/** What an order is to keep. */
typedef enum laci_permute_for {
  LACI_FOR_SCORE,     /* squares of magnitudes, as errors of a layer's outputs go by them */
  LACI_FOR_MAGNITUDE, /* as efficacy counts it */
} laci_permute_for;

typedef struct laci_prune_options {
  laci_pattern pattern;
  laci_mask_form form;        /* of masks; orders are searched by N:M, whatever it is */
  int v;                      /* of V:N:M: rows that share columns; else 0 */
  const float *const *scores; /* [n_stored] what elements are worth, in the layout of the graph's
                                 tensor; NULL entries, NULL: |w|. Not with calibration */
  bool permute;               /* searches orders; else every channel stays where it is */
  bool mask;                  /* chooses masks for the eligible layers */
  bool keep_pruned; /* what is pruned already keeps its mask, and its input channels their order */
  bool verify;      /* compares the network before and after the reordering, value by value */
  laci_permute_for permute_for;
  laci_search_options search;
  bool spill; /* new weights and masks go to files without names (base/spill.h); not with
                 calibration */
  const laci_budget *budget; /* the limit, and what the model holds */
  laci_comm *comm;           /* of laci_prune: processes that do it together; NULL: alone */
  const laci_prune_calibration *calibration; /* of laci_prune, in one process; NULL: by magnitude */
} laci_prune_options;

/** A layer of the analysis, measured; figures of layers that cannot be measured are 0. */
typedef struct laci_pruned_layer {
  double kept_identity; /* sum of scores that N:M keeps in the order that was there */
  double kept;          /* the same in the order of the result */
  double total;         /* sum of all scores */
  double score_kept_identity, score_kept, score_total; /* the first three by options->scores: |w|
                                                         where there are none */
  bool measured;               /* what is in it was looked at; else what follows is 0 */
  bool holds_rows;             /* the new weight: N:M along its output channels, too */
  int64_t n_zeros, n_elements; /* of the new weight */
  bool holds_pattern;          /* the new weight holds it */
  bool was_pruned; /* before: it holds the pattern, which says something about it, and some of it is
                      left */
  bool pruned;     /* it has a mask in the result */
  bool is_pruned;  /* ... or none, and the new weight is as was_pruned says */
  bool searchable; /* its input channels belong to a group that was free to be searched */
  const char *reason;      /* why it is not pruned or stays in its order; NULL: nothing to say */
  bool calibrated, solved; /* as laci_calibrated_layer says */
  double error_before, error_after; /* the same */
  double effect; /* of it alone, pruned, on the outputs, relative; 0: not measured */
} laci_pruned_layer;

/** The mask of a stored tensor: one bit an element, 1 = kept, lowest bit first. */
typedef struct laci_pruned_mask {
  int stored;
  int64_t count;
  uint8_t *bits; /* laci_alloc, unless: */
  bool spilled;  /* they are in the spill of the masks */
} laci_pruned_mask;

typedef struct laci_pruning_verification {
  bool verified;      /* all outputs were compared and held, or nothing moves */
  bool order_unknown; /* outputs alone were compared: no order leads from the one to the other */
  double seconds;
  laci_verification found; /* engine NULL: there was nothing to compute */
} laci_pruning_verification;

enum { LACI_SAID = 1280 };

/** What was found, in one sentence: log and report both take it from here. Empty: nothing was to be
 * verified. */
void laci_verification_say(const laci_pruning_verification *v, char text[LACI_SAID]);

/** What a loss is counted in. */
typedef enum laci_drop_measure {
  LACI_DROP_TOP1,    /* points of top-1: the data have labels, and there is one answer a sample */
  LACI_DROP_ANSWERS, /* percent of the answers that change: no loss of top-1 can be larger */
  LACI_DROP_OUTPUTS, /* percent: the outputs' relative error */
} laci_drop_measure;

/** `most` holds with this confidence for the network that is kept, of so many that are tried. */
#define LACI_DROP_CONFIDENCE 0.95
enum { LACI_DROP_TRIES = 8 };

typedef struct laci_judged_drop {
  laci_drop_measure measure;
  int64_t n;    /* samples that it was judged on; 0: it was not */
  double found; /* on these */
  double most;  /* what it is at most on all such data */
  /* Far above the limit on the first of the samples: the others were not looked at. */
  bool hopeless;
} laci_judged_drop;

/** The fewest samples by which so small a loss can be shown, if none of them shows any, and as many
 * as it takes where half of it is found. INT64_MAX: none do. has_answers: the measure is one of the
 * first two. */
int64_t laci_drop_least(double max_drop, bool has_answers);
int64_t laci_drop_enough(double max_drop, bool has_answers);

/** The network with its layers of least effect pruned, the others dense. */
typedef struct laci_pruning_point {
  int layer; /* that was the last to be pruned; -1: none is */
  double effect;
  laci_output_difference difference;
} laci_pruning_point;

/** What a group's order did to the layers that read it. */
typedef struct laci_pruned_order {
  bool judged;
  double error_before, error_after; /* sums of their errors, in the file's order and in this one */
} laci_pruned_order;

typedef struct laci_pruning_calibration {
  bool done;
  const char *score;
  int64_t n_fitted, n_held_back; /* samples */
  laci_output_difference outputs;
  const char *outputs_reason; /* why outputs were not compared; NULL: they were */
  int n_kept_dense;
  laci_judged_drop drop; /* of what is kept; n is 0 where no loss was limited */
  int n_points;
  laci_pruning_point *points; /* [n_points], laci_alloc; NULL: not measured */
  uint64_t values_bytes, file_bytes;
  double seconds, fit_seconds;
} laci_pruning_calibration;

typedef struct laci_pruning {
  const laci_analysis *analysis;
  laci_pattern pattern;
  laci_mask_rule rule;        /* of masks; by pattern, 1-D where nobody says otherwise */
  const float *const *scores; /* as the options have them */
  laci_plan *plan;            /* the orders */
  laci_pruned_layer *layers;  /* [analysis->n_layers] */
  const char **held_cause;    /* [analysis->n_groups] why a group that is free stays; else NULL */
  int n_masks;
  laci_pruned_mask *masks;   /* [n_masks], capacity: one a layer */
  uint8_t **weights;         /* [n stored] new bytes; NULL: they stay as they are */
  laci_spill *weights_spill; /* file of the new bytes; NULL: in memory */
  laci_spill *masks_spill;   /* the same of masks; who takes masks takes it, and sets NULL */
  laci_pruning_verification verification;
  laci_pruning_calibration calibration;
  laci_pruned_order *orders;      /* [analysis->n_groups] judged; NULL: none was */
  struct laci_calibrated *fitted; /* until laci_prune_end: what calibration made of the layers; else
                                     NULL */
  bool *wanted;                   /* [analysis->n_layers] those that `fitted` has, as long */
  bool interrupted;               /* the search was ended before its time */
  double search_seconds;
  laci_arena arena; /* texts */
} laci_pruning;

/** A result in which nothing moves and nothing is pruned yet. The analysis must outlive it. *out is
 * NULL on failure, here and below. */
LAC_MUST_CHECK lac_status laci_pruning_create(const laci_analysis *analysis, laci_pattern pattern,
                                              laci_pruning **out, lac_error *err);
void laci_pruning_destroy(laci_pruning *pruning); /* NULL is fine */

/** All of it, but for the commit. Processes of a group share the search, the first of them
 * verifies, and all end with the same result or failure. Fails LAC_PEER, LAC_BAD_VALUE (NaN or Inf
 * in an eligible layer), LAC_PROOF_FAILED, LAC_INTERRUPTED, LAC_NO_MEMORY, LAC_MEMORY_LIMIT (the
 * verification included: before the search). */
LAC_MUST_CHECK lac_status laci_prune(const laci_analysis *analysis,
                                     const laci_prune_options *options, laci_pool *pool,
                                     laci_pruning **out, lac_error *err);

/** The same in two halves, for a caller that changes the whole network between them: after the
 * first, the weights that samples gave are in `fitted`, the dense ones still in `weights`; the
 * second puts the former in place of the latter and logs what was done. */
LAC_MUST_CHECK lac_status laci_prune_begin(const laci_analysis *analysis,
                                           const laci_prune_options *options, laci_pool *pool,
                                           laci_pruning **out, lac_error *err);
LAC_MUST_CHECK lac_status laci_prune_end(laci_pruning *pruning, const laci_prune_options *options,
                                         laci_pool *pool, lac_error *err);

/** A network that may be kept. */
typedef struct laci_drop_candidate {
  const laci_calibration_cut *cut;   /* of the fit */
  const laci_weighted_graph *pruned; /* the graph with its weights */
  laci_pool *pool;
  laci_kept_outputs *kept; /* of the dense network; NULL: they are computed anew */
} laci_drop_candidate;

/** The loss of the graph with other weights, against that with pruning->weights. Fails
 * LAC_BAD_VALUE where there are too few samples to judge by, and as laci_compare_outputs. */
LAC_MUST_CHECK lac_status laci_pruning_judge_drop(const laci_pruning *pruning,
                                                  const laci_prune_options *options,
                                                  const laci_drop_candidate *candidate,
                                                  laci_judged_drop *drop, lac_error *err);

/** A permutation file: its name, for messages, and its text; inverted, it undoes the orders. */
typedef struct laci_saved_orders {
  const char *name, *text;
  bool invert;
} laci_saved_orders;

/** The same with saved orders in the place of the search; nothing is masked. Fails LAC_BAD_FILE,
 * too. */
LAC_MUST_CHECK lac_status laci_prune_replay(const laci_analysis *analysis,
                                            const laci_saved_orders *orders,
                                            const laci_prune_options *options, laci_pool *pool,
                                            laci_pruning **out, lac_error *err);

/** Puts the new weights in place; `graph` is the analysed one. Views of the old ones die, those of
 * the analysis too. */
void laci_pruning_commit(laci_pruning *pruning, laci_graph *graph);

/* ---- The steps, for those who need only some ---- */

/** Measures every layer as it is in the graph. Fails LAC_BAD_VALUE for NaN or Inf in an eligible
 * one. */
LAC_MUST_CHECK lac_status laci_pruning_measure(laci_pruning *pruning, laci_pool *pool,
                                               lac_error *err);

/** Finds the orders that map the graph's stored tensors to those of `changed`, elements that are
 * masked out (zero) in a layer's weight excepted, and checks every element. Fails LAC_PROOF_FAILED
 * naming the first tensor that cannot be explained so. */
LAC_MUST_CHECK lac_status laci_pruning_explain(laci_pruning *pruning, const laci_graph *changed,
                                               lac_error *err);

/** Where laci_pruning_explain failed by `why`: compares the outputs of both networks in place of
 * their weights and says how far they differ, on what, as the verification's reason. LAC_OK only
 * where options->verify is false; fails LAC_PROOF_FAILED saying so. */
LAC_MUST_CHECK lac_status laci_pruning_unlike(laci_pruning *pruning, const laci_graph *changed,
                                              const laci_prune_options *options, laci_pool *pool,
                                              const lac_error *why, lac_error *err);

/** Verifies the orders and logs what was found; those that move nothing hold by themselves. Of the
 * options, verify, budget and the search's seed count. Fails LAC_PROOF_FAILED, and LAC_UNSUPPORTED
 * where no value could be compared; a part only is a warning. */
LAC_MUST_CHECK lac_status laci_pruning_verify(laci_pruning *pruning,
                                              const laci_prune_options *options, laci_pool *pool,
                                              lac_error *err);

/** Percent of what could be gained that was: (kept - identity) / (upper - identity); 0: nothing
 * could. */
double laci_found_efficacy(const laci_found *found);

/** computed.c: what is in a computed weight (a row of the analysis from n_layers on), as it would
 * be stored; *bytes is the caller's, NULL where it is not known, which the log says. Fails where a
 * run ends: LAC_NO_MEMORY, LAC_IO, LAC_INTERRUPTED. */
LAC_MUST_CHECK lac_status laci_computed_content(const laci_analysis *analysis, int layer,
                                                const laci_budget *budget, laci_weight_view *view,
                                                uint8_t **bytes, lac_error *err);

typedef struct laci_look_how {
  const laci_mask_rule *rule;
  const laci_budget *budget; /* NULL: no limit */
  laci_pool *pool;
} laci_look_how;

/** computed.c: does such a weight hold the pattern? False where its content is not known. */
LAC_MUST_CHECK lac_status laci_computed_is_pruned(const laci_analysis *analysis, int layer,
                                                  const laci_look_how *how, bool *pruned,
                                                  lac_error *err);

#endif
