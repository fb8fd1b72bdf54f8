/* SPDX-License-Identifier: Apache-2.0
 * What the proof feeds its two runs: sizes, inputs, parameters. Private to prove. */
#ifndef LACI_PROVE_PROVE_IN_H
#define LACI_PROVE_PROVE_IN_H

#include "graph/graph.h"

/** A size for every symbol of the graph. `attempt` counts from 0; false: there is nothing left to try.
 *  Batch-like sizes are 2, the others go through a list from small to large. */
bool laci_choose_sizes(const laci_graph *graph, int attempt, int64_t *size_of_symbol);

/** Random content for a value of that type (symbols replaced): floats around 0, booleans, and integers below the size of
 *  what they index. Fails LAC_UNSUPPORTED where the rank is not known. */
LAC_MUST_CHECK lac_status laci_random_value(const laci_graph *graph, int value,
                                            const int64_t *size_of_symbol, uint64_t seed,
                                            laci_buf **buf, lac_error *err);

/** Draws float parameters anew, keeping their sign where all are >= 0, and their size. One number stays as it is (a bound, an
 *  exponent, a scale). Depends on (seed, stored, index) alone. */
void laci_redraw(laci_buf *buf, int stored, uint64_t seed);

#endif
