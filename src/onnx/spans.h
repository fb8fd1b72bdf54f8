/* SPDX-License-Identifier: Apache-2.0
 * Where the elements of tensors are in the files of a model. For a writer that copies a file except
 * for these ranges of bytes. */
#ifndef LACI_ONNX_SPANS_H
#define LACI_ONNX_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_onnx laci_onnx;
typedef struct laci_reader laci_reader;
typedef struct laci_stored laci_stored;

typedef struct laci_onnx_span {
  size_t offset, size_bytes;
} laci_onnx_span;

/** Finds all ranges of a model's file that hold elements of a tensor as they are in memory (raw
 * bytes, packed floats or doubles), at any depth, in the order of the file. The caller frees *spans
 * by laci_free. Fails with LAC_BAD_FILE if the bytes are no model. */
LAC_MUST_CHECK lac_status laci_onnx_find_element_ranges(const uint8_t *bytes, size_t size_bytes,
                                                        laci_onnx_span **spans, size_t *n,
                                                        lac_error *err);

/** Returns the reader of the model's file, which `file` owns. */
laci_reader *laci_onnx_reader(const laci_onnx *file);

/** A data file; `file` owns both fields. */
typedef struct laci_onnx_data {
  const char *location; /* the file's location as written in the model */
  laci_reader *reader;
} laci_onnx_data;
size_t laci_onnx_n_data_files(const laci_onnx *file);
laci_onnx_data laci_onnx_data_file_at(const laci_onnx *file, size_t at);

/** Finds where the bytes of a stored tensor are: *data is the index of a data file, *offset the
 * offset in it. Returns false if they are in the model's file. */
bool laci_onnx_find_data_file_of_stored(const laci_stored *stored, size_t *data, size_t *offset);

#endif
