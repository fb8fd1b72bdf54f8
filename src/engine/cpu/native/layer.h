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

/** The layout in which a layer reads its input. */
typedef enum laci_native_reading {
  LACI_NATIVE_AS_STORED,
  LACI_NATIVE_SUBSAMPLED, /* a copy of only those pixels that a strided 1x1 window reads */
  LACI_NATIVE_PHASES,     /* a copy split into phases (window.h), for larger windows with stride */
  LACI_NATIVE_ROW_MAJOR,  /* the value in unpadded CHW, for Winograd's algorithm */
} laci_native_reading;

/** Data that only an int8 layer has. Its values are int8x4: four bytes hold four channels
 * (kernel/sparse/int8x4.h). */
typedef struct laci_native_int8_data {
  const laci_fake_quantized *x, *residual, *y; /* quantization (scale and bounds) of the input (x),
                                                  the residual and the result (y); y NULL: result
                                                  and residual are floats */
  const laci_fake_quantized *sum;  /* quantization of the sums before the residual is added; NULL:
                                     they are not quantized before that */
  const float *weight_scale;       /* [n_scales] scales of the weight */
  int64_t n_scales;                /* number of scales: 1, or the number of output channels */
  const laci_fake_quantized *gate; /* quantization of the factors of a gate; NULL: for other
                                      layers */
  int gate_value;                  /* index of the value that has these factors */
  bool averages, counts_padding;   /* averages: a pool computes averages, not maxima.
                                      counts_padding: with padding as pixels that are 0 */
  laci_sparse_quantized quantized; /* parameters of the int8 kernel; set when the layer is
                                      lowered */
} laci_native_int8_data;

/** A part of a move's result: for each channel, row and column of the result, which one of a source
 * is moved there; -1: none (kernel/sparse/byte_moves.h). */
typedef struct laci_native_moved_part {
  int source; /* number of the source */
  const int32_t *channels, *rows, *columns;
} laci_native_moved_part;

/** What a layer of the kind LACI_NATIVE_MOVE moves. Its first source is the layer's input. */
typedef struct laci_native_move {
  int result; /* value of the node that the layer computes: one of its outputs */
  int n_sources, n_parts;
  const int *values;                     /* [n_sources] the values from which bytes are moved */
  const laci_fake_quantized **quantized; /* [n_sources] their scales and bounds */
  const laci_native_moved_part *parts;   /* [n_parts] */
  uint8_t fill;                          /* the byte where there is no part */
  bool is_filled;                        /* all bytes belong to parts */
  bool moves_pixels; /* rows or columns change, which layouts in PC16P do not allow */
  bool is_view;      /* for floats, nothing would be moved */
} laci_native_move;

/** The algorithms by which a layer can be computed. Each has a record (algorithms/algorithms.h). */
typedef enum laci_algorithm_id {
#define LAC_ALGORITHM(name) LACI_ALGORITHM_##name,
#include "engine/cpu/native/algorithms/algorithm.def"
#undef LAC_ALGORITHM
  LACI_N_ALGORITHMS,
} laci_algorithm_id;

/** The kinds of native layers. Only products are faster than oneDNN's; the other kinds are native
 * so that no reorders are needed between products. */
typedef enum laci_native_kind {
  LACI_NATIVE_PRODUCT,
  LACI_NATIVE_DEPTHWISE, /* one input channel for each output channel, all weights kept
                            (algorithms/depthwise.c) */
  LACI_NATIVE_SUM,       /* sum of the input and the residual, both int8 (int8/sum.c) */
  LACI_NATIVE_POOL,      /* max pooling (algorithms/pool.c) */
  LACI_NATIVE_TABLE,     /* a function of an int8 value, whose result is int8 (int8/table.c) */
  LACI_NATIVE_SHIFT,     /* a constant for each column is added to an int8 matrix (int8/shift.c) */
  LACI_NATIVE_GATE,      /* an int8 factor multiplies each channel of an int8 image (int8/gate.c) */
  LACI_NATIVE_MOVE,      /* bytes of int8 values are moved to another one (int8/move.c) */
  LACI_NATIVE_N_KINDS,
} laci_native_kind;

typedef struct laci_native_layer {
  const laci_fused *fused;
  /* the last node that the layer computes: `fused`, or a sum of int8 values after it
   * (choose/join_sums.c) */
  const laci_fused *last;
  bool rows; /* true: the layer is a product of a matrix with a constant one. It is computed as a
                1x1 convolution over one image of one line, whose pixels are the rows of the left
                matrix */
  laci_native_kind kind;
  laci_native_int8_data *int8;  /* the data of an int8 layer; NULL: the layer is f32 or bf16 */
  const laci_native_move *move; /* what a move moves; NULL: the layer is none */
  laci_sparse_window window;
  int64_t n_images;
  int input, output, residual; /* indices of the values that the layer reads (input), writes
                                  (output) and adds (residual); residual -1: none */
  bool has_low, has_high;      /* results are clipped from below (has_low), from above (has_high),
                                  after the residual was added */
  float low, high;             /* lower and upper bound of the results */
  struct laci_pointwise *functions; /* [n_functions] element-wise functions of the results, one
                                       after the other */
  int n_functions;
  bool residual_last; /* the residual is added after the functions */
  double kept;        /* fraction of the weights that are not zero, estimated from the packing or a
                         sample */
  bool is_dense;      /* true: so many weights are kept that generated code and CSR are not faster
                         than dense kernels */
  laci_native_reading reading;
  /* the mask of a weight that training changes; only valid while planning; NULL: the weight is a
   * constant */
  const uint8_t *mask;
  bool transposed; /* the layer is the gradient of a convolution's input: its output channels are
                      the convolution's input channels */
  int64_t scatter; /* a kernel writes only every scatter-th row and pixel of the result; 0 or 1:
                      every one */
  /* number of kernels (one for each phase) that together write the results of a layer with a mask.
   * If n_phases is 1 and scatter > 1, the results that no kernel writes are zero */
  int n_phases;
  int64_t whole_h, whole_w; /* height and width of the result of a transposed layer */
  /* the kernel of a layer with a mask, set when the layer is lowered */
  struct laci_native_kernel *kernel;
  bool chosen; /* native kernels compute the layer */
  bool joined; /* the layer became a part of a later entry of the list, and is not chosen */
  double cost; /* estimated cost of a chosen layer by its algorithm, in the unit of
                  costs/figures.def; 0: not estimated */
  /* the algorithm of a chosen layer; before the choice, the default of the layer's kind */
  laci_algorithm_id algorithm;
} laci_native_layer;

/** The indices of the tensors that a layer's step reads (x, bias, residual) and writes (y);
 * residual -1: none. */
typedef struct laci_native_tensors {
  int x, bias, residual, y;
  const int *sources; /* [n_sources] tensors of a move, of which x is the first; NULL: no move */
} laci_native_tensors;

/** The native layout of a value. A residual has the layout of the result to which it is added: the
 * two values are joined, and one of all joined values stores the layout. */
typedef struct laci_native_value_layout {
  int same_as; /* index of a value with which this one is joined. Following same_as leads to the
                  value that stores the layout, which has its own index here */
  bool used, is_chw, rows;   /* used: a chosen layer uses the value; is_chw: its format must be CHW;
                                rows: it is a matrix, stored as one image of one line */
  bool read_as_int8;         /* an int8 layer reads the value; this may differ between joined
                                values */
  laci_sparse_border border; /* widths of the border of zeros around the image that windows need */
  laci_sparse_layout layout, of_int8x4; /* layout of the value as floats or bf16 (layout), and as
                                           int8x4 (of_int8x4) */
} laci_native_value_layout;

/** Scratch memory for the weights of a layer while its kernel is made. All layers use it, one after
 * the other, since getting fresh pages from the system takes as long as the rest of the work. */
typedef struct laci_native_scratch {
  float *floats;
  int64_t n;
} laci_native_scratch;

struct laci_native_net {
  /* instruction set of generated code: isa for f32 or bf16 layers, isa_of_bytes for int8 layers */
  laci_jit_isa isa, isa_of_bytes;
  laci_native_layer *layers; /* [n_layers] in the order of execution */
  int n_layers;
  bool trained; /* the network is trained under masks: every layer has a mask */
  bool tight;   /* there is too little memory for the transformed weights of Winograd's algorithm */
  laci_native_value_layout *layouts;     /* [n_values] layout of each value */
  size_t code_limit;                     /* limit of the bytes of address space for generated
                                            code */
  laci_code_cache *cache;                /* memory of all generated code; NULL: there is none */
  laci_native_scratch dense, transposed; /* scratch for the dense weights of a layer (dense), and
                                            for their transposed copy (transposed); only while
                                            layers are lowered */
  struct laci_native_kernel **kernels;   /* [n_kernels] kernels of all layers, owned */
  size_t n_kernels, kernels_capacity;
};

/** Returns the value whose factors a gate reads; -1: the layer is no gate. */
static inline int laci_native_gate_value(const laci_native_layer *layer) {
  return layer->kind == LACI_NATIVE_GATE ? layer->int8->gate_value : -1;
}

/** Returns how many values laci_native_nth_value lists. */
static inline int laci_native_n_values(const laci_native_layer *layer) {
  enum { WITHOUT_MOVES = 4 };
  return WITHOUT_MOVES + (layer->move ? layer->move->n_sources - 1 : 0);
}

/** Returns one of the values that the layer writes or reads: 0 its output, 1 its input, 2 the
 * residual, 3 the factors of a gate, and then the other sources of a move. -1: it has none. */
static inline int laci_native_nth_value(const laci_native_layer *layer, int at) {
  enum { FIRST_SOURCE = 3 };
  const int values[] = {layer->output, layer->input, layer->residual,
                        laci_native_gate_value(layer)};
  return at <= FIRST_SOURCE ? values[at] : layer->move->values[at - FIRST_SOURCE];
}

/** Is each result of the layer computed from the value at the same place of its input, in the same
 * layout? */
static inline bool laci_native_is_elementwise(const laci_native_layer *layer) {
  return layer->kind == LACI_NATIVE_SUM || layer->kind == LACI_NATIVE_TABLE ||
         layer->kind == LACI_NATIVE_SHIFT || layer->kind == LACI_NATIVE_GATE;
}

/** Returns the chosen native layer that computes a fused node; NULL: none does.
 * choose/find.c */
const laci_native_layer *laci_native_chosen_layer(const laci_net *net, const laci_fused *fused);

#endif
