/* SPDX-License-Identifier: Apache-2.0
 * Computes the learning rate of step s from its number alone. So a run that continues from a
 * checkpoint has the same rates as an uninterrupted one.
 *
 *     s < W          rate (s + 1) / W                                     warm-up, W steps
 *     constant       rate
 *     piecewise      rate factor[k], k the last stage with s >= from[k]   (before all: rate)
 *     cosine         end + (rate - end) (1 + cos(pi x)) / 2               x = (s - W) / (T - W),
 *     polynomial     end + (rate - end) (1 - x)^power                     held inside 0 .. 1 */
#ifndef LACI_TRAIN_SCHEDULE_H
#define LACI_TRAIN_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef enum laci_schedule_kind {
#define LACI_SCHEDULE(name, text) LACI_SCHEDULE_##name,
#include "train/schedule.def"
#undef LACI_SCHEDULE
  LACI_SCHEDULE_COUNT
} laci_schedule_kind;

const char *laci_schedule_kind_name(laci_schedule_kind kind);
/** Finds a kind of schedule by its name. Returns false if there is none. */
bool laci_schedule_find_kind(const char *name, laci_schedule_kind *kind);

enum { LACI_SCHEDULE_MAX_STAGES = 8 };

typedef struct laci_schedule_stage {
  int64_t from; /* number of the first step of the stage; it ascends from stage to stage */
  double factor;
} laci_schedule_stage;

typedef struct laci_schedule {
  laci_schedule_kind kind;
  double rate, end_rate; /* rate: learning rate after the warm-up. end_rate: learning rate at the
                            last step of the schedules cosine and polynomial */
  double power;          /* exponent of the schedule polynomial, > 0 */
  int64_t steps;         /* T: number of steps in the whole training; only cosine and polynomial
                            need it */
  int64_t warmup_steps;  /* W: number of steps in the warm-up; less than T if the schedule needs
                            T */
  int n_stages;
  laci_schedule_stage stages[LACI_SCHEDULE_MAX_STAGES];
} laci_schedule;

/** Fails with LAC_BAD_ARGUMENT if a field is out of its limits. */
LAC_MUST_CHECK lac_status laci_schedule_check(const laci_schedule *schedule, lac_error *err);

/** Returns the learning rate of step number `step`; the first step is 0. */
double laci_schedule_rate(const laci_schedule *schedule, int64_t step);

#endif
