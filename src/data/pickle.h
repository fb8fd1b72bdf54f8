/* SPDX-License-Identifier: Apache-2.0
 * Reads the pickles in CIFAR's Python files: numbers, texts, lists, dictionaries and NumPy arrays
 * of bytes, pickled with protocol 2 by Python 2.
 *
 * A pickle is a program for a virtual machine that may call any Python function. This reader calls
 * nothing: it knows three of NumPy's names, which mean an array. Every other name or opcode is
 * refused with its name and position. Values are views of the bytes. */
#ifndef LACI_DATA_PICKLE_H
#define LACI_DATA_PICKLE_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_arena laci_arena;

typedef enum laci_pickle_kind {
  LACI_PICKLE_NONE,
  LACI_PICKLE_BOOL,   /* number */
  LACI_PICKLE_NUMBER, /* number */
  LACI_PICKLE_TEXT,   /* bytes, n_bytes */
  LACI_PICKLE_LIST,   /* items[n]; a tuple, too */
  LACI_PICKLE_DICT,   /* items[n]: key, value, key, value ... */
  LACI_PICKLE_ARRAY,  /* an array of bytes in C order: items[n] is the shape (numbers); bytes,
                         n_bytes */
  LACI_PICKLE_TYPE,   /* the type of an array's elements; number: is it u1? */
  LACI_PICKLE_NAME,   /* one of NumPy's names */
} laci_pickle_kind;

typedef struct laci_pickle_value {
  laci_pickle_kind kind;
  int64_t number;
  const uint8_t *bytes; /* a view of the pickle */
  size_t n_bytes;
  struct laci_pickle_value **items;
  size_t n, capacity;
} laci_pickle_value;

/** Parses a pickle; *value lives in the arena and points into `bytes`. A list may contain itself.
 * Fails LAC_BAD_FILE (cut off; a value missing or of another kind than the opcode needs; bytes
 * after the end), LAC_UNSUPPORTED for opcodes and names that are not known, naming them and their
 * position, LAC_NO_MEMORY; `name` is used in the text. Memory is a small multiple of the bytes. */
LAC_MUST_CHECK lac_status laci_pickle_parse(laci_arena *arena, const char *name,
                                            const uint8_t *bytes, size_t size_bytes,
                                            const laci_pickle_value **value, lac_error *err);

/** Returns the value of a key in a dictionary; NULL: the key is missing, or `dict` is no
 * dictionary. */
const laci_pickle_value *laci_pickle_get(const laci_pickle_value *dict, const char *key);

#endif
