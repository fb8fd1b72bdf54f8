/* SPDX-License-Identifier: Apache-2.0
 * Sessions in a forked process, which has only the thread that forked. No other thread may hold a
 * lock at the moment of the fork. The new process must not wait for engines that other threads were
 * using. */
#include "api/run/session_in.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list; taken before a
                                                            session's lock */
static lac_session *sessions;
static pthread_once_t registered = PTHREAD_ONCE_INIT;

static void lock_sessions_before_fork(void) {
  pthread_mutex_lock(&lock);
  for (lac_session *s = sessions; s; s = s->next) laci_session_plans_before_fork(s);
}

static void unlock_sessions_after_fork(void) {
  for (lac_session *s = sessions; s; s = s->next) laci_session_plans_after_fork(s);
  pthread_mutex_unlock(&lock);
}

static void clean_up_in_child(void) {
  for (lac_session *s = sessions; s; s = s->next) laci_session_plans_in_child(s);
  pthread_mutex_unlock(&lock);
}

/* The handlers are removed when the library is unloaded. If registering them fails for want of
 * memory, a fork is as unsafe as in any program with locks. */
static void register_handlers(void) {
  (void)pthread_atfork(lock_sessions_before_fork, unlock_sessions_after_fork, clean_up_in_child);
}

void laci_session_list_add(lac_session *session) {
  (void)pthread_once(&registered, register_handlers);
  pthread_mutex_lock(&lock);
  session->next = sessions;
  sessions = session;
  pthread_mutex_unlock(&lock);
}

void laci_session_list_remove(lac_session *session) {
  pthread_mutex_lock(&lock);
  lac_session **at = &sessions;
  while (*at != session) at = &(*at)->next;
  *at = session->next;
  pthread_mutex_unlock(&lock);
}
