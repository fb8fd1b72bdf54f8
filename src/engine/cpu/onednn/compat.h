/* SPDX-License-Identifier: Apache-2.0
 * oneDNN 2.6 and 3.x under one set of names.
 *
 * Version 3 made memory descriptors opaque, dropped the operation descriptors and changed a few
 * argument lists. Here, a memory descriptor is a pointer in both versions (laci_md, owned;
 * laci_md_view, borrowed), and every primitive is described by one call, as in version 3. Only this
 * file and backward.h test the version. Next: onednn_in.h, then primitives.c, which uses these
 * functions. */
#ifndef LACI_ENGINE_CPU_ONEDNN_COMPAT_H
#define LACI_ENGINE_CPU_ONEDNN_COMPAT_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"

/** The window of a convolution or pool primitive on its input; one number for each spatial axis. */
typedef struct laci_dnnl_window {
  int n_spatial;
  dnnl_dims_t kernel, strides, dilates, pads_begin, pads_end; /* dilates: dilation minus 1 */
} laci_dnnl_window;

/** How a convolution is computed, and for what. In training, weights keep a layout that all
 * primitives of training can read. In inference, Winograd's weights have their own layout, which is
 * slow to compute.
 */
typedef struct laci_dnnl_conv {
  dnnl_prop_kind_t kind;
  dnnl_alg_kind_t alg;
  const char *name; /* name of the wanted implementation; NULL: the first one is taken */
} laci_dnnl_conv;

/* Copies n sizes to an array of the library, whose functions declare DNNL_MAX_NDIMS numbers; shapes
 * here have fewer. */
static inline void laci_dims_copy(dnnl_dims_t to, int n, const int64_t *from) {
  for (int at = 0; at < n; at++) to[at] = from[at];
}

/* Returns the implementation's name, which lives as long as the descriptor. */
static inline const char *laci_pd_name(const_dnnl_primitive_desc_t pd) {
  const char *name = NULL;
  (void)dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
  return name ? name : "";
}

/* Does the implementation have another name than `wanted`? NULL: any name will do. */
static inline bool laci_pd_has_other_name(const_dnnl_primitive_desc_t pd, const char *wanted) {
  return wanted && strcmp(laci_pd_name(pd), wanted) != 0;
}

/* Does the implementation compute such a window wrongly? Version 2.6's brgconv for AVX-512 does
 * with 4 or more end pads, where a row has one result less than twice the number of pads. */
static inline bool laci_pd_miscomputes_window(const_dnnl_primitive_desc_t pd,
                                              const laci_dnnl_window *w) {
  enum { WIDE = 4 };
  static const char wrong[] = "brgconv:";
  return w->pads_end[w->n_spatial - 1] >= WIDE &&
         strncmp(laci_pd_name(pd), wrong, sizeof wrong - 1) == 0;
}

/* Can the primitive be described, but not created? Version 2.6 has such convolutions of bf16 with
 * small groups before certain functions (Mish, Swish, Gelu): their code grows too large. */
static inline bool laci_pd_cannot_be_created(const_dnnl_primitive_desc_t pd) {
  static const char doubtful[] = "jit_bf16:";
  dnnl_primitive_t made = NULL;
  if (strncmp(laci_pd_name(pd), doubtful, sizeof doubtful - 1) != 0) return false;
  dnnl_status_t st = dnnl_primitive_create(&made, pd);
  if (!st) (void)dnnl_primitive_destroy(made);
  return st != dnnl_success && st != dnnl_out_of_memory;
}

/* Is the implementation not acceptable, so that the next one is to be tried? */
static inline bool laci_pd_is_refused(const_dnnl_primitive_desc_t pd, const laci_dnnl_window *w,
                                      const char *wanted) {
  return laci_pd_has_other_name(pd, wanted) || laci_pd_miscomputes_window(pd, w) ||
         laci_pd_cannot_be_created(pd);
}

#if DNNL_VERSION_MAJOR >= 3

typedef dnnl_memory_desc_t laci_md;
typedef const_dnnl_memory_desc_t laci_md_view;

static inline bool laci_md_create_strided(laci_md *md, int n, const int64_t *dims,
                                          dnnl_data_type_t dt, const int64_t *strides) {
  dnnl_dims_t d = {0}, t = {0};
  laci_dims_copy(d, n, dims);
  laci_dims_copy(t, n, strides);
  return dnnl_memory_desc_create_with_strides(md, n, d, dt, t) == dnnl_success;
}
static inline bool laci_md_create_any(laci_md *md, int n, const int64_t *dims,
                                      dnnl_data_type_t dt) {
  dnnl_dims_t d = {0};
  laci_dims_copy(d, n, dims);
  return dnnl_memory_desc_create_with_tag(md, n, d, dt, dnnl_format_tag_any) == dnnl_success;
}
static inline bool laci_md_create_tagged(laci_md *md, int n, const int64_t *dims,
                                         dnnl_data_type_t dt, dnnl_format_tag_t tag) {
  dnnl_dims_t d = {0};
  laci_dims_copy(d, n, dims);
  return dnnl_memory_desc_create_with_tag(md, n, d, dt, tag) == dnnl_success;
}
static inline bool laci_md_create_copy(laci_md *md, laci_md_view of) {
  return dnnl_memory_desc_clone(md, of) == dnnl_success;
}
static inline void laci_md_destroy(laci_md md) {
  if (md) (void)dnnl_memory_desc_destroy(md);
}
static inline bool laci_md_create_part(laci_md *md, laci_md_view of, int n, const int64_t *dims,
                                       const int64_t *offsets) {
  dnnl_dims_t d = {0}, o = {0};
  laci_dims_copy(d, n, dims);
  laci_dims_copy(o, n, offsets);
  return dnnl_memory_desc_create_submemory(md, of, d, o) == dnnl_success;
}
static inline bool laci_md_create_permuted(laci_md *md, laci_md_view of, const int *places) {
  return dnnl_memory_desc_permute_axes(md, of, places) == dnnl_success;
}
/* Makes a descriptor with other axes for the same elements in the same memory; false where no
 * descriptor can describe that.
 */
static inline bool laci_md_create_reshaped(laci_md *md, laci_md_view of, int n,
                                           const int64_t *dims) {
  dnnl_dims_t d = {0};
  laci_dims_copy(d, n, dims);
  return dnnl_memory_desc_reshape(md, of, n, d) == dnnl_success;
}
/* Gets the stride of each axis and the offset of the first element, in elements; false: the layout
 * has blocks. */
static inline bool laci_md_get_strides(laci_md_view md, int n, int64_t *strides, int64_t *offset) {
  int blocks = 0;
  const dnnl_dims_t *s = NULL;
  if (dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &blocks) || blocks > 0) return false;
  if (dnnl_memory_desc_query(md, dnnl_query_strides, &s)) return false;
  if (dnnl_memory_desc_query(md, dnnl_query_submemory_offset_s64, offset)) return false;
  for (int at = 0; at < n; at++) strides[at] = (*s)[at];
  return true;
}

/* Returns the number of elements in the innermost block; 1: there are no blocks. */
static inline int64_t laci_md_block_channels(laci_md_view md) {
  int n = 0;
  const dnnl_dims_t *blocks = NULL;
  if (dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &n) || n < 1) return 1;
  if (dnnl_memory_desc_query(md, dnnl_query_inner_blks, &blocks)) return 1;
  return (*blocks)[n - 1];
}

static inline dnnl_status_t laci_post_append_sum(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}
static inline dnnl_status_t laci_post_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg,
                                                     float alpha, float beta) {
  return dnnl_post_ops_append_eltwise(ops, alg, alpha, beta);
}

/* Advances pd to the first implementation that laci_pd_is_refused does not refuse. */
static inline dnnl_status_t laci_pd_skip_refused(dnnl_primitive_desc_t pd,
                                                 const laci_dnnl_window *w, const char *wanted) {
  dnnl_status_t st = dnnl_success;
  while (!st && laci_pd_is_refused(pd, w, wanted)) st = dnnl_primitive_desc_next_impl(pd);
  if (st) (void)dnnl_primitive_desc_destroy(pd);
  return st ? dnnl_unimplemented : dnnl_success;
}

/* Describes a convolution. md: layouts of source, weights, bias (or NULL) and destination. */
static inline dnnl_status_t laci_pd_create_conv(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                laci_dnnl_conv how, const laci_md_view md[4],
                                                const laci_dnnl_window *w,
                                                const_dnnl_primitive_attr_t attr) {
  dnnl_status_t st = dnnl_convolution_forward_primitive_desc_create(
      pd, engine, how.kind, how.alg, md[0], md[1], md[2], md[3], w->strides, w->dilates,
      w->pads_begin, w->pads_end, attr);
  return st ? st : laci_pd_skip_refused(*pd, w, how.name);
}
static inline dnnl_status_t laci_pd_create_pool(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                dnnl_alg_kind_t alg, const laci_md_view md[2],
                                                const laci_dnnl_window *w,
                                                const_dnnl_primitive_attr_t attr) {
  return dnnl_pooling_forward_primitive_desc_create(pd, engine, dnnl_forward_inference, alg, md[0],
                                                    md[1], w->strides, w->kernel, w->dilates,
                                                    w->pads_begin, w->pads_end, attr);
}
static inline dnnl_status_t laci_pd_create_matmul(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                  const laci_md_view md[4],
                                                  const_dnnl_primitive_attr_t attr) {
  return dnnl_matmul_primitive_desc_create(pd, engine, md[0], md[1], md[2], md[3], attr);
}
static inline dnnl_status_t laci_pd_create_eltwise(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                   dnnl_alg_kind_t alg, const float ab[2],
                                                   laci_md_view md,
                                                   const_dnnl_primitive_attr_t attr) {
  return dnnl_eltwise_forward_primitive_desc_create(pd, engine, dnnl_forward_inference, alg, md, md,
                                                    ab[0], ab[1], attr);
}
static inline dnnl_status_t laci_pd_create_binary(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                  dnnl_alg_kind_t alg, const laci_md_view md[3],
                                                  const_dnnl_primitive_attr_t attr) {
  return dnnl_binary_primitive_desc_create(pd, engine, alg, md[0], md[1], md[2], attr);
}
static inline dnnl_status_t laci_pd_create_batch_norm(dnnl_primitive_desc_t *pd,
                                                      dnnl_engine_t engine, laci_md_view md,
                                                      float epsilon, unsigned flags,
                                                      const_dnnl_primitive_attr_t attr) {
  return dnnl_batch_normalization_forward_primitive_desc_create(pd, engine, dnnl_forward_inference,
                                                                md, md, epsilon, flags, attr);
}
static inline dnnl_status_t laci_pd_create_layer_norm(dnnl_primitive_desc_t *pd,
                                                      dnnl_engine_t engine, laci_md_view md,
                                                      float epsilon, unsigned flags,
                                                      const_dnnl_primitive_attr_t attr) {
  return dnnl_layer_normalization_forward_primitive_desc_create(pd, engine, dnnl_forward_inference,
                                                                md, md, NULL, epsilon, flags, attr);
}
static inline dnnl_status_t laci_pd_create_softmax(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                   dnnl_alg_kind_t alg, laci_md_view md, int axis,
                                                   const_dnnl_primitive_attr_t attr) {
  return dnnl_softmax_forward_primitive_desc_create(pd, engine, dnnl_forward_inference, alg, md, md,
                                                    axis, attr);
}
static inline dnnl_status_t laci_pd_create_reduction(dnnl_primitive_desc_t *pd,
                                                     dnnl_engine_t engine, dnnl_alg_kind_t alg,
                                                     const laci_md_view md[2], float p,
                                                     const_dnnl_primitive_attr_t attr) {
  return dnnl_reduction_primitive_desc_create(pd, engine, alg, md[0], md[1], p, 0, attr);
}
static inline dnnl_status_t laci_pd_create_resample(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                    dnnl_alg_kind_t alg, const laci_md_view md[2],
                                                    const_dnnl_primitive_attr_t attr) {
  return dnnl_resampling_forward_primitive_desc_create(pd, engine, dnnl_forward_inference, alg,
                                                       NULL, md[0], md[1], attr);
}
static inline dnnl_status_t laci_pd_create_concat(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                  int n, int axis, const laci_md_view *sources,
                                                  const_dnnl_primitive_attr_t attr) {
  return dnnl_concat_primitive_desc_create(pd, engine, NULL, n, axis, sources, attr);
}

#else /* ---- version 2 ---- */

typedef dnnl_memory_desc_t *laci_md;
typedef const dnnl_memory_desc_t *laci_md_view;

static inline void laci_md_destroy(laci_md md) { laci_free(md); }

/* Keeps a descriptor that a call of version 2 has filled, or frees it after a failure. */
static inline bool laci_md_keep_or_free(laci_md *md, dnnl_status_t status) {
  if (status == dnnl_success) return true;
  laci_md_destroy(*md);
  *md = NULL;
  return false;
}
static inline bool laci_md_reserve(laci_md *md) {
  *md = (laci_md)laci_alloc(1, sizeof **md);
  return *md != NULL;
}
static inline bool laci_md_create_strided(laci_md *md, int n, const int64_t *dims,
                                          dnnl_data_type_t dt, const int64_t *strides) {
  if (!laci_md_reserve(md)) return false;
  dnnl_dims_t d = {0}, t = {0};
  laci_dims_copy(d, n, dims);
  laci_dims_copy(t, n, strides);
  return laci_md_keep_or_free(md, dnnl_memory_desc_init_by_strides(*md, n, d, dt, t));
}
static inline bool laci_md_create_any(laci_md *md, int n, const int64_t *dims,
                                      dnnl_data_type_t dt) {
  if (!laci_md_reserve(md)) return false;
  dnnl_dims_t d = {0};
  laci_dims_copy(d, n, dims);
  return laci_md_keep_or_free(md, dnnl_memory_desc_init_by_tag(*md, n, d, dt, dnnl_format_tag_any));
}
static inline bool laci_md_create_tagged(laci_md *md, int n, const int64_t *dims,
                                         dnnl_data_type_t dt, dnnl_format_tag_t tag) {
  dnnl_dims_t d = {0};
  laci_dims_copy(d, n, dims);
  return laci_md_reserve(md) &&
         laci_md_keep_or_free(md, dnnl_memory_desc_init_by_tag(*md, n, d, dt, tag));
}
static inline bool laci_md_create_copy(laci_md *md, laci_md_view of) {
  if (!laci_md_reserve(md)) return false;
  **md = *of;
  return true;
}
static inline bool laci_md_create_part(laci_md *md, laci_md_view of, int n, const int64_t *dims,
                                       const int64_t *offsets) {
  if (!laci_md_reserve(md)) return false;
  dnnl_dims_t d = {0}, o = {0};
  laci_dims_copy(d, n, dims);
  laci_dims_copy(o, n, offsets);
  return laci_md_keep_or_free(md, dnnl_memory_desc_init_submemory(*md, of, d, o));
}
static inline bool laci_md_create_permuted(laci_md *md, laci_md_view of, const int *places) {
  if (!laci_md_reserve(md)) return false;
  return laci_md_keep_or_free(md, dnnl_memory_desc_permute_axes(*md, of, places));
}
static inline bool laci_md_create_reshaped(laci_md *md, laci_md_view of, int n,
                                           const int64_t *dims) {
  if (!laci_md_reserve(md)) return false;
  dnnl_dims_t d = {0};
  laci_dims_copy(d, n, dims);
  return laci_md_keep_or_free(md, dnnl_memory_desc_reshape(*md, of, n, d));
}
static inline bool laci_md_get_strides(laci_md_view md, int n, int64_t *strides, int64_t *offset) {
  if (md->format_kind != dnnl_blocked || md->format_desc.blocking.inner_nblks > 0) return false;
  for (int at = 0; at < n; at++) strides[at] = md->format_desc.blocking.strides[at];
  *offset = md->offset0;
  return true;
}

static inline int64_t laci_md_block_channels(laci_md_view md) {
  const int n = md->format_kind == dnnl_blocked ? md->format_desc.blocking.inner_nblks : 0;
  return n > 0 ? md->format_desc.blocking.inner_blks[n - 1] : 1;
}

static inline dnnl_status_t laci_post_append_sum(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_sum(ops, 1.0f);
}
static inline dnnl_status_t laci_post_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg,
                                                     float alpha, float beta) {
  return dnnl_post_ops_append_eltwise(ops, 1.0f, alg, alpha, beta);
}

/* Makes a primitive descriptor from an operation descriptor, if the latter could be initialized
 * (`made`). */
static inline dnnl_status_t laci_pd_create(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                           dnnl_status_t made, const void *operation,
                                           const_dnnl_primitive_attr_t attr) {
  return made == dnnl_success ? dnnl_primitive_desc_create(pd, operation, attr, engine, NULL)
                              : made;
}
/* Finds the first implementation that laci_pd_is_refused does not refuse. */
static inline dnnl_status_t laci_pd_find_accepted(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                  const void *operation, const laci_dnnl_window *w,
                                                  const char *wanted,
                                                  const_dnnl_primitive_attr_t attr) {
  dnnl_primitive_desc_iterator_t all;
  dnnl_status_t st = dnnl_primitive_desc_iterator_create(&all, operation, attr, engine, NULL);
  if (st) return st;
  *pd = dnnl_primitive_desc_iterator_fetch(all);
  while (!st && *pd && laci_pd_is_refused(*pd, w, wanted)) {
    (void)dnnl_primitive_desc_destroy(*pd);
    st = dnnl_primitive_desc_iterator_next(all);
    *pd = st ? NULL : dnnl_primitive_desc_iterator_fetch(all);
  }
  (void)dnnl_primitive_desc_iterator_destroy(all);
  return *pd ? dnnl_success : dnnl_unimplemented;
}
static inline dnnl_status_t laci_pd_create_conv(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                laci_dnnl_conv how, const laci_md_view md[4],
                                                const laci_dnnl_window *w,
                                                const_dnnl_primitive_attr_t attr) {
  dnnl_convolution_desc_t op;
  dnnl_status_t st = dnnl_dilated_convolution_forward_desc_init(
      &op, how.kind, how.alg, md[0], md[1], md[2], md[3], w->strides, w->dilates, w->pads_begin,
      w->pads_end);
  return st ? st : laci_pd_find_accepted(pd, engine, &op, w, how.name, attr);
}
static inline dnnl_status_t laci_pd_create_pool(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                dnnl_alg_kind_t alg, const laci_md_view md[2],
                                                const laci_dnnl_window *w,
                                                const_dnnl_primitive_attr_t attr) {
  dnnl_pooling_v2_desc_t op;
  dnnl_status_t st =
      dnnl_pooling_v2_forward_desc_init(&op, dnnl_forward_inference, alg, md[0], md[1], w->strides,
                                        w->kernel, w->dilates, w->pads_begin, w->pads_end);
  return laci_pd_create(pd, engine, st, &op, attr);
}
static inline dnnl_status_t laci_pd_create_matmul(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                  const laci_md_view md[4],
                                                  const_dnnl_primitive_attr_t attr) {
  dnnl_matmul_desc_t op;
  dnnl_status_t st = dnnl_matmul_desc_init(&op, md[0], md[1], md[2], md[3]);
  return laci_pd_create(pd, engine, st, &op, attr);
}
static inline dnnl_status_t laci_pd_create_eltwise(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                   dnnl_alg_kind_t alg, const float ab[2],
                                                   laci_md_view md,
                                                   const_dnnl_primitive_attr_t attr) {
  dnnl_eltwise_desc_t op;
  dnnl_status_t st =
      dnnl_eltwise_forward_desc_init(&op, dnnl_forward_inference, alg, md, ab[0], ab[1]);
  return laci_pd_create(pd, engine, st, &op, attr);
}
static inline dnnl_status_t laci_pd_create_binary(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                  dnnl_alg_kind_t alg, const laci_md_view md[3],
                                                  const_dnnl_primitive_attr_t attr) {
  dnnl_binary_desc_t op;
  dnnl_status_t st = dnnl_binary_desc_init(&op, alg, md[0], md[1], md[2]);
  return laci_pd_create(pd, engine, st, &op, attr);
}
static inline dnnl_status_t laci_pd_create_batch_norm(dnnl_primitive_desc_t *pd,
                                                      dnnl_engine_t engine, laci_md_view md,
                                                      float epsilon, unsigned flags,
                                                      const_dnnl_primitive_attr_t attr) {
  dnnl_batch_normalization_desc_t op;
  dnnl_status_t st =
      dnnl_batch_normalization_forward_desc_init(&op, dnnl_forward_inference, md, epsilon, flags);
  return laci_pd_create(pd, engine, st, &op, attr);
}
static inline dnnl_status_t laci_pd_create_layer_norm(dnnl_primitive_desc_t *pd,
                                                      dnnl_engine_t engine, laci_md_view md,
                                                      float epsilon, unsigned flags,
                                                      const_dnnl_primitive_attr_t attr) {
  dnnl_layer_normalization_desc_t op;
  dnnl_status_t st = dnnl_layer_normalization_forward_desc_init(&op, dnnl_forward_inference, md,
                                                                NULL, epsilon, flags);
  return laci_pd_create(pd, engine, st, &op, attr);
}
static inline dnnl_status_t laci_pd_create_softmax(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                   dnnl_alg_kind_t alg, laci_md_view md, int axis,
                                                   const_dnnl_primitive_attr_t attr) {
  dnnl_softmax_v2_desc_t op;
  dnnl_status_t st =
      dnnl_softmax_v2_forward_desc_init(&op, dnnl_forward_inference, alg, md, md, axis);
  return laci_pd_create(pd, engine, st, &op, attr);
}
static inline dnnl_status_t laci_pd_create_reduction(dnnl_primitive_desc_t *pd,
                                                     dnnl_engine_t engine, dnnl_alg_kind_t alg,
                                                     const laci_md_view md[2], float p,
                                                     const_dnnl_primitive_attr_t attr) {
  dnnl_reduction_desc_t op;
  dnnl_status_t st = dnnl_reduction_desc_init(&op, alg, md[0], md[1], p, 0);
  return laci_pd_create(pd, engine, st, &op, attr);
}
static inline dnnl_status_t laci_pd_create_resample(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                    dnnl_alg_kind_t alg, const laci_md_view md[2],
                                                    const_dnnl_primitive_attr_t attr) {
  dnnl_resampling_desc_t op;
  dnnl_status_t st =
      dnnl_resampling_forward_desc_init(&op, dnnl_forward_inference, alg, NULL, md[0], md[1]);
  return laci_pd_create(pd, engine, st, &op, attr);
}
static inline dnnl_status_t laci_pd_create_concat(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                  int n, int axis, const laci_md_view *sources,
                                                  const_dnnl_primitive_attr_t attr) {
  dnnl_memory_desc_t *mds = (dnnl_memory_desc_t *)laci_alloc((size_t)n, sizeof *mds);
  if (!mds) return dnnl_out_of_memory;
  for (int at = 0; at < n; at++) mds[at] = *sources[at];
  dnnl_status_t st = dnnl_concat_primitive_desc_create(pd, NULL, n, axis, mds, attr, engine);
  laci_free(mds);
  return st;
}

#endif
#endif
