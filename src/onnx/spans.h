/* SPDX-License-Identifier: Apache-2.0
 * Where the elements of tensors are in the files of a model, byte by byte: for a writer that keeps
 * a file as it is but for these spans. */
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

/** Every stretch of a model file's bytes that is the elements of a tensor in their own layout (raw
 * bytes, packed floats and doubles), at any depth, in the file's order. *spans is the caller's
 * (laci_free). Fails LAC_BAD_FILE where the bytes are no model. */
LAC_MUST_CHECK lac_status laci_onnx_find_spans(const uint8_t *bytes, size_t size_bytes,
                                               laci_onnx_span **spans, size_t *n, lac_error *err);

/** The model's file; a view. */
laci_reader *laci_onnx_reader(const laci_onnx *file);

/** A data file; views. */
typedef struct laci_onnx_data {
  const char *location; /* as the model says it */
  laci_reader *reader;
} laci_onnx_data;
size_t laci_onnx_n_data(const laci_onnx *file);
laci_onnx_data laci_onnx_data_at(const laci_onnx *file, size_t at);

/** The data file and the offset of a stored tensor's bytes; false: they are in the model's file. */
bool laci_onnx_data_span(const laci_stored *stored, size_t *data, size_t *offset);

#endif
