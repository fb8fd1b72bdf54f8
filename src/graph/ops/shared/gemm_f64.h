/* SPDX-License-Identifier: Apache-2.0
 * C += A * B in double, where a callback packs B: a matrix, or the patches of an image.
 *
 * Every element of C is a sum in a fixed order, divided into blocks that depend on k alone. So
 * neither the number of threads nor the instruction set changes a bit. Users: conv.c,
 * conv_transpose.c, gemm.c, mat_mul.c. */
#ifndef LACI_GRAPH_OPS_SHARED_GEMM_F64_H
#define LACI_GRAPH_OPS_SHARED_GEMM_F64_H

#include "graph/op.h"

/** The number of columns in a panel of B; inside a panel the rows follow each other. */
enum { LACI_GEMM_PANEL = 8 };

/** Writes B[k_begin .. k_end) x [col_begin .. col_end) of matrix `batch` to `panels`. Element (k,
 * col) is at ((col - col_begin) / PANEL * (k_end - k_begin) + k - k_begin) * PANEL + (col -
 * col_begin) % PANEL. col_begin is a multiple of the panel width; elements past col_end need not be
 * written, for they are never read. */
typedef struct laci_gemm_block {
  int64_t batch, k_begin, k_end, col_begin, col_end;
} laci_gemm_block;
typedef void laci_gemm_pack_b(const void *context, const laci_gemm_block *block, double *panels);

/** n_batch products of the same size. A's matrices and C's are found by index tables, so that
 * broadcasting (MatMul) and groups (Conv) need no copies. C is row-major and holds initial values,
 * to which the products are added. */
typedef struct laci_gemm {
  int64_t n_batch, m, n, k;
  const double *a;
  int64_t a_row_stride, a_col_stride;
  /* [n_batch] where each product's matrix begins in `a`, in elements. A matrix that is used again
   * after a_period products is packed once */
  const int64_t *a_offset;
  int64_t a_period; /* a_offset[batch] == a_offset[batch % a_period] */
  laci_gemm_pack_b *pack_b;
  const void *pack_context;
  double *c;
  int64_t c_row_stride;
  const int64_t *c_offset; /* [n_batch] where each product's matrix begins in C */
} laci_gemm;

LAC_MUST_CHECK lac_status laci_gemm_run(const laci_eval *eval, const laci_gemm *gemm);

/** A matrix in memory that is operand B: the context of laci_gemm_pack_matrix. */
typedef struct laci_gemm_matrix {
  const double *data;
  int64_t row_stride, col_stride;
  const int64_t *offset; /* [n_batch] where each product's matrix begins in data */
} laci_gemm_matrix;
laci_gemm_pack_b laci_gemm_pack_matrix;

#endif
