/* SPDX-License-Identifier: Apache-2.0
 * `train --sparse --export-dir DIR`, the second of two commands. The first one trained a dense
 * network and wrote DIR/model.onnx; this one prunes and trains that network further, and reports
 * which layers became sparse. */
#ifndef CLI_EXPORT_H
#define CLI_EXPORT_H

#include <limits.h>

#include "args.h"
#include "lacuna/mask.h"
#include "lacuna/report.h"

/** Does this command read DIR/model.onnx, that is, is it `train` with --sparse and --export-dir? */
bool export_is_from_existing_model(const arguments *args);

/** Fills path with the name of the network to read, DIR/model.onnx. Fails LAC_NOT_FOUND if the file
 * does not exist, LAC_IO if the name is too long. */
LAC_MUST_CHECK lac_status export_source_path(const arguments *args, char path[PATH_MAX],
                                             lac_error *err);

/** Fills path with the name of the file that --export-dir writes: DIR/model.onnx, or
 * DIR/sparse/model.onnx if the command reads DIR/model.onnx. Fails LAC_IO if the name is too long.
 */
LAC_MUST_CHECK lac_status export_target_path(const arguments *args, char path[PATH_MAX],
                                             lac_error *err);

/** Loads the network at path and compares names, types and shapes of its stored tensors with those
 * of `fresh`, a fresh network of the architecture `arch`. Fails LAC_BAD_SHAPE if they differ. */
LAC_MUST_CHECK lac_status export_load_matching_model(const char *path, const char *arch,
                                                     const lac_model *fresh, lac_model **model,
                                                     lac_error *err);

/** Checks the trained network as `lacuna check` does. Logs a warning if layers do not hold the
 * pattern because they were never masked. Fails LAC_BAD_VALUE if a masked layer does not hold it.
 */
LAC_MUST_CHECK lac_status export_check_masks(const lac_model *model, const lac_mask *mask,
                                             const lac_options *options, lac_report **report,
                                             lac_error *err);

#endif
