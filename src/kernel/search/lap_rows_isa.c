/* SPDX-License-Identifier: Apache-2.0
 * lap_rows.h for every instruction set: the build compiles this once for each (variants.h).
 *
 * `lanes` is a vector of the compiler's, as wide as a register. Comparisons give -1 or 0 in each
 * lane, so a choice is two ands and an or. Each lane keeps its smallest value and the step in which
 * it was found. At the end, the lowest index among the lanes with the least value is chosen. */
#include <string.h>

#include "kernel/search/lap_rows.h"

#if defined(__AVX512F__)
enum { LANES = 16 };
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef int32_t lanes __attribute__((vector_size(4 * LANES)));

/* Arrays are aligned to their elements only. */
#define LOAD(to, from) memcpy(&(to), (from), sizeof(lanes))
#define STORE(to, from) memcpy((to), &(from), sizeof(lanes))
#define CHOOSE(mask, yes, no) (((yes) & (mask)) | ((no) & ~(mask)))

static const int32_t lane_numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static int32_t smallest_lane(const lanes *x) {
  int32_t smallest = INT32_MAX;
  for (int k = 0; k < LANES; k++) smallest = (*x)[k] < smallest ? (*x)[k] : smallest;
  return smallest;
}

/* Returns the lowest index of an element that equals `value`, among the lanes that hold it; `step`
 * is where each lane found it. */
static int find_first_index(const lanes *x, const lanes *step, int32_t value) {
  lanes index;
  LOAD(index, lane_numbers);
  index += *step * LANES;
  lanes equal = *x == value;
  index = CHOOSE(equal, index, (lanes){0} + INT32_MAX);
  return smallest_lane(&index);
}

static laci_two_smallest find_two_smallest_costs(const int32_t *row, const int32_t *price, int n) {
  lanes r, p, step = {0}, at = {0};
  LOAD(r, row);
  LOAD(p, price);
  lanes smallest = r - p, second = smallest - smallest + INT32_MAX;
  for (int j = LANES; j < n; j += LANES) {
    LOAD(r, row + j);
    LOAD(p, price + j);
    step += 1;
    lanes x = r - p, lower = x < smallest;
    lanes other = CHOOSE(lower, smallest, x); /* the larger of both */
    lanes nearer = other < second;
    second = CHOOSE(nearer, other, second);
    smallest = CHOOSE(lower, x, smallest);
    at = CHOOSE(lower, step, at);
  }
  laci_two_smallest out = {.least = smallest_lane(&smallest), .second = INT32_MAX};
  out.at = find_first_index(&smallest, &at, out.least);
  lanes winner;
  LOAD(winner, lane_numbers);
  winner = winner == out.at % LANES;
  lanes rest = CHOOSE(winner, second, smallest);
  lanes smaller = rest < second;
  rest = CHOOSE(smaller, rest, second);
  out.second = smallest_lane(&rest);
  return out;
}

static int32_t find_smallest_cost(const int32_t *row, const int32_t *price, int n) {
  lanes found = (lanes){0} + INT32_MAX;
  for (int j = 0; j < n; j += LANES) {
    lanes r, p;
    LOAD(r, row + j);
    LOAD(p, price + j);
    lanes x = r - p, smaller = x < found;
    found = CHOOSE(smaller, x, found);
  }
  return smallest_lane(&found);
}

static void lower_distances(const laci_lap_offer *offer, int32_t *smallest, int32_t *from, int n) {
  for (int j = 0; j < n; j += LANES) {
    lanes x, l, f;
    LOAD(x, offer->row + j);
    x -= offer->shift;
    LOAD(l, smallest + j);
    LOAD(f, from + j);
    lanes smaller = x < l, here = smaller & offer->i;
    l = CHOOSE(smaller, x, l);
    f = here | (f & ~smaller);
    STORE(smallest + j, l);
    STORE(from + j, f);
  }
}

/* Paths to finished columns never become shorter, so only the search for the nearest column has to
 * skip them: `mark` raises their distance to the maximum. */
static int lower_distances_and_find_nearest(const laci_lap_frontier *frontier, const int32_t *row,
                                            int32_t i, int32_t base) {
  const int32_t *price = frontier->price, *marks = frontier->mark;
  int32_t *distances = frontier->distance, *parents = frontier->parent;
  lanes nearest = (lanes){0} + INT32_MAX, at = {0}, step = {0};
  for (int j = 0, n = frontier->n; j < n; j += LANES) {
    lanes r, p, distance, parent, mark;
    LOAD(r, row + j);
    LOAD(p, price + j);
    LOAD(distance, distances + j);
    LOAD(parent, parents + j);
    LOAD(mark, marks + j);
    lanes through = r - p + base, shorter = through < distance, here = shorter & i;
    distance = CHOOSE(shorter, through, distance);
    parent = here | (parent & ~shorter);
    STORE(distances + j, distance);
    STORE(parents + j, parent);
    lanes hidden = mark > distance, key = CHOOSE(hidden, mark, distance);
    lanes nearer = key < nearest;
    nearest = CHOOSE(nearer, key, nearest);
    at = CHOOSE(nearer, step, at);
    step += 1;
  }
  return find_first_index(&nearest, &at, smallest_lane(&nearest));
}

const laci_lap_rows LACI_VARIANT(laci_lap_rows) = {
    find_two_smallest_costs, find_smallest_cost, lower_distances, lower_distances_and_find_nearest};
