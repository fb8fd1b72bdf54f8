/* SPDX-License-Identifier: Apache-2.0
 * Runs a network over samples from stop to stop. A stop is a value; between two stops, the caller
 * may change the network's weights, and later stops see the new ones.
 *
 * Every batch runs each node once: values that are read after a stop are stored, in memory or in
 * temporary files. A batch is run by an engine of one thread, and the caller's function gets the
 * batches one by one, in a fixed order. So results do not depend on the number of threads. */
#ifndef LACI_CALIBRATE_SEQUENCE_H
#define LACI_CALIBRATE_SEQUENCE_H

#include "calibrate/samples.h"

/** A value in one batch of samples. */
typedef struct laci_sequence_value {
  int64_t batch; /* index of the batch in laci_sequence_options.firsts */
  const laci_shape *shape;
  const float *elements; /* valid until the function returns */
} laci_sequence_value;

/** Receives a value of floats in one batch. If it fails, the run ends with its failure. */
typedef lac_status laci_sequence_on_batch(void *context, const laci_sequence_value *value,
                                          lac_error *err);

typedef struct laci_sequence_options {
  const int *stops; /* [n_stops] values of the graph, of f32. None depends on a later one. They may
                       repeat */
  int n_stops;
  const laci_calibration_samples *samples;
  const int64_t *firsts;    /* [n_batches] index of each batch's first sample */
  int64_t batch, n_batches; /* batch: number of samples in a batch */
  laci_pool *pool;
  const laci_budget *budget; /* memory budget; NULL: no limit */
} laci_sequence_options;

typedef struct laci_sequence laci_sequence;

/** Reads the samples and plans the run. `from`, its weights and what the options point to must
 * outlive the sequence. Fails LAC_UNSUPPORTED if a stop cannot be computed, LAC_MEMORY_LIMIT,
 * LAC_IO (temporary files), and as laci_graph_infer and samples->fetch do. */
LAC_MUST_CHECK lac_status laci_sequence_open(const laci_weighted_graph *from,
                                             const laci_sequence_options *options,
                                             laci_sequence **sequence, lac_error *err);
void laci_sequence_close(laci_sequence *sequence); /* NULL is fine */

/** Runs the network up to stop number `stop` for all batches; call it for 0, 1, 2 and so on. Passes
 * the stop's value to on_batch; on_batch may be NULL. Fails as laci_engine_create, laci_engine_run
 * and on_batch do, LAC_INTERRUPTED. */
LAC_MUST_CHECK lac_status laci_sequence_advance(laci_sequence *sequence, int stop,
                                                laci_sequence_on_batch *on_batch, void *context,
                                                lac_error *err);
/** Passes the last stop's value to on_batch once more. */
LAC_MUST_CHECK lac_status laci_sequence_visit(laci_sequence *sequence,
                                              laci_sequence_on_batch *on_batch, void *context,
                                              lac_error *err);
/** Computes `value` from the last stop's value and from stored tensors, and passes it to on_batch.
 * Fails as laci_sequence_advance, LAC_UNSUPPORTED if it depends on other values. */
LAC_MUST_CHECK lac_status laci_sequence_look_ahead(laci_sequence *sequence, int value,
                                                   laci_sequence_on_batch *on_batch, void *context,
                                                   lac_error *err);

/** Sets *elements to the value of a stop in a batch: the last stop, or an earlier one that the last
 * one was computed from directly. They are stored elements, or `buffer` if these are in a file.
 * buffer: memory for them. Fails LAC_IO, LAC_UNSUPPORTED if the value is stored no longer. */
LAC_MUST_CHECK lac_status laci_sequence_read_stop(const laci_sequence *sequence, int stop,
                                                  int64_t batch, float *buffer,
                                                  const float **elements, lac_error *err);

/** Replaces the bytes of a stored tensor from now on. They must outlive the sequence. */
void laci_sequence_set_weight(laci_sequence *sequence, int stored, const uint8_t *bytes);

#endif
