/* SPDX-License-Identifier: Apache-2.0
 * The pruning pipeline (analysis, permutation, pruning, verification), and functions that check,
 * replay and draw its results.
 *
 * Threads. Several threads may use one model as lacuna/model.h says. Options are only read.
 * lacuna/context.h has interrupt, log and progress. */
#ifndef LACUNA_PRUNE_H
#define LACUNA_PRUNE_H

#include <stddef.h>

#include "lacuna/model.h"
#include "lacuna/report.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_array lac_array;                   /* lacuna/array.h */
typedef struct lac_calibration lac_calibration;       /* lacuna/calibration.h */
typedef struct lac_context lac_context;               /* lacuna/context.h */
typedef struct lac_engine_options lac_engine_options; /* lacuna/engine.h */
typedef struct lac_process_group lac_process_group;   /* lacuna/process_group.h */
typedef struct lac_quantization lac_quantization;     /* lacuna/quantization.h */

/** How long orders are searched for. */
typedef enum lac_effort {
  LAC_EFFORT_FAST = 0,
  LAC_EFFORT_NORMAL = 1,
  LAC_EFFORT_BEST = 2
} lac_effort;

/** Start from lac_options_default() and set fields. */
typedef struct lac_options {
  size_t size; /* sizeof of this struct, set by lac_options_init */
  int n, m; /* pattern: at most n of every m weights along the input channels are kept; 1 <= n < m
               <= 64 (default 2, 4) */
  int v;    /* V of the pattern V:N:M (VENOM's scheme), with 1 <= V <= 4096, 1 <= n <= 4, n < m, m
               >= 4: each block of V output channels by m input channels, at one kernel position,
               keeps weights in only four columns, and each row keeps n of these four. So every row
               holds n:m, too. The last blocks may be smaller. 0: plain N:M (default 0) */
  const char *mask; /* "1d": each row by itself. "2d-best", "2d-greedy": m x m blocks hold n:m along
                       the output channels, too; the mask with the largest sum of scores, or one
                       that keeps elements greedily from the largest score down; not with v. NULL:
                       "1d" (default NULL) */
  bool permute;     /* search channel orders, always for n:m, even with v or a 2d mask; an order is
                       undone if the masks keep less with it than in the file's order (default true)
                       */
  bool padding;     /* layers of dense matrices (Gemm, MatMul) count as having their number of input
                       channels rounded up to the next eligible size (default false) */
  bool all_sizes;   /* prune every layer with at least m input channels, not only those of sizes
                       that Tensor Cores take (default false) */
  bool keep_pruned; /* layers that are pruned already keep exactly their masks and the order of
                       their input channels; the others are permuted and pruned (default false). A
                       layer that holds the pattern and is not pruned by this call keeps mask and
                       order in any case */
  bool verify;      /* verify the reordering (default true) */
  const char *include; /* regular expression (PCRE2) on node or weight names: only these are pruned
                          (default NULL) */
  const char *exclude; /* regular expression: nodes or weights of these names are not pruned
                          (default NULL) */
  const char *score;   /* how masks are chosen: "magnitude"; "random" (uniform, from seed). With
                          calibration also "wanda", "ria", "sparsegpt", "obs", "alps"; the last
                          three only with mask "1d". Without calibration also a file "FILE.npz" that
                          holds, for each weight to be pruned, an array of the weight's name and
                          shape, not negative, read as f32. NULL: "alps" with calibration, else
                          "magnitude" (default NULL) */
  const lac_array
      *scores; /* [n_scores] scores in memory, instead of a file's: for each weight to be pruned an
                  array of its name and shape; `score` is then NULL, and there is no calibration
                  (default NULL) */
  int n_scores;
  const char *permute_for; /* what the search of orders maximizes over the kept weights:
                              "magnitude", the sum of |w|; or "score", the sum of w squared, which
                              predicts the error of a layer's outputs better. NULL: score (default
                              NULL) */
  const char *strategy;    /* the search strategy, used wherever it is applicable: exact, assign,
                              assign+swap, swap, stripes, none. NULL: the first of them that is
                              applicable (default NULL) */
  lac_effort effort;       /* how long orders are searched for (default LAC_EFFORT_NORMAL) */
  double time_limit;       /* seconds for the whole search, used instead of effort; the result then
                              depends on the machine's speed. 0: no limit (default 0) */
  uint64_t seed;           /* seed of all random numbers (default 0) */
  int threads;             /* number of threads; 0: the cores this process may use (default 0) */
  const char *const *assume; /* [n_assume] "OP=same" or "domain.OP=same": an operator that the
                                library does not know, and through which orders of channels may pass
                                (default NULL) */
  int n_assume;
  const char *const *targets; /* [n_targets] "NAME" or "NAME:TYPE": names of runtimes or hardware
                                 (lac_target_names). Only layers that all targets run as sparse are
                                 pruned; prune and check report for each target how it handles every
                                 layer. TYPE (f32, f16, bf16, i8): the weights' type on the target,
                                 if not the stored type (default NULL) */
  int n_targets;
  const char *const *input_shapes; /* [n_input_shapes] "NAME=1x3x224x224": shapes of inputs whose
                                      sizes the file leaves open (default NULL) */
  int n_input_shapes;
  uint64_t max_memory;      /* limit in bytes for this work, the model included; 0: 80 % of the
                               machine's memory, or of its control group's limit (default 0) */
  lac_process_group *group; /* processes that call lac_prune or lac_permute together and share the
                               search; all get the same result. Other functions ignore it. NULL:
                               this process alone (default NULL) */
  const lac_calibration *calibration; /* lac_prune: sample inputs of the network on which masks and
                                         weights are fitted; not with a group. NULL: none (default
                                         NULL) */
  const lac_quantization *quantization; /* lac_prune: convert weights and activations to int8, with
                                           ranges from the calibration's data or found at run time;
                                           NULL: no quantization (default NULL) */
  const lac_engine_options *plan; /* lac_inspect: options of an engine. The report also says whether
                                     the engine can run the network, and what would run each node
                                     (lac_report.plan). NULL: no plan is made (default NULL) */
  bool recurrent; /* prune the weights of LSTM, GRU and RNN, too, which no runtime runs as sparse
                     (default false) */
  lac_context *context; /* log, progress and interrupt of the call, see context.h. NULL: the
                           process's (default NULL) */
  const char *engine;   /* engine that runs the network on samples (calibration, quantization,
                           refinement), and in lac_check if only outputs can be compared: see
                           lac_run_options. A verification never uses an engine from a plug-in:
                           "cpu" and "plain" compute it, or "plain" alone if this field is "plain".
                           A call that names an engine from a plug-in, but would run nothing with
                           it, fails LAC_UNSUPPORTED. NULL: "cpu" (default NULL) */
  double speed; /* how many times as fast as the dense network the pruned one shall run on the
                   library's own engine, as predicted. lac_prune then prunes only as many layers as
                   this needs, those that harm least: by the outputs with calibration, else by the
                   magnitude that is lost. lac_prune fails LAC_UNSUPPORTED if no choice of layers
                   reaches this speed, or if calibration->max_drop does not hold then. 0: all
                   eligible layers (default 0) */
  bool
      correct; /* lac_prune without calibration: correct the means and variances that masks changed,
                   as far as batch normalizations tell them. The next batch normalization's mean and
                   variance take the correction, or a bias its mean (default false) */
} lac_options;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_options). */
LAC_API void lac_options_init(lac_options *options, size_t size);
LAC_DEFAULT(lac_options)

/** Permutes (if options->permute), prunes and verifies the model, whose stored tensors change. On
 * failure the tensors are unchanged. Fails LAC_BAD_VALUE (NaN or Inf in a weight),
 * LAC_PROOF_FAILED, LAC_BAD_ARGUMENT, LAC_NO_MEMORY, LAC_MEMORY_LIMIT (found before the search
 * starts, for the verification, too). With calibration also: LAC_BAD_SHAPE (data do not fit the
 * inputs), LAC_INTERRUPTED, and the failures of reading data (LAC_NOT_FOUND, LAC_BAD_FILE, LAC_IO).
 */
LAC_API LAC_MUST_CHECK lac_status lac_prune(lac_model *model, const lac_options *options,
                                            lac_report **report, lac_error *err);

/** Permutes and verifies the model as lac_prune does, but prunes nothing. */
LAC_API LAC_MUST_CHECK lac_status lac_permute(lac_model *model, const lac_options *options,
                                              lac_report **report, lac_error *err);

/** Analyzes the model without changing it: the report says what could be permuted and pruned, and
 * what prevents it. */
LAC_API LAC_MUST_CHECK lac_status lac_inspect(const lac_model *model, const lac_options *options,
                                              lac_report **report, lac_error *err);

/** Explains why the input channels of a node are frozen. *text is the path from the node to the
 * first cause, one line per step; free it with lac_text_free. The argument `node` is the name of
 * the node or of its weight. Fails LAC_NOT_FOUND. */
LAC_API LAC_MUST_CHECK lac_status lac_inspect_why(const lac_model *model,
                                                  const lac_options *options, const char *node,
                                                  char **text, lac_error *err);

/** Reports which layers of the model are sparse. If original is not NULL, also verifies that the
 * model is the original with reordered channels and masked weights; fails LAC_PROOF_FAILED if it is
 * not. */
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

/** Draws the operation graph; the file's ending chooses the format: .svg .pdf .png .dot. `report`
 * must be one of this model. All formats but .dot are drawn with graphviz by a separate process,
 * the installed program lacuna-draw. Fails LAC_UNSUPPORTED (lacuna-draw cannot draw the graph,
 * crashes or takes too long), LAC_NOT_FOUND (lacuna-draw is not installed), LAC_INTERRUPTED (by the
 * context; NULL: the process's). */
LAC_API LAC_MUST_CHECK lac_status lac_plot(const lac_model *model, const lac_report *report,
                                           const char *path, bool force, lac_context *context,
                                           lac_error *err);

/** How a network is drawn. */
typedef struct lac_plot_options {
  size_t size;    /* sizeof of this struct, set by lac_plot_options_init */
  bool all_nodes; /* a box for every node; else, in networks of more than 60 nodes, a block that
                     repeats is drawn once, with its count, and a node that only changes one value
                     is a line in a box (default false) */
  bool details;   /* draw shape arithmetic, scales of quantization and other small constants, too
                     (default false) */
  bool force;     /* replace an existing file (default false) */
  lac_context *context; /* where the call is interrupted; NULL: the process's (default NULL) */
} lac_plot_options;

/** Fills in the defaults and the size. size: sizeof(lac_plot_options). */
LAC_API void lac_plot_options_init(lac_plot_options *options, size_t size);
LAC_DEFAULT(lac_plot_options)

/** Draws as lac_plot does, with options (NULL: the defaults). */
LAC_API LAC_MUST_CHECK lac_status lac_plot_with(const lac_model *model, const lac_report *report,
                                                const char *path, const lac_plot_options *options,
                                                lac_error *err);

/** Returns the names of all targets, *n of them; static strings. docs/reference/targets.md
 * describes the targets. */
LAC_API const char *const *lac_target_names(int *n);

#ifdef __cplusplus
}
#endif
#endif
