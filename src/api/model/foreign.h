/* SPDX-License-Identifier: Apache-2.0
 * Explains files that are not ONNX models: which format they have, and how to convert them to ONNX.
 */
#ifndef LACI_API_MODEL_FOREIGN_H
#define LACI_API_MODEL_FOREIGN_H

#include <stddef.h>

#include "lacuna/status.h"

/** Call it after a model could not be read. If the path (NULL: none) or the first bytes show which
 * format the file has, err says so and how to get an ONNX file; otherwise err is unchanged. Returns
 * status. */
lac_status laci_foreign_explain_bytes(const char *path, const void *bytes, size_t size_bytes,
                                      lac_status status, lac_error *err);

/** Does the same as laci_foreign_explain_bytes for a path: reads the first bytes of a regular file
 * if status is LAC_BAD_FILE. If the path is a folder, err says so and names an ONNX file in it, if
 * one can be recommended. */
lac_status laci_foreign_explain_file(const char *path, lac_status status, lac_error *err);

#endif
