/* SPDX-License-Identifier: Apache-2.0
 * The pipeline: analyse, permute, prune, verify; and the checks on the result.
 *
 * Threads. Models may be worked on by several threads as lacuna/model.h says: const ones are
 * shared. Options are only read. Interrupt, log and progress are lacuna/log.h's. */
#ifndef LACUNA_PRUNE_H
#define LACUNA_PRUNE_H

#include "lacuna/model.h"
#include "lacuna/report.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_calibration lac_calibration;     /* lacuna/calibration.h */
typedef struct lac_process_group lac_process_group; /* lacuna/process_group.h */
typedef struct lac_quantization lac_quantization;   /* lacuna/quantization.h */

/** How long orders are searched for. */
typedef enum lac_effort { LAC_EFFORT_FAST, LAC_EFFORT_NORMAL, LAC_EFFORT_BEST } lac_effort;

/** Start from lac_options_default() and set fields. */
typedef struct lac_options {
  int n, m; /* pattern: at most n of every m input channels are kept; 1 <= n < m <= 64 (2, 4) */
  int v;    /* 0, or V of V:N:M, 1 <= V <= 4096, 1 <= n <= 4, n < m, m >= 4: in a block of V output
               channels by m input channels, at every kernel position apart, the rows share four
               columns, and each keeps n of these. Every row holds n:m, too. Blocks at an end may be
               smaller. VENOM's scheme (0) */
  const char *mask; /* "1d": each row by itself; "2d-best", "2d-greedy": blocks of m x m hold n:m
                       along output channels, too, by the largest kept sum or from the largest score
                       on; not with v. NULL: "1d" (NULL) */
  bool permute;     /* search channel orders, by n:m, whatever v and mask are; orders by which masks
                       keep less     are taken back (true) */
  bool
      padding; /* a Dense layer's input channels count as rounded up to the eligible size (false) */
  bool all_sizes;      /* prune every layer whose input channels reach m, not only Tensor Core sizes
                          (false) */
  bool keep_pruned;    /* layers that are pruned already keep exactly their masks, and their input
                          channels their order; the others are permuted and pruned (false). A layer
                          that holds the pattern and is not pruned here keeps them in any case */
  bool verify;         /* verify the reordering (true) */
  const char *include; /* regular expression (PCRE2) on node or weight names: only these are
                          pruned (NULL) */
  const char *exclude; /* these are not (NULL) */
  const char *score;   /* how masks are chosen: "magnitude"; "random", uniform by seed; with
                          calibration also "wanda", "ria", "sparsegpt", "obs", "alps", of which the
                          last three go with mask "1d" alone; without it a file, "FILE.npz": for
                          each weight that is pruned an array of its name and shape, not negative,
                          read as f32. NULL: "alps" with calibration, else "magnitude" (NULL) */
  const char *permute_for; /* what an order is to keep: "magnitude", the sum of |w|, or "score": of
                              squares of w, by which errors of a layer's outputs go; NULL: score */
  const char *strategy; /* of the search: exact, assign, assign+swap, swap, stripes, none, where it
                           fits; NULL: the first that does (NULL) */
  lac_effort effort;    /* (LAC_EFFORT_NORMAL) */
  double time_limit;    /* seconds for the whole search, in the place of effort; 0: none. The result
                           then depends on the machine. (0) */
  uint64_t seed;        /* (0) */
  int threads;          /* 0: the cores this process may use */
  const char *const *assume; /* n_assume texts "OP=same" or "domain.OP=same" */
  int n_assume;
  const char *const *targets; /* n_targets texts "NAME" or "NAME:TYPE" (lac_target_names): only what
                                 all of them take is pruned, and prune and check report what each
                                 makes of every layer. TYPE is what weights will be there, where
                                 that is not what is stored: f32, f16, bf16, i8 (NULL, 0) */
  int n_targets;
  const char *const *input_shapes; /* n_input_shapes texts "NAME=1x3x224x224" */
  int n_input_shapes;
  uint64_t max_memory;      /* bytes that the work may take, the model included; 0: 80 % of the
                               machine's, or of its control group's. (0) */
  lac_process_group *group; /* processes that call lac_prune or lac_permute together and share its
                               search; all get the same result. Other functions do not look at it.
                               NULL: alone (NULL) */
  const lac_calibration *calibration; /* lac_prune: inputs of the network that masks and weights are
                                         fitted on, in one process; NULL: none (NULL) */
  const lac_quantization *quantization; /* lac_prune: weights and activations become int8, with
                                           ranges from calibration's data; NULL: they stay (NULL) */
} lac_options;

/** Every field's default, which its line names. */
LAC_API lac_options lac_options_default(void);

/** Permutes (options->permute), prunes and verifies; the model's stored tensors change. On failure
 * they are as before. Fails LAC_BAD_VALUE (NaN or Inf in a weight), LAC_PROOF_FAILED,
 * LAC_BAD_ARGUMENT, LAC_NO_MEMORY, LAC_MEMORY_LIMIT (the verification included: before the search);
 * with calibration, as data sets are opened, LAC_BAD_SHAPE where data do not fit the inputs, and
 * LAC_INTERRUPTED. */
LAC_API LAC_MUST_CHECK lac_status lac_prune(lac_model *model, const lac_options *options,
                                            lac_report **report, lac_error *err);

/** The permutation alone. */
LAC_API LAC_MUST_CHECK lac_status lac_permute(lac_model *model, const lac_options *options,
                                              lac_report **report, lac_error *err);

/** Analysis without change: what could be permuted and pruned, and what prevents it. */
LAC_API LAC_MUST_CHECK lac_status lac_inspect(const lac_model *model, const lac_options *options,
                                              lac_report **report, lac_error *err);

/** Why the input channels of a node (name of node or of weight) are frozen: the path from it to the
 * first cause, one line per step; free with lac_text_free. Fails LAC_NOT_FOUND. */
LAC_API LAC_MUST_CHECK lac_status lac_inspect_why(const lac_model *model,
                                                  const lac_options *options, const char *node,
                                                  char **text, lac_error *err);

/** What is sparse. original, if given: also verifies that model is original reordered and masked
 * (LAC_PROOF_FAILED). */
LAC_API LAC_MUST_CHECK lac_status lac_check(const lac_model *model, const lac_model *original,
                                            const lac_options *options, lac_report **report,
                                            lac_error *err);

/** Saves the orders of a report (lac_prune, lac_permute) as a permutation file. */
LAC_API LAC_MUST_CHECK lac_status lac_permutation_save(const lac_report *report, const char *path,
                                                       bool force, lac_error *err);

/** Replays a saved permutation, or undoes it (invert), and verifies it. Fails LAC_BAD_FILE where
 * the file belongs to another network. */
LAC_API LAC_MUST_CHECK lac_status lac_permutation_apply(lac_model *model, const char *path,
                                                        bool invert, const lac_options *options,
                                                        lac_report **report, lac_error *err);

/** Draws the operation graph; the format is the file's ending: .svg .pdf .png .dot. `report`
 * belongs to the model. All but .dot is drawn by graphviz in a process of its own, the program
 * lacuna-draw of the installation. Fails LAC_UNSUPPORTED where that cannot draw it, ends badly or
 * takes too long, LAC_NOT_FOUND without it, LAC_INTERRUPTED at lac_interrupt from now on. */
LAC_API LAC_MUST_CHECK lac_status lac_plot(const lac_model *model, const lac_report *report,
                                           const char *path, bool force, lac_error *err);

/** The names of all targets, of which docs/targets.md tells; views that stay. */
LAC_API const char *const *lac_target_names(int *n);

/** Version of the library, "0.1.0". */
LAC_API const char *lac_version(void);

#ifdef __cplusplus
}
#endif
#endif
