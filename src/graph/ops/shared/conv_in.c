/* SPDX-License-Identifier: Apache-2.0
 * Packs patches of an image directly into the GEMM's panels, without a patch matrix in memory.
 *
 * A row of the patch matrix is one (channel, kernel position); its columns are output positions.
 * Columns are filled in runs within one row of the output, where input positions are an arithmetic
 * progression. */
#include "graph/ops/shared/conv_in.h"
#include "tensor/buf.h"

#include <string.h>

#include "base/error.h"
#include "base/min.h"
#include "base/memory.h"
#include "base/divide.h"
#include "graph/ops/shared/op_in.h"

static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

int64_t laci_patches_input_size(const laci_patches *p) {
  return p->axis[0].in * p->axis[1].in * p->axis[2].in;
}
int64_t laci_patches_output_size(const laci_patches *p) {
  return p->axis[0].out * p->axis[1].out * p->axis[2].out;
}
int64_t laci_patches_kernel_size(const laci_patches *p) {
  return p->axis[0].kernel * p->axis[1].kernel * p->axis[2].kernel;
}

lac_status laci_patches_init(laci_patches *patches, const laci_eval *eval,
                             const laci_node_window *window) {
  if (window->n_spatial > LACI_CONV_AXES) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED,
                          "%d spatial axes, at most %d can be run", window->n_spatial,
                          LACI_CONV_AXES);
  }
  *patches = (laci_patches){.x = eval->in[0]->f};
  int first = LACI_CONV_AXES - window->n_spatial;
  for (int at = 0; at < LACI_CONV_AXES; at++) {
    laci_conv_axis *axis = &patches->axis[at];
    *axis = (laci_conv_axis){.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    if (at < first) continue;
    const laci_window_axis *from = &window->axis[at - first];
    *axis = (laci_conv_axis){.in = eval->in[0]->shape.dims[at - first + 2],
                             .out = eval->out[0]->shape.dims[at - first + 2],
                             .kernel = from->kernel,
                             .stride = from->stride,
                             .dilation = from->dilation,
                             .pad = from->pad_begin};
  }
  return LAC_OK;
}

/** Returns the input position that output position o reads with kernel position t, or -1. */
static int64_t find_input_position(const laci_conv_axis *axis, bool transposed, int64_t o,
                                   int64_t t) {
  int64_t at = transposed ? o + axis->pad - t * axis->dilation
                          : o * axis->stride - axis->pad + t * axis->dilation;
  if (transposed) {
    if (at < 0 || at % axis->stride != 0) return -1;
    at /= axis->stride;
  }
  return at >= 0 && at < axis->in ? at : -1;
}

/** Fills n entries of a patch row. Entry j is the element of `line` that output position o0 + j
 * reads with kernel position t; 0 where there is none. All these output positions are on one line
 * of the output. */
static void fill_patch_row_on_line(const laci_patches *p, const double *line, int64_t t, int64_t o0,
                                   int64_t n, double *row) {
  const laci_conv_axis *axis = &p->axis[2];
  int64_t stride = axis->stride;
  memset(row, 0, (size_t)n * sizeof *row);
  if (p->transposed) {
    /* the input position of j is (start + j) / stride */
    int64_t start = o0 + axis->pad - t * axis->dilation;
    int64_t first = laci_ceil_div(max64(start, 0), stride);
    for (int64_t at = first, j = first * stride - start; j < n && at < axis->in;
         at++, j += stride) {
      row[j] = line[at];
    }
    return;
  }
  int64_t start = o0 * stride - axis->pad + t * axis->dilation;
  int64_t begin = start < 0 ? laci_ceil_div(-start, stride) : 0;
  int64_t end = laci_min(n, laci_ceil_div(axis->in - start, stride));
  if (begin >= end) return;
  if (stride == 1) {
    memcpy(row + begin, line + start + begin, (size_t)(end - begin) * sizeof *row);
    return;
  }
  for (int64_t j = begin; j < end; j++) row[j] = line[start + j * stride];
}

/** Fills columns [col, col_end) of the patch row for (channel, kernel position). */
static void fill_patch_row(const laci_patches *p, const double *image, int64_t kernel_at,
                           int64_t col, int64_t col_end, double *row) {
  int64_t width = p->axis[2].out, height = p->axis[1].out;
  int64_t t2 = kernel_at % p->axis[2].kernel, rest = kernel_at / p->axis[2].kernel;
  int64_t t1 = rest % p->axis[1].kernel, t0 = rest / p->axis[1].kernel;
  while (col < col_end) {
    int64_t o2 = col % width, o1 = col / width % height, o0 = col / width / height;
    int64_t n = laci_min(width - o2, col_end - col);
    int64_t i1 = find_input_position(&p->axis[1], p->transposed, o1, t1);
    int64_t i0 = find_input_position(&p->axis[0], p->transposed, o0, t0);
    if (i0 < 0 || i1 < 0) {
      memset(row, 0, (size_t)n * sizeof *row);
    } else {
      const double *line = image + (i0 * p->axis[1].in + i1) * p->axis[2].in;
      fill_patch_row_on_line(p, line, t2, o2, n, row);
    }
    col += n;
    row += n;
  }
}

void laci_patches_pack_columns(const void *context, const laci_gemm_block *block, double *panels) {
  enum { RUN = 128 };
  const laci_patches *p = context;
  int64_t depth = block->k_end - block->k_begin, kernel = laci_patches_kernel_size(p);
  const double *x = p->x + block->batch * p->channels * laci_patches_input_size(p);
  double row[RUN];
  for (int64_t col = block->col_begin; col < block->col_end; col += RUN) {
    int64_t n = laci_min(RUN, block->col_end - col);
    double *first = panels + (col - block->col_begin) * depth;
    for (int64_t k = block->k_begin; k < block->k_end; k++) {
      fill_patch_row(p, x + k / kernel * laci_patches_input_size(p), k % kernel, col, col + n, row);
      double *to = first + (k - block->k_begin) * LACI_GEMM_PANEL;
      for (int64_t at = 0; at < n; at += LACI_GEMM_PANEL, to += depth * LACI_GEMM_PANEL) {
        int64_t lanes = laci_min(LACI_GEMM_PANEL, n - at);
        for (int64_t lane = 0; lane < lanes; lane++) to[lane] = row[at + lane];
      }
    }
  }
}

static void fill_bias(int64_t begin, int64_t end, void *context) {
  const laci_eval *eval = *(const laci_eval **)context;
  laci_buf *y = eval->out[0];
  int64_t channels = y->shape.dims[1],
          spatial = laci_shape_count_range(&y->shape, 2, y->shape.rank);
  for (int64_t at = begin; at < end; at++) {
    double value = eval->in[2]->f[at % channels];
    for (int64_t i = 0; i < spatial; i++) y->f[at * spatial + i] = value;
  }
}

void laci_conv_fill_bias(const laci_eval *eval) {
  const laci_shape *y = &eval->out[0]->shape;
  if (eval->n_in < 3 || !eval->in[2]) return;
  laci_eval_parallel(eval, y->dims[0] * y->dims[1], fill_bias, &eval);
}

lac_status laci_conv_add_products(const laci_eval *eval, const laci_patches *patches,
                                  const double *a, int64_t n_groups) {
  const laci_shape *y = &eval->out[0]->shape;
  int64_t rows = y->dims[1] / n_groups,
          depth = patches->channels * laci_patches_kernel_size(patches);
  int64_t n_batch = y->dims[0] * n_groups, out = laci_patches_output_size(patches);
  int64_t *offsets = laci_alloc((size_t)n_batch * 2, sizeof *offsets);
  if (!offsets) return laci_fail_memory(eval->err, eval->node->name);
  for (int64_t batch = 0; batch < n_batch; batch++) {
    offsets[batch] = batch % n_groups * rows * depth;
    offsets[n_batch + batch] = batch * rows * out;
  }
  laci_gemm gemm = {.n_batch = n_batch,
                    .m = rows,
                    .n = out,
                    .k = depth,
                    .a = a,
                    .a_row_stride = depth,
                    .a_col_stride = 1,
                    .a_offset = offsets,
                    .a_period = n_groups,
                    .pack_b = laci_patches_pack_columns,
                    .pack_context = patches,
                    .c = eval->out[0]->f,
                    .c_row_stride = out,
                    .c_offset = offsets + n_batch};
  lac_status st = laci_gemm_run(eval, &gemm);
  laci_free(offsets);
  return st;
}

double *laci_conv_transposed_weight(const laci_buf *w, int64_t n_groups) {
  int64_t channels = w->shape.dims[0] / n_groups, rows = w->shape.dims[1];
  int64_t kernel = laci_shape_count_range(&w->shape, 2, w->shape.rank);
  double *transposed = laci_alloc((size_t)w->count, sizeof *transposed), *to = transposed;
  for (int64_t at = 0; transposed && at < n_groups * rows * channels; at++) {
    int64_t channel = at % channels, row = at / channels % rows, group = at / channels / rows;
    const double *from = w->f + ((group * channels + channel) * rows + row) * kernel;
    for (int64_t t = 0; t < kernel; t++) *to++ = from[t];
  }
  return transposed;
}

lac_status laci_conv_read_groups(const laci_node *node, int64_t *n_groups, lac_error *err) {
  *n_groups = laci_node_int(node, "group", 1);
  if (*n_groups >= 1 && *n_groups <= INT32_MAX) return LAC_OK;
  return laci_node_fail(node, err, LAC_BAD_SHAPE, "attribute group is %lld, wanted at least 1",
                        (long long)*n_groups);
}

lac_status laci_conv_check_ranks(laci_infer *infer, int *n_spatial) {
  const laci_shape *x = &infer->in[0]->shape, *w = &infer->in[1]->shape;
  *n_spatial = 0;
  int rank = x->rank >= 0 ? x->rank : w->rank;
  if (rank < 0) return LAC_OK;
  if (rank < 3 || (x->rank >= 0 && w->rank >= 0 && x->rank != w->rank)) {
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE,
                          "input of rank %d and weight of rank %d, wanted equal ranks of 3 or more",
                          x->rank, w->rank);
  }
  *n_spatial = rank - 2;
  return LAC_OK;
}

lac_status laci_conv_check_bias(laci_infer *infer, int64_t channels_out) {
  const laci_type *bias = infer->n_in > 2 ? infer->in[2] : NULL;
  if (!bias || bias->shape.rank < 0) return LAC_OK;
  int64_t size = bias->shape.rank == 1 ? bias->shape.dims[0] : -1;
  bool fits = bias->shape.rank == 1 && (size < 0 || channels_out < 0 || size == channels_out);
  if (fits) return LAC_OK;
  char text[128];
  return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "the bias is %s, wanted [%lld]",
                        laci_shape_text(&bias->shape, text, sizeof text), (long long)channels_out);
}
