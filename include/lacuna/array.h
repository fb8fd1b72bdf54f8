/* SPDX-License-Identifier: Apache-2.0
 * Arrays in memory: inputs and outputs of a session, samples, scores. */
#ifndef LACUNA_ARRAY_H
#define LACUNA_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/dtype.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An array: row-major and packed, in the caller's or the library's memory. Zero-initialize it. */
typedef struct lac_array {
  const char *name; /* name of the network's input or output that the array is for; NULL: the input
                       or output with the same index as the array has in its list. The library fills
                       it in for outputs: valid until the session is destroyed */
  lac_dtype dtype;  /* element type: the one that the network declares, or LAC_DTYPE_F32 for any
                       float type and LAC_DTYPE_I64 for integers and booleans. Outputs:
                       LAC_DTYPE_NONE (0) stands for the declared type, and is replaced by it */
  int rank;         /* number of axes, 0 .. 8; filled in for outputs. -1 in lac_session_inputs:
                       unknown */
  int64_t shape[8]; /* sizes of the axes; filled in for outputs. -1 in lac_session_inputs: open */
  void *data;       /* the elements; an input's are only read. Output NULL: the library allocates */
  size_t size_bytes; /* input: bytes of all elements; output: bytes available at data. Filled in if
                        the library allocated the data */
  bool owned;        /* an output's data belongs to the library: lac_session_release frees it */
} lac_array;

/** Samples for calibration, evaluation and training, in memory or from a function, instead of a
 * path to arrays of NumPy. An array has the name of the network's input, and its samples along the
 * first axis. For calibration they may be along another axis, or the array may be the same for all
 * samples (lac_calibration.data). `labels` has one integer for each sample, the number of an
 * output. All arrays have the same number of samples. The arrays must not change during the call
 * that they are passed to. Start from `lac_samples samples = LAC_SIZED(lac_samples);`. */
typedef struct lac_samples {
  size_t size;             /* sizeof of this struct, set by LAC_SIZED */
  const lac_array *arrays; /* [n_arrays] an array for each input, and perhaps `labels` */
  int n_arrays;
  /** Delivers the rows of those arrays whose `data` is NULL. Copies row `row` (along the first
   * axis) of the array `name` to `to`: all its elements, row-major and packed, in the array's type.
   * Calls for one lac_samples come one at a time, from any thread that the work uses. If it fails,
   * the work ends with its status (default NULL). */
  lac_status (*read_row)(void *context, const char *name, int64_t row, void *to, lac_error *err);
  void *read_context; /* passed to read_row (default NULL) */
} lac_samples;

#ifdef __cplusplus
}
#endif
#endif
