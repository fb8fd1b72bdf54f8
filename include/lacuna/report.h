/* SPDX-License-Identifier: Apache-2.0
 * What a command found and did, as plain data: the layers, the groups of channels, and a summary.
 *
 * A report owns all it points to; it dies with lac_report_destroy. Nothing changes it before, so
 * any number of threads may read it. Its JSON form is described in docs/json.md. */
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

typedef struct lac_calibration_result lac_calibration_result;   /* lacuna/calibration.h */
typedef struct lac_quantization_result lac_quantization_result; /* lacuna/quantization.h */

/** A node that could be pruned by its kind (Conv, Gemm, MatMul, ConvTranspose), whose weight is
 * stored, or follows from stored tensors alone. Where it is computed, `weight` is the value that
 * the node reads, `dtype` and `shape` are its own, and its zeros are those of the product; `rank`,
 * `n_elements` and channels are 0 where they are not known, because an unknown operator makes it or
 * it is stored in packed blocks. */
typedef struct lac_layer {
  const char *name;   /* node */
  const char *op;     /* "Conv" */
  const char *weight; /* stored tensor */
  lac_dtype dtype;    /* of the stored tensor */
  int rank;
  int64_t shape[8];           /* of the stored tensor */
  int64_t channels_in;        /* per convolution group */
  int64_t channels_out;       /* per convolution group */
  int64_t convolution_groups; /* 1 for everything but grouped convolutions */
  int k_axis,
      c_axis;    /* axes of shape: output channels, input channels (along which groups of m are) */
  bool computed; /* the weight is no stored tensor, but computed from such; never eligible */
  bool storable; /* ... and lac_model_fold can store it */
  bool folded;   /* lac_model_fold stored what was computed */
  bool measured; /* what is in it was looked at; else n_zeros and all figures below are 0 */
  bool eligible; /* may be pruned under the options given */
  bool pruned; /* it is a pruned weight, as prune leaves it: at most N of every M are non-zero, and
                  not all are zero */
  bool was_pruned;                 /* it was a pruned weight before the function began */
  bool permuted_c, permuted_k;     /* its input / output channels were reordered */
  bool permutable_c, permutable_k; /* they may be: nothing demands the order that they have */
  bool searchable;         /* its input channels belong to a group that was free to be searched */
  bool holds_pattern;      /* along the input channels; with pattern_v in the blocks of V:N:M */
  bool holds_pattern_both; /* N:M along the output channels, too: so does the transposed weight that
                              training multiplies by. Of pruned layers; false elsewhere */
  int group_c, group_k;    /* ids in groups (most of the axis' channels); -1: none */
  int64_t n_zeros, n_elements;
  double zero_ratio;    /* n_zeros / n_elements */
  double kept_identity; /* sum of |w| that N:M keeps in the order found in the file */
  double kept;          /* the same in the order written */
  double total;         /* sum of |w| */
  double score_kept,
      score_total; /* sums of scores of somebody else (lac_report.score) that the mask
                      keeps, in the order written, and of all; 0 where there are none */
  bool calibrated; /* pruned by a look at data: its mask is the score's */
  bool solved;     /* its kept weights were fitted */
  double
      error_before; /* of its outputs, relative, on the samples held back: as the mask leaves it */
  double error_after; /* the same with the weights written; both 0 unless calibrated */
  double effect;      /* of it alone, pruned, on the network's outputs; 0: not measured */
  const char
      *reason; /* why it was not pruned or not permuted, one sentence; NULL: nothing to say */
} lac_layer;

/** Channels that may change places with each other, and do so everywhere at once; or that may not
 * (frozen). */
typedef struct lac_group {
  int id; /* from 1 */
  int channels;
  int n_consumers, n_producers;
  const char *const *consumers; /* prunable layers in whose input channels the group is */
  const char *const *producers; /* layers whose output channels it is */
  bool frozen;
  const char *cause; /* why it is frozen; NULL otherwise */
  const int32_t
      *permutation; /* [channels]: old index of the channel now at place j; NULL when frozen */
  double kept_identity, kept,
      upper_bound; /* sums of |w| over the blocks that hold one of its channels */
  double efficacy; /* percent: (kept - kept_identity) / (upper_bound - kept_identity); 0: nothing to
                      gain */
  bool judged; /* by the errors that calibration leaves; an order that does not help was taken back
                */
  double error_before;  /* sum of the errors of the layers that read it, in the file's order */
  double error_after;   /* the same in the order that was found; both 0 unless judged */
  const char *strategy; /* of the search; NULL: not searched */
  int64_t iterations;
  bool proven; /* no better order exists */
} lac_group;

/** What a target (lac_options.targets) makes of a layer. */
typedef enum lac_target_answer {
  LAC_TARGET_DENSE,      /* it is dense, and stays so */
  LAC_TARGET_TAKEN,      /* as sparse */
  LAC_TARGET_REFUSED,    /* it is pruned, and will not be taken as sparse */
  LAC_TARGET_NOT_STATED, /* it is pruned, and no source says what becomes of it */
} lac_target_answer;

/** Whether sparse is faster than dense for a layer of this size, as far as that is said. */
typedef enum lac_target_pays {
  LAC_TARGET_PAYS_NOT_STATED,
  LAC_TARGET_PAYS,
  LAC_TARGET_PAYS_NOT, /* it may be run as dense */
} lac_target_pays;

/** What one target makes of one layer. */
typedef struct lac_target_layer {
  lac_target_answer answer;
  const char *fault; /* of one that is refused or not stated: "target", "operator", "type", "rank",
                        "window", "groups", "shared", "size", "zero point", "pattern", "axis",
                        "zeros"; NULL elsewhere */
  lac_target_pays pays;
  double gain;         /* dense time over sparse time; 0: none was published or measured */
  const char *gain_of; /* what was measured, and where that is said; NULL without a gain */
  const char *reason; /* why it is not taken, or would not be, one sentence; NULL: nothing to say */
} lac_target_layer;

/** The layers of a report as one target sees them. */
typedef struct lac_target_report {
  const char *name;  /* as it was asked for: "tensorrt", "torch:f16" */
  const char *title; /* "NVIDIA TensorRT" */
  const char *needs; /* what else has to be done there; NULL: nothing is said */
  int n_taken, n_refused, n_not_stated, n_dense;
  const lac_target_layer *layers; /* [n_layers] of the report */
} lac_target_report;

/** How much of the network was computed before and after the reordering, and found the same. The
 * order itself is proven apart from that: it is checked channel by channel before anything moves.
 */
typedef enum lac_verification_state {
  LAC_VERIFICATION_NONE = 0, /* nothing had moved, or the verb verifies nothing */
  LAC_VERIFIED = 1,          /* all outputs, each by a finite element other than 0 */
  LAC_VERIFIED_IN_PART = 2,  /* outputs_compared of outputs, and values up to reached */
  LAC_NOT_VERIFIED = 3       /* no value: options.verify was false */
} lac_verification_state;

/** Sums over all layers, and times. */
typedef struct lac_summary {
  int layers, eligible, pruned;
  int permuted;       /* eligible layers whose input channels were free to be searched, whether or
                         not they moved */
  int reordered;      /* eligible layers whose input channels moved */
  int groups;         /* with at least one prunable consumer, free to be searched */
  double kept_before; /* over the pruned (or, without pruning, eligible) layers */
  double kept_after;
  bool verified; /* all outputs were compared and held, or nothing had moved (proof_engine: NULL) */
  double max_abs_error; /* of the outputs, reordering alone */
  double max_abs_output;
  double worst_ratio; /* over all intermediate values, relative to each one's scale */
  int values_compared, values_skipped; /* in the verification; not computed, or nothing finite */
  int outputs, outputs_compared;       /* of the network, without those that nothing computes; of
                                          these by a finite element, from nothing made up */
  const char *skipped_reason;          /* why not more was compared, one sentence; NULL: all was */
  lac_verification_state verification;
  const char *reached;      /* the node up to which values were compared: the first that could not
                               be run, or gave nothing finite; NULL: there is none */
  const char *proof_engine; /* of the verification's products: "plain", "cpu"; NULL: none */
  int folded;               /* stored tensors that lac_model_fold made, of layers and of others */
  bool unmeasured;  /* lac_inspect of more than 512 MB, or a quarter of what may be taken: weights
                       were not read, and figures of layers (n_zeros, kept ...) are 0 */
  bool interrupted; /* the search was ended before its time: other runs find other orders */
  double search_seconds, proof_seconds, total_seconds;
  const char *verification_text; /* all of it in one sentence, as it was logged; NULL: nothing was
                                    to be verified */
} lac_summary;

/** What was found and done; lac_report_destroy frees it. */
typedef struct lac_report {
  const char *verb;  /* "prune", "permute", "check", "inspect" */
  const char *model; /* path, or "(memory)" */
  int pattern_n, pattern_m;
  int pattern_v;       /* of V:N:M; 0: N:M */
  const char *pattern; /* "2:4", "64:2:8" */
  const char *mask; /* prune: how masks were chosen, "1d", "2d-greedy", "2d-best"; NULL elsewhere */
  const char
      *score; /* prune without calibration: "magnitude", "random" or the file; NULL elsewhere */
  uint64_t seed;
  lac_summary summary;
  int n_layers, n_groups;
  const lac_layer *layers;
  const lac_group *groups;
  const lac_calibration_result *calibration; /* NULL: pruned without data */
  int n_targets;
  const lac_target_report *targets; /* in the order of lac_options.targets; prune and check */
  const lac_quantization_result *quantization; /* NULL: nothing was quantized */
} lac_report;

/** Frees the report and all that it points to. NULL is fine. */
LAC_API void lac_report_destroy(lac_report *report);

/** The report as JSON text (UTF-8, two-space indent, final newline); free with lac_text_free. */
LAC_API LAC_MUST_CHECK lac_status lac_report_json(const lac_report *report, char **text,
                                                  lac_error *err);
/** Frees a text that a function of the library returned. NULL is fine. */
LAC_API void lac_text_free(char *text);

/** Order of `axis` of the stored tensor: order[j] = old index now at place j; `count` ==
 * its size. For the input channels of a grouped convolution's weight: count == convolution_groups *
 * size, group after group. Identity where nothing moved. Fails LAC_NOT_FOUND. */
LAC_API LAC_MUST_CHECK lac_status lac_report_order(const lac_report *report, const char *tensor,
                                                   int axis, int32_t *order, size_t count,
                                                   lac_error *err);

/** Mask of a pruned stored tensor in the tensor's own order, one byte an element, 1 = kept; count
 * == its elements. Fails LAC_NOT_FOUND where the tensor was not pruned. */
LAC_API LAC_MUST_CHECK lac_status lac_report_mask(const lac_report *report, const char *tensor,
                                                  uint8_t *mask, size_t count, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
