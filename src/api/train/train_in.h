/* SPDX-License-Identifier: Apache-2.0
 * The state of a training, shared by the files of lac_train: check.c checks that the model can be
 * trained on the images, trainer.c and masks.c plan the step, folder.c makes the run's folder,
 * run.c runs the loop with the hooks of hooks.c, and train.c calls them in this order. */
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
typedef struct laci_data_parallel_options laci_data_parallel_options;
typedef struct laci_train_plan laci_train_plan;
typedef struct laci_train_record laci_train_record;
typedef struct laci_trainer laci_trainer;
typedef struct laci_training_graph laci_training_graph;
typedef struct laci_training_options laci_training_options;

/** The state of one training; whoever made it clears it. */
typedef struct laci_training {
  lac_model *model;
  const lac_train_options *options;
  laci_train_plan *plan; /* the plan of the training (plan_in.h) */
  laci_trainer *trainer;
  laci_train_record *record; /* writes the log and the curves; NULL: they are not wanted */
  uint8_t *masks;            /* [size of the optimizer's buffers] masks of all weights
                                (laci_training_fill_masks); NULL: none */
  int lock;                  /* descriptor that locks the run's folder; -1: none */
  bool evaluated;            /* an evaluation was done, so that its plan was logged */
} laci_training;

/* ---- check.c ---- */

/** Checks everything that can be checked without planning a step, and fills the plan. */
LAC_MUST_CHECK lac_status laci_training_check_and_plan(laci_training *t, const char *data,
                                                       lac_error *err);
/** Returns the options with which the graph of a training step is made from the model. */
laci_training_options laci_training_graph_options(const laci_training *t);
/** Checks that the number of classes and the weights' types fit. */
LAC_MUST_CHECK lac_status laci_training_check_classes_and_types(const laci_training *t,
                                                                const laci_training_graph *graph,
                                                                lac_error *err);
/** Checks what only the graph of a step shows: operators without gradients, classes, types of
 * weights. It makes the graph and discards it, which takes little time compared with the caller's
 * next work. */
LAC_MUST_CHECK lac_status laci_training_check_graph(const laci_training *t, lac_error *err);

/* ---- masks.c ---- */

/** Returns the masks as the engine's list of weights; the caller frees *weights. If the run
 * continues a checkpoint, its masks must be the same; otherwise continuing fails
 * (train/loop_state.c). */
LAC_MUST_CHECK lac_status laci_training_list_engine_masks(const laci_training *t,
                                                          const lac_mask *mask,
                                                          laci_engine_weight **weights,
                                                          int *n_weights, lac_error *err);
/** Fills t->masks: all masks in one buffer, each at its weight's offset. Fails LAC_NOT_FOUND,
 * LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_training_fill_masks(laci_training *t, const lac_mask *mask,
                                                   lac_error *err);

/* ---- agree.c: do all processes have the same job? ---- */

/** Checks that all processes have the same job. Fails LAC_BAD_ARGUMENT if a process has other
 * options or images than process 0, LAC_BAD_SHAPE if it has another network or other masks. */
LAC_MUST_CHECK lac_status laci_training_compare_jobs(const laci_training *t, const lac_mask *mask,
                                                     lac_error *err);

/* ---- share.c ---- */

/** Copies the weights of process 0 to all others. Fails if masks differ between processes. */
LAC_MUST_CHECK lac_status laci_training_broadcast_weights(laci_training *t, const lac_mask *mask,
                                                          lac_error *err);
/** Makes all processes return the same status (laci_comm_agree_on_status). */
LAC_MUST_CHECK lac_status laci_training_agree_on_status(const laci_training *t, lac_status mine,
                                                        lac_error *err);
/** Does laci_training_agree_on_status after work on files, which may take much longer in one
 * process (laci_comm_agree_without_timeout). */
LAC_MUST_CHECK lac_status laci_training_agree_without_timeout(const laci_training *t,
                                                              lac_status mine, lac_error *err);
/** Gathers the scores of all parts from the processes that evaluated them. */
LAC_MUST_CHECK lac_status laci_training_gather_scores(const laci_training *t,
                                                      const laci_eval_scores *scores,
                                                      lac_error *err);
/** Returns which processes train, and how gradients are sent. */
laci_data_parallel_options laci_training_parallel_options(const laci_training *t);

/* ---- trainer.c ---- */

LAC_MUST_CHECK lac_status laci_training_make_trainer(laci_training *t, const lac_mask *mask,
                                                     lac_error *err);

/* ---- folder.c ---- */

/** Does the run have a folder, and is this the process that writes there? */
bool laci_training_writes_files(const laci_training *t);

/** Creates and locks the folder of the run, if it has one. Fails LAC_EXISTS if another run uses it,
 * since each would use the other's checkpoints. */
LAC_MUST_CHECK lac_status laci_training_open_folder(laci_training *t, lac_error *err);

/* ---- hooks.c: context is the training ---- */

LAC_MUST_CHECK lac_status laci_training_evaluate(void *context, laci_loop_score *score,
                                                 lac_error *err);
LAC_MUST_CHECK lac_status laci_training_on_event(void *context, const laci_loop_event *from,
                                                 lac_error *err);

/* ---- run.c ---- */

LAC_MUST_CHECK lac_status laci_training_run(laci_training *t, lac_train_result *result,
                                            lac_error *err);

/** classes.c: stores the names of the data's class folders in the network, as the meaning of its
 * outputs. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_training_store_class_names(const laci_training *training,
                                                          lac_error *err);

#endif
