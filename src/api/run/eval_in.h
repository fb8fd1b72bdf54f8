/* SPDX-License-Identifier: Apache-2.0
 * Evaluation for other functions of the library. */
#ifndef LACI_API_RUN_EVAL_IN_H
#define LACI_API_RUN_EVAL_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct lac_eval_options lac_eval_options;
typedef struct lac_eval_result lac_eval_result;
typedef struct lac_model lac_model;
typedef struct laci_dataset laci_dataset;
typedef struct laci_dataset_options laci_dataset_options;
typedef struct laci_given_samples laci_given_samples;
typedef struct laci_graph laci_graph;
typedef struct laci_parts laci_parts;
typedef struct laci_image_score laci_image_score;
typedef struct laci_preprocessing laci_preprocessing;
typedef struct laci_value laci_value;

/** Checks options of this library's size. Fails LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_eval_options_check(const lac_eval_options *options, lac_error *err);

/** Does lac_eval on the test part of the data, or on samples in memory (NULL: there are none), with
 * options of this library's size. */
LAC_MUST_CHECK lac_status laci_evaluate_test_part(const lac_model *model, const laci_parts *parts,
                                                  const laci_given_samples *memory,
                                                  const lac_eval_options *options,
                                                  lac_eval_result *result, lac_error *err);

/** A part of an evaluation: consecutive whole batches, the same ones as without parts, so that each
 * image's score has the same bits. */
typedef struct laci_eval_part {
  int part, n_parts; /* index of this part, and number of parts: 0 <= part < n_parts */
  bool quiet;
  const laci_given_samples *memory; /* the samples in memory; NULL: the data are in a folder */
} laci_eval_part;

/** The scores of all images of an evaluation, whichever process evaluates them. */
typedef struct laci_eval_scores {
  int64_t images;
  int batch;
  laci_image_score *scores; /* [images] score of each image, in the order of the data; free with
                               laci_free */
  int n_sparse;             /* number of steps of this process's plan that use sparse kernels */
  double seconds;           /* time of evaluating the part */
} laci_eval_scores;

/** Computes the scores of one part; the scores of other parts are set to zero. Every image is in
 * one part; a part may be empty. options->predictions must be NULL. Fails as lac_eval,
 * LAC_BAD_ARGUMENT. */
LAC_MUST_CHECK lac_status laci_model_evaluate_part(const lac_model *model, const char *data,
                                                   const lac_eval_options *options,
                                                   const laci_eval_part *part,
                                                   laci_eval_scores *scores, lac_error *err);
/** Returns the index of a part's first image; for part n_parts the number of all images. It is the
 * same in all processes. */
int64_t laci_eval_part_begin(const laci_eval_scores *scores, int part, int n_parts);
/** Computes the result of lac_eval from the scores of all parts. It is the same bits as without
 * parts, except for images_per_second. */
void laci_eval_result_from_scores(const laci_eval_scores *scores, lac_eval_result *result);

/** The input of a network through which it takes images. */
typedef struct laci_image_input {
  const char *name; /* name of the only input; it points into the graph */
  int batch;        /* in: the batch size wanted; out: the batch size to plan for */
} laci_image_input;

enum { LACI_EVAL_MOST_BATCH = 65536 };

/** Checks that the network's only input fits the prepared images, [N, C, H, W], and fills *input.
 * Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_fit_images_to_network(const laci_graph *network,
                                                     const laci_dataset *set,
                                                     const laci_preprocessing *preprocessing,
                                                     laci_image_input *input, lac_error *err);

/** Is the first output that of a Softmax, apart from nodes that only rename or reshape it? */
bool laci_ends_in_softmax(const laci_graph *network);

/** Returns the number of classes of the model's first output, after inferring missing shapes; 0:
 * not known. */
int64_t laci_model_n_classes(const lac_model *model, uint64_t max_memory);

/** Checks that the network's first output has as many classes as the data, as far as the file says;
 * planning checks the rest. Fails as laci_dataset_check_outputs. */
LAC_MUST_CHECK lac_status laci_check_class_count(const laci_graph *network, const laci_dataset *set,
                                                 lac_error *err);

/** Fails LAC_BAD_SHAPE: the prepared images do not have the size that the network fixes. The text
 * says which crop would fit. */
lac_status laci_fail_crop_size(const laci_value *input, const laci_dataset *set,
                               const laci_preprocessing *preprocessing, lac_error *err);

/** The caller's choice of how images are prepared; see lac_eval_options. */
typedef struct laci_image_choice {
  int resize, crop;        /* sizes in pixels, see lac_eval_options; 0: the usual size for the data
                              */
  const float *mean, *std; /* [3] mean and deviation of each channel's grey levels; the defaults
                              count as not given */
} laci_image_choice;

/** Applies the caller's choice to the usual preprocessing of the data, and checks it. Fails
 * LAC_BAD_ARGUMENT if mean or std is given for grey images, whose scale is fixed. Also fails
 * LAC_BAD_ARGUMENT for any choice if the samples are prepared already (arrays). */
LAC_MUST_CHECK lac_status laci_choose_preprocessing(laci_preprocessing *preprocessing,
                                                    const char *data,
                                                    const laci_image_choice *choice,
                                                    lac_error *err);

/** Checks that samples that need no preparation fit the network's input. Fails LAC_BAD_SHAPE. */
LAC_MUST_CHECK lac_status laci_check_prepared_samples(const laci_value *input,
                                                      const laci_preprocessing *preprocessing,
                                                      lac_error *err);

/** Returns the name of the network's only input; NULL: it has several, or none. */
const char *laci_only_input_name(const laci_graph *network);

/** Sets the options so that they open the samples in memory; memory NULL: changes nothing. */
void laci_dataset_options_set_memory(const laci_given_samples *memory,
                                     laci_dataset_options *options);

#endif
