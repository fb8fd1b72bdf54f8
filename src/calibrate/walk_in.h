/* SPDX-License-Identifier: Apache-2.0
 * The state of a walk, and its steps in the order of their calls. Private to calibrate. */
#ifndef LACI_CALIBRATE_WALK_IN_H
#define LACI_CALIBRATE_WALK_IN_H

#include "calibrate/batch_allocator_in.h"
#include "calibrate/grams_in.h"
#include "calibrate/plan_in.h"
#include "calibrate/walk.h"

/** What a walk takes, in seconds. */
typedef struct laci_walk_times {
  double runs;    /* running both networks, with the creation of engines */
  double sums;    /* adding batches to Gram matrices */
  double judging; /* measuring the errors of layers' outputs, and of the network's */
} laci_walk_times;

typedef struct laci_residual laci_residual;

/** The sums for the layers of a stop. */
typedef struct laci_stop_sums {
  int n_layers, n_grams;
  laci_grams *grams;        /* [n_grams] sums over inputs; layers of the same inputs share them */
  int *which;               /* [n_layers] index of each layer's grams */
  laci_residual *residuals; /* [n_layers] sums for what layers make up for; unused where n_grams
                               is 0 */
} laci_stop_sums;

typedef struct laci_walk_state {
  const laci_analysis *analysis;
  const laci_calibration_samples *samples;
  const laci_calibrate_options *options;
  laci_calibrated *out;
  int n_shape_sets;        /* number of shape sets of the samples; if there are several, a batch is
                              one sample */
  laci_network **networks; /* [n_shape_sets] the dense network, inferred for each shape set */
  laci_network *network;   /* networks[0] */
  const uint8_t **pruned;  /* [n_stored] current weights of the pruned network; not owned */
  laci_walk_plan plan;
  laci_calibration_cut cut;
  int n_workers; /* number of workers: engines that run different batches at the same time
                    (workers_in.h) */
  laci_batch_allocator allocator;
  uint64_t memory; /* bytes that the calibration plans to hold in addition to the stored values */
  laci_stored_batches *
      *kept[LACI_STREAMS]; /* [n_values] stored batches of each value in each network; NULL: not
                              stored, or the same as in the dense network */
  const uint8_t *const *weights[LACI_STREAMS]; /* [n_stored] weights of the dense and of the pruned
                                                  network */
  laci_walk_times times;                       /* what the walk took so far */
  int64_t done, total;                         /* numbers of batches for the progress log: run so
                                                  far, and to run in all */
} laci_walk_state;

/** Returns the stored batches of a value in the dense or the pruned network. */
static inline laci_stored_batches *laci_walk_stored_batches(const laci_walk_state *w, int stream,
                                                            int value) {
  return w->kept[w->plan.differs[value] ? stream : LACI_STREAM_DENSE][value];
}

/** Index of the first batch that is held back to judge fits, and the number of these batches. If
 * none is held back, all batches judge. */
static inline int64_t laci_walk_first_held_back(const laci_walk_state *w) {
  return w->cut.n_fitted < w->cut.n_batches ? w->cut.n_fitted : 0;
}
static inline int64_t laci_walk_count_held_back(const laci_walk_state *w) {
  return w->cut.n_batches - laci_walk_first_held_back(w);
}

/** Returns the shape set of a batch's samples. */
static inline int laci_walk_shape_set_of(const laci_walk_state *w, int64_t batch) {
  return laci_calibration_shape_set_of(w->samples, batch * w->cut.batch);
}

/** Lists in batches[] those of the batches first .. n_batches - 1 whose samples have this shape
 * set; returns their number. */
static inline int64_t laci_walk_list_batches(const laci_walk_state *w, int shape_set, int64_t first,
                                             int64_t *batches) {
  int64_t n = 0;
  for (int64_t batch = first; batch < w->cut.n_batches; batch++)
    if (laci_walk_shape_set_of(w, batch) == shape_set) batches[n++] = batch;
  return n;
}

/** Returns the bytes of a value in a batch, for the shape set in which it is largest. */
static inline uint64_t laci_walk_largest_value_bytes(const laci_walk_state *w, int value) {
  uint64_t most = 0;
  for (int shape_set = 0; shape_set < w->n_shape_sets; shape_set++) {
    const uint64_t bytes = laci_network_value_bytes(w->networks[shape_set], value);
    if (bytes > most) most = bytes;
  }
  return most;
}

/** Counts n batches as done and logs the progress. Fails LAC_INTERRUPTED. */
LAC_MUST_CHECK lac_status laci_walk_report_progress(laci_walk_state *w, int64_t n, lac_error *err);

/** Chooses the number of workers (engines that run at the same time), and how many bytes of stored
 * values stay in memory. Fails LAC_MEMORY_LIMIT (walk_memory.c). */
LAC_MUST_CHECK lac_status laci_walk_plan_memory(laci_walk_state *w, lac_error *err);

/** Returns why the layer's fit exceeds the memory limit even if it is done alone: a static text, or
 * one in the result's arena. NULL: the fit is within the limit. (walk_memory.c) */
const char *laci_walk_explain_too_large_fit(laci_walk_state *w, const laci_matrix_layer *layer);

/** Returns the limit of the positions (inputs x) of a batch that are summed for a layer
 * (walk.c). */
int64_t laci_walk_max_positions(const laci_walk_state *w, const laci_unfold *unfold);

/** Reads all samples and stores them as the network's inputs in the frontier, the set of stored
 * values (walk_part.c). */
LAC_MUST_CHECK lac_status laci_walk_read_inputs(laci_walk_state *w, lac_error *err);

/** Runs the part that computes the value of the stop with index `stop`, which the stop's layers
 * read, for all batches in both networks. Adds the batches for fitting to the sums of the stop's
 * layers. The stop's value stays stored at least for the batches that are held
 * back. (walk_part.c) */
LAC_MUST_CHECK lac_status laci_walk_run_part(laci_walk_state *w, int stop, laci_stop_sums *sums,
                                             lac_error *err);
/** Describes, for the sums, how the layer's inputs x are taken from its input value in a batch of a
 * shape set. Fails LAC_UNSUPPORTED if that is impossible for these shapes. (walk.c) */
LAC_MUST_CHECK lac_status laci_walk_describe_layer_input(laci_walk_state *w,
                                                         const laci_matrix_layer *layer,
                                                         int shape_set, laci_unfold *unfold,
                                                         lac_error *err);
/** Frees the stored values that no part and no layer after the stop reads. */
void laci_walk_free_unneeded_values(laci_walk_state *w, int stop);

/** Creates the sums for a stop's layers. There are none if neither score nor solution read them:
 * n_grams is 0. Fails LAC_NO_MEMORY. Call laci_walk_clear_sums in any case. (walk_sums.c) */
LAC_MUST_CHECK lac_status laci_walk_create_sums(const laci_walk_state *w, const laci_stop *stop,
                                                laci_stop_sums *sums, lac_error *err);
void laci_walk_clear_sums(laci_stop_sums *sums);

/** Fits one layer by its sums, those with index `at`. Judges the fit, and puts its weights into the
 * pruned network (walk_fit.c). */
LAC_MUST_CHECK lac_status laci_walk_fit_layer(laci_walk_state *w, const laci_matrix_layer *layer,
                                              const laci_stop_sums *sums, int at, lac_error *err);

/** The distance between a layer's outputs y with new weights and the dense network's outputs y_d,
 * summed over the held-back batches. */
typedef struct laci_layer_errors {
  double energy;    /* sum |y_d|^2 of the dense network's outputs */
  double errors[2]; /* sum |y_d + c - y|^2, for each of two candidate weights; c: what the layer
                       makes up for (residual_in.h) */
} laci_layer_errors;
/** Measures the errors of the layer's outputs without bias. y_d: the outputs of the dense weight
 * for the dense network's inputs. y: the outputs of each of the two other weights (bytes of the
 * stored tensor) for the pruned network's inputs. (layer_error.c) */
LAC_MUST_CHECK lac_status laci_walk_measure_layer_error(laci_walk_state *w,
                                                        const laci_matrix_layer *layer,
                                                        const laci_residual *residual,
                                                        const uint8_t *const others[2],
                                                        laci_layer_errors *errors, lac_error *err);

#endif
