/* SPDX-License-Identifier: Apache-2.0
 * Evaluation as other functions of the library use it. */
#ifndef LACI_API_RUN_EVAL_IN_H
#define LACI_API_RUN_EVAL_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct lac_eval_options lac_eval_options;
typedef struct lac_eval_result lac_eval_result;
typedef struct lac_model lac_model;
typedef struct laci_dataset laci_dataset;
typedef struct laci_graph laci_graph;
typedef struct laci_image_score laci_image_score;
typedef struct laci_preprocessing laci_preprocessing;
typedef struct laci_value laci_value;

/** lac_eval on the images of this very folder; quiet: no word of the plan and the data, for one
 * evaluation of many. */
LAC_MUST_CHECK lac_status laci_model_evaluate(const lac_model *model, const char *data,
                                              const lac_eval_options *options, bool quiet,
                                              lac_eval_result *result, lac_error *err);

/** A part of an evaluation: whole batches, one after the other, as one that is not shared runs
 * them; so each image's score has the same bits. */
typedef struct laci_eval_part {
  int part, n_parts; /* 0 <= part < n_parts */
  bool quiet;
} laci_eval_part;

/** The scores of all images that are evaluated, whoever evaluates them. */
typedef struct laci_eval_scores {
  int64_t images;
  int batch;
  laci_image_score *scores; /* [images] in their order; free with laci_free */
  int n_sparse;             /* layers of this process's plan */
  double seconds;           /* that the part took */
} laci_eval_scores;

/** The scores of one part; those of the others are zeros. Every image is in one part; a part may be
 * empty. `options` names no file of predictions. Fails as lac_eval, LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_model_evaluate_part(const lac_model *model, const char *data,
                                                   const lac_eval_options *options,
                                                   const laci_eval_part *part,
                                                   laci_eval_scores *scores, lac_error *err);
/** The first image of a part; of part n_parts: all images. The same in all processes. */
int64_t laci_eval_part_begin(const laci_eval_scores *scores, int part, int n_parts);
/** What all scores together are, once those of all parts are there: the result of lac_eval, to the
 * bit but for images a second, which the slowest part would say. */
void laci_eval_scores_result(const laci_eval_scores *scores, lac_eval_result *result);

/** How a network takes images. */
typedef struct laci_image_input {
  const char *name; /* its one input; a view of the graph */
  int batch;        /* in: what is wanted; out: what the network is planned for */
} laci_image_input;

enum { LACI_EVAL_MOST_BATCH = 65536 };

/** The network's one input against [N, C, H, W] of the images as they are prepared. Fails
 * LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_fit_images(const laci_graph *network, const laci_dataset *set,
                                          const laci_preprocessing *preprocessing,
                                          laci_image_input *input, lac_error *err);

/** Is the first output a softmax's, through nodes that only name or shape it? */
bool laci_ends_in_softmax(const laci_graph *network);

/** How many classes the model's first output has; shapes that its file leaves out are inferred.
 * 0: that is not known. */
int64_t laci_classes_of(const lac_model *model, uint64_t max_memory);

/** Whether a network's first output has as many classes as the data, as far as its file says; the
 * rest shows when the network is planned. Fails as laci_dataset_check_outputs. */
LAC_MUST_CHECK lac_status laci_check_classes(const laci_graph *network, const laci_dataset *set,
                                             lac_error *err);

/** LAC_BAD_SHAPE: the set's images prepared by the preprocessing are no input of the size that the
 * network fixes, and which crop would be. */
lac_status laci_fail_crop(const laci_value *input, const laci_dataset *set,
                          const laci_preprocessing *preprocessing, lac_error *err);

/** Mean and std, where others than the usual ones are set, are for images in colour. Fails
 * LAC_BAD_ARGUMENT where `preprocessing` prepares grey ones, which have scales of their own. */
LAC_MUST_CHECK lac_status laci_check_colours(const laci_preprocessing *preprocessing,
                                             const char *data, const float mean[3],
                                             const float std[3], lac_error *err);

#endif
