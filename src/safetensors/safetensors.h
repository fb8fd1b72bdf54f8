/* SPDX-License-Identifier: Apache-2.0
 * Reads files of the safetensors format (Hugging Face), which hold named tensors, and nothing that
 * could be executed.
 *
 *     length of the header u64, little-endian | header, JSON | the tensors' bytes
 *     {"fc.bias": {"dtype": "F32", "shape": [10], "data_offsets": [0, 40]}, "__metadata__": {...}}
 *
 * Everything that the header says is checked before a tensor is read: its length (100 MB at most,
 * as the format's own reader requires), types, shapes, and that tensors are inside the file and do
 * not overlap. */
#ifndef LACI_SAFETENSORS_SAFETENSORS_H
#define LACI_SAFETENSORS_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/status.h"

enum { LACI_SAFETENSORS_MOST_RANK = 8 };

typedef struct laci_reader laci_reader;
typedef struct laci_safetensors laci_safetensors;

/** A tensor of a file. It is valid until the file is closed. */
typedef struct laci_safetensor {
  const char *name;
  const char *type; /* name of the element type in the file: "F32", "I64" */
  lac_dtype dtype;  /* element type; set only if is_float is true */
  bool is_float;    /* true: the type is F64, F32, F16 or BF16; only such tensors are read */
  int rank;
  int64_t shape[LACI_SAFETENSORS_MOST_RANK];
  int64_t count;
  size_t first, size_bytes; /* offset of the tensor's first byte in the file, and its size */
} laci_safetensor;

/** Are the first n bytes of a file, n >= 9, like the beginning of a safetensors file? */
bool laci_safetensors_has_signature(const uint8_t *bytes, size_t n);

/** Opens a file; reads and checks its header. Fails with LAC_BAD_FILE, whose text has the tensor
 * and what is wrong, and as laci_reader_open does. *file is then NULL. */
LAC_MUST_CHECK lac_status laci_safetensors_open(const char *path, laci_safetensors **file,
                                                lac_error *err);
/** Makes a laci_safetensors of the n tensors of a file in another format. `reader` reads that file;
 * on success *file owns it. Names and types of the tensors are copied. Fails with LAC_BAD_FILE if
 * two tensors have the same name, or with LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_safetensors_wrap_tensors(const char *path, laci_reader *reader,
                                                        const laci_safetensor *tensors, int n,
                                                        laci_safetensors **file, lac_error *err);
void laci_safetensors_close(laci_safetensors *file); /* file may be NULL */

/** Returns the file's tensors, sorted by name, and sets *n to their number. */
const laci_safetensor *laci_safetensors_list_tensors(const laci_safetensors *file, int *n);
/** Returns the tensor with this name; NULL: there is none. */
const laci_safetensor *laci_safetensors_find_tensor(const laci_safetensors *file, const char *name);

/** Reads all elements of a float tensor as floats, to[count]. NaN and infinities are kept. */
LAC_MUST_CHECK lac_status laci_safetensors_read_floats(const laci_safetensors *file,
                                                       const laci_safetensor *tensor, float *to,
                                                       lac_error *err);

#endif
