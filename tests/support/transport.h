/* SPDX-License-Identifier: Apache-2.0
 * A transport between threads of one program, each of which is a process of the group. Answers are
 * delayed at random, so that orders differ from run to run; a process can be made silent. */
#ifndef TESTS_SUPPORT_TRANSPORT_H
#define TESTS_SUPPORT_TRANSPORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lacuna/plugin.h"

enum { MOST_MEMBERS = 8, MOST_OPS = 4096, MOST_WORDS = 4096 };

typedef enum local_kind { LOCAL_NONE, LOCAL_BROADCAST, LOCAL_GATHER, LOCAL_EXCHANGE } local_kind;

/** An operation that all members take part in: number k of a channel. */
typedef struct local_op {
  local_kind kind;
  int n_here, n_done;
  bool copied[MOST_MEMBERS];      /* [k] member k has copied what it receives */
  void *bytes[MOST_MEMBERS];      /* [k] member k's destination, for operations of all kinds */
  const void *from[MOST_MEMBERS]; /* [k] member k's source, for exchanges only */
  size_t begin[MOST_MEMBERS][MOST_MEMBERS + 1];
  size_t n;
} local_op;

typedef struct local_world local_world;

typedef struct local_member {
  lac_transport face;
  local_world *world;
  int n_begun[LAC_CHANNELS];
  unsigned chance;
  int fails_in; /* number of further calls of the transport's test function after which it fails; 0:
                   never */
  int ended;    /* code with which the member was ended; -1: it was not ended yet */
} local_member;

struct local_world {
  pthread_mutex_t lock;
  int size;
  local_op ops[LAC_CHANNELS][MOST_OPS];
  local_member members[MOST_MEMBERS];
  struct {
    int from;
    int64_t word;
  } words[MOST_WORDS];
  int n_words, n_heard;
};

static local_op *local_join(local_member *m, int channel, local_kind kind, void **request) {
  local_op *op = &m->world->ops[channel][m->n_begun[channel]++ % MOST_OPS];
  if (op->kind != LOCAL_NONE && op->kind != kind)
    abort(); /* members have begun operations in different orders */
  op->kind = kind;
  *request = op;
  op->n_here++;
  return op;
}

static int local_broadcast(void *self, int channel, void *bytes, size_t n, void **request) {
  local_member *m = self;
  pthread_mutex_lock(&m->world->lock);
  local_op *op = local_join(m, channel, LOCAL_BROADCAST, request);
  op->bytes[m->face.rank] = bytes;
  op->n = n;
  pthread_mutex_unlock(&m->world->lock);
  return 0;
}

static int local_gather(void *self, int channel, void *all, const size_t *begin, void **request) {
  local_member *m = self;
  pthread_mutex_lock(&m->world->lock);
  local_op *op = local_join(m, channel, LOCAL_GATHER, request);
  op->bytes[m->face.rank] = all;
  memcpy(op->begin[m->face.rank], begin, (size_t)(m->face.size + 1) * sizeof *begin);
  pthread_mutex_unlock(&m->world->lock);
  return 0;
}

static int local_exchange(void *self, int channel, const void *from, const size_t *begin, void *to,
                          void **request) {
  local_member *m = self;
  const int rank = m->face.rank;
  pthread_mutex_lock(&m->world->lock);
  local_op *op = local_join(m, channel, LOCAL_EXCHANGE, request);
  op->from[rank] = from;
  op->bytes[rank] = to;
  memcpy(op->begin[rank], begin, (size_t)(m->face.size + 1) * sizeof *begin);
  pthread_mutex_unlock(&m->world->lock);
  return 0;
}

static void local_take(const local_op *op, int rank, int size) {
  for (int k = 0; k < size; k++) {
    const size_t *begin = op->begin[rank], ours = begin[rank + 1] - begin[rank];
    if (op->kind != LOCAL_BROADCAST && op->begin[k][size] != begin[size]) abort();
    if (op->kind == LOCAL_BROADCAST && k == 0 && rank != 0) {
      memcpy(op->bytes[rank], op->bytes[0], op->n);
    } else if (op->kind == LOCAL_GATHER && k != rank) {
      memcpy((char *)op->bytes[rank] + begin[k], (char *)op->bytes[k] + begin[k],
             begin[k + 1] - begin[k]);
    } else if (op->kind == LOCAL_EXCHANGE) {
      memcpy((char *)op->bytes[rank] + (size_t)k * ours, (const char *)op->from[k] + begin[rank],
             ours);
    }
  }
}

/* Is the group cut? Operations with a process that has left stay pending, since its memory is gone.
 */
static bool local_is_cut(const local_world *w) {
  for (int k = 0; k < w->size; k++) {
    if (w->members[k].ended > 0) return true;
  }
  return false;
}

static int local_test(void *self, void **request) {
  local_member *m = self;
  local_op *op = *request;
  const int rank = m->face.rank, size = m->face.size;
  int answer = 0;
  m->chance = m->chance * 1664525U + 1013904223U;
  if (m->fails_in > 0 && --m->fails_in == 0) return -1;
  if (m->chance >> 30 != 0) return 0;
  pthread_mutex_lock(&m->world->lock);
  if (local_is_cut(m->world)) {
    answer = -1;
  } else if (op->n_here == size && !op->copied[rank]) {
    local_take(op, rank, size);
    op->copied[rank] = true;
    op->n_done++;
  }
  if (!answer) answer = op->copied[rank] && op->n_done == size;
  pthread_mutex_unlock(&m->world->lock);
  if (answer == 1) *request = NULL;
  return answer;
}

static int local_tell(void *self, int64_t word) {
  local_member *m = self;
  pthread_mutex_lock(&m->world->lock);
  m->world->words[m->world->n_words % MOST_WORDS].from = m->face.rank;
  m->world->words[m->world->n_words++ % MOST_WORDS].word = word;
  pthread_mutex_unlock(&m->world->lock);
  return 0;
}

static int local_hear(void *self, int *from, int64_t *word) {
  local_member *m = self;
  pthread_mutex_lock(&m->world->lock);
  int found = m->world->n_heard < m->world->n_words;
  if (found) {
    *from = m->world->words[m->world->n_heard % MOST_WORDS].from;
    *word = m->world->words[m->world->n_heard++ % MOST_WORDS].word;
  }
  pthread_mutex_unlock(&m->world->lock);
  return found;
}

static void local_end(void *self, int code) {
  local_member *m = self;
  pthread_mutex_lock(&m->world->lock);
  m->ended = code;
  pthread_mutex_unlock(&m->world->lock);
}
static const char *local_why(void *self) {
  (void)self;
  return "the wire was cut";
}

/** Creates a world of `size` members; freed by local_world_destroy. */
static local_world *local_world_create(int size) {
  local_world *w = calloc(1, sizeof *w);
  if (!w || pthread_mutex_init(&w->lock, NULL)) abort();
  w->size = size;
  for (int k = 0; k < size; k++) {
    local_member *m = &w->members[k];
    m->world = w;
    m->chance = 77U * (unsigned)k + 1;
    m->ended = -1;
    m->face = (lac_transport){.name = "threads",
                              .rank = k,
                              .size = size,
                              .self = m,
                              .broadcast = local_broadcast,
                              .gather = local_gather,
                              .exchange = local_exchange,
                              .test = local_test,
                              .tell = local_tell,
                              .hear = local_hear,
                              .end = local_end,
                              .why = local_why};
  }
  return w;
}

static void local_world_destroy(local_world *w) {
  pthread_mutex_destroy(&w->lock);
  free(w);
}

#endif
