/* SPDX-License-Identifier: Apache-2.0
 * The header of a .npy file: eight bytes of magic and version, a length, and a Python dictionary,
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 *
 * Only such a dictionary is accepted, with its three keys in any order; it is read token by token
 * and never evaluated. Anything that Python would accept but NumPy does not write is an error that
 * names the position. */
#include "data/npy_in.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum {
  MAGIC_BYTES = 6,
  VERSION_BYTES = 2,
  ALIGNMENT = 64,    /* the elements start at a multiple of this */
  GROWTH_DIGITS = 21 /* numpy.save leaves space for this many digits of the first size, so that it
                        can grow */
};
static const char magic[MAGIC_BYTES + 1] = "\x93NUMPY";

/* NumPy's names of element types, without the byte order. */
static const struct {
  const char *name;
  lac_dtype dtype;
} kinds[] = {
    {"f4", LAC_DTYPE_F32},    {"f2", LAC_DTYPE_F16}, {"f8", LAC_DTYPE_F64}, {"b1", LAC_DTYPE_BOOL},
    {"u1", LAC_DTYPE_U8},     {"i1", LAC_DTYPE_I8},  {"u2", LAC_DTYPE_U16}, {"i2", LAC_DTYPE_I16},
    {"u4", LAC_DTYPE_U32},    {"i4", LAC_DTYPE_I32}, {"u8", LAC_DTYPE_U64}, {"i8", LAC_DTYPE_I64},
    {"V2", LAC_DTYPE_BF16}, /* two untyped bytes: NumPy's name of ml_dtypes' bfloat16 */
    {"V1", LAC_DTYPE_NONE}, /* one untyped byte: types of ml_dtypes with at most 8 bits, except the
                               next one */
    {"f1", LAC_DTYPE_F8E5M2},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

bool laci_npy_is_untyped(lac_dtype dtype) {
  int bits = laci_dtype_bits(dtype);
  bool has_name = dtype == LAC_DTYPE_BOOL || dtype == LAC_DTYPE_U8 || dtype == LAC_DTYPE_I8;
  return bits > 0 && bits <= 8 && !has_name;
}

lac_status laci_npy_fail_untyped(const char *name, lac_error *err) {
  return laci_fail(err, LAC_UNSUPPORTED,
                   "%s: bytes of any type (V1), and no input of 8 bits or fewer to give them one",
                   name);
}

/* ---- Reading ---- */

typedef struct cursor {
  const char *name;
  const char *text, *at, *end;
  lac_error *err;
} cursor;

static lac_status fail_header_syntax(const cursor *c, const char *what) {
  return laci_fail(c->err, LAC_BAD_FILE, "%s: header, character %td: wanted %s", c->name,
                   c->at - c->text + 1, what);
}

static void skip_blanks(cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n')) c->at++;
}

static bool skip_if_character(cursor *c, char mark) {
  skip_blanks(c);
  if (c->at == c->end || *c->at != mark) return false;
  c->at++;
  return true;
}

static bool skip_if_word(cursor *c, const char *word) {
  size_t n = strlen(word);
  skip_blanks(c);
  if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return false;
  c->at += n;
  return true;
}

/** Reads a Python string, 'text' or "text", without escapes and of fewer than `capacity` bytes. */
static lac_status parse_text(cursor *c, char *out, size_t capacity) {
  char quote = '\'';
  if (!skip_if_character(c, quote)) {
    quote = '"';
    if (!skip_if_character(c, quote)) return fail_header_syntax(c, "a text in quotes");
  }
  const char *close = memchr(c->at, quote, (size_t)(c->end - c->at));
  if (!close || (size_t)(close - c->at) >= capacity)
    return fail_header_syntax(c, "a short text in quotes");
  memcpy(out, c->at, (size_t)(close - c->at));
  out[close - c->at] = '\0';
  c->at = close + 1;
  return LAC_OK;
}

static lac_status parse_element_type(cursor *c, laci_npy_header *header) {
  char text[32];
  skip_blanks(c);
  if (c->at < c->end && *c->at == '[') {
    return laci_fail(c->err, LAC_UNSUPPORTED, "%s: an array of records, wanted one of numbers",
                     c->name);
  }
  lac_status st = parse_text(c, text, sizeof text);
  if (st) return st;
  for (int at = 0; at < N_KINDS && text[0]; at++) {
    if (strcmp(text + 1, kinds[at].name) != 0) continue;
    header->opaque = kinds[at].dtype == LAC_DTYPE_NONE;
    header->type.dtype = header->opaque ? LAC_DTYPE_U8 : kinds[at].dtype;
    header->big_endian = text[0] == '>';
    /* '|' means that the type has no byte order: one byte, or untyped bytes ('V') */
    bool any = kinds[at].name[0] == 'V';
    bool ordered = text[0] == '<' || (text[0] == '>' && !any);
    bool orderless = lac_dtype_size(header->type.dtype) == 1 || any;
    if (ordered || (text[0] == '|' && orderless)) return LAC_OK;
  }
  return laci_fail(
      c->err, LAC_UNSUPPORTED,
      "%s: elements of type '%s', wanted floats (f2, f4, f8; V2 is bf16), integers or bool",
      c->name, text);
}

static lac_status parse_fortran_order(cursor *c, laci_npy_header *header) {
  header->fortran_order = skip_if_word(c, "True");
  if (header->fortran_order || skip_if_word(c, "False")) return LAC_OK;
  return fail_header_syntax(c, "True or False");
}

static lac_status parse_size(cursor *c, int64_t *size) {
  const char *begin = c->at;
  *size = 0;
  for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
    if (__builtin_mul_overflow(*size, 10, size) ||
        __builtin_add_overflow(*size, *c->at - '0', size)) {
      return fail_header_syntax(c, "a size that a machine can have");
    }
  }
  if (c->at == begin) return fail_header_syntax(c, "a size");
  if (c->at < c->end && *c->at == 'L') c->at++; /* Python 2 wrote long integers with a final L */
  return LAC_OK;
}

/** Reads a shape such as (), (3,), (3, 4) or (3, 4,). */
static lac_status parse_shape(cursor *c, laci_npy_header *header) {
  laci_shape *shape = &header->type.shape;
  shape->rank = 0;
  if (!skip_if_character(c, '(')) return fail_header_syntax(c, "'(' of the shape");
  while (!skip_if_character(c, ')')) {
    if (shape->rank == LACI_MAX_RANK) {
      return laci_fail(c->err, LAC_UNSUPPORTED, "%s: more than %d axes", c->name, LACI_MAX_RANK);
    }
    lac_status st = parse_size(c, &shape->dims[shape->rank]);
    if (st) return st;
    shape->rank++;
    if (skip_if_character(c, ',')) continue;
    if (shape->rank == 1 || !skip_if_character(c, ')'))
      return fail_header_syntax(c, "',' or ')' in the shape");
    break;
  }
  return LAC_OK;
}

typedef lac_status read_value(cursor *c, laci_npy_header *header);
static const struct {
  const char *key;
  read_value *read;
} keys[] = {
    {"descr", parse_element_type}, {"fortran_order", parse_fortran_order}, {"shape", parse_shape}};
enum { N_KEYS = sizeof keys / sizeof *keys };

static lac_status parse_key_and_value(cursor *c, laci_npy_header *header, unsigned *seen) {
  char key[32];
  lac_status st = parse_text(c, key, sizeof key);
  if (st) return st;
  for (int at = 0; at < N_KEYS; at++) {
    if (strcmp(key, keys[at].key) != 0) continue;
    if (*seen & 1U << at) break;
    *seen |= 1U << at;
    return skip_if_character(c, ':') ? keys[at].read(c, header)
                                     : fail_header_syntax(c, "':' after the key");
  }
  return laci_fail(c->err, LAC_BAD_FILE,
                   "%s: header: key '%s', wanted descr, fortran_order and shape, once each",
                   c->name, key);
}

static lac_status parse_dictionary(cursor *c, laci_npy_header *header) {
  unsigned seen = 0;
  if (!skip_if_character(c, '{')) return fail_header_syntax(c, "'{'");
  while (!skip_if_character(c, '}')) {
    lac_status st = parse_key_and_value(c, header, &seen);
    if (st) return st;
    if (skip_if_character(c, ',')) continue;
    if (!skip_if_character(c, '}')) return fail_header_syntax(c, "',' or '}'");
    break;
  }
  skip_blanks(c);
  if (c->at != c->end) return fail_header_syntax(c, "nothing but blanks after the dictionary");
  if (seen == (1U << N_KEYS) - 1) return LAC_OK;
  return laci_fail(c->err, LAC_BAD_FILE,
                   "%s: header: a key is missing, wanted descr, fortran_order and shape", c->name);
}

lac_status laci_npy_header_parse(const char *name, const uint8_t *bytes, size_t size_bytes,
                                 laci_npy_header *header, lac_error *err) {
  const size_t fixed = MAGIC_BYTES + VERSION_BYTES;
  *header = (laci_npy_header){0};
  if (size_bytes < fixed || memcmp(bytes, magic, MAGIC_BYTES) != 0) {
    return laci_fail(err, LAC_BAD_FILE, "%s: not a .npy file: it does not begin with \\x93NUMPY",
                     name);
  }
  int major = bytes[MAGIC_BYTES], minor = bytes[MAGIC_BYTES + 1];
  if (major < 1 || major > 3 || minor != 0) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: .npy version %d.%d, known are 1.0, 2.0 and 3.0",
                     name, major, minor);
  }
  size_t n_length = major == 1 ? 2 : 4, length = 0;
  if (size_bytes - fixed < n_length) {
    return laci_fail(err, LAC_BAD_FILE, "%s: ends within the header's length", name);
  }
  for (size_t at = n_length; at-- > 0;) length = length << 8 | bytes[fixed + at];
  size_t start = fixed + n_length;
  if (length > size_bytes - start) {
    return laci_fail(err, LAC_BAD_FILE, "%s: a header of %zu bytes, but the file has %zu more",
                     name, length, size_bytes - start);
  }
  const char *text = (const char *)bytes + start;
  cursor c = {.name = name, .text = text, .at = text, .end = text + length, .err = err};
  header->offset_bytes = start + length;
  return parse_dictionary(&c, header);
}

/* ---- Writing ---- */

/** Writes a shape in Python's form: "()", "(3,)", "(3, 4)"; returns its length. */
static int write_shape(const laci_shape *shape, char *text, size_t capacity) {
  int used = snprintf(text, capacity, "(");
  for (int axis = 0; axis < shape->rank; axis++) {
    used += snprintf(text + used, capacity - (size_t)used, "%s%" PRId64, axis ? ", " : "",
                     shape->dims[axis]);
  }
  return used + snprintf(text + used, capacity - (size_t)used, shape->rank == 1 ? ",)" : ")");
}

lac_status laci_npy_header_write(const laci_type *type, char text[LACI_NPY_HEADER_BYTES],
                                 size_t *size_bytes, lac_error *err) {
  char shape[256];
  const char *kind = laci_npy_is_untyped(type->dtype) ? "V1" : NULL;
  for (int at = 0; at < N_KINDS; at++) {
    if (kinds[at].dtype == type->dtype && !kind) kind = kinds[at].name;
  }
  if (!kind) {
    return laci_fail(err, LAC_UNSUPPORTED, "a .npy file has no elements of type %s",
                     lac_dtype_name(type->dtype));
  }
  if (!laci_shape_is_known(&type->shape)) {
    return laci_fail(err, LAC_BAD_SHAPE, "a .npy file needs a known size, found %s",
                     laci_shape_text(&type->shape, shape, sizeof shape));
  }
  const size_t start = MAGIC_BYTES + VERSION_BYTES + 2;
  (void)write_shape(&type->shape, shape, sizeof shape);
  char order = lac_dtype_size(type->dtype) == 1 && kind[0] != 'V' ? '|' : '<';
  size_t n = start + (size_t)snprintf(text + start, LACI_NPY_HEADER_BYTES - start,
                                      "{'descr': '%c%s', 'fortran_order': False, 'shape': %s, }",
                                      order, kind, shape);
  if (type->shape.rank > 0) {
    n += (size_t)(GROWTH_DIGITS - snprintf(NULL, 0, "%" PRId64, type->shape.dims[0]));
  }
  size_t whole = (n + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  size_t printed = strlen(text + start) + start;
  memset(text + printed, ' ', whole - printed);
  text[whole - 1] = '\n';
  memcpy(text, magic, MAGIC_BYTES);
  text[MAGIC_BYTES] = 1;
  text[MAGIC_BYTES + 1] = 0;
  text[MAGIC_BYTES + 2] = (char)((whole - start) & 255);
  text[MAGIC_BYTES + 3] = (char)((whole - start) >> 8);
  *size_bytes = whole;
  return LAC_OK;
}
