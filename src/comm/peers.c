/* SPDX-License-Identifier: Apache-2.0
 * Identifies where processes run, and finds whether those of this machine still run. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "comm/comm_in.h"

static uint64_t hash_machine_identity(void) {
  char text[512] = "";
  uint64_t hash = 0;
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file) {
    hash = laci_hash64(text, fread(text, 1, sizeof text, file), hash);
    (void)fclose(file);
  }
  if (gethostname(text, sizeof text - 1) == 0) hash = laci_hash64(text, strlen(text), hash);
  ssize_t n = readlink("/proc/self/ns/pid", text, sizeof text);
  return n > 0 ? laci_hash64(text, (size_t)n, hash) : hash;
}

laci_peer laci_peer_describe_self(void) {
  return (laci_peer){.pid = getpid(), .place = hash_machine_identity()};
}

/* Has the process with this pid, on this machine, ended? A zombie, which has ended but was not
 * collected by its parent, counts as ended. */
static bool has_pid_died(int64_t pid) {
  char path[64], text[512];
  if (kill((pid_t)pid, 0) != 0) return true;
  (void)snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
  FILE *file = fopen(path, "re");
  if (!file) return false;
  size_t n = fread(text, 1, sizeof text - 1, file);
  (void)fclose(file);
  text[n] = 0;
  /* /proc/PID/stat has the state after the name in parentheses, which may itself contain ) */
  const char *state = strrchr(text, ')');
  return state && state[1] && (state[2] == 'Z' || state[2] == 'X');
}

bool laci_comm_has_process_died(const laci_comm *comm, int rank) {
  const laci_peer *ours = &comm->peers[comm->rank], *peer = &comm->peers[rank];
  if (rank == comm->rank || peer->pid == 0 || peer->place != ours->place) return false;
  /* a peer with our own pid is not checked: in tests, ranks are threads of one process */
  return peer->pid != ours->pid && has_pid_died(peer->pid);
}

lac_status laci_comm_check_processes_alive(const laci_comm *comm, lac_error *err) {
  for (int k = 0; k < comm->size; k++) {
    if (!laci_comm_has_process_died(comm, k)) continue;
    return laci_fail(err, LAC_PEER, "process %d (pid %" PRId64 ") has died", k, comm->peers[k].pid);
  }
  return LAC_OK;
}
