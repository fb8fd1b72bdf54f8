/* SPDX-License-Identifier: Apache-2.0
 * Which samples are taken, and in what order: place p of those to work with is sample
 * shuffle(p mod k), for k of them, in its copy p / k; after these come the ones held back, and at
 * last those that judge. */
#include "data/samples_in.h"
#include "data/shuffle.h"

int64_t laci_samples_place(const laci_samples *s, int64_t place, int *copy) {
  int64_t worked_on = s->count - s->held_back, distinct = s->taken - s->held_back;
  bool held = place >= worked_on;
  *copy = held ? 0 : (int)(place / distinct);
  int64_t at = held ? distinct + (place - worked_on) : place % distinct;
  return laci_shuffle(s->options.seed, 0, s->available, at);
}
