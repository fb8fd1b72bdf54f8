/* SPDX-License-Identifier: Apache-2.0
 * Files that are no ONNX model: what they are, and how their network becomes one. */
#ifndef LACI_API_MODEL_FOREIGN_H
#define LACI_API_MODEL_FOREIGN_H

#include <stddef.h>

#include "lacuna/status.h"

/** After a model could not be read: where the path (NULL: none) and the first bytes show what it is
 * instead, err says that and how to get an ONNX file; else it stays as it is. Returns status. */
lac_status laci_foreign_explain(const char *path, const void *bytes, size_t size_bytes,
                                lac_status status, lac_error *err);

/** The same for a file or folder; reads its beginning. */
lac_status laci_foreign_explain_file(const char *path, lac_status status, lac_error *err);

#endif
