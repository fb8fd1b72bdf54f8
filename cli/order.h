/* SPDX-License-Identifier: Apache-2.0
 * The order of channels that a run began with, in its folder, so that a run that goes on need not
 * search and prove again. It is a permutation file, as `permute --apply` reads it; what belongs to
 * it, the masks, is in the checkpoints, and is compared there. */
#ifndef CLI_ORDER_H
#define CLI_ORDER_H

#include "args.h"
#include "lacuna/prune.h"

/** Puts the model's channels into the order of the run in model_dir, where that has a checkpoint.
 * False, and the model is as it was, where it is not known, with a warning if its file does not fit
 * the model. */
bool order_replay(const char *model_dir, const lac_options *options, lac_model *model);

/** Keeps the order of `report` there; NULL: the run has none. That of an earlier run goes in any
 * case. A failure is a warning. */
void order_keep(const char *model_dir, const lac_report *report);

#endif
