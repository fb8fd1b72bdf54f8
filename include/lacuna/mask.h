/* SPDX-License-Identifier: Apache-2.0
 * Masks for a caller's training loop: made once, and then applied after each step to the caller's
 * buffers of weights, gradients or momentum.
 *
 *     lac_mask_from_model(model, &options, &mask, &err);       after lac_prune, or of a sparse file
 *     for (;;) { step(); lac_mask_apply(mask, "conv1.weight", LAC_DTYPE_F32, w, n, &err); } */
#ifndef LACUNA_MASK_H
#define LACUNA_MASK_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/model.h"
#include "lacuna/prune.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The masks of a network's weights, by name. Any number of threads may apply them at the same
 * time; while one thread adds a mask, no other thread may use them. */
typedef struct lac_mask lac_mask;

/** A weight of the caller: row-major, little-endian. */
typedef struct lac_mask_weight {
  size_t size;      /* sizeof of this struct, set by LAC_SIZED */
  const char *name; /* name of the weight, which is copied */
  lac_dtype dtype;  /* f16, bf16, f32, f64 */
  int rank;         /* number of axes, 1 .. 8 */
  int64_t shape[8];
  int c_axis; /* axis of the input channels, along which every m elements form a group; 1 for Conv
                 and for PyTorch's Linear, 0 for the right operand of MatMul */
  const void *values; /* the weight's elements */
} lac_mask_weight;

/** Creates an empty set of masks. Fails LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_mask_create(lac_mask **mask, lac_error *err);
LAC_API void lac_mask_destroy(lac_mask *mask); /* NULL is fine */

/** Creates the masks of all eligible layers of the model that are pruned to the pattern of the
 * options: each mask marks the weight's zeros. A weight that is zero everywhere does not count as
 * pruned and gets no mask. Fails as lac_check. If no layer holds the pattern, the set is empty;
 * this is no error. */
LAC_API LAC_MUST_CHECK lac_status lac_mask_from_model(const lac_model *model,
                                                      const lac_options *options, lac_mask **mask,
                                                      lac_error *err);

/** Adds a mask that keeps the n largest magnitudes of every m along c_axis; ties keep the lowest
 * index. Fails LAC_EXISTS if there is a mask of this name, LAC_BAD_ARGUMENT, LAC_BAD_SHAPE,
 * LAC_UNSUPPORTED for another type, LAC_BAD_VALUE for NaN and Inf, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_mask_add(lac_mask *mask, const lac_mask_weight *weight, int n,
                                               int m, lac_error *err);
/** Adds a mask that keeps the elements that are not zero now; c_axis is ignored. Fails as
 * lac_mask_add does. */
LAC_API LAC_MUST_CHECK lac_status lac_mask_add_zeros(lac_mask *mask, const lac_mask_weight *weight,
                                                     lac_error *err);

LAC_API int lac_mask_count(const lac_mask *mask); /* number of masks; 0 for NULL */
/** Returns the name of mask number `at`, 0 <= at < count, valid until the masks are destroyed.
 * NULL: there is no such mask. */
LAC_API const char *lac_mask_name(const lac_mask *mask, int at);
/** Returns a mask as one byte per element, 1 = kept; the bytes are valid until the masks are
 * destroyed. Fails LAC_NOT_FOUND, LAC_BAD_ARGUMENT. */
LAC_API LAC_MUST_CHECK lac_status lac_mask_bytes(const lac_mask *mask, const char *name,
                                                 const uint8_t **bytes, size_t *count,
                                                 lac_error *err);

/** Sets the elements of a buffer that the mask of `name` does not keep to zero, even if they are
 * NaN. The buffer `values` has one element for each element of the weight. If there is no mask of
 * this name, nothing is changed, so that callers may pass all their parameters. Fails LAC_BAD_SHAPE
 * (the mask has another number of elements), LAC_UNSUPPORTED (a type whose elements are not whole
 * bytes), LAC_BAD_ARGUMENT (NULL). */
LAC_API LAC_MUST_CHECK lac_status lac_mask_apply(const lac_mask *mask, const char *name,
                                                 lac_dtype dtype, void *values, size_t count,
                                                 lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
