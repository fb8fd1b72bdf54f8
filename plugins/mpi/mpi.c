/* SPDX-License-Identifier: Apache-2.0
 * The transport over MPI. Every channel has a separate communicator, so that operations on
 * different channels need no common order. A word is a number that a process sends to process 0: a
 * message on a fourth communicator.
 *
 * MPI is set to return errors, so that the library can report them. It is initialized once per
 * process, by the thread that opens the transport. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lacuna/plugin.h"

enum { WORD_TAG = 1, MOST_TOLD = 64, NAP_NS = 100 * 1000 };

typedef struct transport {
  lac_transport face;
  MPI_Comm channels[LAC_CHANNELS], words;
  int64_t told[MOST_TOLD]; /* words whose sending has started, in a ring buffer */
  MPI_Request telling[MOST_TOLD];
  int n_told;
  char name[MPI_MAX_LIBRARY_VERSION_STRING];
  char why[MPI_MAX_ERROR_STRING + 64];
} transport;

/** A request in progress, with its arrays of counts and offsets, which MPI may read until the
 * request is done. */
typedef struct request {
  MPI_Request mpi;
  int *counts, *offsets, *to_counts, *to_offsets; /* [size] bytes to send to or receive from each
                                                     process, and their offsets */
} request;

static transport mpi;

static int set_mpi_failure(transport *t, const char *doing, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int n = 0;
  if (MPI_Error_string(code, text, &n) != MPI_SUCCESS) text[0] = 0;
  (void)snprintf(t->why, sizeof t->why, "MPI: %s: %s", doing, text);
  return -1;
}

/* Converts offsets to MPI's counts and offsets, which are ints; no operation exceeds
 * LAC_TRANSPORT_MOST bytes. */
static void convert_offsets_to_ints(const size_t *begin, int n, int *counts, int *offsets) {
  for (int k = 0; k < n; k++) {
    counts[k] = (int)(begin[k + 1] - begin[k]);
    offsets[k] = (int)begin[k];
  }
}

static int return_started_request(transport *t, const char *doing, int code, request *r,
                                  void **to) {
  if (code == MPI_SUCCESS) {
    *to = r;
    return 0;
  }
  free(r);
  return set_mpi_failure(t, doing, code);
}

static request *new_request(transport *t) {
  const size_t size = (size_t)t->face.size;
  request *r = malloc(sizeof *r + 4 * size * sizeof(int));
  if (!r) {
    (void)snprintf(t->why, sizeof t->why, "not enough memory for a message");
    return NULL;
  }
  r->counts = (int *)(void *)(r + 1);
  r->offsets = r->counts + size;
  r->to_counts = r->offsets + size;
  r->to_offsets = r->to_counts + size;
  return r;
}

static int broadcast(void *self, int channel, void *bytes, size_t n, void **to) {
  transport *t = self;
  request *r = new_request(t);
  if (!r) return -1;
  int code = MPI_Ibcast(bytes, (int)n, MPI_BYTE, 0, t->channels[channel], &r->mpi);
  return return_started_request(t, "broadcast", code, r, to);
}

static int gather(void *self, int channel, void *all, const size_t *begin, void **to) {
  transport *t = self;
  request *r = new_request(t);
  if (!r) return -1;
  convert_offsets_to_ints(begin, t->face.size, r->counts, r->offsets);
  int code = MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, r->counts, r->offsets,
                             MPI_BYTE, t->channels[channel], &r->mpi);
  return return_started_request(t, "gather", code, r, to);
}

static int exchange(void *self, int channel, const void *from, const size_t *begin, void *into,
                    void **to) {
  transport *t = self;
  request *r = new_request(t);
  if (!r) return -1;
  convert_offsets_to_ints(begin, t->face.size, r->counts, r->offsets);
  for (int k = 0; k < t->face.size; k++) {
    r->to_counts[k] = r->counts[t->face.rank];
    r->to_offsets[k] = k * r->to_counts[k];
  }
  int code = MPI_Ialltoallv(from, r->counts, r->offsets, MPI_BYTE, into, r->to_counts,
                            r->to_offsets, MPI_BYTE, t->channels[channel], &r->mpi);
  return return_started_request(t, "exchange", code, r, to);
}

static int test_request(void *self, void **started_request) {
  request *r = *started_request;
  int done = 0;
  int code = MPI_Test(&r->mpi, &done, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) return set_mpi_failure(self, "waiting", code);
  if (!done) return 0;
  free(r);
  *started_request = NULL;
  return 1;
}

/* Starts to send a word. If process 0 has not received the word sent MOST_TOLD words ago, nothing
 * is sent, so that the call never waits. */
static int send_word(void *self, int64_t word) {
  transport *t = self;
  int at = t->n_told % MOST_TOLD, done = 1;
  if (t->n_told >= MOST_TOLD) {
    int code = MPI_Test(&t->telling[at], &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return set_mpi_failure(t, "a word", code);
  }
  if (!done) return 0;
  t->told[at] = word;
  t->n_told++;
  int code = MPI_Isend(&t->told[at], 1, MPI_INT64_T, 0, WORD_TAG, t->words, &t->telling[at]);
  return code == MPI_SUCCESS ? 0 : set_mpi_failure(t, "a word", code);
}

static int receive_word(void *self, int *from, int64_t *word) {
  transport *t = self;
  MPI_Status status;
  int found = 0;
  int code = MPI_Iprobe(MPI_ANY_SOURCE, WORD_TAG, t->words, &found, &status);
  if (code == MPI_SUCCESS && found) {
    *from = status.MPI_SOURCE;
    code = MPI_Recv(word, 1, MPI_INT64_T, *from, WORD_TAG, t->words, MPI_STATUS_IGNORE);
  }
  return code == MPI_SUCCESS ? found : set_mpi_failure(t, "a word", code);
}

static const char *failure_text(void *self) { return ((transport *)self)->why; }

/* Closes the transport. Receives the words that process 0 has not asked for, so that no request is
 * left in progress. */
static void finish_and_close(transport *t) {
  int64_t word;
  int from;
  if (t->face.rank != 0) {
    int n = t->n_told < MOST_TOLD ? t->n_told : MOST_TOLD;
    (void)MPI_Waitall(n, t->telling, MPI_STATUSES_IGNORE);
  }
  MPI_Request all_here;
  int done = MPI_Ibarrier(t->words, &all_here) != MPI_SUCCESS;
  while (!done) {
    const struct timespec nap = {0, NAP_NS};
    while (t->face.rank == 0 && receive_word(t, &from, &word) == 1) continue;
    (void)nanosleep(&nap, NULL);
    if (MPI_Test(&all_here, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
  }
  while (t->face.rank == 0 && receive_word(t, &from, &word) == 1) continue;
  for (int c = 0; c < LAC_CHANNELS; c++) (void)MPI_Comm_free(&t->channels[c]);
  (void)MPI_Comm_free(&t->words);
  (void)MPI_Finalize();
}

static void close_or_abort_transport(void *self, int code) {
  transport *t = self;
  if (code) (void)MPI_Abort(MPI_COMM_WORLD, code);
  finish_and_close(t);
}

/* Writes the transport's name: the first line of MPI's version text, up to a comma. */
static void write_name(transport *t) {
  int n = 0;
  if (MPI_Get_library_version(t->name, &n) != MPI_SUCCESS) t->name[0] = 0;
  for (char *at = t->name; *at; at++) {
    if (*at == ',' || *at == '\n') *at = 0;
  }
}

static int create_communicators(transport *t) {
  int code = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int c = 0; c < LAC_CHANNELS && code == MPI_SUCCESS; c++) {
    code = MPI_Comm_dup(MPI_COMM_WORLD, &t->channels[c]);
  }
  if (code == MPI_SUCCESS) code = MPI_Comm_dup(MPI_COMM_WORLD, &t->words);
  if (code == MPI_SUCCESS) code = MPI_Comm_rank(MPI_COMM_WORLD, &t->face.rank);
  if (code == MPI_SUCCESS) code = MPI_Comm_size(MPI_COMM_WORLD, &t->face.size);
  return code == MPI_SUCCESS ? 0 : set_mpi_failure(t, "communicators", code);
}

static lac_transport *open_transport(const char **reason) {
  transport *t = &mpi;
  int threads = 0;
  *reason = t->why;
  /* Only the main thread calls MPI, while other threads compute. */
  int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &threads);
  if (code != MPI_SUCCESS) {
    (void)set_mpi_failure(t, "start", code);
    return NULL;
  }
  write_name(t);
  if (create_communicators(t)) return NULL;
  t->face.name = t->name;
  t->face.self = t;
  t->face.broadcast = broadcast;
  t->face.gather = gather;
  t->face.exchange = exchange;
  t->face.test = test_request;
  t->face.tell = send_word;
  t->face.hear = receive_word;
  t->face.end = close_or_abort_transport;
  t->face.why = failure_text;
  return &t->face;
}

__attribute__((visibility("default"))) const lac_plugin *lac_plugin_open(void);

const lac_plugin *lac_plugin_open(void) {
  static const lac_plugin plugin = {
      .version = LAC_PLUGIN_VERSION, .size = sizeof plugin, .open_transport = open_transport};
  return &plugin;
}
