/* SPDX-License-Identifier: Apache-2.0
 * Layers of the native back end, which are computed by kernels of this library instead of oneDNN's:
 * convolutions and products with a constant matrix, most of whose weights are zeros, and the pools,
 * sums and depthwise convolutions between them.
 *
 *   layer          a fused node that native kernels can compute; they do compute a chosen layer
 *   native layout  a memory format of kernel/sparse/window.h, which oneDNN does not know
 *                  (layout/tensors.h)
 *
 * Layers are found (choose/find.c) before anything is lowered. Which are chosen depends on the cost
 * of each layer, and of the reorders between native and dense layers (choose/cost.c,
 * choose/choose.c). A value that chosen layers write, or read as it is stored, has one native
 * layout for all of them (layout/assign.c). Other chosen layers read a reordered copy of it
 * (layout/read.c). A batch normalization between them can be part of the reorder (layout/norm.c).
 * Read next: choose/choose.h, layout/layout.h, algorithms/algorithms.h. */
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
  LACI_NATIVE_SUBSAMPLED, /* a copy of the pixels that a 1x1 window with stride reads */
  LACI_NATIVE_PHASES,     /* a copy split into phases (window.h), for larger windows with stride */
  LACI_NATIVE_ROW_MAJOR,  /* the value in CHW without padding, for Winograd's algorithm */
} laci_native_reading;

/** Data that only an int8 layer has. Its values are int8x4: four bytes hold four channels
 * (kernel/sparse/int8x4.h). */
typedef struct laci_native_bytes {
  const laci_fake_quantized *x, *residual, *y; /* quantization of the input, the residual and the
                                                  result: scale and bounds; y NULL: result and
                                                  residual are floats */
  const float *weight_scale;                   /* [n_scales] scales of the weight */
  int64_t n_scales;                /* number of scales: 1, or the number of output channels */
  laci_sparse_quantized quantized; /* parameters of the kernel; set when the layer is lowered */
} laci_native_bytes;

/** The algorithms by which a layer can be computed. Each has a record (algorithms/algorithms.h). */
typedef enum laci_algorithm_id {
#define LAC_ALGORITHM(name) LACI_ALGORITHM_##name,
#include "engine/cpu/native/algorithms/algorithm.def"
#undef LAC_ALGORITHM
  LACI_N_ALGORITHMS,
} laci_algorithm_id;

/** What a layer computes. Only products are faster than oneDNN's; the other kinds are native so
 * that no reorders are needed between products. */
typedef enum laci_native_kind {
  LACI_NATIVE_PRODUCT,
  LACI_NATIVE_DEPTHWISE, /* one input channel for each output channel, all weights kept
                            (algorithms/depthwise.c) */
  LACI_NATIVE_SUM,       /* input + residual, of int8 (int8/sum.c) */
  LACI_NATIVE_POOL,      /* max pooling (algorithms/pool.c) */
  LACI_NATIVE_N_KINDS,
} laci_native_kind;

typedef struct laci_native_layer {
  const laci_fused *fused;
  bool rows; /* the layer is a product with a constant matrix, computed as a 1x1 convolution over
                one image of one line, whose pixels are the rows of the left matrix */
  laci_native_kind kind;
  laci_native_bytes *bytes; /* the data of an int8 layer; NULL: the layer is f32 or bf16 */
  laci_sparse_window window;
  int64_t n_images;
  int input, output, residual; /* the values that the layer reads, writes and adds; residual -1:
                                  none */
  bool has_low, has_high;      /* whether results are clipped from below, and from above; the
                                  residual was added before */
  float low, high;             /* lower and upper bound of the results */
  struct laci_pointwise *functions; /* [n_functions] element-wise functions of the results, one
                                       after the other */
  int n_functions;
  bool residual_last; /* the residual is added after the functions */
  double kept;        /* share of the weights that are not zero, estimated from the packing or a
                         sample */
  bool is_dense;      /* true: so many weights are kept that generated code and CSR are not faster
                         than dense kernels */
  laci_native_reading reading;
  /* the mask of a weight that training changes; only valid while planning; NULL: the weight is a
   * constant */
  const uint8_t *mask;
  bool transposed; /* the layer is the gradient of a convolution's input: its output channels are
                      the convolution's input channels */
  int64_t scatter; /* each kernel writes only every scatter-th row and pixel of the result; 0, 1:
                      every one */
  /* in a layer with a mask: how many kernels, one for each phase, write its results together. If
   * n_phases is 1 and scatter > 1, the results that no kernel writes are zero */
  int n_phases;
  int64_t whole_h, whole_w; /* height and width of the result of a transposed layer */
  /* the kernel of a layer with a mask, set when the layer is lowered */
  struct laci_native_kernel *kernel;
  bool chosen; /* native kernels compute the layer */
  double cost; /* cost of a chosen layer by its algorithm, in the unit of costs/figures.def; 0: not
                  estimated */
  /* the algorithm of a chosen layer; before the choice, the default of the layer's kind */
  laci_algorithm_id algorithm;
} laci_native_layer;

/** The indices of the tensors that a layer's step reads (x, bias, residual) and writes (y);
 * residual -1: none. */
typedef struct laci_native_tensors {
  int x, bias, residual, y;
} laci_native_tensors;

/** The layout of a value. A residual has the layout of the result to which it is added: such values
 * are joined, and one of them stores the layout of all. */
typedef struct laci_native_place {
  int same_as; /* index of the value with which this one is joined, and which leads to the one that
                  stores the layout; that one points to itself */
  bool used, is_chw, rows;   /* whether a chosen layer uses the value; whether its format must be
                                CHW; whether it is a matrix, stored as one image of one line */
  bool bytes;                /* an int8 layer reads this value; joined values may differ in it */
  laci_sparse_border border; /* zeros that windows need around the image */
  laci_sparse_layout layout, of_int8x4; /* layout of the value as floats or bf16; as int8x4 */
} laci_native_place;

/** Memory for the weights of a layer while its kernel is made. All layers use it, one after the
 * other: clearing fresh pages takes the system as long as the rest of the work. */
typedef struct laci_native_scratch {
  float *floats;
  int64_t n;
} laci_native_scratch;

struct laci_native_net {
  /* instruction set of generated code: for f32 or bf16 layers, and for int8 layers */
  laci_jit_isa isa, isa_of_bytes;
  laci_native_layer *layers; /* [n_layers] in the order of execution */
  int n_layers;
  bool trained; /* training under masks: every layer has a mask */
  bool tight;   /* there is too little memory for the transformed weights of Winograd's algorithm */
  laci_native_place *places;             /* [n_values] */
  size_t code_limit;                     /* most bytes of address space that generated code takes */
  laci_code_cache *cache;                /* holds all generated code; NULL: there is none */
  laci_native_scratch dense, transposed; /* memory for the dense weights of a layer, and for their
                                            transposed copy; only while layers are lowered */
  struct laci_native_kernel **kernels;   /* [n_kernels] kernels of all layers, owned */
  size_t n_kernels, kernels_capacity;
};

/** The layer of a fused node if it is chosen, or NULL. choose/find.c */
const laci_native_layer *laci_native_chosen_layer(const laci_net *net, const laci_fused *fused);

#endif
