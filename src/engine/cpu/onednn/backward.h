/* SPDX-License-Identifier: Apache-2.0
 * oneDNN's primitives of training under one set of names for both versions, as compat.h has them
 * for inference.
 *
 * A backward primitive is described with the forward primitive that it belongs to as its hint: both
 * then agree about layouts and about the workspace that the forward one fills. */
#ifndef LACI_ENGINE_CPU_ONEDNN_BACKWARD_H
#define LACI_ENGINE_CPU_ONEDNN_BACKWARD_H

#include "engine/cpu/onednn/compat.h"

/* Version 2 has the shift among the operands of batch norm's gradient, but does not read it.
 */
enum { LACI_NORM_GRADIENT_READS_SHIFT = DNNL_VERSION_MAJOR < 3 };

/** The algorithm and the three tensors of a convolution's gradient. Each tensor is the value or its
 * gradient, whichever the primitive reads or writes. */
typedef struct laci_dnnl_triple {
  dnnl_alg_kind_t alg;
  laci_md_view src, weights, dst;
} laci_dnnl_triple;

#if DNNL_VERSION_MAJOR >= 3

static inline dnnl_status_t laci_pd_create_conv_input_gradient(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, laci_dnnl_triple md, const laci_dnnl_window *w,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr) {
  return dnnl_convolution_backward_data_primitive_desc_create(
      pd, engine, md.alg, md.src, md.weights, md.dst, w->strides, w->dilates, w->pads_begin,
      w->pads_end, hint, attr);
}
static inline dnnl_status_t laci_pd_create_conv_weight_gradient(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, laci_dnnl_triple md, const laci_dnnl_window *w,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr) {
  return dnnl_convolution_backward_weights_primitive_desc_create(
      pd, engine, md.alg, md.src, md.weights, NULL, md.dst, w->strides, w->dilates, w->pads_begin,
      w->pads_end, hint, attr);
}
static inline dnnl_status_t laci_pd_create_batch_norm_train(dnnl_primitive_desc_t *pd,
                                                            dnnl_engine_t engine, laci_md_view md,
                                                            float epsilon, unsigned flags,
                                                            const_dnnl_primitive_attr_t attr) {
  return dnnl_batch_normalization_forward_primitive_desc_create(pd, engine, dnnl_forward_training,
                                                                md, md, epsilon, flags, attr);
}
static inline dnnl_status_t laci_pd_create_batch_norm_gradient(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, laci_md_view md, float epsilon, unsigned flags,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr) {
  return dnnl_batch_normalization_backward_primitive_desc_create(pd, engine, dnnl_backward, md, md,
                                                                 md, epsilon, flags, hint, attr);
}
static inline dnnl_status_t laci_pd_create_pool_train(dnnl_primitive_desc_t *pd,
                                                      dnnl_engine_t engine, dnnl_alg_kind_t alg,
                                                      const laci_md_view md[2],
                                                      const laci_dnnl_window *w,
                                                      const_dnnl_primitive_attr_t attr) {
  return dnnl_pooling_forward_primitive_desc_create(pd, engine, dnnl_forward_training, alg, md[0],
                                                    md[1], w->strides, w->kernel, w->dilates,
                                                    w->pads_begin, w->pads_end, attr);
}
static inline dnnl_status_t laci_pd_create_pool_gradient(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg, const laci_md_view md[2],
    const laci_dnnl_window *w, const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr) {
  return dnnl_pooling_backward_primitive_desc_create(pd, engine, alg, md[0], md[1], w->strides,
                                                     w->kernel, w->dilates, w->pads_begin,
                                                     w->pads_end, hint, attr);
}
static inline dnnl_status_t laci_pd_create_eltwise_train(dnnl_primitive_desc_t *pd,
                                                         dnnl_engine_t engine, dnnl_alg_kind_t alg,
                                                         const float ab[2], laci_md_view md,
                                                         const_dnnl_primitive_attr_t attr) {
  return dnnl_eltwise_forward_primitive_desc_create(pd, engine, dnnl_forward_training, alg, md, md,
                                                    ab[0], ab[1], attr);
}
static inline dnnl_status_t laci_pd_create_eltwise_gradient(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg, const float ab[2],
    laci_md_view md, const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr) {
  return dnnl_eltwise_backward_primitive_desc_create(pd, engine, alg, md, md, md, ab[0], ab[1],
                                                     hint, attr);
}

#else /* ---- version 2 ---- */

static inline dnnl_status_t laci_pd_create_hinted(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                                  dnnl_status_t made, const void *operation,
                                                  const_dnnl_primitive_desc_t hint,
                                                  const_dnnl_primitive_attr_t attr) {
  return made == dnnl_success ? dnnl_primitive_desc_create(pd, operation, attr, engine, hint)
                              : made;
}
static inline dnnl_status_t laci_pd_create_conv_input_gradient(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, laci_dnnl_triple md, const laci_dnnl_window *w,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr) {
  dnnl_convolution_desc_t op;
  dnnl_status_t st = dnnl_dilated_convolution_backward_data_desc_init(
      &op, md.alg, md.src, md.weights, md.dst, w->strides, w->dilates, w->pads_begin, w->pads_end);
  return laci_pd_create_hinted(pd, engine, st, &op, hint, attr);
}
static inline dnnl_status_t laci_pd_create_conv_weight_gradient(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, laci_dnnl_triple md, const laci_dnnl_window *w,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr) {
  dnnl_convolution_desc_t op;
  dnnl_status_t st = dnnl_dilated_convolution_backward_weights_desc_init(
      &op, md.alg, md.src, md.weights, NULL, md.dst, w->strides, w->dilates, w->pads_begin,
      w->pads_end);
  return laci_pd_create_hinted(pd, engine, st, &op, hint, attr);
}
static inline dnnl_status_t laci_pd_create_batch_norm_train(dnnl_primitive_desc_t *pd,
                                                            dnnl_engine_t engine, laci_md_view md,
                                                            float epsilon, unsigned flags,
                                                            const_dnnl_primitive_attr_t attr) {
  dnnl_batch_normalization_desc_t op;
  dnnl_status_t st =
      dnnl_batch_normalization_forward_desc_init(&op, dnnl_forward_training, md, epsilon, flags);
  return laci_pd_create(pd, engine, st, &op, attr);
}
static inline dnnl_status_t laci_pd_create_batch_norm_gradient(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, laci_md_view md, float epsilon, unsigned flags,
    const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr) {
  dnnl_batch_normalization_desc_t op;
  dnnl_status_t st =
      dnnl_batch_normalization_backward_desc_init(&op, dnnl_backward, md, md, epsilon, flags);
  return laci_pd_create_hinted(pd, engine, st, &op, hint, attr);
}
static inline dnnl_status_t laci_pd_create_pool_train(dnnl_primitive_desc_t *pd,
                                                      dnnl_engine_t engine, dnnl_alg_kind_t alg,
                                                      const laci_md_view md[2],
                                                      const laci_dnnl_window *w,
                                                      const_dnnl_primitive_attr_t attr) {
  dnnl_pooling_v2_desc_t op;
  dnnl_status_t st =
      dnnl_pooling_v2_forward_desc_init(&op, dnnl_forward_training, alg, md[0], md[1], w->strides,
                                        w->kernel, w->dilates, w->pads_begin, w->pads_end);
  return laci_pd_create(pd, engine, st, &op, attr);
}
static inline dnnl_status_t laci_pd_create_pool_gradient(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg, const laci_md_view md[2],
    const laci_dnnl_window *w, const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr) {
  dnnl_pooling_v2_desc_t op;
  dnnl_status_t st = dnnl_pooling_v2_backward_desc_init(
      &op, alg, md[0], md[1], w->strides, w->kernel, w->dilates, w->pads_begin, w->pads_end);
  return laci_pd_create_hinted(pd, engine, st, &op, hint, attr);
}
static inline dnnl_status_t laci_pd_create_eltwise_train(dnnl_primitive_desc_t *pd,
                                                         dnnl_engine_t engine, dnnl_alg_kind_t alg,
                                                         const float ab[2], laci_md_view md,
                                                         const_dnnl_primitive_attr_t attr) {
  dnnl_eltwise_desc_t op;
  dnnl_status_t st =
      dnnl_eltwise_forward_desc_init(&op, dnnl_forward_training, alg, md, ab[0], ab[1]);
  return laci_pd_create(pd, engine, st, &op, attr);
}
static inline dnnl_status_t laci_pd_create_eltwise_gradient(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg, const float ab[2],
    laci_md_view md, const_dnnl_primitive_desc_t hint, const_dnnl_primitive_attr_t attr) {
  dnnl_eltwise_desc_t op;
  dnnl_status_t st = dnnl_eltwise_backward_desc_init(&op, alg, md, md, ab[0], ab[1]);
  return laci_pd_create_hinted(pd, engine, st, &op, hint, attr);
}

#endif
#endif
