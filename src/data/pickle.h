/* SPDX-License-Identifier: Apache-2.0
 * Reads the pickles in CIFAR's Python files: numbers, texts, lists, dictionaries and NumPy arrays
 * of bytes, pickled with protocol 2 by Python 2. It also reads those of PyTorch's checkpoints, in
 * which tensors refer to bytes outside of the pickle (torch_file.h).
 *
 * A pickle is a program for a virtual machine that may call any Python function. This reader calls
 * nothing. It knows three names of NumPy that stand for an array, and a few names of PyTorch that
 * stand for a tensor. Every other name or opcode is refused with its name and position. Values are
 * views of the bytes. */
#ifndef LACI_DATA_PICKLE_H
#define LACI_DATA_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_arena laci_arena;

typedef enum laci_pickle_kind {
  LACI_PICKLE_NONE,
  LACI_PICKLE_BOOL,    /* a truth value, in the field number */
  LACI_PICKLE_NUMBER,  /* an integer, in the field number */
  LACI_PICKLE_TEXT,    /* a text, in the fields bytes and n_bytes */
  LACI_PICKLE_LIST,    /* a list or a tuple, in items[n] */
  LACI_PICKLE_DICT,    /* a dictionary, in items[n]: key, value, key, value ... */
  LACI_PICKLE_ARRAY,   /* an array of unsigned bytes in C order: its shape in items[n] (numbers),
                          its elements in bytes, n_bytes */
  LACI_PICKLE_TYPE,    /* the type of an array's elements; number is 1 for u1 (unsigned bytes), 0
                          for other types */
  LACI_PICKLE_NAME,    /* one of the known names of NumPy or PyTorch, without its module, in bytes,
                          n_bytes */
  LACI_PICKLE_REAL,    /* a Python float, whose value is not kept */
  LACI_PICKLE_STORAGE, /* a storage of PyTorch; items[n] are, as pickled: "storage", type, key,
                          device, number of elements */
  LACI_PICKLE_TENSOR,  /* a tensor of PyTorch; items[n] are its storage, offset in elements, shape,
                          strides ... */
} laci_pickle_kind;

typedef struct laci_pickle_value {
  laci_pickle_kind kind;
  int64_t number;
  const uint8_t *bytes; /* text, name or elements: a view of the pickle */
  size_t n_bytes;
  struct laci_pickle_value **items;
  size_t n, capacity;
} laci_pickle_value;

/** Parses a pickle; *value lives in the arena and points into `bytes`. A list may contain itself.
 * Fails LAC_BAD_FILE (the pickle is cut off, has bytes after its end, or an opcode finds no value
 * of the kind that it needs); LAC_UNSUPPORTED for unknown opcodes and names, with their position;
 * LAC_NO_MEMORY. name: for error texts. Memory is a small multiple of the bytes. */
LAC_MUST_CHECK lac_status laci_pickle_parse(laci_arena *arena, const char *name,
                                            const uint8_t *bytes, size_t size_bytes,
                                            const laci_pickle_value **value, lac_error *err);

/** The content of a pickle of PyTorch. */
typedef struct laci_pickle_torch {
  const laci_pickle_value *root;
  laci_pickle_value **storages; /* [n_storages] all references to storages, in the arena */
  size_t n_storages;
} laci_pickle_torch;

/** A pickle's bytes that are still to be read. */
typedef struct laci_pickle_bytes {
  const uint8_t *at;
  size_t n;
} laci_pickle_bytes;
/** Parses a pickle of PyTorch like laci_pickle_parse. It may hold only tensors and plain values.
 * Other pickles may follow it: moves from->at to the end of the parsed one. */
LAC_MUST_CHECK lac_status laci_pickle_parse_torch(laci_arena *arena, const char *name,
                                                  laci_pickle_bytes *from, laci_pickle_torch *found,
                                                  lac_error *err);

/** Is the value a text that equals `text`? False if value is NULL. */
bool laci_pickle_is_text(const laci_pickle_value *value, const char *text);
/** Returns the value of a key in a dictionary; NULL: the key is missing, or `dict` is no
 * dictionary. */
const laci_pickle_value *laci_pickle_find_in_dict(const laci_pickle_value *dict, const char *key);

#endif
