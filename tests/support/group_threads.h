/* SPDX-License-Identifier: Apache-2.0
 * Runs a job on a process group whose processes are threads of this program. */
#ifndef TESTS_SUPPORT_GROUP_THREADS_H
#define TESTS_SUPPORT_GROUP_THREADS_H

#include <pthread.h>
#include <stdlib.h>

#include "api/run/process_group_in.h"
#include "comm/comm.h"
#include "lacuna/process_group.h"
#include "support/transport.h"

/** The job of one process; `mine` is its own argument. */
typedef lac_status group_job(lac_process_group *group, void *mine, lac_error *err);

typedef struct group_member {
  pthread_t thread;
  const lac_transport *transport;
  group_job *job;
  void *mine;
  lac_status status;
  lac_error err;
  int ended; /* the code with which its transport was ended */
} group_member;

static void *group_member_live(void *context) {
  group_member *m = context;
  const laci_comm_options options = {.timeout = 120};
  laci_comm *comm = NULL;
  lac_process_group *group = NULL;
  if (laci_comm_open_transport(m->transport, &options, &comm, &m->err)) abort();
  if (laci_process_group_create(comm, &group, &m->err)) abort();
  m->status = m->job(group, m->mine, &m->err);
  lac_process_group_close(group, m->status);
  return NULL;
}

/** Runs the job in every process k with mine[k]; returns when all have ended. */
static void group_threads_run(int size, group_job *job, void *const *mine, group_member *members) {
  local_world *world = local_world_create(size);
  for (int k = 0; k < size; k++) {
    members[k] = (group_member){.transport = &world->members[k].face, .job = job, .mine = mine[k]};
    if (pthread_create(&members[k].thread, NULL, group_member_live, &members[k])) abort();
  }
  for (int k = 0; k < size; k++) {
    pthread_join(members[k].thread, NULL);
    members[k].ended = world->members[k].ended;
  }
  local_world_destroy(world);
}

#endif
