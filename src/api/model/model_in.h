/* SPDX-License-Identifier: Apache-2.0
 * A loaded network: the contents of lac_model, for the functions of include/lacuna. */
#ifndef LACI_API_MODEL_MODEL_IN_H
#define LACI_API_MODEL_MODEL_IN_H

#include <pthread.h>
#include <stdbool.h>

#include "lacuna/status.h"

typedef struct lac_model lac_model;
typedef struct laci_budget laci_budget;
typedef struct laci_engine_weight laci_engine_weight;
typedef struct laci_graph laci_graph;
typedef struct laci_onnx laci_onnx;
typedef struct laci_packing laci_packing;

/** What was inferred about a network. Inference does not change the network itself, so that it is
 * allowed for a const model. The lock guards these fields; once set, they do not change while the
 * model exists. */
typedef struct laci_inferred {
  pthread_mutex_t lock;
  char *assumed; /* the shapes and declarations that inference used; NULL: nothing was inferred yet
                    */
} laci_inferred;

typedef struct laci_pack_rows laci_pack_rows; /* api/pack/load.c */

struct lac_model {
  laci_onnx *file; /* NULL: the model came from no file */
  laci_graph *graph;
  char *path;  /* "(memory)" if the model came from no file */
  bool packed; /* the model was loaded from a pack */
  laci_inferred *inferred;
  laci_engine_weight *weights; /* [n_weights] the packed weights, for engines (engine/engine.h) */
  laci_packing *packings;      /* [n_weights] the packing of each weight */
  laci_pack_rows *rows;        /* [n_weights] where the rows of each weight are read from */
  int n_weights;
  char **folded; /* [n_folded] stored tensors that lac_model_fold made */
  int n_folded;
};

/** Creates a model that has no network yet. */
LAC_MUST_CHECK lac_status laci_model_create_empty(const char *path, lac_model **model,
                                                  lac_error *err);

/** Replaces the model's graph by `take`, another graph of the same file. Changed bytes of stored
 * tensors that both graphs have are moved to the new graph. is_inferred: the shapes of `take` are
 * inferred, with the assumptions of the model's graph; false: they must be inferred again. */
void laci_model_replace_graph(lac_model *model, laci_graph *take, bool is_inferred);
/** Did lac_model_fold make the stored tensor of this name? */
bool laci_model_is_tensor_folded(const lac_model *model, const char *name);

/** Stored tensors of more bytes are large: they are read only when needed (laci_stored_acquire in
 * graph/graph.h). */
enum { LACI_LARGE_TENSOR = 64 << 10 };

/** Should the model's large tensors stay in its files? True if they take more than 512 MB, or more
 * than a certain part of the memory limit. */
bool laci_model_stays_in_files(const lac_model *model, const laci_budget *budget);

/** Adds to the budget the memory of a model whose large tensors stay in files: its small tensors,
 * and one large one at a time. */
void laci_model_add_streamed_to_budget(const lac_model *model, laci_budget *budget);

/** Loads the model's small tensors into memory. Any thread may call it. */
LAC_MUST_CHECK lac_status laci_model_materialise_small(const lac_model *model, lac_error *err);

/** Adds to the budget the memory of all stored tensors, which are in memory after
 * laci_model_materialise. */
void laci_model_add_stored_to_budget(const lac_model *model, laci_budget *budget);

/** Were the shapes inferred? Any thread may call it. */
bool laci_model_has_inferred_shapes(const lac_model *model);

/** Makes a view of a model for functions that run its network: all that the first inference of
 * shapes writes is copied under the lock, so that another thread may infer at any time. The view
 * borrows the model. Any thread. */
LAC_MUST_CHECK lac_status laci_model_view_create(const lac_model *model, lac_model **view,
                                                 lac_error *err);
void laci_model_view_destroy(lac_model *view); /* NULL is fine */

/** Loads all stored tensors into memory; call it before stored bytes are read in place (engines
 * fetch them instead). Any thread may call it. */
LAC_MUST_CHECK lac_status laci_model_materialise(const lac_model *model, lac_error *err);

/** Returns what an engine may know about the weights that were not changed since loading. The
 * caller frees *weights. */
LAC_MUST_CHECK lac_status laci_model_list_unchanged_weights(const lac_model *model,
                                                            laci_engine_weight **weights,
                                                            int *n_weights, lac_error *err);

#endif
