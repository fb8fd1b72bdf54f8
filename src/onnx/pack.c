/* SPDX-License-Identifier: Apache-2.0
 * Writes a protobuf message as the bytes of a file. */
#include "base/error.h"
#include "base/writer.h"
#include "onnx/onnx_in.h"

enum { AT_ONCE = 1 << 20, LEAST_AWAY = 512 /* shorter bytes are always in memory (source.c) */ };

static const uint64_t max_model_bytes = INT32_MAX;

/** A buffer to which protobuf-c appends the encoded message. */
typedef struct sink {
  ProtobufCBuffer base;
  const laci_onnx_message *message;
  lac_write_bytes *put;
  void *context;
  lac_status status;
  lac_error *err;
} sink;

/** Writes the bytes of a large tensor, which may not be in memory, chunk by chunk. */
static lac_status write_bytes_by_chunks(const sink *s, const uint8_t *bytes, size_t size_bytes) {
  laci_acquired_bytes held;
  lac_status st = LAC_OK;
  for (size_t n; size_bytes > 0 && !st; bytes += n, size_bytes -= n) {
    n = size_bytes < AT_ONCE ? size_bytes : AT_ONCE;
    st = laci_bytes_acquire(&s->message->bytes_from, bytes, n, s->message->path, &held, s->err);
    if (!st) st = s->put(held.bytes, n, s->context, s->err);
    laci_bytes_release(&held);
  }
  return st;
}

static void append_to_sink(ProtobufCBuffer *base, size_t size_bytes, const uint8_t *bytes) {
  sink *s = (sink *)base;
  if (s->status) return;
  if (size_bytes >= LEAST_AWAY &&
      laci_bytes_need_copy(&s->message->bytes_from, bytes, size_bytes)) {
    s->status = write_bytes_by_chunks(s, bytes, size_bytes);
  } else {
    s->status = s->put(bytes, size_bytes, s->context, s->err);
  }
}

lac_status laci_onnx_serialize(const laci_onnx_message *message, lac_write_bytes *put,
                               void *context, lac_error *err) {
  sink s = {.base.append = append_to_sink,
            .message = message,
            .put = put,
            .context = context,
            .err = err};
  size_t size = protobuf_c_message_get_packed_size(message->base);
  if (size > max_model_bytes) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "%s: would be %zu bytes, more than the 2 GiB that a model file can have; keep"
                     " its tensors in external data",
                     message->path, size);
  }
  (void)protobuf_c_message_pack_to_buffer(message->base, &s.base);
  return s.status;
}

static lac_status append_to_writer(const void *bytes, size_t size_bytes, void *context,
                                   lac_error *err) {
  return laci_writer_append(context, bytes, size_bytes, err);
}

lac_status laci_onnx_serialize_to_writer(const laci_onnx_message *message, laci_writer *writer,
                                         lac_error *err) {
  lac_status st = laci_onnx_serialize(message, append_to_writer, writer, err);
  return st ? st : laci_writer_finish(writer, err);
}
