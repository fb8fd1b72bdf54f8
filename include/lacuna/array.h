/* SPDX-License-Identifier: Apache-2.0
 * Arrays in memory: inputs and outputs of a session, samples, scores. */
#ifndef LACUNA_ARRAY_H
#define LACUNA_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An array: row-major and packed, in the caller's or the library's memory. Zero-initialize it. */
typedef struct lac_array {
  const char *name; /* of the network's input or output; NULL: the one with the index that the array
                       has in its list. Filled in for outputs: valid until the session is destroyed
                       */
  lac_dtype dtype;  /* the type that the network declares, or LAC_DTYPE_F32 for any float type and
                       LAC_DTYPE_I64 for integers and booleans. Outputs: LAC_DTYPE_NONE (0) is the
                       declared type, and is filled in */
  int rank;         /* 0 .. 8; filled in for outputs. -1 in lac_session_inputs: unknown */
  int64_t shape[8]; /* sizes of the axes; filled in for outputs. -1 in lac_session_inputs: open */
  void *data;       /* the elements; an input's are only read. Output NULL: the library allocates */
  size_t size_bytes; /* input: bytes of all elements; output: bytes available at data. Filled in
                        where the library allocated */
  bool owned;        /* an output's data belongs to the library: lac_session_release frees it */
} lac_array;

#ifdef __cplusplus
}
#endif
#endif
