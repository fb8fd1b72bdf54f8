/* SPDX-License-Identifier: Apache-2.0
 * Synthetic samples for a network: images, whose layout and range of values are found out, or
 * token ids, sounds and rows of numbers. */
#ifndef LACI_API_PRUNE_SYNTHETIC_IN_H
#define LACI_API_PRUNE_SYNTHETIC_IN_H

#include "data/samples.h"

typedef struct laci_arena laci_arena;
typedef struct laci_budget laci_budget;
typedef struct laci_graph laci_graph;
typedef struct laci_pool laci_pool;

/** Options that say which synthetic images are wanted. */
typedef struct laci_synthetic_options {
  int crop;                /* side of sizes that the network leaves open; 0: 224 */
  int height, width;       /* size of the images in pixels; 0: that of the network's input, or crop
                              if that is open */
  const float *mean, *std; /* [3] mean and deviation of each channel's grey levels, by which images
                              are scaled; NULL: they are found out */
  uint64_t seed;
  bool fits_small; /* small images are fitted, too: set if masks keep less than half of the weights.
                      Where they keep more, drawn ones were found better (ResNets of CIFAR) */
  laci_pool *pool;
  const laci_budget *budget; /* memory limit; only for laci_synthetic_choose_images */
  const char *engine;        /* name of the engine that runs the network; only for
                                laci_synthetic_choose_images */
} laci_synthetic_options;

/** Do mean and std [3] differ from the defaults? The defaults count as not set. */
bool laci_synthetic_has_own_scale(const float *mean, const float *std);

/** Finds and logs the layout of the network's input and the range of its values. The network's only
 * input is [N, C, H, W] or [N, H, W, C] with 3 channels, or 1. If no range is given, it is the one
 * of the usual ranges that brings the inputs of the first batch normalization nearest to its stored
 * statistics. Without such a normalization, a subtraction or division at the network's input
 * decides between 0..1 and 0..255. Without that it is ImageNet's mean and std. The graph's bytes
 * are in memory. Fails LAC_BAD_SHAPE if the network's inputs are not images, LAC_NO_MEMORY,
 * LAC_INTERRUPTED. */
LAC_MUST_CHECK lac_status laci_synthetic_find_input(const laci_graph *graph,
                                                    const laci_synthetic_options *options,
                                                    laci_synthetic_input *input, lac_error *err);

/** The two parts of laci_synthetic_find_input. laci_synthetic_find_layout sets all fields of input
 * except the range of values. laci_synthetic_choose_range sets the range, and *reason, a literal
 * that says why this range was chosen. */
LAC_MUST_CHECK lac_status laci_synthetic_find_layout(const laci_graph *graph, int crop,
                                                     laci_synthetic_input *input, lac_error *err);
LAC_MUST_CHECK lac_status laci_synthetic_choose_range(const laci_graph *graph,
                                                      const laci_synthetic_options *options,
                                                      laci_synthetic_input *input,
                                                      const char **reason, lac_error *err);

/** Images that were made for a network. Freed with laci_synthetic_images_clear. */
typedef struct laci_synthetic_images {
  int64_t *chosen;
  uint8_t *fitted;
  int64_t *fitted_at;
} laci_synthetic_images;

/** Returns the maximum number of images that are fitted. It is 0 for networks that store few
 * statistics, for those that take too long, and for those of small images unless fits_small is set.
 * The number is the same on every machine. */
int64_t laci_synthetic_count_fitted(const laci_graph *graph, const laci_synthetic_options *options,
                                    const laci_synthetic_input *input);
/** Are the images of fewer than 64 pixels a side? Of these, only a part is fitted, if any. */
bool laci_synthetic_is_small(const laci_synthetic_input *input);

/** Fits the images of input, all n or some of them, to the statistics that the network's batch
 * normalizations store, in a fixed number of steps (calibrate/images.h). Sets input->fitted if the
 * images come nearer to statistics that were held back from the fit. If memory does not suffice,
 * the images stay as they are. Fails LAC_NO_MEMORY, LAC_INTERRUPTED. (synthetic_fit.c) */
LAC_MUST_CHECK lac_status laci_synthetic_fit_images(const laci_graph *graph,
                                                    const laci_synthetic_options *options,
                                                    int64_t n, laci_synthetic_input *input,
                                                    laci_synthetic_images *made, lac_error *err);
void laci_synthetic_images_clear(laci_synthetic_images *made);

/** Returns the number of multiplications of a network for one image; 0: not known. */
double laci_synthetic_multiplications(const laci_graph *graph);

/** Is the failure due to the network, and not to the machine or the user? */
bool laci_synthetic_is_network_failure(lac_status status);

/** Chooses n images whose statistics are near those that the network's batch normalizations store,
 * among LACI_SYNTHETIC_CANDIDATES * n images. Sets input->chosen and *chosen, which the caller
 * frees with laci_free. They stay NULL if the network has no such normalizations, if it cannot be
 * run as a whole, or if thousands of images are wanted. Fails LAC_NO_MEMORY, LAC_INTERRUPTED,
 * LAC_MEMORY_LIMIT. */
LAC_MUST_CHECK lac_status laci_synthetic_choose_images(const laci_graph *graph,
                                                       const laci_synthetic_options *options,
                                                       int64_t n, laci_synthetic_input *input,
                                                       int64_t **chosen, lac_error *err);
enum { LACI_SYNTHETIC_CANDIDATES = 4 };

/** Opens n synthetic images for the network's input, by the options' seed. */
LAC_MUST_CHECK lac_status laci_synthetic_samples_open(const laci_graph *graph,
                                                      const laci_synthetic_options *options,
                                                      int64_t n, const laci_synthetic_input *input,
                                                      laci_samples **samples, lac_error *err);

/** Returns how many synthetic images calibrate the network in about a minute on two cores. The
 * number depends on the network's multiplications for one image: 32 to 512, the same on every
 * machine. The graph's shapes must be inferred. */
int64_t laci_synthetic_choose_image_count(const laci_graph *graph);

/** Returns the name and type of each input of the network, [graph->n_inputs], to be freed by
 * laci_free; NULL: no memory. (synthetic_inputs.c) */
laci_sample_input *laci_list_sample_inputs(const laci_graph *graph);

/** Returns what is drawn for the network's inputs, as text for messages (a literal): "token ids" if
 * an input looks up the rows of a stored table, "sounds" if one of floats enters a convolution of
 * one channel along one axis, "rows of numbers" if one [N, n] enters a product. The first that is
 * true counts. NULL: none is; the network may take images. */
const char *laci_synthetic_find_noun(const laci_graph *graph);
/** Describes inputs [graph->n_inputs] of a network for which laci_synthetic_find_noun is not NULL.
 * Token ids are below the number of the table's rows. Integers next to them are positions (by the
 * input's name), zeros where a table has a handful of rows (segments), or ones (masks); those next
 * to sounds have the number that the network compares them with. Floats next to sounds are states:
 * normal numbers of deviation 0.3. Rows of numbers have the scale that the network's first steps
 * undo. Open lengths of texts are 128. Those of sounds are one second, or the longest of the usual
 * shorter ones that the network takes. Of inputs in how->constants only sizes and the number are
 * described. Arrays are in the arena. Fails LAC_BAD_SHAPE for an input without a rule, or if no
 * length is taken; LAC_BAD_VALUE for rows of numbers that the network does not scale.
 * (synthetic_inputs.c) */
LAC_MUST_CHECK lac_status laci_synthetic_describe_inputs(const laci_graph *graph,
                                                         const laci_samples_options *how,
                                                         laci_drawn_input *inputs,
                                                         laci_arena *arena, lac_error *err);
/** Does the same as laci_synthetic_choose_image_count, for samples of other kinds than images. */
int64_t laci_synthetic_choose_drawn_count(const laci_graph *graph);

/** Fails, as laci_synthetic_describe_inputs or laci_synthetic_find_layout, if no samples can be
 * drawn for the network. */
LAC_MUST_CHECK lac_status laci_synthetic_check_network(const laci_graph *graph, int crop,
                                                       lac_error *err);

#endif
