/* SPDX-License-Identifier: Apache-2.0
 * `train --sparse --export-dir DIR`: the second half of a pipeline in two commands. The first
 * trained DIR/model.onnx; this one goes on from it, and reports what became sparse. */
#ifndef CLI_EXPORT_H
#define CLI_EXPORT_H

#include <limits.h>

#include "args.h"
#include "lacuna/mask.h"
#include "lacuna/report.h"

/** Does this command begin with DIR/model.onnx? */
bool export_is_read(const arguments *args);

/** Fills path with the name of what is read, DIR/model.onnx. Fails LAC_NOT_FOUND where it is not
 * there, LAC_IO where the name is too long. */
LAC_MUST_CHECK lac_status export_source(const arguments *args, char path[PATH_MAX], lac_error *err);

/** And of what --export-dir writes: the same name, or DIR/sparse/model.onnx where that is read.
 * Fails LAC_IO where it is too long. */
LAC_MUST_CHECK lac_status export_target(const arguments *args, char path[PATH_MAX], lac_error *err);

/** Loads it and compares its stored tensors with those of `fresh`, the network `arch`. Fails
 * LAC_BAD_SHAPE where it is another network. */
LAC_MUST_CHECK lac_status export_load(const char *path, const char *arch, const lac_model *fresh,
                                      lac_model **model, lac_error *err);

/** What `lacuna check` finds in the trained network; a word of warning where layers do not hold the
 * pattern because they were dense from the start. Fails LAC_BAD_VALUE where one that was masked
 * does not. */
LAC_MUST_CHECK lac_status export_check(const lac_model *model, const lac_mask *mask,
                                       const lac_options *options, lac_report **report,
                                       lac_error *err);

#endif
