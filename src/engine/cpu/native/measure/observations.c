/* SPDX-License-Identifier: Apache-2.0
 * Collects observations: the times that tuning stores under the names of layers. */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/timings.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/measure/measure.h"

static lac_status add_observation(laci_measured *m, const laci_net *net,
                                  const laci_native_layer *layer, laci_algorithm_id id,
                                  lac_error *err) {
  if (!laci_grow((void **)&m->observations, m->n, &m->capacity, sizeof *m->observations)) {
    return laci_fail_memory(err, "times of layers");
  }
  m->observations[m->n++] = (laci_observation){net, layer, id, INFINITY};
  return LAC_OK;
}

lac_status laci_measured_add_net(laci_measured *m, laci_net *net, bool reorders, lac_error *err) {
  const laci_native_net *native = net->native;
  net->costs = m->costs;
  if (!native) return LAC_OK;
  lac_status st = LAC_OK;
  if (reorders) st = add_observation(m, net, NULL, LACI_ALGORITHM_dense, err);
  for (int at = 0; !st && at < native->n_layers; at++) {
    for (int id = 0; !st && id < LACI_N_ALGORITHMS; id++) {
      if (!laci_native_algorithm_can_compute(net, &native->layers[at], id)) continue;
      st = add_observation(m, net, &native->layers[at], id, err);
    }
  }
  return st;
}

void laci_measured_update_times(laci_measured *m, size_t first, size_t last,
                                const laci_timings *timings) {
  for (size_t at = first; at < last; at++) {
    laci_observation *o = &m->observations[at];
    char name[LACI_NATIVE_NAME];
    double seconds;
    laci_native_layer_name(o->net, o->layer, o->algorithm, name);
    if (laci_timings_find(timings, name, &seconds)) o->seconds = fmin(o->seconds, seconds);
  }
}

void laci_measured_drop_untimed(laci_measured *m) {
  size_t n = 0;
  for (size_t at = 0; at < m->n; at++) {
    const double seconds = m->observations[at].seconds;
    if (isfinite(seconds) && seconds > 0) m->observations[n++] = m->observations[at];
  }
  m->n = n;
}
