/* SPDX-License-Identifier: Apache-2.0
 * Adds the steps of parts to the profile of a session of ONNX Runtime, 1.25 and later. */
#ifndef LAC_ORT_PROFILE_H
#define LAC_ORT_PROFILE_H

#include <pthread.h>

#include "lacuna/session.h"
#include "table.h"

typedef struct laci_ort_profiler laci_ort_profiler;

/** The profilers of one session. */
typedef struct laci_ort_profiles {
  const laci_ort *ort;
  pthread_mutex_t lock;
  laci_ort_profiler *first; /* list of profilers; guarded by `lock` */
  int n_started;            /* number of profilers that are started; atomic */
} laci_ort_profiles;

/** Returns false where there is no memory for the lock. */
bool laci_ort_profiles_init(laci_ort_profiles *profiles, const laci_ort *ort);
/** Frees the list. Profilers that ONNX Runtime has not released yet stay valid, and add no more
 * events. */
void laci_ort_profiles_clear(laci_ort_profiles *profiles);

/** Makes a profiler, which ONNX Runtime releases. */
LAC_MUST_CHECK lac_status laci_ort_profiles_add_profiler(laci_ort_profiles *profiles,
                                                         ort_profiler **made, lac_error *err);
/** Is a profiler started, so that steps have to be added? May be called by any thread. */
bool laci_ort_profiles_are_started(const laci_ort_profiles *profiles);

/** Adds a step to all profilers that have been started. For lac_session_watch, with the
 * laci_ort_profiles as its context. */
lac_on_step laci_ort_profiles_add_step;

#endif
