/* SPDX-License-Identifier: Apache-2.0
 * What a command found and did, as plain data: the layers, the groups of channels, and a summary.
 *
 * A report owns all that it points to, until lac_report_destroy. It never changes, so any number of
 * threads may read it. Its JSON form is described in docs/reference/json.md. */
#ifndef LACUNA_REPORT_H
#define LACUNA_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_plan_facts lac_plan_facts; /* lacuna/plan.h */
typedef struct lac_plan_node lac_plan_node;
typedef struct lac_calibration_result lac_calibration_result;   /* lacuna/calibration.h */
typedef struct lac_quantization_result lac_quantization_result; /* lacuna/quantization.h */

/** A node of a kind that can be pruned: Conv, Gemm, MatMul, ConvTranspose. Its weight is a stored
 * tensor or is computed from stored tensors alone. For a computed weight, `weight`, `dtype`,
 * `shape` and the count of zeros are those of the value that the node reads. `rank`, `n_elements`
 * and the channels are 0 if they are not known. An unknown operator then computes the weight, or it
 * is stored in packed blocks. */
typedef struct lac_layer {
  const char *name;   /* name of the node */
  const char *op;     /* operator of the node, such as "Conv" */
  const char *weight; /* name of the stored tensor */
  lac_dtype dtype;    /* element type of the stored tensor */
  int rank;
  int64_t shape[8];           /* shape of the stored tensor */
  int64_t channels_in;        /* number of input channels of a convolution group */
  int64_t channels_out;       /* number of output channels of a convolution group */
  int64_t convolution_groups; /* 1 for everything but grouped convolutions */
  int k_axis;                 /* axis of `shape` along the output channels */
  int c_axis;    /* axis of `shape` along the input channels, along which the N:M pattern lies */
  bool computed; /* the weight is no stored tensor, but computed from such; never eligible */
  bool storable; /* the weight is computed, and lac_model_fold can make it a stored tensor */
  bool folded;   /* the weight was computed, and lac_model_fold made it a stored tensor */
  bool measured; /* the weight's elements were read; else n_zeros and all figures below are 0 */
  bool eligible; /* may be pruned under the options given */
  bool pruned; /* the weight is pruned now: at most N of every M elements are non-zero, and not all
                  are zero */
  bool was_pruned;                 /* the weight was pruned before the function began */
  bool permuted_c, permuted_k;     /* its input / output channels were reordered */
  bool permutable_c, permutable_k; /* its input / output channels may be reordered: nothing depends
                                      on their present order */
  bool searchable;         /* its input channels belong to a group that was free to be searched */
  bool holds_pattern;      /* the weight is N:M along the input channels, or V:N:M if pattern_v is
                              not 0 */
  bool holds_pattern_both; /* the weight is N:M along the output channels, too, so that the
                              transposed weight, by which training multiplies, is N:M as well; false
                              for layers that are not pruned */
  int group_c, group_k;    /* lac_group.id of the group with the largest number of the axis'
                              channels; -1: none */
  int64_t n_zeros, n_elements;
  double zero_ratio;    /* n_zeros / n_elements */
  double kept_identity; /* sum of |w| that N:M keeps in the order found in the file */
  double kept;          /* sum of |w| that N:M keeps in the order that was written */
  double total;         /* sum of |w| */
  double score_kept;    /* with scores from a file (lac_report.score): sum of the scores that the
                           mask keeps; else 0 */
  double score_total;   /* with scores from a file: sum of all scores of the weight; else 0 */
  bool calibrated;      /* the layer's mask was chosen by a score on calibration data */
  bool solved;          /* the layer's kept weights were fitted to calibration data */
  double error_before;  /* relative error of the layer's outputs on the held-back samples, with the
                           mask applied and the kept weights unchanged; 0: not calibrated */
  double error_after;   /* relative error of the layer's outputs on the held-back samples, with the
                           weights that were written; 0: not calibrated */
  double effect;        /* relative error of the network's outputs if only this layer is pruned; of
                           probabilities p and q: the mean of 1 - sum sqrt(p q); 0: not
                           measured */
  const char
      *reason; /* why it was not pruned or not permuted, one sentence; NULL: nothing to say */
} lac_layer;

/** Channels that all tensors must have in the same order. They are reordered together, in all
 * tensors at once, or not at all (frozen). */
typedef struct lac_group {
  int id; /* number of the group, from 1 on */
  int channels;
  int n_consumers, n_producers;
  const char *const *consumers; /* prunable layers whose input channels are of this group */
  const char *const *producers; /* layers whose output channels are of this group */
  bool frozen;                  /* the order must stay as it is */
  const char *cause;            /* why it is frozen; NULL otherwise */
  const int32_t
      *permutation; /* [channels]: [j] is the old index of the channel that is now number j; NULL if
                       frozen */
  double kept_identity; /* sum of |w| that N:M keeps in the file's order, over all blocks of m that
                           hold a channel of the group */
  double kept;          /* sum of |w| that N:M keeps in the order that was found, over these
                           blocks */
  double upper_bound;   /* upper bound of the sum of |w| that N:M can keep in these blocks, in any
                           order */
  double efficacy; /* percent: (kept - kept_identity) / (upper_bound - kept_identity); 0: no order
                      can keep more than the file's */
  bool judged; /* the order was tested on calibration data; an order that does not lower the errors
                  was undone */
  double error_before;  /* sum of the errors of the consumers in the file's order; 0: not judged */
  double error_after;   /* sum of the errors of the consumers in the order that was found; 0: not
                           judged */
  const char *strategy; /* name of the search strategy; NULL: no search was done */
  int64_t iterations;   /* steps of the search */
  bool proven;          /* it is proven that no better order exists */
} lac_group;

/** How a target (lac_options.targets) handles a layer. */
typedef enum lac_target_answer {
  LAC_TARGET_DENSE = 0,      /* the layer is dense */
  LAC_TARGET_TAKEN = 1,      /* the layer is pruned, and the target runs it as sparse */
  LAC_TARGET_REFUSED = 2,    /* the layer is pruned, and the target does not run it as sparse */
  LAC_TARGET_NOT_STATED = 3, /* the layer is pruned, and no source says how the target runs it */
} lac_target_answer;

/** Whether sparse is faster than dense on the target for a layer of this size, as far as published
 * or measured. */
typedef enum lac_target_pays {
  LAC_TARGET_PAYS_NOT_STATED = 0,
  LAC_TARGET_PAYS = 1,
  LAC_TARGET_PAYS_NOT = 2, /* sparse is not faster; the target may run the layer as dense */
} lac_target_pays;

/** How one target handles one layer. */
typedef struct lac_target_layer {
  lac_target_answer answer; /* whether the target takes the layer as sparse */
  const char *fault;    /* why the answer is REFUSED or NOT_STATED: "target", "operator", "type",
                        "rank", "window", "groups", "shared", "size", "zero point", "pattern",
                        "axis", "zeros"; NULL elsewhere */
  lac_target_pays pays; /* whether sparse is faster than dense on the target */
  double gain;         /* speedup: dense time over sparse time; 0: none was published or measured */
  const char *gain_of; /* what was measured for `gain`, and the source; NULL without a gain */
  const char *reason; /* one sentence: why the target does not run the layer as sparse, or would not
                         if it were pruned; NULL: no such reason */
} lac_target_layer;

/** How one target handles the layers of a report. */
typedef struct lac_target_report {
  const char *name;  /* name as in lac_options.targets: "tensorrt", "torch:f16" */
  const char *title; /* full name of the target: "NVIDIA TensorRT" */
  const char *needs; /* what the user has to do on the target so that sparsity is used; NULL:
                        nothing is documented */
  int n_taken, n_refused, n_not_stated, n_dense;
  const lac_target_layer *layers; /* [n_layers] of lac_report */
} lac_target_report;

/** How much of the network was computed before and after the reordering with the same results.
 * Independently of this, the order itself is proven correct channel by channel before any weight is
 * moved. */
typedef enum lac_verification_state {
  LAC_VERIFICATION_NONE = 0, /* nothing was reordered, or the function does not verify */
  LAC_VERIFIED = 1,          /* all outputs were compared, each by at least one finite element other
                                than 0 */
  LAC_VERIFIED_IN_PART = 2,  /* some outputs were compared (lac_summary.outputs_compared), and
                                intermediate values up to the node lac_summary.reached */
  LAC_NOT_VERIFIED = 3       /* nothing was compared: options.verify was false */
} lac_verification_state;

/** Sums over all layers, and times. */
typedef struct lac_summary {
  int layers, eligible, pruned; /* number of layers; of those that may be pruned; of those that are
                                   pruned */
  int permuted;       /* eligible layers whose input channels were searched, even if their order
                         stayed the same */
  int reordered;      /* eligible layers whose input channels were reordered */
  int groups;         /* groups that are not frozen and have at least one prunable consumer */
  double kept_before; /* sum of kept |w| over the pruned (or, without pruning, eligible) layers, in
                         the file's order */
  double kept_after;  /* sum of kept |w| over the pruned (or eligible) layers, in the order that was
                         written */
  bool verified;      /* all outputs were compared and are the same, or nothing was reordered (then
                    proof_engine is NULL) */
  double max_abs_error;  /* largest |difference| between elements of the outputs before and after
                            reordering */
  double max_abs_output; /* largest |element| of the outputs */
  double worst_ratio; /* largest |difference| / scale over all intermediate values; scale: a value's
                         largest |element| */
  int values_compared, values_skipped; /* number of values that the verification compared; number of
                                          those that it did not, because they were not computed or
                                          have no finite element */
  int outputs, outputs_compared;       /* number of the network's outputs that some node computes;
                                          number of these that were compared by a finite element
                                          that does not depend on invented inputs */
  const char *skipped_reason;          /* one sentence: why not everything was compared; NULL:
                                          everything was */
  lac_verification_state verification; /* how far the comparison came */
  const char *reached;      /* the first node that could not be run or had no finite result: values
                               before it were compared; NULL: there is no such node */
  const char *proof_engine; /* the engine that computed the matrix products of the verification:
                               "plain", "cpu"; NULL: none */
  int folded;               /* number of stored tensors that lac_model_fold made, for layers and for
                               other nodes */
  bool unmeasured;  /* weights were not read, and figures of layers (n_zeros, kept ...) are 0:
                       lac_inspect does this if weights take more than 512 MB or a quarter of the
                       memory limit */
  bool interrupted; /* the search was interrupted: another run may find other orders */
  double search_seconds, proof_seconds, total_seconds; /* wall time of the search, of the
                                                          verification, and of the whole call */
  const char *verification_text; /* the result of the verification in one sentence, as logged; NULL:
                                    there was nothing to verify */
} lac_summary;

/** A reason for which pruned layers are not run as sparse, and how many layers have it. */
typedef struct lac_predicted_reason {
  const char *reason; /* the reason as a sentence that names no layer */
  int n_layers;
} lac_predicted_reason;

/** What is predicted for a layer of the report. */
typedef struct lac_predicted_layer {
  double dense_seconds;    /* predicted seconds of the layer's step in the dense network; 0: the
                              layer has no step of its own */
  double pruned_seconds;   /* predicted seconds of the layer's step with its weight as it is now */
  int64_t multiplications; /* number of multiplications of the layer's step, those by zeros
                              included */
  bool sparse;             /* the plan skips the zeros of its weight */
  const char *reason;      /* why the plan does not skip the zeros; NULL: it does */
} lac_predicted_layer;

/** The time of a run of the library's own engine, predicted by the costs that its plans are chosen
 * by; nothing was run or measured. */
typedef struct lac_prediction {
  const char *refusal; /* why no time is predicted; NULL: one is */
  bool assumed_sizes;  /* sizes of inputs are open, and were assumed; lac_options.input_shapes sets
                          them */
  bool costs_known;    /* the costs were measured on this kind of processor; else only the ratio of
                          times means something */
  int threads;
  double dense_seconds;           /* predicted seconds of a run with all layers dense */
  double pruned_seconds;          /* predicted seconds of a run of the network as it is now */
  int64_t multiplications;        /* number of multiplications of a run, those by zeros included */
  int64_t multiplications_pruned; /* number of multiplications by weights that are zero in pruned
                                     layers */
  int n_sparse, n_dense;          /* number of pruned layers that are run as sparse; number of those
                                     that are run as dense */
  int n_reasons;
  const lac_predicted_reason *reasons; /* [n_reasons] why layers that n_dense counts are not run as
                                          sparse; the most frequent reason first */
  const lac_predicted_layer *layers;   /* [n_layers] of lac_report */
} lac_prediction;

/** What a function (lac_prune, lac_check ...) found and did; lac_report_destroy frees it. */
typedef struct lac_report {
  const char *verb;  /* "prune", "permute", "check", "inspect" */
  const char *model; /* path, or "(memory)" */
  int pattern_n, pattern_m;
  int pattern_v;       /* V of V:N:M; 0: the pattern is N:M */
  const char *pattern; /* the pattern as text: "2:4", "64:2:8" */
  const char *mask; /* prune: how masks were chosen, "1d", "2d-greedy", "2d-best"; NULL elsewhere */
  const char
      *score; /* prune without calibration: "magnitude", "random" or the file; NULL elsewhere */
  uint64_t seed;
  lac_summary summary;
  int n_layers, n_groups;
  const lac_layer *layers;
  const lac_group *groups;
  const lac_calibration_result *calibration; /* what calibration did; NULL: there was none */
  int n_targets;
  const lac_target_report *targets; /* [n_targets] in the order of lac_options.targets; prune and
                                       check have them */
  const lac_quantization_result *quantization; /* what quantization did; NULL: there was none */
  const lac_plan_facts *plan;                  /* the answer to lac_options.plan; NULL: plan was
                                                  NULL */
  const lac_plan_node *const *plan_nodes;      /* [plan->n_nodes] what would run each node */
  const char *uncalibrated; /* why optional calibration was left out (lac_calibration.optional);
                               NULL: it was done, or was not wanted */
  const lac_prediction *prediction; /* prune, and check for the target "lacuna-cpu"; NULL: nothing
                                       is pruned, or the weights are not floats in memory */
  int corrected; /* number of layers whose outputs' means and variances were corrected without data
                    (lac_options.correct) */
} lac_report;

/** Frees the report and all that it points to. NULL is fine. */
LAC_API void lac_report_destroy(lac_report *report);

/** Sets *text to the report as JSON text (UTF-8, two-space indent, final newline). Free it with
 * lac_text_free. */
LAC_API LAC_MUST_CHECK lac_status lac_report_json(const lac_report *report, char **text,
                                                  lac_error *err);
/** Frees a text that a function of the library returned. NULL is fine. */
LAC_API void lac_text_free(char *text);

/** Writes the order of `axis` of a stored tensor: order[j] is the old index of what is now at index
 * j. It is the identity if nothing was reordered. `count` is the axis' size; for the input channels
 * of a grouped convolution's weight it is convolution_groups * size, group after group. Fails
 * LAC_NOT_FOUND. */
LAC_API LAC_MUST_CHECK lac_status lac_report_order(const lac_report *report, const char *tensor,
                                                   int axis, int32_t *order, size_t count,
                                                   lac_error *err);

/** Writes the mask of a pruned stored tensor: one byte per element, 1 = kept, in the order in which
 * the tensor is stored now. `count` is the tensor's number of elements. Fails LAC_NOT_FOUND if the
 * tensor was not pruned. */
LAC_API LAC_MUST_CHECK lac_status lac_report_mask(const lac_report *report, const char *tensor,
                                                  uint8_t *mask, size_t count, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
