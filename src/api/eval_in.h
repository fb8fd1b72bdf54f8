/* SPDX-License-Identifier: Apache-2.0
 * Evaluation as other functions of the library use it. */
#ifndef LACI_API_EVAL_IN_H
#define LACI_API_EVAL_IN_H

#include <stdbool.h>

#include "lacuna/status.h"

typedef struct lac_eval_options lac_eval_options;
typedef struct lac_eval_result lac_eval_result;
typedef struct lac_model lac_model;
typedef struct laci_dataset laci_dataset;
typedef struct laci_graph laci_graph;
typedef struct laci_preprocessing laci_preprocessing;
typedef struct laci_value laci_value;

/** lac_eval on the images of this very folder; quiet: no word of the plan and the data, for one
 * evaluation of many. */
LAC_MUST_CHECK lac_status laci_model_evaluate(const lac_model *model, const char *data,
                                              const lac_eval_options *options, bool quiet,
                                              lac_eval_result *result, lac_error *err);

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

/** Is the first output a softmax's, by way of nodes that only name or shape it? */
bool laci_ends_in_softmax(const laci_graph *network);

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
