/* SPDX-License-Identifier: Apache-2.0
 * Reads the bytes of a model's tensors, which may still be in their files.
 *
 * Running a network needs each weight once, to copy it to another layout. Changing a network needs
 * all weights for a long time. So large tensors stay in their files at first; they have addresses,
 * which a reader reserves. An engine fetches the bytes that it reorders; others hold them for a
 * while (base/acquire.h). Code that reads bytes at their addresses materialises the model first:
 * then the bytes are in memory at the same addresses. Next: base/reader.h, outline.c,
 * external.c. */
#include "onnx/onnx_in.h"

#include "base/error.h"
#include "base/reader.h"
#include "onnx/spans.h"

#include <string.h>

enum { SMALL = 1024 }; /* tensors of up to this many bytes are copied when the file is decoded */

/* ---- Views ---- */

/** The outline has an offset and a size in place of a tensor's raw bytes. Replaces them by a
 * pointer to the bytes, or to a copy if the tensor is small. */
static lac_status point_to_raw_data(Onnx__TensorProto *tensor, void *context, lac_error *err) {
  laci_reader *reader = ((laci_onnx *)context)->reader;
  ProtobufCBinaryData *raw = &tensor->raw_data;
  laci_onnx_span span;
  if (!tensor->has_raw_data) return LAC_OK;
  memcpy(&span, raw->data, sizeof span);
  uint8_t *copy = NULL;
  if (span.size_bytes > 0 && span.size_bytes < SMALL) {
    copy = laci_onnx_block_alloc(span.size_bytes);
    if (!copy) return laci_fail_memory(err, laci_onnx_text_or_empty(tensor->name));
    lac_status st = laci_reader_copy_range(reader, span.offset, span.size_bytes, copy, err);
    if (st) {
      laci_onnx_block_free(copy);
      return st;
    }
  }
  laci_onnx_block_free(raw->data);
  raw->len = span.size_bytes;
  raw->data = copy;
  if (span.size_bytes >= SMALL) {
    raw->data = (uint8_t *)(uintptr_t)laci_reader_bytes(reader) + span.offset;
  }
  return LAC_OK;
}

/** Clears the tensor's pointer if it points into the reader's memory, which must not be freed with
 * the message. */
static lac_status clear_raw_data(Onnx__TensorProto *tensor, void *context, lac_error *err) {
  const laci_onnx *file = *(const laci_onnx *const *)context;
  (void)err;
  if (laci_reader_contains(file->reader, tensor->raw_data.data)) {
    tensor->raw_data = (ProtobufCBinaryData){0};
  }
  return LAC_OK;
}

lac_status laci_onnx_decode_file(laci_onnx *file, lac_error *err) {
  uint8_t *outline = NULL;
  size_t n = 0;
  lac_status st = laci_onnx_check_wire_format(file->reader, err);
  if (!st) st = laci_onnx_build_outline(file->reader, &outline, &n, err);
  if (!st) st = laci_onnx_decode(outline, n, &file->model, err);
  laci_free(outline);
  if (!st) st = laci_onnx_visit_tensors(&file->model->base, point_to_raw_data, file, err);
  return st;
}

void laci_onnx_close_reader(laci_onnx *file) {
  if (!file->reader) return;
  if (file->model) (void)!laci_onnx_visit_tensors(&file->model->base, clear_raw_data, &file, NULL);
  laci_reader_close(file->reader);
  file->reader = NULL;
}

void laci_onnx_free_message(const laci_onnx *file, ProtobufCMessage *message) {
  (void)!laci_onnx_visit_tensors(message, clear_raw_data, &file, NULL);
  laci_onnx_free_submessage(message);
}

/* ---- Reading ---- */

/** Returns the reader whose reserved addresses contain `bytes`; NULL: the bytes are ordinary
 * memory. */
static laci_reader *find_reader_of_address(const laci_onnx *file, const uint8_t *bytes) {
  if (laci_reader_contains(file->reader, bytes)) return file->reader;
  for (size_t at = 0; at < file->n_data_files; at++) {
    if (laci_reader_contains(file->data_files[at].reader, bytes))
      return file->data_files[at].reader;
  }
  return NULL;
}

static bool is_range_in_memory(void *file, const uint8_t *bytes, size_t n) {
  laci_reader *reader = find_reader_of_address(file, bytes);
  return !reader || laci_reader_is_loaded(reader, (size_t)(bytes - laci_reader_bytes(reader)), n);
}

laci_byte_source laci_onnx_byte_source(laci_onnx *file) {
  return (laci_byte_source){
      .fetch = laci_onnx_copy_stored_bytes, .is_there = is_range_in_memory, .context = file};
}

lac_status laci_onnx_copy_stored_bytes(void *file, const uint8_t *bytes, size_t n, void *to,
                                       lac_error *err) {
  laci_reader *reader = find_reader_of_address(file, bytes);
  if (reader) {
    return laci_reader_copy_range(reader, (size_t)(bytes - laci_reader_bytes(reader)), n, to, err);
  }
  if (n) memcpy(to, bytes, n);
  return LAC_OK;
}

lac_status laci_onnx_materialise(laci_onnx *file, lac_error *err) {
  if (atomic_load(&file->materialised)) return LAC_OK;
  lac_status st =
      laci_reader_materialise_range(file->reader, 0, laci_reader_size(file->reader), err);
  for (size_t at = 0; at < file->n_externals && !st; at++) {
    const laci_external *e = &file->externals[at];
    st = laci_reader_materialise_range(file->data_files[e->file].reader, e->offset, e->length, err);
  }
  if (!st) atomic_store(&file->materialised, true);
  return st;
}

lac_status laci_onnx_materialise_bytes(laci_onnx *file, const uint8_t *bytes, size_t n,
                                       lac_error *err) {
  laci_reader *reader = find_reader_of_address(file, bytes);
  if (!reader) return LAC_OK;
  return laci_reader_materialise_range(reader, (size_t)(bytes - laci_reader_bytes(reader)), n, err);
}
