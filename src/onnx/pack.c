/* SPDX-License-Identifier: Apache-2.0
 * A message as the bytes of a file. */
#include "base/error.h"
#include "base/writer.h"
#include "onnx/onnx_in.h"

static const uint64_t max_model_bytes = INT32_MAX;

/** protobuf-c's idea of a place to write to. */
typedef struct sink {
  ProtobufCBuffer base;
  lac_write_bytes *put;
  void *context;
  lac_status status;
  lac_error *err;
} sink;

static void append(ProtobufCBuffer *base, size_t size_bytes, const uint8_t *bytes) {
  sink *s = (sink *)base;
  if (!s->status) s->status = s->put(bytes, size_bytes, s->context, s->err);
}

lac_status laci_onnx_pack(const ProtobufCMessage *message, const char *path, lac_write_bytes *put,
                          void *context, lac_error *err) {
  sink s = {.base.append = append, .put = put, .context = context, .err = err};
  size_t size = protobuf_c_message_get_packed_size(message);
  if (size > max_model_bytes) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "%s: would be %zu bytes, more than the 2 GiB that a model file can have; keep"
                     " its tensors in external data",
                     path, size);
  }
  (void)protobuf_c_message_pack_to_buffer(message, &s.base);
  return s.status;
}

static lac_status to_writer(const void *bytes, size_t size_bytes, void *context, lac_error *err) {
  return laci_writer_append(context, bytes, size_bytes, err);
}

lac_status laci_onnx_pack_file(const ProtobufCMessage *message, const char *path,
                               laci_writer *writer, lac_error *err) {
  lac_status st = laci_onnx_pack(message, path, to_writer, writer, err);
  return st ? st : laci_writer_finish(writer, err);
}
