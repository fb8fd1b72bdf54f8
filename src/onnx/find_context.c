/* SPDX-License-Identifier: Apache-2.0
 * Finds the bytes that a model of one EPContext node holds (context.c). It reads only the heads of
 * a dozen fields in protobuf's wire format. */
#include "base/reader.h"
#include "base/varint.h"
#include "onnx/onnx.h"

#include <string.h>

enum { BYTES = 2, TEXT_BYTES = 64 };
/* Field numbers of the messages for a model, a graph, a node and an attribute, from onnx.proto. */
enum { MODEL_GRAPH = 7, GRAPH_NODE = 1, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_TEXT = 4 };

/** A range of the file that holds a protobuf message: [at, end). at advances while fields are
 * read. */
typedef struct part {
  laci_reader *reader;
  size_t at, end;
} part;

static bool read_varint(part *p, uint64_t *value) {
  uint8_t bytes[LACI_VARINT_BYTES];
  size_t n = p->end - p->at < sizeof bytes ? p->end - p->at : sizeof bytes;
  if (!n || laci_reader_copy_range(p->reader, p->at, n, bytes, NULL)) return false;
  n = laci_varint_read(bytes, n, value);
  p->at += n;
  return n > 0;
}

/** Reads the head of the next field: its number, and the range of its content if that is bytes;
 * *content is empty for numbers. Returns false at the end of p, or if p is no message. */
static bool read_next_field(part *p, int *field, part *content) {
  uint64_t head = 0, n = 0;
  if (p->at >= p->end || !read_varint(p, &head)) return false;
  *field = (int)(head >> 3 & 0xffff);
  *content = (part){p->reader, p->at, p->at};
  switch (head & 7) {
    case 0: return read_varint(p, &n);
    case 1: n = 8; break;
    case BYTES:
      if (!read_varint(p, &n)) return false;
      break;
    case 5: n = 4; break;
    default: return false;
  }
  if (n > p->end - p->at) return false;
  if ((head & 7) == BYTES) *content = (part){p->reader, p->at, p->at + (size_t)n};
  p->at += (size_t)n;
  return true;
}

static bool is_content_equal(const part *content, const char *wanted) {
  char text[TEXT_BYTES];
  size_t n = content->end - content->at;
  return n == strlen(wanted) && n <= sizeof text &&
         !laci_reader_copy_range(content->reader, content->at, n, text, NULL) &&
         memcmp(text, wanted, n) == 0;
}

/** Finds the name of an attribute and its text. */
static void read_attribute_name_and_text(part attribute, part *name, part *text) {
  int field = 0;
  part content;
  *name = *text = (part){attribute.reader, 0, 0};
  while (read_next_field(&attribute, &field, &content)) {
    if (field == ATTRIBUTE_NAME) *name = content;
    if (field == ATTRIBUTE_TEXT) *text = content;
  }
}

static bool find_context_in_node(part node, part *found) {
  int field = 0;
  part content, name, text;
  bool ours = false;
  *found = (part){node.reader, 0, 0};
  while (read_next_field(&node, &field, &content)) {
    if (field == NODE_OP && !is_content_equal(&content, LACI_ONNX_CONTEXT_OP)) return false;
    if (field != NODE_ATTRIBUTE) continue;
    read_attribute_name_and_text(content, &name, &text);
    if (is_content_equal(&name, "source")) ours = is_content_equal(&text, LACI_ONNX_CONTEXT_SOURCE);
    if (is_content_equal(&name, "ep_cache_context")) *found = text;
  }
  return ours && found->end > found->at;
}

bool laci_onnx_find_ep_context(laci_reader *reader, size_t *offset, size_t *size_bytes) {
  part model = {reader, 0, laci_reader_size(reader)}, graph, node, found;
  int field = 0;
  do {
    if (!read_next_field(&model, &field, &graph)) return false;
  } while (field != MODEL_GRAPH);
  if (!read_next_field(&graph, &field, &node) || field != GRAPH_NODE) return false;
  if (!find_context_in_node(node, &found)) return false;
  *offset = found.at;
  *size_bytes = found.end - found.at;
  return true;
}
