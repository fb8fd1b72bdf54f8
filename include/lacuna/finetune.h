/* SPDX-License-Identifier: Apache-2.0
 * From a trained network to a sparse one that is trained again, in one call: what is pruned already
 * is found, the rest is permuted, pruned and verified, and all of it is trained with its zeros
 * held.
 *
 *     lac_finetune_options o = lac_finetune_options_default();
 *     o.training.model_dir = "run", o.training.recover = true;   goes on with its order and masks
 *     lac_finetune(model, "data", &o, &result, &err);            the model's weights change
 *     lac_finetune_result_clear(&result); */
#ifndef LACUNA_FINETUNE_H
#define LACUNA_FINETUNE_H

#include <stdbool.h>

#include "lacuna/mask.h"
#include "lacuna/model.h"
#include "lacuna/prune.h"
#include "lacuna/report.h"
#include "lacuna/status.h"
#include "lacuna/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Start from lac_finetune_options_default() and set fields. */
typedef struct lac_finetune_options {
  lac_train_options
      training;        /* recipe cifar, 3 epochs, rate 0.02. eval_first (true): where a weight
                                 gets a mask, and only there. Its group counts for all */
  lac_options pruning; /* as lac_prune takes them; keep_pruned is always on */
  bool sparse;     /* zeros are held; false: lac_train without masks, and all below does not count
                      (true) */
  bool prune_rest; /* layers that are not pruned are pruned first; false: they stay dense, and only
                      the masks that are there are held (true) */
  bool replay;     /* a run that goes on (training.recover) takes the order of channels from
                      training.model_dir; false: it is searched again, so that the report says
                      what was found (true) */
  bool must_mask;  /* a network of which no weight gets a mask is LAC_BAD_VALUE; else all of it is
                      trained (false) */
} lac_finetune_options;

/** Every field's default, which its line names. */
LAC_API lac_finetune_options lac_finetune_options_default(void);

/** What was found and done, as far as it came: also where lac_finetune fails. Zero-initialised is
 * empty. */
typedef struct lac_finetune_result {
  lac_train_result training;
  lac_report *found;   /* of lac_check, before anything changed; NULL: nothing was to be sparse */
  lac_report *pruning; /* of lac_prune; NULL: nothing was pruned */
  lac_mask *mask;      /* what was held at zero; NULL: nothing was to be sparse */
  int n_pruned, n_rest, n_zero; /* layers that may be pruned, before: that were, that were not, and
                                   that are all zero, so that neither is true */
  bool replayed;                /* the order is that of the run that went on */
} lac_finetune_result;

/** Frees what the result holds and makes it empty. */
LAC_API void lac_finetune_result_clear(lac_finetune_result *result);

/** Prunes and trains the model, as `lacuna finetune` does. data: a folder of images, as lac_train
 * takes it. What it refuses it refuses before the long work. The order of channels that was
 * searched is kept in training.model_dir (order.json), and a run that goes on replays it there,
 * without a search and without verifying it again. With training.eval_only the model is not pruned,
 * but for recover, where a checkpoint needs the masks that it was made with. Results of the same
 * options are the same bits, however often it was interrupted and recovered; see lac_train.
 *
 * result: the caller's, cleared first and filled also on failure; lac_finetune_result_clear it in
 * any case. The model belongs to one thread meanwhile. On failure before the training the model is
 * as it was or pruned, later as lac_train says. Fails as lac_train and lac_prune do; LAC_BAD_VALUE
 * where only masks that are there are to be held and there are none, or must_mask;
 * LAC_INTERRUPTED, too, where the search was interrupted: nothing is trained then. */
LAC_API LAC_MUST_CHECK lac_status lac_finetune(lac_model *model, const char *data,
                                               const lac_finetune_options *options,
                                               lac_finetune_result *result, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
