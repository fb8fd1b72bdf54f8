/* SPDX-License-Identifier: Apache-2.0
 * Threads that stay together for a series of short loops, each of which needs the one before.
 *
 * A loop of a pool calls its threads and waits for all of them. That takes longer than a short loop
 * itself, above all on a busy machine. In a crew, one thread leads: it runs all that is between the
 * loops. The other threads spin until there is a loop, and take its parts one by one. The leader
 * takes parts, too, and waits only for parts that another thread has begun. So a crew works even if
 * no other thread ever comes. Each thread begins with its own part, whose data are in its cache. */
#ifndef LACI_CPU_CREW_H
#define LACI_CPU_CREW_H

#include "cpu/pool.h"

typedef struct laci_crew laci_crew;

/** A caller's function that runs all loops of a series (by laci_crew_for), on the leader's
 * thread. */
typedef void laci_crew_lead(laci_crew *crew, void *context);
/** A caller's function that computes part `part`, 0 to n - 1, of a loop. The parts of a loop run at
 * the same time. */
typedef void laci_crew_body(int part, int n, void *context);

/** Runs `lead` on one of the pool's threads, and returns when it has returned. Allocates nothing.
 * pool NULL: the caller leads alone. */
void laci_crew_run_leader(laci_pool *pool, laci_crew_lead *lead, void *context);
/** Calls body(part, n) for part 0 to n - 1, each once, and returns when all calls have returned.
 * Called by the leader alone. n is the number of the pool's threads, at most 64. */
void laci_crew_for(laci_crew *crew, laci_crew_body *body, void *context);

#endif
