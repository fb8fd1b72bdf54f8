/* SPDX-License-Identifier: Apache-2.0
 * Code shared by pruning, replaying a permutation, and checking. */
#ifndef LACI_API_PRUNE_PRUNE_IN_H
#define LACI_API_PRUNE_PRUNE_IN_H

#include "prune/prune.h"

typedef struct lac_model lac_model;
typedef struct lac_options lac_options;
typedef struct lac_report lac_report;
typedef struct laci_job laci_job;

/** Converts public options to those of src/prune, which then point into `options` and `job`. */
laci_prune_options laci_prune_options_of(const lac_options *options, const laci_job *job);

/* The functions of lacuna/prune.h, called by entry.c after it has checked the arguments. They fail
 * and return as the public ones do. Arguments are not NULL, and option structs have this library's
 * size. */

/** Does lac_prune (mask true) or lac_permute (false). (optional.c) */
LAC_MUST_CHECK lac_status laci_prune_model(lac_model *model, const lac_options *options,
                                           bool permute, bool mask, lac_report **report,
                                           lac_error *err);
/** What pruning does: reorders channels, makes masks, or both. */
typedef struct laci_prune_kind {
  bool permute, mask;
  lac_error unfit; /* why the optional calibration was left out; no text: it was done */
} laci_prune_kind;

/** Does laci_prune_model once, with the calibration of the options. If that calibration is optional
 * and its data do not fit the network, removes it from *options and gives the reason in
 * kind->unfit. (prune.c) */
LAC_MUST_CHECK lac_status laci_prune_once(lac_model *model, lac_options *options,
                                          laci_prune_kind *kind, lac_report **report,
                                          lac_error *err);
LAC_MUST_CHECK lac_status laci_inspect_model(const lac_model *model, const lac_options *options,
                                             lac_report **report, lac_error *err);
LAC_MUST_CHECK lac_status laci_check_model(const lac_model *model, const lac_model *original,
                                           const lac_options *options, lac_report **report,
                                           lac_error *err);
LAC_MUST_CHECK lac_status laci_apply_permutation(lac_model *model, const char *path, bool invert,
                                                 const lac_options *options, lac_report **report,
                                                 lac_error *err);

#endif
