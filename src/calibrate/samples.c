/* SPDX-License-Identifier: Apache-2.0
 * Cuts samples into batches. */
#include "calibrate/samples.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/plural.h"
#include "graph/graph.h"

enum { HELD_BACK = 8 }; /* one batch in HELD_BACK is held back to judge the fits */

/* Returns the batch size in (most / 2, most] for which the fewest samples remain outside of whole
 * batches; the largest of equally good sizes. */
static int64_t find_best_batch_size(int64_t count, int64_t most) {
  int64_t best = most;
  for (int64_t batch = most; batch > most / 2 && batch >= 1; batch--) {
    if (count / batch * batch > count / best * best) best = batch;
  }
  return best;
}

lac_status laci_calibration_cut_samples(int64_t count, int64_t most, int64_t fixed,
                                        laci_calibration_cut *cut, lac_error *err) {
  if (count < 1 || (fixed > 0 && count < fixed)) {
    return laci_fail(err, LAC_BAD_SHAPE,
                     "%" PRId64 " calibration sample%s, the network wants at least %" PRId64, count,
                     laci_plural(count), fixed > 0 ? fixed : 1);
  }
  cut->fixed = fixed > 0;
  cut->judging_batch = fixed > 0 ? fixed : most > 1 ? most : 1;
  int64_t eighth = (count + HELD_BACK - 1) / HELD_BACK;
  if (most > eighth) most = eighth;
  if (most < 1) most = 1;
  cut->batch = fixed > 0 ? fixed : find_best_batch_size(count, most);
  cut->n_batches = count / cut->batch;
  int64_t held = cut->n_batches / HELD_BACK;
  if (held < 1 && cut->n_batches > 1) held = 1;
  cut->n_fitted = cut->n_batches - held;
  return LAC_OK;
}

int64_t laci_calibration_required_batch(const laci_graph *graph,
                                        const laci_calibration_samples *s) {
  if (s->single || s->n_shape_sets > 1) return 1;
  for (int i = 0; i < graph->n_inputs; i++) {
    const laci_shape *shape = &graph->values[graph->inputs[i]].type.shape;
    const int axis = laci_calibration_sample_axis(s, i);
    if (axis >= 0 && axis < shape->rank) return shape->dims[axis] > 0 ? shape->dims[axis] : 0;
    if (axis >= 0) return 0;
  }
  return graph->n_inputs > 0 ? 1 : 0;
}

const char *laci_calibration_explain_unstackable_samples(const laci_calibration_samples *s,
                                                         int n_inputs) {
  if (s->n_shape_sets > 1) return "samples of different sizes";
  for (int i = 0; i < n_inputs; i++) {
    if (s->constants && s->constants[i]) return "an input that all samples share";
    if (laci_calibration_sample_axis(s, i) != 0) return "samples that are not along the first axis";
  }
  return NULL;
}
