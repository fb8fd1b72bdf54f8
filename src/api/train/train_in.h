/* SPDX-License-Identifier: Apache-2.0
 * A training in progress, as the files of lac_train share it: check.c looks whether model and
 * images can be trained, trainer.c and masks.c plan the step, folder.c makes the
 * run's folder, run.c runs the loop with the hooks of hooks.c, and train.c calls them
 * in this order. */
#ifndef LACI_API_TRAIN_TRAIN_IN_H
#define LACI_API_TRAIN_TRAIN_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct lac_mask lac_mask;
typedef struct lac_model lac_model;
typedef struct lac_train_options lac_train_options;
typedef struct lac_train_result lac_train_result;
typedef struct laci_engine_weight laci_engine_weight;
typedef struct laci_eval_scores laci_eval_scores;
typedef struct laci_loop_event laci_loop_event;
typedef struct laci_loop_score laci_loop_score;
typedef struct laci_share_options laci_share_options;
typedef struct laci_train_plan laci_train_plan;
typedef struct laci_train_record laci_train_record;
typedef struct laci_trainer laci_trainer;
typedef struct laci_training_graph laci_training_graph;
typedef struct laci_training_options laci_training_options;

/** Everything that one training holds; cleared by who made it. */
typedef struct laci_training {
  lac_model *model;
  const lac_train_options *options;
  laci_train_plan *plan; /* plan_in.h */
  laci_trainer *trainer;
  laci_train_record *record; /* NULL: not wanted */
  uint8_t *masks;            /* [size of the optimizer's buffers], or NULL */
  int lock;                  /* of the folder; -1: none */
  bool evaluated;            /* once: the plan has been logged */
} laci_training;

/* ---- check.c ---- */

/** All that can be known without planning a step; fills the plan. */
LAC_MUST_CHECK lac_status laci_training_prepare(laci_training *t, const char *data, lac_error *err);
/** How the graph of a step is made of the model. */
laci_training_options laci_training_graph_options(const laci_training *t);
/** Do the classes and the types of the weights fit? */
LAC_MUST_CHECK lac_status laci_training_check_fit(const laci_training *t,
                                                  const laci_training_graph *graph, lac_error *err);
/** What only the graph of a step shows: operators without gradients, classes, types of weights. It
 * is made for this and thrown away, which costs little compared with what a caller does next. */
LAC_MUST_CHECK lac_status laci_training_check_graph(const laci_training *t, lac_error *err);

/* ---- masks.c ---- */

/** The masks as the engine may know them; *weights is to be freed. Those of a checkpoint that a run
 * goes on from are the same, or it fails (train/loop_state.c). */
LAC_MUST_CHECK lac_status laci_training_known_masks(const laci_training *t, const lac_mask *mask,
                                                    laci_engine_weight **weights, int *n_weights,
                                                    lac_error *err);
/** The masks by name as one buffer, each at its weight's offset. Fails LAC_NOT_FOUND,
 * LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_training_set_masks(laci_training *t, const lac_mask *mask,
                                                  lac_error *err);

/* ---- agree.c ---- */

/** Fails LAC_BAD_ARGUMENT where a process has other options or images than process 0, LAC_BAD_SHAPE
 * where it has another network or other masks. */
LAC_MUST_CHECK lac_status laci_training_compare(const laci_training *t, const lac_mask *mask,
                                                lac_error *err);

/* ---- share.c ---- */

/** Weights are process 0's from now on; masks are, too, or it fails. */
LAC_MUST_CHECK lac_status laci_training_share(laci_training *t, const lac_mask *mask,
                                              lac_error *err);
/** All processes end as one (laci_comm_agree). */
LAC_MUST_CHECK lac_status laci_training_agree(const laci_training *t, lac_status mine,
                                              lac_error *err);
/** The same after work on files, which takes as long as a disk needs (laci_comm_agree_late). */
LAC_MUST_CHECK lac_status laci_training_agree_late(const laci_training *t, lac_status mine,
                                                   lac_error *err);
/** The scores of all parts, each from the process that has it. */
LAC_MUST_CHECK lac_status laci_training_gather_scores(const laci_training *t,
                                                      const laci_eval_scores *scores,
                                                      lac_error *err);
/** Which processes train, and how gradients travel. */
laci_share_options laci_training_share_options(const laci_training *t);

/* ---- trainer.c ---- */

LAC_MUST_CHECK lac_status laci_training_make_trainer(laci_training *t, const lac_mask *mask,
                                                     lac_error *err);

/* ---- folder.c ---- */

/** Has the run a folder, and is it this process that writes there? */
bool laci_training_writes(const laci_training *t);

/** Makes and locks the folder of the run, where there is one. Two runs in one folder would take
 * each other's checkpoints for their own: LAC_EXISTS. */
LAC_MUST_CHECK lac_status laci_training_open_folder(laci_training *t, lac_error *err);

/* ---- hooks.c: context is the training ---- */

LAC_MUST_CHECK lac_status laci_training_evaluate(void *context, laci_loop_score *score,
                                                 lac_error *err);
LAC_MUST_CHECK lac_status laci_training_on_event(void *context, const laci_loop_event *from,
                                                 lac_error *err);

/* ---- run.c ---- */

LAC_MUST_CHECK lac_status laci_training_run(laci_training *t, lac_train_result *result,
                                            lac_error *err);

/** classes.c: the network's outputs mean the folders that it is trained on. Fails
 * LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_training_name_classes(const laci_training *training, lac_error *err);

#endif
