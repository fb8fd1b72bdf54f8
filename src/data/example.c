/* SPDX-License-Identifier: Apache-2.0
 * Writes Examples with protobuf-c, and reads them by walking through the encoded message.
 * protobuf-c would read the whole message into memory twice. Listing a million images needs only
 * the label of each, so the reader skips the image. */
#include "data/example.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/reader.h"
#include "base/varint.h"
#include "example.pb-c.h"

/* ---- Writing ---- */

enum { N_FEATURES = 10 };

/** A TensorFlow Example to be written, as structs of protobuf-c. */
typedef struct message {
  Tensorflow__Example example;
  Tensorflow__Features features;
  Tensorflow__Features__Entry *list[N_FEATURES], entries[N_FEATURES];
  Tensorflow__Feature values[N_FEATURES];
  Tensorflow__BytesList texts[N_FEATURES];
  Tensorflow__Int64List numbers[N_FEATURES];
  ProtobufCBinaryData bytes[N_FEATURES];
  int64_t number[N_FEATURES];
} message;

static Tensorflow__Feature *add_feature(message *m, const char *key) {
  size_t k = m->features.n_feature++;
  m->list[k] = &m->entries[k];
  tensorflow__features__entry__init(&m->entries[k]);
  tensorflow__feature__init(&m->values[k]);
  m->entries[k].key = (char *)(uintptr_t)key;
  m->entries[k].value = &m->values[k];
  return &m->values[k];
}

static void add_bytes_feature(message *m, const char *key, const void *bytes, size_t n) {
  size_t k = m->features.n_feature;
  m->bytes[k] = (ProtobufCBinaryData){n, (uint8_t *)(uintptr_t)bytes};
  tensorflow__bytes_list__init(&m->texts[k]);
  m->texts[k].n_value = 1;
  m->texts[k].value = &m->bytes[k];
  add_feature(m, key)->bytes_list = &m->texts[k];
}

static void add_text_feature(message *m, const char *key, const char *text) {
  add_bytes_feature(m, key, text, strlen(text));
}

static void add_number_feature(message *m, const char *key, int64_t number) {
  size_t k = m->features.n_feature;
  m->number[k] = number;
  tensorflow__int64_list__init(&m->numbers[k]);
  m->numbers[k].n_value = 1;
  m->numbers[k].value = &m->number[k];
  add_feature(m, key)->int64_list = &m->numbers[k];
}

lac_status laci_example_pack(const laci_example *example, uint8_t **bytes, size_t *n,
                             lac_error *err) {
  message m = {.example = TENSORFLOW__EXAMPLE__INIT, .features = TENSORFLOW__FEATURES__INIT};
  m.example.features = &m.features;
  m.features.feature = m.list;
  add_number_feature(&m, "image/height", example->height);
  add_number_feature(&m, "image/width", example->width);
  add_text_feature(&m, "image/colorspace", "RGB");
  add_number_feature(&m, "image/channels", 3);
  add_number_feature(&m, "image/class/label", example->label);
  add_text_feature(&m, "image/class/synset", example->synset);
  add_text_feature(&m, "image/class/text", example->text);
  add_text_feature(&m, "image/format", "JPEG");
  add_text_feature(&m, "image/filename", example->filename);
  add_bytes_feature(&m, "image/encoded", example->encoded, example->encoded_bytes);
  *n = tensorflow__example__get_packed_size(&m.example);
  *bytes = laci_alloc(*n, 1);
  if (!*bytes) return laci_fail_memory(err, example->filename);
  (void)tensorflow__example__pack(&m.example, *bytes);
  return LAC_OK;
}

/* ---- Reading ---- */

enum { WINDOW = 1024, KEY = 32 };
typedef enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 } wire;

/** The state of reading: bytes [window_at, window_at + window_n) of the message are in memory. */
typedef struct wire_reader {
  const laci_example_source *source;
  uint8_t window[WINDOW];
  size_t window_at, window_n;
  lac_error *err;
} wire_reader;

/** A field of a message; its payload is [at, end). */
typedef struct field {
  int number;
  wire type;
  size_t at, end;
  uint64_t value; /* the number; only for type WIRE_VARINT */
} field;

static lac_status fail_bad_message(const wire_reader *w, const char *what) {
  return laci_fail(w->err, LAC_BAD_FILE, "%s: byte %zu: %s", w->source->name, w->source->at, what);
}

/** Returns a view of bytes [at, at + n) of the message, valid until the next call. The range must
 * be inside the message, and n <= WINDOW. */
static lac_status view_message_bytes(wire_reader *w, size_t at, size_t n, const uint8_t **bytes) {
  if (n == 0) return LAC_OK;
  if (w->source->bytes) {
    *bytes = w->source->bytes + at;
    return LAC_OK;
  }
  if (at < w->window_at || at + n > w->window_at + w->window_n) {
    size_t left = w->source->n - at;
    w->window_at = at;
    w->window_n = left < WINDOW ? left : WINDOW;
    lac_status st = laci_reader_copy_range(w->source->reader, w->source->offset + at, w->window_n,
                                           w->window, w->err);
    if (st) {
      w->window_n = 0;
      return st;
    }
  }
  *bytes = w->window + (at - w->window_at);
  return LAC_OK;
}

static lac_status take_varint(wire_reader *w, size_t *at, size_t end, uint64_t *number) {
  const uint8_t *bytes = NULL;
  size_t most = end - *at < LACI_VARINT_BYTES ? end - *at : LACI_VARINT_BYTES;
  lac_status st = view_message_bytes(w, *at, most, &bytes);
  if (st) return st;
  const size_t n = laci_varint_read(bytes, most, number);
  *at += n;
  return n ? LAC_OK : fail_bad_message(w, "no Example: a number without an end");
}

/** Reads the field that begins at *at, and moves *at to its end. */
static lac_status read_wire_field(wire_reader *w, size_t *at, size_t end, field *f) {
  uint64_t tag = 0, n = 0;
  lac_status st = take_varint(w, at, end, &tag);
  if (st) return st;
  f->type = (wire)(tag & 7);
  f->number = tag >> 3 > INT32_MAX ? 0 : (int)(tag >> 3);
  f->at = *at;
  if (f->type == WIRE_VARINT) {
    st = take_varint(w, at, end, &f->value);
    f->end = *at;
    return st;
  }
  if (f->type == WIRE_BYTES) st = take_varint(w, at, end, &n);
  else if (f->type == WIRE_64) n = 8;
  else if (f->type == WIRE_32) n = 4;
  else st = fail_bad_message(w, "no Example: a field of an unknown kind");
  if (!st && n > end - *at) st = fail_bad_message(w, "no Example: a field beyond its end");
  if (st) return st;
  f->at = *at;
  *at += (size_t)n;
  f->end = *at;
  return LAC_OK;
}

/** A feature of an Example: its key, the number n of its values, and the last value: a number, or
 * the bytes [at, at + n_bytes). */
typedef struct feature {
  char key[KEY];
  int n;
  bool is_number;
  int64_t number;
  size_t at, n_bytes;
} feature;

/** Reads the values of a BytesList, or of an Int64List (numbers: true), into f. Numbers may be in
 * protobuf's packed encoding. */
static lac_status read_value_list(wire_reader *w, const field *list, bool numbers, feature *f) {
  lac_status st = LAC_OK;
  field value;
  for (size_t at = list->at; at < list->end && !st;) {
    st = read_wire_field(w, &at, list->end, &value);
    if (st || value.number != 1) continue;
    if (!numbers && value.type == WIRE_BYTES) {
      f->at = value.at;
      f->n_bytes = value.end - value.at;
      f->n++;
    } else if (numbers && value.type == WIRE_VARINT) {
      f->number = (int64_t)value.value;
      f->n++;
    } else if (numbers && value.type == WIRE_BYTES) {
      for (size_t inner = value.at; inner < value.end && !st; f->n++) {
        uint64_t number;
        st = take_varint(w, &inner, value.end, &number);
        f->number = (int64_t)number;
      }
    }
  }
  f->is_number = numbers;
  return st;
}

static lac_status read_feature(wire_reader *w, const field *outer, feature *f) {
  lac_status st = LAC_OK;
  field list;
  for (size_t at = outer->at; at < outer->end && !st;) {
    st = read_wire_field(w, &at, outer->end, &list);
    if (st || list.type != WIRE_BYTES || (list.number != 1 && list.number != 3)) continue;
    st = read_value_list(w, &list, list.number == 3, f);
  }
  return st;
}

/** Copies the n bytes at `at` of the message as text. The text is "" if they do not fit into `capacity`
 * bytes or contain a zero byte. */
static lac_status copy_text_from_message(wire_reader *w, size_t at, size_t n, size_t capacity,
                                         char *text) {
  const uint8_t *bytes = NULL;
  text[0] = '\0';
  if (n >= capacity) return LAC_OK;
  lac_status st = view_message_bytes(w, at, n, &bytes);
  if (st || (n && memchr(bytes, '\0', n))) return st;
  if (n) memcpy(text, bytes, n);
  text[n] = '\0';
  return LAC_OK;
}

static lac_status read_map_entry(wire_reader *w, const field *entry, feature *f) {
  lac_status st = LAC_OK;
  field part;
  *f = (feature){0};
  for (size_t at = entry->at; at < entry->end && !st;) {
    st = read_wire_field(w, &at, entry->end, &part);
    if (st || part.type != WIRE_BYTES) continue;
    if (part.number == 1) st = copy_text_from_message(w, part.at, part.end - part.at, KEY, f->key);
    else if (part.number == 2) st = read_feature(w, &part, f);
  }
  return st;
}

typedef struct found {
  int images, labels;
} found;

static lac_status record_feature(wire_reader *w, const feature *f, found *so_far,
                                 laci_example_view *view) {
  if (f->n == 1 && !f->is_number && strcmp(f->key, "image/encoded") == 0) {
    view->encoded = f->at;
    view->encoded_bytes = f->n_bytes;
    so_far->images++;
  } else if (strcmp(f->key, "image/class/label") == 0) {
    view->label = f->number;
    so_far->labels += f->is_number ? f->n : 2;
  } else if (f->n == 1 && !f->is_number && strcmp(f->key, "image/class/synset") == 0) {
    return copy_text_from_message(w, f->at, f->n_bytes, LACI_SYNSET_BYTES, view->synset);
  }
  return LAC_OK;
}

static lac_status read_features(wire_reader *w, const field *outer, found *so_far,
                                laci_example_view *view) {
  lac_status st = LAC_OK;
  field entry;
  feature f;
  for (size_t at = outer->at; at < outer->end && !st;) {
    st = read_wire_field(w, &at, outer->end, &entry);
    if (st || entry.number != 1 || entry.type != WIRE_BYTES) continue;
    st = read_map_entry(w, &entry, &f);
    if (!st) st = record_feature(w, &f, so_far, view);
  }
  return st;
}

lac_status laci_example_find_features(const laci_example_source *source, laci_example_view *view,
                                      lac_error *err) {
  wire_reader w = {.source = source, .err = err};
  found so_far = {0};
  field outer;
  lac_status st = LAC_OK;
  *view = (laci_example_view){0};
  for (size_t at = 0; at < source->n && !st;) {
    st = read_wire_field(&w, &at, source->n, &outer);
    if (st || outer.number != 1 || outer.type != WIRE_BYTES) continue;
    st = read_features(&w, &outer, &so_far, view);
  }
  if (st) return st;
  if (so_far.images != 1) return fail_bad_message(&w, "an Example without one image/encoded");
  if (so_far.labels != 1) return fail_bad_message(&w, "an Example without one image/class/label");
  return LAC_OK;
}
