/* SPDX-License-Identifier: Apache-2.0
 * Files that a caller's function reads (lac_load_options.read): the model and its external data. */
#ifndef LACI_API_MODEL_CALLER_FILES_H
#define LACI_API_MODEL_CALLER_FILES_H

#include "lacuna/status.h"

typedef struct lac_load_options lac_load_options;
typedef struct laci_caller_files laci_caller_files;
typedef struct laci_reader laci_reader;

/** Opens the model's file, and checks that it is as long as the caller says. *files lives as long
 * as a reader of it, and is the context of laci_caller_files_open_data. Fails as options->read,
 * LAC_IO, LAC_UNSUPPORTED, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_caller_files_open(const lac_load_options *options,
                                                 laci_caller_files **files, laci_reader **model,
                                                 lac_error *err);
/** Opens a file of external data (laci_onnx_open_data). */
LAC_MUST_CHECK lac_status laci_caller_files_open_data(void *files, const char *location,
                                                      laci_reader **reader, lac_error *err);

#endif
