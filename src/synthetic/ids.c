/* SPDX-License-Identifier: Apache-2.0 */
#include "synthetic/ids.h"

#include <math.h>

#include "base/rng.h"
#include "synthetic/random.h"

/* Parameters of random token ids that are like a text: the limit of the length of a run of ids; the
 * probability that an earlier run is repeated (AGAIN); and how far back that run may be. */
enum { LONGEST_RUN = 8, FARTHEST = 256 };
static const double AGAIN = 0.6;
static const uint64_t ALPHABET = (uint64_t)1
                                 << 62; /* added to the number of a text's random stream, which
                                           gives the stream that draws the text's set of ids */

static int64_t draw_number_below(laci_random *random, int64_t n) {
  return (int64_t)laci_rng_integer_below(random->seed, random->stream, random->next++, (uint64_t)n);
}

static void draw_like_text(laci_random *random, int64_t below, int64_t n, int64_t *to) {
  const double different = exp(laci_random_between(random, log(4), log((double)below)));
  const uint64_t alphabet = random->stream + ALPHABET;
  for (int64_t k = 0; k < n;) {
    const int64_t end = k + 1 + draw_number_below(random, LONGEST_RUN);
    const int64_t back = k > 0 && laci_random_chance(random, AGAIN)
                             ? 1 + draw_number_below(random, k < FARTHEST ? k : FARTHEST)
                             : 0;
    for (; k < end && k < n; k++) {
      const double rank = laci_random_between(random, 0, 1);
      to[k] = back > 0 ? to[k - back]
                       : (int64_t)laci_rng_integer_below(random->seed, alphabet,
                                                         (uint64_t)(rank * rank * different),
                                                         (uint64_t)below);
    }
  }
}

void laci_ids_draw(uint64_t seed, uint64_t stream, bool like_text, int64_t below, int64_t n,
                   int64_t *to) {
  laci_random random = {.seed = seed, .stream = stream};
  if (like_text) {
    draw_like_text(&random, below, n, to);
    return;
  }
  for (int64_t k = 0; k < n; k++) to[k] = draw_number_below(&random, below);
}
