/* SPDX-License-Identifier: Apache-2.0
 * Where the elements of tensors are in the files of a model, byte by byte: for a writer that copies
 * a file except for these spans. */
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

/** Finds every range of a model file's bytes that holds elements of a tensor in their layout in
 * memory (raw bytes, packed floats and doubles), at any depth, in the order of the file. The caller
 * frees *spans by laci_free. Fails LAC_BAD_FILE where the bytes are no model. */
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

/** Finds the data file and the offset of a stored tensor's bytes; returns false if they are in the
 * model's file. */
bool laci_onnx_find_data_file_of_stored(const laci_stored *stored, size_t *data, size_t *offset);

#endif
