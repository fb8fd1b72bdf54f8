/* SPDX-License-Identifier: Apache-2.0
 * What an algorithm is, the list of them (algorithm.def), and what layers cost by each. */
#ifndef LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHM_H
#define LACI_ENGINE_CPU_NATIVE_ALGORITHMS_ALGORITHM_H

#include "engine/cpu/native/layer.h"

/* ---- An algorithm ---- */

/** An algorithm is a file with a record, and a line of algorithm.def. Whoever chooses, or measures,
 * sees records alone. */
typedef struct laci_algorithm {
  const char *name;     /* what LAC_ALGORITHM calls it */
  const char *timed_as; /* what its times are kept by: a name of files that there are */
  bool transforms; /* values and all weights, zeros too; it takes rows of strided windows apart */
  /** If not, `why` says what is in the way. */
  bool (*can)(const laci_net *net, const laci_sparse_layer *layer, const char **why);
  /** Needs it no zeros between rows of pixels? NULL: it needs them. */
  bool (*is_bare)(const laci_net *net, const laci_sparse_layer *layer);
  /** In multiply-adds of the peak of a core, of a layer that it can do. Infinite: unknown. */
  double (*cost)(const laci_net *net, const laci_sparse_layer *layer);
  /** That weights take. NULL: the kind has none to speak of. */
  double (*bytes)(const laci_net *net, const laci_sparse_layer *layer);
  /** Adds the step that runs it (lower/lower.h). NULL: dense kernels do. */
  void (*make)(laci_net *net, const laci_sparse_layer *layer);
} laci_algorithm;

/* ---- algorithms.c ---- */

const laci_algorithm *laci_algorithm_of(laci_algorithm_id id);
/** The one of that name; false: there is none. */
bool laci_algorithm_find(const char *name, laci_algorithm_id *id);
/** The one that every layer of the kind has, if any can. */
laci_algorithm_id laci_algorithm_of_kind(laci_sparse_kind kind);
/** Can the layer be computed by it? */
bool laci_sparse_can(const laci_net *net, const laci_sparse_layer *layer, laci_algorithm_id id);
/** Is there no room for the weights of all layers that Winograd's algorithm can do? */
bool laci_sparse_is_tight(const laci_net *net);
/** The wanted one (dense: none is), or else one that can: besides Winograd's algorithm, and where
 * no code can be generated, that is rows, which are made at once. */
laci_algorithm_id laci_algorithm_or(const laci_net *net, const laci_sparse_layer *layer,
                                    laci_algorithm_id wanted);

/* ---- layer.c ---- */

/** What the layer's code is generated for; NONE: it is compiled. */
laci_jit_isa laci_sparse_isa_of(const laci_net *net, const laci_sparse_layer *layer);
/** Does its code need no zeros between rows of pixels? */
bool laci_sparse_code_is_bare(const laci_net *net, const laci_sparse_layer *layer);
/** Is it a product of floats whose weights are constants? */
bool laci_sparse_is_of_constant_floats(const laci_net *net, const laci_sparse_layer *layer);

/* ---- costs.c ---- */

/** What a kind of processor takes, in multiply-adds of the peak of one of its cores. */
typedef struct laci_cost_table {
  double least_gain;      /* with less to be gained, no layer is sparse */
  double step;            /* of a step, whatever it does */
  double generated_share; /* of the peak that generated code reaches; 0 below: as this one */
  double generated_far;   /* the same of many columns of images, which stay in no first cache */
  double compiled_share;  /* where there is none */
  double reorder;         /* of an element */
  double norm_of_images;  /* of one that is normalised into images; into others it is as fast as
                             not */
  double stream; /* of a weight and its code, 12 bytes, of bf16 7, while others are at work */
  double first;  /* of these, while nobody else is: the first tile of a chunk waits for its code */
  double result; /* of a result, beside its terms */
  double csr, csr_window; /* shares of the peak that lists reach: windows of one pixel, or of
                             images, and others, whose vectors lie anywhere */
  double bundles, bundles_window; /* the same of bundles, where these gain */
  double bundles_few;             /* how much of it few rows have */
  double strip;                   /* units of a strip of bundles that are lost */
  double bundles_weight;          /* of a kept weight, which comes from memory */
  double bundles_result;          /* of a result, of images more */
  double bundles_of_images;
  double winograd;    /* share of the peak that sums of transformed tiles reach; 0: unknown */
  double parts;       /* of its three parts, between which threads wait for each other */
  double tile;        /* of a transform of a tile of a channel, in or out */
  double tile_far;    /* the same of pixels that do not stay in caches */
  double transformed; /* of a transformed weight, which comes from memory */
  double small;       /* how much longer dense kernels take for few pixels than for many */
  double depthwise_dense, depthwise; /* shares of the peak that windows of one channel reach: by
                                        oneDNN, and by ours with what writing planes costs */
  double depthwise_images;
  double by_gemm, in_blocks, in_groups; /* dense.c; 0: they take as long as one group */
} laci_cost_table;

/** The table of this processor for the layer's values; layer NULL: for reorders. */
const laci_cost_table *laci_cost_table_of(const laci_net *net, const laci_sparse_layer *layer);
/** Results of a layer, the products of one, and the tiles that hold all of them. */
double laci_cost_results(const laci_sparse_layer *layer);
double laci_cost_terms(const laci_sparse_window *g);
int64_t laci_cost_tiles(const laci_sparse_layer *layer, int64_t between);
/** Sums and pools, which wait for memory whoever does them; and what they cost by dense kernels. */
bool laci_cost_is_light(const laci_sparse_layer *layer);
double laci_cost_light(const laci_net *net, const laci_sparse_layer *layer);
double laci_cost_light_dense(const laci_net *net, const laci_sparse_layer *layer);

#endif
