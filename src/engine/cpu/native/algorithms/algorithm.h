/* SPDX-License-Identifier: Apache-2.0
 * What an algorithm is, the list of algorithms (algorithm.def), and what layers cost by each of
 * them. */
#ifndef LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHM_H
#define LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHM_H

#include "engine/cpu/native/layer.h"

typedef struct laci_cost_figures laci_cost_figures;

/* ---- An algorithm ---- */

typedef struct laci_native_layer_step laci_native_layer_step;

/** An algorithm computes layers of one kind. It is one file with one record of this type, and a
 * line of algorithm.def. The code that chooses, tunes and measures uses these records alone. */
typedef struct laci_algorithm {
  const char *name;      /* the algorithm's name in LAC_ALGORITHM */
  const char *timed_as;  /* word for the algorithm in the names under which timings are stored */
  laci_native_kind kind; /* the kind of layers that it computes */
  /* the algorithm (Winograd) transforms all weights and values, zeros included, and splits strided
   * windows by itself */
  bool transforms;
  bool generates;   /* the algorithm generates code at run time, which takes a while */
  bool skips_zeros; /* the algorithm does not multiply weights that are zero */
  bool adds_bytes;  /* the algorithm's kernel can add an int8 value to its results after it has
                       quantized them (laci_sparse_middle) */
  /** Can the algorithm compute the layer? If not, *why is a text that says what prevents it. */
  bool (*can)(const laci_net *net, const laci_native_layer *layer, const char **why);
  /** May the algorithm be faster than dense kernels even if nearly all weights are kept? NULL:
   * no. */
  bool (*gains_without_zeros)(const laci_net *net, const laci_native_layer *layer);
  /** Can the algorithm's kernel for the layer read a layout without zeros between rows of pixels?
   * NULL: no. */
  bool (*is_unpadded)(const laci_net *net, const laci_native_layer *layer);
  /** Estimates the algorithm's time for a layer, in multiply-adds at the peak rate of one core.
   * Infinite: unknown. */
  double (*cost)(const laci_net *net, const laci_native_layer *layer);
  /** Returns the bytes of the layer's weights as the algorithm stores them. NULL: the bytes are
   * few and not counted. */
  double (*bytes)(const laci_net *net, const laci_native_layer *layer);
  /** Prepares the step of a layer: its state, weights, scratch, kernel and flops (algorithms.h). A
   * failure, or that the algorithm declines the layer, is recorded in the plan. NULL: dense kernels
   * compute the layer. */
  void (*make)(laci_net *net, laci_native_layer_step *step);
  /** Computes the layer, with all threads of the net. */
  void (*run)(laci_net *net, const laci_native_layer_step *step);
} laci_algorithm;

#define LAC_ALGORITHM(name) extern const laci_algorithm laci_algorithm_##name;
#include "engine/cpu/native/algorithms/algorithm.def"
#undef LAC_ALGORITHM

/* ---- algorithms.c ---- */

const laci_algorithm *laci_algorithm_by_id(laci_algorithm_id id);
/** Sets *id to the algorithm of that name; false: there is no such algorithm. */
bool laci_algorithm_find(const char *name, laci_algorithm_id *id);
/** Returns the first algorithm of the list for layers of that kind. */
laci_algorithm_id laci_algorithm_default_of_kind(laci_native_kind kind);
/** Can the algorithm compute the layer? */
bool laci_native_algorithm_can_compute(const laci_net *net, const laci_native_layer *layer,
                                       laci_algorithm_id id);
/** May some algorithm be faster than dense kernels for the layer, even if nearly all of its weights
 * are kept? */
bool laci_native_can_gain_without_zeros(const laci_net *net, const laci_native_layer *layer);
/** Is there too little memory for the transformed weights of all layers? */
bool laci_native_is_short_of_memory(const laci_net *net);
/** Returns an upper limit of the address space, in bytes, for the generated code of all chosen
 * layers. */
size_t laci_native_max_code_bytes(const laci_net *net);
/** Returns the algorithm `wanted` if it can compute the layer (`wanted` dense: no preference).
 * Otherwise returns the first algorithm of the list that can. If `wanted` generates no code, an
 * algorithm that generates none is preferred. */
laci_algorithm_id laci_algorithm_or_fallback(const laci_net *net, const laci_native_layer *layer,
                                             laci_algorithm_id wanted);

/* ---- layer.c ---- */

/** Returns the instruction set for which the layer's code is generated; NONE: no code is
 * generated. */
laci_jit_isa laci_native_code_isa(const laci_net *net, const laci_native_layer *layer);
/** Can the layer's generated code read a layout without zeros between rows of pixels? */
bool laci_native_code_can_read_unpadded(const laci_net *net, const laci_native_layer *layer);
/** Is the layer a product of floats with constant weights? */
bool laci_native_has_constant_floats(const laci_net *net, const laci_native_layer *layer);
/** May rows (output channels) that keep the same columns be computed together? */
bool laci_native_may_group_rows(const laci_native_layer *layer);

/** Returns the number of multiplications and additions of the layer as a dense product. */
int64_t laci_native_flops(const laci_net *net, const laci_native_layer *layer);
/** Returns a name like "depthwise-3x3 avx2", for a kernel compiled for the SIMD level in force. It
 * is in the plan's memory. */
const char *laci_native_compiled_kernel_name(laci_net *net, const char *what,
                                             const laci_sparse_window *g);
/** Returns the name "sparse-3x3 WORD" for the kernel of a product that skips zeros; it is in the
 * plan's memory. */
const char *laci_native_product_name(laci_net *net, const laci_native_layer *layer,
                                     const char *word);

/* ---- costs.c ---- */

/** Returns the cost figures of this processor (costs/costs.h) for the type of the layer's values;
 * layer NULL: the figures for reorders. */
const laci_cost_figures *laci_cost_figures_of(const laci_net *net, const laci_native_layer *layer);
/** Returns the cost figures of this processor for f32, whatever the type of the net's values is. */
const laci_cost_figures *laci_cost_figures_of_floats(const laci_net *net);
/** laci_cost_n_results returns the number of results of a layer. laci_cost_n_terms returns the
 * number of products that are summed for one result. laci_cost_n_tiles returns the number of tiles
 * (groups of result pixels in vector registers) that hold all results, if rows of pixels have
 * `between` zeros between them, or as many as the window needs; 0: none. */
double laci_cost_n_results(const laci_native_layer *layer);
double laci_cost_n_terms(const laci_sparse_window *g);
int64_t laci_cost_n_tiles(const laci_native_layer *layer, int64_t between);
/** Returns how many times as long as its multiply-adds a convolution takes by dense kernels because
 * it has few results for each pixel; 1: no longer, or nobody has measured it. */
double laci_cost_few_results_factor(const laci_net *net, const laci_native_layer *layer);
/** Returns the number of all weights of a layer, zeros included. */
double laci_cost_n_weights(const laci_native_layer *layer);
/** laci_cost_is_memory_bound: is the layer a sum, pool or table, whose time is that of reading and
 * writing memory with any kernel? laci_cost_of_memory_bound returns the cost of such a layer by
 * native kernels, laci_cost_of_memory_bound_dense by dense ones. */
bool laci_cost_is_memory_bound(const laci_native_layer *layer);
double laci_cost_of_memory_bound(const laci_net *net, const laci_native_layer *layer);
double laci_cost_of_memory_bound_dense(const laci_net *net, const laci_native_layer *layer);

#endif
