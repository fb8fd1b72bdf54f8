/* SPDX-License-Identifier: Apache-2.0
 * Builds the outline of a model: its message without the bytes of its tensors.
 *
 * protobuf-c copies all that it decodes, and most of a model is weights. So it decodes an outline
 * instead. This is the same message, but 16 bytes with an offset and a size in the file replace the
 * raw bytes of each tensor. After decoding, source.c replaces these by pointers. The lengths of
 * enclosing messages change, and are known only at the end; so each is written in five bytes. */
#include "onnx/onnx_in.h"

#include "base/error.h"
#include "base/reader.h"
#include "onnx/spans.h"

#include <stddef.h>
#include <string.h>

enum {
  MAX_DEPTH = 200, /* limit for nested messages, as in wire.c, which has checked the file already */
  LENGTH_BYTES = 5,
  LENGTH_PREFIXED = 2, /* protobuf's number for fields that have a length: bytes and messages */
};

typedef struct outline {
  laci_reader *reader;
  const uint8_t *file; /* address that the reader reserves for the first byte of the file */
  uint8_t *to;
  size_t n, capacity;
} outline;

static lac_status append_bytes(outline *o, const void *bytes, size_t n, lac_error *err) {
  if (o->capacity - o->n < n) {
    size_t capacity = 2 * o->capacity + n + 4096;
    uint8_t *more = laci_resize(o->to, o->n, capacity, 1);
    if (!more) return laci_fail_memory(err, "the model's outline");
    o->to = more;
    o->capacity = capacity;
  }
  if (n) memcpy(o->to + o->n, bytes, n);
  o->n += n;
  return LAC_OK;
}

static lac_status append_tag(outline *o, unsigned number, lac_error *err) {
  uint8_t bytes[5];
  size_t n = 0;
  uint32_t tag = (uint32_t)number << 3 | LENGTH_PREFIXED;
  for (; tag >= 0x80; tag >>= 7) bytes[n++] = (uint8_t)(tag | 0x80);
  bytes[n++] = (uint8_t)tag;
  return append_bytes(o, bytes, n, err);
}

/** Writes field `number` with the offset and size of its content, instead of the content. */
static lac_status append_offset_and_size(outline *o, unsigned number, laci_byte_range content,
                                         lac_error *err) {
  const laci_onnx_span span = {.offset = (size_t)(content.at - o->file),
                               .size_bytes = (size_t)(content.end - content.at)};
  const uint8_t n = sizeof span;
  lac_status st = append_tag(o, number, err);
  if (!st) st = append_bytes(o, &n, 1, err);
  return st ? st : append_bytes(o, &span, sizeof span, err);
}

static lac_status append_message(outline *o, laci_byte_range s,
                                 const ProtobufCMessageDescriptor *message, int depth,
                                 lac_error *err);

static lac_status append_inner_message(outline *o, unsigned number, laci_byte_range content,
                                       const ProtobufCMessageDescriptor *message, int depth,
                                       lac_error *err) {
  static const uint8_t unknown[LENGTH_BYTES];
  lac_status st = append_tag(o, number, err);
  if (!st) st = append_bytes(o, unknown, sizeof unknown, err);
  size_t begin = o->n;
  if (!st) st = append_message(o, content, message, depth, err);
  if (st) return st;
  size_t length = o->n - begin;
  if (length > INT32_MAX) {
    return laci_fail(err, LAC_UNSUPPORTED, "not an ONNX model: a message of more than 2 GiB");
  }
  for (int at = 0; at < LENGTH_BYTES; at++) {
    bool last = at == LENGTH_BYTES - 1;
    o->to[begin - LENGTH_BYTES + (size_t)at] =
        (uint8_t)((length >> 7 * at & 0x7f) | (last ? 0 : 0x80));
  }
  return LAC_OK;
}

static bool is_raw_data(const ProtobufCMessageDescriptor *message,
                        const ProtobufCFieldDescriptor *field) {
  return message == &onnx__tensor_proto__descriptor &&
         field->offset == offsetof(Onnx__TensorProto, raw_data);
}

/** Copies a field of the file to the outline. Its bytes are read from the file if necessary. */
static lac_status append_field(outline *o, const uint8_t *begin, const uint8_t *end,
                               lac_error *err) {
  lac_status st =
      laci_reader_load_range(o->reader, (size_t)(begin - o->file), (size_t)(end - begin), err);
  return st ? st : append_bytes(o, begin, (size_t)(end - begin), err);
}

static lac_status append_message(outline *o, laci_byte_range s,
                                 const ProtobufCMessageDescriptor *message, int depth,
                                 lac_error *err) {
  lac_status st = LAC_OK;
  while (!st && s.at < s.end) {
    const uint8_t *begin = s.at;
    unsigned number;
    laci_byte_range content;
    if (depth > MAX_DEPTH || !laci_onnx_read_next_field(&s, &number, &content)) {
      return laci_fail(err, LAC_BAD_FILE, "not an ONNX model: no valid field at byte %zu",
                       (size_t)(begin - o->file));
    }
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(message, number);
    if (field && is_raw_data(message, field)) st = append_offset_and_size(o, number, content, err);
    else if (field && field->type == PROTOBUF_C_TYPE_MESSAGE)
      st = append_inner_message(o, number, content, field->descriptor, depth + 1, err);
    else st = append_field(o, begin, s.at, err);
  }
  return st;
}

lac_status laci_onnx_build_outline(laci_reader *file, uint8_t **out, size_t *n, lac_error *err) {
  const uint8_t *bytes = laci_reader_bytes(file);
  outline o = {.reader = file, .file = bytes};
  const laci_byte_range all = {bytes, bytes + laci_reader_size(file)};
  *out = NULL;
  *n = 0;
  lac_status st = append_message(&o, all, &onnx__model_proto__descriptor, 0, err);
  if (st) {
    laci_free(o.to);
    return st;
  }
  *out = o.to;
  *n = o.n;
  return LAC_OK;
}
