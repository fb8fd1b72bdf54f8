/* SPDX-License-Identifier: Apache-2.0
 * A loaded network, as the functions of include/lacuna share it. */
#ifndef LACI_API_MODEL_MODEL_IN_H
#define LACI_API_MODEL_MODEL_IN_H

#include <pthread.h>
#include <stdbool.h>

#include "lacuna/status.h"

typedef struct lac_engine_shape lac_engine_shape;
typedef struct lac_model lac_model;
typedef struct laci_budget laci_budget;
typedef struct laci_engine_weight laci_engine_weight;
typedef struct laci_graph laci_graph;
typedef struct laci_onnx laci_onnx;
typedef struct laci_packing laci_packing;

/** What is inferred of a network; the network itself is the same before and after, so that a const
 * model may get it. Under the lock; once it is there it stays as it is for the model's life. */
typedef struct laci_inferred {
  pthread_mutex_t lock;
  char *assumed; /* the shapes and declarations that inference was given; NULL: it has not been yet
                  */
} laci_inferred;

typedef struct laci_pack_rows laci_pack_rows; /* api/pack/load.c */

struct lac_model {
  laci_onnx *file; /* NULL: it came from no file */
  laci_graph *graph;
  char *path;  /* "(memory)" where there is none */
  bool packed; /* from a pack */
  laci_inferred *inferred;
  laci_engine_weight *weights; /* [n_weights] what the pack says of them (engine/engine.h) */
  laci_packing *packings;      /* [n_weights] theirs */
  laci_pack_rows *rows;        /* [n_weights] where these are read */
  int n_weights;
  char **folded; /* [n_folded] stored tensors that lac_model_fold made */
  int n_folded;
};

/** Without a network yet. */
LAC_MUST_CHECK lac_status laci_model_new(const char *path, lac_model **model, lac_error *err);

/** Another graph of the model's file becomes the model's: bytes that were changed of stored tensors
 * which it has, too, move there. What is inferred has to be found anew. */
void laci_model_take_graph(lac_model *model, laci_graph *take);
/** Did lac_model_fold make the stored tensor of that name? */
bool laci_model_has_folded(const lac_model *model, const char *name);

/** Stored tensors of more bytes are large: read when they are looked at (graph/graph.h,
 * laci_stored_hold). */
enum { LACI_LARGE_TENSOR = 64 << 10 };

/** Is it one whose large tensors are to stay in its files: more of them than a part of what may be
 * taken, or than 512 MB? */
bool laci_model_is_large(const lac_model *model, const laci_budget *budget);

/** Adds what is held of such a model: its small tensors, and one large one at a time. */
void laci_model_add_held(const lac_model *model, laci_budget *budget);

/** Brings its small tensors into memory. Any thread. */
LAC_MUST_CHECK lac_status laci_model_materialise_small(const lac_model *model, lac_error *err);

/** Adds the model's stored tensors, which are in memory as a whole once they are materialised. */
void laci_model_add_to(const lac_model *model, laci_budget *budget);

/** Are shapes known? Any thread. */
bool laci_model_is_inferred(const lac_model *model);

/** To be called before stored bytes are read where they are (an engine fetches them instead). Any
 * thread. */
LAC_MUST_CHECK lac_status laci_model_materialise(const lac_model *model, lac_error *err);

/** What an engine may know of the model's weights: of those that are as they were loaded. *weights
 * is to be freed. */
LAC_MUST_CHECK lac_status laci_model_weights(const lac_model *model, laci_engine_weight **weights,
                                             int *n_weights, lac_error *err);

/** Of the shapes that a caller gives: is every entry there, with a name and a rank that can be?
 * Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_check_shapes(const lac_engine_shape *shapes, int n, lac_error *err);

/** How many threads work. Fails LAC_BAD_ARGUMENT: "threads 65537: wanted 0 (all cores) to 1024". */
LAC_MUST_CHECK lac_status laci_check_threads(int threads, lac_error *err);

#endif
