/* SPDX-License-Identifier: Apache-2.0
 * Masks for a training loop of one's own: made once, then applied to one's own buffers, weights,
 * gradients or momentum, after each step.
 *
 *     lac_mask_from_model(model, &options, &mask, &err);       after lac_prune, or of a sparse file
 *     for (;;) { step(); lac_mask_apply(mask, "conv1.weight", LAC_DTYPE_F32, w, n, &err); }      */
#ifndef LACUNA_MASK_H
#define LACUNA_MASK_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/model.h"
#include "lacuna/prune.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The masks of a network's weights, by name. Applying them is for any number of threads at a time,
 * adding is for one. */
typedef struct lac_mask lac_mask;

/** A weight: row-major, little-endian, the caller's. */
typedef struct lac_mask_weight {
  const char *name; /* copied */
  lac_dtype dtype;  /* f16, bf16, f32, f64 */
  int rank;         /* 1 .. 8 */
  int64_t shape[8];
  int c_axis; /* input channels: groups of m are along it; 1 for Conv and for Linear as PyTorch has
                 it, 0 for a MatMul's right side */
  const void *values;
} lac_mask_weight;

/** No masks yet. Fails LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_mask_create(lac_mask **mask, lac_error *err);
LAC_API void lac_mask_destroy(lac_mask *mask); /* NULL is fine */

/** The masks of all eligible layers of the model that are pruned to the pattern of the options:
 * their zeros. A weight that is zero everywhere holds every pattern, but it was not pruned: it has
 * none. Fails as lac_check; a model in which no layer holds the pattern has no masks, and that is
 * no error.
 */
LAC_API LAC_MUST_CHECK lac_status lac_mask_from_model(const lac_model *model,
                                                      const lac_options *options, lac_mask **mask,
                                                      lac_error *err);

/** Adds a mask that keeps the n largest magnitudes of every m along c_axis; ties keep the lowest
 * index. Fails LAC_EXISTS for a name that is there, LAC_BAD_ARGUMENT, LAC_BAD_SHAPE,
 * LAC_UNSUPPORTED for another type, LAC_BAD_VALUE for NaN and Inf, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_mask_add(lac_mask *mask, const lac_mask_weight *weight, int n,
                                               int m, lac_error *err);
/** Adds a mask of what is not zero now; c_axis does not count. Fails as lac_mask_add does. */
LAC_API LAC_MUST_CHECK lac_status lac_mask_add_zeros(lac_mask *mask, const lac_mask_weight *weight,
                                                     lac_error *err);

LAC_API int lac_mask_count(const lac_mask *mask); /* of NULL: 0 */
/** The name of mask `at`, 0 <= at < count; a view. NULL: there is no such mask. */
LAC_API const char *lac_mask_name(const lac_mask *mask, int at);
/** One byte an element, 1 = kept; a view, until the mask is destroyed. Fails LAC_NOT_FOUND,
 * LAC_BAD_ARGUMENT. */
LAC_API LAC_MUST_CHECK lac_status lac_mask_bytes(const lac_mask *mask, const char *name,
                                                 const uint8_t **bytes, size_t *count,
                                                 lac_error *err);

/** Sets every masked element of a buffer of the weight's elements to zero, NaN too. A name without
 * a mask is left alone: callers may go through all their parameters. Fails LAC_BAD_SHAPE where the
 * weight has another count, LAC_UNSUPPORTED for a type of no whole bytes, LAC_BAD_ARGUMENT for
 * NULL. */
LAC_API LAC_MUST_CHECK lac_status lac_mask_apply(const lac_mask *mask, const char *name,
                                                 lac_dtype dtype, void *values, size_t count,
                                                 lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
