/* SPDX-License-Identifier: Apache-2.0
 * The plans of a session.
 *
 * A plan has a key, the shapes of all inputs, and one or more engines, which compute the same. A
 * call takes an idle engine, or makes one, or waits in the plan's queue. An engine that is given
 * back goes to the first call of that queue, so that no call waits forever.
 *
 * Memory. A plan that is being made may take half of the free memory, so that several can be made
 * at the same time within the limit. If one needs more, it is made alone, with all the free memory,
 * and the least recently used plans are dropped until it fits. The call that does so is the seeker.
 * While it waits, later calls wait at the gate, so that the engines in use are given back. */
#include <string.h>

#include "api/run/infer.h"
#include "api/run/session_in.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/memory.h"

/* A call that waits in the queue of a plan. */
typedef struct waiter {
  struct waiter *next;
  pthread_cond_t woken;
  laci_session_engine *engine; /* the engine that it was given */
  bool again;                  /* it was woken without an engine, and must look for one again */
} waiter;

struct laci_session_plan {
  laci_session_plan *next;
  uint64_t hash;
  laci_shape *shapes;        /* [n_inputs] shapes of the inputs, the plan's key */
  laci_session_engine *idle; /* engines that nobody runs */
  int n_engines, n_busy;
  int n_making;        /* number of engines that are being made; the first one creates the plan */
  uint64_t used;       /* value of laci_session_plans.tick at its last use */
  bool copy_refused;   /* there was no memory for a further copy of an engine */
  uint64_t refused_at; /* value of n_dropped when the copy was refused: after a further plan was
                          dropped, it is tried again */
  waiter *waiting, **last;
};

/* ---- Engines ---- */

static void destroy_engine(laci_session_engine *e) {
  for (int at = 0; e->converted && at < e->n_inputs; at++) laci_free(e->converted[at]);
  for (int at = 0; e->results && at < e->n_outputs; at++) laci_free(e->results[at]);
  laci_free((void *)e->in);
  laci_free((void *)e->out);
  laci_free((void *)e->allocated);
  laci_free(e->times);
  laci_free((void *)e->converted);
  laci_free((void *)e->results);
  lac_engine_destroy(e->engine);
  laci_free(e);
}

static lac_status create_engine(lac_session *s, const laci_shape *shapes, uint64_t share,
                                laci_session_engine **engine, lac_error *err) {
  laci_budget budget = s->base ? *s->base : (laci_budget){0};
  const uint64_t before = budget.needed;
  budget.limit = share;
  lac_engine_options options = s->options;
  *engine = NULL;
  laci_session_engine *e = laci_alloc(1, sizeof *e);
  lac_engine_shape *given = laci_alloc((size_t)s->n_inputs, sizeof *given);
  lac_status st = e && given ? LAC_OK : laci_fail_memory(err, "an engine of the session");
  for (int at = 0; at < s->n_inputs && !st; at++) {
    given[at] = (lac_engine_shape){.name = s->inputs[at].name, .rank = shapes[at].rank};
    memcpy(given[at].shape, shapes[at].dims, sizeof given[at].shape);
  }
  options.shapes = given;
  options.n_shapes = s->n_inputs;
  const laci_parallel *parallel = s->parallel.run ? &s->parallel : NULL;
  const bool timed = options.run.tuning != LAC_TUNING_OFF;
  if (timed) pthread_mutex_lock(&s->plans.tuning);
  if (!st) st = laci_model_create_engine(s->view, &options, parallel, &budget, &e->engine, err);
  if (timed) pthread_mutex_unlock(&s->plans.tuning);
  laci_free(given);
  if (!st) {
    e->bytes = budget.needed - before;
    e->n_inputs = lac_engine_inputs(e->engine, &e->inputs);
    e->n_outputs = lac_engine_outputs(e->engine, &e->outputs);
    e->in = laci_alloc((size_t)e->n_inputs, sizeof *e->in);
    e->out = laci_alloc((size_t)e->n_outputs, sizeof *e->out);
    e->allocated = laci_alloc((size_t)e->n_outputs, sizeof *e->allocated);
    e->converted = laci_alloc((size_t)e->n_inputs, sizeof *e->converted);
    e->results = laci_alloc((size_t)e->n_outputs, sizeof *e->results);
    bool whole = e->in && e->out && e->allocated && e->converted && e->results;
    if (!whole) st = laci_fail_memory(err, "an engine of the session");
  }
  if (!st) *engine = e;
  else if (e) destroy_engine(e);
  return st;
}

/* ---- The list; all of this under the lock ---- */

static uint64_t hash_shapes(const laci_shape *shapes, int n) {
  uint64_t hash = 0;
  for (int at = 0; at < n; at++) {
    const size_t size_bytes = (size_t)shapes[at].rank * sizeof *shapes[at].dims;
    hash = laci_hash64(shapes[at].dims, size_bytes, hash);
  }
  return hash;
}

static bool plan_has_shapes(const laci_session_plan *plan, const laci_shape *shapes, int n) {
  for (int at = 0; at < n; at++) {
    if (!laci_shape_equal(&plan->shapes[at], &shapes[at])) return false;
  }
  return true;
}

static laci_session_plan *find_plan(lac_session *s, uint64_t hash, const laci_shape *shapes) {
  laci_session_plan *plan = s->plans.first;
  while (plan && (plan->hash != hash || !plan_has_shapes(plan, shapes, s->n_inputs)))
    plan = plan->next;
  return plan;
}

static laci_session_plan *add_plan(lac_session *s, uint64_t hash, const laci_shape *shapes) {
  laci_session_plan *plan = laci_alloc(1, sizeof *plan);
  laci_shape *copy = laci_alloc((size_t)s->n_inputs, sizeof *copy);
  if (!plan || !copy) {
    laci_free(plan);
    laci_free(copy);
    return NULL;
  }
  if (s->n_inputs) memcpy(copy, shapes, (size_t)s->n_inputs * sizeof *copy);
  *plan = (laci_session_plan){.next = s->plans.first, .hash = hash, .shapes = copy};
  plan->last = &plan->waiting;
  s->plans.first = plan;
  s->plans.n_plans++;
  return plan;
}

static void unlink_plan(laci_session_plans *p, const laci_session_plan *plan) {
  laci_session_plan **at = &p->first;
  while (*at != plan) at = &(*at)->next;
  *at = plan->next;
  p->n_plans--;
}

static void free_plan(laci_session_plan *plan) {
  while (plan->idle) {
    laci_session_engine *e = plan->idle;
    plan->idle = e->next;
    destroy_engine(e);
  }
  laci_free(plan->shapes);
  laci_free(plan);
}

static void wake_all_waiters(laci_session_plan *plan) {
  for (waiter *w = plan->waiting; w; w = w->next) {
    w->again = true;
    pthread_cond_signal(&w->woken);
  }
  plan->waiting = NULL;
  plan->last = &plan->waiting;
}

static laci_session_plan *find_least_recent_idle_plan(const laci_session_plans *p) {
  laci_session_plan *found = NULL;
  for (laci_session_plan *plan = p->first; plan; plan = plan->next) {
    bool at_rest = plan->n_busy == 0 && plan->n_making == 0 && !plan->waiting;
    if (at_rest && (!found || plan->used < found->used)) found = plan;
  }
  return found;
}

/* Drops the least recently used plan that no call uses, and frees it without the lock; false: there
 * is none. The lists may have changed when it returns. */
static bool drop_least_recent_plan(laci_session_plans *p) {
  laci_session_plan *plan = find_least_recent_idle_plan(p);
  uint64_t bytes = 0;
  if (!plan) return false;
  unlink_plan(p, plan);
  for (const laci_session_engine *e = plan->idle; e; e = e->next) bytes += e->bytes;
  const int n = plan->n_engines;
  p->n_working++;
  pthread_mutex_unlock(&p->lock);
  laci_log(LAC_LOG_DEBUG,
           "session: the plan used least recently is dropped: %d engine%s, %llu bytes", n,
           n == 1 ? "" : "s", (unsigned long long)bytes);
  free_plan(plan);
  pthread_mutex_lock(&p->lock);
  p->n_working--;
  p->n_engines -= n;
  p->planned_bytes -= bytes;
  p->n_dropped++;
  pthread_cond_broadcast(&p->freed);
  return true;
}

/* ---- Taking ---- */

static lac_status fail_with_copy(lac_status st, const lac_error *why, lac_error *err) {
  if (err) *err = *why;
  return st;
}

/* The state of one call of laci_session_take_engine. */
typedef struct taking {
  lac_session *session;
  const laci_shape *shapes;
  uint64_t hash;
  bool seeks;                  /* this call is the seeker: it waits for memory, and later calls wait
                                  for it */
  bool alone;                  /* half of the free memory was not enough, so that the plan is made
                                  alone */
  laci_session_engine *engine; /* the engine that was taken; NULL: none yet */
} taking;

static void stop_seeking_memory(taking *t) {
  laci_session_plans *p = &t->session->plans;
  if (!t->seeks) return;
  t->seeks = p->sought = false;
  pthread_cond_broadcast(&p->gate);
}

static void wait_while_others_seek(const taking *t) {
  laci_session_plans *p = &t->session->plans;
  while (p->sought && !t->seeks) pthread_cond_wait(&p->gate, &p->lock);
}

/* Becomes the seeker, and waits until an engine is given back or other work has ended. */
static void seek_memory_and_wait(taking *t) {
  laci_session_plans *p = &t->session->plans;
  t->seeks = p->sought = true;
  pthread_cond_wait(&p->freed, &p->lock);
}

/* Makes an engine of a plan that is in the list, within `share` bytes, without the lock. On success
 * the caller owns it. */
static lac_status make_engine_unlocked(taking *t, laci_session_plan *plan, uint64_t share,
                                       lac_error *err) {
  laci_session_plans *p = &t->session->plans;
  laci_session_engine *e;
  const bool is_copy = plan->n_engines > 0;
  plan->n_making++;
  p->n_working++;
  p->promised += share;
  pthread_mutex_unlock(&p->lock);
  lac_status st = create_engine(t->session, t->shapes, share, &e, err);
  if (!st && !is_copy) laci_log_exact_part(e->engine);
  pthread_mutex_lock(&p->lock);
  p->promised -= share;
  p->n_working--;
  plan->n_making--;
  pthread_cond_broadcast(&p->freed);
  if (st) return st;
  e->plan = plan;
  p->planned_bytes += e->bytes;
  p->n_engines++;
  plan->n_engines++;
  plan->n_busy++;
  t->engine = e;
  return LAC_OK;
}

static uint64_t count_free_bytes(const laci_session_plans *p) {
  const uint64_t taken = p->planned_bytes + p->promised;
  return taken < p->limit ? p->limit - taken : 0;
}

/* Waits in the plan's queue for an engine. May return without one; the caller then looks again. */
static void wait_for_engine_of_plan(taking *t, laci_session_plan *plan) {
  laci_session_plans *p = &t->session->plans;
  waiter w = {0};
  pthread_cond_init(&w.woken, NULL); /* never fails with default attributes */
  *plan->last = &w;
  plan->last = &w.next;
  while (!w.engine && !w.again) pthread_cond_wait(&w.woken, &p->lock);
  pthread_cond_destroy(&w.woken);
  t->engine = w.engine;
}

static bool may_add_engine(const laci_session_plans *p, const laci_session_plan *plan) {
  if (plan->n_engines == 0 || plan->n_engines + plan->n_making >= p->most_copies) return false;
  return !plan->copy_refused || plan->refused_at != p->n_dropped;
}

/* Takes an engine of a plan that is in the list. May return without one; the caller then looks
 * again. */
static lac_status try_take_engine(taking *t, laci_session_plan *plan, lac_error *err) {
  laci_session_plans *p = &t->session->plans;
  stop_seeking_memory(t);
  plan->used = ++p->tick;
  if (plan->idle) {
    t->engine = plan->idle;
    plan->idle = t->engine->next;
    plan->n_busy++;
    return LAC_OK;
  }
  if (!may_add_engine(p, plan)) {
    wait_for_engine_of_plan(t, plan);
    return LAC_OK;
  }
  lac_error why = {0};
  lac_status st = make_engine_unlocked(t, plan, count_free_bytes(p) / 2, &why);
  if (!st) {
    p->n_copied++;
    return LAC_OK;
  }
  if (st != LAC_MEMORY_LIMIT && st != LAC_NO_MEMORY) return fail_with_copy(st, &why, err);
  plan->copy_refused = true; /* the engines that exist must suffice */
  plan->refused_at = p->n_dropped;
  return LAC_OK;
}

/* Makes a plan. It is in the list already while it is made. */
static lac_status make_plan_in_list(taking *t, uint64_t share, lac_error *err) {
  laci_session_plans *p = &t->session->plans;
  laci_session_plan *plan = add_plan(t->session, t->hash, t->shapes);
  if (!plan) return laci_fail_memory(err, "a plan of the session");
  plan->used = ++p->tick;
  lac_status st = make_engine_unlocked(t, plan, share, err);
  wake_all_waiters(plan);
  if (!st) {
    p->n_planned++;
    return LAC_OK;
  }
  unlink_plan(p, plan);
  free_plan(plan);
  return st;
}

/* Makes a plan that is not in the list. May return without one, after a wait or after memory was
 * freed; the caller then looks again. */
static lac_status try_make_plan(taking *t, lac_error *err) {
  laci_session_plans *p = &t->session->plans;
  if (p->n_plans >= p->most_plans) {
    if (!drop_least_recent_plan(p)) seek_memory_and_wait(t);
    return LAC_OK;
  }
  if (t->alone && p->n_working > 0) {
    seek_memory_and_wait(t);
    return LAC_OK;
  }
  if (t->alone) t->seeks = p->sought = true;
  lac_error why = {0};
  lac_status st =
      make_plan_in_list(t, t->alone ? count_free_bytes(p) : count_free_bytes(p) / 2, &why);
  if (st == LAC_MEMORY_LIMIT && !t->alone) {
    t->alone = true;
    return LAC_OK;
  }
  if (st == LAC_MEMORY_LIMIT && p->planned_bytes > 0) {
    while (!drop_least_recent_plan(p)) seek_memory_and_wait(t);
    return LAC_OK;
  }
  return st ? fail_with_copy(st, &why, err) : LAC_OK;
}

lac_status laci_session_take_engine(lac_session *session, const laci_shape *shapes,
                                    laci_session_engine **engine, lac_error *err) {
  laci_session_plans *p = &session->plans;
  taking t = {.session = session, .shapes = shapes, .hash = hash_shapes(shapes, session->n_inputs)};
  lac_status st = LAC_OK;
  pthread_mutex_lock(&p->lock);
  while (!t.engine && !st) {
    wait_while_others_seek(&t);
    laci_session_plan *plan = find_plan(session, t.hash, shapes);
    st = plan ? try_take_engine(&t, plan, err) : try_make_plan(&t, err);
  }
  stop_seeking_memory(&t);
  pthread_mutex_unlock(&p->lock);
  *engine = t.engine;
  return st;
}

void laci_session_give_back(lac_session *session, laci_session_engine *engine) {
  laci_session_plans *p = &session->plans;
  laci_session_plan *plan = engine->plan;
  pthread_mutex_lock(&p->lock);
  waiter *first = plan->waiting;
  if (first) {
    plan->waiting = first->next;
    if (!first->next) plan->last = &plan->waiting;
    first->engine = engine;
    pthread_cond_signal(&first->woken);
  } else {
    engine->next = plan->idle;
    plan->idle = engine;
    plan->n_busy--;
    if (p->sought) pthread_cond_broadcast(&p->freed);
  }
  pthread_mutex_unlock(&p->lock);
}

/* ---- All plans ---- */

void laci_session_plans_init(lac_session *session, int n_plans, int n_copies) {
  laci_session_plans *p = &session->plans;
  const laci_budget budget = laci_budget_with_limit(session->options.run.max_memory);
  *p = (laci_session_plans){.most_plans = n_plans, .most_copies = n_copies, .limit = budget.limit};
  pthread_mutex_init(&p->tuning, NULL); /* these never fail with default attributes */
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->gate, NULL);
  pthread_cond_init(&p->freed, NULL);
}

void laci_session_plans_clear(lac_session *session) {
  laci_session_plans *p = &session->plans;
  while (p->first) {
    laci_session_plan *plan = p->first;
    p->first = plan->next;
    free_plan(plan);
  }
  pthread_cond_destroy(&p->freed);
  pthread_cond_destroy(&p->gate);
  pthread_mutex_destroy(&p->lock);
  pthread_mutex_destroy(&p->tuning);
}

void laci_session_plans_add_facts(lac_session *session, lac_session_facts *facts) {
  laci_session_plans *p = &session->plans;
  pthread_mutex_lock(&p->lock);
  facts->n_plans = p->n_plans;
  facts->n_engines = p->n_engines;
  facts->n_planned = p->n_planned;
  facts->n_copied = p->n_copied;
  facts->n_dropped = p->n_dropped;
  facts->bytes = p->planned_bytes;
  facts->max_memory = p->limit;
  pthread_mutex_unlock(&p->lock);
}

/* ---- Fork ---- */

void laci_session_plans_before_fork(lac_session *session) {
  pthread_mutex_lock(&session->plans.lock);
}

void laci_session_plans_after_fork(lac_session *session) {
  pthread_mutex_unlock(&session->plans.lock);
}

void laci_session_plans_in_child(lac_session *session) {
  laci_session_plans *p = &session->plans;
  uint64_t idle_bytes = 0;
  p->n_engines = 0;
  for (laci_session_plan *plan = p->first, *next; plan; plan = next) {
    next = plan->next;
    plan->n_engines = plan->n_busy = plan->n_making = 0;
    plan->waiting = NULL;
    plan->last = &plan->waiting;
    for (const laci_session_engine *e = plan->idle; e; e = e->next) {
      plan->n_engines++;
      idle_bytes += e->bytes;
    }
    p->n_engines += plan->n_engines;
    if (!plan->idle) unlink_plan(p, plan); /* its engines, if any, are another thread's */
  }
  const uint64_t lost = p->planned_bytes - idle_bytes;
  p->limit = lost < p->limit ? p->limit - lost : 1;
  p->planned_bytes = idle_bytes;
  p->promised = 0;
  p->n_working = 0;
  p->sought = false;
  pthread_cond_init(&p->gate, NULL); /* threads that do not exist here may have waited */
  pthread_cond_init(&p->freed, NULL);
  pthread_mutex_init(&p->tuning, NULL);
  pthread_mutex_unlock(&p->lock);
}
