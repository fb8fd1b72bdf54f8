/* SPDX-License-Identifier: Apache-2.0
 * Describes primitives, each by one call, and translates kinds and layouts to those of the
 * library. */
#include "engine/cpu/onednn/onednn_in.h"

#include "base/memory.h"
#include "cpu/openmp.h"
#include "engine/cpu/onednn/onednn.h"

/* ---- Names ---- */

static dnnl_alg_kind_t dnnl_conv_algorithm(laci_conv_algorithm algorithm) {
  return algorithm == LACI_CONV_WINOGRAD ? dnnl_convolution_winograd : dnnl_convolution_direct;
}

static dnnl_alg_kind_t dnnl_pool_algorithm(laci_pool_kind kind) {
  if (kind == LACI_POOL_MAX) return dnnl_pooling_max;
  return kind == LACI_POOL_MEAN ? dnnl_pooling_avg_exclude_padding
                                : dnnl_pooling_avg_include_padding;
}

static dnnl_alg_kind_t dnnl_binary_algorithm(laci_binary_kind kind) {
  static const dnnl_alg_kind_t algs[] = {
      [LACI_BINARY_ADD] = dnnl_binary_add, [LACI_BINARY_SUB] = dnnl_binary_sub,
      [LACI_BINARY_MUL] = dnnl_binary_mul, [LACI_BINARY_DIV] = dnnl_binary_div,
      [LACI_BINARY_MAX] = dnnl_binary_max, [LACI_BINARY_MIN] = dnnl_binary_min,
  };
  return algs[kind];
}

static dnnl_alg_kind_t dnnl_reduction_algorithm(laci_reduction_kind kind) {
  static const dnnl_alg_kind_t algs[] = {
      [LACI_REDUCTION_MEAN] = dnnl_reduction_mean,
      [LACI_REDUCTION_SUM] = dnnl_reduction_sum,
  };
  return algs[kind];
}

static unsigned dnnl_norm_flags(int flags) {
  unsigned all = dnnl_use_scale | dnnl_use_shift;
  if (flags & LACI_NORM_GIVEN) all |= dnnl_use_global_stats;
  if (flags & LACI_NORM_RELU) all |= dnnl_fuse_norm_relu;
  return all;
}

static dnnl_alg_kind_t dnnl_function_algorithm(laci_function_kind kind) {
  static const dnnl_alg_kind_t names[LACI_N_FUNCTIONS] = {
      [LACI_FUNCTION_RELU] = dnnl_eltwise_relu,
      [LACI_FUNCTION_ELU] = dnnl_eltwise_elu,
      [LACI_FUNCTION_LOGISTIC] = dnnl_eltwise_logistic,
      [LACI_FUNCTION_TANH] = dnnl_eltwise_tanh,
      [LACI_FUNCTION_EXP] = dnnl_eltwise_exp,
      [LACI_FUNCTION_LOG] = dnnl_eltwise_log,
      [LACI_FUNCTION_SQRT] = dnnl_eltwise_sqrt,
      [LACI_FUNCTION_ABS] = dnnl_eltwise_abs,
      [LACI_FUNCTION_LINEAR] = dnnl_eltwise_linear,
      [LACI_FUNCTION_POW] = dnnl_eltwise_pow,
      [LACI_FUNCTION_SOFTPLUS] = dnnl_eltwise_soft_relu,
      [LACI_FUNCTION_MISH] = dnnl_eltwise_mish,
      [LACI_FUNCTION_SWISH] = dnnl_eltwise_swish,
      [LACI_FUNCTION_HARDSWISH] = dnnl_eltwise_hardswish,
      [LACI_FUNCTION_GELU_ERF] = dnnl_eltwise_gelu_erf,
      [LACI_FUNCTION_GELU_TANH] = dnnl_eltwise_gelu_tanh,
      [LACI_FUNCTION_CLIP] = dnnl_eltwise_clip,
      [LACI_FUNCTION_CLIP_OPEN] = dnnl_eltwise_clip_v2,
      [LACI_FUNCTION_RELU_BY_RESULT] = dnnl_eltwise_relu_use_dst_for_bwd,
  };
  return names[kind];
}

enum { MOST_LAYOUTS = 4 };

/** Writes the library's descriptors of n layouts. */
static void copy_layout_descriptors(const laci_layout *const *md, int n,
                                    laci_md_view out[MOST_LAYOUTS]) {
  for (int at = 0; at < n; at++) out[at] = laci_layout_descriptor(md[at]);
}

static laci_dnnl_window convert_window(const laci_window *w) {
  laci_dnnl_window out = {.n_spatial = w->n_spatial};
  for (int at = 0; at < w->n_spatial; at++) {
    out.kernel[at] = w->kernel[at];
    out.strides[at] = w->strides[at];
    out.dilates[at] = w->dilates[at];
    out.pads_begin[at] = w->pads_begin[at];
    out.pads_end[at] = w->pads_end[at];
  }
  return out;
}

static const_dnnl_primitive_attr_t attributes_for_posts(const laci_onednn *dnn,
                                                        const laci_posts *posts) {
  return posts ? (const_dnnl_primitive_attr_t)(const void *)posts : dnn->attr;
}

/** Makes a primitive from a description, or returns the status with which the library refused
 * it. */
static lac_status create_from_description(dnnl_status_t st, dnnl_primitive_desc_t pd,
                                          laci_primitive **made) {
  *made = NULL;
  if (st) return laci_onednn_status(st);
  *made = laci_alloc(1, sizeof **made);
  if (*made) (*made)->pd = pd;
  else (void)dnnl_primitive_desc_destroy(pd);
  return *made ? LAC_OK : LAC_NO_MEMORY;
}

/* ---- The same implementation for any number of threads ---- */

/* The library chooses another implementation where many threads would have little to do, and some
 * differ in the last bits of their results, as Winograd's F(2x2) and F(4x4) do. So it is asked for
 * its choice with one thread, and this one is used for any number of threads wherever possible. Two
 * differences remain: its brgconv, for windows with few results, and its products on processors
 * without AVX2 split sums depending on the number of threads. */
enum { ASKED_THREADS = 1 };

static dnnl_status_t describe_conv_by_onednn(dnnl_primitive_desc_t *pd, const laci_onednn *dnn,
                                             laci_dnnl_conv how, const laci_md_view md[4],
                                             const laci_dnnl_window *w,
                                             const_dnnl_primitive_attr_t attr) {
  dnnl_primitive_desc_t usual = NULL;
  const int threads = laci_openmp_set_threads(ASKED_THREADS);
  dnnl_status_t st = laci_pd_create_conv(&usual, dnn->engine, how, md, w, attr);
  (void)laci_openmp_set_threads(threads);
  if (st || threads == ASKED_THREADS) {
    *pd = usual;
    return st;
  }
  how.name = laci_pd_name(usual);
  st = laci_pd_create_conv(pd, dnn->engine, how, md, w, attr);
  how.name = NULL;
  if (st) st = laci_pd_create_conv(pd, dnn->engine, how, md, w, attr);
  (void)dnnl_primitive_desc_destroy(usual);
  return st;
}

/* ---- Posts ---- */

lac_status laci_posts_create(const laci_onednn *dnn, const laci_post *posts, int n,
                             laci_posts **made) {
  dnnl_primitive_attr_t attr = NULL;
  dnnl_post_ops_t ops = NULL;
  dnnl_status_t st = dnnl_primitive_attr_clone(&attr, dnn->attr);
  if (!st) st = dnnl_post_ops_create(&ops);
  for (int at = 0; at < n && !st; at++) {
    const laci_function *f = &posts[at].function;
    if (posts[at].value >= 0) st = laci_post_append_sum(ops);
    else st = laci_post_append_eltwise(ops, dnnl_function_algorithm(f->kind), f->alpha, f->beta);
  }
  if (!st) st = dnnl_primitive_attr_set_post_ops(attr, ops);
  if (ops) (void)dnnl_post_ops_destroy(ops);
  if (st && attr) (void)dnnl_primitive_attr_destroy(attr);
  *made = st ? NULL : (laci_posts *)(void *)attr;
  return laci_onednn_status(st);
}

void laci_posts_destroy(laci_posts *posts) {
  if (posts) (void)dnnl_primitive_attr_destroy((dnnl_primitive_attr_t)(void *)posts);
}

/* ---- Inference ---- */

lac_status laci_primitive_describe_reorder(laci_primitive **made, const laci_onednn *dnn,
                                           const laci_layout *from, const laci_layout *to) {
  dnnl_primitive_desc_t pd = NULL;
  dnnl_status_t st =
      dnnl_reorder_primitive_desc_create(&pd, laci_layout_descriptor(from), dnn->engine,
                                         laci_layout_descriptor(to), dnn->engine, dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_conv(laci_primitive **made, const laci_onednn *dnn,
                                        laci_conv_algorithm algorithm,
                                        const laci_layout *const md[4], const laci_window *w,
                                        const laci_posts *posts) {
  dnnl_primitive_desc_t pd = NULL;
  laci_md_view v[MOST_LAYOUTS];
  copy_layout_descriptors(md, 4, v);
  laci_dnnl_window window = convert_window(w);
  const laci_dnnl_conv how = {.kind = dnnl_forward_inference,
                              .alg = dnnl_conv_algorithm(algorithm)};
  dnnl_status_t st =
      describe_conv_by_onednn(&pd, dnn, how, v, &window, attributes_for_posts(dnn, posts));
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_pool(laci_primitive **made, const laci_onednn *dnn,
                                        laci_pool_kind kind, const laci_layout *const md[2],
                                        const laci_window *w) {
  dnnl_primitive_desc_t pd = NULL;
  laci_md_view v[MOST_LAYOUTS];
  copy_layout_descriptors(md, 2, v);
  laci_dnnl_window window = convert_window(w);
  dnnl_status_t st =
      laci_pd_create_pool(&pd, dnn->engine, dnnl_pool_algorithm(kind), v, &window, dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_matmul(laci_primitive **made, const laci_onednn *dnn,
                                          const laci_layout *const md[4], const laci_posts *posts) {
  dnnl_primitive_desc_t pd = NULL;
  laci_md_view v[MOST_LAYOUTS];
  copy_layout_descriptors(md, 4, v);
  dnnl_status_t st = laci_pd_create_matmul(&pd, dnn->engine, v, attributes_for_posts(dnn, posts));
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_function(laci_primitive **made, const laci_onednn *dnn,
                                            const laci_function *f, const laci_layout *md) {
  dnnl_primitive_desc_t pd = NULL;
  const float ab[2] = {f->alpha, f->beta};
  dnnl_status_t st = laci_pd_create_eltwise(&pd, dnn->engine, dnnl_function_algorithm(f->kind), ab,
                                            laci_layout_descriptor(md), dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_binary(laci_primitive **made, const laci_onednn *dnn,
                                          laci_binary_kind kind, const laci_layout *const md[3],
                                          const laci_posts *posts) {
  dnnl_primitive_desc_t pd = NULL;
  laci_md_view v[MOST_LAYOUTS];
  copy_layout_descriptors(md, 3, v);
  dnnl_status_t st = laci_pd_create_binary(&pd, dnn->engine, dnnl_binary_algorithm(kind), v,
                                           attributes_for_posts(dnn, posts));
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_batch_norm(laci_primitive **made, const laci_onednn *dnn,
                                              const laci_layout *md, float epsilon, int flags) {
  dnnl_primitive_desc_t pd = NULL;
  dnnl_status_t st = laci_pd_create_batch_norm(&pd, dnn->engine, laci_layout_descriptor(md),
                                               epsilon, dnnl_norm_flags(flags), dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_layer_norm(laci_primitive **made, const laci_onednn *dnn,
                                              const laci_layout *md, float epsilon) {
  dnnl_primitive_desc_t pd = NULL;
  dnnl_status_t st = laci_pd_create_layer_norm(&pd, dnn->engine, laci_layout_descriptor(md),
                                               epsilon, dnnl_norm_flags(0), dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_softmax(laci_primitive **made, const laci_onednn *dnn, bool log,
                                           const laci_layout *md, int axis) {
  dnnl_primitive_desc_t pd = NULL;
  dnnl_status_t st =
      laci_pd_create_softmax(&pd, dnn->engine, log ? dnnl_softmax_log : dnnl_softmax_accurate,
                             laci_layout_descriptor(md), axis, dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_reduction(laci_primitive **made, const laci_onednn *dnn,
                                             laci_reduction_kind kind,
                                             const laci_layout *const md[2]) {
  dnnl_primitive_desc_t pd = NULL;
  laci_md_view v[MOST_LAYOUTS];
  copy_layout_descriptors(md, 2, v);
  dnnl_status_t st =
      laci_pd_create_reduction(&pd, dnn->engine, dnnl_reduction_algorithm(kind), v, 0, dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_resample(laci_primitive **made, const laci_onednn *dnn,
                                            bool nearest, const laci_layout *const md[2]) {
  dnnl_primitive_desc_t pd = NULL;
  laci_md_view v[MOST_LAYOUTS];
  copy_layout_descriptors(md, 2, v);
  dnnl_status_t st = laci_pd_create_resample(
      &pd, dnn->engine, nearest ? dnnl_resampling_nearest : dnnl_resampling_linear, v, dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_concat(laci_primitive **made, const laci_onednn *dnn, int n,
                                          int axis, const laci_layout *const *sources) {
  dnnl_primitive_desc_t pd = NULL;
  laci_md_view *views_of = (laci_md_view *)laci_alloc((size_t)n, sizeof *views_of);
  *made = NULL;
  if (!views_of) return LAC_NO_MEMORY;
  for (int at = 0; at < n; at++) views_of[at] = laci_layout_descriptor(sources[at]);
  dnnl_status_t st = laci_pd_create_concat(&pd, dnn->engine, n, axis, views_of, dnn->attr);
  laci_free((void *)views_of);
  return create_from_description(st, pd, made);
}

/* ---- Training ---- */

bool laci_norm_gradient_reads_shift(void) { return LACI_NORM_GRADIENT_READS_SHIFT; }

lac_status laci_primitive_describe_conv_train(laci_primitive **made, const laci_onednn *dnn,
                                              laci_conv_algorithm algorithm,
                                              const laci_layout *const md[4],
                                              const laci_window *w) {
  dnnl_primitive_desc_t pd = NULL;
  laci_md_view v[MOST_LAYOUTS];
  copy_layout_descriptors(md, 4, v);
  laci_dnnl_window window = convert_window(w);
  const laci_dnnl_conv how = {.kind = dnnl_forward_training, .alg = dnnl_conv_algorithm(algorithm)};
  dnnl_status_t st = laci_pd_create_conv(&pd, dnn->engine, how, v, &window, dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_conv_input_gradient(
    laci_primitive **made, const laci_onednn *dnn, laci_conv_algorithm algorithm,
    const laci_layout *const md[3], const laci_window *w, const laci_primitive *hint) {
  dnnl_primitive_desc_t pd = NULL;
  laci_md_view v[MOST_LAYOUTS];
  copy_layout_descriptors(md, 3, v);
  laci_dnnl_window window = convert_window(w);
  const laci_dnnl_triple t = {
      .alg = dnnl_conv_algorithm(algorithm), .src = v[0], .weights = v[1], .dst = v[2]};
  dnnl_status_t st =
      laci_pd_create_conv_input_gradient(&pd, dnn->engine, t, &window, hint->pd, dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_conv_weight_gradient(
    laci_primitive **made, const laci_onednn *dnn, laci_conv_algorithm algorithm,
    const laci_layout *const md[3], const laci_window *w, const laci_primitive *hint) {
  dnnl_primitive_desc_t pd = NULL;
  laci_md_view v[MOST_LAYOUTS];
  copy_layout_descriptors(md, 3, v);
  laci_dnnl_window window = convert_window(w);
  const laci_dnnl_triple t = {
      .alg = dnnl_conv_algorithm(algorithm), .src = v[0], .weights = v[1], .dst = v[2]};
  dnnl_status_t st =
      laci_pd_create_conv_weight_gradient(&pd, dnn->engine, t, &window, hint->pd, dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_batch_norm_train(laci_primitive **made, const laci_onednn *dnn,
                                                    const laci_layout *md, float epsilon,
                                                    int flags) {
  dnnl_primitive_desc_t pd = NULL;
  dnnl_status_t st = laci_pd_create_batch_norm_train(&pd, dnn->engine, laci_layout_descriptor(md),
                                                     epsilon, dnnl_norm_flags(flags), dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_batch_norm_gradient(laci_primitive **made,
                                                       const laci_onednn *dnn,
                                                       const laci_layout *md, float epsilon,
                                                       int flags, const laci_primitive *hint) {
  dnnl_primitive_desc_t pd = NULL;
  dnnl_status_t st =
      laci_pd_create_batch_norm_gradient(&pd, dnn->engine, laci_layout_descriptor(md), epsilon,
                                         dnnl_norm_flags(flags), hint->pd, dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_pool_train(laci_primitive **made, const laci_onednn *dnn,
                                              laci_pool_kind kind, const laci_layout *const md[2],
                                              const laci_window *w) {
  dnnl_primitive_desc_t pd = NULL;
  laci_md_view v[MOST_LAYOUTS];
  copy_layout_descriptors(md, 2, v);
  laci_dnnl_window window = convert_window(w);
  dnnl_status_t st =
      laci_pd_create_pool_train(&pd, dnn->engine, dnnl_pool_algorithm(kind), v, &window, dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_pool_gradient(laci_primitive **made, const laci_onednn *dnn,
                                                 laci_pool_kind kind,
                                                 const laci_layout *const md[2],
                                                 const laci_window *w, const laci_primitive *hint) {
  dnnl_primitive_desc_t pd = NULL;
  laci_md_view v[MOST_LAYOUTS];
  copy_layout_descriptors(md, 2, v);
  laci_dnnl_window window = convert_window(w);
  dnnl_status_t st = laci_pd_create_pool_gradient(&pd, dnn->engine, dnnl_pool_algorithm(kind), v,
                                                  &window, hint->pd, dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_function_train(laci_primitive **made, const laci_onednn *dnn,
                                                  const laci_function *f, const laci_layout *md) {
  dnnl_primitive_desc_t pd = NULL;
  const float ab[2] = {f->alpha, f->beta};
  dnnl_status_t st =
      laci_pd_create_eltwise_train(&pd, dnn->engine, dnnl_function_algorithm(f->kind), ab,
                                   laci_layout_descriptor(md), dnn->attr);
  return create_from_description(st, pd, made);
}

lac_status laci_primitive_describe_function_gradient(laci_primitive **made, const laci_onednn *dnn,
                                                     const laci_function *f, const laci_layout *md,
                                                     const laci_primitive *hint) {
  dnnl_primitive_desc_t pd = NULL;
  const float ab[2] = {f->alpha, f->beta};
  dnnl_status_t st =
      laci_pd_create_eltwise_gradient(&pd, dnn->engine, dnnl_function_algorithm(f->kind), ab,
                                      laci_layout_descriptor(md), hint->pd, dnn->attr);
  return create_from_description(st, pd, made);
}
