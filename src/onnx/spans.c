/* SPDX-License-Identifier: Apache-2.0
 * Finds the bytes of tensors in a model's file without decoding it. It reads the wire format by the
 * same message descriptors as decoding does. */
#include "onnx/spans.h"

#include "base/error.h"
#include "base/varint.h"
#include "graph/graph.h"
#include "onnx/onnx_in.h"

enum {
  MAX_DEPTH = 200
}; /* limit for nested messages, as in wire.c, which has checked the file
                             already */

typedef struct finder {
  const uint8_t *bytes; /* bytes of the whole file */
  laci_onnx_span *spans;
  size_t n, capacity;
} finder;

static bool read_varint(laci_byte_range *s, uint64_t *value) {
  const size_t n = laci_varint_read(s->at, (size_t)(s->end - s->at), value);
  s->at += n;
  return n > 0;
}

bool laci_onnx_read_next_field(laci_byte_range *s, unsigned *number, laci_byte_range *content) {
  uint64_t tag, n = 0;
  if (!read_varint(s, &tag) || tag >> 3 == 0 || tag >> 3 >= 1u << 29) return false;
  *number = (unsigned)(tag >> 3);
  *content = (laci_byte_range){s->at, s->at};
  switch (tag & 7) {
    case PROTOBUF_C_WIRE_TYPE_VARINT: return read_varint(s, &n);
    case PROTOBUF_C_WIRE_TYPE_64BIT: n = 8; break;
    case PROTOBUF_C_WIRE_TYPE_32BIT: n = 4; break;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
      if (!read_varint(s, &n)) return false;
      break;
    default: return false;
  }
  if (n > (uint64_t)(s->end - s->at)) return false;
  bool has_content = (tag & 7) == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
  *content = (laci_byte_range){s->at, has_content ? s->at + n : s->at};
  s->at += n;
  return true;
}

/** Does a field of a tensor hold elements as they are in memory: raw bytes, or packed floats or
 * doubles? */
static bool has_raw_elements(const ProtobufCFieldDescriptor *field) {
  bool is_list = field->label == PROTOBUF_C_LABEL_REPEATED;
  return is_list ? field->type == PROTOBUF_C_TYPE_FLOAT || field->type == PROTOBUF_C_TYPE_DOUBLE
                 : field->type == PROTOBUF_C_TYPE_BYTES;
}

static lac_status append_span(finder *f, laci_byte_range content, lac_error *err) {
  void *array = f->spans;
  if (content.at == content.end) return LAC_OK;
  if (!laci_grow(&array, f->n, &f->capacity, sizeof *f->spans)) {
    return laci_fail_memory(err, "the byte spans of tensors");
  }
  f->spans = array;
  f->spans[f->n++] = (laci_onnx_span){.offset = (size_t)(content.at - f->bytes),
                                      .size_bytes = (size_t)(content.end - content.at)};
  return LAC_OK;
}

static lac_status find_spans_in_message(finder *f, laci_byte_range s,
                                        const ProtobufCMessageDescriptor *message, int depth,
                                        lac_error *err) {
  bool is_tensor = message == &onnx__tensor_proto__descriptor;
  lac_status st = LAC_OK;
  while (!st && s.at < s.end) {
    size_t here = (size_t)(s.at - f->bytes);
    unsigned number;
    laci_byte_range content;
    if (depth > MAX_DEPTH || !laci_onnx_read_next_field(&s, &number, &content)) {
      return laci_fail(err, LAC_BAD_FILE, "not an ONNX model: no valid field at byte %zu", here);
    }
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(message, number);
    if (!field) continue;
    if (is_tensor && has_raw_elements(field)) st = append_span(f, content, err);
    else if (field->type == PROTOBUF_C_TYPE_MESSAGE)
      st = find_spans_in_message(f, content, field->descriptor, depth + 1, err);
  }
  return st;
}

lac_status laci_onnx_find_element_ranges(const uint8_t *bytes, size_t size_bytes,
                                         laci_onnx_span **spans, size_t *n, lac_error *err) {
  finder f = {.bytes = bytes};
  *spans = NULL;
  *n = 0;
  if (size_bytes == 0) return laci_fail(err, LAC_BAD_FILE, "not an ONNX model: an empty file");
  const laci_byte_range all = {bytes, bytes + size_bytes};
  lac_status st = find_spans_in_message(&f, all, &onnx__model_proto__descriptor, 0, err);
  if (st) {
    laci_free(f.spans);
    return st;
  }
  *spans = f.spans;
  *n = f.n;
  return LAC_OK;
}

laci_reader *laci_onnx_reader(const laci_onnx *file) { return file->reader; }

size_t laci_onnx_n_data_files(const laci_onnx *file) { return file->n_data_files; }

laci_onnx_data laci_onnx_data_file_at(const laci_onnx *file, size_t at) {
  const laci_data_file *data = &file->data_files[at];
  return (laci_onnx_data){data->location, data->reader};
}

bool laci_onnx_find_data_file_of_stored(const laci_stored *stored, size_t *data, size_t *offset) {
  const laci_source *source = stored->source;
  if (!source || source->kind != LACI_SOURCE_EXTERNAL || source->per_byte) return false;
  *data = (size_t)source->external->file;
  *offset = (size_t)source->external->offset;
  return true;
}
