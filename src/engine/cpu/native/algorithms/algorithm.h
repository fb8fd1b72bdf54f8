/* SPDX-License-Identifier: Apache-2.0
 * What an algorithm is, the list of them (algorithm.def), and what layers cost by each. */
#ifndef LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHM_H
#define LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHM_H

#include "engine/cpu/native/layer.h"

typedef struct laci_cost_figures laci_cost_figures;

/* ---- An algorithm ---- */

/** An algorithm is a file with a record, and a line of algorithm.def. Whoever chooses, or measures,
 * sees records alone. */
typedef struct laci_algorithm {
  const char *name;     /* what LAC_ALGORITHM calls it */
  const char *timed_as; /* what its times are kept by: a name of files that there are */
  bool transforms; /* values and all weights, zeros too; it takes rows of strided windows apart */
  /** If not, `why` says what is in the way. */
  bool (*can)(const laci_net *net, const laci_native_layer *layer, const char **why);
  /** Needs it no zeros between rows of pixels? NULL: it needs them. */
  bool (*is_unpadded)(const laci_net *net, const laci_native_layer *layer);
  /** In multiply-adds of the peak of a core, of a layer that it can do. Infinite: unknown. */
  double (*cost)(const laci_net *net, const laci_native_layer *layer);
  /** That weights take. NULL: the kind has none to speak of. */
  double (*bytes)(const laci_net *net, const laci_native_layer *layer);
  /** Adds the step that runs it (lower/lower.h). NULL: dense kernels do. */
  void (*make)(laci_net *net, const laci_native_layer *layer);
} laci_algorithm;

/* ---- algorithms.c ---- */

const laci_algorithm *laci_algorithm_of(laci_algorithm_id id);
/** The one of that name; false: there is none. */
bool laci_algorithm_find(const char *name, laci_algorithm_id *id);
/** The one that every layer of the kind has, if any can. */
laci_algorithm_id laci_algorithm_of_kind(laci_native_kind kind);
/** Can the layer be computed by it? */
bool laci_native_can(const laci_net *net, const laci_native_layer *layer, laci_algorithm_id id);
/** Is there no room for the weights of all layers that Winograd's algorithm can do? */
bool laci_native_is_tight(const laci_net *net);
/** The wanted one (dense: none is), or else one that can: besides Winograd's algorithm, and where
 * no code can be generated, that is rows, which are made at once. */
laci_algorithm_id laci_algorithm_or(const laci_net *net, const laci_native_layer *layer,
                                    laci_algorithm_id wanted);

/* ---- layer.c ---- */

/** What the layer's code is generated for; NONE: it is compiled. */
laci_jit_isa laci_native_isa_of(const laci_net *net, const laci_native_layer *layer);
/** Does its code need no zeros between rows of pixels? */
bool laci_native_code_is_unpadded(const laci_net *net, const laci_native_layer *layer);
/** Is it a product of floats whose weights are constants? */
bool laci_native_is_of_constant_floats(const laci_net *net, const laci_native_layer *layer);

/** Of the dense product: what is left out counts as done. */
int64_t laci_native_flops(const laci_net *net, const laci_native_layer *layer);
/** "depthwise-3x3 avx2": of a kernel that is compiled for the level in force, in the plan's memory.
 */
const char *laci_native_compiled_name(laci_net *net, const char *what, const laci_sparse_window *g);

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
