/* SPDX-License-Identifier: Apache-2.0
 * Fine-tuning: one call makes a sparse network from a trained one. It finds the layers that are
 * pruned already, permutes, prunes and verifies the others, and trains the network with the pruned
 * weights held at zero.
 *
 *     lac_finetune_options o = lac_finetune_options_default();
 *     o.training->model_dir = "run", o.training->recover = true;   goes on with its order and masks
 *     lac_finetune(model, "data", &o, &result, &err);            the model's weights change
 *     lac_finetune_result_clear(&result); */
#ifndef LACUNA_FINETUNE_H
#define LACUNA_FINETUNE_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/model.h"
#include "lacuna/status.h"
#include "lacuna/train.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_mask lac_mask;       /* lacuna/mask.h */
typedef struct lac_options lac_options; /* lacuna/prune.h */
typedef struct lac_report lac_report;   /* lacuna/report.h */

/** Start from lac_finetune_options_default() and set fields. */
typedef struct lac_finetune_options {
  size_t size;                       /* sizeof of this struct, set by lac_finetune_options_init */
  const lac_train_options *training; /* as for lac_train; its group and its run.context are used for
                                        all of the call. NULL: the options that
                                        lac_finetune_training_init sets (default NULL) */
  const lac_options *pruning;        /* as for lac_prune; keep_pruned is always on. NULL: the
                                        options that lac_options_init sets (default NULL) */
  bool sparse;     /* masked weights are held at zero; false: train without masks, and ignore all
                      fields below (default true) */
  bool prune_rest; /* first prune the layers that are not pruned yet; false: they stay dense, and
                      only masks of layers that were pruned before are used (default true) */
  bool replay;     /* a run that continues an earlier one (training->recover) reads the channel
                      orders from training->model_dir; false: it searches them again, so that the
                      report has the search's results (default true) */
  bool must_mask;  /* fail LAC_BAD_VALUE if no weight gets a mask; false: train such a network
                      without masks (default false) */
} lac_finetune_options;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_finetune_options). */
LAC_API void lac_finetune_options_init(lac_finetune_options *options, size_t size);
LAC_DEFAULT(lac_finetune_options)

/** lac_train_options_init with the defaults of fine-tuning: recipe cifar, 3 epochs, rate 0.02, and
 * eval_first true, which has an effect only if a weight is masked. */
LAC_API void lac_finetune_training_init(lac_train_options *options, size_t size);
#ifndef LAC_DECLARATIONS_ONLY
/** The options that lac_finetune_training_init fills. */
static inline lac_train_options lac_finetune_training_default(void) {
  lac_train_options options;
  lac_finetune_training_init(&options, sizeof options);
  return options;
}
#endif

/** What lac_finetune found and did; also after a failure, up to that point. The reports and masks
 * are there before the first event of the training. */
typedef struct lac_finetune_result {
  size_t size;                /* sizeof of this struct, set by LAC_SIZED */
  lac_train_result *training; /* what lac_train did; freed by lac_finetune_result_clear. NULL:
                                       not enough memory */
  lac_report *found;          /* report of lac_check on the model before it was changed; NULL:
                          options.sparse was false */
  lac_report *pruning;        /* report of lac_prune; NULL: nothing was pruned */
  lac_mask *mask; /* masks of the weights held at zero; NULL: options.sparse was false */
  int n_pruned, n_rest, n_zero; /* numbers of eligible layers before the call: already pruned; not
                                   pruned; with a weight that is zero everywhere, which counts as
                                   neither */
  bool replayed;                /* the channel orders were read from the run that was continued */
} lac_finetune_result;

/** Frees what the result holds and makes it empty. */
LAC_API void lac_finetune_result_clear(lac_finetune_result *result);

/** Prunes and trains the model, as `lacuna finetune` does. data: as lac_train takes it; NULL:
 * training->from_memory has the samples. Options and data are checked before the long work starts.
 * The channel orders that the search finds are stored in training->model_dir (order.json). A run
 * that continues the training there applies them without a search or a verification. With
 * training.eval_only the model is not pruned, unless training->recover is set: a checkpoint needs
 * the masks that it was trained with. The result is the same bits for the same options, even if the
 * run was interrupted and recovered; see lac_train.
 *
 * result: overwritten without being freed first, and filled also on failure; call
 * lac_finetune_result_clear in any case. No other thread may use the model during the call. If the
 * call fails before the training starts, the model is unchanged or pruned; later, see lac_train.
 * Fails as lac_train and lac_prune do. Also fails LAC_BAD_VALUE (no layer is masked although
 * must_mask is true or prune_rest is false) and LAC_INTERRUPTED (the search was interrupted:
 * nothing is trained). */
LAC_API LAC_MUST_CHECK lac_status lac_finetune(lac_model *model, const char *data,
                                               const lac_finetune_options *options,
                                               lac_finetune_result *result, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
