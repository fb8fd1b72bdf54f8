/* SPDX-License-Identifier: Apache-2.0
 * A network inside of ONNX Runtime, whose library is opened at run time: nothing of it is linked.
 *
 * The file gets more outputs, so that one run computes the values of all nodes. */
#ifndef LACI_API_COMPARE_RUNTIME_H
#define LACI_API_COMPARE_RUNTIME_H

#include "lacuna/status.h"

typedef struct laci_buf laci_buf;

/** What a run of ONNX Runtime shall compute. Names are those in the model's file. */
typedef struct laci_runtime_job {
  const char *library; /* path of ONNX Runtime's library, or a name that the loader finds */
  const char *model;   /* path of a file in ONNX's format */
  const char *const *inputs;
  const laci_buf *const *arrays; /* [n_inputs] the elements of each input */
  int n_inputs;
  const char *const *values; /* [n_values] names of the values to compute, each once: values of
                                nodes, and outputs */
  int n_values;
  const char *const *added; /* [n_added] the names in `values` that are not outputs of the file */
  int n_added;
} laci_runtime_job;

/** Runs the network once. bufs: [n_values] the values, which the caller frees by laci_buf_destroy;
 * NULL: the value is no tensor of numbers. version: at least 32 bytes, "ONNX Runtime 1.20.0". Fails
 * LAC_NOT_FOUND (no such file), LAC_BAD_FILE (no ONNX Runtime), LAC_UNSUPPORTED (it is too old, or
 * refuses the network; a type of an input), LAC_NO_MEMORY. The library stays open. */
LAC_MUST_CHECK lac_status laci_runtime_run(const laci_runtime_job *job, laci_buf **bufs,
                                           char *version, lac_error *err);

#endif
