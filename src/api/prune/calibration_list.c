/* SPDX-License-Identifier: Apache-2.0
 * Describes open samples for src/calibrate: how they make batches, which inputs all of them share,
 * and their sizes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/prune/calibration_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/samples.h"
#include "graph/graph.h"
#include "lacuna/calibration.h"

static lac_status list_sample_shapes(laci_calibration_source *source, lac_error *err) {
  const laci_samples *s = source->samples;
  const int n_shape_sets = laci_samples_count_shape_sets(s);
  const int64_t n = laci_samples_count(s) + laci_samples_count_judging(s);
  if (n_shape_sets < 2) return LAC_OK;
  source->shape_sets = laci_alloc((size_t)n_shape_sets, sizeof *source->shape_sets);
  source->shape_set_of = laci_alloc((size_t)n + 1, sizeof *source->shape_set_of);
  if (!source->shape_sets || !source->shape_set_of) return laci_fail_memory(err, "the samples");
  for (int shape_set = 0; shape_set < n_shape_sets; shape_set++)
    source->shape_sets[shape_set] = laci_samples_shapes_of_set(s, shape_set);
  for (int64_t place = 0; place < n; place++)
    source->shape_set_of[place] = laci_samples_shape_set(s, place);
  return LAC_OK;
}

lac_status laci_calibration_describe_samples(const laci_graph *graph,
                                             laci_calibration_source *source, lac_error *err) {
  const laci_samples *s = source->samples;
  const size_t n_inputs = (size_t)graph->n_inputs;
  source->shapes = laci_alloc(n_inputs + 1, sizeof *source->shapes);
  source->axes = laci_alloc(n_inputs + 1, sizeof *source->axes);
  source->constants = laci_alloc(n_inputs + 1, sizeof *source->constants);
  if (!source->shapes || !source->axes || !source->constants)
    return laci_fail_memory(err, "the samples");
  for (int k = 0; k < graph->n_inputs; k++) {
    source->shapes[k] = laci_samples_type(s, k)->shape;
    source->axes[k] = laci_samples_batch_axis(s, k);
    source->constants[k] = laci_samples_constant(s, k);
  }
  lac_status st = list_sample_shapes(source, err);
  source->list = (laci_calibration_samples){.count = laci_samples_count(s),
                                            .held_back = laci_samples_count_held_back(s),
                                            .judging = laci_samples_count_judging(s),
                                            .shapes = source->shapes,
                                            .axes = source->axes,
                                            .constants = source->constants,
                                            .single = laci_samples_need_batch_of_one(s),
                                            .n_shape_sets = laci_samples_count_shape_sets(s),
                                            .shape_sets = source->shape_sets,
                                            .shape_set_of = source->shape_set_of,
                                            .fetch = laci_calibration_fetch_samples,
                                            .context = source->samples};
  return st;
}

void laci_calibration_clear_list(laci_calibration_source *source) {
  laci_free(source->shapes);
  laci_free(source->axes);
  laci_free((void *)source->constants);
  laci_free((void *)source->shape_sets);
  laci_free(source->shape_set_of);
  source->shapes = NULL;
  source->axes = NULL;
  source->constants = NULL;
  source->shape_sets = NULL;
  source->shape_set_of = NULL;
}

lac_status laci_calibration_parse_constants(const lac_calibration *c,
                                            laci_sample_constant **constants, laci_arena *arena,
                                            lac_error *err) {
  if (c->n_constants < 0 || (c->n_constants > 0 && !c->constants)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "n_constants is %d, and constants is%s NULL",
                     c->n_constants, c->constants ? " not" : "");
  }
  *constants = laci_arena_alloc(arena, (size_t)c->n_constants + 1, sizeof **constants);
  if (!*constants) return laci_fail_memory(err, "the constants");
  for (int k = 0; k < c->n_constants; k++) {
    const char *text = c->constants[k], *equals = text ? strrchr(text, '=') : NULL;
    char *end = NULL;
    const double value = equals ? strtod(equals + 1, &end) : 0;
    if (!equals || equals == text || end == equals + 1 || *end || !isfinite(value))
      return laci_fail(err, LAC_BAD_ARGUMENT,
                       "constant \"%s\": wanted NAME=NUMBER, such as sr=16000", text ? text : "");
    char *name = laci_arena_text_n(arena, text, (size_t)(equals - text));
    if (!name) return laci_fail_memory(err, "the constants");
    (*constants)[k] = (laci_sample_constant){name, value};
  }
  return LAC_OK;
}
