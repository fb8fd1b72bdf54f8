/* SPDX-License-Identifier: Apache-2.0
 * Where the elements of constants are stored, and how they are read: each constant is external data
 * of the model, and the name of its file is its number. */
#ifndef LAC_ORT_WEIGHTS_H
#define LAC_ORT_WEIGHTS_H

#include "graph.h"

enum { LAC_ORT_NAME_BYTES = 16 };

/** The elements of one constant. */
typedef struct laci_ort_weight {
  int dtype, rank;
  int64_t *sizes;    /* [rank] sizes of the axes */
  uint64_t size;     /* bytes of all elements */
  const void *bytes; /* the elements in memory; NULL: they are in the file */
  void *copy;        /* copy of the elements, owned, to which `bytes` points; NULL: there is no
                        copy */
  char *file;        /* path of the file that has the elements; NULL: they are in memory */
  uint64_t offset;   /* offset of the first element in the file, in bytes */
} laci_ort_weight;

typedef struct laci_ort_weights {
  laci_ort_weight *all;
  int n, most;     /* number of weights, and capacity of the array */
  uint64_t copied; /* bytes of the copies of all weights */
} laci_ort_weights;

/** Adds the elements of a constant. keep: copies elements that are in memory. *weight is valid
 * until the next call. Fails LAC_UNSUPPORTED for elements that are no numbers. */
LAC_MUST_CHECK lac_status laci_ort_weights_add_value(laci_ort_weights *weights,
                                                     const laci_ort_graph *graph,
                                                     const laci_ort_value *value, bool keep,
                                                     laci_ort_weight **weight, lac_error *err);
/** Adds the elements of a tensor in memory, like laci_ort_weights_add_value. */
LAC_MUST_CHECK lac_status laci_ort_weights_add_tensor(laci_ort_weights *weights,
                                                      const laci_ort *ort, const ort_value *tensor,
                                                      bool keep, laci_ort_weight **weight,
                                                      lac_error *err);
void laci_ort_weights_clear(laci_ort_weights *weights);

/** Writes the file name of weight number `at` to `name` [LAC_ORT_NAME_BYTES]. */
void laci_ort_write_weight_name(int at, char *name);
/** Reads bytes of a weight by its file name: the reader that lac_load_options needs. */
LAC_MUST_CHECK lac_status laci_ort_weights_read_bytes(const laci_ort_weights *weights,
                                                      const char *name, uint64_t offset, void *to,
                                                      size_t *n, lac_error *err);
/** Returns the weight of this name; NULL: there is none. */
const laci_ort_weight *laci_ort_weights_find(const laci_ort_weights *weights, const char *name);

#endif
