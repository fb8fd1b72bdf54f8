/* SPDX-License-Identifier: Apache-2.0
 * Layers of the native back end, which have kernels of ours: convolutions and products whose
 * weights are mostly zeros, and what stands between these.
 *
 *   layer     a fused node that native kernels can do; one that is done so is chosen
 *   pictures  a value in a layout of kernel/sparse/window.h (layout/tensors.h)
 *
 * Before anything is lowered, layers are found (choose/find.c) and chosen by what they and the
 * reorders between them and dense ones cost (choose/cost.c, choose/choose.c). Every value that a
 * chosen layer writes, or reads as it is stored, has one layout for all chosen layers
 * (layout/assign.c); others read a reordered copy of it (layout/read.c), or a normalized one
 * (layout/norm.c). Next: choose/choose.h, layout/layout.h, algorithms/algorithms.h. */
#ifndef LACI_ENGINE_CPU_NATIVE_LAYER_H
#define LACI_ENGINE_CPU_NATIVE_LAYER_H

#include "engine/cpu/net_in.h"
#include "jit/isa.h"
#include "kernel/sparse/window.h"

typedef struct laci_code_cache laci_code_cache;
typedef struct laci_fake_quantized laci_fake_quantized;

/** How a layer reads its input. */
typedef enum laci_native_reading {
  LACI_NATIVE_AS_STORED,
  LACI_NATIVE_SUBSAMPLED, /* a copy of the pixels that a window of one pixel stops at */
  LACI_NATIVE_PHASES,     /* a copy split by stride, for larger windows that stride */
  LACI_NATIVE_ROW_MAJOR,  /* such windows by Winograd's algorithm, of the network's input */
} laci_native_reading;

/** What a layer of int8 has: its values are quads of bytes (kernel/sparse/int8x4.h). */
typedef struct laci_native_bytes {
  const laci_fake_quantized *x, *residual, *y; /* what bytes stand for; y NULL: results are floats,
                                                  and so is what is added */
  const float *weight_scale;                   /* [n_scales]: of each row, or of all */
  int64_t n_scales;
  laci_sparse_quantized quantized; /* once it is lowered */
} laci_native_bytes;

/** The algorithms that a layer can be computed by: a record each (algorithms/algorithms.h). */
typedef enum laci_algorithm_id {
#define LAC_ALGORITHM(name) LACI_ALGORITHM_##name,
#include "engine/cpu/native/algorithms/algorithm.def"
#undef LAC_ALGORITHM
  LACI_N_ALGORITHMS,
} laci_algorithm_id;

/** What a layer does. Others than products gain nothing by themselves, and stand between these. */
typedef enum laci_native_kind {
  LACI_NATIVE_PRODUCT,
  LACI_NATIVE_DEPTHWISE, /* channel by channel, with all weights (native/algorithms/depthwise.c) */
  LACI_NATIVE_SUM,       /* of `input` and `residual`, of bytes (native/int8/sum.c) */
  LACI_NATIVE_POOL,      /* the most of a window (native/algorithms/pool.c) */
  LACI_NATIVE_N_KINDS,
} laci_native_kind;

typedef struct laci_native_layer {
  const laci_fused *fused;
  bool rows; /* a product with a constant matrix: a window of one pixel over pictures of one line,
                whose pixels are the rows on the left */
  laci_native_kind kind;
  laci_native_bytes *bytes; /* of int8; NULL: of floats, or pairs */
  laci_sparse_window window;
  int64_t n_images;
  int input, output, residual; /* values; residual -1: none */
  bool has_low, has_high;      /* results are clipped, after the residual was added */
  float low, high;
  struct laci_pointwise *functions; /* [n_functions]: what follows */
  int n_functions;
  bool residual_last; /* it is added behind the functions */
  double kept;        /* share of the weights that are no zeros, as a sample says */
  bool full;          /* too many are for code and lists to gain */
  laci_native_reading reading;
  const uint8_t *mask; /* of a weight that changes, while planning; NULL: a constant */
  bool transposed;     /* the gradient of a convolution's input: rows are that one's channels */
  int64_t scatter;     /* a kernel's results lie so many rows and pixels apart; 0, 1: they do not */
  int n_phases;        /* of one with a mask: kernels that write its results together; one that
                          scatters writes zeros between */
  int64_t whole_h, whole_w;          /* of one that is turned: the result */
  struct laci_native_kernel *kernel; /* of one with a mask, once it is lowered */
  bool chosen;
  laci_algorithm_id algorithm; /* of one that is chosen; before, of its kind */
} laci_native_layer;

/** Values that have one layout: a layer's result has that of what is added to it. */
typedef struct laci_native_place {
  int same_as; /* another value, towards the one that speaks for all; itself */
  bool used, planes, rows;
  bool bytes; /* a layer of int8 reads this value, whatever others do */
  laci_sparse_border border;
  laci_sparse_layout layout, of_int8x4;
} laci_native_place;

/** Floats of a layer's weights while its kernel is made: one layer's after the other, since the
 * system takes as long to clear fresh pages as all the rest takes. */
typedef struct laci_native_scratch {
  float *floats;
  int64_t n;
} laci_native_scratch;

struct laci_native_net {
  laci_jit_isa isa, isa_of_bytes; /* of layers of floats, or pairs, and of int8 */
  laci_native_layer *layers;      /* in the order of their turns */
  int n_layers;
  bool trained;                          /* weights change, under masks: all layers have one */
  bool tight;                            /* there is no room for transformed weights */
  laci_native_place *places;             /* [n_values] */
  laci_code_cache *cache;                /* of all generated code; NULL: there is none */
  laci_native_scratch dense, transposed; /* while layers are lowered */
  struct laci_native_kernel **kernels;
  size_t n_kernels, kernels_capacity;
};

/** The layer of a fused node if it is chosen, or NULL. choose/find.c */
const laci_native_layer *laci_native_chosen(const laci_net *net, const laci_fused *fused);

#endif
