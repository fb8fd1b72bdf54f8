/* SPDX-License-Identifier: Apache-2.0
 * Two networks side by side: both run on the same inputs, node by node and in double, and every
 * value that both have is compared. So one sees where the networks differ, and by how much. */
#ifndef LACUNA_COMPARE_H
#define LACUNA_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/infer.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_context lac_context; /* lacuna/context.h */
typedef struct lac_model lac_model;     /* lacuna/model.h */

/** What two networks are compared on, and how. */
typedef struct lac_compare_options {
  size_t size;                   /* sizeof of this struct, set by lac_compare_options_init */
  const lac_infer_input *inputs; /* arrays for the inputs, with the names that the first network has
                                    for them; NULL: random inputs (default NULL) */
  int n_inputs;                  /* number of arrays: 0, or the number of the network's inputs
                                    (default 0) */
  double tolerance;              /* a value counts as different if its error is larger than this
                                    (default 0.001) */
  uint64_t seed;                 /* seed of the random inputs (default 0) */
  int threads;                   /* number of threads; 0: the cores this process may use (default 0)
                                    */
  uint64_t max_memory;           /* limit of memory in bytes; 0: 80 % of the machine's memory
                                    (default 0) */
  lac_context *context;          /* log, progress and interrupt; NULL: the process's (default NULL)
                                    */
  const char *runtime;           /* ONNX Runtime's library, 1.14 or later, which is opened and runs
                                    the second network: a path, or a name that the loader finds;
                                    NULL: Lacuna runs both (default NULL) */
} lac_compare_options;

/** Fills in the defaults and the size. size: sizeof(lac_compare_options). */
LAC_API void lac_compare_options_init(lac_compare_options *options, size_t size);
LAC_DEFAULT(lac_compare_options)

/** A value that both networks compute: the first output of a node of each. */
typedef struct lac_compare_value {
  const char *name, *other; /* name of the node in the first network; name of its partner in the
                               second */
  const char *op;
  bool by_name;    /* both nodes have the same name; false: they were matched by operator and shape,
                     in the order of such nodes */
  bool is_output;  /* the value is an output of the first network */
  bool reordered;  /* the value's channels have another order in the second network; each channel
                      was compared with its counterpart */
  bool same_shape; /* both values have the same shape; false: nothing was compared, and error is
                      NaN */
  int rank;
  int64_t shape[8];
  double error;   /* root mean square of the difference, divided by the root mean square of the
                     value in the first network */
  double largest; /* largest |difference|, divided by the largest |element| of the value in the
                     first network */
  double scale;   /* the value's largest |element| in the first network */
} lac_compare_value;

/** All values that were compared. Freed with lac_compare_result_destroy. */
typedef struct lac_compare_result {
  const char *model, *other; /* path of the first network, and of the second */
  int n_nodes, n_other;      /* number of nodes of the first network, and of the second */
  int n_values;
  const lac_compare_value *values; /* [n_values], in the networks' order */
  bool given;                      /* the inputs were arrays of the caller; false: random inputs */
  double tolerance;                /* lac_compare_options.tolerance */
  uint64_t seed;                   /* lac_compare_options.seed */
  const char *runtime; /* what ran the second network: "ONNX Runtime 1.20.0"; NULL: Lacuna */
} lac_compare_result;

/** Compares two networks with the same inputs; other NULL: the model itself, which options.runtime
 * runs. Inputs of the two networks are matched by name or, if no name is the same, by position.
 * With options.runtime the file of the second network is read again, and all values of that network
 * are held in memory at once. *result is freed with lac_compare_result_destroy. Fails LAC_BAD_SHAPE
 * (inputs differ in number, or an array does not fit), LAC_UNSUPPORTED (a node cannot be run, or
 * ONNX Runtime refuses), LAC_BAD_ARGUMENT, LAC_BAD_FILE, LAC_NOT_FOUND, LAC_MEMORY_LIMIT,
 * LAC_NO_MEMORY, LAC_INTERRUPTED. */
LAC_API LAC_MUST_CHECK lac_status lac_compare(const lac_model *model, const lac_model *other,
                                              const lac_compare_options *options,
                                              lac_compare_result **result, lac_error *err);
LAC_API void lac_compare_result_destroy(lac_compare_result *result); /* NULL is fine */

/** Sets *text to the result as JSON text; free it with lac_text_free. docs/reference/json.md
 * describes it. */
LAC_API LAC_MUST_CHECK lac_status lac_compare_json(const lac_compare_result *result, char **text,
                                                   lac_error *err);

/** Draws the error over the values, in the networks' order, as an SVG file. Fails LAC_BAD_ARGUMENT
 * (another ending), LAC_EXISTS (without force), LAC_IO, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_compare_plot(const lac_compare_result *result,
                                                   const char *path, bool force, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
