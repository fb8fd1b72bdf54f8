/* SPDX-License-Identifier: Apache-2.0
 * What an algorithm is, the list of them (algorithm.def), and what layers cost by each. */
#ifndef LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHM_H
#define LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHM_H

#include "engine/cpu/native/layer.h"

typedef struct laci_cost_figures laci_cost_figures;

/* ---- An algorithm ---- */

typedef struct laci_native_step laci_native_step;

/** An algorithm is one file with one record, and a line of algorithm.def. The chooser, tuning
 * and the measuring of costs see records alone. */
typedef struct laci_algorithm {
  const char *name;      /* what LAC_ALGORITHM calls it */
  const char *timed_as;  /* the word in the names of its timings, which files keep */
  laci_native_kind kind; /* of the layers that it computes */
  bool transforms; /* all weights and values, zeros too; it splits strided windows by itself */
  bool generates;  /* code at run time, which takes a while */
  bool skips_zeros;
  /** Can it compute the layer? If not, `why` says what prevents it. */
  bool (*can)(const laci_net *net, const laci_native_layer *layer, const char **why);
  /** May it gain where nearly no weight is zero? NULL: no. */
  bool (*gains_without_zeros)(const laci_net *net, const laci_native_layer *layer);
  /** Can it read a layout without zeros between rows of pixels? NULL: no. */
  bool (*is_unpadded)(const laci_net *net, const laci_native_layer *layer);
  /** Multiply-adds at the peak of one core that a layer which it can compute takes as long as.
   * Infinite: unknown. */
  double (*cost)(const laci_net *net, const laci_native_layer *layer);
  /** Bytes of its weights. NULL: they are few. */
  double (*bytes)(const laci_net *net, const laci_native_layer *layer);
  /** Prepares the step: state, weights, scratch, kernel and flops (algorithms.h). A failure, or
   * that it declines, is noted in the plan. NULL: dense kernels compute the layer. */
  void (*make)(laci_net *net, laci_native_step *step);
  /** Computes the layer, by all threads of the net. */
  void (*run)(laci_net *net, const laci_native_step *step);
} laci_algorithm;

#define LAC_ALGORITHM(name) extern const laci_algorithm laci_algorithm_##name;
#include "engine/cpu/native/algorithms/algorithm.def"
#undef LAC_ALGORITHM

/* ---- algorithms.c ---- */

const laci_algorithm *laci_algorithm_of(laci_algorithm_id id);
/** The one of that name; false: there is none. */
bool laci_algorithm_find(const char *name, laci_algorithm_id *id);
/** The first of the list for layers of the kind. */
laci_algorithm_id laci_algorithm_of_kind(laci_native_kind kind);
/** Can the layer be computed by it? */
bool laci_native_can(const laci_net *net, const laci_native_layer *layer, laci_algorithm_id id);
/** May an algorithm gain for the layer whatever its weights are? */
bool laci_native_gains_without_zeros(const laci_net *net, const laci_native_layer *layer);
/** Is there too little memory for all layers' transformed weights? */
bool laci_native_is_tight(const laci_net *net);
/** Addresses that the code of all chosen layers needs at most, in bytes. */
size_t laci_native_code_limit(const laci_net *net);
/** The wanted one, if it can (dense: none is wanted), or else the first of the list that can: one
 * that generates no code, if there is one, where the wanted one does not. */
laci_algorithm_id laci_algorithm_or(const laci_net *net, const laci_native_layer *layer,
                                    laci_algorithm_id wanted);

/* ---- layer.c ---- */

/** The instruction set that the layer's code is generated for; NONE: there is no code. */
laci_jit_isa laci_native_isa_of(const laci_net *net, const laci_native_layer *layer);
/** Can its code read a layout without zeros between rows of pixels? */
bool laci_native_code_is_unpadded(const laci_net *net, const laci_native_layer *layer);
/** Is it a product of floats whose weights are constants? */
bool laci_native_is_of_constant_floats(const laci_net *net, const laci_native_layer *layer);
/** May rows that keep the same columns be computed together? */
bool laci_native_may_group(const laci_native_layer *layer);

/** Multiplications and additions of the dense product. */
int64_t laci_native_flops(const laci_net *net, const laci_native_layer *layer);
/** "depthwise-3x3 avx2": a kernel that is compiled for the level in force. In the plan's memory. */
const char *laci_native_compiled_name(laci_net *net, const char *what, const laci_sparse_window *g);
/** "sparse-3x3 WORD": a product that skips zeros. */
const char *laci_native_product_name(laci_net *net, const laci_native_layer *layer,
                                     const char *word);

/* ---- costs.c ---- */

/** The figures of this processor for the layer's values (costs/costs.h); layer NULL: for reorders.
 */
const laci_cost_figures *laci_costs_of(const laci_net *net, const laci_native_layer *layer);
/** Results of a layer, the products of one, and the tiles that hold all of them. */
double laci_cost_results(const laci_native_layer *layer);
double laci_cost_terms(const laci_sparse_window *g);
int64_t laci_cost_tiles(const laci_native_layer *layer, int64_t between);
/** Sums and pools, which wait for memory whoever does them; and what they cost by dense kernels. */
bool laci_cost_is_light(const laci_native_layer *layer);
double laci_cost_light(const laci_net *net, const laci_native_layer *layer);
double laci_cost_light_dense(const laci_net *net, const laci_native_layer *layer);

#endif
