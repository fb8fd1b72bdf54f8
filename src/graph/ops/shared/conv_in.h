/* SPDX-License-Identifier: Apache-2.0
 * What Conv and ConvTranspose share: images of one to three spatial axes treated as three, the
 * patches of an image as the right operand of a GEMM, and the shape checks of weight and bias. See
 * gemm_f64.h. */
#ifndef LACI_GRAPH_OPS_SHARED_CONV_IN_H
#define LACI_GRAPH_OPS_SHARED_CONV_IN_H

#include "graph/ops/shared/gemm_f64.h"
#include "graph/ops/shared/window_in.h"

enum { LACI_CONV_AXES = 3 };

/** Along one spatial axis, output position o and kernel position t read input position
 *    o * stride - pad + t * dilation                  (convolution)
 *    (o + pad - t * dilation) / stride, where whole   (transposed) */
typedef struct laci_conv_axis {
  int64_t in, out, kernel, stride, dilation, pad;
} laci_conv_axis;

/** x is [n_images, n_groups, channels, in...]; a patch matrix has channels * kernel rows and out
 *  columns, and there is one for each image and group, in that order. Unused leading spatial axes
 *  have size 1. */
typedef struct laci_patches {
  const double *x;
  int64_t channels; /* number of input channels of one convolution group */
  laci_conv_axis axis[LACI_CONV_AXES];
  bool transposed;
} laci_patches;

/** Return the product of the three spatial sizes: of the input, the output, the kernel. */
int64_t laci_patches_input_size(const laci_patches *patches);
int64_t laci_patches_output_size(const laci_patches *patches);
int64_t laci_patches_kernel_size(const laci_patches *patches);

/** Fills the geometry from real shapes; the caller sets `pad` of the axes. Fails LAC_UNSUPPORTED
 *  beyond three axes. */
LAC_MUST_CHECK lac_status laci_patches_init(laci_patches *patches, const laci_eval *eval,
                                            const laci_node_window *window);

/** Packs the patch matrix as operand B of laci_gemm; its context is a laci_patches. */
laci_gemm_pack_b laci_patches_pack_columns;

/** Sets y[image, channel, ...] = bias[channel]; without a bias, y stays 0. */
void laci_conv_fill_bias(const laci_eval *eval);

/** Computes y[image, group, k, out] += sum over r of a[group][k][r] * patches[r][out], for all
 * images and groups. a: [n_groups][rows of y in a group][rows of patches], row-major. */
LAC_MUST_CHECK lac_status laci_conv_add_products(const laci_eval *eval, const laci_patches *patches,
                                                 const double *a, int64_t n_groups);

/** Returns a weight [C, K/g, kernel] transposed to [g][K/g][C/g][kernel], as the GEMM of a
 * transposed convolution reads it; to be freed by laci_free. NULL: no memory. */
double *laci_conv_transposed_weight(const laci_buf *w, int64_t n_groups);

/** Reads the attribute group, checked to be positive. */
LAC_MUST_CHECK lac_status laci_conv_read_groups(const laci_node *node, int64_t *n_groups,
                                                lac_error *err);

/** Checks that the ranks of x (at least 3), weight and bias fit each other, as far as they are
 * known. *n_spatial: the number of spatial axes; 0: no rank is known. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_conv_check_ranks(laci_infer *infer, int *n_spatial);
/** Checks that the bias, if its shape is known, has channels_out elements. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_conv_check_bias(laci_infer *infer, int64_t channels_out);

#endif
