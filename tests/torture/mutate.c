/* SPDX-License-Identifier: Apache-2.0
 * Changes of bytes and of fields. What a changed message cannot be packed as is damaged as bytes;
 * messages are never freed: the caller is a process of its own for every mutant. */
#include "torture/mutate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "onnx.pb-c.h"

enum { MOST_FIELDS = 1 << 16, MOST_DEPTH = 24 };

/* Sizes, counts and indices that code forgets: edges of types, of ranges, of memory. */
static const int64_t odd_numbers[] = {0,         1,          -1,        2,         3,
                                      4,         7,          8,         16,        64,
                                      255,       1000,       65536,     1 << 20,   INT32_MAX,
                                      INT32_MIN, UINT32_MAX, 1LL << 33, INT64_MAX, INT64_MIN,
                                      -2,        -3,         1LL << 48, 3000000,   INT64_MAX / 8};
static const double odd_reals[] = {0, -0.0, 1, -1, 1e-45, 1e38, -1e38, 1e300, 0.5};
static char *const odd_texts[] = {
    "",   "x",    "../../etc/passwd", "\xff\xfe",  "a\nb", "Conv", "Relu", "Loop",
    "If", "%s%n", "NOTSET",           "SAME_UPPER"};

typedef struct draws {
  uint64_t seed, stream, drawn;
} draws;

static uint64_t draw(draws *d, uint64_t n) {
  return laci_rng_integer_below(d->seed, d->stream, d->drawn++, n);
}

#define PICK(d, list) ((list)[draw(d, sizeof(list) / sizeof((list)[0]))])

/* ---- Bytes ---- */

static void copy_part(mutant *m, size_t from, size_t n, size_t to) {
  uint8_t *bytes = malloc(m->n + n);
  if (!bytes) return;
  memcpy(bytes, m->bytes, to);
  memcpy(bytes + to, m->bytes + from, n);
  memcpy(bytes + to + n, m->bytes + to, m->n - to);
  m->bytes = bytes;
  m->n += n;
}

static void change_bytes(mutant *m, draws *d) {
  if (m->n == 0) return;
  size_t at = draw(d, m->n), n = 1 + draw(d, 64);
  if (n > m->n - at) n = m->n - at;
  switch (draw(d, 6)) {
    case 0: m->bytes[at] ^= (uint8_t)(1u << draw(d, 8)); break;
    case 1: m->bytes[at] = (uint8_t)draw(d, 256); break;
    case 2: m->n = at; break;
    case 3: copy_part(m, at, n, draw(d, m->n)); break;
    case 4: memset(m->bytes + at, draw(d, 2) ? 0xff : 0, n); break;
    default:
      memmove(m->bytes + at, m->bytes + at + n, m->n - at - n);
      m->n -= n;
      break;
  }
}

/* ---- Fields ---- */

/* Where a field of a message is. */
typedef struct place {
  ProtobufCMessage *message;
  const ProtobufCFieldDescriptor *field;
} place;

typedef struct places {
  place *all;
  size_t n;
} places;

static void *member(const place *at) { return (char *)at->message + at->field->offset; }
static size_t *count(const place *at) {
  return (size_t *)((char *)at->message + at->field->quantifier_offset);
}

static void collect(ProtobufCMessage *message, places *found, int depth) {
  const ProtobufCMessageDescriptor *kind = message->descriptor;
  for (unsigned k = 0; k < kind->n_fields && found->n < MOST_FIELDS; k++) {
    place at = {message, &kind->fields[k]};
    found->all[found->n++] = at;
    if (at.field->type != PROTOBUF_C_TYPE_MESSAGE || depth == MOST_DEPTH) continue;
    if (at.field->label == PROTOBUF_C_LABEL_REPEATED) {
      ProtobufCMessage **items = *(ProtobufCMessage ***)member(&at);
      for (size_t i = 0; i < *count(&at); i++) collect(items[i], found, depth + 1);
    } else if (!(at.field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) {
      ProtobufCMessage *item = *(ProtobufCMessage **)member(&at);
      if (item) collect(item, found, depth + 1);
    } else if (*(uint32_t *)count(&at) == at.field->id) {
      ProtobufCMessage *item = *(ProtobufCMessage **)member(&at);
      if (item) collect(item, found, depth + 1);
    }
  }
}

static size_t size_of(ProtobufCType type) {
  switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE: return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    default: return 4;
  }
}

/* Another text of the same network joins what did not belong together. */
static char *another_text(const places *found, draws *d) {
  for (int tries = 0; tries < 64; tries++) {
    place at = found->all[draw(d, found->n)];
    if (at.field->type != PROTOBUF_C_TYPE_STRING) continue;
    if (at.field->label == PROTOBUF_C_LABEL_REPEATED) {
      if (*count(&at)) return (*(char ***)member(&at))[draw(d, *count(&at))];
    } else if (*(char **)member(&at)) {
      return *(char **)member(&at);
    }
  }
  return PICK(d, odd_texts);
}

static void change_bytes_field(ProtobufCBinaryData *data, draws *d) {
  mutant m = {malloc(data->len + 1), data->len};
  if (!m.bytes) return;
  if (data->len) memcpy(m.bytes, data->data, data->len);
  change_bytes(&m, d);
  *data = (ProtobufCBinaryData){m.n, m.bytes};
}

static void change_value(void *at, ProtobufCType type, const places *found, draws *d) {
  int64_t number = PICK(d, odd_numbers);
  float real = (float)PICK(d, odd_reals);
  double wide = PICK(d, odd_reals);
  switch (type) {
    case PROTOBUF_C_TYPE_MESSAGE: break;
    case PROTOBUF_C_TYPE_STRING:
      *(char **)at = draw(d, 3) ? another_text(found, d) : PICK(d, odd_texts);
      break;
    case PROTOBUF_C_TYPE_BYTES: change_bytes_field(at, d); break;
    case PROTOBUF_C_TYPE_FLOAT: memcpy(at, &real, sizeof real); break;
    case PROTOBUF_C_TYPE_DOUBLE: memcpy(at, &wide, sizeof wide); break;
    default:
      if (draw(d, 3) == 0) { /* near what is there: off by one */
        int64_t old = 0;
        memcpy(&old, at, size_of(type));
        number = old + (draw(d, 2) ? 1 : -1);
      }
      memcpy(at, &number, size_of(type));
  }
}

/* An element goes, comes twice, changes places or changes. */
static void change_list(const place *at, const places *found, draws *d) {
  size_t size = size_of(at->field->type), n = *count(at);
  char *old = *(char **)member(at), *list = malloc((n + 1) * size);
  if (!list || n == 0) return;
  size_t i = draw(d, n), j = draw(d, n);
  memcpy(list, old, n * size);
  switch (draw(d, 4)) {
    case 0:
      memmove(list + i * size, list + (i + 1) * size, (n - i - 1) * size);
      *count(at) = n - 1;
      break;
    case 1:
      memcpy(list + n * size, list + i * size, size);
      *count(at) = n + 1;
      break;
    case 2:
      memcpy(list + i * size, old + j * size, size);
      memcpy(list + j * size, old + i * size, size);
      break;
    default: change_value(list + i * size, at->field->type, found, d);
  }
  *(char **)member(at) = list;
}

static bool is_there(const place *at) {
  if (at->field->label == PROTOBUF_C_LABEL_REPEATED) return *count(at) > 0;
  if (at->field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
    return *(uint32_t *)count(at) == at->field->id;
  if (size_of(at->field->type) == sizeof(void *) && at->field->type >= PROTOBUF_C_TYPE_STRING)
    return *(void **)member(at) != NULL;
  return at->field->quantifier_offset == 0 || *(protobuf_c_boolean *)count(at);
}

static void change_field(const places *found, draws *d) {
  place at = found->all[draw(d, found->n)];
  for (int tries = 0; tries < 64 && !is_there(&at); tries++) at = found->all[draw(d, found->n)];
  if (!is_there(&at)) return;
  if (at.field->label == PROTOBUF_C_LABEL_REPEATED) {
    change_list(&at, found, d);
  } else if (at.field->label == PROTOBUF_C_LABEL_OPTIONAL && draw(d, 6) == 0) {
    if (at.field->type == PROTOBUF_C_TYPE_MESSAGE || at.field->type == PROTOBUF_C_TYPE_STRING)
      *(void **)member(&at) = NULL;
    else if (at.field->quantifier_offset) *(protobuf_c_boolean *)count(&at) = 0;
  } else {
    change_value(member(&at), at.field->type, found, d);
  }
}

static bool change_message(mutant *m, int n_changes, draws *d) {
  Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, m->n, m->bytes);
  places found = {.all = malloc(MOST_FIELDS * sizeof(place))};
  if (!model || !found.all) return false;
  for (int k = 0; k < n_changes; k++) {
    found.n = 0;
    collect(&model->base, &found, 0);
    change_field(&found, d);
  }
  size_t n = onnx__model_proto__get_packed_size(model);
  uint8_t *bytes = malloc(n ? n : 1);
  if (!bytes) return false;
  *m = (mutant){bytes, onnx__model_proto__pack(model, bytes)};
  return true;
}

mutant mutate(const uint8_t *bytes, size_t n, uint64_t seed, uint64_t number) {
  draws d = {.seed = seed, .stream = number};
  mutant m = {malloc(n + 1), n};
  if (!m.bytes) return m;
  if (n) memcpy(m.bytes, bytes, n);
  int n_changes = 1 + (int)draw(&d, 4);
  if (draw(&d, 5) && change_message(&m, n_changes, &d)) return m;
  for (int k = 0; k < n_changes; k++) change_bytes(&m, &d);
  return m;
}
