/* SPDX-License-Identifier: Apache-2.0
 * Profilers: each keeps an event for every step that was run since it was started, and hands them
 * over when it ends. ONNX Runtime gives the time that had passed since its profile began; that time
 * and the system's clock make the beginnings of steps comparable with its own events. */
#define _GNU_SOURCE
#include "profile.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Maximum number of events of a profile, the same as ONNX Runtime's limit for its own events. */
enum { MOST_EVENTS = 1000000 };

struct laci_ort_profiler {
  ort_profiler face; /* first member: ONNX Runtime passes its address */
  const laci_ort *ort;
  laci_ort_profiles *of; /* the profilers of its session; NULL: the session has ended */
  laci_ort_profiler *next;
  bool started;
  double origin; /* seconds of the system's clock at which the profile began */
  ort_event **events;
  size_t n, most;
};

/* Guards the links between profilers and their session's list, since the session may end first. */
static pthread_mutex_t ends = PTHREAD_MUTEX_INITIALIZER;

static double seconds_now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

bool laci_ort_profiles_init(laci_ort_profiles *profiles, const laci_ort *ort) {
  *profiles = (laci_ort_profiles){.ort = ort};
  return pthread_mutex_init(&profiles->lock, NULL) == 0;
}

void laci_ort_profiles_clear(laci_ort_profiles *profiles) {
  (void)pthread_mutex_lock(&ends);
  for (laci_ort_profiler *p = profiles->first; p; p = p->next) p->of = NULL;
  (void)pthread_mutex_unlock(&ends);
  (void)pthread_mutex_destroy(&profiles->lock);
}

bool laci_ort_profiles_are_started(const laci_ort_profiles *profiles) {
  return __atomic_load_n(&profiles->n_started, __ATOMIC_ACQUIRE) > 0;
}

/* ---- Steps ---- */

static bool grow_events(laci_ort_profiler *p) {
  if (p->n < p->most) return true;
  size_t most = p->most ? 2 * p->most : 256;
  ort_event **events = p->n < MOST_EVENTS ? realloc(p->events, most * sizeof(ort_event *)) : NULL;
  if (!events) return false;
  p->events = events;
  p->most = most;
  return true;
}

/** Adds an event. If there is no memory for it, the profile lacks this event. */
static void add_event(laci_ort_profiler *p, const lac_session_step *step) {
  static const char *const keys[] = {"provider", "op_name", "kernel", "sparse"};
  const char *const values[] = {"LacunaExecutionProvider", step->op ? step->op : "",
                                step->kernel ? step->kernel : "", step->sparse ? "1" : "0"};
  const char *name = step->name && *step->name ? step->name : step->op ? step->op : "";
  ort_event *event = NULL;
  if (!grow_events(p)) return;
  ort_status *failed = p->ort->create_event(
      LAC_ORT_KERNEL, (int32_t)getpid(), (int32_t)gettid(), name,
      (int64_t)((step->begin_seconds - p->origin) * 1e6), (int64_t)(step->seconds * 1e6), keys,
      values, sizeof keys / sizeof keys[0], &event);
  if (failed) p->ort->release_status(failed);
  if (!failed && event) p->events[p->n++] = event;
}

void laci_ort_profiles_add_step(void *context, const lac_session_step *step) {
  laci_ort_profiles *profiles = context;
  (void)pthread_mutex_lock(&profiles->lock);
  for (laci_ort_profiler *p = profiles->first; p; p = p->next)
    if (p->started && step->begin_seconds >= p->origin) add_event(p, step);
  (void)pthread_mutex_unlock(&profiles->lock);
}

/* ---- A profiler ---- */

static void free_events(laci_ort_profiler *p) {
  for (size_t k = 0; k < p->n; k++) p->ort->release_event(p->events[k]);
  free(p->events);
  p->events = NULL;
  p->n = p->most = 0;
}

static void set_started(laci_ort_profiler *p, bool started) {
  if (p->of) (void)pthread_mutex_lock(&p->of->lock);
  if (p->of && p->started != started)
    (void)__atomic_fetch_add(&p->of->n_started, started ? 1 : -1, __ATOMIC_RELEASE);
  p->started = started;
  if (p->of) (void)pthread_mutex_unlock(&p->of->lock);
}

static ort_status *start_profile(ort_profiler *self, int64_t passed_ns) {
  laci_ort_profiler *p = (laci_ort_profiler *)self;
  (void)pthread_mutex_lock(&ends);
  p->origin = seconds_now() - (double)passed_ns / 1e9;
  set_started(p, true);
  (void)pthread_mutex_unlock(&ends);
  return NULL;
}

static ort_status *end_profile(ort_profiler *self, ort_events *events) {
  laci_ort_profiler *p = (laci_ort_profiler *)self;
  lac_error err = {0};
  lac_status st = LAC_OK;
  if (!events) return laci_ort_fail_missing(p->ort, "EndProfiling");
  (void)pthread_mutex_lock(&ends);
  set_started(p, false);
  if (p->n)
    st = laci_ort_take_failure(
        p->ort, p->ort->add_events(events, (const ort_event *const *)p->events, p->n), "a profile",
        &err);
  free_events(p);
  (void)pthread_mutex_unlock(&ends);
  return laci_ort_make_status(p->ort, st, &err);
}

static void release_profiler(ort_profiler *self) {
  laci_ort_profiler *p = (laci_ort_profiler *)self;
  (void)pthread_mutex_lock(&ends);
  set_started(p, false);
  if (p->of) {
    (void)pthread_mutex_lock(&p->of->lock);
    laci_ort_profiler **at = &p->of->first;
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    (void)pthread_mutex_unlock(&p->of->lock);
  }
  free_events(p);
  (void)pthread_mutex_unlock(&ends);
  free(p);
}

lac_status laci_ort_profiles_add_profiler(laci_ort_profiles *profiles, ort_profiler **made,
                                          lac_error *err) {
  laci_ort_profiler *p = calloc(1, sizeof *p);
  *made = NULL;
  if (!p) return laci_ort_fail_memory(err);
  p->face = (ort_profiler){.version = LAC_ORT_PROFILES,
                           .release = release_profiler,
                           .start = start_profile,
                           .end = end_profile};
  p->ort = profiles->ort;
  p->of = profiles;
  (void)pthread_mutex_lock(&profiles->lock);
  p->next = profiles->first;
  profiles->first = p;
  (void)pthread_mutex_unlock(&profiles->lock);
  *made = &p->face;
  return LAC_OK;
}
