/* SPDX-License-Identifier: Apache-2.0
 * Where the bytes of a model's tensors come from.
 *
 * A network that is run needs each weight once, in another layout; one that is changed needs them
 * all, for long. So large tensors stay in the file: their addresses are those of its mapping, which
 * is not touched, and an engine fetches what it reorders. Whoever wants to read them in place
 * settles the file first: then they are in memory of our own, at the same addresses. Either way, no
 * program that cuts the file short can end this one. Next: outline.c, external.c. */
#include "onnx/onnx_in.h"

#include "base/error.h"

#include <string.h>

enum { SMALL = 1024 }; /* bytes of a tensor that are copied at once */

/* ---- A file ---- */

static lac_status fetch_file(void *context, size_t offset, size_t size_bytes, void *to,
                             lac_error *err) {
  return laci_file_fetch(context, offset, size_bytes, to, err);
}

static lac_status settle_file(void *context, lac_error *err) {
  return laci_file_settle(context, err);
}

/* Neighbours of the pages that decoding touched have come, too: most of the file. */
static void forget_file(void *context) {
  const laci_mapped_file *map = context;
  if (map->bytes) laci_file_forget(map, 0, map->size_bytes);
}

static void close_file(void *context) {
  laci_file_unmap(context);
  laci_free(context);
}

lac_status laci_onnx_open_file(const char *path, laci_onnx_source *source, laci_file_id *id,
                               lac_error *err) {
  laci_mapped_file *map = laci_alloc(1, sizeof *map);
  if (!map) return laci_fail_memory(err, path);
  lac_status st = laci_file_map_open(path, map, err);
  if (st) {
    laci_free(map);
    return st;
  }
  *id = map->id;
  *source = (laci_onnx_source){.bytes = map->bytes,
                               .size_bytes = map->size_bytes,
                               .fetch = fetch_file,
                               .settle = settle_file,
                               .forget = forget_file,
                               .close = close_file,
                               .context = map};
  return LAC_OK;
}

/* ---- Memory ---- */

static lac_status fetch_memory(void *context, size_t offset, size_t size_bytes, void *to,
                               lac_error *err) {
  (void)err;
  memcpy(to, (uint8_t *)context + offset, size_bytes);
  return LAC_OK;
}

static lac_status settle_memory(void *context, lac_error *err) {
  (void)context;
  (void)err;
  return LAC_OK;
}

lac_status laci_onnx_open_memory(const void *bytes, size_t size_bytes, laci_onnx_source *source,
                                 lac_error *err) {
  uint8_t *copy = laci_alloc(size_bytes, 1);
  if (!copy) return laci_fail_memory(err, "the model");
  if (size_bytes) memcpy(copy, bytes, size_bytes);
  *source = (laci_onnx_source){.bytes = copy,
                               .size_bytes = size_bytes,
                               .fetch = fetch_memory,
                               .settle = settle_memory,
                               .close = laci_free,
                               .context = copy};
  return LAC_OK;
}

/* ---- Views ---- */

/** The place that the outline left becomes bytes: a view, or a copy of few. */
static lac_status attach(Onnx__TensorProto *tensor, void *context, lac_error *err) {
  const laci_onnx_source *source = &((laci_onnx *)context)->source;
  ProtobufCBinaryData *raw = &tensor->raw_data;
  laci_onnx_span span;
  if (!tensor->has_raw_data) return LAC_OK;
  memcpy(&span, raw->data, sizeof span);
  uint8_t *copy = NULL;
  if (span.size_bytes > 0 && span.size_bytes < SMALL) {
    copy = laci_onnx_block(span.size_bytes);
    if (!copy) return laci_fail_memory(err, laci_onnx_name(tensor->name));
    lac_status st = source->fetch(source->context, span.offset, span.size_bytes, copy, err);
    if (st) {
      laci_onnx_block_free(copy);
      return st;
    }
  }
  laci_onnx_block_free(raw->data);
  raw->len = span.size_bytes;
  raw->data = span.size_bytes >= SMALL ? (uint8_t *)(uintptr_t)source->bytes + span.offset : copy;
  return LAC_OK;
}

static bool is_inside(const uint8_t *bytes, const uint8_t *begin, size_t size_bytes) {
  return bytes && begin && (uintptr_t)bytes >= (uintptr_t)begin &&
         (uintptr_t)bytes < (uintptr_t)begin + size_bytes;
}

/** Views are not to be freed with the message. */
static lac_status detach(Onnx__TensorProto *tensor, void *context, lac_error *err) {
  const laci_onnx_source *source = &((laci_onnx *)context)->source;
  (void)err;
  if (is_inside(tensor->raw_data.data, source->bytes, source->size_bytes)) {
    tensor->raw_data = (ProtobufCBinaryData){0};
  }
  return LAC_OK;
}

lac_status laci_onnx_unpack(laci_onnx *file, lac_error *err) {
  const laci_onnx_source *source = &file->source;
  uint8_t *outline = NULL;
  size_t n = 0;
  lac_status st = laci_onnx_check_wire(source->bytes, source->size_bytes, err);
  if (!st) st = laci_onnx_outline(source->bytes, source->size_bytes, &outline, &n, err);
  if (!st) st = laci_onnx_decode(outline, n, &file->model, err);
  laci_free(outline);
  if (!st) st = laci_onnx_each_tensor(&file->model->base, attach, file, err);
  return st;
}

void laci_onnx_close_source(laci_onnx *file) {
  if (file->model && file->source.bytes) {
    (void)!laci_onnx_each_tensor(&file->model->base, detach, file, NULL);
  }
  if (file->source.close) file->source.close(file->source.context);
  file->source = (laci_onnx_source){0};
}

/* ---- Reading ---- */

static lac_status fetch(const laci_onnx *file, const uint8_t *bytes, size_t n, void *to,
                        lac_error *err) {
  const laci_onnx_source *source = &file->source;
  if (!file->settled && is_inside(bytes, source->bytes, source->size_bytes)) {
    return source->fetch(source->context, (size_t)(bytes - source->bytes), n, to, err);
  }
  for (size_t at = 0; at < file->n_data_files; at++) {
    const laci_mapped_file *map = &file->data_files[at].map;
    if (!is_inside(bytes, map->bytes, map->size_bytes)) continue;
    size_t offset = (size_t)(bytes - map->bytes);
    lac_status st = laci_file_fetch(map, offset, n, to, err);
    if (!map->is_open) laci_file_forget(map, offset, n);
    return st ? laci_fail_in(err, st, "%s", file->data_files[at].location) : st;
  }
  if (n) memcpy(to, bytes, n);
  return LAC_OK;
}

lac_status laci_onnx_fetch(void *file, const uint8_t *bytes, size_t n, void *to, lac_error *err) {
  laci_onnx *from = file;
  if (from->has_lock) (void)pthread_rwlock_rdlock(&from->lock);
  lac_status st = fetch(from, bytes, n, to, err);
  if (from->has_lock) (void)pthread_rwlock_unlock(&from->lock);
  return st;
}

lac_status laci_onnx_settle(laci_onnx *file, lac_error *err) {
  lac_status st = LAC_OK;
  if (!file->source.bytes) return LAC_OK;
  (void)pthread_rwlock_wrlock(&file->lock);
  if (!file->settled) st = file->source.settle(file->source.context, err);
  if (!st) file->settled = true;
  (void)pthread_rwlock_unlock(&file->lock);
  return st;
}
