/* SPDX-License-Identifier: Apache-2.0
 * Checks and decodes the bytes of an ONNX model, a protobuf message, and visits its tensors.
 *
 * protobuf-c decodes recursively, and does not say why it failed. So the bytes are checked first,
 * using the same message descriptors: this bounds the depth, finds wrong lengths before anything is
 * allocated, and can report what is wrong and where. Next: source.c, import.c. */
#include "onnx/onnx_in.h"

#include "base/error.h"
#include "base/reader.h"
#include "base/varint.h"

#include <inttypes.h>
#include <string.h>

enum {
  MAX_DEPTH = 200, /* limit for nested messages; a graph inside a graph takes three levels */
  TAG_BYTES = 20,  /* maximum number of bytes in a field's tag together with the number or length
                      after it */
};

static const uint64_t max_model_bytes = INT32_MAX; /* maximum size of a message in protobuf, in
                                                      bytes */

typedef struct cursor {
  laci_reader *reader;
  const uint8_t *begin, *at, *end; /* begin: start of the whole file. at: next byte to be read. end:
                                      end of the current message */
} cursor;

static lac_status fail_at_position(const cursor *c, lac_error *err, const char *what) {
  return laci_fail(err, LAC_BAD_FILE, "not an ONNX model: %s at byte %zu", what,
                   (size_t)(c->at - c->begin));
}

/** Makes sure that the next n bytes of c can be read; if fewer are left, all of them. */
static lac_status load_bytes_ahead(const cursor *c, size_t n, lac_error *err) {
  size_t left = (size_t)(c->end - c->at);
  return laci_reader_load_range(c->reader, (size_t)(c->at - c->begin), n < left ? n : left, err);
}

static bool read_varint(cursor *c, uint64_t *value) {
  const size_t n = laci_varint_read(c->at, (size_t)(c->end - c->at), value);
  c->at += n;
  return n > 0;
}

static ProtobufCWireType wire_type_of_field_type(ProtobufCType type) {
  switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT: return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return PROTOBUF_C_WIRE_TYPE_64BIT;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    default: return PROTOBUF_C_WIRE_TYPE_VARINT;
  }
}

/** Is the wire type of a field one that its description allows? Repeated numbers may come one by
 * one or packed, whatever the description says. */
static bool is_wire_type_allowed(const ProtobufCFieldDescriptor *field, uint64_t wire_type) {
  if (wire_type == (uint64_t)wire_type_of_field_type(field->type)) return true;
  return wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED &&
         field->label == PROTOBUF_C_LABEL_REPEATED;
}

static lac_status check_packed_numbers(cursor inner, ProtobufCType type, lac_error *err) {
  ProtobufCWireType wire_type = wire_type_of_field_type(type);
  size_t n = (size_t)(inner.end - inner.at);
  if (wire_type != PROTOBUF_C_WIRE_TYPE_VARINT) {
    size_t element = wire_type == PROTOBUF_C_WIRE_TYPE_32BIT ? 4 : 8;
    return n % element
               ? fail_at_position(&inner, err, "a list of numbers that ends within a number")
               : LAC_OK;
  }
  uint64_t value;
  lac_status st = load_bytes_ahead(&inner, n, err);
  if (st) return st;
  while (inner.at < inner.end) {
    if (!read_varint(&inner, &value)) return fail_at_position(&inner, err, "a number without end");
  }
  return LAC_OK;
}

static lac_status check_message(cursor c, const ProtobufCMessageDescriptor *message, int depth,
                                lac_error *err);

static lac_status check_field_content(cursor inner, const ProtobufCFieldDescriptor *field,
                                      int depth, lac_error *err) {
  lac_status st;
  switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE: return check_message(inner, field->descriptor, depth + 1, err);
    case PROTOBUF_C_TYPE_BYTES: return LAC_OK;
    case PROTOBUF_C_TYPE_STRING:
      st = load_bytes_ahead(&inner, (size_t)(inner.end - inner.at), err);
      if (st) return st;
      /* texts are handled as C strings, and one with a zero byte inside could not be written
         back */
      if (inner.at < inner.end && memchr(inner.at, 0, (size_t)(inner.end - inner.at))) {
        return fail_at_position(&inner, err, "a text with a zero byte");
      }
      return LAC_OK;
    default: return check_packed_numbers(inner, field->type, err);
  }
}

/** Checks one field of a message: its tag and content. *seen has a bit for each field of this
 * message that was found already, if it holds a message and is not repeated. */
static lac_status check_field(cursor *c, const ProtobufCMessageDescriptor *message, int depth,
                              uint32_t *seen, lac_error *err) {
  uint64_t tag, value = 0;
  const cursor start = *c;
  lac_status st = load_bytes_ahead(c, TAG_BYTES, err);
  if (st) return st;
  if (!read_varint(c, &tag) || tag >> 3 == 0 || tag >> 3 > (1u << 29) - 1) {
    return fail_at_position(&start, err, "no valid field");
  }
  const ProtobufCFieldDescriptor *field =
      protobuf_c_message_descriptor_get_field(message, (unsigned)(tag >> 3));
  if (field && !is_wire_type_allowed(field, tag & 7))
    return fail_at_position(&start, err, "a field of a wrong kind");
  switch (tag & 7) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
      return read_varint(c, &value) ? LAC_OK
                                    : fail_at_position(&start, err, "a number without end");
    case PROTOBUF_C_WIRE_TYPE_64BIT: value = 8; break;
    case PROTOBUF_C_WIRE_TYPE_32BIT: value = 4; break;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
      if (!read_varint(c, &value)) return fail_at_position(&start, err, "a length without end");
      break;
    default: return fail_at_position(&start, err, "a field of a wrong kind");
  }
  if (value > (uint64_t)(c->end - c->at)) {
    return laci_fail(err, LAC_BAD_FILE,
                     "not an ONNX model: a field of %" PRIu64
                     " bytes at byte %zu, where %zu are left"
                     " (cut short?)",
                     value, (size_t)(start.at - c->begin), (size_t)(c->end - c->at));
  }
  cursor inner = {c->reader, c->begin, c->at, c->at + value};
  c->at += value;
  if (!field || (tag & 7) != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) return LAC_OK;
  if (field->type == PROTOBUF_C_TYPE_MESSAGE && field->label != PROTOBUF_C_LABEL_REPEATED) {
    /* This field holds one message, and occurs a second time. Decoders would merge both, which is
     * slow if there are many; no writer does this. */
    if (*seen >> (field->id & 31) & 1)
      return fail_at_position(&start, err, "a single field given twice");
    *seen |= 1u << (field->id & 31);
  }
  return check_field_content(inner, field, depth, err);
}

static lac_status check_message(cursor c, const ProtobufCMessageDescriptor *message, int depth,
                                lac_error *err) {
  uint32_t seen = 0;
  if (depth > MAX_DEPTH) return fail_at_position(&c, err, "nested too deeply");
  lac_status st = LAC_OK;
  while (!st && c.at < c.end) st = check_field(&c, message, depth, &seen, err);
  return st;
}

/* Allocates a zeroed block, one byte longer than requested, so that fields of bytes can be read as
 * texts. */
static void *block_alloc(void *failed, size_t size) {
  void *block = laci_alloc(size + 1, 1);
  if (!block && failed) *(bool *)failed = true;
  return block;
}

static void block_free(void *failed, void *block) {
  (void)failed;
  laci_free(block);
}

void *laci_onnx_block_alloc(size_t size_bytes) { return block_alloc(NULL, size_bytes); }

void laci_onnx_block_free(void *block) { block_free(NULL, block); }

const char *laci_onnx_bytes_as_text(const ProtobufCBinaryData *bytes) {
  return bytes->data ? (const char *)bytes->data : "";
}

lac_status laci_onnx_check_wire_format(laci_reader *file, lac_error *err) {
  const uint8_t *bytes = laci_reader_bytes(file);
  size_t size_bytes = laci_reader_size(file);
  if (size_bytes == 0) return laci_fail(err, LAC_BAD_FILE, "not an ONNX model: an empty file");
  if (size_bytes > max_model_bytes) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "not an ONNX model: %zu bytes, more than the 2 GiB that a model file can have",
                     size_bytes);
  }
  cursor all = {file, bytes, bytes, bytes + size_bytes};
  return check_message(all, &onnx__model_proto__descriptor, 0, err);
}

lac_status laci_onnx_decode(const uint8_t *bytes, size_t size_bytes, Onnx__ModelProto **model,
                            lac_error *err) {
  bool failed = false;
  ProtobufCAllocator allocator = {block_alloc, block_free, &failed};
  *model = NULL;
  Onnx__ModelProto *made = onnx__model_proto__unpack(&allocator, size_bytes, bytes);
  if (!made) {
    if (failed) return laci_fail_memory(err, "the decoded model");
    return laci_fail(err, LAC_BAD_FILE, "not an ONNX model: its fields cannot be decoded");
  }
  if (!made->has_ir_version || !made->graph) {
    lac_status st = laci_fail(err, LAC_BAD_FILE, "not an ONNX model: it has no %s",
                              made->has_ir_version ? "graph" : "IR version");
    laci_onnx_free_model(made);
    return st;
  }
  *model = made;
  return LAC_OK;
}

void laci_onnx_free_model(Onnx__ModelProto *model) {
  ProtobufCAllocator allocator = {block_alloc, block_free, NULL};
  if (model) onnx__model_proto__free_unpacked(model, &allocator);
}

void laci_onnx_free_submessage(ProtobufCMessage *message) {
  ProtobufCAllocator allocator = {block_alloc, block_free, NULL};
  protobuf_c_message_free_unpacked(message, &allocator);
}

/* ---- Visiting tensors ---- */

lac_status laci_onnx_visit_tensors(ProtobufCMessage *message, laci_tensor_visit *visit,
                                   void *context, lac_error *err) {
  if (message->descriptor == &onnx__tensor_proto__descriptor) {
    return visit((Onnx__TensorProto *)message, context, err);
  }
  lac_status st = LAC_OK;
  for (unsigned at = 0; at < message->descriptor->n_fields && !st; at++) {
    const ProtobufCFieldDescriptor *field = &message->descriptor->fields[at];
    if (field->type != PROTOBUF_C_TYPE_MESSAGE) continue;
    const uint8_t *base = (const uint8_t *)message;
    const void *place = base + field->offset;
    bool is_list = field->label == PROTOBUF_C_LABEL_REPEATED;
    size_t n = is_list ? *(const size_t *)(const void *)(base + field->quantifier_offset) : 1;
    ProtobufCMessage *const *items =
        is_list ? *(ProtobufCMessage *const *const *)place : (ProtobufCMessage *const *)place;
    for (size_t item = 0; item < n && !st; item++) {
      if (items[item]) st = laci_onnx_visit_tensors(items[item], visit, context, err);
    }
  }
  return st;
}
